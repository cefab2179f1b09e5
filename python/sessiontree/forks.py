"""New sessions out of old ones: the bytes of a fork and of a branched session.

Lines are copied as they are; only what must change in a line is spliced (docs/format.md).
"""

from __future__ import annotations

from sessiontree import jsontext
from sessiontree.entries import CURRENT_SESSION_VERSION, UNSET, label_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sessiontree._native import Store
    from sessiontree.labels import Labels
    from sessiontree.log import SessionLog

_CHUNK = 1 << 20
_LABEL = 10
_COMPACTION = 5


def fork_header(source: dict[str, Any], id: str, timestamp: str, cwd: str, parent: str | None) -> bytes:
    """Build the header line of a fork; fields that are not known here are kept."""
    header: dict[str, Any] = {
        "type": "session",
        "version": CURRENT_SESSION_VERSION,
        "id": id,
        "timestamp": timestamp,
        "cwd": cwd,
    }
    if parent is not None:
        header["parentSession"] = parent
    header.update(
        (key, value) for key, value in source.items() if key not in header and key != "parentSession"
    )
    return jsontext.dumps(header) + b"\n"


def body_parts(store: Store) -> Iterator[bytes]:
    """Give the text of all entries: what stands behind the header, without a torn tail."""
    start, end = store.body()
    for at in range(start, end, _CHUNK):
        yield store.read(at, min(_CHUNK, end - at))
    if store.tail() == "whole":
        yield b"\n"


def branched_lines(
    log: SessionLog, labels: Labels, leaf: int, draw_id: Callable[[set[str]], str]
) -> Iterator[bytes]:
    """Give the lines of the path to ``leaf``, re-chained without its label entries, labels at the end.

    Raises:
        CorruptSessionError: the path runs into a cycle.
    """
    store = log.store
    path = store.path_rows(leaf).tolist()
    kept = [row for row in path if store.kind(row) != _LABEL]
    moved = _replacements(store, path)
    parent: str | None = None
    previous = -1
    for row in kept:
        line = store.line(row)
        changes: dict[str, Any] = {}
        if store.parent(row) != previous or (previous < 0 and not _is_root(line)):
            changes["parentId"] = parent
        if moved and store.kind(row) == _COMPACTION:
            first = jsontext.loads(line).get("firstKeptEntryId")
            if isinstance(first, str) and first in moved and first != store.id(row):
                changes["firstKeptEntryId"] = moved[first]
        yield (_splice(line, changes) if changes else line) + b"\n"
        id = store.id(row)
        parent, previous = id if isinstance(id, str) else None, row
    yield from _label_lines(store, labels, kept, parent, draw_id)


def _is_root(line: bytes) -> bool:
    """Whether the parent is null as it should be, and not false, 0, an empty text or left out."""
    return jsontext.loads(line).get("parentId", UNSET) is None


def _replacements(store: Store, path: list[int]) -> dict[str, str]:
    """Map each dropped label entry to the next entry that is copied."""
    moved: dict[str, str] = {}
    pending: list[str] = []
    for row in path:
        id = store.id(row)
        if not isinstance(id, str):
            continue
        if store.kind(row) == _LABEL:
            pending.append(id)
        else:
            moved.update((label, id) for label in pending)
            pending.clear()
    return moved


def _label_lines(
    store: Store, labels: Labels, kept: list[int], parent: str | None, draw_id: Callable[[set[str]], str]
) -> Iterator[bytes]:
    taken = {id for row in kept if isinstance(id := store.id(row), str)}
    targets = set(taken)
    for target, label, timestamp in labels:
        if isinstance(target, str) and target in targets:
            id = draw_id(taken)
            taken.add(id)
            yield jsontext.dumps(label_entry(id, parent, timestamp, target, label)) + b"\n"
            parent = id


def _splice(line: bytes, changes: dict[str, Any]) -> bytes:
    from sessiontree.migrations import splice

    return splice(line, {key: jsontext.dumps(value) for key, value in changes.items()})
