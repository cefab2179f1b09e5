"""Keeping a session's context within the window: when, what, and what happens when something fails."""

import asyncio
import json
import os
import threading
import time
import warnings
from pathlib import Path

import pytest
from sessiontree.compaction import (
    DEFAULT_COMPACTION_SETTINGS,
    CompactionDecision,
    CompactionResult,
    Compactor,
    CompactorHooks,
    RetryPolicy,
    SummaryResponse,
    estimate_tokens,
    fitted_settings,
)
from sessiontree.exceptions import (
    SessionConflictError,
    SummarizationAbortedError,
    SummarizationError,
)
from sessiontree.manager import SessionManager
from sessiontree.settings import SettingsManager

MODEL = {"provider": "p", "id": "m", "contextWindow": 4000, "maxTokens": 1000}
SETTINGS = {"enabled": True, "reserveTokens": 1000, "keepRecentTokens": 700}
TOO_LONG = "prompt is too long: 5000 tokens > 4000 maximum"


class Model:
    """A summarizer that keeps what it was asked and gives the planned answers, then numbered summaries."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else f"SUMMARY {len(self.asked)}"
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(request)
        return SummaryResponse(answer) if isinstance(answer, str) else answer


def words(tokens, mark=""):
    """A text that is estimated at this many tokens."""
    return (mark + "x" * 4 * tokens)[: 4 * tokens]


def user(text):
    return {"role": "user", "content": text, "timestamp": 1}


def answer(text="", *, calls=(), stop="stop", usage=None, **fields):
    content = [{"type": "text", "text": text}] if text else []
    content += [{"type": "toolCall", "id": id, "name": "read", "arguments": {"path": id}} for id in calls]
    message = {
        "role": "assistant",
        "content": content,
        "provider": "p",
        "model": "m",
        "stopReason": stop,
        "timestamp": 2,
    }
    if usage is not None:
        message["usage"] = {
            "input": usage,
            "output": 0,
            "cacheRead": 0,
            "cacheWrite": 0,
            "totalTokens": usage,
        }
    return {**message, **fields}


def result(call, text):
    return {
        "role": "toolResult",
        "toolCallId": call,
        "toolName": "read",
        "content": [{"type": "text", "text": text}],
        "isError": False,
        "timestamp": 3,
    }


def session_of(*messages):
    session = SessionManager.in_memory("/code")
    ids = [session.append_message(message) for message in messages]
    return session, ids


def talk(turns, tokens=200, first=0):
    """A conversation of question and answer, each of this many tokens."""
    messages = []
    for turn in range(first, first + turns):
        messages += [user(words(tokens, f"Q{turn} ")), answer(words(tokens, f"A{turn} "))]
    return messages


def compactor(session, model=None, **options):
    options.setdefault("settings", SETTINGS)
    options.setdefault("max_input_tokens", None)
    return Compactor(session, MODEL, model or Model(), **options)


def roles(session):
    return [message["role"] for message in session.build_session_context().messages]


def texts(session):
    """The first words of each message of the context."""
    found = []
    for message in session.build_session_context().messages:
        content = message.get("summary", message.get("content"))
        content = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
        found.append(content[:2])
    return found


def lines(session):
    return list(session.get_entries())


# ---- compacting because it is wanted


def test_history_becomes_a_summary_and_the_newest_messages_stay():
    """What is kept is kept word for word, and the outcome says what changed."""
    session, ids = session_of(*talk(4))
    outcome = compactor(session).compact()
    assert (outcome.status, outcome.reason, outcome.retry) == ("compacted", "manual", False)
    assert texts(session) == ["SU", "Q2", "A2", "Q3", "A3"]
    entry = session.get_entry(outcome.entry_id)
    assert entry["type"] == "compaction"
    assert entry["firstKeptEntryId"] == ids[4] == outcome.result.first_kept_entry_id
    assert entry["tokensBefore"] == 1600 == outcome.result.tokens_before
    assert outcome.result.estimated_tokens_after == sum(
        map(estimate_tokens, session.build_session_context().messages)
    )


def test_a_small_session_is_left_alone():
    """There is nothing to summarise where everything is to be kept."""
    session, _ = session_of(*talk(1))
    before = lines(session)
    outcome = compactor(session).compact()
    assert (outcome.status, outcome.message) == (
        "nothing",
        "the session is too small: all of it is to be kept",
    )
    assert lines(session) == before


def test_files_and_usage_are_stored():
    """The entry's details list the files, its usage is that of all requests."""
    usage = {
        "input": 10,
        "output": 5,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": 15,
        "cost": {"total": 0.5},
    }
    model = Model(SummaryResponse("S", usage=usage), SummaryResponse("T", usage=usage))
    session, _ = session_of(
        *talk(2), user("long"), answer(words(200), calls=["f.py"]), result("f.py", words(200)),
        *[answer(words(200)) for _ in range(3)],
    )  # fmt: skip
    compactor(session, model).compact()
    entry = session.get_leaf_entry()
    assert entry["details"] == {"readFiles": ["f.py"], "modifiedFiles": []}
    assert entry["summary"].endswith("\n\n<read-files>\nf.py\n</read-files>")
    assert entry["usage"]["totalTokens"] == 30
    assert entry["usage"]["cost"]["total"] == 1.0
    assert [request.kind for request in model.asked] == ["history", "turn_prefix"]


def test_custom_instructions_reach_the_model():
    """What the user wants the summary to dwell on ends the prompt."""
    model = Model()
    session, _ = session_of(*talk(4))
    compactor(session, model).compact(custom_instructions="the tests")
    assert model.asked[0].prompt.endswith("\n\nAdditional focus: the tests")


# ---- faults that users met elsewhere


def test_a_second_compaction_keeps_what_the_first_kept():
    """The part that the first one kept is summarised by the second, and its summary is handed on."""
    session, _ = session_of(*talk(4))
    model = Model("FIRST", "SECOND")
    compact = compactor(session, model)
    compact.compact()
    for message in talk(3, first=4):
        session.append_message(message)
    compact.compact()
    prompt = model.asked[1].prompt
    assert "<previous-summary>\nFIRST\n</previous-summary>" in prompt
    assert all(mark in prompt for mark in ("Q2 ", "A2 ", "Q3 ", "A3 "))
    assert "Q0 " not in prompt
    assert texts(session)[0] == "SE"


@pytest.mark.parametrize("between", ["user", "custom", "bash"])
def test_no_cut_between_a_call_and_its_result(between):
    """A message that came in while the tool ran may not tear call and result apart."""
    session, _ = session_of(*talk(2), user("go"), answer(words(50), calls=["c1"]))
    if between == "custom":
        session.append_custom_message_entry("note", words(300), display=True)
    elif between == "user":
        session.append_message(user(words(300)))
    else:
        session.append_message(
            {"role": "bashExecution", "command": "ls", "output": words(300), "timestamp": 3}
        )
    session.append_message(result("c1", words(300)))
    session.append_message(answer(words(100)))
    compactor(session).compact()
    kept = session.build_session_context().messages
    called = [
        block["id"] for m in kept if m["role"] == "assistant" for block in m["content"] if "id" in block
    ]
    assert called == ["c1"]
    assert [m["toolCallId"] for m in kept if m["role"] == "toolResult"] == ["c1"]


def test_a_call_that_still_waits_for_its_result_is_kept():
    """Compacting while a tool runs keeps its call, so that the result finds it."""
    session, _ = session_of(*talk(3), answer(words(10), calls=["c1"]), user(words(800)))
    compactor(session).compact()
    session.append_message(result("c1", "done"))
    assert roles(session) == ["compactionSummary", "assistant", "user", "toolResult"]


def test_a_call_that_was_given_up_does_not_hold_the_cut():
    """A later answer without the result shows that nobody waits for it any more."""
    session, _ = session_of(user("a"), answer(words(10), calls=["c1"]), *talk(4))
    compactor(session).compact()
    assert texts(session) == ["SU", "Q2", "A2", "Q3", "A3"]


def test_tool_results_larger_than_the_budget():
    """Trailing results that exceed the kept part alone keep their call, not the whole session."""
    session, ids = session_of(*talk(3), user("go"), answer(calls=["c1", "c2"]), result("c1", words(900)))
    session.append_message(result("c2", words(900)))
    outcome = compactor(session).compact()
    assert outcome.result.first_kept_entry_id == ids[7]
    assert roles(session) == ["compactionSummary", "assistant", "toolResult", "toolResult"]


def test_stale_usage_does_not_trigger_again():
    """Kept answers still carry the usage of the old, long context; it is not believed."""
    session, _ = session_of(*talk(4), user("q"), answer(words(100), usage=3900))
    compact = compactor(session)
    assert compact.needs_compaction()
    assert compact.after_response().status == "compacted"
    assert not compact.needs_compaction()
    session.append_message(user("next"))
    assert compact.after_response().status == "nothing"
    assert [entry["type"] for entry in lines(session)].count("compaction") == 1


def test_already_compacted_is_no_dead_end():
    """If the kept part alone is too long, a session that ends with a compaction is compacted further."""
    session, _ = session_of(*talk(2), *[user(words(600, f"U{n} ")) for n in range(6)])
    keep_all = {**SETTINGS, "keepRecentTokens": 2900}
    compact = compactor(session, settings=keep_all)
    assert compact.compact().status == "compacted"
    size = compact.context_usage().tokens
    assert size > 3000
    assert compact.compact().status == "compacted"
    assert compact.context_usage().tokens <= 3000


def test_compacting_twice_in_a_row_does_nothing_the_second_time():
    """Nobody is asked to summarise a summary."""
    session, _ = session_of(*talk(4))
    model = Model()
    compact = compactor(session, model)
    compact.compact()
    outcome = compact.compact()
    assert (outcome.status, outcome.message) == ("nothing", "the session was just compacted")
    assert len(model.asked) == 1


def test_images_count():
    """A message of nothing but images is no empty one: it takes its share of the kept part."""
    image = {
        "role": "user",
        "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
        "timestamp": 1,
    }
    session, ids = session_of(*talk(2), image, answer(words(10)))
    outcome = compactor(session).compact()
    assert outcome.result.first_kept_entry_id == ids[4]
    assert roles(session) == ["compactionSummary", "user", "assistant"]


def test_a_message_that_arrives_during_compaction_stays():
    """What is appended while the model writes lies behind the kept part."""
    session, _ = session_of(*talk(4))

    def while_writing(_request):
        session.append_message(user("news"))
        return "SUMMARY"

    outcome = compactor(session, Model(while_writing)).compact()
    assert outcome.status == "compacted"
    assert texts(session) == ["SU", "Q2", "A2", "Q3", "A3", "ne"]


def test_a_summary_cut_off_by_the_length_limit_is_not_stored():
    """Half a summary would be believed to be a whole one."""
    session, _ = session_of(*talk(4))
    before = lines(session)
    model = Model(SummaryResponse("half of", stop_reason="length"))
    with pytest.raises(SummarizationError, match="cut off"):
        compactor(session, model).compact()
    assert lines(session) == before


# ---- failures leave the session as it was

FAILURES = {
    "error": SummaryResponse("", stop_reason="error", error_message="no such model"),
    "length": SummaryResponse("half", stop_reason="length"),
    "aborted": SummaryResponse("part", stop_reason="aborted"),
    "tool": SummaryResponse("text", called_tool=True),
    "tool stop": SummaryResponse("text", stop_reason="toolUse"),
    "empty": SummaryResponse(""),
    "blank": SummaryResponse(" \n "),
    "connection": ConnectionResetError("reset"),
    "timeout": TimeoutError("too slow"),
    "program": KeyError("oops"),
    "no response": lambda _request: None,
}


@pytest.mark.parametrize("failure", FAILURES, ids=list(FAILURES))
@pytest.mark.parametrize("second", [False, True], ids=["history", "turn prefix"])
def test_a_failure_of_any_kind_changes_nothing(failure, second, tmp_path):
    """Neither in memory nor on disk, whether the first or the second request of a split turn fails."""
    session = SessionManager.create(str(tmp_path), session_dir=str(tmp_path))
    for message in [*talk(2), user("long"), *[answer(words(200)) for _ in range(6)]]:
        session.append_message(message)
    path = session.get_session_file()
    disk, leaf = Path(path).read_bytes(), session.get_leaf_id()
    planned = FAILURES[failure]
    model = Model(*(["H"] if second else []), planned)
    outcome = raised = None
    try:
        outcome = compactor(session, model, retry=None).compact()
    except Exception as error:
        raised = error
    assert Path(path).read_bytes() == disk
    assert session.get_leaf_id() == leaf
    if failure == "aborted":
        assert outcome.status == "cancelled"
    elif failure == "program":
        assert isinstance(raised, KeyError)
    elif failure == "no response":
        assert isinstance(raised, TypeError)
    else:
        assert isinstance(raised, SummarizationError)
    assert len(model.asked) == (2 if second else 1)


def test_a_failing_disk_leaves_the_session_as_it_was():
    """The append is the only change, and if it fails there is none."""
    session, _ = session_of(*talk(4))
    before = lines(session)

    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    session.append_compaction = full
    with pytest.raises(OSError, match="No space"):
        compactor(session).compact()
    assert lines(session) == before


def test_going_to_another_branch_meanwhile_throws_the_summary_away():
    """It would stand on a path that it does not tell of."""
    session, ids = session_of(*talk(4))

    def while_writing(_request):
        session.branch(ids[1])
        session.append_message(user("elsewhere"))
        return "SUMMARY"

    compact = compactor(session, Model(while_writing))
    with pytest.raises(SessionConflictError, match="another branch"):
        compact.compact()
    assert "compaction" not in [entry["type"] for entry in lines(session)]
    assert compact.compact().status == "nothing"


def test_another_compaction_meanwhile_throws_the_summary_away():
    """Two summaries of the same messages must not follow each other."""
    session, ids = session_of(*talk(4))

    def while_writing(_request):
        session.append_compaction("THEIRS", ids[6], 1)
        return "OURS"

    with pytest.raises(SessionConflictError, match="compacted by somebody else"):
        compactor(session, Model(while_writing)).compact()
    assert [e["summary"] for e in lines(session) if e["type"] == "compaction"] == ["THEIRS"]


def test_only_one_compaction_at_a_time():
    """A second call while the model writes is refused, and a later one is not."""
    session, _ = session_of(*talk(4))
    compact = compactor(session)
    compact.summarizer = Model(lambda _request: compact.compact() and "never")
    with pytest.raises(SessionConflictError, match="already running"):
        compact.compact()
    compact.summarizer = Model()
    assert compact.compact().status == "compacted"


# ---- cancelling and time limits


def test_cancelling_while_the_model_writes():
    """The caller need not wait for a model that nobody wants to hear any more."""
    session, _ = session_of(*talk(4))
    before = lines(session)
    cancel, release, answered = threading.Event(), threading.Event(), threading.Event()

    def slow(_request):
        cancel.set()
        release.wait(60)
        answered.set()
        return "too late"

    outcome = compactor(session, Model(slow)).compact(cancel=cancel)
    assert not answered.is_set()
    release.set()
    assert (outcome.status, outcome.message) == ("cancelled", "the summary was cancelled")
    assert isinstance(outcome.error, SummarizationAbortedError)
    assert lines(session) == before


def test_a_cancellation_at_the_last_moment_counts():
    """Set while the answer comes in: the summary is there, and is not stored."""
    session, _ = session_of(*talk(4))
    cancel = threading.Event()

    def last_moment(_request):
        cancel.set()
        return "SUMMARY"

    outcome = compactor(session, Model(last_moment)).compact(cancel=cancel)
    assert outcome.status == "cancelled"
    assert "compaction" not in [entry["type"] for entry in lines(session)]


def test_a_time_limit_for_a_model_that_never_answers():
    """A plain function cannot be interrupted; it is left to itself."""
    session, _ = session_of(*talk(4))
    release, answered = threading.Event(), threading.Event()

    def silent(_request):
        release.wait(60)
        answered.set()
        return "late"

    with pytest.raises(SummarizationError, match="time limit"):
        compactor(session, Model(silent), time_limit=0.2).compact()
    assert not answered.is_set()
    release.set()


def test_retries_by_default_and_by_settings():
    """Transient errors are repeated as the settings say."""
    busy = SummaryResponse("", stop_reason="error", error_message="503 overloaded")
    session, _ = session_of(*talk(4))
    settings = SettingsManager.in_memory(
        {"compaction": SETTINGS, "retry": {"maxRetries": 2, "baseDelayMs": 1}}
    )
    model = Model(busy, ConnectionRefusedError(), "S")
    assert compactor(session, model, settings=settings).compact().result.summary == "S"
    assert len(model.asked) == 3
    session, _ = session_of(*talk(4))
    settings.set("retry.enabled", False)
    model = Model(busy, "S")
    with pytest.raises(SummarizationError, match="overloaded"):
        compactor(session, model, settings=settings).compact()


# ---- hooks


def test_a_hook_sees_what_is_planned_and_may_call_it_off():
    """It gets the preparation, the path and the reason; nothing changes if it cancels."""
    session, _ = session_of(*talk(4))
    before = lines(session)
    seen, failed = [], []

    def hook(event):
        seen.append(event)
        return CompactionDecision(cancel=True)

    hooks = CompactorHooks(before=hook, failed=failed.append)
    outcome = compactor(session, hooks=hooks).compact(custom_instructions="x")
    assert outcome.status == "cancelled"
    assert failed == [outcome]
    (event,) = seen
    assert (event.reason, event.will_retry, event.custom_instructions) == ("manual", False, "x")
    assert len(event.preparation.messages_to_summarize) == 4
    assert len(event.branch_entries) == 8
    assert lines(session) == before


def test_a_hook_may_give_its_own_summary():
    """No model is asked, and the entry says that a hook made it."""
    session, ids = session_of(*talk(4))
    model, done = Model(), []
    own = CompactionResult("MINE", ids[6], 7, None, {"any": 1})
    hooks = CompactorHooks(before=lambda _event: CompactionDecision(result=own), after=done.append)
    outcome = compactor(session, model, hooks=hooks).compact()
    entry = session.get_leaf_entry()
    assert (entry["summary"], entry["fromHook"], entry["details"]) == ("MINE", True, {"any": 1})
    assert model.asked == []
    assert done == [outcome]


def test_a_hook_that_keeps_what_is_not_there_is_refused():
    """A first kept entry off the branch would drop everything before it."""
    session, _ = session_of(*talk(4))
    own = CompactionResult("MINE", "nowhere", 7, None, None)
    hooks = CompactorHooks(before=lambda _event: CompactionDecision(result=own))
    with pytest.raises(SessionConflictError, match='"nowhere"'):
        compactor(session, hooks=hooks).compact()


@pytest.mark.parametrize("summary", ["", " \n", None])
def test_a_hook_that_gives_an_empty_summary_is_refused(summary):
    """It would stand for a history that is gone."""
    session, _ = session_of(*talk(4))
    before = list(session.get_entries())
    own = CompactionResult(summary, before[0]["id"], 7, None, None)
    hooks = CompactorHooks(before=lambda _event: CompactionDecision(result=own))
    with pytest.raises(SummarizationError, match="hook before compactions is empty"):
        compactor(session, hooks=hooks).compact()
    assert list(session.get_entries()) == before


def test_a_hook_that_answers_nonsense_is_a_type_error():
    """Neither a decision nor None."""
    session, _ = session_of(*talk(4))
    with pytest.raises(TypeError, match="CompactionDecision"):
        compactor(session, hooks=CompactorHooks(before=lambda _event: True)).compact()


def test_async_hooks_work_in_plain_calls_too():
    """They are awaited wherever they come from."""
    session, _ = session_of(*talk(4))

    async def hook(_event):
        await asyncio.sleep(0)
        return CompactionDecision(cancel=True)

    assert compactor(session, hooks=CompactorHooks(before=hook)).compact().status == "cancelled"


# ---- deciding by the last answer


def test_below_the_threshold_nothing_happens():
    """And the outcome says so."""
    session, _ = session_of(*talk(2))
    outcome = compactor(session).after_response()
    assert (outcome.status, outcome.message) == ("nothing", "the context is below the threshold")


def test_the_threshold_goes_by_reported_usage():
    """A provider's count is exact; the reserve is what must be left of the window."""
    for usage, status in ((3000, "nothing"), (3001, "compacted")):
        session, _ = session_of(*talk(4), user("q"), answer("a", usage=usage))
        outcome = compactor(session).after_response()
        assert (outcome.status, outcome.reason, outcome.retry) == (status, "threshold", False)


def test_switched_off_means_only_on_demand():
    """No automatic compaction, but one by hand."""
    session, _ = session_of(*talk(12))
    compact = compactor(session, settings={**SETTINGS, "enabled": False})
    assert compact.after_response().message == "compaction is switched off"
    assert compact.compact().status == "compacted"


def test_an_unattended_failure_is_told_not_raised():
    """The agent goes on with its long context, and the failed hook is told."""
    session, _ = session_of(*talk(12))
    failed = []
    hooks = CompactorHooks(failed=failed.append)
    outcome = compactor(session, Model(FAILURES["error"]), hooks=hooks, retry=None).after_response()
    assert (outcome.status, outcome.reason) == ("failed", "threshold")
    assert "no such model" in outcome.message
    assert failed == [outcome]


@pytest.mark.parametrize(
    "failed", [answer(stop="error", errorMessage=TOO_LONG), answer("ha", stop="length", usage=10)]
)
def test_an_overflow_is_omitted_compacted_and_tried_again(failed):
    """The failed attempt does not go into the next request, and the turn is to be repeated."""
    session, ids = session_of(*talk(4), user("go"), failed)
    outcome = compactor(session).after_response()
    assert (outcome.status, outcome.reason, outcome.retry) == ("compacted", "overflow", True)
    assert outcome.omitted_entry_ids == (ids[-1],)
    assert texts(session) == ["SU", "Q2", "A2", "Q3", "A3", "go"]


def test_an_overflow_takes_the_results_of_its_calls_along():
    """A result without its call would be refused by the provider."""
    session, ids = session_of(*talk(4), user("go"), answer("x", calls=["c1"], stop="length", usage=10))
    ids.append(session.append_message(result("c1", "r")))
    outcome = compactor(session).after_response()
    assert outcome.omitted_entry_ids == tuple(ids[-2:])
    assert "toolResult" not in roles(session)


def test_an_overflow_is_repaired_once_a_turn():
    """A second overflow in the same turn is a failure; after the next message of the user it is not."""
    session, _ = session_of(*talk(4), user("go"), answer(stop="error", errorMessage=TOO_LONG))
    compact = compactor(session)
    assert compact.after_response().retry
    session.append_message(answer(stop="error", errorMessage=TOO_LONG))
    outcome = compact.after_response()
    assert (outcome.status, outcome.retry) == ("failed", False)
    assert "compacted once" in outcome.message
    for message in (user("again"), *talk(2), user("go"), answer(stop="error", errorMessage=TOO_LONG)):
        session.append_message(message)
    assert compact.after_response().retry


@pytest.mark.parametrize("estimated", [1, 10])
def test_an_overflow_is_compacted_whatever_the_estimate_says(estimated):
    """That the context is too long is known from the provider; half of what was to be kept, and less, is tried."""
    session, _ = session_of(*talk(4), user("go"), answer(stop="error", errorMessage=TOO_LONG))
    outcome = compactor(session, count_tokens=lambda _message: estimated).after_response()
    assert (outcome.status, outcome.reason, outcome.retry) == ("compacted", "overflow", True)
    assert texts(session)[0] == "SU"
    assert texts(session)[-1] == "go"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_compaction_that_runs_while_the_process_forks_does_not_block_the_child():
    """The thread that compacts is not there in the child, so nobody would ever end it."""
    session, _ = session_of(*talk(4))
    asked, go_on = threading.Event(), threading.Event()

    def slow(_request):
        if os.getpid() == parent:
            asked.set()
            go_on.wait(30)
        return SummaryResponse("SUMMARY")

    parent = os.getpid()
    compact = compactor(session, slow)
    thread = threading.Thread(target=compact.compact)
    thread.start()
    try:
        assert asked.wait(30)
        child = os.fork()
        if child == 0:
            os._exit(0 if compact.compact().status == "compacted" else 1)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(SessionConflictError, match="already running"):
            compact.compact()
    finally:
        go_on.set()
        thread.join()


def test_an_overflow_whose_compaction_fails_keeps_the_omission():
    """The attempt is out of the context either way; nothing else has changed, and nothing is repeated."""
    session, ids = session_of(*talk(4), user("go"), answer(stop="error", errorMessage=TOO_LONG))
    outcome = compactor(session, Model(FAILURES["error"]), retry=None).after_response()
    assert (outcome.status, outcome.retry) == ("failed", False)
    assert outcome.omitted_entry_ids == (ids[-1],)
    assert [entry["type"] for entry in lines(session)][-1] == "context_edit"


def test_a_success_beyond_the_window_is_kept():
    """Some providers cut silently; the answer is there, so nothing is repeated."""
    session, _ = session_of(*talk(4), user("go"), answer("done", usage=4100))
    outcome = compactor(session).after_response()
    assert (outcome.status, outcome.reason, outcome.retry) == ("compacted", "overflow", False)
    assert texts(session)[-1] == "do"


def test_the_overflow_of_another_model_says_nothing():
    """After a change to a model with a larger window, the old error is history."""
    other = answer(stop="error", errorMessage=TOO_LONG, model="small")
    session, _ = session_of(*talk(2), user("go"), other)
    assert compactor(session).after_response().status == "nothing"


def test_a_message_that_names_no_model_is_taken_for_ours():
    """Not every host stores provider and model with its messages."""
    failed = answer(stop="error", errorMessage=TOO_LONG)
    del failed["provider"], failed["model"]
    session, _ = session_of(*talk(4), user("go"), failed)
    assert compactor(session).after_response().retry


def test_an_answer_from_before_the_last_compaction_says_nothing():
    """It was dealt with; only what came after counts."""
    session, ids = session_of(*talk(4), user("go"), answer(stop="error", errorMessage=TOO_LONG))
    session.append_compaction("S", ids[6], 1)
    assert compactor(session).after_response().status == "nothing"


@pytest.mark.parametrize(
    "text",
    [
        "rate limit: too many tokens per minute",
        "429 Too many requests: input too large, quota",
        "invalid api key",
        "",
    ],
)
def test_other_errors_are_no_overflow(text):
    """A throttle that speaks of tokens is none either."""
    session, ids = session_of(*talk(2), user("go"), answer(stop="error", errorMessage=text))
    assert compactor(session).after_response().status == "nothing"
    assert len(lines(session)) == len(ids)


def test_a_result_without_its_call_does_not_stay():
    """Providers refuse it; where another program cut badly, the compaction repairs it."""
    session, _ = session_of(*talk(3))
    orphan = session.append_message(result("gone", words(10)))
    session.append_message(answer(words(400)))
    outcome = compactor(session).compact()
    assert outcome.omitted_entry_ids == (orphan,)
    assert "toolResult" not in roles(session)


# ---- sizes


def test_settings_are_fitted_to_small_windows():
    """The defaults ask for more than a small window holds."""
    assert fitted_settings(DEFAULT_COMPACTION_SETTINGS, 200_000) is DEFAULT_COMPACTION_SETTINGS
    small = fitted_settings({**DEFAULT_COMPACTION_SETTINGS, "x": 1}, 8192)
    assert small == {"enabled": True, "reserveTokens": 2048, "keepRecentTokens": 2048, "x": 1}


def test_a_small_model_with_default_settings_comes_to_rest():
    """An unattended session in a window of 4,000 tokens stays within it, turn after turn."""
    session, _ = session_of()
    compact = Compactor(session, MODEL, Model())
    for message in talk(40):
        session.append_message(message)
        assert compact.after_response().status in ("nothing", "compacted")
        assert compact.context_usage().tokens <= 4000
    assert 5 < [entry["type"] for entry in lines(session)].count("compaction") < 20


def test_a_history_longer_than_the_window_is_summarised_in_portions():
    """Each request fits, each brings the notes of the last up to date, and nothing is left out."""
    session, _ = session_of(*talk(30))
    model = Model()
    Compactor(session, MODEL, model, settings=SETTINGS).compact()
    assert len(model.asked) > 3
    assert all(len(request.prompt) / 4 < 3000 for request in model.asked)
    for number, request in enumerate(model.asked[1:], 1):
        assert f"<previous-summary>\nSUMMARY {number}\n" in request.prompt
    joined = "".join(request.prompt for request in model.asked)
    assert all(f"Q{turn} " in joined for turn in range(28))


def test_one_turn_longer_than_the_window_is_summarised_in_portions():
    """An agent that worked for hours on one request is the usual case."""
    session, _ = session_of(user("go"), *[answer(words(200, f"S{n} ")) for n in range(60)])
    model = Model()
    Compactor(session, MODEL, model, settings=SETTINGS).compact()
    assert {request.kind for request in model.asked} == {"turn_prefix"}
    assert all(len(request.prompt) / 4 < 3000 for request in model.asked)
    assert session.get_leaf_entry()["summary"].startswith("No prior history.\n\n---\n\n")


def test_one_message_longer_than_the_window_is_cut():
    """With a marker that says how much is missing."""
    session, _ = session_of(user(words(9000)), *talk(3))
    model = Model()
    Compactor(session, MODEL, model, settings=SETTINGS).compact()
    assert "more characters truncated]" in model.asked[0].prompt
    assert all(len(request.prompt) / 4 < 3000 for request in model.asked)


def test_another_token_counter_decides_cut_and_threshold():
    """What counts tokens may be replaced as a whole."""
    session, ids = session_of(*[user(f"{n}") for n in range(10)])
    compact = compactor(session, count_tokens=lambda _message: 400)
    assert compact.context_usage().tokens == 4000
    assert compact.after_response().result.first_kept_entry_id == ids[8]


def test_ten_thousand_messages():
    """A long session is prepared: the cut lies where the kept tokens end."""
    session = SessionManager.in_memory("/code")
    session.append_many([message for turn in range(5000) for message in talk(1, 5)])
    compact = Compactor(session, {**MODEL, "contextWindow": 100_000}, Model(), settings=SETTINGS)
    prepared = compact.prepare()
    assert len(prepared.messages_to_summarize) + len(prepared.turn_prefix_messages) == 9860


# ---- asyncio


def test_from_asyncio():
    """The same outcomes, with the loop free while a plain summarizer works on its thread."""
    session, _ = session_of(*talk(4), user("q"), answer("a", usage=3500))
    ticks = []

    async def work():
        async def tick():
            while True:
                ticks.append(1)
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        slow = Model(lambda _request: time.sleep(0.2) or "S")
        outcome = await compactor(session, slow).aafter_response()
        ticking.cancel()
        return outcome

    assert asyncio.run(work()).status == "compacted"
    assert len(ticks) > 5


def test_cancelling_the_task_changes_nothing():
    """And another compaction can follow."""
    session, _ = session_of(*talk(4))

    async def never(_request):
        await asyncio.sleep(60)

    async def work():
        compact = compactor(session, never)
        task = asyncio.create_task(compact.acompact())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        compact.summarizer = Model()
        return await compact.acompact()

    assert asyncio.run(work()).status == "compacted"
    assert [entry["type"] for entry in lines(session)].count("compaction") == 1


@pytest.mark.parametrize("tail", [[], [None]], ids=["sound end", "odd end"])
def test_a_session_that_another_program_wrote(tmp_path, tail):
    """Odd entries contribute nothing and break nothing."""
    path = tmp_path / "odd.jsonl"
    entries = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/c"},
    ]
    parent = None
    odd = [
        user(words(300, "Q ")), None, answer(words(300, "A ")), {"role": "assistant", "content": "plain text"},
        {"role": "user"}, {"role": "assistant"}, {"role": "unknown", "x": 1}, user(None),
        answer(calls=["c"]) | {"content": [{"type": "toolCall", "id": "c", "name": "x"}, None, 5]},
        *talk(3), *tail,
    ]  # fmt: skip
    for number, message in enumerate(odd):
        entries.append(
            {"type": "message", "id": f"{number:08x}", "parentId": parent,
             "timestamp": "2024-01-01T00:00:00.000Z", "message": message}
        )  # fmt: skip
        parent = f"{number:08x}"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    model = Model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = SessionManager.open(str(path))
        outcome = compactor(session, model, retry=RetryPolicy(enabled=False)).compact()
    assert outcome.status == "compacted"
    assert "plain text" in model.asked[0].prompt
