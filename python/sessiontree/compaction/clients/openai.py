"""A summarizer for endpoints that speak OpenAI's chat completions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sessiontree.compaction.clients._common import (
    BROKEN_STREAM,
    api_key,
    failure,
    package,
    sendable,
    tell,
    usage_of,
)
from sessiontree.compaction.requests import SummaryResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessiontree.compaction.requests import StopReason, SummaryRequest

_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}


class OpenAISummarizer:
    """Asks OpenAI, or any endpoint that speaks its chat completions, with the ``openai`` package.

    The model's ``id`` is the model that is asked for; its ``baseUrl`` is used if no ``base_url`` is given.
    A local endpoint needs no key. Ollama cuts what exceeds its ``num_ctx`` without a word: set that to the
    ``contextWindow`` you give.

    Args:
        base_url: such as ``http://localhost:11434/v1``; OpenAI's if left out.
        api_key: used if the request has none; ``OPENAI_API_KEY`` otherwise.
        timeout: seconds without a sign of life after which a request fails.
        max_tokens: the most the answer may have; the endpoint's own limit if left out.
        stream: ask for the answer in pieces; some endpoints can only give it as a whole.
        include_usage: ask for the usage of a streamed answer; a few endpoints refuse the question.
        extra_body: further fields of the request, for what only one endpoint knows.

    Example:
        >>> from sessiontree.compaction.clients import OpenAISummarizer
        >>> summarizer = OpenAISummarizer(base_url="http://localhost:11434/v1")
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 300.0,
        max_tokens: int | None = None,
        stream: bool = True,
        include_usage: bool = True,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._stream = stream
        self._include_usage = include_usage
        self._extra_body = extra_body

    async def __call__(self, request: SummaryRequest, /) -> SummaryResponse:
        """Ask, and read the answer as it comes in.

        Raises:
            ImportError: ``openai`` is not installed.
        """
        openai = package("openai")
        base_url = self._base_url or request.model.get("baseUrl")
        key = api_key(request, self._api_key, "OPENAI_API_KEY") or ("none" if base_url else None)
        answer, body = _Answer(request), self._body(request)
        try:
            async with openai.AsyncOpenAI(
                api_key=key,
                base_url=base_url,
                timeout=self._timeout,
                max_retries=0,
                default_headers=dict(request.headers or {}),
            ) as client:
                coming = await client.chat.completions.create(**body)
                if self._stream:
                    async for chunk in coming:
                        answer.take(chunk, "delta")
                else:
                    answer.take(coming, "message")
        except Exception as error:  # noqa: BLE001 - what is no failure of the request is raised again
            return failure(error, openai, openai.OpenAIError)
        return answer.response()

    def _body(self, request: SummaryRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model["id"],
            "messages": [
                {"role": "system", "content": sendable(request.system)},
                {"role": "user", "content": sendable(request.prompt)},
            ],
        }
        if self._stream:
            body["stream"] = True
            if self._include_usage:
                body["stream_options"] = {"include_usage": True}
        if self._max_tokens is not None:
            # The name that all endpoints know; OpenAI's reasoning models alone insist on the other.
            name = "max_completion_tokens" if self._speaks_to_openai(request) else "max_tokens"
            body[name] = self._max_tokens
        if request.reasoning is not None:
            body["reasoning_effort"] = request.reasoning
        if self._extra_body is not None:
            body["extra_body"] = dict(self._extra_body)
        return body

    def _speaks_to_openai(self, request: SummaryRequest) -> bool:
        return not (self._base_url or request.model.get("baseUrl"))


@dataclass(slots=True)
class _Answer:
    """What has come in so far."""

    request: SummaryRequest
    texts: list[str] = field(default_factory=list)
    finish: str | None = None
    called_tool: bool = False
    usage: Any = None

    def take(self, chunk: Any, part: str) -> None:
        """Take in a piece, whose choices have a ``delta``, or the whole, whose choices have a ``message``."""
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices or ():
            self.finish = choice.finish_reason or self.finish
            delta = getattr(choice, part)
            self.called_tool = self.called_tool or bool(delta and delta.tool_calls)
            if delta and delta.content:
                self.texts.append(delta.content)
                tell(self.request, delta.content)

    def response(self) -> SummaryResponse:
        text = "".join(self.texts)
        usage = self._usage()
        if self.finish is None:
            return SummaryResponse(
                text, usage, stop_reason="error", error_message=BROKEN_STREAM, retryable=True
            )
        stop = _STOP_REASONS.get(self.finish)
        if stop is None:
            message = f"the answer was stopped by the provider: {self.finish}"
            return SummaryResponse(text, usage, stop_reason="error", error_message=message, retryable=False)
        return SummaryResponse(text, usage, stop_reason=stop, called_tool=self.called_tool)

    def _usage(self) -> dict[str, Any] | None:
        told = self.usage
        if told is None:
            return None
        cached = getattr(told.prompt_tokens_details, "cached_tokens", None) or 0
        return usage_of(
            self.request.model,
            fresh=(told.prompt_tokens or 0) - cached,
            output=told.completion_tokens,
            cache_read=cached,
            cache_write=0,
            reasoning=getattr(told.completion_tokens_details, "reasoning_tokens", None),
        )
