"""Taking files in: each changed file is read from where reading ended, in transactions of bounded size.

A transaction writes the texts of some lines together with the place behind them, so that whatever
interrupts the work, the next refresh goes on from there. What a file's row says is looked at in the same
transaction, so that two processes never take in the same lines twice.

A file is read on from the old place if it is the same file and the bytes around that place are as they
were. Otherwise it is read anew; while such a file ends in a torn line, or is empty, somebody may be
writing it just now, and what the catalog has of it stays for a minute.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time
from dataclasses import fields
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from sessiontree.catalog import _rank
from sessiontree.catalog._db import FACTS
from sessiontree.catalog._facts import Facts, NotASessionError, Passage, Spend
from sessiontree.catalog._found import packed

if TYPE_CHECKING:
    import sqlite3
    from typing import BinaryIO

Outcome = Literal["added", "grown", "replaced", "unchanged", "later", "none", "gone"]
"""What became of a file; "none" is no session, "gone" is no session any more."""

_BATCH_CHARS: Final = 8 << 20
_BATCH_FILES: Final = 1000
_BATCH_SECONDS: Final = 1.0
_LINE: Final = 50
"""What a line counts for, whatever its texts."""
_CHUNK: Final = 1 << 18
_SETTLED_NS: Final = 60_000_000_000
_HEAD, _FOOT = 4096, 256

_COLUMNS: Final = (
    "path",
    "folder",
    *FACTS,
    "file_identity",
    "size",
    "mtime_ns",
    "seal",
    "modified",
    "info",
    "spent",
)
_INSERT: Final = f"INSERT INTO sessions ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_UPDATE: Final = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _COLUMNS)} WHERE key = ?"
_SELECT: Final = (
    f"SELECT key, file_identity, size, mtime_ns, seal, {', '.join(FACTS)} FROM sessions WHERE path = ?"
)
_PASSAGES: Final = "INSERT INTO passages (id, session, entry, role, time, model, print, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_values = attrgetter(*(field.name for field in fields(Facts)))
_SPENDS: Final = (
    "INSERT INTO spend (session, print, time, model, input, output, cache_read, cache_write, cost) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Budget:
    """What one transaction may take: it must be worth its cost, and others wait for it."""

    def __init__(self) -> None:
        self.characters = _BATCH_CHARS
        self.files = _BATCH_FILES
        self._until = time.monotonic() + _BATCH_SECONDS

    def is_spent(self) -> bool:
        """Whether it is time to commit."""
        return self.characters <= 0 or self.files <= 0 or time.monotonic() > self._until


class Update:
    """One changed file being taken in.

    Attributes:
        path: the file.
        folder: its folder.
        size: how big it was when it was found.
        read: bytes that were read of it.
        outcome: what became of it.
        error: why it could not be read; what the catalog has of it stays.
    """

    def __init__(self, path: str, folder: str, size: int) -> None:
        self.path = path
        self.folder = folder
        self.size = size
        self.read = 0
        self.outcome: Outcome = "unchanged"
        self.error: OSError | None = None
        self._key: int | None = None
        self._facts = Facts()
        self._file: BinaryIO | None = None
        self._stat: os.stat_result

    def step(self, connection: sqlite3.Connection, budget: Budget) -> bool:
        """Take in what the transaction has room for; whether there is more."""
        try:
            more = self._go_on(connection, budget)
        except OSError as error:
            self.error, more = error, False
        if not more:
            budget.files -= 1
            self.close()
        return more

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _go_on(self, connection: sqlite3.Connection, budget: Budget) -> bool:
        row = connection.execute(_SELECT, (os.fsencode(self.path),)).fetchone()
        if self._file is None:
            file = self._file = open(self.path, "rb", buffering=_CHUNK, opener=_opener)  # noqa: SIM115
            stat = self._stat = os.fstat(file.fileno())
            if not modes.S_ISREG(stat.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", self.path)
            return self._start(connection, row, file, stat) and self._take(connection, file, budget)
        # Another process may have gone on with the file, or dropped it.
        if row is None or row[0] != self._key or Facts(*row[5:]) != self._facts:
            return False
        return self._take(connection, self._file, budget)

    def _start(self, connection: sqlite3.Connection, row: Any, file: BinaryIO, stat: os.stat_result) -> bool:
        """Find where reading begins; whether there is anything to do."""
        if row is None:
            self.outcome = "added"
            return True
        self._key, facts = row[0], Facts(*row[5:])
        same_file = row[1] == _identity(stat)
        if same_file and row[2:4] == (stat.st_size, stat.st_mtime_ns):
            return False
        grown = same_file and not facts.loose_tail and row[2] < stat.st_size
        if grown and _seal(file, facts.offset) == row[4]:
            self._facts = facts
            self.outcome = "grown"
            file.seek(facts.offset)
            return True
        if _is_being_written(file, stat):
            self.outcome = "later"
            return False
        self.outcome = "replaced"
        forget_texts(connection, row[0])
        connection.execute("UPDATE sessions SET has_text = 1 WHERE key = ?", (row[0],))
        return True

    def _take(self, connection: sqlite3.Connection, file: BinaryIO, budget: Budget) -> bool:
        """Read lines until the transaction is full, and write what they say."""
        passages: list[Passage] = []
        spends: list[Spend] = []
        try:
            more = self._read_lines(file, passages, spends, budget)
        except NotASessionError:
            more, self._facts.has_header = False, 0
        if not self._facts.has_header:
            self._drop(connection)
            return False
        self._write_row(connection, file, more=more)
        _write(connection, self._key, passages, spends)
        return more

    def _read_lines(
        self, file: BinaryIO, passages: list[Passage], spends: list[Spend], budget: Budget
    ) -> bool:
        """Take lines in up to the end of the file, or until there is enough for a transaction."""
        facts, counted = self._facts, 0
        for line in file:
            self.read += len(line)
            if not line.endswith(b"\n"):
                self._take_tail(line, passages, spends)
                return False
            facts.take(line[:-1], passages, spends)
            facts.offset += len(line)
            budget.characters -= _LINE + sum(len(passage.text) for passage in passages[counted:])
            counted = len(passages)
            if facts.has_header and budget.is_spent():
                return True
        return False

    def _take_tail(self, line: bytes, passages: list[Passage], spends: list[Spend]) -> None:
        """Take in what stands behind the last LF if it is an entry; reading goes on before it."""
        facts = self._facts
        before = (facts.has_header, facts.entries)
        facts.take(line, passages, spends, is_tail=True)
        facts.lines -= 1
        facts.loose_tail = int((facts.has_header, facts.entries) != before)

    def _drop(self, connection: sqlite3.Connection) -> None:
        """The file is no session, or not yet one."""
        self.outcome = "none"
        if self._key is not None:
            self.outcome = "gone"
            forget(connection, self._key)

    def _write_row(self, connection: sqlite3.Connection, file: BinaryIO, *, more: bool) -> None:
        facts, stat = self._facts, self._stat
        # A file that is not read to its end looks as if it had grown since.
        size = facts.offset if more else stat.st_size
        values = (
            os.fsencode(self.path),
            os.fsencode(self.folder),
            *_values(facts),
            _identity(stat),
            size,
            stat.st_mtime_ns,
            _seal(file, facts.offset),
            facts.modified_ms(stat.st_mtime_ns),
            *packed(self.path, facts, size=size, mtime_ns=stat.st_mtime_ns),
        )
        if self._key is None:
            self._key = connection.execute(_INSERT, values).lastrowid
        else:
            connection.execute(_UPDATE, (*values, self._key))


def _opener(path: str, flags: int) -> int:
    # A pipe would block for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _write(
    connection: sqlite3.Connection, key: int | None, passages: list[Passage], spends: list[Spend]
) -> None:
    if passages:
        (last,) = connection.execute("SELECT ifnull(max(id), 0) FROM passages").fetchone()
        ids = _rank.ids(last, (passage.text for passage in passages))
        connection.executemany(
            _PASSAGES, [(id, key, *passage) for id, passage in zip(ids, passages, strict=True)]
        )
        connection.execute(
            "INSERT INTO words (rowid, text) SELECT id, text FROM passages WHERE id > ?", (last,)
        )
    if spends:
        connection.executemany(_SPENDS, [(key, *spend) for spend in spends])


def forget(connection: sqlite3.Connection, key: int) -> None:
    """Remove a session."""
    forget_texts(connection, key)
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))


def forget_texts(connection: sqlite3.Connection, key: int, *, spends: bool = True) -> None:
    """Remove the texts of a session, and what it has cost."""
    connection.execute(
        "INSERT INTO words (words, rowid, text) SELECT 'delete', id, text FROM passages WHERE session = ?",
        (key,),
    )
    connection.execute("DELETE FROM passages WHERE session = ?", (key,))
    if spends:
        connection.execute("DELETE FROM spend WHERE session = ?", (key,))


def _identity(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def _seal(file: BinaryIO, offset: int) -> bytes:
    """A fingerprint of the bytes at the head of a file and of those before a place."""
    head = _at(file, min(_HEAD, offset), 0)
    foot = _at(file, min(_FOOT, offset), max(0, offset - _FOOT))
    return blake2b(head + foot, digest_size=16).digest()


def _at(file: BinaryIO, count: int, offset: int) -> bytes:
    """Bytes of a file; where reading goes on does not change."""
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), count, offset)
    place = file.tell()
    file.seek(offset)
    data = file.read(count)
    file.seek(place)
    return data


def _is_being_written(file: BinaryIO, stat: os.stat_result) -> bool:
    """Whether the file ends in a torn line, or is empty, and was written to within the last minute."""
    if time.time_ns() - stat.st_mtime_ns > _SETTLED_NS:
        return False
    return stat.st_size == 0 or _at(file, 1, stat.st_size - 1) != b"\n"
