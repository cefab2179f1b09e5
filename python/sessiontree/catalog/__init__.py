"""A catalog of all sessions: listing without reading, full-text search, totals of tokens and cost.

The catalog is a projection in SQLite, kept in the cache folder. It is never the authority: it can be
deleted at any time, a damaged one is begun anew, and `Catalog.refresh` compares it with the files. A
refresh costs one ``stat`` a file; only files that have changed are read, and of those that have grown
only the new part. Several processes may use and refresh one catalog at once.

It holds texts of sessions, so its file is readable by its owner alone.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack

from sessiontree import _cachedir, paths
from sessiontree._collector import Paused
from sessiontree.catalog import _db, _query, _rank, _scan, _search, _update
from sessiontree.catalog._found import (
    SESSION,
    SESSION_MODEL,
    CatalogSession,
    Filters,
    Hit,
    Refreshed,
    Tokens,
    Total,
    Where,
    sessions_of,
    tokens_of,
)
from sessiontree.catalog._texts import LONGEST, ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from sessiontree.catalog._found import PathLike
    from sessiontree.listing import Cancel, OnError

    T = TypeVar("T")

__all__ = [
    "LONGEST",
    "ROLES",
    "Catalog",
    "CatalogSession",
    "Filters",
    "Hit",
    "Refreshed",
    "Tokens",
    "Total",
    "catalog_path",
]

Sort = Literal["modified", "created", "mtime", "cost", "tokens", "messages", "size", "name"]
By = Literal["all", "session", "project", "model", "day"]

_SORTS: Final[dict[str, str]] = {
    "modified": "s.modified DESC",
    "created": "s.created_ms IS NULL, s.created_ms DESC",
    "mtime": "s.mtime_ns DESC",
    "cost": "s.cost DESC",
    "tokens": "s.input + s.output + s.cache_read + s.cache_write DESC",
    "messages": "s.messages DESC",
    "size": "s.size DESC",
    "name": "s.name IS NULL, s.name COLLATE NOCASE",
}
_KEYS: Final[dict[str, str]] = {
    "all": "''",
    "session": "s.path",
    "project": "s.cwd",
    "model": "t.model",
    "day": "ifnull(strftime('%Y-%m-%d', t.time / 1000.0, 'unixepoch', 'localtime'), '')",
}
_SHRINK_TO: Final = 0.8
_NAME: Final = f"catalog-{_db.SCHEMA_VERSION}.sqlite3"


def catalog_path() -> str:
    """Where the catalog lies: in ``SESSIONTREE_CACHE_DIR``, or the user's own cache folder.

    Example:
        >>> catalog_path().endswith(".sqlite3")
        True
    """
    return os.path.join(_cachedir.cache_dir(), _NAME)


class Catalog:
    """All sessions of some folders; see the module.

    Args:
        path: the database's file, ``":memory:"`` for none; `catalog_path` if left out.
        max_bytes: how big it may become; texts of the sessions that are longest unchanged are dropped
            first, and what a listing shows of them is kept.

    Example:
        >>> with Catalog(":memory:") as catalog:
        ...     refreshed = catalog.refresh(["/no/such/folder"])
        ...     catalog.search("tea"), refreshed.files
        ([], 0)
    """

    def __init__(self, path: PathLike | None = None, *, max_bytes: int = 4 << 30) -> None:
        given = catalog_path() if path is None else os.fspath(path)
        self._database = _db.Database(given if given == ":memory:" else os.path.abspath(given))
        self._max_bytes = max_bytes
        self._roots: list[str] | None = None

    @property
    def path(self) -> str:
        """The file in use."""
        return self._database.file

    def refresh(
        self,
        roots: Sequence[PathLike] | None = None,
        on_progress: Callable[[int, int], object] | None = None,
        cancel: Cancel | None = None,
        *,
        on_error: OnError | None = None,
    ) -> Refreshed:
        """Compare the catalog with the files, and read what has changed, the newest files first.

        Sessions are removed if their files are gone from a folder that could be read; a folder that does
        not exist has no sessions. What was read is kept if the refresh is interrupted.

        Args:
            roots: folders with session files, or with folders that hold them, or both; the default
                folders of all directories if left out.
            on_progress: called with (bytes done, bytes in all) if files must be read.
            cancel: a `threading.Event`; once it is set, the refresh stops.
            on_error: called with (path, exception) for each file and folder that cannot be read.

        Raises:
            OSError: the catalog cannot be written.
            concurrent.futures.CancelledError: ``cancel`` was set.
        """
        wanted = [paths.sessions_root()] if roots is None else [paths.resolve_path(root) for root in roots]
        self._roots = list(dict.fromkeys(wanted))
        refresh = _Refresh(self._database, self._roots, on_progress, cancel, on_error)
        report = self._sound(refresh.run, refill=False)
        if report.bytes_read:
            self._keep_small()
        return report

    def sessions(
        self,
        *,
        sort: Sort = "modified",
        reverse: bool = False,
        limit: int | None = None,
        **filters: Unpack[Filters],
    ) -> list[CatalogSession]:
        """List the sessions as of the last refresh.

        Args:
            sort: "modified" (newest message first), "created", "mtime" (newest file first), "cost",
                "tokens", "messages", "size" (most first) or "name"; equal ones by file name, backwards.
            reverse: turn the order round.
            limit: at most so many.
            **filters: see `Filters`.

        Raises:
            ValueError: ``sort`` is none of these.
        """
        order = _one_of(_SORTS, "sort", sort)
        where = Where().filter(filters, time="s.modified", model=SESSION_MODEL)
        columns = ", ".join(f"s.{name}" for name in SESSION)
        sql = f"SELECT {columns} FROM sessions s WHERE {where} ORDER BY {order}, s.path DESC"
        if limit is not None and limit >= 0 and not reverse:
            sql += f" LIMIT {min(limit, _db.MOST)}"

        def listed() -> list[CatalogSession]:
            with Paused():
                rows = self._database.all(sql, where.arguments)
                if reverse:
                    rows.reverse()
                try:
                    return sessions_of(rows[:limit])
                except ValueError as error:
                    raise _db.DamagedError(str(error)) from error

        return self._sound(listed)

    def search(
        self,
        query: str,
        *,
        phrase: bool = False,
        prefix: bool = False,
        regex: bool = False,
        role: str | Sequence[str] | None = None,
        sort: Literal["relevance", "time"] = "relevance",
        limit: int | None = 50,
        every_copy: bool = False,
        **filters: Unpack[Filters],
    ) -> list[Hit]:
        r"""Find entries by their texts, as of the last refresh.

        Words are found whatever their case and accents. All words must occur; ``"two words"`` is a
        phrase, ``begin*`` a prefix, ``-word`` must not occur, ``a OR b`` is one of both.

        Args:
            query: what to look for.
            phrase: take the whole query as one phrase.
            prefix: take the last word as a prefix, as for a search while typing.
            regex: take the query as a regular expression of Python's `re`; case matters if it has
                capital letters. All texts are looked through, newest first.
            role: only texts of these, see `ROLES`.
            sort: "relevance" (BM25; equal ones as they were read) or "time" (newest first). What the index
                cannot find (regular expressions, signs, writing without blanks) comes by time.
            limit: at most so many.
            every_copy: give an entry that forks share for each of them.
            **filters: see `Filters`; times are those of entries.

        Raises:
            ValueError: the query has nothing to look for, ``role`` or ``sort`` is none of the above.
        """
        asked = _query.compile_query(query, phrase=phrase, prefix=prefix, regex=regex)
        _one_of({"relevance": "", "time": ""}, "sort", sort)
        where = Where().filter(filters, time="p.time", model="(p.model GLOB ? OR p.model GLOB ?)")
        _search.add_roles(where, role)
        search = _search.Search(self._database, asked, where, limit, every_copy=every_copy)
        return self._sound(lambda: search.run(by_time=sort == "time"))

    def totals(self, by: By = "all", **filters: Unpack[Filters]) -> list[Total]:
        """Sum tokens and cost up, as of the last refresh; entries that forks share count once.

        A shared entry counts for the session that was created first.

        Args:
            by: "all" (one sum), "session", "project", "model" or "day" (of local time).
            **filters: see `Filters`; times and models are those of entries.

        Returns:
            Days in their order, everything else by cost, then tokens, most first.

        Raises:
            ValueError: ``by`` is none of these.
        """
        key = _one_of(_KEYS, "by", by)
        where = Where().filter(filters, time="t.time", model="(t.model GLOB ? OR t.model GLOB ?)")
        order = (
            "1" if by == "day" else "6 DESC, sum(t.input + t.output + t.cache_read + t.cache_write) DESC, 1"
        )
        sql = (
            f"SELECT {key}, sum(t.input), sum(t.output), sum(t.cache_read), sum(t.cache_write), sum(t.cost), "
            "count(*), count(DISTINCT t.session) FROM (SELECT x.*, min(ifnull(o.created_ms, 9e15)) AS first "
            "FROM spend x JOIN sessions o ON o.key = x.session GROUP BY x.print) t "
            f"JOIN sessions s ON s.key = t.session WHERE {where} GROUP BY 1 ORDER BY {order}"
        )
        rows = self._sound(lambda: self._database.all(sql, where.arguments))
        return [Total(_decoded(row[0]), tokens_of(row[1:6]), row[6], row[7]) for row in rows if row[6]]

    def size(self) -> int:
        """Bytes of the catalog that hold something."""
        return self._sound(self._database.used_bytes)

    def compact(self) -> None:
        """Merge the index and give room back to the file system; takes as long as copying the catalog.

        Raises:
            OSError: the disk is full, or another process is using the catalog.
        """
        with self._database.reading() as connection:
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> list[str]:
        """Look the whole catalog over; what is wrong with it, nothing for a sound one."""
        try:
            found = [row[0] for row in self._database.all("PRAGMA integrity_check") if row[0] != "ok"]
            with self._database.writing() as connection:
                connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
                ((texts,),) = connection.execute("SELECT count(*) FROM passages")
                indexed = _rank.indexed(connection)
        except _db.DamagedError as error:
            return [str(error)]
        return found + ([f"the index has {indexed} texts of {texts}"] if indexed != texts else [])

    def clear(self) -> None:
        """Remove the catalog's files; the next refresh begins anew."""
        with self._database.lock:
            self._database.close()
            if not self._database.in_memory:
                for file in _db.generations(self._database.path):
                    _db.remove_files(file)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sound(self, work: Callable[[], T], *, refill: bool = True) -> T:
        """Do something with the database; one that is damaged is begun anew first."""
        try:
            return work()
        except _db.DamagedError:
            self._database.begin_anew()
        if refill:
            self.refresh(self._roots)
        return work()

    def _keep_small(self) -> None:
        """Drop texts of the sessions that are longest unchanged while there is too much."""
        if self._database.used_bytes() <= self._max_bytes:
            return
        rows = self._database.all("SELECT key FROM sessions WHERE has_text ORDER BY modified, key")
        queue = deque(key for (key,) in rows)
        while queue and self._database.used_bytes() > self._max_bytes * _SHRINK_TO:
            with self._database.writing() as connection:
                for _ in range(min(len(queue), 1 + len(rows) // 50)):
                    key = queue.popleft()
                    _update.forget_texts(connection, key, spends=False)
                    connection.execute("UPDATE sessions SET has_text = 0 WHERE key = ?", (key,))
            with self._database.writing() as connection:
                connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def _one_of(choices: dict[str, str], what: str, given: Any) -> str:
    if given not in choices:
        raise ValueError(f"{what} must be one of {', '.join(map(repr, choices))}, not {given!r}")
    return choices[given]


def _decoded(key: Any) -> str:
    return os.fsdecode(key) if isinstance(key, bytes) else key


class _Refresh:
    """One comparison of the catalog with the files."""

    def __init__(
        self,
        database: _db.Database,
        roots: list[str],
        on_progress: Callable[[int, int], object] | None,
        cancel: Cancel | None,
        on_error: OnError | None,
    ) -> None:
        self._database = database
        self._roots = roots
        self._on_progress = on_progress
        self._cancel = cancel
        self._on_error = on_error

    def run(self) -> Refreshed:
        """Scan, compare, read."""
        # What is known is asked for first: what others add while we look is not taken for gone.
        known = {
            os.fsdecode(path): (os.fsdecode(parent), _scan.Look(names, stats))
            for path, parent, names, stats in self._database.all(
                "SELECT path, parent, names, stats FROM folders"
            )
        }
        scan = _scan.Scan(self._on_error)
        for root in self._roots:
            self._go_on()
            scan.add_root(root, self._go_on)
        looks = {folder: look for folder, (_, look) in known.items()}
        removed = self._remove(list(_scan.missing(scan, known)))
        updates = [
            _update.Update(change.path, change.folder, change.size)
            for change in sorted(_scan.changes(scan, looks), key=lambda change: -change.mtime_ns)
        ]
        self._take_in(updates)
        self._remember(scan, known, updates)
        return self._report(scan, updates, removed)

    def _go_on(self) -> None:
        if self._cancel is not None and self._cancel.is_set():
            from concurrent.futures import CancelledError

            raise CancelledError("the refresh was cancelled")

    def _remove(self, gone: list[str]) -> int:
        removed = 0
        for start in range(0, len(gone), 100):
            self._go_on()
            with self._database.writing() as connection:
                for path in gone[start : start + 100]:
                    sql = "SELECT key FROM sessions WHERE path = ?"
                    row = connection.execute(sql, (os.fsencode(path),)).fetchone()
                    if row is not None and not os.path.exists(path):
                        _update.forget(connection, row[0])
                        removed += 1
        return removed

    def _take_in(self, updates: list[_update.Update]) -> None:
        total, done = sum(update.size for update in updates), 0
        queue = deque(updates)
        try:
            while queue:
                self._go_on()
                budget = _update.Budget()
                with self._database.writing() as connection:
                    while queue and not budget.is_spent():
                        before = queue[0].read
                        more = queue[0].step(connection, budget)
                        done += queue[0].read - before
                        if not more:
                            queue.popleft()
                if self._on_progress is not None:
                    self._on_progress(min(done, total), total)
        finally:
            for update in updates:
                update.close()

    def _remember(
        self,
        scan: _scan.Scan,
        known: dict[str, tuple[str, _scan.Look]],
        updates: list[_update.Update],
    ) -> None:
        """Keep what the folders looked like; files that are to be looked at again are left out."""
        doubtful: dict[str, set[str]] = {}
        for update in updates:
            if update.outcome == "later" or update.error is not None:
                doubtful.setdefault(update.folder, set()).add(os.path.basename(update.path))
                if update.error is not None and self._on_error is not None:
                    self._on_error(update.path, update.error)
        looks = {folder: look.without(doubtful.get(folder, set())) for folder, look in scan.folders.items()}
        new = [
            (os.fsencode(folder), os.fsencode(os.path.dirname(folder)), *look)
            for folder, look in looks.items()
            if folder not in known or known[folder][1] != look
        ]
        gone = [
            (os.fsencode(folder),)
            for folder, (parent, _) in known.items()
            if folder not in looks and scan.covers(folder, parent)
        ]
        if not new and not gone:
            return
        with self._database.writing() as connection:
            connection.executemany("DELETE FROM folders WHERE path = ?", gone)
            connection.executemany(
                "INSERT INTO folders (path, parent, names, stats) VALUES (?, ?, ?, ?) ON CONFLICT (path) "
                "DO UPDATE SET names = excluded.names, stats = excluded.stats",
                new,
            )

    def _report(self, scan: _scan.Scan, updates: list[_update.Update], removed: int) -> Refreshed:
        outcomes = [update.outcome for update in updates]
        return Refreshed(
            files=scan.files,
            added=outcomes.count("added"),
            grown=outcomes.count("grown"),
            replaced=outcomes.count("replaced"),
            removed=removed + outcomes.count("gone"),
            failed=len(scan.failed) + sum(update.error is not None for update in updates),
            bytes_read=sum(update.read for update in updates),
            complete=scan.complete,
        )
