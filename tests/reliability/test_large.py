"""Many bytes, many entries, many files, in little address space and with few descriptors."""

import json
import os
import subprocess
import sys

import pytest

from .sessions import counted, header, line
from .test_limits import HUGE, chain

ROOM = 256 << 20
ROW = 100
"""Bytes an entry may take in memory, generously: the index has 45, and doubles while it grows."""

TIGHT = """
import json, resource, sys
from sessiontree import SessionManager
path, room = sys.argv[1], int(sys.argv[2])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
with SessionManager.open(path, cache=False) as session:
    leaf = session.get_leaf_id()
    new = session.append_message({"role": "user", "content": "next", "timestamp": 1})
    print(json.dumps({
        "count": session.get_entry_count(),
        "path": len(session.path_rows()),
        "leaf": leaf,
        "parent": session.get_entry(new)["parentId"],
        "last": len(json.dumps(session.get_entry(leaf))),
        "skipped": session.open_report.skipped,
    }))
"""

LISTED = """
import json, os, resource, sys
from sessiontree import SessionManager
folder = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
all_of_them = SessionManager.list("/code", folder)
print(json.dumps({
    "all": len(all_of_them),
    "ids": len({info.id for info in all_of_them}),
    "newest": len(SessionManager.list("/code", folder, limit=10)),
    "found": SessionManager.find_by_id("/code", "s77777", folder),
}))
"""


def asked(program, *arguments):
    """What a program of its own process prints."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is looked up in /proc")


@needs_proc
def test_many_entries_in_little_address_space(tmp_path):
    """200,000 entries are opened and appended to in 256 MB of address space over the index."""
    path = chain(tmp_path / "s.jsonl", 200_000)
    found = asked(TIGHT, path, ROOM + 200_000 * ROW)
    assert (found["count"], found["path"], found["skipped"]) == (200_001, 200_001, 0)
    assert found["leaf"] == found["parent"] == f"{199_999:08x}"
    counted("entries in 256 MB of address space over the index", 200_000)


@pytest.mark.slow
@pytest.mark.skipif(not HUGE, reason="SESSIONTREE_HUGE=1 asks for it: 5 GB of disk")
@needs_proc
def test_five_gigabytes_in_little_address_space(tmp_path):
    """A file of 5 GB is opened, read at its end and appended to in 256 MB of address space."""
    path, count = tmp_path / "s.jsonl", 5 << 10
    body = b"x" * (1 << 20)
    with open(path, "wb", buffering=0) as file:
        file.write(line(header()))
        parent = b"null"
        for n in range(count):
            start = b'{"type":"custom","customType":"x","id":"%08x","parentId":%s,"data":"' % (n, parent)
            file.write(start + body + b'"}\n')
            parent = b'"%08x"' % n
    size = path.stat().st_size
    try:
        found = asked(TIGHT, path, ROOM)
    finally:
        path.unlink()
    assert size > 5 << 30
    assert (found["count"], found["path"], found["skipped"]) == (count + 1, count + 1, 0)
    assert found["leaf"] == found["parent"] == f"{count - 1:08x}"
    assert found["last"] > 1 << 20
    counted("bytes in one file, opened in 256 MB of address space", size)


@pytest.mark.slow
def test_a_hundred_thousand_files(tmp_path):
    """100,000 sessions in one folder are listed, and one of them found, with 64 descriptors."""
    for n in range(100_000):
        (tmp_path / f"2026-01-01T00-00-00-000Z_s{n}.jsonl").write_bytes(line(header(f"s{n}")))
    found = asked(LISTED, tmp_path)
    assert (found["all"], found["ids"], found["newest"]) == (100_000, 100_000, 10)
    assert found["found"] == str(tmp_path / "2026-01-01T00-00-00-000Z_s77777.jsonl")
    counted("files in one folder, listed with 64 descriptors", 100_000)
