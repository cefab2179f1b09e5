"""Searching: first which entries, then the words around the hits of those that are shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from sessiontree.catalog import _db, _query, _texts
from sessiontree.catalog._found import Hit, Where, time_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from sessiontree.catalog._db import Database
    from sessiontree.catalog._query import Query

_Found = tuple[int, int, str]
_BATCH: Final = 400
_FROM: Final = "passages p JOIN sessions s ON s.key = p.session"
_SHOWN: Final = (
    "SELECT p.id, s.path, s.id, ifnull(s.name, substr(s.first_message, 1, 200)), s.cwd, p.entry, p.role, "
    f"p.time, p.model, p.text FROM {_FROM} WHERE p.id = ?"
)
_SNIPPET: Final = (
    f"SELECT snippet(words, 0, '{_query.START}', '{_query.END}', '…', 24) FROM words "
    "WHERE words MATCH ? AND rowid = ?"
)


def add_roles(where: Where, role: str | Sequence[str] | None) -> None:
    """Only texts of these roles.

    Raises:
        ValueError: there is no such role.
    """
    if role is None:
        return
    roles = [_texts.ALIASES.get(name, name) for name in ([role] if isinstance(role, str) else role)]
    for name in roles:
        if name not in _texts.ROLES:
            raise ValueError(f"role must be one of {', '.join(map(repr, _texts.ROLES))}, not {name!r}")
    where.add(f"p.role IN ({', '.join('?' * len(roles))})", *roles)


class Search:
    """One search; see `sessiontree.catalog.Catalog.search`."""

    def __init__(
        self, database: Database, query: Query, where: Where, limit: int | None, *, every_copy: bool
    ) -> None:
        self._database = database
        self._query = query
        self._where = where
        self._limit = _db.MOST if limit is None else limit
        self._every_copy = every_copy

    def run(self, *, by_time: bool) -> list[Hit]:
        """Search."""
        with self._database.reading() as connection:
            connection.execute("BEGIN")
            try:
                ids = self._ids(connection, by_time=by_time)
                return [self._hit(connection, id) for id in self._first(ids)]
            finally:
                connection.execute("COMMIT")

    def _first(self, found: Iterator[_Found]) -> Iterator[int]:
        """As many as are wanted; of entries that forks share only the first, if so wanted."""
        seen: set[tuple[int, str]] = set()
        given = 0
        for id, print, role in found:
            if given >= self._limit:
                return
            if self._every_copy or (print, role) not in seen:
                seen.add((print, role))
                given += 1
                yield id

    def _ids(self, connection: sqlite3.Connection, *, by_time: bool) -> Iterator[_Found]:
        """Give id, print and role of all that is found, in their order."""
        match, order = self._query.match, "p.time DESC, p.id DESC"
        if match:
            order = order if by_time else "words.rank"
            sql = (
                "SELECT p.id, p.print, p.role FROM words JOIN passages p ON p.id = words.rowid "
                f"JOIN sessions s ON s.key = p.session WHERE words MATCH ? AND {self._where} ORDER BY {order}"
            )
            rows = connection.execute(sql, (match, *self._where.arguments))
        else:
            sql = f"SELECT p.id, p.print, p.role FROM {_FROM} WHERE {self._where} ORDER BY {order}"
            rows = connection.execute(sql, self._where.arguments)
        if match and not self._query.wanted and not self._query.unwanted:
            return rows
        return self._fitting(connection, rows)

    def _fitting(self, connection: sqlite3.Connection, rows: sqlite3.Cursor) -> Iterator[_Found]:
        """Those whose texts have what the index cannot tell."""
        while batch := rows.fetchmany(_BATCH):
            places = ", ".join("?" * len(batch))
            sql = f"SELECT id, text FROM passages WHERE id IN ({places})"
            texts = dict(connection.execute(sql, [row[0] for row in batch]))
            yield from (row for row in batch if self._query.fits(texts[row[0]]))

    def _hit(self, connection: sqlite3.Connection, id: int) -> Hit:
        row: Any = connection.execute(_SHOWN, (id,)).fetchone()
        if self._query.match:
            (marked,) = connection.execute(_SNIPPET, (self._query.match, id)).fetchone()
            snippet, marks = _query.unmarked(marked)
        else:
            snippet, marks = _query.around(row[9], *self._query.place(row[9]))
        name = " ".join(row[3].split())[:80]
        return Hit(
            os.fsdecode(row[1]), row[2], name, row[4], row[5], row[6], time_of(row[7]), row[8], snippet, marks
        )
