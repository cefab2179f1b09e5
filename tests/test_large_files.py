"""Half a gigabyte in little memory, and offsets beyond 4 GiB."""

import json
import os
import subprocess
import sys

import pytest
from sessiontree import SessionManager

HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/code"}\n'
ROWS = 120_000
KEPT = 50

PROBE = """
import json, sys
from sessiontree import SessionManager, jsontext

parsed = 0
loads = jsontext.loads

def counting(data):
    global parsed
    parsed += 1
    return loads(data)

jsontext.loads = counting
session = SessionManager.open(sys.argv[1], cache=False)
out = {"opened": parsed, "entries": len(session.get_entries())}
out["last"] = session.get_branch()[-1]["id"]
out["branch"] = parsed
out["messages"] = len(session.build_session_context().messages)
out["context"] = parsed
session.append_message({"role": "user", "content": "more", "timestamp": 0})
out["appended"] = parsed
out["again"] = len(session.build_session_context().messages)
out["total"] = parsed
with open("/proc/self/status") as status:
    out["peak_kb"] = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps(out))
"""


def write_large(path):
    """500 MB in one chain; a compaction near the end keeps 50 entries before it."""
    text = json.dumps("line of a file that was read\n" * 135)
    with open(path, "wb") as file:
        file.write(HEADER)
        parent = "null"
        for n in range(ROWS):
            if n == ROWS - KEPT:
                body = f'"type":"compaction","summary":"so far","firstKeptEntryId":"{n - KEPT:08x}","tokensBefore":9'
            else:
                role = ("user", "assistant")[n % 2]
                body = f'"type":"message","message":{{"role":"{role}","content":{text},"provider":"p","model":"m"}}'
            line = f'{{{body},"id":"{n:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z"}}\n'
            file.write(line.encode())
            parent = f'"{n:08x}"'


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_half_a_gigabyte_in_little_memory(tmp_path):
    """Opening parses the header alone, a context what it selects, an append nothing; under 60 MB."""
    path = tmp_path / "large.jsonl"
    write_large(path)
    assert path.stat().st_size > 480_000_000
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, str(path)], capture_output=True, text=True, check=True
        )
    finally:
        path.unlink()
    out = json.loads(done.stdout)
    assert out["entries"] == ROWS
    assert out["last"] == f"{ROWS - 1:08x}"
    assert out["messages"] == 2 * KEPT
    assert out["again"] == 2 * KEPT + 1
    assert out["opened"] <= 3
    assert out["branch"] - out["opened"] == 1
    assert out["context"] - out["branch"] <= 2 * KEPT + 5
    assert out["appended"] - out["context"] <= 2
    assert out["total"] - out["appended"] <= 3
    assert out["peak_kb"] < 60_000


@pytest.mark.slow
def test_entries_behind_four_gibibytes(tmp_path):
    """Offsets are wider than 32 bits, and a hole of 4 GiB is one skipped line, not 4 GiB of memory."""
    path = tmp_path / "sparse.jsonl"
    entry = b'{"type":"message","id":"%08x","parentId":%s,"message":{"role":"user","content":"x"}}\n'
    with path.open("wb") as file:
        file.write(HEADER + entry % (1, b"null"))
        file.seek((4 << 30) + 1000)
        file.write(b"\n" + entry % (2, b'"00000001"'))
    session = SessionManager.open(path, cache=False)
    assert [e["id"] for e in session.get_branch()] == ["00000001", "00000002"]
    assert session.columns()["offset"][1] == (4 << 30) + 1001
    assert session.open_report.skipped == 1
    assert session.open_report.skipped_lines[0].line == 3
    added = session.append_message({"role": "user", "content": "behind", "timestamp": 0})
    again = SessionManager.open(path, read_only=True, cache=False)
    assert again.get_leaf_id() == added
    assert os.stat(path).st_blocks * 512 < 1 << 20
