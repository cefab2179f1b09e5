r"""Branches taken out of a session into an archive beside it, and put back.

A branch is a stretch of entries that leads to one leaf alone: from below the last fork to the leaf. Taking it
out moves its lines, byte for byte, into a file ``<session>.jsonl.branch-<id>.archive`` and leaves all other
bytes of the session as they are. The archive is on disk before the session is replaced, and the session is
replaced in one step, under the lock that all writers take, and only if nobody has written since the plan was
made. So at every moment each entry is in the session, in the archive, or in both.

What is refused, because entries that stay would lose something:

* entries that several branches share (``below=True`` takes all of these);
* the branch that the session stands on (``current=True`` takes it; the last entry that is left is the leaf then);
* all that there is;
* entries whose id stands twice, or that a compaction outside of them keeps;
* files with a torn last line, since somebody may be writing it, and files of another version than 3.

Labels of entries that are taken out stay where they are, and count again once the branch is back.

The archive is a line of JSON, then the lines. Put back, they stand at their old places: if nothing but appends
happened since, the session is byte for byte what it was, with what was appended behind it. Otherwise each
stretch goes behind the line that stood before it, or behind the entry that it hangs on.
"""

from __future__ import annotations

import contextlib
import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sessiontree import jsontext, migrations
from sessiontree._archivefiles import Archive, Back, Cut, Payload, read_archive
from sessiontree._leafkept import leaf_kept
from sessiontree._native import Store, replace_file
from sessiontree.exceptions import (
    ArchiveError,
    EntryNotFoundError,
    SessionConflictError,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    PathLike = str | os.PathLike[str]

__all__ = ["Archive", "Branch", "Plan", "archive", "archives", "branches", "plan", "restore"]

_COMPACTION = 5


@dataclass(frozen=True, slots=True)
class Branch:
    """A stretch of entries that leads to one leaf alone.

    Attributes:
        head: id of its first entry.
        leaf: id of its last entry.
        parent: id of the entry that it leaves from; None if it begins the session.
        entries: how many there are.
        is_current: whether the session stands on it.
    """

    head: str
    leaf: str
    parent: str | None
    entries: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What `archive` would do.

    Attributes:
        path: the session file.
        head: id of the first entry that is taken out.
        parent: id of the entry that it hangs on.
        rows: places of the entries that are taken out, in file order.
        size: bytes that are taken out.
        leaf: id of the entry that the session stands on afterwards.
        notes: what else changes, a line each.
    """

    path: str
    head: str
    parent: str | None
    rows: tuple[int, ...]
    size: int
    leaf: str | None
    notes: tuple[str, ...]
    _state: tuple[int, int, int]


def branches(path: PathLike) -> list[Branch]:
    """Give the branches of a session, in the order of their leaves in the file.

    Raises:
        OSError: the file cannot be read.
        InvalidSessionError: it is no session.
    """
    tree = _Tree(os.fspath(path))
    current = tree.current()
    found = []
    for leaf in tree.store.leaves().tolist():
        rows = tree.stretch(leaf)
        parent = tree.parents[rows[-1]]
        above = tree.id(parent) if parent >= 0 else None
        found.append(Branch(tree.id(rows[-1]), tree.id(leaf), above, len(rows), current in rows))
    return found


def plan(path: PathLike, entry_id: str, *, below: bool = False, current: bool = False) -> Plan:
    """Say what `archive` would do; nothing is written.

    Args:
        path: the session file.
        entry_id: an entry of the branch; with ``below`` the first entry that is taken out.
        below: take the entry and all that hangs below it, whatever branches these are.
        current: take the branch even if the session stands on it.

    Raises:
        OSError: the file cannot be read.
        EntryNotFoundError: there is no such entry.
        ArchiveError: it must not be taken out; the text says why.
        UnsupportedVersionError: the file is not of version 3.
    """
    return _Planner(os.fspath(path)).plan(entry_id, below=below, current=current)


def archive(wanted: Plan) -> Archive:
    """Take entries out of a session, into a new archive beside it.

    Raises:
        OSError: the archive or the session cannot be written; then the session is as it was.
        SessionConflictError: somebody has written to the session since the plan was made.
    """
    real = os.path.realpath(wanted.path)
    made: list[str] = []

    def parts() -> Iterator[bytes]:
        # Called again if the file changes before it is replaced: then it is not what was planned for.
        if _state(real) != wanted._state:  # noqa: SLF001 - ours
            raise SessionConflictError(f"another writer has changed the session meanwhile ({wanted.path})")
        cut = Cut(wanted)
        made.append(cut.write_archive())
        return cut.kept()

    with leaf_kept(wanted.path):
        try:
            replace_file(real, parts)
        except BaseException:
            # Where the file is another one the replacement has happened, whatever came after it.
            if made and _state(real)[:2] == wanted._state[:2]:  # noqa: SLF001
                os.remove(made[-1])
            raise
    return read_archive(made[-1])


def archives(path: PathLike) -> list[Archive]:
    """Give the archives beside a session, the oldest first; files that are none are passed over."""
    found = []
    for name in glob.glob(f"{glob.escape(os.path.realpath(path))}.branch-*.archive"):
        with contextlib.suppress(OSError, ArchiveError):
            found.append(read_archive(name))
    return sorted(found, key=lambda each: (each.archived, each.path))


def restore(path: PathLike, archived: PathLike, *, keep: bool = False) -> int:
    """Put a branch back into its session, and remove the archive once the entries are there.

    Args:
        path: the session file.
        archived: the archive.
        keep: leave the archive where it is.

    Returns:
        How many entries were put back; 0 if they were there already.

    Raises:
        OSError: a file cannot be read or written; then the session is as it was.
        ArchiveError: the archive is damaged, or of another session, or cannot be put back: some of its
            ids are taken, or the entry that it hangs on is not there.
    """
    real, stored = os.path.realpath(path), os.fspath(archived)
    payload = Payload(stored)
    put = 0

    def parts() -> Iterator[bytes] | None:
        nonlocal put
        back = Back(os.fspath(path), payload)
        put = 0 if back.is_there() else payload.about.entries
        return back.parts() if put else None

    with leaf_kept(os.fspath(path)):
        replace_file(real, parts)
    payload.check_in(Store.open(real), os.fspath(path))
    if not keep:
        os.remove(stored)
    return put


def _state(path: str) -> tuple[int, int, int]:
    """Which file it is, and how big."""
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino, stat.st_size


class _Tree:
    """A session's index, and its stretches."""

    def __init__(self, path: str) -> None:
        self.path = path
        # Before the scan: what is written from now on is noticed.
        self.state = _state(path)
        self.store = Store.open(path)
        header = jsontext.loads(self.store.header())
        self.header = header
        if migrations.needs_migration(header):
            # As every reader sees it; nothing is taken out of it.
            self.store = Store.memory(b"".join(migrations.migrated_parts(self.store)))
        columns = self.store.columns()
        self.parents: list[int] = columns["parent"].tolist()
        self.kinds: list[int] = columns["kind"].tolist()
        self.children = [0] * len(self.parents)
        for row, parent in enumerate(self.parents):
            if parent >= 0 and parent != row:
                self.children[parent] += 1

    def id(self, row: int) -> str:
        """An id as text; entries without one have none to be called by."""
        id = self.store.id(row)
        return id if isinstance(id, str) else ""

    def stretch(self, leaf: int) -> list[int]:
        """The rows that lead to a leaf alone, the leaf first."""
        rows = [leaf]
        parent = self.parents[leaf]
        while parent >= 0 and self.children[parent] == 1 and parent != rows[-1]:
            rows.append(parent)
            parent = self.parents[parent]
        return rows

    def current(self) -> int | None:
        """The row that the session stands on, also where that is only remembered."""
        from sessiontree.manager import SessionManager

        with SessionManager.open(self.path, read_only=True, remember_leaf=True) as session:
            id = session.get_leaf_id()
            return None if id is None else session.find_row(id)


class _Planner(_Tree):
    """Finds what is to be taken out, and why it must not be."""

    def plan(self, entry_id: str, *, below: bool, current: bool) -> Plan:
        """Make the plan, or say why there can be none."""
        self._check_file()
        row = self.store.find(entry_id)
        if row is None:
            raise EntryNotFoundError(f"no entry has the id {entry_id!r} ({self.path})")
        head = row if below else self._head(row)
        rows = self.store.subtree(head).tolist()
        leaf = self._check(set(rows), head, current=current)
        parent = self.parents[head]
        return Plan(
            self.path,
            self.id(head),
            self.id(parent) if parent >= 0 else None,
            tuple(rows),
            sum(self.store.span(each)[1] + 1 for each in rows),
            leaf,
            tuple(self._notes(set(rows))),
            self.state,
        )

    def _fail(self, text: str) -> ArchiveError:
        return ArchiveError(f"{text} ({self.path})")

    def _check_file(self) -> None:
        version = migrations.header_version(self.header)
        if migrations.is_newer(self.header):
            raise UnsupportedVersionError(
                f"header version {version:g} is newer than 3: nothing is changed ({self.path})"
            )
        if migrations.needs_migration(self.header):
            raise UnsupportedVersionError(
                f"the session is of version {version:g}: whatever is appended to it brings it to version 3 first "
                f"({self.path})"
            )
        if self.store.tail() == "torn":
            raise self._fail("the last line is torn, its writer may be at work still; 'doctor' tells more")

    def _head(self, row: int) -> int:
        """The first entry of the branch that an entry belongs to."""
        leaves = [each for each in self.store.subtree(row).tolist() if self.children[each] == 0]
        if len(leaves) != 1:
            shown = ", ".join(repr(self.id(leaf)) for leaf in leaves[:5])
            raise self._fail(
                f"{len(leaves)} branches go through {self.id(row)!r}, to {shown}{', …' if len(leaves) > 5 else ''}: "
                "name an entry of one of them, or take all that hangs below it with below=True (--below)"
            )
        return self.stretch(leaves[0])[-1]

    def _check(self, rows: set[int], head: int, *, current: bool) -> str | None:
        """Refuse what would harm the rest; gives the leaf afterwards."""
        if len(rows) == len(self.store):
            raise self._fail("that is all there is in the session; move the file away instead")
        standing = self.current()
        if standing in rows and not current:
            raise self._fail(
                f"the session stands on the branch of {self.id(head)!r}; it goes only with current=True (--current)"
            )
        self._check_ids(rows)
        ids = {self.id(row) for row in rows}
        for row, kind in enumerate(self.kinds):
            if kind == _COMPACTION and row not in rows:
                kept = jsontext.loads(self.store.line(row)).get("firstKeptEntryId")
                if isinstance(kept, str) and kept in ids:
                    raise self._fail(
                        f"the compaction {self.id(row)!r} keeps the entry {kept!r} of this branch"
                    )
        left = standing if standing is not None and standing not in rows else self._last(rows)
        return None if left is None else self.id(left)

    def _check_ids(self, rows: set[int]) -> None:
        """Refuse entries that share their id with others; nobody knows who hangs on which."""
        store = self.store
        if store.distinct_ids() == len(store):
            return
        for row in range(len(store)):
            if not store.has_text_id(row):
                if row in rows:
                    raise self._fail("an entry of this branch has no id that is a text")
            elif store.owner(row) != row and (row in rows or store.owner(row) in rows):
                raise self._fail(
                    f"the id {self.id(row)!r} stands twice; 'doctor --fix' tells the entries apart"
                )

    def _last(self, rows: set[int]) -> int | None:
        left = (row for row in range(len(self.store) - 1, -1, -1) if row not in rows)
        return next((row for row in left if self.store.has_text_id(row)), None)

    def _notes(self, rows: set[int]) -> Iterator[str]:
        """Say what the rest of the session loses."""
        ids = {self.id(row) for row in rows}
        inside = outside = 0
        for row in self.store.labels():
            target = jsontext.loads(self.store.line(row)).get("targetId")
            inside += row in rows and target not in ids
            outside += row not in rows and target in ids
        if inside:
            yield f"labels of entries that stay were set here and go too: {inside}"
        if outside:
            yield f"labels of these entries were set elsewhere and stay, and count again after a restore: {outside}"
        if self.store.last_info() in rows:
            yield "the session's name was set here, and goes too"
