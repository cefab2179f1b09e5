"""Entries of a session file: their types, and functions that build them as pi writes them.

An entry is a plain dict with the file's own keys. The functions here put the keys in the order of
pi 1.6.0, so that the line written is the line pi would have written. An optional argument that is
``None`` or `UNSET` leaves its key out; a required one is written as it is given (``None`` as
``null``). Values are neither copied nor checked here: `sessiontree.jsontext.dumps` does that.

Example:
    >>> entry = label_entry("b2c3d4e5", None, "2026-08-31T10:30:00.000Z", "a1b2c3d4", "start")
    >>> list(entry)
    ['type', 'id', 'parentId', 'timestamp', 'targetId', 'label']
"""

from __future__ import annotations

from sessiontree.exceptions import InvalidSessionIdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from sessiontree._entrytypes import (
        AgentMessage,
        AssistantContent,
        AssistantMessage,
        BashExecutionMessage,
        BranchSummaryEntry,
        BranchSummaryMessage,
        CompactionEntry,
        CompactionSummaryMessage,
        ContextEditEntry,
        ContextReplacement,
        CustomData,
        CustomDetails,
        CustomEntry,
        CustomMessage,
        CustomMessageEntry,
        FileEntry,
        ImageContent,
        JsonObject,
        LabelEntry,
        Message,
        MessageEntry,
        ModelChangeEntry,
        NestedToolCall,
        NestedToolCalls,
        SessionEntry,
        SessionHeader,
        SessionInfoEntry,
        SystemMessage,
        TextContent,
        ThinkingContent,
        ThinkingLevelChangeEntry,
        ToolCall,
        ToolResultMessage,
        Usage,
        UsageCost,
        UsageEntry,
        UserContent,
        UserMessage,
    )

__all__ = [
    "BRANCH_SUMMARY",
    "COMPACTION",
    "CONTEXT_EDIT",
    "CURRENT_SESSION_VERSION",
    "CUSTOM",
    "CUSTOM_MESSAGE",
    "LABEL",
    "MESSAGE",
    "MODEL_CHANGE",
    "SESSION",
    "SESSION_INFO",
    "THINKING_LEVEL_CHANGE",
    "UNSET",
    "USAGE",
    "AgentMessage",
    "AssistantContent",
    "AssistantMessage",
    "BashExecutionMessage",
    "BranchSummaryEntry",
    "BranchSummaryMessage",
    "CompactionEntry",
    "CompactionSummaryMessage",
    "ContextEditEntry",
    "ContextReplacement",
    "CustomEntry",
    "CustomMessage",
    "CustomMessageEntry",
    "FileEntry",
    "ImageContent",
    "JsonObject",
    "LabelEntry",
    "Message",
    "MessageEntry",
    "ModelChangeEntry",
    "NestedToolCall",
    "NestedToolCalls",
    "SessionEntry",
    "SessionHeader",
    "SessionInfoEntry",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "ThinkingLevelChangeEntry",
    "ToolCall",
    "ToolResultMessage",
    "UnsetType",
    "Usage",
    "UsageCost",
    "UsageEntry",
    "UserContent",
    "UserMessage",
    "assert_valid_session_id",
    "branch_summary_entry",
    "compaction_entry",
    "context_edit_entry",
    "custom_entry",
    "custom_message_entry",
    "label_entry",
    "message_entry",
    "model_change_entry",
    "session_header",
    "session_info_entry",
    "thinking_level_change_entry",
    "usage_entry",
]

CURRENT_SESSION_VERSION: Final = 3

SESSION: Final = "session"
MESSAGE: Final = "message"
THINKING_LEVEL_CHANGE: Final = "thinking_level_change"
MODEL_CHANGE: Final = "model_change"
USAGE: Final = "usage"
COMPACTION: Final = "compaction"
BRANCH_SUMMARY: Final = "branch_summary"
CUSTOM: Final = "custom"
CUSTOM_MESSAGE: Final = "custom_message"
CONTEXT_EDIT: Final = "context_edit"
LABEL: Final = "label"
SESSION_INFO: Final = "session_info"


class UnsetType:
    """The type of `UNSET`: its one value is falsy, and copies are the value itself."""

    def __bool__(self) -> bool:
        """Be falsy, as JavaScript's ``undefined`` is."""
        return False

    def __repr__(self) -> str:
        """Show the name under which it is exported."""
        return "UNSET"

    def __reduce__(self) -> str:
        """Pickle and copy as the name of the one value."""
        return "UNSET"


UNSET: Final = UnsetType()
"""What was not given, where ``None`` means something else (JavaScript's ``undefined``)."""


def __getattr__(name: str) -> object:
    """Import the types only when one of them is asked for: ``typing`` is not cheap."""
    if name in __all__:
        from sessiontree import _entrytypes

        return getattr(_entrytypes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_ALPHANUMERIC: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_ID_INNER: Final = _ALPHANUMERIC | frozenset("._-")


def assert_valid_session_id(id: str) -> None:
    """Refuse a session id that cannot be part of a file name.

    Args:
        id: the id; ASCII letters and digits, and between the first and the last of them also
            ``.``, ``_`` and ``-``.

    Raises:
        InvalidSessionIdError: the id has another form, or is no string.

    Example:
        >>> assert_valid_session_id("2026.task-7")
    """
    valid = isinstance(id, str) and id and id[0] in _ALPHANUMERIC and id[-1] in _ALPHANUMERIC
    if not (valid and _ID_INNER.issuperset(id)):
        raise InvalidSessionIdError(
            f"invalid session id {id!r}: use ASCII letters, digits, '.', '_' and '-', with a letter or digit "
            "at both ends"
        )


def session_header(
    id: str, timestamp: str, cwd: str, parent_session: str | UnsetType | None = None
) -> SessionHeader:
    """Build the first line of a new session file.

    Args:
        id: the session's id; see `assert_valid_session_id`, which is not called here.
        timestamp: ISO 8601 in UTC with milliseconds and ``Z``, as everywhere in the file.
        cwd: the directory the session works in.
        parent_session: path of the session this one was forked from.

    Example:
        >>> session_header("s1", "2026-08-31T10:30:00.000Z", "/code")["version"]
        3
    """
    header: SessionHeader = {
        "type": "session",
        "version": CURRENT_SESSION_VERSION,
        "id": id,
        "timestamp": timestamp,
        "cwd": cwd,
    }
    if parent_session is not None and not isinstance(parent_session, UnsetType):
        header["parentSession"] = parent_session
    return header


def message_entry(id: str, parent_id: str | None, timestamp: str, message: AgentMessage) -> MessageEntry:
    """Build the entry of one message."""
    return {"type": "message", "id": id, "parentId": parent_id, "timestamp": timestamp, "message": message}


def thinking_level_change_entry(
    id: str, parent_id: str | None, timestamp: str, thinking_level: str
) -> ThinkingLevelChangeEntry:
    """Build the entry that sets the thinking level."""
    return {
        "type": "thinking_level_change",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "thinkingLevel": thinking_level,
    }


def model_change_entry(
    id: str, parent_id: str | None, timestamp: str, provider: str, model_id: str
) -> ModelChangeEntry:
    """Build the entry that sets the model."""
    return {
        "type": "model_change",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "provider": provider,
        "modelId": model_id,
    }


def usage_entry(
    id: str,
    parent_id: str | None,
    timestamp: str,
    kind: str,
    provider: str,
    model: str,
    usage: Usage,
    note: str | UnsetType | None = None,
) -> UsageEntry:
    """Build the entry of tokens spent outside the conversation; an empty note is left out."""
    entry: UsageEntry = {
        "type": "usage",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "kind": kind,
        "provider": provider,
        "model": model,
        "usage": usage,
    }
    if note and not isinstance(note, UnsetType):
        entry["note"] = note
    return entry


def compaction_entry(
    id: str,
    parent_id: str | None,
    timestamp: str,
    summary: str,
    first_kept_entry_id: str | None,
    tokens_before: int,
    details: Any = None,
    usage: Usage | UnsetType | None = None,
    from_hook: bool | UnsetType | None = None,
    system_message: SystemMessage | UnsetType | None = None,
) -> CompactionEntry:
    """Build the entry of a compaction.

    Without ``first_kept_entry_id`` the entry names itself, so that nothing before it is kept.
    """
    entry: CompactionEntry = {
        "type": "compaction",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "summary": summary,
        "firstKeptEntryId": id if first_kept_entry_id is None else first_kept_entry_id,
        "tokensBefore": tokens_before,
    }
    _add_origin(entry, details, usage, from_hook)
    if system_message is not None and not isinstance(system_message, UnsetType):
        entry["systemMessage"] = system_message
    return entry


def branch_summary_entry(
    id: str,
    parent_id: str | None,
    timestamp: str,
    from_id: str,
    summary: str,
    details: Any = None,
    usage: Usage | UnsetType | None = None,
    from_hook: bool | UnsetType | None = None,
) -> BranchSummaryEntry:
    """Build the entry that says what happened on the branch ending at ``from_id``."""
    entry: BranchSummaryEntry = {
        "type": "branch_summary",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "fromId": from_id,
        "summary": summary,
    }
    _add_origin(entry, details, usage, from_hook)
    return entry


def _add_origin(
    entry: CompactionEntry | BranchSummaryEntry,
    details: Any,
    usage: Usage | UnsetType | None,
    from_hook: bool | UnsetType | None,
) -> None:
    """Add what both kinds of summary may say of their making."""
    if details is not None and details is not UNSET:
        entry["details"] = details
    if usage is not None and not isinstance(usage, UnsetType):
        entry["usage"] = usage
    if from_hook is not None and not isinstance(from_hook, UnsetType):
        entry["fromHook"] = from_hook


def custom_entry(
    id: str, parent_id: str | None, timestamp: str, custom_type: str, data: Any = None
) -> CustomEntry:
    """Build an extension's entry, which the model never sees."""
    own: CustomData = {} if data is None or data is UNSET else {"data": data}
    return {
        "type": "custom",
        "customType": custom_type,
        **own,
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
    }


def custom_message_entry(
    id: str,
    parent_id: str | None,
    timestamp: str,
    custom_type: str,
    content: str | list[UserContent],
    display: bool,
    details: Any = None,
) -> CustomMessageEntry:
    """Build an extension's message to the model; ``details`` stay with the program."""
    own: CustomDetails = {} if details is None or details is UNSET else {"details": details}
    return {
        "type": "custom_message",
        "customType": custom_type,
        "content": content,
        "display": display,
        **own,
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
    }


def context_edit_entry(
    id: str,
    parent_id: str | None,
    timestamp: str,
    target_id: str,
    replacement: ContextReplacement | None,
) -> ContextEditEntry:
    """Build the entry that changes, or with None takes out, what ``target_id`` contributes."""
    return {
        "type": "context_edit",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "targetId": target_id,
        "replacement": replacement,
    }


def label_entry(
    id: str,
    parent_id: str | None,
    timestamp: str,
    target_id: str,
    label: str | UnsetType | None = None,
) -> LabelEntry:
    """Build the entry that names ``target_id``, or without a label takes its name off."""
    entry: LabelEntry = {
        "type": "label",
        "id": id,
        "parentId": parent_id,
        "timestamp": timestamp,
        "targetId": target_id,
    }
    if label is not None and not isinstance(label, UnsetType):
        entry["label"] = label
    return entry


def session_info_entry(id: str, parent_id: str | None, timestamp: str, name: str) -> SessionInfoEntry:
    """Build the entry that names the session; an empty name takes the name off."""
    return {"type": "session_info", "id": id, "parentId": parent_id, "timestamp": timestamp, "name": name}
