"""What the end of a branch tells: the model's last answer, whether it was tried again, results that are lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessiontree._jsvalues import member
from sessiontree.compaction.cut import hashable, tool_call_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessiontree.context import SessionProjection


def orphaned_results(projection: SessionProjection) -> list[str]:
    """Entries with a tool result whose call is not in the context; providers refuse such a context."""
    called: set[Any] = set()
    orphans = []
    for entry in projection.entries:
        for message in entry.messages:
            role = member(message, "role")
            if role == "assistant":
                called.update(tool_call_ids(message))
            elif role == "toolResult" and hashable(message.get("toolCallId")) not in called:
                orphans.append(member(entry.source_entry, "id"))
    return [entry_id for entry_id in orphans if isinstance(entry_id, str)]


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer of the model on a branch.

    Attributes:
        message: the assistant message.
        entry_ids: its entry and those of the results of its tool calls.
        is_omitted: it is not in the context any more.
        is_outdated: the context was edited after it, so its usage says nothing.
        follows_recovery: an earlier attempt of the same turn was omitted already.
    """

    message: Any
    entry_ids: tuple[str, ...]
    is_omitted: bool
    is_outdated: bool
    follows_recovery: bool

    @classmethod
    def of(cls, branch: Sequence[Any]) -> LastAnswer | None:
        """The last answer after the newest compaction, None if there is none."""
        edits: dict[Any, Any] = {}
        after: list[Any] = []
        for index in range(len(branch) - 1, -1, -1):
            entry = branch[index]
            kind = member(entry, "type")
            if kind == "compaction":
                return None
            if kind == "context_edit":
                edits.setdefault(hashable(member(entry, "targetId")), entry)
            elif member(member(entry, "message"), "role") == "assistant":
                return cls._made(branch, index, edits, after)
            after.append(entry)
        return None

    @classmethod
    def _made(
        cls, branch: Sequence[Any], index: int, edits: Mapping[Any, Any], after: Sequence[Any]
    ) -> LastAnswer:
        entry = branch[index]
        calls = set(tool_call_ids(entry["message"]))
        results = (
            later["id"]
            for later in reversed(after)
            if member(member(later, "message"), "role") == "toolResult"
            and hashable(later["message"].get("toolCallId")) in calls
        )
        own = edits.get(hashable(member(entry, "id")))
        return cls(
            message=entry["message"],
            entry_ids=(entry["id"], *results),
            is_omitted=own is not None and own.get("replacement") is None,
            is_outdated=bool(edits),
            follows_recovery=_was_recovered(branch, index),
        )


def _was_recovered(branch: Sequence[Any], index: int) -> bool:
    """Was an attempt before this one omitted, with no success and no new message of the user since?"""
    omitted: set[Any] = set()
    for before in range(index - 1, -1, -1):
        entry = branch[before]
        message = member(entry, "message")
        role = member(message, "role")
        if member(entry, "type") == "context_edit" and entry.get("replacement") is None:
            omitted.add(hashable(member(entry, "targetId")))
        elif role == "assistant":
            return hashable(member(entry, "id")) in omitted
        elif role == "user":
            return False
    return False
