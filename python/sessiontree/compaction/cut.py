"""Where a conversation is cut: what is summarised lies before, what is kept word for word after.

From the newest entry backwards tokens are added up until the wanted amount is reached; the nearest entry
from there on that may begin a context is the cut. A tool result may never begin one: it belongs to the
call before it. A cut inside a turn splits it, and then the turn's beginning is summarised apart.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sessiontree._jsvalues import member, role_of
from sessiontree.compaction.tokens import TokenCounter, estimate_tokens
from sessiontree.context import session_entry_to_context_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

_TURN_STARTS: Final = frozenset({"user", "bashExecution", "custom", "branchSummary", "compactionSummary"})
_CUT_POINTS: Final = _TURN_STARTS | {"assistant"}


class Part(NamedTuple):
    """What one entry gives to the context.

    Attributes:
        is_compaction: summaries of earlier compactions are no part of the conversation: never a cut.
        messages: its messages, none for entries that the model does not see.
    """

    is_compaction: bool
    messages: Sequence[Any]

    def has(self, roles: frozenset[str]) -> bool:
        """Does it contribute a message of one of these roles, and is no compaction?"""
        return not self.is_compaction and any(_role(message) in roles for message in self.messages)


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A cut through a list of entries.

    Attributes:
        first_kept_entry_index: entries from here on are kept.
        turn_start_index: where the turn begins that is cut in two, -1 if none is.
        is_split_turn: the cut lies inside a turn.
    """

    first_kept_entry_index: int
    turn_start_index: int
    is_split_turn: bool


def _role(message: Any) -> Any:
    role = role_of(message)
    return role if isinstance(role, str) else None


def part_of(entry: Any) -> Part:
    """The part of an entry by itself, without regard to edits."""
    return Part(member(entry, "type") == "compaction", session_entry_to_context_messages(entry))


def find_turn_start_index(entries: Sequence[Any], entry_index: int, start_index: int) -> int:
    """The entry that begins the turn which ``entry_index`` belongs to, -1 if there is none from ``start_index`` on.

    Turns begin with a message of the user, a bash execution, a custom message or a branch summary.
    """
    for index in range(entry_index, start_index - 1, -1):
        if part_of(entries[index]).has(_TURN_STARTS):
            return index
    return -1


def find_cut_point(
    entries: Sequence[Any],
    start_index: int,
    end_index: int,
    keep_recent_tokens: float,
    *,
    count_tokens: TokenCounter = estimate_tokens,
) -> CutPoint:
    """Find the cut that keeps about ``keep_recent_tokens`` of the entries, never less if there is more.

    Args:
        entries: of one path, root first.
        start_index: the first entry that may be summarised.
        end_index: one past the last.
        keep_recent_tokens: tokens to be kept.
        count_tokens: measures one message.

    Example:
        >>> from sessiontree.compaction import find_cut_point
        >>> entry = {"type": "message", "message": {"role": "user", "content": "x" * 400}}
        >>> find_cut_point([entry] * 5, 0, 5, 150).first_kept_entry_index
        3
    """
    parts = [part_of(entry) for entry in entries[:end_index]]
    cut, _ = nearest_cut(parts, start_index, keep_recent_tokens, count_tokens)
    return finished_cut(parts, start_index, cut)


def nearest_cut(
    parts: Sequence[Part], start: int, keep_recent_tokens: float, count_tokens: TokenCounter
) -> tuple[int | None, bool]:
    """The cut by tokens alone, None if nothing may begin a context; and whether the budget was reached."""
    candidates = [index for index in range(start, len(parts)) if parts[index].has(_CUT_POINTS)]
    if not candidates:
        return None, False
    kept = 0
    for index in range(len(parts) - 1, start - 1, -1):
        tokens = sum(count_tokens(message) for message in parts[index].messages)
        kept += tokens
        if tokens and kept >= keep_recent_tokens:
            at = bisect_left(candidates, index)
            # Tool results at the end may exceed the budget alone: then their call is the last candidate.
            return candidates[min(at, len(candidates) - 1)], True
    return candidates[0], False


def finished_cut(parts: Sequence[Part], start: int, cut: int | None) -> CutPoint:
    """Take in the entries before the cut that contribute nothing, and say which turn is split."""
    if cut is None:
        return CutPoint(start, -1, is_split_turn=False)
    while cut > start and not parts[cut - 1].is_compaction and not parts[cut - 1].messages:
        cut -= 1
    if parts[cut].has(_TURN_STARTS):
        return CutPoint(cut, -1, is_split_turn=False)
    turn = next((i for i in range(cut, start - 1, -1) if parts[i].has(_TURN_STARTS)), -1)
    return CutPoint(cut, turn, is_split_turn=turn != -1)


def cut_outside_tool_calls(parts: Sequence[Part], start: int, cut: int) -> int:
    """Move a cut back until no tool result is kept whose call would be summarised.

    That happens where something stands between a call and its result, a message that the user sent in the
    meantime for instance. A call that still waits for its result counts as well; one that was followed by
    another answer of the model does not wait any more.
    """
    earliest = _earliest_calls(parts, start)
    while earliest[cut] < cut:
        cut = earliest[cut]
    return cut


def _earliest_calls(parts: Sequence[Part], start: int) -> list[int]:
    """For each index: the first call whose result stands there or later, the length if there is none."""
    calls: dict[Any, int] = {}
    waiting: dict[Any, int] = {}
    own = [len(parts)] * (len(parts) + 1)
    for index in range(start, len(parts)):
        for message in parts[index].messages:
            role = _role(message)
            if role == "assistant":
                made = dict.fromkeys(tool_call_ids(message), index)
                calls.update(made)
                waiting = made
            elif role == "toolResult":
                call_id = hashable(message.get("toolCallId"))
                own[index] = min(own[index], calls.get(call_id, len(parts)))
                waiting.pop(call_id, None)
    own[-1] = min(waiting.values(), default=len(parts))
    for index in range(len(parts) - 1, -1, -1):
        own[index] = min(own[index], own[index + 1])
    return own


def tool_call_ids(message: Any) -> list[Any]:
    """The ids of the tool calls of an assistant message."""
    content = member(message, "content")
    blocks = content if isinstance(content, list) else []
    return [hashable(block.get("id")) for block in blocks if member(block, "type") == "toolCall"]


def hashable(value: Any) -> Any:
    """An id that can be a key; odd ones are never equal to another."""
    return value if isinstance(value, (str, int, float)) else None
