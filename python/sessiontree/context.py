"""From the tree to the messages a model sees: path, selection, projection.

- The path leads from a root to the leaf.
- The selection replaces what the newest compaction summarised: that compaction comes first, then
  what it kept of the path before it (without system messages), then everything after it.
- The projection turns each selected entry into the messages it contributes, with the newest
  context_edit for it applied. Thinking level and model are taken from the whole path.

The functions here work on plain lists of entries and treat them as pi 1.6.0 does, with three
exceptions: an unknown leaf is an error, a parent cycle ends the path with a warning, and so does
a first kept entry that is not on the path. Entries that make no sense (a message that is null, an
edit without content) raise TypeError. A session manager uses `sessiontree._livecontext` instead,
which gives the same for sound entries and lets the others contribute nothing.

The rules were established by running pi 1.6.0 on recorded scenarios (``tests/conformance``).

Example:
    >>> entries = [
    ...     {"type": "message", "id": "a1", "parentId": None, "message": {"role": "user", "content": "hi"}},
    ...     {"type": "thinking_level_change", "id": "a2", "parentId": "a1", "thinkingLevel": "high"},
    ... ]
    >>> build_session_context(entries)
    SessionContext(messages=[{'role': 'user', 'content': 'hi'}], thinking_level='high', model=None)
"""

from __future__ import annotations

from dataclasses import dataclass

from sessiontree._transcript import get_current_system_message, paired_tool_results
from sessiontree._warn import warn
from sessiontree.entries import UNSET
from sessiontree.exceptions import BrokenTreeWarning, EntryNotFoundError
from sessiontree.jsontext import parse_date

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from sessiontree.entries import JsonObject

__all__ = [
    "ProjectedEntry",
    "SessionContext",
    "SessionProjection",
    "branch_summary_message",
    "build_context_entries",
    "build_session_context",
    "build_session_projection",
    "compaction_summary_message",
    "custom_message",
    "get_current_system_message",
    "get_latest_compaction_entry",
    "paired_tool_results",
    "project_context_entry",
    "session_entry_to_context_messages",
]

DEFAULT_THINKING_LEVEL: Final = "off"
_EMPTY_WITHOUT_CONTENT: Final = ("user", "assistant", "toolResult")
_EDITABLE: Final = ("user", "assistant", "toolResult", "custom")
_BLOCKS_ONLY: Final = ("assistant", "toolResult")


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a model gets.

    Attributes:
        messages: message dicts, oldest first. They are shared with the entries they come from:
            read them, do not change them.
        thinking_level: the level in force, ``"off"`` if none was set.
        model: ``{"provider": ..., "modelId": ...}``, or None if no model was named.
    """

    messages: list[Any]
    thinking_level: str
    model: JsonObject | None


@dataclass(frozen=True, slots=True)
class ProjectedEntry:
    """A selected entry and the messages it contributes, which may be none."""

    source_entry: Any
    messages: list[Any]


@dataclass(frozen=True, slots=True)
class SessionProjection:
    """A context that still tells which entry each message comes from.

    Attributes:
        entries: every selected entry, also those without messages.
        messages: the messages of all entries in order.
        thinking_level: as in `SessionContext`.
        model: as in `SessionContext`.
    """

    entries: list[ProjectedEntry]
    messages: list[Any]
    thinking_level: str
    model: JsonObject | None


def compaction_summary_message(summary: Any, tokens_before: Any, timestamp: Any) -> JsonObject:
    """Build the message that a compaction contributes.

    Args:
        summary: text of the summary.
        tokens_before: tokens of the context before the compaction.
        timestamp: the entry's time as text; the message has milliseconds, NaN for no date.
            As in the other two builders, `UNSET` stands for a key that the entry lacks.

    Example:
        >>> compaction_summary_message("So far ...", 90000, "2026-08-31T10:30:00.000Z")["timestamp"]
        1788172200000
    """
    return _message("compactionSummary", timestamp, summary=summary, tokensBefore=tokens_before)


def branch_summary_message(summary: Any, from_id: Any, timestamp: Any) -> JsonObject:
    """Build the message that a branch summary contributes; see `compaction_summary_message`."""
    return _message("branchSummary", timestamp, summary=summary, fromId=from_id)


def custom_message(
    custom_type: Any, content: Any, display: Any, details: Any = UNSET, timestamp: Any = UNSET
) -> JsonObject:
    """Build the message of an extension; see `compaction_summary_message`."""
    return _message(
        "custom", timestamp, customType=custom_type, content=content, display=display, details=details
    )


def _message(role: str, timestamp: Any, **fields: Any) -> JsonObject:
    message: JsonObject = {"role": role}
    for name, value in fields.items():
        if value is not UNSET:
            message[name] = value
    message["timestamp"] = parse_date(timestamp)
    return message


def session_entry_to_context_messages(entry: Any) -> list[Any]:
    """Give the messages that one entry contributes by itself.

    Args:
        entry: an entry of any type.

    Returns:
        The messages; empty for types that a model does not see. A user, assistant or toolResult
        message without content gets ``[]``, a system message ``""``.

    Raises:
        TypeError: the entry is None, or a message entry's message is missing or None.

    Example:
        >>> session_entry_to_context_messages({"type": "message", "message": {"role": "user"}})
        [{'role': 'user', 'content': []}]
    """
    kind = member(entry, "type")
    if kind == "message":
        return [_with_content(entry.get("message"))]
    if kind == "custom_message":
        content = entry.get("content")
        fields = [entry.get(name, UNSET) for name in ("display", "details", "timestamp")]
        return [custom_message(entry.get("customType", UNSET), [] if content is None else content, *fields)]
    if kind == "branch_summary" and truthy(entry.get("summary")):
        return [
            branch_summary_message(
                entry["summary"], entry.get("fromId", UNSET), entry.get("timestamp", UNSET)
            )
        ]
    if kind == "compaction":
        fields = [entry.get(name, UNSET) for name in ("summary", "tokensBefore", "timestamp")]
        summary = compaction_summary_message(*fields)
        system = entry.get("systemMessage")
        return [system, summary] if truthy(system) else [summary]
    return []


def _with_content(message: Any) -> Any:
    if message is None:
        raise TypeError("a message entry without a message contributes nothing to a context")
    if not isinstance(message, dict) or message.get("content") is not None:
        return message
    role = message.get("role")
    if role == "system":
        return {**message, "content": ""}
    return {**message, "content": []} if role in _EMPTY_WITHOUT_CONTENT else message


def project_context_entry(entry: Any, edit: Any = None) -> list[Any]:
    """Give the messages of one entry with a context edit applied.

    Args:
        entry: the entry.
        edit: the newest context_edit entry that names it, or None. ``replacement`` None takes the
            messages out; otherwise its ``content`` replaces that of user, assistant, toolResult
            and custom messages. Text becomes one block where the role knows only blocks.

    Raises:
        TypeError: as `session_entry_to_context_messages`; or the replacement that is needed is
            neither None nor an object with a string or an array as ``content``.

    Example:
        >>> entry = {"type": "message", "message": {"role": "assistant", "content": []}}
        >>> project_context_entry(entry, {"replacement": {"content": "shorter"}})
        [{'role': 'assistant', 'content': [{'type': 'text', 'text': 'shorter'}]}]
    """
    messages = session_entry_to_context_messages(entry)
    if not truthy(edit):
        return messages
    replacement = member(edit, "replacement")
    if replacement is None:
        return []
    return [_replaced(message, replacement) for message in messages]


def _replaced(message: Any, replacement: Any) -> Any:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in _EDITABLE:
        return message
    if not is_replacement(replacement):
        raise TypeError("the replacement of a context edit must be null or have string or array content")
    content = replacement["content"]
    if isinstance(content, str) and role in _BLOCKS_ONLY:
        content = [{"type": "text", "text": content}]
    return {**message, "content": content}


def is_replacement(value: Any) -> bool:
    """Whether a value can stand as ``replacement`` in a context_edit entry."""
    if value is None:
        return True
    return isinstance(value, dict) and isinstance(value.get("content"), str | list)


def get_latest_compaction_entry(entries: Sequence[Any]) -> Any:
    """Give the last compaction of a list of entries, or None.

    Example:
        >>> get_latest_compaction_entry([{"type": "compaction", "id": "a1"}, {"type": "label"}])
        {'type': 'compaction', 'id': 'a1'}
    """
    return next((entry for entry in reversed(entries) if member(entry, "type") == "compaction"), None)


def build_context_entries(entries: Sequence[Any], leaf_id: Any = UNSET) -> list[Any]:
    """Select the entries that make up the context of a leaf.

    Args:
        entries: all entries, in file order; where an id stands twice the last one counts.
        leaf_id: id of the leaf; None is the empty path, left out it is the last entry.

    Returns:
        The newest compaction on the path first (if there is one), then what it kept, then what
        follows it; the dicts are those of ``entries``.

    Raises:
        EntryNotFoundError: no entry has the id ``leaf_id``.
        TypeError: an entry is None, or a message that must be looked at is.

    Warns:
        BrokenTreeWarning: the path runs into a cycle, or lacks the entry that the compaction names
            as the first kept one.

    Example:
        >>> [e["id"] for e in build_context_entries([{"id": "a1"}, {"id": "a2", "parentId": "a1"}])]
        ['a1', 'a2']
    """
    return _select(_path(entries, leaf_id))


def build_session_projection(entries: Sequence[Any], leaf_id: Any = UNSET) -> SessionProjection:
    """Build the context of a leaf, entry by entry; arguments and errors as `build_context_entries`.

    Example:
        >>> build_session_projection([{"type": "compaction", "id": "a1"}]).entries[0].source_entry
        {'type': 'compaction', 'id': 'a1'}
    """
    path = _path(entries, leaf_id)
    thinking_level, model = _settings(path)
    selected = _select(path)
    edits = newest_edits(selected)
    projected = [
        ProjectedEntry(entry, messages)
        for entry, messages in zip(selected, _projected(selected, edits), strict=True)
    ]
    messages = [message for one in projected for message in one.messages]
    return SessionProjection(projected, messages, thinking_level, model)


def build_session_context(entries: Sequence[Any], leaf_id: Any = UNSET) -> SessionContext:
    """Build the context of a leaf; arguments and errors as `build_context_entries`.

    Example:
        >>> build_session_context([], None)
        SessionContext(messages=[], thinking_level='off', model=None)
    """
    projection = build_session_projection(entries, leaf_id)
    return SessionContext(projection.messages, projection.thinking_level, projection.model)


def _path(entries: Sequence[Any], leaf_id: Any) -> list[Any]:
    if leaf_id is None or not (entries or leaf_id is not UNSET):
        return []
    by_id = {id_key(member(entry, "id")): entry for entry in entries}
    entry = entries[-1] if leaf_id is UNSET else by_id.get(id_key(leaf_id))
    if entry is None:
        raise EntryNotFoundError(f"no entry has the id {leaf_id!r}")
    path: list[Any] = []
    seen: set[int] = set()
    while entry is not None and id(entry) not in seen:
        path.append(entry)
        seen.add(id(entry))
        parent = member(entry, "parentId")
        entry = by_id.get(id_key(parent)) if parent else None
    if entry is not None:
        warn(cycle_text(member(entry, "id")), BrokenTreeWarning)
    path.reverse()
    return path


def _select(path: list[Any]) -> list[Any]:
    at = next((i for i in reversed(range(len(path))) if member(path[i], "type") == "compaction"), None)
    if at is None:
        return path
    compaction = path[at]
    kept_id = member(compaction, "firstKeptEntryId")
    wanted = id_key(kept_id)
    first = next((i for i in range(at) if id_key(member(path[i], "id")) == wanted), at)
    if first == at and names_another(kept_id, member(compaction, "id")):
        warn(kept_text(member(compaction, "id"), kept_id), BrokenTreeWarning)
    kept = [entry for entry in path[first:at] if not _is_system(entry)]
    return [compaction, *kept, *path[at + 1 :]]


def _is_system(entry: Any) -> bool:
    if member(entry, "type") != "message":
        return False
    return bool(member(entry.get("message"), "role") == "system")


def _settings(path: list[Any]) -> tuple[Any, JsonObject | None]:
    thinking_level: Any = DEFAULT_THINKING_LEVEL
    model: JsonObject | None = None
    for entry in path:
        kind = member(entry, "type")
        if kind == "thinking_level_change":
            thinking_level = entry.get("thinkingLevel")
        elif kind == "model_change" or (
            kind == "message" and member(entry.get("message"), "role") == "assistant"
        ):
            model = model_of(entry)
    return thinking_level, model


def model_of(entry: JsonObject) -> JsonObject:
    """The model that a model_change entry or an assistant's message names; what it lacks is left out."""
    is_change = entry["type"] == "model_change"
    source = entry if is_change else entry["message"]
    pairs = (("provider", "provider"), ("modelId", "modelId" if is_change else "model"))
    return {name: source[key] for name, key in pairs if key in source}


def newest_edits(entries: Iterable[Any]) -> dict[Any, Any]:
    """The newest context_edit for each target, by the target's `id_key`."""
    return {
        id_key(entry.get("targetId", UNSET)): entry
        for entry in entries
        if member(entry, "type") == "context_edit"
    }


def _projected(selected: list[Any], edits: dict[Any, Any]) -> Iterable[list[Any]]:
    """The messages of each selected entry. A kept older compaction is superseded by the first entry."""
    for place, entry in enumerate(selected):
        if place > 0 and member(entry, "type") == "compaction":
            yield []
        else:
            yield project_context_entry(entry, edits.get(id_key(member(entry, "id"))) if edits else None)


def member(value: Any, key: str) -> Any:
    """A member as JavaScript reads it: of null an error, of other values without members `UNSET`."""
    if isinstance(value, dict):
        return value.get(key, UNSET)
    if value is None:
        raise TypeError(f"expected an object with {key!r}, found null")
    return UNSET


def truthy(value: Any) -> bool:
    """Whether JavaScript calls a JSON value true: all arrays and objects are."""
    return bool(value) or isinstance(value, list | dict)


def id_key(value: Any) -> Any:
    """A dict key that is equal for two ids exactly if JavaScript's Map calls them the same key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int | float):
        try:
            return ("number", float(value))
        except OverflowError:
            return ("number", float("inf") if value > 0 else float("-inf"))
    # null and what is missing are one value each; arrays and objects equal only themselves.
    return ("value", id(value))


def names_another(kept_id: Any, own_id: Any) -> bool:
    """Whether a compaction means to keep something: it names an entry, and not itself."""
    return kept_id is not None and kept_id is not UNSET and id_key(kept_id) != id_key(own_id)


def cycle_text(entry_id: Any) -> str:
    """What to say of a path that ends because it came back to an entry."""
    return f"the context starts at entry {entry_id!r}: its parents form a cycle"


def kept_text(compaction_id: Any, kept_id: Any) -> str:
    """What to say of a compaction that keeps nothing because the entry it names is not on the path."""
    return (
        f"nothing before compaction {compaction_id!r} is in the context: its first kept entry "
        f"{kept_id!r} is not on the path"
    )
