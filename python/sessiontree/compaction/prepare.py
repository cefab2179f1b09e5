"""What a compaction is going to do, worked out before any model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sessiontree._jsvalues import member, role_of
from sessiontree.compaction.cut import (
    CutPoint,
    Part,
    cut_outside_tool_calls,
    finished_cut,
    hashable,
    nearest_cut,
)
from sessiontree.compaction.files import (
    FileOperations,
    add_summary_details,
    create_file_ops,
    extract_file_ops_from_message,
)
from sessiontree.compaction.tokens import TokenCounter, estimate_projected_context_tokens, estimate_tokens
from sessiontree.context import build_session_projection, session_entry_to_context_messages
from sessiontree.jsontext import trim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sessiontree.compaction.usage import Number
    from sessiontree.context import ProjectedEntry, SessionProjection

DEFAULT_COMPACTION_SETTINGS: Final[Mapping[str, Any]] = {
    "enabled": True,
    "reserveTokens": 16384,
    "keepRecentTokens": 20000,
}
"""Settings of a compaction, with the names they have in a settings file.

``reserveTokens`` are left free for the answer: a context is compacted when it grows beyond the window less
these. ``keepRecentTokens`` of the newest messages are kept word for word.
"""


@dataclass(frozen=True, slots=True)
class CompactionPreparation:
    """What is to be summarised and what is to be kept.

    Attributes:
        first_kept_entry_id: the entry from which on everything is kept.
        messages_to_summarize: the history up to the cut, or up to the turn that is split.
        turn_prefix_messages: the beginning of the split turn.
        is_split_turn: the cut lies inside a turn.
        tokens_before: size of the context before, in tokens.
        previous_summary: of the compaction before, None if there is none or it is blank.
        file_ops: files that the summarised part read and changed.
        settings: as they were given.
    """

    first_kept_entry_id: str
    messages_to_summarize: list[Any]
    turn_prefix_messages: list[Any]
    is_split_turn: bool
    tokens_before: Number
    previous_summary: str | None
    file_ops: FileOperations
    settings: Mapping[str, Any]


def prepare_compaction(
    path_entries: Iterable[Any],
    settings: Mapping[str, Any] = DEFAULT_COMPACTION_SETTINGS,
    *,
    count_tokens: TokenCounter = estimate_tokens,
    pair_tool_results: bool = False,
) -> CompactionPreparation | None:
    """Work out what a compaction of a path would summarise and keep.

    A compaction that follows an earlier one begins where that one's kept part begins, so nothing is lost
    between the two; the earlier summary is handed on for an update.

    Args:
        path_entries: the entries from the root to the leaf, as `SessionManager.get_branch` gives them.
        settings: ``keepRecentTokens`` is what counts here.
        count_tokens: measures one message.
        pair_tool_results: never cut between a tool call and its result, even where other messages stand
            between the two.

    Returns:
        None if there is nothing to do: the path ends with a compaction, or all of it is to be kept.

    Example:
        >>> from sessiontree.compaction import prepare_compaction
        >>> prepare_compaction([]) is None
        True
    """
    path = list(path_entries)
    if path and member(path[-1], "type") == "compaction":
        return None
    projection = build_session_projection(path)
    return prepare_projection(
        projection, path, settings, count_tokens=count_tokens, pair_tool_results=pair_tool_results
    )


def prepare_projection(
    projection: SessionProjection,
    path_entries: Iterable[Any],
    settings: Mapping[str, Any],
    *,
    count_tokens: TokenCounter = estimate_tokens,
    pair_tool_results: bool = False,
) -> CompactionPreparation | None:
    """`prepare_compaction` for a path whose projection is at hand."""
    entries = projection.entries
    previous = _newest_compaction(entries)
    start = 0 if previous is None else previous + 1
    cut = _cut(entries, start, settings, count_tokens, pair_tool_results=pair_tool_results)
    first_kept = entries[cut.first_kept_entry_index].source_entry if start < len(entries) else None
    first_kept_id = member(first_kept, "id")
    if not isinstance(first_kept_id, str) or not first_kept_id:
        return None
    history_end = cut.turn_start_index if cut.is_split_turn else cut.first_kept_entry_index
    history = _messages(entries[start:history_end])
    prefix = _messages(entries[history_end : cut.first_kept_entry_index])
    if not history and not prefix:
        return None
    compaction = None if previous is None else entries[previous].source_entry
    tokens = estimate_projected_context_tokens(projection, path_entries, count_tokens=count_tokens).tokens
    return CompactionPreparation(
        first_kept_entry_id=first_kept_id,
        messages_to_summarize=history,
        turn_prefix_messages=prefix,
        is_split_turn=cut.is_split_turn,
        tokens_before=tokens,
        previous_summary=_text_or_none(member(compaction, "summary")),
        file_ops=_file_ops(compaction, (*history, *prefix)),
        settings=settings,
    )


def _newest_compaction(entries: Sequence[ProjectedEntry]) -> int | None:
    """The index of the compaction whose summary the context holds; older ones contribute nothing."""
    for index, entry in enumerate(entries):
        if _is_compaction(entry) and entry.messages:
            return index
    return None


def _is_compaction(entry: ProjectedEntry) -> bool:
    return bool(member(entry.source_entry, "type") == "compaction")


def _messages(entries: Iterable[ProjectedEntry]) -> list[Any]:
    """What of these is conversation: system messages are state, which the compaction entry carries itself."""
    return [
        message
        for entry in entries
        if not _is_compaction(entry)
        for message in entry.messages
        if role_of(message) != "system"
    ]


def _text_or_none(summary: Any) -> str | None:
    return summary if isinstance(summary, str) and trim(summary) else None


def _file_ops(compaction: Any, messages: Iterable[Any]) -> FileOperations:
    file_ops = create_file_ops()
    if compaction is not None:
        add_summary_details(compaction, file_ops)
    for message in messages:
        extract_file_ops_from_message(message, file_ops)
    return file_ops


def _cut(
    entries: Sequence[ProjectedEntry],
    start: int,
    settings: Mapping[str, Any],
    count_tokens: TokenCounter,
    *,
    pair_tool_results: bool,
) -> CutPoint:
    parts = [Part(_is_compaction(entry), entry.messages) for entry in entries]
    cut, reached = nearest_cut(parts, start, settings["keepRecentTokens"], count_tokens)
    if cut is not None and reached and _is_recovery_suffix(entries[cut + 1 :]):
        cut += 1
    elif cut is not None and pair_tool_results:
        cut = cut_outside_tool_calls(parts, start, cut)
    return finished_cut(parts, start, cut)


def _is_recovery_suffix(suffix: Sequence[ProjectedEntry]) -> bool:
    """Is everything after the cut a failed attempt of the model that was omitted from the context?

    Then the last visible message may be summarised as well, because nothing that was not sent yet would be
    passed over. Edits that put something else in the place of an entry that is not omitted speak against it.
    """
    visible = [entry for entry in suffix if _is_visible_by_itself(entry)]
    if any(entry.messages for entry in visible) or any(_is_compaction(entry) for entry in suffix):
        return False
    omitted = {hashable(member(entry.source_entry, "id")) for entry in visible}
    return not any(_replaces_another(entry.source_entry, omitted) for entry in suffix) and any(
        member(member(entry.source_entry, "message"), "role") == "assistant" for entry in visible
    )


def _is_visible_by_itself(entry: ProjectedEntry) -> bool:
    """Would the entry contribute something if no edit had changed it?"""
    source = entry.source_entry
    kind = member(source, "type")
    if kind == "context_edit" or (kind == "message" and member(source, "message") is None):
        return False
    return bool(session_entry_to_context_messages(source))


def _replaces_another(source: Any, omitted: set[Any]) -> bool:
    return bool(
        member(source, "type") == "context_edit"
        and member(source, "replacement") is not None
        and hashable(member(source, "targetId")) not in omitted
    )
