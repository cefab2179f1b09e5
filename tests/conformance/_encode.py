"""Results of sessiontree as the plain values that the comparer knows."""

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from _names import camel, is_record
from normalise import UNDEFINED, Date, Set

# pi's fields of a listed session; SessionInfo has more.
INFO_FIELDS = (
    "path",
    "id",
    "cwd",
    "name",
    "parent_session_path",
    "created",
    "modified",
    "message_count",
    "first_message",
    "all_messages_text",
)
# Fields of pi's results that are absent where Python's have None.
_OPTIONAL = frozenset(["previousSummary", "estimatedTokensAfter"])
_NESTING = 100


def plain(value, depth=0):
    """Dataclasses as objects with pi's names, lazy sequences as lists; JSON values as they are."""
    if hasattr(value, "children") and hasattr(value, "entry"):
        return tree([value])[0]
    if is_record(value):
        fields = [f.name for f in dataclasses.fields(value)]
        out = {camel(name): plain(getattr(value, name), depth + 1) for name in fields}
        return {k: v for k, v in out.items() if v is not None or k not in _OPTIONAL}
    if isinstance(value, dict) or depth > _NESTING:
        return value
    if isinstance(value, Mapping):
        return {k: plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, AbstractSet):
        return Set(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        items = list(value)
        if items and all(hasattr(item, "children") for item in items):
            return tree(items)
        return [plain(item, depth + 1) for item in items]
    return value


def tree(roots):
    """Nodes of ``get_tree()`` with their children, however deep, without recursion."""
    out = []
    stack = [(node, out) for node in reversed(roots)]
    while stack:
        node, siblings = stack.pop()
        children = []
        one = {"entry": node.entry, "children": children}
        if node.label is not None:
            one["label"] = node.label
        if node.label_timestamp is not None:
            one["labelTimestamp"] = node.label_timestamp
        siblings.append(one)
        stack.extend((child, children) for child in reversed(list(node.children)))
    return out


def projection(value):
    """A projection names its entries by reference: only id and type of each source are compared."""
    entries = []
    for one in value.entries:
        source = one.source_entry if isinstance(one.source_entry, dict) else {}
        entries.append(
            {
                "sourceId": source.get("id", UNDEFINED),
                "sourceType": source.get("type", UNDEFINED),
                "messages": list(one.messages),
            }
        )
    return {
        "entries": entries,
        "messages": list(value.messages),
        "thinkingLevel": value.thinking_level,
        "model": plain(value.model),
    }


def session_info(info):
    """One line of a listing, pi's fields only; an unknown time is JavaScript's invalid date."""
    out = {camel(name): getattr(info, name) for name in INFO_FIELDS}
    for name in ("created", "modified"):
        if out[name] is None:
            out[name] = Date(math.nan)
    return {k: v for k, v in out.items() if v is not None}


def manager(session):
    """What the recorded results say of a manager after opening and before closing."""
    path = session.get_session_file()
    return {
        "sessionId": session.get_session_id(),
        "sessionFile": UNDEFINED if path is None else str(path),
        "sessionDir": str(session.get_session_dir()),
        "cwd": session.get_cwd(),
        "persisted": session.is_persisted(),
        "flushed": session.is_persisted() and path is not None and os.path.exists(path),
        "leafId": session.get_leaf_id(),
        "entryCount": session.get_entry_count(),
        "fileEntryCount": len(session.get_entries()) + session.open_report.header_lines,
    }
