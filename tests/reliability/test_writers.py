"""Many at once: threads on one session, processes on one file, both sides of a fork."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sessiontree import SessionManager, forksafe
from sessiontree.exceptions import SessionClosedError

from .operations import quiet
from .sessions import check_agrees, counted, ids, ids_on_disk, make, text_of, user


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "s.jsonl")


def forked(work):
    """Run something in a child; its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            quiet()
            work()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        os._exit(status)
    return child


def wait(child, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "the child hangs"


def in_threads(count, work):
    """Run something in many threads; what they raised."""
    errors = []

    def guarded(n):
        try:
            work(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def check_chain(path, count):
    """All entries are there, each line is one, and each parent is in the file."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    found = ids_on_disk(path)
    assert len(found) == len(set(found)) == count
    assert data.count(b"\n") == count + 1
    with SessionManager.open(path, read_only=True) as session:
        assert not session.open_report
        assert session.get_entry_count() == count


def test_eight_threads_append_to_one_session(path):
    """Appends from many threads make one chain: each entry hangs on the one before it."""
    session = SessionManager.open(path)

    def work(n):
        for k in range(500):
            session.append_message(user(f"{n} {k}"))
            if k % 100 == 0:
                session.get_leaf_entry()
                assert list(session.get_entries()[-3:])

    assert in_threads(8, work) == []
    check_chain(path, 4003)
    assert len(session.path_ids()) == 4003
    check_agrees(session, path)
    counted("appends by 8 threads of one process to one session", 4000)


def test_readers_of_one_session_see_whole_entries_while_it_grows(path):
    """Threads that read, branch and refresh beside a writing one never see a row that is not theirs."""
    session, stop = SessionManager.open(path), threading.Event()

    def work(n):
        if n == 0:
            for k in range(300):
                session.append_message(user(f"{k}"))
            stop.set()
        while not stop.is_set():
            leaf = session.get_leaf_id()
            assert session.get_entry(leaf)["id"] == leaf
            assert session.get_branch()[0]["id"] == "e0"
            assert [node.id for node in session.get_tree()] == ["e0"]
            assert session.build_session_context().messages

    assert in_threads(4, work) == []
    check_chain(path, 303)


def use_for_ever(session):
    while True:
        session.get_leaf_entry()
        session.append_message(user("x"))


def test_closing_while_others_use_the_session(path):
    """A thread that uses a session which another one closes gets SessionClosedError, nothing worse."""
    session = SessionManager.open(path)

    def work(n):
        if n == 0:
            time.sleep(0.02)
            session.close()
            return
        with pytest.raises(SessionClosedError):
            use_for_ever(session)

    assert in_threads(3, work) == []


def append_500(path):
    session = SessionManager.open(path)
    for k in range(500):
        session.append_message(user(f"{os.getpid()} {k}"))
    assert len(ids(session)) >= 503


@contextlib.contextmanager
def followed(path):
    """`sessiontree follow` beside the writers; what it shows are the file's entries, in its order."""
    output = path.with_name("followed")
    command = [sys.executable, "-m", "sessiontree", "follow", str(path), "--json", "-n", "9999"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with open(output, "wb") as file:
        process = subprocess.Popen(command, stdout=file, env=env)
    try:
        yield
        end = time.monotonic() + 60
        while ids_on_disk(output) != ids_on_disk(path) and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        process.terminate()
        process.wait(30)
    assert ids_on_disk(output) == ids_on_disk(path)


def read_on(path, children):
    """Read while others write, in every way there is, and never see half a line; how often it was tried."""
    with followed(path):
        return look_on(path, children)


def look_on(path, children):
    reader, looks, running = SessionManager.open(path, read_only=True), 0, set(children)
    end = time.monotonic() + 120
    while running and time.monotonic() < end:
        before = reader.get_entry_count()
        new = reader.refresh()
        assert reader.get_entry_count() == before + new
        for entry in reader.get_entries()[before:]:
            assert len(entry["message"]["content"]) > 0
        with SessionManager.open(path, read_only=True) as fresh:
            assert fresh.get_entry_count() >= before + new
            assert not fresh.open_report.skipped
        (info,) = SessionManager.list("/code", str(path.parent))
        assert info.skipped_lines == 0
        assert info.message_count >= before + new
        assert not reader.open_report.skipped
        looks += 1
        running = {child for child in running if child.poll() is None}
    assert not running
    reader.refresh()
    assert ids(reader) == ids_on_disk(path)
    return looks


class Child:
    """A forked process that one can ask whether it has ended."""

    def __init__(self, work):
        self.number, self.status = forked(work), None

    def poll(self):
        if self.status is None:
            found, status = os.waitpid(self.number, os.WNOHANG)
            self.status = status if found else None
        return self.status


def test_eight_processes_append_to_one_file(path):
    """Eight processes append 500 entries each: all are there, none is glued, no parent is missing."""
    quiet()
    children = [Child(lambda: append_500(path)) for _ in range(8)]
    looks = read_on(path, children)
    assert [child.status for child in children] == [0] * 8
    check_chain(path, 4003)
    counted("appends by 8 processes to one file", 4000)
    counted("looks at it meanwhile: refresh, open, list; one process follows", looks)


class PiWriter:
    """The real pi, which appends 500 entries from a thread of its own."""

    def __init__(self, path):
        self.pi, self.theirs, self.errors = living_pi(), [], []
        self.pi.open(str(path))
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        try:
            for k in range(500):
                self.theirs.append(self.pi.call("appendMessage", user(f"pi {k}"), on="a"))
        except BaseException as error:
            self.errors.append(error)

    def poll(self):
        return None if self.thread.is_alive() else 0


def test_pi_is_one_of_eight_writers(path):
    """Seven processes and the real pi append 500 entries each; nothing of anybody's is lost."""
    quiet()
    pi = PiWriter(path)
    try:
        children = [Child(lambda: append_500(path)) for _ in range(7)]
        looks = read_on(path, [pi, *children])
    finally:
        pi.thread.join()
        pi.pi.close()
    assert pi.errors == []
    assert [child.status for child in children] == [0] * 7
    found = ids_on_disk(path)
    assert [i for i in found if i in set(pi.theirs)] == pi.theirs
    assert len(pi.theirs) == 500
    check_chain(path, 4003)
    counted("appends by 7 processes and the real pi to one file", 4000)
    counted("looks at that meanwhile: refresh, open, list; one process follows", looks)


PLAIN_WRITER = """
import sys, json
with open(sys.argv[1], "ab", buffering=0) as file:
    for n in range(500):
        line = {"type": "message", "id": f"p{n}", "parentId": "e2", "message": {"role": "user", "content": "x" * 3000}}
        file.write(json.dumps(line).encode() + b"\\n")
"""


def test_a_writer_without_locks_loses_nothing(path):
    """Beside a program that appends as pi does, without any lock, every entry of both is kept."""
    quiet()
    other = subprocess.Popen([sys.executable, "-c", PLAIN_WRITER, str(path)])
    session = SessionManager.open(path)
    mine = []
    while other.poll() is None or len(mine) < 300:
        mine.append(session.append_message(user("mine")))
    assert other.returncode == 0
    found = ids_on_disk(path)
    assert [i for i in found if i in set(mine)] == mine
    assert [i for i in found if i.startswith("p")] == [f"p{n}" for n in range(500)]
    session.refresh()
    assert ids(session) == found
    for n in (0, len(mine) // 2, len(mine) - 1):
        assert session.get_entry(mine[n])["message"]["content"] == "mine"
    assert list(session.path_ids()) == ["e0", "e1", "e2", *mine]
    check_agrees(session, path)
    counted("appends beside a writer without locks, and its own", len(mine) + 500)


def living_pi():
    sys.path.insert(0, str(Path(__file__).parent.parent / "interop"))
    try:
        import both
        import pi_install
    finally:
        del sys.path[0]
    try:
        return both.PiProcess()
    except pi_install.PiUnavailableError as why:
        pytest.skip(f"pi is not available: {why}")


def test_pi_appends_to_the_same_file(path):
    """Beside the real pi every entry of both is kept, and each has its parent."""
    pi = living_pi()
    quiet()
    try:
        pi.open(str(path))
        session = SessionManager.open(path)
        mine, theirs = [], []

        def work(n):
            for k in range(200):
                if n:
                    mine.append(session.append_message(user(f"{k}")))
                else:
                    theirs.append(pi.call("appendMessage", user(f"{k}"), on="a"))

        assert in_threads(2, work) == []
    finally:
        pi.close()
    assert len(mine) == len(theirs) == 200
    found = ids_on_disk(path)
    assert [i for i in found if i in set(mine)] == mine
    assert [i for i in found if i in set(theirs)] == theirs
    check_chain(path, 403)
    counted("appends beside the real pi, and its own", 400)


# ---- forks


def test_both_sides_of_a_fork_work_and_exclude_each_other(path):
    """After os.fork() parent and child append to the same session, and no entry is lost."""
    quiet()
    session = SessionManager.open(path)
    session.append_message(user("before"))

    def work():
        for k in range(200):
            session.append_message(user(f"child {k}"))
        assert len(list(session.get_entries())) >= 204

    child = forked(work)
    for k in range(200):
        session.append_message(user(f"parent {k}"))
    assert wait(child) == 0
    check_chain(path, 404)


def test_a_fork_while_threads_are_at_work_deadlocks_nobody(path):
    """Forks in the middle of other threads' appends: every child can use the session at once."""
    quiet()
    session, stop, forks = SessionManager.open(path), threading.Event(), 20

    def work(n):
        while not stop.is_set():
            session.append_message(user(f"{n}"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        results = [wait(forked(lambda: session.append_message(user("child"))), 20) for _ in range(forks)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert results == [0] * forks
    session.refresh()
    assert sum(e["message"]["content"] == "child" for e in session.get_entries()) == forks
    check_agrees(session, path)
    counted("forks while three threads append", forks)


def test_a_fork_does_not_wait_for_a_thread_that_hangs(path, monkeypatch):
    """A thread that holds a session for ever delays a fork only a little; the child scans anew."""
    monkeypatch.setattr(forksafe, "PATIENCE_SECONDS", 0.05)
    quiet()
    session, memory = SessionManager.open(path), SessionManager.in_memory("/code")
    session.branch("e1")
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with session._lock, memory._lock:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()

    def work():
        new = session.append_message(user("child"))
        assert session.get_entry(new)["parentId"] == "e1"
        with pytest.raises(SessionClosedError, match="forked while another thread"):
            memory.append_message(user("x"))

    try:
        assert wait(forked(work), 20) == 0
    finally:
        leave.set()
        thread.join()
    assert session.refresh() == 1
    check_agrees(session, path)


def test_a_writer_that_is_killed_with_the_lock_blocks_nobody(path):
    """The kernel takes the lock from a process that dies with it."""
    import fcntl

    reading, told = os.pipe()

    def hold():
        with open(path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(told, b"x")
            time.sleep(60)

    child = forked(hold)
    os.read(reading, 1)
    session = SessionManager.open(path)
    done = []
    thread = threading.Thread(target=lambda: done.append(session.append_message(user("x"))))
    thread.start()
    thread.join(0.1)
    assert not done
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    thread.join(10)
    assert ids_on_disk(path)[-1:] == done


def test_waiting_for_the_lock_can_be_interrupted(path):
    """Ctrl-C ends an append that waits for another process's lock; nothing is written."""
    import fcntl

    # A shell starts what runs in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    session = SessionManager.open(path)
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            session.append_message(user("x"))
    assert path.read_bytes() == text_of(3)
    session.append_message(user("x"))
    check_agrees(session, path)
