"""Random sessions are damaged at random; a repair loses nothing that could be read, and no byte."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sessiontree import SessionManager, doctor, jsontext
from sessiontree.exceptions import InvalidSessionError

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}


def entries(choice: random.Random, count: int) -> list[dict]:
    """A session as pi writes one, with branches, labels, compactions, calls and results."""
    made: list[dict] = []
    for n in range(count):
        stamp = f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}.000Z"
        parent = choice.choice([made[-1]["id"], choice.choice(made)["id"]]) if made else None
        kind = (
            choice.choice(["message"] * 5 + ["label", "compaction", "custom", "model_change"])
            if made
            else "message"
        )
        entry = {"type": kind, "id": f"{choice.getrandbits(32):08x}", "parentId": parent, "timestamp": stamp}
        match kind:
            case "message":
                text = choice.choice(
                    ["plain", 'quotes " and \\', '{"type":"message","id":"x"}', "ü€😀\u2028", "\0\x1b"]
                )
                entry["message"] = {"role": "user", "content": text * choice.choice([1, 1, 300])}
            case "label":
                entry |= {"targetId": choice.choice(made)["id"], "label": "x"}
            case "compaction":
                entry |= {"summary": "s", "firstKeptEntryId": parent, "tokensBefore": 1}
        made.append(entry)
    return made


def damaged(choice: random.Random, data: bytes) -> bytes:
    """Do to a file what crashes, full disks and careless programs do, below its first line."""
    start = data.index(b"\n") + 1
    at, to = sorted(choice.randrange(start, len(data) + 1) for _ in range(2))
    lines = data[start:].splitlines(keepends=True)
    match choice.randrange(9):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[to:]
        case 2:
            return data[:at] + bytes(choice.choice([1, 50, 5000])) + data[at:]
        case 3:
            return data[:at] + bytes(to - at) + data[to:]
        case 4:
            return data[:at] + choice.randbytes(choice.randrange(9)) + data[to:]
        case 5:
            return data[:at] + data[at:].replace(b"\n", b"", 1)
        case 6 if lines:
            return data + choice.choice(lines)
        case 7:
            choice.shuffle(lines)
            return data[:start] + b"".join(lines)
        case _:
            return (
                data[:at]
                + choice.choice([b"\n", b"\n\n", b"{", b'"', b"}", b"\r\n", b"5\n", b"\xff"])
                + data[at:]
            )


def readable(data: bytes) -> list[dict]:
    """The entries that a reader finds in a file, in order, as far as their contents go."""
    found = []
    for line in data.split(b"\n"):
        try:
            value = jsontext.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("type") != "session":
            found.append({key: value[key] for key in value if key not in NAMING})
    return found


NAMING = {"id", "parentId", "targetId", "firstKeptEntryId", "fromId"}


def is_within(few: list, many: list) -> bool:
    """Whether all of these are among those, in this order."""
    rest = iter(many)
    return all(any(one == other for other in rest) for one in few)


def check_repair(folder: Path, data: bytes) -> None:
    """Repair a file, and look at everything that must hold then."""
    path = folder / "s.jsonl"
    path.write_bytes(data)
    path.chmod(0o600)
    before = doctor.check(path)
    after = doctor.fix(path)
    repaired = path.read_bytes()
    assert not after.fixable
    assert (repaired == data) == (not before.fixable) == (after.backup is None)
    if after.backup:
        assert Path(after.backup).read_bytes() == data
    assert is_within(readable(data), readable(repaired))
    assert set(os.listdir(folder)) <= {"s.jsonl", "s.jsonl.bak", "s.jsonl.rejected"}
    rejected = Path(after.rejected).read_bytes() if after.rejected else b""
    if not (before.counts.keys() & {"duplicate", "cycle", "missing-parent"}):
        # No id has changed: every byte that is no newline or blank is in one of the two, and in no other.
        assert sorted((repaired + rejected).translate(None, b"\n\r\t ")) == sorted(
            data.translate(None, b"\n\r\t ")
        )
    files = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    assert doctor.fix(path).backup is None
    assert files == {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    with SessionManager.open(str(path), read_only=True) as session:
        ids = [e["id"] for e in session.get_entries() if isinstance(e, dict) and isinstance(e.get("id"), str)]
        assert len(ids) == len(set(ids))
        for id in ids:
            assert not session.get_branch(id)[0].get("parentId")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@example(0, 3, 1)
@given(st.integers(0, 1 << 32), st.integers(1, 25), st.integers(1, 5))
def test_random_damage(seed, count, times):
    """The repaired file opens, has every entry that could be read, and a second repair does nothing."""
    choice = random.Random(seed)
    lines = [HEADER, *entries(choice, count)]
    data = b"".join(json.dumps(line, ensure_ascii=choice.random() < 0.5).encode() + b"\n" for line in lines)
    if choice.random() < 0.5:
        data = data.replace(b'": ', b'":').replace(b', "', b',"')
    for _ in range(times):
        data = damaged(choice, data)
    with tempfile.TemporaryDirectory() as folder:
        check_repair(Path(folder), data)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(data):
    """Any bytes behind a header are looked at and repaired; without one they are left alone."""
    header = json.dumps(HEADER).encode()
    with tempfile.TemporaryDirectory() as folder:
        check_repair(Path(folder), header + b"\n" + data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_bytes(data)
        try:
            doctor.fix(path)
        except InvalidSessionError:
            assert path.read_bytes() == data


def test_a_kill_on_the_way_loses_nothing(tmp_path):
    """Whenever a repair is killed, the file is the old one or the new one, and the next repair ends the work."""
    choice = random.Random(1)
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(line).encode() for line in [HEADER, *entries(choice, 20_000)]]
    lines[3:3] = [b"no json", bytes(2_000_000)]
    old = b"\n".join(lines)
    path.write_bytes(old)
    command = [
        sys.executable,
        "-c",
        "import sys; from sessiontree.doctor import fix; print(1, flush=True); fix(sys.argv[1])",
    ]
    new, took = None, 0.0
    for kill in range(12):
        for left in tmp_path.iterdir():
            left.unlink()
        path.write_bytes(old)
        repair = subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE)
        repair.stdout.readline()
        began = time.monotonic()
        if kill:
            time.sleep(took * (kill - 1) / 8)
            repair.kill()
        repair.communicate()
        took = took if kill else time.monotonic() - began
        new = new or path.read_bytes()
        assert path.read_bytes() in (old, new)
        doctor.fix(path)
        assert path.read_bytes() == new
        assert not [name for name in os.listdir(tmp_path) if not name.startswith("s.jsonl")]
        assert any((tmp_path / name).read_bytes() == old for name in os.listdir(tmp_path) if ".bak" in name)
        doctor.fix(path)
        assert path.read_bytes() == new
