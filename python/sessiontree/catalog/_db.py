"""The catalog's database: its tables, its file, transactions, and a new start where it is damaged.

The database is a projection: everything in it can be read again from the session files. So a file that
SQLite finds damaged is given up and a new one is begun. The new one has a name of its own (``path``,
``path.1``, ``path.2``, ...; the highest number counts), because SQLite removes the companions of a
database by name: a process that still had the old file open would take those of a new file away.

Tables: ``folders`` keeps what a folder looked like (names, sizes, times) when it was last taken in;
``sessions`` one row a session file, with what a listing makes of it packed; ``passages`` the texts of
entries and ``words`` their full-text index (which holds no text, and no lengths: see
`sessiontree.catalog._rank`); ``spend`` what entries have cost. Paths are bytes, since names of files need
not be text.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from sessiontree._cachedir import cache_dir, check_ours
from sessiontree.catalog._facts import Facts
from sessiontree.exceptions import SessionTreeError
from sessiontree.paths import make_private_dirs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEMA_VERSION: Final = 3
MOST: Final = 1 << 62
"""More rows than there are, for SQLite's LIMIT."""
_BUSY_MS: Final = 60_000
_DIGITS: Final = 10
"""Of the number of a new file, at most."""
_DAMAGED: Final = frozenset({11, 26})  # SQLITE_CORRUPT, SQLITE_NOTADB
_ERRNO: Final = {
    3: errno.EACCES,  # SQLITE_PERM
    5: errno.EBUSY,  # SQLITE_BUSY
    6: errno.EBUSY,  # SQLITE_LOCKED
    7: errno.ENOMEM,  # SQLITE_NOMEM
    8: errno.EROFS,  # SQLITE_READONLY
    13: errno.ENOSPC,  # SQLITE_FULL
}
"""SQLite does not hand the system's own number on; everything else counts as EIO."""

FACTS: Final = tuple(field.name for field in fields(Facts))
"""The columns of ``sessions`` that `Facts` fills."""

TOKENS: Final = 'tokenize="unicode61 remove_diacritics 2"'
"""How texts are cut into words."""

_SCHEMA: Final = f"""
CREATE TABLE folders (id INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, parent BLOB NOT NULL,
    names BLOB NOT NULL, stats BLOB NOT NULL);
CREATE TABLE sessions (key INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, folder BLOB NOT NULL,
    info BLOB NOT NULL, spent BLOB NOT NULL, {", ".join(FACTS)}, file_identity TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, seal BLOB NOT NULL,
    modified INTEGER NOT NULL, has_text INTEGER NOT NULL DEFAULT 1);
CREATE INDEX sessions_by_folder ON sessions (folder);
CREATE INDEX sessions_by_time ON sessions (modified, path);
CREATE TABLE passages (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, entry TEXT NOT NULL,
    role TEXT NOT NULL, time INTEGER, model TEXT, print INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX passages_by_session ON passages (session);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', columnsize=0, {TOKENS});
CREATE TABLE spend (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, print INTEGER NOT NULL,
    time INTEGER, model TEXT NOT NULL, input REAL NOT NULL, output REAL NOT NULL,
    cache_read REAL NOT NULL, cache_write REAL NOT NULL, cost REAL NOT NULL);
CREATE INDEX spend_by_session ON spend (session);
CREATE INDEX spend_by_print ON spend (print);
PRAGMA user_version = {SCHEMA_VERSION};
"""

# Connections of a parent process: SQLite must not close them in a child, so they are kept for ever.
_of_parents: list[sqlite3.Connection] = []


class DamagedError(Exception):
    """The database cannot be used; a new one is needed."""


class Database:
    """One connection to the catalog's file, shared by threads one after the other."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._identity: tuple[int, int] | None = None
        self._file = path

    @property
    def in_memory(self) -> bool:
        """Whether there is no file."""
        return self.path == ":memory:"

    @property
    def file(self) -> str:
        """The file that is in use."""
        return self._file

    def connection(self) -> sqlite3.Connection:
        """Connect if that is not done, or if the file was replaced or the process has forked."""
        if self._connection is not None and self._pid != os.getpid():
            _of_parents.append(self._connection)
            self._connection = None
        if self._connection is not None and not self.in_memory and _identity(self._file) != self._identity:
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if not self.in_memory:
            self._file = _current(self.path)
            _create_private(self._file)
        connection = sqlite3.connect(
            self._file, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._pid = os.getpid()
        self._identity = None if self.in_memory else _identity(self._file)
        return connection

    def close(self) -> None:
        """Disconnect; the next use connects again."""
        with self.lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def begin_anew(self) -> None:
        """Give the file up and begin a new one; another process may have done so already."""
        with self.lock:
            damaged = self._file
            self.close()
            if self.in_memory or _current(self.path) != damaged:
                return
            stem, number = _numbered(damaged, self.path)
            _create_private(f"{stem}.{number + 1}")
            remove_files(damaged)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, for queries; errors become OSError or `DamagedError`."""
        with self.lock, _explained(self):
            yield self.connection()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection in a transaction that is all or nothing."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def all(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with self.reading() as connection:
            return connection.execute(sql, arguments).fetchall()

    def used_bytes(self) -> int:
        """Bytes of the pages that hold something."""
        ((pages,),) = self.all("PRAGMA page_count")
        ((free,),) = self.all("PRAGMA freelist_count")
        ((size,),) = self.all("PRAGMA page_size")
        return int((pages - free) * size)


def _prepare(connection: sqlite3.Connection) -> None:
    """Set the connection up, and the tables if there are none."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
    connection.execute("COMMIT")
    if version not in (0, SCHEMA_VERSION):
        raise DamagedError(f"the catalog is of version {version}")


@contextlib.contextmanager
def _explained(database: Database) -> Iterator[None]:
    """Turn SQLite's errors into those of files."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        text = str(error)
        if (
            (code is not None and code & 0xFF in _DAMAGED)
            or "no such table" in text
            or "no such column" in text
        ):
            raise DamagedError(text) from error
        if "no such module: fts5" in text:
            raise SessionTreeError("this Python's SQLite has no FTS5, which the catalog needs") from error
        if isinstance(error, sqlite3.OperationalError):
            number = _ERRNO.get((code or 0) & 0xFF, errno.EIO)
            raise OSError(number, text, database.file) from error
        raise


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _create_private(path: str) -> None:
    """Create a file that nobody else can read; its companions get its mode."""
    folder = os.path.dirname(os.path.abspath(path))
    if folder == os.path.abspath(cache_dir()):
        check_ours(folder)
    make_private_dirs(folder)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))


def _numbered(file: str, path: str) -> tuple[str, int]:
    number = file[len(path) + 1 :]
    return path, int(number) if number else 0


def generations(path: str) -> list[str]:
    """The files of a catalog that exist, the one in use last."""
    folder, name = os.path.split(os.path.abspath(path))
    begin = f"{name}."
    try:
        ends = [other[len(begin) :] for other in os.listdir(folder) if other.startswith(begin)]
    except OSError:
        ends = []
    numbers = [int(end) for end in ends if _is_number(end)]
    first = [path] if os.path.exists(path) else []
    return first + [f"{path}.{number}" for number in sorted(numbers)]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and not text.startswith("0") and len(text) <= _DIGITS


def _current(path: str) -> str:
    return (generations(path) or [path])[-1]


def remove_files(file: str) -> None:
    """Remove a database and its companions."""
    for name in (file, f"{file}-wal", f"{file}-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(name)
