"""How many tokens messages take: estimated by length, and known from what providers report.

A provider's usage is exact and covers everything before it, so the newest one is taken and only what
follows is estimated. It is not believed if the context was edited or compacted after it: then it speaks
of a context that no longer exists, and would trigger the next compaction right after the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sessiontree._jsvalues import ABSENT, described, member, role_of, truthy
from sessiontree.compaction.usage import Number, calculate_context_tokens, get_assistant_usage, number_of
from sessiontree.context import get_current_system_message
from sessiontree.jsontext import js_length, js_stringify

if TYPE_CHECKING:
    from sessiontree.context import SessionProjection

TokenCounter = Callable[[Any], int]
"""Takes a message, gives its tokens: what `estimate_tokens` does."""

IMAGE_LENGTH: Final = 4800
"""UTF-16 units that an image counts as, whatever its size."""
UNITS_PER_TOKEN: Final = 4

TextMeter = Callable[[str], Number]


@dataclass(frozen=True, slots=True)
class ContextUsageEstimate:
    """How full a context is.

    Attributes:
        tokens: everything together.
        usage_tokens: the part known from a provider's usage.
        trailing_tokens: the estimated part.
        last_usage_index: index of the message whose usage counts, None if none does.
    """

    tokens: Number
    usage_tokens: Number
    trailing_tokens: Number
    last_usage_index: int | None


def estimate_tokens(message: Any) -> int:
    """Estimate the tokens of one message: its length in UTF-16 units, divided by 4, rounded up.

    An image counts as 4,800 units. Of an assistant message count text, thinking, and the names and JSON
    arguments of tool calls; of a system message its content, sections and added tools; of a bash execution
    command and output; of a summary its text. Unknown roles take 0 tokens.

    Raises:
        TypeError: the message lacks what is to be measured.

    Example:
        >>> from sessiontree.compaction import estimate_tokens
        >>> estimate_tokens({"role": "user", "content": "Hello"})
        2
    """
    return _tokens(_measure(message, js_length))


def _tokens(units: Number) -> int:
    return int(-(-units // UNITS_PER_TOKEN))


# Scripts of which a token holds far less than four characters. Han, kana, Hangul and what is printed with
# them take about one token a character in the tokenizers of today; the other listed scripts about half a one.
_DENSE: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U000323af]+"
)
_HALF_DENSE: Final = re.compile(
    "[\u0370-\u10ff\u1200-\u1fff\ua000-\ua95f\ua980-\uabff\U0001f000-\U0001faff]+"
)


def estimate_tokens_by_script(message: Any) -> int:
    """Estimate like `estimate_tokens`, but by the script of the text.

    A character of Chinese, Japanese or Korean text counts as one token, of Greek, Cyrillic, Arabic, Indic
    and other such scripts, and an emoji, as half a token, of everything else as a quarter. Texts in Latin
    script give the same as `estimate_tokens`.

    Example:
        >>> from sessiontree.compaction import estimate_tokens, estimate_tokens_by_script
        >>> message = {"role": "user", "content": "会話の履歴を要約する"}
        >>> estimate_tokens(message), estimate_tokens_by_script(message)
        (3, 10)
    """
    return _tokens(_measure(message, _length_by_script))


def _length_by_script(text: str) -> int:
    if text.isascii():
        return len(text)
    dense = sum(map(len, _DENSE.findall(text)))
    half = sum(map(len, _HALF_DENSE.findall(text)))
    return len(text) + 3 * dense + half


def _measure(message: Any, meter: TextMeter) -> Number:
    match role_of(message):
        case "user" | "custom" | "toolResult":
            return _content_length(message.get("content"), meter)
        case "assistant":
            return sum(_assistant_block_length(block, meter) for block in _iterated(message.get("content")))
        case "system":
            return _system_length(message, meter)
        case "bashExecution":
            return _length(message, "command", meter) + _length(message, "output", meter)
        case "branchSummary" | "compactionSummary":
            return _length(message, "summary", meter)
    return 0


def _iterated(content: Any) -> Iterable[Any]:
    if isinstance(content, str):
        return ()
    if not isinstance(content, list):
        raise TypeError(
            f"the content of a message must be text or a list of blocks, not {described(content)}"
        )
    if None in content:
        raise TypeError(f"block {content.index(None)} of a message is null")
    return content


def _content_length(content: Any, meter: TextMeter) -> Number:
    if isinstance(content, str):
        return meter(content)
    total: Number = 0
    for block in _iterated(content):
        kind = member(block, "type")
        if kind == "text" and truthy(block.get("text")):
            total += _length(block, "text", meter)
        elif kind == "image":
            total += IMAGE_LENGTH
    return total


def _assistant_block_length(block: Any, meter: TextMeter) -> Number:
    match member(block, "type"):
        case "text":
            return _length(block, "text", meter)
        case "thinking":
            return _length(block, "thinking", meter)
        case "toolCall":
            if "arguments" not in block:
                raise TypeError('a tool call lacks "arguments"')
            return _length(block, "name", meter) + meter(js_stringify(block["arguments"]))
    return 0


def _system_length(message: Mapping[str, Any], meter: TextMeter) -> Number:
    total = _content_length(message.get("content"), meter)
    sections = message.get("sections")
    if isinstance(sections, Mapping):
        total += sum(_length(sections, name, meter) for name, text in sections.items() if truthy(text))
    tools = message.get("toolsAdded")
    return total + (meter(js_stringify(tools)) if truthy(tools) else 0)


def _length(source: Mapping[str, Any], key: str, meter: TextMeter) -> Number:
    """The ``length`` of a member: of a text or a list; values without length add nothing."""
    value = source.get(key)
    if isinstance(value, str):
        return meter(value)
    if value is None:
        raise TypeError(f'a message lacks "{key}"')
    return len(value) if isinstance(value, list) else 0


def estimate_context_tokens(
    messages: Sequence[Any], *, count_tokens: TokenCounter = estimate_tokens
) -> ContextUsageEstimate:
    """Tell how many tokens a list of messages takes.

    The newest usage of an assistant message counts for all up to it; what follows is estimated. Without
    a usage everything is estimated.

    Args:
        messages: in order.
        count_tokens: measures one message.

    Example:
        >>> from sessiontree.compaction import estimate_context_tokens
        >>> reply = {"role": "assistant", "content": [], "usage": {"totalTokens": 900}}
        >>> estimate_context_tokens([reply, {"role": "user", "content": "Go on"}]).tokens
        902
    """
    for index in range(len(messages) - 1, -1, -1):
        usage = get_assistant_usage(messages[index])
        if usage is not None:
            known = calculate_context_tokens(usage)
            trailing = sum(count_tokens(message) for message in messages[index + 1 :])
            return ContextUsageEstimate(known + trailing, known, trailing, index)
    estimated = sum(count_tokens(message) for message in messages)
    return ContextUsageEstimate(estimated, 0, estimated, None)


def estimate_projected_context_tokens(
    projection: SessionProjection,
    branch_entries: Iterable[Any],
    *,
    count_tokens: TokenCounter = estimate_tokens,
) -> ContextUsageEstimate:
    """Tell how many tokens the context of a session takes, without believing a stale usage.

    A usage that was recorded before the newest compaction or context edit of the branch speaks of
    another context; then everything is estimated, with the system messages replayed into one.

    Args:
        projection: of `build_session_projection`.
        branch_entries: the path from the root to the leaf.
        count_tokens: measures one message.
    """
    estimate = estimate_context_tokens(projection.messages, count_tokens=count_tokens)
    if estimate.last_usage_index is not None:
        entry_id = _entry_id_at(projection, estimate.last_usage_index)
        if entry_id is not None and _is_current(entry_id, branch_entries):
            return estimate
    current = get_current_system_message(projection.messages)
    tokens = count_tokens(current) if current is not None else 0
    tokens += sum(count_tokens(message) for message in projection.messages if role_of(message) != "system")
    return ContextUsageEstimate(tokens, 0, tokens, None)


def _entry_id_at(projection: SessionProjection, message_index: int) -> str | None:
    """The id of the entry that contributes the message with this index."""
    following = 0
    for entry in projection.entries:
        following += len(entry.messages)
        if message_index < following:
            entry_id = member(entry.source_entry, "id")
            return entry_id if isinstance(entry_id, str) and entry_id else None
    return None


def _is_current(entry_id: str, branch_entries: Iterable[Any]) -> bool:
    """Does the entry come after the newest compaction and context edit?"""
    found = newest_change = -1
    for index, entry in enumerate(branch_entries):
        if found < 0 and member(entry, "id") == entry_id:
            found = index
        if member(entry, "type") in ("context_edit", "compaction"):
            newest_change = index
    return found > newest_change


def should_compact(context_tokens: Number, context_window: Number, settings: Mapping[str, Any]) -> bool:
    """Tell whether a context has grown so far that it is to be compacted.

    Args:
        context_tokens: what the context takes.
        context_window: what the model takes.
        settings: ``enabled`` and ``reserveTokens``, as in `DEFAULT_COMPACTION_SETTINGS`.

    Example:
        >>> from sessiontree.compaction import DEFAULT_COMPACTION_SETTINGS, should_compact
        >>> should_compact(190_000, 200_000, DEFAULT_COMPACTION_SETTINGS)
        True
    """
    reserve = settings.get("reserveTokens", ABSENT)
    if not truthy(settings.get("enabled")) or reserve is ABSENT:
        return False
    return context_tokens > context_window - number_of(reserve)
