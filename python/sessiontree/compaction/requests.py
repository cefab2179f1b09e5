"""What a summarizer is asked and what it answers.

A summarizer is anything that can be called with a `SummaryRequest` and gives a `SummaryResponse`, at once
or as an awaitable. Ready-made ones are in `sessiontree.compaction.clients`; for tests, a function of two
lines will do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from sessiontree._jsvalues import truthy
from sessiontree.compaction.prompts import SummaryPrompts
from sessiontree.compaction.tokens import TokenCounter, estimate_tokens

if TYPE_CHECKING:
    import threading

SummaryKind = Literal["history", "turn_prefix", "branch"]
StopReason = Literal["stop", "length", "toolUse", "error", "aborted"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed request is made again.

    The n-th wait is ``base_delay_ms`` times 2 to the power n-1, at most ``max_agent_delay_ms``.

    Attributes:
        enabled: no retries otherwise.
        max_retries: how often at most.
        base_delay_ms: the first wait, in milliseconds.
        max_agent_delay_ms: the longest wait, in milliseconds.

    Example:
        >>> from sessiontree.compaction import RetryPolicy
        >>> [RetryPolicy().delay_ms(attempt) for attempt in (1, 2, 3, 9)]
        [2000, 4000, 8000, 60000]
    """

    enabled: bool = True
    max_retries: int = 3
    base_delay_ms: float = 2000
    max_agent_delay_ms: float = 60_000

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> RetryPolicy:
        """The policy that ``retry`` of a settings file describes (``maxRetries``, ``baseDelayMs``, ...)."""
        defaults = cls()
        return cls(
            enabled=truthy(settings.get("enabled")),
            max_retries=settings.get("maxRetries", defaults.max_retries),
            base_delay_ms=settings.get("baseDelayMs", defaults.base_delay_ms),
            max_agent_delay_ms=settings.get("maxAgentDelayMs", defaults.max_agent_delay_ms),
        )

    def delay_ms(self, attempt: int) -> float:
        """The wait before retry number ``attempt``, which counts from 1."""
        doubled: float = self.base_delay_ms * 2 ** min(max(0, attempt - 1), 64)
        return min(doubled, self.max_agent_delay_ms)


@dataclass(frozen=True, slots=True)
class RetryCallbacks:
    """Hooks that tell of retries; each may be a plain or an async function.

    Attributes:
        on_retry_scheduled: gets the attempt, the most attempts, the wait in ms and the error's text.
        on_retry_attempt_start: after the wait.
        on_retry_finished: once at the end if there were retries: whether it went well, the attempts, and
            the last error's text or None.
    """

    on_retry_scheduled: Callable[[int, int, float, str], Any] | None = None
    on_retry_attempt_start: Callable[[], Any] | None = None
    on_retry_finished: Callable[[bool, int, str | None], Any] | None = None


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One call of a model.

    Attributes:
        kind: what is summarised.
        model: as in a model list: ``provider``, ``id``, ``contextWindow``, ``maxTokens``, ``reasoning``.
        system: the system message.
        prompt: the user message.
        session_id: for routing; a fresh one if the caller gave none.
        api_key: None lets the client look for one.
        headers: to be sent along.
        env: values of the environment that the provider needs.
        cache_retention: always ``none``: a summary is asked for once.
        reasoning: thinking level; None if the model does not think or is not to.
        retry: the policy; repeating is done by the caller of the summarizer, not by it.
        cancel: is set when nobody wants the answer any more.
        on_text: to be called with each piece of text as it arrives, if the client can.
    """

    kind: SummaryKind
    model: Mapping[str, Any]
    system: str
    prompt: str
    session_id: str
    api_key: str | None = None
    headers: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    cache_retention: Literal["none"] = "none"
    reasoning: str | None = None
    retry: RetryPolicy | None = None
    cancel: threading.Event | None = None
    on_text: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class SummaryResponse:
    """A model's answer.

    Attributes:
        text: the text blocks, joined by newlines.
        usage: with the names of a session file (``input``, ``output``, ``cacheRead``, ``cacheWrite``,
            ``totalTokens``, ``cost``), None if unknown.
        stop_reason: only ``stop`` makes a summary.
        error_message: what the provider said, for ``error``.
        called_tool: the answer holds a tool call, which makes it useless.
        retryable: whether it makes sense to ask again after an ``error``; None lets the text decide.
        retry_after: seconds that the provider wants to be left alone.
    """

    text: str
    usage: Mapping[str, Any] | None = None
    stop_reason: StopReason = "stop"
    error_message: str | None = None
    called_tool: bool = False
    retryable: bool | None = None
    retry_after: float | None = None


class Summarizer(Protocol):
    """Asks a model; a plain or an async function, or an object with ``__call__``."""

    def __call__(self, request: SummaryRequest, /) -> SummaryResponse | Awaitable[SummaryResponse]:
        """Give the model's answer. Connection errors and timeouts may be raised and are retried."""


class IdSource(Protocol):
    """Where fresh ids come from."""

    def uuid7(self) -> str:
        """A new UUID of version 7."""


class SummaryOptions(TypedDict, total=False):
    """Keywords that all functions which ask a model take.

    Attributes:
        api_key: for the model.
        headers: for the request.
        env: values of the environment for the provider.
        session_id: for routing; a fresh one if left out.
        thinking_level: used if the model can reason; ``off`` is none.
        retry: a `RetryPolicy` or the ``retry`` settings; no retries if left out.
        callbacks: told of retries.
        prompts: other wording.
        cancel: an event that stops the work as soon as it is set.
        time_limit: seconds for everything, retries included.
        on_text: called with pieces of text as they arrive.
        max_input_tokens: a conversation that is longer is summarised in portions, each bringing the notes
            of those before up to date; no limit if left out.
        count_tokens: measures the portions.
        host: source of ids.
    """

    api_key: str | None
    headers: Mapping[str, str] | None
    env: Mapping[str, str] | None
    session_id: str | None
    thinking_level: str | None
    retry: RetryPolicy | Mapping[str, Any] | None
    callbacks: RetryCallbacks | None
    prompts: SummaryPrompts
    cancel: threading.Event | None
    time_limit: float | None
    on_text: Callable[[str], None] | None
    max_input_tokens: float | None
    count_tokens: TokenCounter
    host: IdSource | None


@dataclass(frozen=True, slots=True)
class Options:
    """`SummaryOptions` with their defaults."""

    api_key: str | None = None
    headers: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    session_id: str | None = None
    thinking_level: str | None = None
    retry: RetryPolicy | Mapping[str, Any] | None = None
    callbacks: RetryCallbacks | None = None
    prompts: SummaryPrompts = field(default_factory=SummaryPrompts)
    cancel: threading.Event | None = None
    time_limit: float | None = None
    on_text: Callable[[str], None] | None = None
    max_input_tokens: float | None = None
    count_tokens: TokenCounter = estimate_tokens
    host: IdSource | None = None

    def request(self, kind: SummaryKind, model: Mapping[str, Any], prompt: str) -> SummaryRequest:
        """The request for a prompt under these options."""
        thinks = truthy(model.get("reasoning")) and self.thinking_level not in (None, "", "off")
        return SummaryRequest(
            kind=kind,
            model=model,
            system=self.prompts.system,
            prompt=prompt,
            session_id=self.session_id if self.session_id is not None else _new_id(self.host),
            api_key=self.api_key,
            headers=self.headers,
            env=self.env,
            reasoning=self.thinking_level if thinks else None,
            retry=_policy(self.retry),
            cancel=self.cancel,
            on_text=self.on_text,
        )


def _new_id(host: IdSource | None) -> str:
    if host is not None:
        return host.uuid7()
    import uuid

    return str(uuid.uuid4())


def _policy(retry: RetryPolicy | Mapping[str, Any] | None) -> RetryPolicy | None:
    return RetryPolicy.from_settings(retry) if isinstance(retry, Mapping) else retry
