"""Usage as providers report it: context tokens, sums, and what a session has cost by model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sessiontree._jsvalues import ABSENT, member, role_of, text_of, truthy

Number = int | float

_COUNTS: Final = ("input", "output", "cacheRead", "cacheWrite")
_COSTS: Final = (*_COUNTS, "total")
_OPTIONAL_COUNTS: Final = ("cacheWrite1h", "reasoning")
TOOLS_AND_SUMMARIES: Final = "Tools/summaries"


@dataclass(frozen=True, slots=True)
class UsageCostItem:
    """What one model, or the tools and summaries together, have used.

    Attributes:
        key: ``provider/model``, or ``Tools/summaries``.
        cost: in the currency of the providers' price lists, US dollars for all known ones.
        tokens: input, output, cache reads and cache writes together.
    """

    key: str
    cost: Number
    tokens: Number


def number_of(value: Any) -> Number:
    """A number as it is; anything else counts as 0, so that a text is never glued to a sum."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def calculate_context_tokens(usage: Mapping[str, Any]) -> Number:
    """The size of the context that a usage speaks of, in tokens.

    ``totalTokens`` if it is there and not 0, else the sum of ``input``, ``output``, ``cacheRead`` and
    ``cacheWrite``. Fields that are no numbers count as 0; a sum that lacks a field is NaN, which compares
    as "unknown" everywhere.

    Raises:
        TypeError: the usage is null.

    Example:
        >>> from sessiontree.compaction import calculate_context_tokens
        >>> calculate_context_tokens({"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 2})
        20
    """
    if usage is None:
        raise TypeError("a usage must be an object, not null")
    total = number_of(member(usage, "totalTokens"))
    if truthy(total):
        return total
    return sum(_count(usage, key) for key in _COUNTS)


def _count(usage: Mapping[str, Any], key: str) -> Number:
    value = member(usage, key)
    return math.nan if value is ABSENT else number_of(value)


def get_assistant_usage(message: Any) -> Mapping[str, Any] | None:
    """The usage of an assistant message, if it tells the size of a context.

    Aborted and failed messages do not, nor does a usage that is all zero.
    """
    if role_of(message) != "assistant" or message.get("stopReason") in ("aborted", "error"):
        return None
    usage = message.get("usage")
    if not isinstance(usage, Mapping) or not calculate_context_tokens(usage) > 0:
        return None
    return usage


def get_last_assistant_usage(entries: Sequence[Any]) -> Mapping[str, Any] | None:
    """The newest usable usage among the message entries, or None.

    Raises:
        TypeError: a message entry without message is met on the way.
    """
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if member(entry, "type") == "message":
            usage = get_assistant_usage(entry.get("message"))
            if usage is not None:
                return usage
    return None


def combine_usage(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of two usages, field by field, in a new dict.

    ``cacheWrite1h`` and ``reasoning`` appear if one of both has them. The total cost counts as reported by
    the provider only if both are.

    Raises:
        TypeError: one of them has no ``cost``.

    Example:
        >>> from sessiontree.compaction import combine_usage
        >>> free = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3, "cost": {}}
        >>> combine_usage(free, free)["totalTokens"]
        6
    """
    costs = [member(usage, "cost") for usage in (first, second)]
    for cost in costs:
        if not isinstance(cost, Mapping):
            raise TypeError('a usage to be summed must have "cost", an object')
    optional = [key for key in _OPTIONAL_COUNTS if key in first or key in second]
    combined: dict[str, Any] = {key: _sum(first, second, key) for key in (*_COUNTS, *optional, "totalTokens")}
    reported = all(cost.get("totalFromProvider") is True for cost in costs)
    combined["cost"] = {key: _sum(costs[0], costs[1], key) for key in _COSTS} | {
        "totalFromProvider": reported
    }
    return combined


def _sum(first: Mapping[str, Any], second: Mapping[str, Any], key: str) -> Number:
    return number_of(first.get(key)) + number_of(second.get(key))


def get_usage_cost_breakdown(entries: Iterable[Any]) -> list[UsageCostItem]:
    """What the entries have cost, by model, dearest first.

    Assistant messages and ``usage`` entries count for their model; tool results, compactions and branch
    summaries with a usage of their own count together as ``Tools/summaries``. What used nothing is left out.

    Example:
        >>> from sessiontree.compaction import get_usage_cost_breakdown
        >>> usage = {"input": 7, "output": 1, "cost": {"total": 0.5}}
        >>> get_usage_cost_breakdown([{"type": "usage", "provider": "p", "model": "m", "usage": usage}])
        [UsageCostItem(key='p/m', cost=0.5, tokens=8)]
    """
    totals: dict[str, list[Number]] = {}
    for entry in entries:
        key, usage = _attributed(entry)
        if not isinstance(usage, Mapping):
            continue
        sums = totals.setdefault(key, [0, 0, 0, 0, 0])
        for column, count in enumerate(_COUNTS):
            sums[column] += number_of(usage.get(count))
        sums[4] += number_of(member(usage.get("cost"), "total"))
    rows = (UsageCostItem(key, sums[4], sum(sums[:4])) for key, sums in totals.items())
    return sorted((row for row in rows if row.cost > 0 or row.tokens > 0), key=lambda row: -row.cost)


def _attributed(entry: Any) -> tuple[str, Any]:
    """Whose usage an entry carries, and the usage."""
    kind = member(entry, "type")
    if kind == "usage":
        return _model_key(entry, "model"), entry.get("usage")
    if kind in ("branch_summary", "compaction"):
        return TOOLS_AND_SUMMARIES, entry.get("usage")
    message: Any = member(entry, "message") if kind == "message" else None
    role = member(message, "role")
    if role == "assistant":
        named = "model" if message.get("responseModel") is None else "responseModel"
        return _model_key(message, named), message.get("usage")
    return TOOLS_AND_SUMMARIES, member(message, "usage") if role == "toolResult" else None


def _model_key(source: Mapping[str, Any], model: str) -> str:
    return f"{text_of(source.get('provider', ABSENT))}/{text_of(source.get(model, ABSENT))}"
