"""Requests on compaction, branch summaries and token estimates."""

from _encode import plain
from _names import call, clean, public
from _session_ops import attempt
from _steps import Steps
from normalise import UNDEFINED


def estimate_tokens(run, request, _host):
    function = public("estimate_tokens")
    messages = request["messages"] if "messages" in request else [request["message"]]
    return {"ok": [attempt(run, lambda m=m: function(clean(run.dec(m)))) for m in messages]}


def on_messages(name):
    """A request that gives a list of messages to one function."""

    def operation(run, request, _host):
        messages = clean(run.dec(request["messages"]))
        return attempt(run, lambda: plain(public(name)(messages)))

    return operation


def with_session(run, request, host, use):
    """Open the session of a request, run its steps, and give both to ``use(session, steps)``."""
    steps = Steps(run, host)
    steps.managers["a"] = steps.open(run.open_session(request))
    try:
        done = steps.run_all(request.get("ops"))
        return use(steps.managers["a"], done)
    finally:
        steps.close()


def with_entries(run, request, host, use):
    """The entries of a request: its own list, or the branch of its session."""
    if request.get("entries"):
        return use(clean(run.dec(request["entries"])))
    return with_session(run, request, host, lambda session, _done: use(session.get_branch()))


def find_cut_point(run, request, host):
    keeps = request["keepRecentTokens"]
    keeps = keeps if isinstance(keeps, list) else [keeps]

    def use(entries):
        start, end = request.get("start", 0), request.get("end", len(entries))

        def all_cuts():
            find = public("find_cut_point")
            return [{"keep": k, **plain(find(entries, start, end, run.dec(k)))} for k in keeps]

        return attempt(run, all_cuts)

    return with_entries(run, request, host, use)


def prepared(run, session, settings):
    value = public("prepare_compaction")(session.get_branch(), clean(run.dec(settings)))
    return UNDEFINED if value is None else value


def prepare_compaction(run, request, host):
    settings = request["settings"]
    settings = settings if isinstance(settings, list) else [settings]

    def use(session, done):
        out = {"results": [attempt(run, lambda s=s: plain(prepared(run, session, s))) for s in settings]}
        return {**out, "steps": done} if done else out

    return with_session(run, request, host, use)


def projected_tokens(run, request, host):
    def use(session, _done):
        function = public("estimate_projected_context_tokens")
        return attempt(run, lambda: plain(function(session.build_session_projection(), session.get_branch())))

    return with_session(run, request, host, use)


def collect_entries(run, request, host):
    old, target = run.dec(request["oldLeafId"]), run.dec(request["targetId"])

    def use(session, _done):
        def collected():
            found = call(public("collect_entries_for_branch_summary"), [session, old, target])
            ids = [e.get("id", UNDEFINED) if isinstance(e, dict) else UNDEFINED for e in found.entries]
            return {"commonAncestorId": found.common_ancestor_id, "ids": ids}

        return attempt(run, collected)

    return with_session(run, request, host, use)


def prepare_branch_entries(run, request, host):
    budgets = request.get("tokenBudgets") or [request.get("tokenBudget", 0)]

    def use(entries):
        function = public("prepare_branch_entries")
        return {"results": [attempt(run, lambda b=b: plain(function(entries, run.dec(b)))) for b in budgets]}

    return with_entries(run, request, host, use)


OPS = {
    "estimateTokens": estimate_tokens,
    "estimateContextTokens": on_messages("estimate_context_tokens"),
    "serializeConversation": on_messages("serialize_conversation"),
    "convertToLlm": on_messages("convert_to_llm"),
    "findCutPoint": find_cut_point,
    "prepareCompaction": prepare_compaction,
    "projectedTokens": projected_tokens,
    "collectEntriesForBranchSummary": collect_entries,
    "prepareBranchEntries": prepare_branch_entries,
}
