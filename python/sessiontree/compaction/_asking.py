"""One question to a model: repeated while it fails for reasons that pass, refused if it is no summary."""

from __future__ import annotations

import re
from typing import Final

import tenacity

from sessiontree.compaction._effects import Ask, Call, Pause, Steps
from sessiontree.compaction.requests import (
    RetryCallbacks,
    RetryPolicy,
    Summarizer,
    SummaryKind,
    SummaryRequest,
    SummaryResponse,
)
from sessiontree.exceptions import SummarizationAbortedError, SummarizationError

NAMES: Final[dict[SummaryKind, str]] = {
    "history": "the history",
    "turn_prefix": "the beginning of a turn",
    "branch": "a branch",
}

# What providers and networks say when it is worth asking again. A client that knows better says so itself
# with `SummaryResponse.retryable`; this is for the others.
_TRANSIENT: Final = re.compile(
    r"""
      over ?load | at\ capacity | high\ demand | busy | rate.?limit | too\ many\ requests | throttl
    | (?<![a-z0-9]) (?:408|429|500|502|503|504|520|522|524|529) (?![a-z0-9])
    | (?:temporarily|service\ is|service|currently) .{0,5} unavailable
    | (?:server|internal|network|connection|gateway|provider|upstream|websocket) .{0,20} (?:error|fail)
    | provider\ returned
    | connection .{0,10} (?:reset|refused|closed|lost|aborted) | reset\ by\ peer | closed\ connection
    | broken\ pipe | EPIPE | ECONN(?:RESET|REFUSED|ABORTED) | ETIMEDOUT | ENOTFOUND | EAI_AGAIN | getaddrinfo
    | name\ resolution | socket | fetch\ failed | other\ side\ closed
    | time[ds]?.?\ ?out | terminated | interrupted | disconnect | cut\ short | ended\ (?:without|before)
    | incomplete\ (?:chunked\ )?read | (?:please|you\ can) .{0,10} (?:retry|try) | try\ again | resource.?exhausted
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Without importing any of them: what their connections fail with.
_NETWORK_ERRORS: Final = frozenset(
    [
        "urllib.URLError",
        "http.HTTPException",
        "httpx.TransportError",
        "httpx2.TransportError",
        "httpcore.NetworkError",
        "requests.ConnectionError",
        "requests.Timeout",
        "urllib3.HTTPError",
        "aiohttp.ClientConnectionError",
    ]
)
# Limits that do not pass within minutes, though they come with the same status.
_LASTING: Final = re.compile(
    r"insufficient.?(?:quota|credit|balance|funds)|quota (?:is )?exceeded|exceeded your .{0,20}quota|billing"
    r"|out of (?:budget|credits)|available balance|usage.?limit|credit balance",
    re.IGNORECASE,
)


def is_transient(response: SummaryResponse) -> bool:
    """Did the request fail for a reason that may be gone in a moment?"""
    if response.stop_reason != "error":
        return False
    if response.retryable is not None:
        return response.retryable
    message = response.error_message or ""
    return bool(_TRANSIENT.search(message)) and not _LASTING.search(message)


def asked(
    summarizer: Summarizer, request: SummaryRequest, callbacks: RetryCallbacks | None
) -> Steps[SummaryResponse]:
    """Ask until there is an answer, an error that stays, or no attempt is left."""
    hooks = callbacks or RetryCallbacks()
    policy = request.retry or RetryPolicy(enabled=False)
    retrying = _retrying(policy)
    retrying.begin()
    state = tenacity.RetryCallState(retrying, fn=None, args=(), kwargs={})
    last_error: str | None = None
    try:
        while True:
            todo = retrying.iter(retry_state=state)
            if isinstance(todo, tenacity.DoAttempt):
                response = yield from _attempt(summarizer, request)
                state.set_result(response)
            elif isinstance(todo, tenacity.DoSleep):
                last_error = response.error_message or "unknown error"
                retries, delay_ms = state.attempt_number, 1000 * todo
                yield from _told(hooks.on_retry_scheduled, retries, policy.max_retries, delay_ms, last_error)
                state.prepare_for_next_attempt()
                yield Pause(todo)
                yield from _told(hooks.on_retry_attempt_start)
            else:
                break
    except SummarizationError:
        if last_error is not None:
            yield from _told(hooks.on_retry_finished, False, _retries(state), last_error)
        raise
    if last_error is not None:
        failed = response.stop_reason in ("error", "aborted")
        final = response.error_message if response.stop_reason == "error" else None
        yield from _told(hooks.on_retry_finished, not failed, _retries(state), final)
    return response


def _retrying(policy: RetryPolicy) -> tenacity.Retrying:
    """When to ask again, and when to give up; the attempts and the waits themselves are steps."""
    most = policy.max_retries if policy.enabled else 0
    return tenacity.Retrying(
        retry=tenacity.retry_if_result(
            lambda response: is_transient(response) and _is_patient(policy, response)
        ),
        stop=tenacity.stop_after_attempt(most + 1),
        wait=lambda state: _wait_seconds(policy, state),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )


def _wait_seconds(policy: RetryPolicy, state: tenacity.RetryCallState) -> float:
    """The policy's wait, or what the provider asks for if that is longer."""
    response: SummaryResponse | None = state.outcome.result() if state.outcome else None
    asked_for = response.retry_after if response else None
    return max(policy.delay_ms(state.attempt_number) / 1000, asked_for or 0)


def _retries(state: tenacity.RetryCallState) -> int:
    return state.attempt_number - 1


def _is_patient(policy: RetryPolicy, response: SummaryResponse) -> bool:
    """Is the wait that the provider asks for short enough? Hours are a failure, not a delay."""
    return 1000 * (response.retry_after or 0) <= policy.max_agent_delay_ms


def _attempt(summarizer: Summarizer, request: SummaryRequest) -> Steps[SummaryResponse]:
    try:
        response = yield Ask(summarizer, request)
    except Exception as error:
        if not _is_network(error):
            raise
        text = str(error) or type(error).__name__
        return SummaryResponse("", stop_reason="error", error_message=text, retryable=True)
    if not isinstance(response, SummaryResponse):
        raise TypeError(f"a summarizer must give a SummaryResponse, not {type(response).__name__}")
    return response


def _is_network(error: Exception) -> bool:
    """Is it an error of the network, by Python's own names or by those of the usual HTTP clients?"""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(error).__mro__}
    # An HTTPError of urllib is an answer, though it derives from URLError.
    return "urllib.HTTPError" not in kinds and not kinds.isdisjoint(_NETWORK_ERRORS)


def _told(hook: object, *arguments: object) -> Steps[None]:
    if callable(hook):
        yield Call(hook, arguments)


def checked(response: SummaryResponse, kind: SummaryKind) -> SummaryResponse:
    """The response, if its text may be stored as a summary.

    Raises:
        SummarizationAbortedError: it was aborted.
        SummarizationError: it failed, was cut off by the output limit, calls a tool or is empty.
    """
    what = NAMES[kind]
    detail = response.error_message
    if response.stop_reason == "aborted":
        raise SummarizationAbortedError(
            f"the summary of {what} was aborted", kind=kind, reason="aborted", detail=detail
        )
    if response.stop_reason == "error":
        text = f'cannot summarise {what}: the model failed with "{detail or "unknown error"}"'
        raise SummarizationError(text, kind=kind, reason="error", detail=detail)
    if response.stop_reason == "length":
        text = f"the summary of {what} was cut off by the model's output limit; a larger maxTokens may help"
        raise SummarizationError(text, kind=kind, reason="length", detail=detail)
    if response.called_tool or response.stop_reason == "toolUse":
        text = f"the model called a tool instead of writing the summary of {what}"
        raise SummarizationError(text, kind=kind, reason="tool_call", detail=detail)
    if response.stop_reason != "stop":
        text = (
            f'cannot summarise {what}: the answer ended with the unknown stop reason "{response.stop_reason}"'
        )
        raise SummarizationError(text, kind=kind, reason="error", detail=detail)
    if not isinstance(response.text, str):
        raise TypeError(f"the text of a SummaryResponse must be a str, not {type(response.text).__name__}")
    if not response.text.strip():
        raise SummarizationError(f"the summary of {what} is empty", kind=kind, reason="empty", detail=detail)
    return response
