"""What the reliability tests share: small sessions, and what must be true of a session at all times."""

import functools
import json
import os
import stat
import tempfile
import time
from pathlib import Path

from sessiontree import SessionManager

TEMPORARY = ".sessiontree-tmp"
COUNTS = "SESSIONTREE_COUNTS"
"""Names a file where tests note how often they tried what, for the table of the long run."""


def counted(what, times):
    path = os.environ.get(COUNTS)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps([what, times]) + "\n")


def user(text, at=1):
    return {"role": "user", "content": text, "timestamp": at}


def reply(text, at=2):
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": at}


def header(session_id="s1", version=3, cwd="/code"):
    line = {
        "type": "session",
        "version": version,
        "id": session_id,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": cwd,
    }
    return line if version > 1 else {key: value for key, value in line.items() if key != "version"}


def entry(entry_id, parent, text="x"):
    return {
        "type": "message",
        "id": entry_id,
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:01.000Z",
        "message": user(text),
    }


def line(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def text_of(count, session_id="s1"):
    """The bytes of a sound session whose entries e0, e1, ... hang on each other."""
    lines = [header(session_id)]
    lines += [entry(f"e{n}", f"e{n - 1}" if n else None, f"text {n}") for n in range(count)]
    return b"".join(line(value) for value in lines)


def make(path, count=3, session_id="s1"):
    path.write_bytes(text_of(count, session_id))
    return path


def make_version_1(path, count=5):
    """A session of the first version: entries have neither ids nor parents."""
    old = {"type": "message", "timestamp": "2026-01-01T00:00:01.000Z"}
    lines = [header(version=1), *({**old, "message": user(f"text {n}")} for n in range(count))]
    path.write_bytes(b"".join(line(value) for value in lines))
    return path


BIG_LEAF = "b499"


@functools.cache
def big_file():
    """A session that is big enough for a saved index, and old enough for one that is believed."""
    folder = tempfile.TemporaryDirectory(prefix="big")
    path = Path(folder.name) / "big.jsonl"
    lines = [entry(f"b{n}", f"b{n - 1}" if n else None, "x" * 9000) for n in range(500)]
    path.write_bytes(b"".join(line(value) for value in [header(), *lines]))
    time.sleep(2.1)
    big_file.keep = folder
    return path


def ids(session):
    return [e.get("id") for e in session.get_entries()]


def ids_on_disk(path):
    """The ids of a file's entries as another program reads them: line by line, what is JSON."""
    return ids_in(path.read_bytes())


def ids_in(data):
    """The same of the bytes of a file."""
    found = []
    for text in data.split(b"\n"):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("type") != "session":
            found.append(value.get("id"))
    return found


def state(session):
    """What a failed operation must leave as it was."""
    return {
        "file": session.get_session_file(),
        "id": session.get_session_id(),
        "leaf": session.get_leaf_id(),
        "ids": ids(session),
        "name": session.get_session_name(),
        "path": list(session.path_ids()),
        "labels": [session.get_label(i) for i in ids(session)],
    }


def left_over(folder):
    """Temporary files in a folder."""
    return [name for name in os.listdir(folder) if TEMPORARY in name]


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def check_agrees(session, path):
    """Memory and file tell the same, and every line of the file ends in LF."""
    assert path.read_bytes().endswith(b"\n")
    with SessionManager.open(path, read_only=True) as again:
        assert ids(again) == ids(session)
        assert again.get_session_id() == session.get_session_id()
