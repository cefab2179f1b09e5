"""A conversation longer than the model that summarises it can read: taken in portions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessiontree._jsvalues import member
from sessiontree.compaction.convert import convert_to_llm, serialize_conversation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessiontree.compaction.tokens import TokenCounter

_PROMPT_TOKENS: Final = 2000
"""Room for instructions, and for estimates that are too low."""


def message_text(message: Any) -> str:
    """A message as a conversation's text shows it; empty if it cannot be written out."""
    if member(message, "role") == "assistant" and isinstance(message.get("content"), str):
        # Not pi's form, but other writers leave it in session files.
        message = {**message, "content": [{"type": "text", "text": message["content"]}]}
    try:
        return serialize_conversation(convert_to_llm([message]))
    except TypeError:
        return ""


def portions(messages: Iterable[Any], max_tokens: float | None, count_tokens: TokenCounter) -> list[str]:
    """The text of a conversation in portions of at most ``max_tokens``, one portion if that is None.

    A message that is too long alone is cut, with a marker.
    """
    texts = [text for text in map(message_text, messages) if text]
    if max_tokens is None:
        return ["\n\n".join(texts)]
    made: list[list[str]] = [[]]
    used = 0.0
    for text in texts:
        piece, tokens = _fitting(text, max_tokens, count_tokens)
        if made[-1] and used + tokens > max_tokens:
            made.append([])
            used = 0.0
        made[-1].append(piece)
        used += tokens
    return ["\n\n".join(part) for part in made]


def _fitting(text: str, max_tokens: float, count_tokens: TokenCounter) -> tuple[str, float]:
    tokens = count_tokens({"role": "user", "content": text})
    if tokens <= max_tokens:
        return text, tokens
    length = int(len(text) * max_tokens / tokens)
    return f"{text[:length]}\n\n[... {len(text) - length} more characters truncated]", max_tokens


def input_limit(context_window: float, max_output: float) -> float:
    """Tokens of conversation that fit into one request, beside instructions, earlier notes and the answer."""
    answer = min(max_output or context_window, context_window / 4)
    return max(context_window - 2 * answer - _PROMPT_TOKENS, context_window / 4)
