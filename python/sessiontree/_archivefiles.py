"""The files of `sessiontree.archives`: a session being cut, an archive, a session being put together again."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from sessiontree import jsontext
from sessiontree._native import Store, create_file
from sessiontree.exceptions import ArchiveError, InvalidJSONError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from sessiontree.archives import Plan

_TYPE: Final = "sessiontree-branch"
_PIECE: Final = 1 << 20
_HEAD: Final = 1 << 24
"""No first line of an archive is longer."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A branch that was taken out.

    Attributes:
        path: the archive.
        session: id of the session.
        head: id of its first entry.
        leaf: id of the last entry in it.
        entries: how many entries it holds.
        archived: when it was taken out, as ISO 8601.
    """

    path: str
    session: str
    head: str
    leaf: str
    entries: int
    archived: str


class Cut:
    """A session file being cut: what stays, and what goes into the archive."""

    def __init__(self, wanted: Plan) -> None:
        self._plan = wanted
        self._path = os.path.realpath(wanted.path)
        store = Store.open(self._path)
        spans = (store.span(row) for row in wanted.rows)
        self._doomed = {offset for offset, _ in spans}
        self._header = jsontext.loads(store.header())
        self._leaf = store.id(wanted.rows[-1])
        self._runs: list[dict[str, Any]] = []
        self._kept_size = 0
        self._look()

    def _look(self) -> None:
        """Find the stretches of the file that go, and what stands before each of them."""
        kept, gone = blake2b(digest_size=16), blake2b(digest_size=16)
        before: bytes | None = None
        going = False
        with open(self._path, "rb") as file:
            for offset, line in _lines(file):
                if offset in self._doomed:
                    if not going:
                        self._runs.append(
                            {"offset": offset, "length": 0, "lines": 0, "after": _print(before)}
                        )
                    self._runs[-1]["length"] += len(line)
                    self._runs[-1]["lines"] += 1
                    gone.update(line)
                else:
                    before = line
                    kept.update(line)
                    self._kept_size += len(line)
                going = offset in self._doomed
        if sum(run["lines"] for run in self._runs) != len(self._doomed):
            raise ArchiveError(
                f"some entries have no line of their own; 'doctor --fix' gives them one ({self._path})"
            )
        self._kept, self._gone = kept.hexdigest(), gone.hexdigest()

    def write_archive(self) -> str:
        """Write the archive under a new name beside the session."""
        plan = self._plan
        head = {
            "type": _TYPE,
            "version": 1,
            "session": self._header["id"],
            "head": plan.head,
            "leaf": self._leaf,
            "parent": plan.parent,
            "entries": len(plan.rows),
            "archived": jsontext.to_iso(time.time_ns() // 1_000_000),
            "hash": self._gone,
            "kept": {"size": self._kept_size, "hash": self._kept},
            "runs": self._runs,
        }
        number = 0
        while True:
            mark = f"-{number}" if number else ""
            name = f"{self._path}.branch-{_part_of_name(plan.head)}{mark}.archive"
            try:
                create_file(name, self._archive_parts(head), sync=True)
            except FileExistsError:
                number += 1
            else:
                return name

    def _archive_parts(self, head: dict[str, Any]) -> Iterator[bytes]:
        yield json.dumps(head).encode() + b"\n"
        with open(self._path, "rb") as file:
            for run in self._runs:
                yield from _pieces(file, run["offset"], run["length"])

    def kept(self) -> Iterator[bytes]:
        """Give what stays of the file."""
        at = 0
        size = os.path.getsize(self._path)
        with open(self._path, "rb") as file:
            for run in self._runs:
                yield from _pieces(file, at, run["offset"] - at)
                at = run["offset"] + run["length"]
            yield from _pieces(file, at, size - at)


def _part_of_name(id: str) -> str:
    """An id as a part of a file's name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in id[:36])
    return plain or "_"


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    offset = 0
    for line in file:
        yield offset, line
        offset += len(line)


def _print(line: bytes | None) -> str | None:
    """A fingerprint of a line."""
    return None if line is None else blake2b(line.removesuffix(b"\n"), digest_size=8).hexdigest()


def _pieces(file: BinaryIO, offset: int, length: int) -> Iterator[bytes]:
    """Give a part of a file.

    Raises:
        OSError: the file ends before.
    """
    file.seek(offset)
    while length > 0:
        piece = file.read(min(length, _PIECE))
        if not piece:
            raise OSError(None, "the file has become shorter", file.name)
        length -= len(piece)
        yield piece


def _first_line(path: str) -> tuple[dict[str, Any], int]:
    """What an archive says of itself, and where its lines begin."""
    with open(path, "rb") as file:
        line = file.readline(_HEAD)
    try:
        head = json.loads(line)
        is_ours = isinstance(head, dict) and head["type"] == _TYPE and head["version"] == 1
    except (ValueError, KeyError):
        is_ours = False
    if not is_ours:
        raise ArchiveError(f"not an archive of a branch ({path})")
    return head, len(line)


def read_archive(path: str) -> Archive:
    """Read what an archive says of itself.

    Raises:
        OSError: it cannot be read.
        ArchiveError: it is none.
    """
    head, _ = _first_line(path)
    try:
        return Archive(path, *(head[key] for key in ("session", "head", "leaf", "entries", "archived")))
    except KeyError as error:
        raise ArchiveError(f"the archive lacks {error} ({path})") from None


class Payload:
    """The lines of an archive, which are as they were archived."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.about = read_archive(path)
        self.head, self.start = _first_line(path)
        self.runs: list[dict[str, Any]] = self.head["runs"]
        self.ids: list[Any] = []
        digest = blake2b(digest_size=16)
        with open(path, "rb") as file:
            file.seek(self.start)
            for line in file:
                digest.update(line)
                self.ids.append(_id_of(line))
        if digest.hexdigest() != self.head["hash"] or len(self.ids) != self.about.entries:
            raise ArchiveError(f"the archive is damaged: its lines are not those that were put in ({path})")

    def run(self, number: int) -> tuple[int, int]:
        """Where a stretch lies in the archive: offset and length."""
        before = sum(run["length"] for run in self.runs[:number])
        return self.start + before, self.runs[number]["length"]

    def first_parent(self, number: int) -> Any:
        """The parent of the first entry of a stretch."""
        with open(self.path, "rb") as file:
            file.seek(self.run(number)[0])
            return jsontext.loads(file.readline()).get("parentId")

    def check_in(self, store: Store, path: str) -> None:
        """Make sure that a session has all entries."""
        missing = [id for id in self.ids if store.find(id) is None]
        if missing:
            raise ArchiveError(f"{len(missing)} entries are not in the session; the archive stays ({path})")


def _id_of(line: bytes) -> Any:
    try:
        entry = jsontext.loads(line)
    except InvalidJSONError:
        return None
    return entry.get("id") if isinstance(entry, dict) else None


class Back:
    """A session file that a branch is put back into."""

    def __init__(self, path: str, payload: Payload) -> None:
        self._path = os.path.realpath(path)
        self._shown = path
        self._payload = payload
        self._store = Store.open(self._path)
        self._size = os.path.getsize(self._path)

    def is_there(self) -> bool:
        """Whether the entries are in the session already.

        Raises:
            ArchiveError: some are, or the archive is of another session, or what it hangs on is gone.
        """
        head = jsontext.loads(self._store.header())
        if head.get("id") != self._payload.about.session:
            raise ArchiveError(
                f"the archive is of another session, {self._payload.about.session!r} ({self._shown})"
            )
        found = [id for id in self._payload.ids if self._store.find(id) is not None]
        if len(found) == len(self._payload.ids):
            return True
        if found:
            raise ArchiveError(f"the id {found[0]!r} is taken by another entry ({self._shown})")
        parent = self._payload.head["parent"]
        if parent is not None and self._store.find(parent) is None:
            raise ArchiveError(
                f"the entry {parent!r} that the branch hangs on is not in the session: "
                f"put back what holds it first ({self._shown})"
            )
        if self._store.tail() == "torn":
            raise ArchiveError(f"the last line is torn, its writer may be at work still ({self._shown})")
        return False

    def parts(self) -> Iterator[bytes]:
        """Give the new content of the file."""
        places = self._exact_places() or self._found_places()
        at = 0
        ended = True
        with open(self._path, "rb") as file, open(self._payload.path, "rb") as stored:
            for place, number in sorted((place, number) for number, place in enumerate(places)):
                for piece in _pieces(file, at, place - at):
                    ended = piece.endswith(b"\n")
                    yield piece
                at = place
                if not ended:
                    yield b"\n"
                for piece in _pieces(stored, *self._payload.run(number)):
                    ended = piece.endswith(b"\n")
                    yield piece
            if not ended and at < self._size:
                yield b"\n"
            yield from _pieces(file, at, self._size - at)

    def _exact_places(self) -> list[int] | None:
        """Where the stretches were, if the file has only grown since."""
        kept = self._payload.head["kept"]
        if self._size < kept["size"]:
            return None
        digest = blake2b(digest_size=16)
        with open(self._path, "rb") as file:
            for piece in _pieces(file, 0, kept["size"]):
                digest.update(piece)
        if digest.hexdigest() != kept["hash"]:
            return None
        places, before = [], 0
        for run in self._payload.runs:
            places.append(run["offset"] - before)
            before += run["length"]
        return places

    def _found_places(self) -> list[int]:
        """Behind which lines the stretches go, in a file that was changed otherwise."""
        wanted = {run["after"] for run in self._payload.runs}
        ends: dict[str, int] = {}
        with open(self._path, "rb") as file:
            for offset, line in _lines(file):
                print = _print(line)
                if print is not None and print in wanted:
                    ends[print] = offset + len(line)
        places: list[int] = []
        for number, run in enumerate(self._payload.runs):
            place = ends.get(run["after"] or "")
            if place is None:
                place = self._behind_parent(number, places)
            places.append(place)
        return places

    def _behind_parent(self, number: int, places: list[int]) -> int:
        """Behind the entry that a stretch hangs on, or behind what was put back just before."""
        row = self._store.find(self._payload.first_parent(number))
        if row is None:
            # Its parent is put back as well, or it has none.
            return places[-1] if places else self._store.body()[0]
        offset, length = self._store.span(row)
        return min(offset + length + 1, self._size)
