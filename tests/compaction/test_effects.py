"""The same steps from plain code and from asyncio: results, errors, cancelling, limits."""

import asyncio
import contextvars
import signal
import subprocess
import sys
import threading
import time
import urllib.error

import pytest
from sessiontree.compaction import (
    RetryCallbacks,
    RetryPolicy,
    SummaryResponse,
    agenerate_summary,
    generate_summary,
)
from sessiontree.exceptions import SummarizationAbortedError, SummarizationError

MESSAGES = [{"role": "user", "content": "A"}]
BUSY = SummaryResponse("", stop_reason="error", error_message="overloaded")
SETTING = contextvars.ContextVar("setting", default="unset")


def plainly(summarizer, **options):
    return generate_summary(MESSAGES, {"id": "m"}, summarizer, **options)


def in_a_loop(summarizer, **options):
    return asyncio.run(agenerate_summary(MESSAGES, {"id": "m"}, summarizer, **options))


def inside_a_loop(summarizer, **options):
    async def work():
        return plainly(summarizer, **options)

    return asyncio.run(work())


@pytest.fixture(params=[plainly, in_a_loop, inside_a_loop])
def asked(request):
    return request.param


def plain(*answers):
    """A plain function that gives these answers, the last one again and again."""
    left = list(answers)

    def summarizer(_request):
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    return summarizer


def awaited(*answers):
    """The same as an async function."""
    give = plain(*answers)

    async def summarizer(request):
        await asyncio.sleep(0)
        return give(request)

    return summarizer


def returning(*answers):
    """A plain function that gives an awaitable."""
    give = awaited(*answers)
    return lambda request: give(request)  # noqa: PLW0108 - not itself an async function


class Called:
    """An object with an async __call__."""

    def __init__(self, *answers):
        self.give = awaited(*answers)

    async def __call__(self, request):
        return await self.give(request)


@pytest.fixture(params=[plain, awaited, returning, Called])
def kind(request):
    return request.param


@pytest.fixture(
    params=[{}, {"time_limit": 60}, {"cancel": threading.Event()}], ids=["free", "limit", "event"]
)
def watched(request):
    return request.param


def test_an_answer_comes_back(asked, kind, watched):
    """Whatever the summarizer is, and whether anything is watched."""
    assert asked(kind(SummaryResponse("S")), **watched) == "S"


def test_an_error_comes_back(asked, kind, watched):
    """As it is, with the summarizer in its traceback."""
    with pytest.raises(KeyError, match="oops") as raised:
        asked(kind(KeyError("oops")), **watched)
    assert any(entry.name == "summarizer" for entry in raised.traceback)


def test_passing_errors_are_repeated(asked, kind, watched):
    """Answers and exceptions alike, with hooks that may be async."""
    told = []

    async def start():
        told.append("start")

    callbacks = RetryCallbacks(
        on_retry_scheduled=lambda *_: told.append("scheduled"), on_retry_attempt_start=start
    )
    summarizer = kind(BUSY, TimeoutError(), SummaryResponse("S"))
    retry = RetryPolicy(base_delay_ms=1)
    assert asked(summarizer, retry=retry, callbacks=callbacks, **watched) == "S"
    assert told == ["scheduled", "start"] * 2


def test_attempts_run_out(asked, kind):
    """Then the last error counts."""
    told = []
    callbacks = RetryCallbacks(on_retry_finished=lambda *result: told.append(result))
    retry = {"enabled": True, "maxRetries": 2, "baseDelayMs": 1}
    with pytest.raises(SummarizationError, match="overloaded"):
        asked(kind(BUSY), retry=retry, callbacks=callbacks)
    assert told == [(False, 2, "overloaded")]


@pytest.mark.parametrize("seconds", [0.0, 0.1])
def test_a_time_limit(asked, seconds):
    """A plain function that sleeps and an async one that waits are both left after the limit."""
    release, answered = threading.Event(), threading.Event()
    ended = []

    async def waits(_request):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    def silent():
        release.wait(60)
        answered.set()

    for summarizer in (plain(silent), waits):
        with pytest.raises(SummarizationError, match="time limit"):
            asked(summarizer, time_limit=seconds)
    assert not answered.is_set()
    release.set()
    assert ended == ([True] if seconds else [])


def test_a_time_limit_ends_the_waiting_between_attempts(asked):
    """The wait, an hour, is cut short, not sat out."""
    with pytest.raises(SummarizationError, match="time limit"):
        asked(plain(BUSY), time_limit=0.1, retry=RetryPolicy(base_delay_ms=3_600_000))


def test_an_event_cancels(asked):
    """While a function works, while it waits, and before it is asked."""
    for when in ("before", "working", "waiting"):
        cancel, release = threading.Event(), threading.Event()
        calls = []

        def summarizer(_request, when=when, cancel=cancel, release=release, calls=calls):
            calls.append(when)
            if when == "working":
                cancel.set()
                release.wait(20)
            return BUSY

        if when == "before":
            cancel.set()
        callbacks = RetryCallbacks(on_retry_scheduled=lambda *_args, cancel=cancel: cancel.set())
        with pytest.raises(SummarizationAbortedError):
            asked(summarizer, cancel=cancel, callbacks=callbacks, retry=RetryPolicy(base_delay_ms=60_000))
        release.set()
        assert calls == ([] if when == "before" else [when])


def test_a_task_that_will_not_end_is_left(asked, monkeypatch):
    """A summarizer that swallows its cancellation holds up nobody."""
    from sessiontree.compaction import _effects

    monkeypatch.setattr(_effects, "_GRACE_SECONDS", 0.1)
    stubborn = []

    async def summarizer(_request):
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                stubborn.append(True)
        return SummaryResponse("late")

    with pytest.raises(SummarizationError, match="time limit"):
        asked(summarizer, time_limit=0.1)
    assert stubborn


def test_context_variables_reach_the_summarizer(asked, kind, watched):
    """A thread of ours sees what the caller has set."""
    seen = []
    SETTING.set("caller's")
    asked(kind(lambda: seen.append(SETTING.get()) or SummaryResponse("S")), **watched)
    assert seen == ["caller's"]


def test_without_limits_a_plain_summarizer_runs_on_the_callers_thread():
    """So that a debugger, a profiler and Ctrl-C find it where it was called."""
    seen = []
    plainly(lambda _request: seen.append(threading.current_thread()) or SummaryResponse("S"))
    assert seen == [threading.current_thread()]


def test_the_loop_stays_free_while_a_plain_summarizer_works():
    """It runs on a thread of its own there."""
    seen = []

    def summarizer(_request):
        seen.append(threading.current_thread())
        return SummaryResponse("S")

    in_a_loop(summarizer)
    assert seen != [threading.current_thread()]


INTERRUPTED = """
import asyncio, sys, time
from sessiontree.compaction import SummaryResponse, generate_summary

async def coming(_request):
    print("asked", flush=True)
    await asyncio.sleep(60)

def plain(_request):
    print("asked", flush=True)
    time.sleep(60)

options = {"time_limit": 50} if "limit" in sys.argv[2:] else {}
try:
    generate_summary([], {"id": "m"}, {"async": coming, "plain": plain}[sys.argv[1]], **options)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("arguments", [["async"], ["plain"], ["async", "limit"], ["plain", "limit"]])
def test_ctrl_c_ends_it_at_once(arguments):
    """However the model is asked."""
    command = [sys.executable, "-c", INTERRUPTED, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(30) == 0


@pytest.mark.parametrize("reason", ["max_tokens", "content_filter", "tool_calls", None, 5])
def test_only_stop_makes_a_summary(asked, reason):
    """A vendor's own word for the end of an answer is not taken for a good one."""
    with pytest.raises(SummarizationError, match="unknown stop reason"):
        asked(plain(SummaryResponse("half a sen", stop_reason=reason)))


def test_errors_of_the_network_are_tried_again(asked):
    """Also those that are none of Python's own ConnectionErrors; an HTTP status is no such error."""
    tries = []

    def unreachable(request):
        tries.append(request)
        raise urllib.error.URLError(OSError(111, "Connection refused"))

    def refused(_request):
        raise urllib.error.HTTPError("http://x", 401, "Unauthorized", {}, None)

    with pytest.raises(SummarizationError, match="refused"):
        asked(unreachable, retry=RetryPolicy(max_retries=2, base_delay_ms=1))
    assert len(tries) == 3
    with pytest.raises(urllib.error.HTTPError):
        asked(refused, retry=RetryPolicy(max_retries=2, base_delay_ms=1))
