"""What each durability asks of the system, shown by the system calls of a process."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from sessiontree import SessionManager

from .sessions import ids, line, make, make_version_1, user

PROGRAM = """
import os, sys
from sessiontree import SessionManager
folder, durability = sys.argv[1:]
message = {"role": "user", "content": "x", "timestamp": 1}
def step(name):
    os.stat("/step/" + name) if os.path.exists("/step/" + name) else None
options = {"durability": durability}
session = SessionManager.open(folder + "/s.jsonl", **options)
step("append"); session.append_message(message)
step("flush"); session.flush()
step("close"); session.close()
session = SessionManager.create("/code", folder + "/new/deep", **options)
os.rmdir(folder + "/new/deep"); os.rmdir(folder + "/new")
step("create"); session.append_message(message)
step("migrate"); SessionManager.open(folder + "/old.jsonl", **options)
from sessiontree import doctor
step("repair"); doctor.fix(folder + "/torn.jsonl")
step("end")
"""

LINKED = [("link", "session"), ("unlink", "temporary")]
WATCHED = "write,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,stat,statx,newfstatat"


def steps(tmp_path, durability):
    """The calls that matter of each step, in order."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    make(tmp_path / "s.jsonl")
    make_version_1(tmp_path / "old.jsonl")
    make(tmp_path / "torn.jsonl").chmod(0o600)
    with open(tmp_path / "torn.jsonl", "ab") as file:
        file.write(b'{"torn')
    log = tmp_path / "calls"
    command = [strace, "-f", "-y", "-o", str(log), "-e", f"trace={WATCHED}", sys.executable, "-c", PROGRAM]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [*command, str(tmp_path), durability], env=env, capture_output=True, text=True, check=False
    )
    if "ptrace" in done.stderr:
        pytest.skip("processes may not be traced here")
    assert done.returncode == 0, done.stderr
    found, now = {}, []
    for text in log.read_text().splitlines():
        name = re.search(r'"/step/(\w+)"', text)
        if name:
            now = found.setdefault(name[1], [])
        call = re.search(r"(write|fsync|fdatasync|rename|link|unlink)\w*\((.*)", text)
        if call and str(tmp_path) in call[2] and "= -1" not in text:
            now.append((call[1], target(call[2], str(tmp_path))))
    return found


def target(arguments, folder):
    """The last path of a call, short."""
    path = re.findall(rf"{re.escape(folder)}(/[^\">, ]*)?", arguments)[-1]
    if "sessiontree-tmp" in path:
        return "temporary"
    return "session" if path.endswith(".jsonl") else path or "/"


def test_os_only_writes(tmp_path):
    """durability="os", the default: no sync, neither by an append nor by flush() or close()."""
    found = steps(tmp_path, "os")
    assert found["append"] == [("write", "session")]
    assert found["flush"] == found["close"] == []
    assert [call for call in found["create"] if call[0] != "write"] == LINKED


def test_flush_syncs_when_it_is_asked_to(tmp_path):
    """durability="flush": an append only writes; flush() and close() sync."""
    found = steps(tmp_path, "flush")
    assert found["append"] == [("write", "session")]
    assert found["flush"] == found["close"] == [("fdatasync", "session")]


def test_fsync_syncs_every_append_and_the_folders_of_new_files(tmp_path):
    """durability="fsync": write, then sync; a new file before it has its name, then its folders."""
    found = steps(tmp_path, "fsync")
    assert found["append"] == [("write", "session"), ("fdatasync", "session")]
    created = found["create"]
    check_written_first(created)
    assert [call for call in created if call[0] != "write"] == [
        ("fsync", "temporary"),
        *LINKED,
        ("fsync", "/new/deep"),
        ("fsync", "/"),
        ("fsync", "/new"),
    ]


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_migration_is_on_disk_before_it_takes_the_place(tmp_path, durability):
    """Whatever the durability: write, sync, rename, sync of the folder."""
    calls = steps(tmp_path, durability)["migrate"]
    check_written_first(calls)
    assert calls[-3:] == [("fsync", "temporary"), ("rename", "session"), ("fsync", "/")]


def check_written_first(calls):
    """All writes come before the first sync."""
    names = [name for name, _ in calls]
    assert "write" in names[: names.index("fsync")]
    assert "write" not in names[names.index("fsync") :]


def test_a_repair_is_on_disk_before_it_takes_the_place(tmp_path):
    """What has no place in the new file is safe, then the old file's second name, then the new one."""
    calls = steps(tmp_path, "os")["repair"]
    check_written_first(calls)
    assert [call for call in calls if call[0] not in ("write", "unlink")] == [
        ("fsync", "temporary"),
        ("link", "/torn.jsonl.rejected"),
        ("fsync", "/"),
        ("link", "/torn.jsonl.bak"),
        ("fsync", "/"),
        ("fsync", "temporary"),
        ("rename", "session"),
        ("fsync", "/"),
    ]


# ---- the remembered leaf


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(folder))
    return folder


def leaf(path, **options):
    with SessionManager.open(path, **options) as session:
        return session.get_leaf_id()


def test_a_remembered_leaf_is_the_leaf_of_the_next_program(tmp_path, cache):
    """branch() and reset_leaf() are kept outside the file, and hold until something is appended."""
    path = make(tmp_path / "s.jsonl")
    data = path.read_bytes()
    with SessionManager.open(path, remember_leaf=True) as session:
        session.branch("e1")
    assert path.read_bytes() == data
    assert leaf(path, remember_leaf=True) == "e1"
    assert leaf(path, remember_leaf=True, read_only=True) == "e1"
    assert leaf(path) == "e2"
    with SessionManager.open(path, remember_leaf=True) as session:
        session.reset_leaf()
    assert leaf(path, remember_leaf=True) is None
    with open(path, "ab") as file:
        file.write(line({"type": "custom", "customType": "x", "id": "c1", "parentId": "e2"}))
    assert leaf(path, remember_leaf=True) == "c1"


def test_an_append_makes_the_last_entry_the_leaf_again(tmp_path, cache):
    """After an own append to the remembered branch the leaf is that entry, remembered or not."""
    path = make(tmp_path / "s.jsonl")
    with SessionManager.open(path, remember_leaf=True) as session:
        session.branch("e0")
        new = session.append_message(user("x"))
        assert session.get_entry(new)["parentId"] == "e0"
    assert leaf(path, remember_leaf=True) == leaf(path) == new


@pytest.mark.parametrize(
    "record", [b"", b"null", b"[]", b'{"leaf": 1}', b'{"state": 1, "leaf": "e0"}', b"\xff"]
)
def test_a_spoilt_record_is_no_record(tmp_path, cache, record):
    """Whatever lies in the cache, the session opens, at its last entry."""
    path = make(tmp_path / "s.jsonl")
    with SessionManager.open(path, remember_leaf=True) as session:
        session.branch("e0")
    (kept,) = (cache / "leaves").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    kept.write_bytes(record)
    assert leaf(path, remember_leaf=True) == "e2"


def test_a_leaf_that_is_not_remembered_leaves_no_trace(tmp_path, cache):
    """Without remember_leaf=True, and in a read-only session, nothing is kept."""
    path = make(tmp_path / "s.jsonl")
    for options in ({}, {"remember_leaf": True, "read_only": True}):
        with SessionManager.open(path, **options) as session:
            session.branch("e0")
    assert not cache.exists()
    (tmp_path / "file").touch()
    os.environ["SESSIONTREE_CACHE_DIR"] = str(tmp_path / "file" / "sub")
    with SessionManager.open(path, remember_leaf=True) as session:
        session.branch("e0")
        assert ids(session) == ["e0", "e1", "e2"]
