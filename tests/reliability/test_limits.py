"""Sizes and names at their limits: millions of entries, a line of a gigabyte, deep bodies, odd paths."""

import gc
import json
import os
import resource
import subprocess
import sys

import pytest
from sessiontree import SessionManager

from .sessions import check_agrees, counted, header, ids, line, make, user

PATH_MAX = 4096
HUGE = os.environ.get("SESSIONTREE_HUGE") == "1"
"""Also the sizes that take minutes and gigabytes of disk."""


def chain(path, count):
    """A session of so many entries, each the child of the one before."""
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(line(header()))
        parent = "null"
        for n in range(count):
            file.write(
                b'{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z",'
                b'"message":{"role":"user","content":"%d","timestamp":1}}\n' % (n, parent.encode(), n)
            )
            parent = f'"{n:08x}"'
    return path


def check_chain(path, count):
    """Everything that walks goes from end to end, without recursion, and ends."""
    last = f"{count - 1:08x}"
    with SessionManager.open(path) as session:
        assert session.get_entry_count() == count
        assert session.get_leaf_id() == last
        assert session.path_ids()[-1] == last
        assert len(session.path_rows()) == count
        assert session.common_ancestor("00000000", last) == "00000000"
        (node,) = session.get_tree()
        nodes = []
        while node.children and len(nodes) < 3000:
            nodes.append(node)
            (node,) = node.children
        new = session.append_message(user("next"))
        assert session.get_entry(new)["parentId"] == last
        del node, nodes
    gc.collect()


def test_a_chain_of_many_entries(tmp_path):
    """200,000 entries in one chain: opened, walked, branched and appended to."""
    path = chain(tmp_path / "s.jsonl", 200_000)
    check_chain(path, 200_000)
    with SessionManager.open(path) as session:
        copy = session.create_branched_session(f"{150_000:08x}")
        assert session.get_entry_count() == 150_001
    assert os.path.getsize(copy) > 150_000 * 100
    counted("entries in one chain: opened, walked, branched, appended to", 200_000)


@pytest.mark.slow
def test_a_context_of_a_million_messages(tmp_path):
    """The context of a chain of 1,000,000 messages has them all, and goes away without recursion."""
    path = chain(tmp_path / "s.jsonl", 1_000_000)
    with SessionManager.open(path, read_only=True) as session:
        messages = session.build_session_context().messages
        assert len(messages) == 1_000_000
        assert messages[-1]["content"] == "999999"
        del messages
    gc.collect()
    counted("messages in one context", 1_000_000)


@pytest.mark.slow
@pytest.mark.skipif(not HUGE, reason="SESSIONTREE_HUGE=1 asks for it: 0.9 GB of disk")
def test_five_million_entries(tmp_path):
    """5,000,000 entries in one chain are opened, walked and appended to."""
    check_chain(chain(tmp_path / "s.jsonl", 5_000_000), 5_000_000)
    counted("entries in one chain, the largest", 5_000_000)


@pytest.mark.slow
@pytest.mark.skipif(not HUGE, reason="SESSIONTREE_HUGE=1 asks for it: 1 GB of disk and 2 GB of memory")
def test_a_line_of_a_gigabyte(tmp_path):
    """A body of 1 GB in one line is indexed, read back, and stands in nobody's way."""
    path = make(tmp_path / "s.jsonl")
    size = 1 << 30
    with open(path, "ab", buffering=0) as file:
        file.write(b'{"type":"custom","customType":"big","id":"big","parentId":"e2","data":"')
        file.writelines(b"x" * (1 << 20) for _ in range(size >> 20))
        file.write(b'"}\n')
    with SessionManager.open(path) as session:
        assert session.get_leaf_id() == "big"
        session.append_message(user("next"))
        assert len(session.get_entry("big")["data"]) == size
    counted("bytes in one line", size)


TIGHT = """
import resource, sys
from sessiontree import SessionManager
session = SessionManager.open(sys.argv[1], read_only=True)
assert session.get_leaf_id() == "big"
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
try:
    session.get_entry("big")
except MemoryError as error:
    print("MemoryError")
assert session.get_entry("e1")["id"] == "e1"
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is looked up in /proc")
def test_a_line_that_does_not_fit_into_memory_is_memory_error(tmp_path):
    """A line for which there is no room is MemoryError and not the end of the process."""
    path = make(tmp_path / "s.jsonl")
    with open(path, "ab") as file:
        file.write(b'{"type":"custom","id":"big","parentId":"e2","data":"' + b"x" * (200 << 20) + b'"}\n')
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", TIGHT, str(path)], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "MemoryError\n"), done.stderr


def test_deep_bodies(tmp_path):
    """100,000 levels in a body are read, copied and written, without recursion."""
    path = make(tmp_path / "s.jsonl")
    deep = b"[" * 100_000 + b"]" * 100_000
    with open(path, "ab") as file:
        file.write(b'{"type":"custom","customType":"x","id":"d","parentId":"e2","data":' + deep + b"}\n")
    with SessionManager.open(path) as session:
        data = session.get_entry("d")["data"]
        levels, at = 0, data
        while at:
            (at,) = at
            levels += 1
        assert levels == 99_999
        new = session.append_custom_entry("copy", data)
        del at, data
        session.append_message(user("after"))
        assert session.get_label(new) is None
    with SessionManager.open(path, read_only=True) as again:
        assert len(ids(again)) == 6


def test_names_in_any_encoding(tmp_path):
    """Folders and files whose names are no UTF-8 hold sessions like any other."""
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\xff\n\x1b[31m")
    with SessionManager.create("/code", folder) as session:
        session.append_message(user("hello"))
        path = session.get_session_file()
        branched = session.create_branched_session(session.get_leaf_id())
    assert sorted(os.listdir(os.fsencode(folder))) == sorted(
        os.path.basename(os.fsencode(name)) for name in (path, branched)
    )
    with SessionManager.fork_from(path, "/other", folder) as copy:
        assert len(ids(copy)) == 1
    with pytest.raises(IsADirectoryError) as caught:
        SessionManager.open(folder)
    assert os.fsencode(caught.value.filename) == os.fsencode(folder)


def test_paths_as_long_as_they_may_be(tmp_path):
    """A path of nearly 4,096 bytes works; a longer one is an OSError that changes nothing."""
    folder = str(tmp_path)
    while len(folder) < PATH_MAX - 400:
        folder = os.path.join(folder, "x" * 200)
    folder = os.path.join(folder, "y" * (PATH_MAX - 120 - len(folder)))
    session = SessionManager.create("/code", folder)
    session.append_message(user("hello"))
    path = session.get_session_file()
    assert PATH_MAX - 60 < len(path) < PATH_MAX
    session.append_message(user("more"))
    check_agrees(session, type(tmp_path)(path))
    with pytest.raises(OSError) as caught:
        SessionManager.open(os.path.join(folder, "z" * 250 + ".jsonl"), cwd_override="/code")
    assert caught.value.filename is not None
    assert len(os.listdir(folder)) == 1


def test_names_as_long_as_they_may_be(tmp_path):
    """A file name of 255 bytes works: temporary files have names of their own."""
    path = tmp_path / ("n" * 249 + ".jsonl")
    with SessionManager.open(path, cwd_override="/code") as session:
        session.append_message(user("hello"))
        check_agrees(session, path)


def test_few_open_files(tmp_path):
    """With 64 open files a process works on 20 sessions at once, and an error names what is missing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 10
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 54, hard))
    sessions = []
    try:
        for n in range(20):
            sessions.append(SessionManager.open(make(tmp_path / f"{n}.jsonl", session_id=f"s{n}")))
            sessions[-1].append_message(user("x"))
        with pytest.raises(OSError) as caught:
            sessions.extend(SessionManager.open(tmp_path / "0.jsonl") for _ in range(40))
        assert caught.value.errno == 24
        for session in sessions[20:]:
            session.close()
        assert all(session.append_message(user("y")) for session in sessions[:20])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for session in sessions:
            session.close()
    assert json.loads((tmp_path / "0.jsonl").read_bytes().splitlines()[-1])["message"]["content"] == "y"
