"""New sessions out of old ones: headers of forks, and the labels that a branched session ends with.

The lines of the path or of the whole file are copied by `Store.branch` and `Store.fork`: as they are,
but for what must change in a line, which is spliced (docs/format.md).
"""

from __future__ import annotations

import os

from sessiontree import jsontext
from sessiontree._native import Store, create_file
from sessiontree.entries import CURRENT_SESSION_VERSION, label_entry
from sessiontree.log import SessionLog, migrated
from sessiontree.migrations import is_newer, needs_migration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sessiontree._native import Rows
    from sessiontree.entries import JsonObject
    from sessiontree.labels import Labels
    from sessiontree.log import Options

_CHUNK = 1 << 20
_LABEL = 10


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


def forked_log(source: str, options: Options, place: Callable[[JsonObject], tuple[str, bytes]]) -> SessionLog:
    """Copy a session file behind another header; an old version is migrated on the way.

    Args:
        source: the file, which is only read.
        options: those of the copy.
        place: gives path and header line of the copy, from the old header.
    """
    sync = options.durability == "fsync"

    def begin(line: bytes) -> tuple[str, bytes] | None:
        old = jsontext.loads(line)
        return None if needs_migration(old) or is_newer(old) else place(old)

    forked = Store.open_forked(source, begin, lenient_header=options.lenient_header, sync=sync)
    if forked is not None:
        # The core gives a path of its own kind; a session file is named by text.
        return SessionLog(forked, options, os.fspath(forked.path()))
    store = Store.open(source, lenient_header=options.lenient_header)
    SessionLog(store, options, None).check_version(source)
    old = jsontext.loads(store.header())
    store = migrated(store, options)
    path, header = place(old)
    if not store.fork(path, header, sync=sync):
        store = _rewritten(store, path, header, options)
    return SessionLog(store, options, path)


def _rewritten(store: Store, path: str, header: bytes, options: Options) -> Store:
    """Write the copy of a file that does not begin with its header, and open it."""
    parts = (part for parts in ([header], body_parts(store)) for part in parts)
    create_file(path, parts, sync=options.durability == "fsync")
    try:
        return Store.open(path)
    except BaseException:
        os.unlink(path)
        raise


def body_parts(store: Store) -> Iterator[bytes]:
    """Give the text of all entries: what stands behind the header, without a torn tail."""
    start, end = store.body()
    for at in range(start, end, _CHUNK):
        yield store.read(at, min(_CHUNK, end - at))
    if store.tail() == "whole":
        yield b"\n"


def label_lines(
    log: SessionLog, labels: Labels, path: Rows, draw_id: Callable[[Callable[[str], bool]], str]
) -> bytes:
    """Give the label entries of a branched session: one for each labelled entry of the path, in a chain.

    Args:
        log: the session it is made of.
        labels: its labels.
        path: rows from the root on; label entries among them are not copied.
        draw_id: draws an id that is not taken, given a function that says which are.
    """
    store = log.store
    named = [one for one in labels if isinstance(one[0], str)]
    rows = set(path.tolist()) if named else set()
    given: set[str] = set()

    def is_copied(id: str) -> bool:
        row = store.find(id)
        return row is not None and row in rows and store.kind(row) != _LABEL

    def is_taken(id: str) -> bool:
        return id in given or is_copied(id)

    lines = []
    parent = _last_id(store, path) if named else None
    for target, label, timestamp in named:
        if is_copied(target):
            id = draw_id(is_taken)
            given.add(id)
            lines.append(jsontext.dumps(label_entry(id, parent, timestamp, target, label)) + b"\n")
            parent = id
    return b"".join(lines)


def _last_id(store: Store, path: Rows) -> str | None:
    """The id of the last entry that is copied, if that is a string."""
    last = next((row for row in reversed(path.tolist()) if store.kind(row) != _LABEL), None)
    id = None if last is None else store.id(last)
    return id if isinstance(id, str) else None
