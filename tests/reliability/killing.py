"""Kills writers at any moment, and looks at what they leave.

Run as a program with ``faults.c`` preloaded:

* ``python -m reliability.killing calls`` kills every writing operation before each of its system calls,
  and in the middle of each write (``short``: before some of them, where there are very many);
* ``python -m reliability.killing times N`` kills N writers that do one thing after another, each at a
  random time.

A writer says what it has done, through a pipe, once it is done; what it said must be there afterwards.
"""

import collections
import contextlib
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from sessiontree import SessionManager, doctor
from sessiontree.catalog import Catalog
from sessiontree.settings import SettingsManager

from .faulting import CUT, KINDS, WRITE, Faults, calls
from .operations import CASES, Repair, quiet
from .sessions import BIG_LEAF, big_file, ids_on_disk, left_over, make, make_version_1, reply, user

KILL = -1
PATIENCE = 60


def forked(work):
    """Run something in a child; the child's number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return child


def ended(child):
    """Wait for a child; how it ended. One that hangs is a failure of its own."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.0002)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the writer hangs")


def kill_at(kind, faults, what, arm):
    with tempfile.TemporaryDirectory() as folder:
        case = kind(Path(folder))

        def work():
            faults.disarm()
            arm()
            case.act()

        status = ended(forked(work))
        assert os.WIFSIGNALED(status) or status == 0, f"{kind.__name__}: {what}: status {status}"
        try:
            case.check_killed()
        except BaseException as error:
            error.add_note(f"{kind.__name__}: killed at {what}")
            raise
    return os.WIFSIGNALED(status)


def kill_at_calls(faults, *, short=False):
    killed = collections.Counter()
    for kind in CASES:
        for number, count in enumerate(calls(kind, faults)):
            for nth in range(1, count + 1, kind.stride if short else 1):
                for stop in (-1, 0, 1, 7, 60, 150, 200) if number == WRITE else (-1,):
                    arm = lambda: faults.arm(number, nth, KILL, bytes=stop)  # noqa: B023, E731
                    what = f"{KINDS[number]} {nth} {stop}"
                    killed[kind.__name__] += kill_at(kind, faults, what, arm)
    return killed


# ---- at random times


class Writer:
    """A process that writes whatever there is to write, and tells what it has written."""

    def __init__(self, folder, told, seed):
        self.folder = folder
        self.told = told
        self.random = random.Random(seed)
        self.session = SessionManager.open(folder / "s.jsonl", durability=self.random.choice(["os", "fsync"]))

    def run(self):
        deeds = [self.append] * 6 + [self.append_many, self.label, self.summary, self.branched]
        deeds += [self.fork, self.create, self.adopt, self.settings, self.restore, self.migrate]
        deeds += [self.repair, self.save_index, self.refresh_catalog, self.remember]
        while True:
            self.random.choice(deeds)()

    def tell(self, path, *new):
        os.write(self.told, json.dumps([str(path), list(new)]).encode() + b"\n")

    def text(self):
        return "x" * int(2 ** self.random.uniform(0, 18))

    def append(self):
        new = self.session.append_message(user(self.text()))
        self.tell(self.session.get_session_file(), new)

    def append_many(self):
        new = self.session.append_many([user(self.text()), reply(self.text())] * self.random.randint(1, 20))
        self.tell(self.session.get_session_file(), *new)

    def label(self):
        self.tell(self.session.get_session_file(), self.session.append_label_change("e0", self.text()[:99]))

    def summary(self):
        self.tell(self.session.get_session_file(), self.session.branch_with_summary("e1", self.text()))

    def branched(self):
        copy = self.session.create_branched_session(self.session.get_leaf_id())
        self.tell(copy, *self.session.path_ids())
        self.session.set_session_file(self.folder / "s.jsonl")

    def fork(self):
        with SessionManager.fork_from(self.folder / "s.jsonl", "/other", str(self.folder / "forks")) as copy:
            self.tell(copy.get_session_file(), "e0", "e1", "e2")

    def create(self):
        with SessionManager.create("/code", str(self.folder / "new")) as session:
            first = session.append_model_change("p", "m")
            self.tell(session.get_session_file(), first, session.append_message(user(self.text())))

    def adopt(self):
        path = self.folder / f"empty{self.random.random()}.jsonl"
        path.touch()
        with SessionManager.open(path, cwd_override="/code") as session:
            self.tell(path, session.append_message(user(self.text())))

    def restore(self):
        path = make(self.folder / f"gone{self.random.random()}.jsonl")
        with SessionManager.open(path) as session:
            path.unlink()
            self.tell(path, "e0", "e2", session.append_message(user(self.text())))

    def migrate(self):
        path = make_version_1(self.folder / f"old{self.random.random()}.jsonl", self.random.randint(1, 300))
        with SessionManager.open(path) as session:
            self.tell(path, *(e["id"] for e in session.get_entries()))

    def repair(self):
        path = self.folder / f"damaged{self.random.random()}.jsonl"
        path.write_bytes(Repair.damaged)
        doctor.fix(path)
        self.tell(path, *Repair.found)

    def save_index(self):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder / "cache" / "index")
        SessionManager.open(big_file(), read_only=True).close()
        self.tell(big_file(), BIG_LEAF)

    def refresh_catalog(self):
        with Catalog(self.folder / "catalog.sqlite3") as catalog:
            catalog.refresh([self.folder])

    def remember(self):
        with SessionManager.open(self.folder / "s.jsonl", remember_leaf=True) as session:
            session.branch("e1")

    def settings(self):
        value = self.random.randint(1, 10**6)
        SettingsManager.create("/code", agent_dir=str(self.folder)).set("compaction.reserveTokens", value)


def kill_at_a_time(seed, seen):
    """Kill one writer, and count what was met."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["SESSIONTREE_CACHE_DIR"] = str(folder / "cache")
        make(folder / "s.jsonl")
        (folder / "settings.json").write_text('{"keep": 1}')
        reading, told = os.pipe()
        child = forked(lambda: Writer(folder, told, seed).run())
        os.close(told)
        said = listen(reading, child, rng.uniform(0.0, 0.15))
        os.close(reading)
        seen["killed-at-a-random-time"] += 1
        seen["acknowledged-deeds"] += len(said)
        seen["left-half-done"] += half_done(folder)
        try:
            check(folder, said)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def half_done(folder):
    """Whether the kill met a deed in its middle: a torn line, or a temporary file."""
    torn = any(
        not path.read_bytes().endswith(b"\n") for path in folder.rglob("*.jsonl") if path.stat().st_size
    )
    return torn or any(left_over(path.parent) for path in folder.rglob("*"))


def listen(reading, child, seconds):
    """What a writer says until it is killed."""
    end, data, alive = time.monotonic() + seconds, b"", True
    while True:
        if alive and time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
            alive = False
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()) if alive else None)
        part = os.read(reading, 1 << 16) if ready else b""
        data += part
        if ready and not part:
            break
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), f"the writer ended by itself: {status}"
    return [json.loads(text) for text in data.split(b"\n")[:-1]]


def check(folder, said):
    """All that was said is there; every session opens and goes on; nothing else is left."""
    for path, new in said:
        found = set(ids_on_disk(Path(path)))
        missing = [i for i in new if i not in found]
        assert not missing, (path, missing)
    for path in folder.rglob("*.jsonl"):
        before = ids_on_disk(path)
        with SessionManager.open(path, cwd_override="/code") as session:
            new = session.append_message(user("next"))
        assert ids_on_disk(path)[-1] == new
        if b'"version":3' in path.read_bytes()[:200] and None not in before:
            assert ids_on_disk(path)[:-1] == before
    assert json.loads((folder / "settings.json").read_text())["keep"] == 1
    SessionManager.open(folder / "s.jsonl").close()
    check_caches(folder)
    for place in {path.parent for path in folder.rglob("*.jsonl")}:
        assert not left_over(place), left_over(place)


def check_caches(folder):
    """Caches work, whatever was left of them, and hold nothing that nobody needs."""
    with Catalog(folder / "catalog.sqlite3") as catalog:
        catalog.refresh([folder])
        assert catalog.check() == []
        found = {found.info.path for found in catalog.sessions()}
    assert found == {str(path) for path in folder.rglob("*.jsonl")}
    with SessionManager.open(big_file(), read_only=True) as session:
        assert session.get_leaf_id() == BIG_LEAF
    saved = folder / "cache" / "index"
    assert {path.suffix for path in saved.iterdir()} <= {".index", ".tmp"}
    shutil.rmtree(saved)
    SessionManager.open(big_file(), read_only=True).close()
    assert [path.suffix for path in saved.iterdir()] == [".index"]


def main():
    quiet()
    big_file()
    if sys.argv[1] == "calls":
        for name, count in kill_at_calls(Faults(), short="short" in sys.argv).items():
            print(f"killed-in-{name}", count)
        return
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**9)
    print("seed", seed, flush=True)
    seen = collections.Counter()
    for n in range(int(sys.argv[2])):
        kill_at_a_time(seed + n, seen)
    for what, count in seen.items():
        print(what, count)


if __name__ == "__main__":
    assert CUT
    main()
