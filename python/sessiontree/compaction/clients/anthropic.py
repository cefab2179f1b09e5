"""A summarizer for endpoints that speak Anthropic's messages."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sessiontree.compaction.clients._common import (
    BROKEN_STREAM,
    api_key,
    failure,
    package,
    refused,
    sendable,
    tell,
    usage_of,
)
from sessiontree.compaction.requests import SummaryResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessiontree.compaction.requests import StopReason, SummaryRequest

DEFAULT_MAX_TOKENS: Final = 8192
_LEAST_THINKING_TOKENS: Final = 1024
_THINKING_TOKENS: Final[Mapping[str, int]] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
}
_STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "toolUse",
}


class AnthropicSummarizer:
    """Asks Anthropic, or an endpoint that speaks its messages, with the ``anthropic`` package.

    The model's ``id`` is the model that is asked for; its ``baseUrl`` is used if no ``base_url`` is given,
    its ``maxTokens`` bounds the answer.

    Args:
        base_url: Anthropic's if left out.
        api_key: used if the request has none; ``ANTHROPIC_API_KEY`` otherwise.
        timeout: seconds without a sign of life after which a request fails.
        max_tokens: the most the answer may have; the model's ``maxTokens``, or 8,192, if left out.

    Example:
        >>> from sessiontree.compaction.clients import AnthropicSummarizer
        >>> summarizer = AnthropicSummarizer(max_tokens=4096)
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 300.0,
        max_tokens: int | None = None,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout
        self._max_tokens = max_tokens

    async def __call__(self, request: SummaryRequest, /) -> SummaryResponse:
        """Ask, and read the answer as it comes in.

        Raises:
            ImportError: ``anthropic`` is not installed.
        """
        anthropic = package("anthropic")
        base_url = self._base_url or request.model.get("baseUrl")
        key = api_key(request, self._api_key, "ANTHROPIC_API_KEY") or ("none" if base_url else None)
        if key is None and "ANTHROPIC_AUTH_TOKEN" not in os.environ:
            return refused("there is no API key: give one, or set ANTHROPIC_API_KEY")
        answer, body = _Answer(request), self._body(request)
        try:
            async with anthropic.AsyncAnthropic(
                api_key=key,
                base_url=base_url,
                timeout=self._timeout,
                max_retries=0,
                default_headers=dict(request.headers or {}),
            ) as client:
                async for event in await client.messages.create(**body):
                    answer.take(event)
        except Exception as error:  # noqa: BLE001 - what is no failure of the request is raised again
            return failure(error, anthropic, anthropic.AnthropicError)
        return answer.response()

    def _body(self, request: SummaryRequest) -> dict[str, Any]:
        most = self._max_tokens or int(request.model.get("maxTokens") or DEFAULT_MAX_TOKENS)
        body: dict[str, Any] = {
            "model": request.model["id"],
            "max_tokens": most,
            "system": sendable(request.system),
            "messages": [{"role": "user", "content": sendable(request.prompt)}],
            "stream": True,
        }
        # Thinking counts as output: half of that is left for the summary itself.
        thinking = min(_THINKING_TOKENS.get(request.reasoning or "", 0), most // 2)
        if thinking >= _LEAST_THINKING_TOKENS:
            body["thinking"] = {"type": "enabled", "budget_tokens": thinking}
        return body


@dataclass(slots=True)
class _Answer:
    """What has come in so far: one text for each block, and the counts of the last event that tells them."""

    request: SummaryRequest
    blocks: dict[int, list[str]] = field(default_factory=dict)
    stop: str | None = None
    called_tool: bool = False
    counts: dict[str, Any] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start" if event.content_block.type == "text":
                self._text(event.index, event.content_block.text)
            case "content_block_start" if event.content_block.type.endswith("tool_use"):
                self.called_tool = True
            case "content_block_delta" if event.delta.type == "text_delta":
                self._text(event.index, event.delta.text)
            case "message_delta":
                self.stop = event.delta.stop_reason or self.stop
                self._count(event.usage)

    def _text(self, index: int, text: str) -> None:
        self.blocks.setdefault(index, []).append(text)
        if text:
            tell(self.request, text)

    def _count(self, usage: Any) -> None:
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        for name in names:
            value = getattr(usage, name, None)
            if value is not None:
                self.counts[name] = value

    def response(self) -> SummaryResponse:
        text = "\n".join("".join(parts) for _, parts in sorted(self.blocks.items()))
        usage = self._usage()
        if self.stop is None:
            return SummaryResponse(
                text, usage, stop_reason="error", error_message=BROKEN_STREAM, retryable=True
            )
        stop = _STOP_REASONS.get(self.stop)
        if stop is None:
            message = f"the answer was stopped by the provider: {self.stop}"
            return SummaryResponse(text, usage, stop_reason="error", error_message=message, retryable=False)
        return SummaryResponse(text, usage, stop_reason=stop, called_tool=self.called_tool)

    def _usage(self) -> dict[str, Any]:
        return usage_of(
            self.request.model,
            fresh=self.counts.get("input_tokens"),
            output=self.counts.get("output_tokens"),
            cache_read=self.counts.get("cache_read_input_tokens"),
            cache_write=self.counts.get("cache_creation_input_tokens"),
            reasoning=None,
        )
