"""Where a session was left: its leaf, kept in the cache folder between programs.

A session file does not say which entry the next one is to hang on; whoever opens it goes on at its
last entry. With ``remember_leaf=True`` the place that `branch` and `reset_leaf` chose is kept here, and
holds until something is appended: from then on the last entry is the place again, for every program.
Nothing of it stands in the session file, and losing the cache loses nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os

from sessiontree._cachedir import cache_dir, is_ours, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessiontree.log import SessionLog


def _record_file(path: str) -> str:
    name = hashlib.blake2b(os.fsencode(os.path.realpath(path)), digest_size=16).hexdigest()
    return os.path.join(cache_dir(), "leaves", f"{name}.json")


def _state(log: SessionLog) -> list[Any]:
    """What must be as it was for a remembered leaf to hold: the session, and the bytes of its file."""
    return [log.header()["id"], log.store.end(), log.store.tail()]


def remember(log: SessionLog, leaf: str | None) -> None:
    """Keep the leaf of a session that has a file. A cache that cannot be written is no error."""
    if log.path is None or not log.on_disk or log.options.read_only:
        return
    text = json.dumps({"state": _state(log), "leaf": leaf})
    with contextlib.suppress(OSError):
        write_private(_record_file(log.path), text.encode())


def may_recall(path: str) -> bool:
    """Whether anything is kept of a session, without opening it; it need not hold."""
    return os.path.exists(_record_file(path))


def recall(log: SessionLog) -> int | None:
    """Give the row of the remembered leaf, or of the last entry if none holds; None: before all entries."""
    record = _read(log)
    if record is None:
        return log.store.leaf()
    if record["leaf"] is None:
        return None
    row = log.store.find(record["leaf"])
    return log.store.leaf() if row is None else row


def _read(log: SessionLog) -> dict[str, Any] | None:
    """Give the record of a session, if there is one and nothing was appended since."""
    if not is_ours(cache_dir()):
        return None
    try:
        with open(_record_file(log.path or ""), "rb") as file:
            record: dict[str, Any] = json.loads(file.read(1 << 16))
    except (OSError, ValueError):
        return None
    sound = isinstance(record, dict) and record.get("state") == _state(log)
    if not sound or not isinstance(record.get("leaf", 0), (str, type(None))):
        return None
    return record
