"""The operations that write, each as a case: what is there before, the deed, and what must be there then.

Both the injected faults and the kills are tried on all of them.
"""

import os
import shutil
import time
import warnings

from sessiontree import SessionManager, doctor
from sessiontree.catalog import Catalog
from sessiontree.settings import SettingsManager

from .sessions import (
    BIG_LEAF,
    big_file,
    entry,
    ids,
    ids_in,
    ids_on_disk,
    left_over,
    line,
    make,
    make_version_1,
    reply,
    state,
    text_of,
    user,
)


def whole_lines(path):
    """The ids of the entries in a file whose LF is there."""
    with open(path, "rb") as file:
        data = file.read()
    return ids_in(data[: data.rfind(b"\n") + 1])


class Case:
    """One operation on fresh files in a folder of its own."""

    durability = "os"
    cut_fails = False
    names_its_file = True
    spared = ()
    stride = 1
    """In short runs one of so many system calls is tried."""
    step = 1
    """Writes are stopped at one of so many bytes."""
    long = "x" * 40

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "s.jsonl"
        self.prepare()
        self.remember()

    def prepare(self):
        """Make what is there before."""
        make(self.path)
        self.session = SessionManager.open(self.path, durability=self.durability)

    def remember(self):
        self.before = state(self.session)
        self.on_disk = self.disk()

    def disk(self):
        """The ids that each session file holds; bytes that an append may seal do not matter."""
        names = [name for name in os.listdir(self.folder) if name.endswith(".jsonl")]
        return {name: ids_on_disk(self.folder / name) for name in names if (self.folder / name).is_file()}

    def act(self):
        self.new = self.session.append_message(user(self.long))

    def check_failed(self):
        """Nothing has changed, in memory and on disk."""
        if self.cut_fails:
            self.check_agrees()
        else:
            assert state(self.session) == self.before
        self.check_disk()

    def check_said(self, error):
        """The error of a failed operation tells what there is to tell."""

    def check_agrees(self):
        """What could not be taken back is in the file and in memory; the leaf has not moved."""
        assert self.session.get_leaf_id() == self.before["leaf"]
        path = self.session.get_session_file()
        if path is not None and os.path.exists(path):
            assert ids(self.session) == whole_lines(path)

    def check_disk(self):
        """Nothing has changed on disk; but what cannot be taken back may be there as whole lines."""
        now = self.disk()
        if self.cut_fails and isinstance(now, dict):
            now = {name: found[: len(self.on_disk.get(name, ()))] for name, found in now.items()}
        assert now == self.on_disk

    def check_done(self):
        """All is there, in memory and on disk."""
        assert ids(self.session)[-1] == self.new == self.session.get_leaf_id()
        self.check_sound(self.session.get_session_file())

    def check_sound(self, path):
        """The file opens, holds what memory holds, and takes the next append."""
        with SessionManager.open(path) as again:
            assert ids(again) == ids(self.session)
            new = again.append_message(user("next"))
        assert ids_on_disk(type(self.path)(path))[-1] == new
        assert not left_over(os.path.dirname(path))

    # ---- the process that did it was killed

    def check_killed(self):
        """What was acknowledged is there; the session opens, and the next append works."""
        self.check_goes_on(self.path, self.before["ids"])

    def check_goes_on(self, path, first):
        """A file holds these entries first of all, and takes another one; nothing else lies around."""
        with SessionManager.open(path, cwd_override="/code") as again:
            assert ids(again)[: len(first)] == first
            assert all(isinstance(i, str) for i in ids(again))
            new = again.append_message(user("next"))
        found = ids_on_disk(path)
        assert found[: len(first)] == first
        assert found[-1] == new
        assert not left_over(path.parent)


class Append(Case):
    pass


class AppendDurably(Case):
    durability = "fsync"


class AppendMany(Case):
    def act(self):
        self.new = self.session.append_many([user(self.long), reply(self.long), user("last")])[-1]

    def check_said(self, error):
        stay = len(ids(self.session)) - len(self.before["ids"])
        assert (f"the first {stay} of the new entries" in str(error)) == (stay > 0), (stay, error)


class AppendToTornTail(Case):
    def prepare(self):
        self.path.write_bytes(text_of(3) + b'{"torn')
        self.session = SessionManager.open(self.path)


class AppendBehindAnother(Case):
    def prepare(self):
        super().prepare()
        with open(self.path, "ab") as file:
            file.write(line(entry("f1", "e2")) + b'{"torn')

    def check_failed(self):
        """The entries of others may have been taken in; the own leaf stands."""
        assert self.session.get_leaf_id() == self.before["leaf"]
        if self.cut_fails:
            self.check_agrees()
        else:
            assert ids(self.session) in (self.before["ids"], [*self.before["ids"], "f1"])
        self.check_disk()


class Label(Case):
    def act(self):
        self.new = self.session.append_label_change("e0", "label")


class BranchWithSummary(Case):
    def act(self):
        self.new = self.session.branch_with_summary("e0", self.long)


class Create(Case):
    """The first message of a new session, whose folder is made as well."""

    def prepare(self):
        where = self.folder / "new" / "folder"
        self.session = SessionManager.create("/code", str(where), durability=self.durability)
        self.session.append_model_change("p", "m")
        shutil.rmtree(self.folder / "new")

    def disk(self):
        found = [name for _, _, files in os.walk(self.folder) for name in files]
        return [name for name in found if name.endswith(".jsonl")]

    def check_killed(self):
        path = type(self.path)(self.session.get_session_file())
        self.check_goes_on(path, self.before["ids"] if path.exists() else [])


class CreateDurably(Create):
    durability = "fsync"


class AdoptEmpty(Case):
    def prepare(self):
        self.path.touch()
        self.session = SessionManager.open(self.path, cwd_override="/code")

    def disk(self):
        return self.path.read_bytes()

    def check_killed(self):
        assert self.path.stat().st_size == 0 or len(ids_on_disk(self.path)) == 1
        super().check_killed()


class DanglingLink(Case):
    def prepare(self):
        self.path.symlink_to("target.jsonl")
        self.session = SessionManager.open(self.path, cwd_override="/code")


class Rebuild(Case):
    """An append to a file that was deleted."""

    def prepare(self):
        super().prepare()
        self.path.unlink()

    def check_failed(self):
        """The file may have been written anew without the new entry."""
        assert state(self.session) == self.before
        if self.path.exists():
            self.on_disk = {"s.jsonl": ["e0", "e1", "e2"]}
        self.check_disk()

    def check_killed(self):
        """What still has the file open restores it."""
        self.session.append_message(user("restored"))
        super().check_killed()


class Branched(Case):
    def prepare(self):
        super().prepare()
        self.session.append_label_change("e0", "label")

    def act(self):
        self.copy = self.session.create_branched_session("e1")

    def check_done(self):
        assert self.session.get_session_file() == self.copy
        assert ids(self.session)[:2] == ["e0", "e1"]
        assert self.session.get_label("e0") == "label"
        self.check_sound(self.copy)

    def check_killed(self):
        super().check_killed()
        for copy in self.folder.glob("*Z_*.jsonl"):
            self.check_goes_on(copy, ["e0", "e1"])


class SetFile(Case):
    def prepare(self):
        super().prepare()
        make(self.folder / "other.jsonl", 4, "s2")

    def act(self):
        self.session.set_session_file(self.folder / "other.jsonl")

    def check_done(self):
        assert self.session.get_session_id() == "s2"
        self.check_sound(self.session.get_session_file())


class Fork(Case):
    def prepare(self):
        self.path.write_bytes(text_of(3) + b'{"torn')
        self.target = self.folder / "fork"
        self.session = None

    def remember(self):
        self.before = self.path.read_bytes()

    def act(self):
        self.session = SessionManager.fork_from(
            self.path, "/other", str(self.target), durability=self.durability
        )

    def check_failed(self):
        assert self.path.read_bytes() == self.before
        assert not self.target.exists() or os.listdir(self.target) == []

    def check_done(self):
        assert self.path.read_bytes() == self.before
        assert ids(self.session) == ["e0", "e1", "e2"]
        self.check_sound(self.session.get_session_file())

    def check_killed(self):
        assert self.path.read_bytes() == self.before
        for copy in self.target.glob("*.jsonl"):
            self.check_goes_on(copy, ["e0", "e1", "e2"])
        SessionManager.fork_from(self.path, "/other", str(self.target)).close()
        assert not left_over(self.target)


class ForkDurably(Fork):
    durability = "fsync"


class Migrate(Case):
    def prepare(self):
        make_version_1(self.path)
        self.path.chmod(0o640)

    def remember(self):
        self.before = self.path.read_bytes()

    def act(self):
        self.session = SessionManager.open(self.path)

    def check_failed(self):
        """The old file stands, or (where only the open after it failed) the new one as a whole."""
        data = self.path.read_bytes()
        assert data == self.before or (b'"version":3' in data and len(set(ids_on_disk(self.path))) == 5)

    def check_done(self):
        assert self.session.get_header()["version"] == 3
        assert len(set(ids(self.session))) == 5
        assert self.path.stat().st_mode & 0o777 == 0o640
        self.check_sound(self.path)

    def check_killed(self):
        data = self.path.read_bytes()
        assert data == self.before or b'"version":3' in data.partition(b"\n")[0]
        with SessionManager.open(self.path, read_only=True) as old:
            first = ids(old)
        assert len(set(first)) == 5
        self.check_goes_on(self.path, first)


class Settings(Case):
    """A change of the settings: the file has the old text or the new one."""

    names_its_file = False
    # The lock is another library's, which keeps its file open where unlocking fails.
    spared = ("lock", "stat")

    def prepare(self):
        os.environ["SESSIONTREE_CACHE_DIR"] = str(self.folder / "cache")
        self.path = self.folder / "settings.json"
        self.path.write_text('{\n  "keep": [1, 2],\n  "compaction": {"enabled": true}\n}')
        self.settings = SettingsManager.create("/code", agent_dir=str(self.folder))

    def remember(self):
        self.before = self.path.read_text()

    def act(self):
        self.settings.set("compaction.enabled", False)

    def check_failed(self):
        assert self.path.read_text() == self.before

    def check_done(self):
        again = SettingsManager.create("/code", agent_dir=str(self.folder))
        assert again.get("compaction.enabled") is False
        assert '"keep"' in self.path.read_text()

    def check_killed(self):
        assert self.path.read_text().count("keep") == 1
        lock = self.folder / "settings.json.lock"
        if lock.exists() and not self.is_noted(lock):
            # Killed before it was noted whose it is: whoever left it for ten seconds is dead.
            os.utime(lock, (0, 0))
        start = time.monotonic()
        self.act()
        assert time.monotonic() - start < 4, "the lock of the dead was waited for"
        self.check_done()
        assert sorted(os.listdir(self.folder)) == ["cache", "settings.json"]

    def is_noted(self, lock):
        """Whether the dead process has written down that the lock folder is its own."""
        stat = lock.stat()
        notes = (self.folder / "cache" / "locks").glob("*.held")
        return f"{stat.st_ino} {stat.st_mtime_ns}" in [note.read_text() for note in notes]


class Repair(Case):
    """A damaged file is repaired: it is the old one or the new one, and nothing of it is lost."""

    damaged = text_of(3) + line(entry("e3", "gone"))[:-1] + line(entry("e4", "e3")) + b'{"torn'
    found = ("e0", "e1", "e2", "e3", "e4")

    def prepare(self):
        self.path.write_bytes(self.damaged)
        self.session = None

    def remember(self):
        self.before = self.path.read_bytes()

    def act(self):
        doctor.fix(self.path)

    def check_failed(self):
        """The file is as it was, or (where only what comes after it failed) the repaired one."""
        data = self.path.read_bytes()
        assert data == self.before or data.startswith(text_of(3))
        assert set(self.found) <= set(ids_on_disk(self.path)) or data == self.before
        for copy in self.folder.glob("*.bak*"):
            assert copy.read_bytes() in (self.before, data)

    def check_done(self):
        assert not doctor.check(self.path).fixable
        assert tuple(ids_on_disk(self.path)) == self.found
        assert any(copy.read_bytes() == self.before for copy in self.folder.glob("*.bak*"))
        self.check_goes_on(self.path, list(self.found))

    def check_killed(self):
        self.check_failed()
        self.act()
        assert tuple(ids_on_disk(self.path)) == self.found
        self.check_goes_on(self.path, list(self.found))


class SaveIndex(Case):
    """The index of a big file is saved; whatever happens to the cache is no trouble of the session's."""

    def prepare(self):
        self.path = big_file()
        self.cache = self.folder / "cache"
        self.session = None

    def remember(self):
        self.before = self.path.stat()

    def act(self):
        os.environ["SESSIONTREE_CACHE_DIR"] = str(self.cache)
        with SessionManager.open(self.path, read_only=True) as session:
            self.leaf = session.get_leaf_id()

    def check_failed(self):
        assert self.path.stat().st_mtime_ns == self.before.st_mtime_ns
        self.cut_fails = False

    def check_done(self):
        assert self.leaf == BIG_LEAF
        self.act()
        assert self.leaf == BIG_LEAF

    def check_killed(self):
        self.act()
        self.check_done()
        folder = self.cache / "index"
        for saved in folder.glob("*.index"):
            saved.unlink()
        self.act()
        assert [name.suffix for name in folder.iterdir()] == [".index"]


class RefreshCatalog(Case):
    """The catalog takes sessions in: all that was there is found afterwards, or it is read again."""

    names_its_file = False
    stride = 9
    step = 40

    def prepare(self):
        self.sessions = self.folder / "sessions"
        self.sessions.mkdir()
        for n in range(2):
            make(self.sessions / f"s{n}.jsonl", session_id=f"s{n}")
        self.session = None
        with self.catalog() as catalog:
            catalog.refresh([self.sessions])
        make(self.sessions / "s2.jsonl", session_id="s2")
        (self.sessions / "s0.jsonl").unlink()

    def catalog(self):
        return Catalog(self.folder / "catalog.sqlite3")

    def remember(self):
        self.before = {path.name: path.read_bytes() for path in self.sessions.iterdir()}

    def act(self):
        errors = []
        with self.catalog() as catalog:
            catalog.refresh([self.sessions], on_error=lambda path, error: errors.append(error))
        if errors:
            raise errors[0]

    def check_failed(self):
        """The sessions are as they were; what the catalog says then is one state or the other."""
        assert {path.name: path.read_bytes() for path in self.sessions.iterdir()} == self.before
        with self.catalog() as catalog:
            found = {found.info.id for found in catalog.sessions()}
        assert found <= {"s0", "s1", "s2"}

    def check_done(self):
        with self.catalog() as catalog:
            assert catalog.check() == []
            assert {found.info.id for found in catalog.sessions()} == {"s1", "s2"}
            assert len(catalog.search("text")) == 3
        assert {path.name: path.read_bytes() for path in self.sessions.iterdir()} == self.before

    def check_killed(self):
        self.check_failed()
        self.act()
        self.check_done()
        assert not [name for name in os.listdir(self.folder) if name.endswith(("-wal", "-shm", "-journal"))]


class RememberLeaf(Case):
    """The place where a session was left is kept in the cache, or it is not; nothing else happens."""

    def prepare(self):
        os.environ["SESSIONTREE_CACHE_DIR"] = str(self.folder / "cache")
        make(self.path)
        self.session = SessionManager.open(self.path, remember_leaf=True)

    def act(self):
        self.session.branch("e1")

    def check_done(self):
        assert self.session.get_leaf_id() == "e1"
        with SessionManager.open(self.path, remember_leaf=True) as again:
            assert again.get_leaf_id() in ("e1", "e2")

    def check_killed(self):
        assert ids_on_disk(self.path) == ["e0", "e1", "e2"]
        self.act()
        self.check_done()
        assert len(list((self.folder / "cache" / "leaves").iterdir())) == 1


CASES = [
    Append,
    AppendDurably,
    AppendMany,
    AppendToTornTail,
    AppendBehindAnother,
    Label,
    BranchWithSummary,
    Create,
    CreateDurably,
    AdoptEmpty,
    DanglingLink,
    Rebuild,
    Branched,
    SetFile,
    Fork,
    ForkDurably,
    Settings,
    Migrate,
    Repair,
    SaveIndex,
    RefreshCatalog,
    RememberLeaf,
]


def quiet():
    """Other writers are expected here."""
    warnings.simplefilter("ignore")
