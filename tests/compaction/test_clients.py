"""The ready-made summarizers, over real HTTP against a server that speaks the vendors' protocols."""

import asyncio
import json
import sys
import threading

import pytest
from sessiontree.compaction import (
    RetryCallbacks,
    RetryPolicy,
    agenerate_summary,
    generate_summary,
    generate_summary_with_usage,
)
from sessiontree.compaction.clients import AnthropicSummarizer, OpenAISummarizer
from sessiontree.exceptions import SummarizationAbortedError, SummarizationError

from . import _server
from ._server import dropped, serving, silent, status

MESSAGES = [{"role": "user", "content": "Build a bridge", "timestamp": 1}]
MODEL = {
    "provider": "local",
    "id": "m",
    "maxTokens": 4096,
    "reasoning": True,
    "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
}
QUICK = RetryPolicy(max_retries=3, base_delay_ms=1)
OVERLOADED = {
    "openai": status(503, {"error": {"message": "The engine is overloaded", "type": "server_error"}}),
    "anthropic": status(
        529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
}
REFUSED = {
    "openai": status(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
    "anthropic": status(
        401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
    ),
}
USED_UP = status(429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}})


class Vendor:
    """One of the two protocols: its answers, and the summarizer for it."""

    def __init__(self, name, summarizer, answer, stops):
        self.name = name
        self.summarizer = summarizer
        self.answer = answer
        self.stops = stops

    def at(self, model, **options):
        return self.summarizer(base_url=model.url + ("/v1" if self.name == "openai" else ""), **options)

    def stopped(self, *texts, stop):
        return self.answer(*texts, **{"finish" if self.name == "openai" else "stop": self.stops[stop]})


VENDORS = {
    "openai": Vendor(
        "openai",
        OpenAISummarizer,
        _server.openai,
        {"length": "length", "broken": None, "refused": "content_filter"},
    ),
    "anthropic": Vendor(
        "anthropic",
        AnthropicSummarizer,
        _server.anthropic,
        {"length": "max_tokens", "broken": None, "refused": "refusal"},
    ),
}


@pytest.fixture(params=["openai", "anthropic"])
def vendor(request):
    pytest.importorskip(request.param)
    return VENDORS[request.param]


def ask(vendor, model, **options):
    return generate_summary(MESSAGES, MODEL, vendor.at(model), **options)


def test_a_summary_is_what_the_model_streams(vendor):
    """The text is that of all pieces, and each piece is told as it comes in."""
    pieces = []
    with serving(vendor.answer("## Goal")) as model:
        assert ask(vendor, model, on_text=pieces.append) == "## Goal"
    assert "".join(pieces) == "## Goal"


def test_openai_request_and_usage():
    """The prompt goes out as system and user message, and usage and cost come back in a session's names."""
    pytest.importorskip("openai")
    with serving(_server.openai("A", "B")) as model:
        made = generate_summary_with_usage(
            MESSAGES,
            MODEL,
            OpenAISummarizer(base_url=model.url, max_tokens=99, extra_body={"num_ctx": 5}),
            api_key="k1",
            headers={"x-team": "blue"},
            thinking_level="low",
        )
    assert made.text == "AB"
    assert made.usage == {
        "input": 100,
        "output": 30,
        "cacheRead": 20,
        "cacheWrite": 0,
        "reasoning": 12,
        "totalTokens": 150,
        "cost": pytest.approx(
            {"input": 3e-4, "output": 4.5e-4, "cacheRead": 6e-6, "cacheWrite": 0, "total": 7.56e-4}
        ),
    }
    (asked,) = model.asked
    assert asked["path"] == "/chat/completions"
    headers = {name.lower(): value for name, value in asked["headers"].items()}
    assert (headers["authorization"], headers["x-team"]) == ("Bearer k1", "blue")
    body = asked["body"]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "[User]: Build a bridge" in body["messages"][1]["content"]
    named = ("model", "max_tokens", "reasoning_effort", "num_ctx")
    assert [body[name] for name in named] == ["m", 99, "low", 5]


def test_anthropic_request_and_usage():
    """The prompt goes out with a bounded answer and a thinking budget, usage and cost come back."""
    pytest.importorskip("anthropic")
    with serving(_server.anthropic("A", "B")) as model:
        made = generate_summary_with_usage(
            MESSAGES, MODEL, AnthropicSummarizer(base_url=model.url), api_key="k2", thinking_level="low"
        )
    assert made.text == "A\nB"
    assert made.usage == {
        "input": 100,
        "output": 30,
        "cacheRead": 20,
        "cacheWrite": 7,
        "totalTokens": 157,
        "cost": pytest.approx(
            {"input": 3e-4, "output": 4.5e-4, "cacheRead": 6e-6, "cacheWrite": 2.625e-5, "total": 7.8225e-4}
        ),
    }
    (asked,) = model.asked
    assert asked["path"] == "/v1/messages"
    assert {"k2", "Bearer k2"} & set(asked["headers"].values())
    body = asked["body"]
    assert (body["model"], body["max_tokens"]) == ("m", 4096)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}


def test_an_endpoint_that_tells_no_usage_gives_none():
    """Not every compatible endpoint counts; then there is no usage rather than one of zeros."""
    pytest.importorskip("openai")
    with serving(_server.openai("A", usage=False)) as model:
        made = generate_summary_with_usage(MESSAGES, MODEL, OpenAISummarizer(base_url=model.url))
    assert made.usage is None


def test_an_endpoint_that_cannot_stream():
    """The answer may come in one piece, with the same rules for what is a summary."""
    pytest.importorskip("openai")
    whole = _server.openai_whole
    with serving(whole("A"), whole("half", "length"), whole(None)) as model:
        summarizer = OpenAISummarizer(base_url=model.url, stream=False)
        pieces = []
        made = generate_summary_with_usage(MESSAGES, MODEL, summarizer, on_text=pieces.append)
        assert (made.text, made.usage["totalTokens"], pieces) == ("A", 150, ["A"])
        with pytest.raises(SummarizationError, match="output limit"):
            generate_summary(MESSAGES, MODEL, summarizer)
        with pytest.raises(SummarizationError, match="is empty"):
            generate_summary(MESSAGES, MODEL, summarizer)
    assert not {"stream", "stream_options"} & set(model.asked[0]["body"])


def test_an_endpoint_that_refuses_to_be_asked_for_usage():
    """The question can be left out."""
    pytest.importorskip("openai")
    with serving(_server.openai("A")) as model:
        generate_summary(MESSAGES, MODEL, OpenAISummarizer(base_url=model.url, include_usage=False))
    assert "stream_options" not in model.asked[0]["body"]


def test_the_base_url_of_the_model_is_used(vendor):
    """A model list that names the endpoint is enough."""
    with serving(vendor.answer("A")) as model:
        named = {**MODEL, "baseUrl": model.url}
        assert generate_summary(MESSAGES, named, vendor.summarizer()) == "A"


def test_transient_errors_are_repeated(vendor):
    """After an overload and a cut connection, the third attempt's answer counts; the hooks are told."""
    told = []
    callbacks = RetryCallbacks(
        on_retry_scheduled=lambda attempt, most, delay, text: told.append((attempt, most, delay)),
        on_retry_attempt_start=lambda: told.append("start"),
        on_retry_finished=lambda *result: told.append(result),
    )
    with serving(OVERLOADED[vendor.name], dropped, vendor.answer("A")) as model:
        assert ask(vendor, model, retry=QUICK, callbacks=callbacks) == "A"
        assert len(model.asked) == 3
    assert told == [(1, 3, 1), "start", (2, 3, 2), "start", (True, 2, None)]


def test_nothing_is_repeated_without_a_policy(vendor):
    """The clients' own retries are off: one request, one answer."""
    with serving(OVERLOADED[vendor.name]) as model:
        with pytest.raises(SummarizationError, match=r"cannot summarise the history: .*(?i:overloaded)"):
            ask(vendor, model)
        assert len(model.asked) == 1


def test_errors_that_stay_are_not_repeated(vendor):
    """A refused key is refused again; the provider's words are kept."""
    with serving(REFUSED[vendor.name]) as model:
        with pytest.raises(SummarizationError) as raised:
            ask(vendor, model, retry=QUICK)
        assert len(model.asked) == 1
    assert raised.value.reason == "error"
    assert "key" in raised.value.detail


def test_a_quota_that_is_used_up_is_not_repeated(vendor):
    """It comes with the status of a short throttle, but lasts."""
    with serving(USED_UP) as model:
        with pytest.raises(SummarizationError, match="exceeded your current quota"):
            ask(vendor, model, retry=QUICK)
        assert len(model.asked) == 1


def test_the_wait_that_a_provider_asks_for_is_kept(vendor):
    """retry-after makes the wait longer than the policy's own."""
    delays = []
    callbacks = RetryCallbacks(on_retry_scheduled=lambda _attempt, _most, delay, _text: delays.append(delay))
    throttled = status(429, {"error": {"message": "slow down"}}, {"retry-after": "0.2"})
    with serving(throttled, vendor.answer("A")) as model:
        assert ask(vendor, model, retry=RetryPolicy(base_delay_ms=1), callbacks=callbacks) == "A"
    assert delays == [200]


def test_a_wait_of_hours_is_a_failure(vendor):
    """Nobody is kept waiting longer than the policy allows."""
    throttled = status(429, {"error": {"message": "slow down"}}, {"retry-after": "86400"})
    with serving(throttled) as model:
        with pytest.raises(SummarizationError, match="slow down"):
            ask(vendor, model, retry=QUICK)
        assert len(model.asked) == 1


@pytest.mark.parametrize("form", ["Fri, 01 Jan 2100 00:00:00 GMT", "soon", "-1", "nan"])
def test_odd_retry_after_headers_do_no_harm(vendor, form):
    """A far date is too long a wait; what is no time at all is passed over."""
    throttled = status(429, {"error": {"message": "slow down"}}, {"retry-after": form})
    with serving(throttled, vendor.answer("A")) as model:
        if "2100" in form:
            with pytest.raises(SummarizationError):
                ask(vendor, model, retry=QUICK)
        else:
            assert ask(vendor, model, retry=QUICK) == "A"


def test_a_stream_that_breaks_off_is_no_summary(vendor):
    """Half an answer without an end is an error, and one that may be gone the next time."""
    broken = vendor.stopped("## Go", stop="broken")
    with serving(broken, vendor.answer("## Goal")) as model:
        assert ask(vendor, model, retry=QUICK) == "## Goal"
    with serving(broken) as model, pytest.raises(SummarizationError, match="ended before"):
        ask(vendor, model)


def test_an_error_inside_a_stream_is_an_error(vendor):
    """A provider may fail after it has begun to answer."""
    error = {"type": "overloaded_error", "message": "Overloaded", "code": None}
    with serving(vendor.answer("## Go", error=error), vendor.answer("## Goal")) as model:
        assert ask(vendor, model, retry=QUICK) == "## Goal"
        assert len(model.asked) == 2


def test_a_summary_cut_off_by_the_length_limit_is_refused(vendor):
    """Half a summary would lose what the other half held."""
    with serving(vendor.stopped("## Goal", stop="length")) as model:
        with pytest.raises(SummarizationError, match="output limit") as raised:
            ask(vendor, model, retry=QUICK)
        assert len(model.asked) == 1
    assert raised.value.reason == "length"


def test_a_tool_call_is_no_summary(vendor):
    """A model that wants to go on working has not understood what it is asked for."""
    tool = vendor.answer("Let me see", tool=True)
    with serving(tool) as model, pytest.raises(SummarizationError, match="called a tool") as raised:
        ask(vendor, model)
    assert raised.value.reason == "tool_call"


def test_an_empty_answer_is_no_summary(vendor):
    """White space alone is nothing either."""
    with serving(vendor.answer(" \n")) as model, pytest.raises(SummarizationError, match="is empty"):
        ask(vendor, model)


def test_an_answer_stopped_by_the_provider_is_an_error(vendor):
    """A filter's verdict does not change with the next attempt."""
    with serving(vendor.stopped("A", stop="refused")) as model:
        with pytest.raises(SummarizationError, match="stopped by the provider"):
            ask(vendor, model, retry=QUICK)
        assert len(model.asked) == 1


def test_a_slow_answer_is_waited_for(vendor):
    """The timeout is for silence, not for the whole answer."""
    slow = vendor.answer("A", "B", "C", "D", pause=0.12)
    with serving(slow) as model:
        text = generate_summary(MESSAGES, MODEL, vendor.at(model, timeout=0.4))
    assert text.replace("\n", "") == "ABCD"


def test_silence_times_out(vendor):
    """An endpoint that says nothing is given up, and asked again if the policy says so."""
    with serving(silent, vendor.answer("A")) as model:
        summarizer = vendor.at(model, timeout=0.2)
        assert generate_summary(MESSAGES, MODEL, summarizer, retry=QUICK) == "A"


def test_the_time_limit_ends_everything(vendor):
    """However long the client would wait: after the limit there is an error, and the request is ended."""
    with serving(vendor.answer("A", hang=True)) as model:
        with pytest.raises(SummarizationError, match=r"time limit of 0\.3 s") as raised:
            ask(vendor, model, time_limit=0.3)
        assert model.hung_up.wait(30)
    assert raised.value.reason == "timeout"


def test_cancelling_ends_the_request(vendor):
    """A set event ends a request in the middle of its answer, and the connection with it."""
    cancel = threading.Event()
    with serving(vendor.answer("A", hang=True)) as model:
        with pytest.raises(SummarizationAbortedError):
            ask(vendor, model, cancel=cancel, on_text=lambda _text: cancel.set())
        assert model.hung_up.wait(30)


def test_cancelling_ends_a_wait_between_attempts(vendor):
    """Nobody sits out a minute of back-off that is no longer wanted."""
    cancel = threading.Event()
    told = []
    callbacks = RetryCallbacks(
        on_retry_scheduled=lambda *_: cancel.set(), on_retry_finished=lambda *result: told.append(result[:2])
    )
    with serving(OVERLOADED[vendor.name]) as model, pytest.raises(SummarizationAbortedError):
        ask(vendor, model, cancel=cancel, retry=RetryPolicy(base_delay_ms=60_000), callbacks=callbacks)
    assert told == [(False, 1)]


def test_from_asyncio(vendor):
    """The same in an event loop: the answer, and a task that is cancelled ends its request."""

    async def work():
        with serving(vendor.answer("A"), vendor.answer("A", hang=True)) as model:
            assert await agenerate_summary(MESSAGES, MODEL, vendor.at(model)) == "A"
            task = asyncio.create_task(agenerate_summary(MESSAGES, MODEL, vendor.at(model)))
            assert await asyncio.to_thread(model.was_asked, 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(model.hung_up.wait, 5)

    asyncio.run(work())


def test_plain_functions_work_inside_a_running_loop(vendor):
    """Called without await from async code, they wait for the async client on a thread of its own."""

    async def work(model):
        return ask(vendor, model)

    with serving(vendor.answer("A")) as model:
        assert asyncio.run(work(model)) == "A"


def test_no_key_is_an_error_with_a_hint(vendor, monkeypatch):
    """Without key and endpoint nothing is sent."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SummarizationError, match=r"_API_KEY|api_key"):
        generate_summary(MESSAGES, MODEL, vendor.summarizer())


def test_the_key_may_come_from_the_environment_of_the_request(vendor):
    """Values of the environment that a caller hands over go before those of the process."""
    variable = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}[vendor.name]
    with serving(vendor.answer("A")) as model:
        ask(vendor, model, env={variable: "k3"})
        headers = {name.lower(): value for name, value in model.asked[0]["headers"].items()}
    assert "k3" in (headers.get("authorization", "") + headers.get("x-api-key", ""))


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_missing_package_says_how_to_get_it(name, monkeypatch):
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, name, None)
    summarizer = VENDORS[name].summarizer(base_url="http://127.0.0.1:9")
    with pytest.raises(ImportError, match=rf"sessiontree\[{name}\]"):
        generate_summary(MESSAGES, MODEL, summarizer)


def test_unknown_names_of_the_package_are_errors():
    """Only the two summarizers are there."""
    from sessiontree.compaction import clients

    with pytest.raises(AttributeError, match="GeminiSummarizer"):
        clients.GeminiSummarizer  # noqa: B018


def test_halves_of_characters_are_sent_as_replacements(vendor):
    """A session may hold a lone surrogate; no request can."""
    messages = [{"role": "user", "content": "cut \ud83d off"}]
    with serving(vendor.answer("## Goal")) as model:
        assert generate_summary(messages, MODEL, vendor.at(model)) == "## Goal"
    assert "cut \ufffd off" in json.dumps(model.asked[0]["body"], ensure_ascii=False)


@pytest.mark.parametrize("data", ["{oops", "[]", "5", '{"choices": 5, "type": 5}'])
def test_an_answer_of_another_protocol_is_a_failure(vendor, data):
    """It is tried again, and then told as every failure of the model."""

    def nonsense(handler):
        handler.stream()
        handler.event(data)

    with serving(nonsense) as model, pytest.raises(SummarizationError):
        ask(vendor, model, retry=RetryPolicy(max_retries=1, base_delay_ms=1))
    assert len(model.asked) == 2


def test_a_listener_that_fails_is_no_fault_of_the_answer(vendor):
    """Its error comes out as it is, without another try."""

    def listener(_text):
        raise AttributeError("the listener's own")

    with serving(vendor.answer("## Goal")) as model, pytest.raises(AttributeError, match="listener's own"):
        ask(vendor, model, on_text=listener, retry=QUICK)
    assert len(model.asked) == 1
