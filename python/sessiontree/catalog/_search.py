"""Searching: first which entries, then the words around the hits of those that are shown."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sessiontree.catalog import _db, _query, _rank, _texts
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
    f"p.time, p.model, p.text FROM {_FROM} WHERE p.id IN "
)
_RANKED: Final = (
    f"SELECT words.rowid AS id, {_rank.SCORE} AS score FROM words{{joins}} "
    "WHERE words MATCH ? AND {where} ORDER BY score, words.rowid LIMIT ?"
)
_PASSAGES: Final = " JOIN passages p ON p.id = words.rowid"
_SESSIONS: Final = " JOIN sessions s ON s.key = p.session"
# The index holds no texts to take snippets from: those that are shown are put into one of their own.
_INDEX: Final = f"CREATE VIRTUAL TABLE temp.excerpts USING fts5 (text, columnsize=0, {_db.TOKENS})"
_SNIPPETS: Final = (
    f"SELECT rowid, snippet(excerpts, 0, '{_query.START}', '{_query.END}', '…', 24) FROM temp.excerpts "
    "WHERE excerpts MATCH ?"
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
                ids = list(self._first(self._found(connection, by_time=by_time)))
                return [hit for hits in _batches(ids) for hit in self._hits(connection, hits)]
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _first(self, found: Iterator[_Found]) -> Iterator[int]:
        """As many as are wanted; of entries that forks share only the first, if so wanted."""
        seen: set[tuple[int, str]] = set()
        given = 0
        if self._limit <= 0:
            return
        for id, print, role in found:
            if self._every_copy or (print, role) not in seen:
                seen.add((print, role))
                given += 1
                yield id
                if given >= self._limit:
                    return

    def _found(self, connection: sqlite3.Connection, *, by_time: bool) -> Iterator[_Found]:
        """Give id, print and role of all that is found, in their order."""
        is_ranked = self._query.match and not by_time
        rows = self._ranked(connection) if is_ranked else self._by_time(connection)
        if self._query.match and not self._query.wanted and not self._query.unwanted:
            return rows
        return self._fitting(connection, rows)

    def _by_time(self, connection: sqlite3.Connection) -> Iterator[_Found]:
        match, tables, condition = self._query.match, _FROM, ""
        if match:
            tables, condition = f"words{self._joins() or _PASSAGES}", "words MATCH ? AND "
        sql = (
            f"SELECT p.id, p.print, p.role FROM {tables} WHERE {condition}{self._where} "
            "ORDER BY p.time DESC, p.id DESC"
        )
        return connection.execute(sql, [*([match] if match else []), *self._where.arguments])

    def _ranked(self, connection: sqlite3.Connection) -> Iterator[_Found]:
        """The best first: some more than are wanted, and if these do not do, many more.

        Sorting all that common words find, and looking at their rows, takes longer than finding them.
        """
        ranked = _RANKED.format(joins=self._joins(), where=self._where)
        sql = (
            f"SELECT p.id, p.print, p.role FROM ({ranked}) r JOIN passages p ON p.id = r.id "
            "ORDER BY r.score, r.id"
        )
        arguments = (_rank.factor(connection), self._query.match, *self._where.arguments)
        spare = 0 if self._every_copy else self._limit // 4 + 14
        given, most = 0, min(self._limit + spare, _db.MOST)
        while True:
            rows = connection.execute(sql, (*arguments, most)).fetchall()
            yield from rows[given:]
            if len(rows) < most:
                return
            given, most = most, min(most * 8, _db.MOST)

    def _joins(self) -> str:
        """The tables that the conditions speak of: each costs a look-up a hit."""
        where = str(self._where)
        if "s." in where:
            return _PASSAGES + _SESSIONS
        return _PASSAGES if "p." in where else ""

    def _fitting(self, connection: sqlite3.Connection, rows: Iterator[_Found]) -> Iterator[_Found]:
        """Those whose texts have what the index cannot tell."""
        while batch := list(islice(rows, _BATCH)):
            places = ", ".join("?" * len(batch))
            sql = f"SELECT id, text FROM passages WHERE id IN ({places})"
            texts = dict(connection.execute(sql, [row[0] for row in batch]))
            yield from (row for row in batch if self._query.fits(texts[row[0]]))

    def _hits(self, connection: sqlite3.Connection, ids: Sequence[int]) -> Iterator[Hit]:
        places = ", ".join("?" * len(ids))
        rows: dict[int, Any] = {row[0]: row for row in connection.execute(f"{_SHOWN}({places})", ids)}
        snippets = self._snippets(connection, [(id, rows[id][9]) for id in ids])
        for id in ids:
            row, (snippet, marks) = rows[id], snippets[id]
            name = " ".join(row[3].split())[:80]
            time = time_of(row[7])
            yield Hit(os.fsdecode(row[1]), row[2], name, row[4], row[5], row[6], time, row[8], snippet, marks)

    def _snippets(
        self, connection: sqlite3.Connection, texts: list[tuple[int, str]]
    ) -> dict[int, tuple[str, _query.Marks]]:
        if not self._query.match:
            return {id: _query.around(text, *self._query.place(text)) for id, text in texts}
        seen = {id: self._query.excerpt(text) for id, text in texts}
        made = {id: excerpt for id, excerpt in seen.items() if excerpt is not None}
        rest = [(id, text) for id, text in texts if seen[id] is None]
        return made | self._excerpts(connection, rest) if rest else made

    def _excerpts(
        self, connection: sqlite3.Connection, texts: list[tuple[int, str]]
    ) -> dict[int, tuple[str, _query.Marks]]:
        connection.execute("SAVEPOINT excerpts")
        try:
            connection.execute(_INDEX)
            connection.executemany("INSERT INTO temp.excerpts (rowid, text) VALUES (?, ?)", texts)
            rows = connection.execute(_SNIPPETS, (self._query.match,)).fetchall()
        finally:
            connection.execute("ROLLBACK TO excerpts")
            connection.execute("RELEASE excerpts")
        return {id: _query.unmarked(snippet) for id, snippet in rows}


def _batches(ids: list[int]) -> Iterator[list[int]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
