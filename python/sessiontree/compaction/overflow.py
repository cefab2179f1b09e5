"""How a model says that the context was too long for it: in errors, in silence, or by stopping short."""

from __future__ import annotations

import re
from typing import Any, Final

from sessiontree._jsvalues import member
from sessiontree.compaction.usage import number_of

# Providers agree on nothing: each says it in its own words, often with numbers in between.
_TOO_LONG: Final = re.compile(
    r"""
      context.?(?:length|window|size|limit) .{0,60} (?:exceed|too\ (?:long|large|small)|overflow|reached)
    | exceed .{0,60} (?:context|maximum\ (?:input|prompt|number\ of\ (?:input\ )?tokens|allowed\ (?:input|number)))
    | context_length_exceeded | model_context_window_exceeded | max_prompt_length_exceeded
    | (?:prompt|input|request|message|conversation)s?\ (?:is|are|was|length)? .{0,20} too\ (?:long|large|many\ tokens)
    | maximum\ (?:context|prompt|input)\ length
    | (?:reduce|shorten)\ the\ length\ of\ (?:the\ messages|your\ (?:prompt|input))
    | more\ than\ max(?:imum)?\ tokens | (?:input|prompt)\ token .{0,40} exceeds | too\ many\ (?:input\ )?tokens | token\ limit\ exceeded
    | larger\ than\ the .{0,30} context | (?:greater|longer)\ than\ the\ (?:context|model)
    | request_too_large | \b413\b .{0,40} too\ large
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OTHER_LIMIT: Final = re.compile(
    r"rate.?limit|too many requests|per (?:minute|second|day)|throttl|quota", re.IGNORECASE
)
_FULL: Final = 0.99
"""Share of the window from which on an answer without output was squeezed out by its input."""


def is_context_overflow(message: Any, context_window: float | None = None) -> bool:
    """Did this answer of the model fail, or come about, because the context is too long?

    Args:
        message: an assistant message.
        context_window: of its model. If it is known, a usage that exceeds it counts too, and so does an
            answer that stopped for length without any output in a window that is full.

    Example:
        >>> from sessiontree.compaction import is_context_overflow
        >>> is_context_overflow({"stopReason": "error", "errorMessage": "prompt is too long: 210000 tokens"})
        True
    """
    stop, error = member(message, "stopReason"), member(message, "errorMessage")
    if stop == "error":
        return isinstance(error, str) and bool(_TOO_LONG.search(error)) and not _OTHER_LIMIT.search(error)
    usage = member(message, "usage")
    taken = number_of(member(usage, "input")) + number_of(member(usage, "cacheRead"))
    if not context_window:
        return False
    if stop == "stop":
        return taken > context_window
    return stop == "length" and member(usage, "output") == 0 and taken >= context_window * _FULL


def is_recoverable_length(message: Any, max_tokens: float | None) -> bool:
    """Did the answer stop for length before it reached the output limit that was asked for?

    Then the window was too full for a whole answer, and a compaction makes room.
    """
    output = number_of(member(member(message, "usage"), "output"))
    return member(message, "stopReason") == "length" and bool(max_tokens) and output < (max_tokens or 0)
