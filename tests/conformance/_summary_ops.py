"""Requests that ask a model: compaction, summaries and branch summaries, with a model that is planned."""

from _compaction_ops import prepared, with_entries, with_session
from _encode import plain
from _errors import branch_error
from _names import clean, given, public
from _session_ops import attempt
from normalise import UNDEFINED

MODEL = {
    "provider": "fake",
    "id": "fake-model",
    "contextWindow": 100000,
    "maxTokens": 4096,
    "reasoning": False,
}
USAGE = {
    "input": 100,
    "output": 10,
    "cacheRead": 5,
    "cacheWrite": 1,
    "totalTokens": 116,
    "cost": {"input": 0.5, "output": 0.25, "cacheRead": 0.125, "cacheWrite": 0.0625, "total": 0.9375},
}


# The options of pi's calls, in the order in which it gives them.
ORDER = ("apiKey", "headers", "env", "sessionId", "reasoning", "cacheRetention")
BRANCH_ORDER = ("apiKey", "headers", "env", "reasoning", "cacheRetention", "sessionId")


class PlannedModel:
    """A summarizer that gives the answers a request plans and keeps what it was asked, as pi's call."""

    def __init__(self, run, request, order=ORDER):
        self.run = run
        self.order = order
        self.planned = list(request.get("responses") or [])
        self.calls = []

    def __call__(self, asked):
        number = len(self.calls)
        self.calls.append(self.run.enc(self.shown(asked)))
        plan = self.planned[number] if number < len(self.planned) else {"text": f"SUMMARY {number + 1}"}
        if plan.get("throws"):
            raise RuntimeError(plan["throws"])
        content = plan.get("content") or [{"type": "text", "text": plan.get("text", "")}]
        return public("SummaryResponse")(
            text="\n".join(block["text"] for block in content if block["type"] == "text"),
            usage=plan.get("usage") or {**USAGE, "cost": dict(USAGE["cost"])},
            stop_reason=plan.get("stopReason", "stop"),
            error_message=plan.get("errorMessage"),
            called_tool=any(block["type"] == "toolCall" for block in content),
        )

    def shown(self, asked):
        """model, context and options of pi's call."""
        options = {
            "apiKey": asked.api_key,
            "headers": asked.headers,
            "env": asked.env,
            "sessionId": asked.session_id,
            "reasoning": asked.reasoning,
            "cacheRetention": asked.cache_retention,
        }
        messages = [
            {"role": "system", "content": asked.system, "timestamp": 0},
            {
                "role": "user",
                "content": [{"type": "text", "text": asked.prompt}],
                "timestamp": self.run.clock_ms(),
            },
        ]
        return {
            "model": dict(asked.model),
            "context": {"messages": messages},
            "options": {k: options[k] for k in self.order if options[k] is not None},
        }


class RetryLog(list):
    """What the callbacks of retries are told, in the oracle's form."""

    def callbacks(self):
        return public("RetryCallbacks")(
            on_retry_scheduled=lambda *told: self.append(["scheduled", *told]),
            on_retry_attempt_start=lambda: self.append(["start"]),
            on_retry_finished=lambda *told: self.append(["finished", *(t for t in told if t is not None)]),
        )


def call_options(run, request, host):
    """The keywords that all functions which ask a model take."""
    return given(
        api_key=run.optional(request, "apiKey"),
        headers=run.optional(request, "headers"),
        env=run.optional(request, "env"),
        session_id=run.optional(request, "sessionId"),
        thinking_level=run.optional(request, "thinkingLevel"),
        custom_instructions=run.optional(request, "customInstructions"),
        retry=run.optional(request, "retry"),
        host=host,
    )


def given_preparation(value):
    """pi's object as a CompactionPreparation."""
    ops = public("create_file_ops")()
    for name in ("read", "written", "edited"):
        getattr(ops, name).update(value["fileOps"][name].values)
    return public("CompactionPreparation")(
        first_kept_entry_id=value["firstKeptEntryId"],
        messages_to_summarize=value["messagesToSummarize"],
        turn_prefix_messages=value["turnPrefixMessages"],
        is_split_turn=value["isSplitTurn"],
        tokens_before=value["tokensBefore"],
        previous_summary=value.get("previousSummary"),
        file_ops=ops,
        settings=value["settings"],
    )


def compact(run, request, host):
    return with_session(
        run, request, host, lambda session, done: compacted(run, request, host, session, done)
    )


def compacted(run, request, host, session, done):
    out = {"steps": done} if done else {}
    found = []

    def prepare():
        if request.get("preparation"):
            found.append(given_preparation(run.dec(request["preparation"])))
            return run.dec(request["preparation"])
        found.append(prepared(run, session, request["settings"]))
        return plain(found[0])

    out["prepared"] = attempt(run, prepare)
    if not found or found[0] is UNDEFINED:
        return out
    model, log = PlannedModel(run, request), RetryLog()
    made = []

    def ask():
        wanted = {**MODEL, **run.dec(request.get("model") or {})}
        options = {**call_options(run, request, host), "callbacks": log.callbacks()}
        made.append(public("compact")(found[0], wanted, model, **options))
        return plain(made[0])

    out["result"] = attempt(run, ask)
    out["calls"] = model.calls
    if request.get("retry"):
        out["retryLog"] = run.enc(list(log))
    if made and request.get("append") is not False:
        append(run, session, made[0], out)
    return out


def append(run, session, result, out):
    """Store the summary and show the context that follows from it."""
    out["appended"] = attempt(
        run,
        lambda: session.append_compaction(
            result.summary,
            result.first_kept_entry_id,
            result.tokens_before,
            result.details,
            usage=result.usage,
        ),
    )
    out["contextAfter"] = attempt(run, lambda: plain(session.build_session_context()))
    out["files"] = run.list_tree(run.dir)


def generate_summary(run, request, host):
    model = PlannedModel(run, request)
    name = "generate_summary" if request.get("textOnly") else "generate_summary_with_usage"
    previous = given(previous_summary=run.optional(request, "previousSummary"))
    messages = clean(run.dec(request["messages"]))
    wanted = {**MODEL, **run.dec(request.get("model") or {})}
    options = {**call_options(run, request, host), **previous}
    out = attempt(run, lambda: plain(public(name)(messages, wanted, model, **options)))
    return {**out, "calls": model.calls}


def generate_branch_summary(run, request, host):
    model = PlannedModel(run, request, BRANCH_ORDER)
    asked = clean(run.dec(request.get("options") or {}))
    wanted = {**MODEL, **asked.pop("model", {})}
    options = {**call_options(run, asked, host)}
    for name, keyword in (
        ("replaceInstructions", "replace_instructions"),
        ("reserveTokens", "reserve_tokens"),
    ):
        if name in asked:
            options[keyword] = asked[name]

    def use(entries):
        def ask():
            result = plain(public("generate_branch_summary")(entries, wanted, model, **options))
            if result["error"] is not None:
                result["error"] = branch_error(result["error"])
            return {k: v for k, v in result.items() if v is not None and v is not False}

        return {**attempt(run, ask), "calls": model.calls}

    return with_entries(run, request, host, use)


OPS = {
    "compact": compact,
    "generateSummary": generate_summary,
    "generateBranchSummary": generate_branch_summary,
}
