"""The context at a leaf of an open session, from the index: only what is selected is parsed.

A model is asked turn after turn, each time with a context that is a little longer. So the last
context is kept, and the next one is made from it: where the leaf has moved on, only the new entries
are walked over, read and projected; after a branch or a compaction the bodies that both contexts
share are taken over. What is kept holds as long as the shape of the tree above it (`Store.epoch`).

Selection and projection are those of `sessiontree.context`, but an entry that makes no sense (a
message that is null, an edit without content) contributes nothing instead of raising TypeError.
"""

from __future__ import annotations

from array import array
from itertools import islice

from sessiontree import context as plain
from sessiontree.context import ProjectedEntry, SessionContext, SessionProjection
from sessiontree.entries import UNSET
from sessiontree.exceptions import BrokenTreeWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sessiontree._native import Rows
    from sessiontree.entries import JsonObject
    from sessiontree.log import SessionLog

_NEAR = 64
_SYSTEM = 4


class LiveContext:
    """The contexts of one log; the last one is remembered. Not safe from several threads at once."""

    __slots__ = (
        "_counts",
        "_edits",
        "_entries",
        "_epoch",
        "_kept",
        "_leaf",
        "_level",
        "_log",
        "_messages",
        "_model",
        "_rows",
    )

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._epoch = -1
        self.forget()

    def forget(self) -> None:
        """Drop what is remembered, and the memory it takes."""
        # Compaction -> first row it keeps, None if that is not above it.
        self._kept: dict[int, int | None] = {}
        self._level: tuple[int | None, Any] = (None, plain.DEFAULT_THINKING_LEVEL)
        self._model: tuple[int | None, JsonObject | None] = (None, None)
        self._drop_context()

    def _drop_context(self) -> None:
        self._leaf: int | None = None
        # The entries of the last context, by place: row, body, number of contributed messages. One
        # list of messages, and no list for each entry: a million of those would wake the collector.
        self._rows = array("I")
        self._entries: list[Any] = []
        self._counts = array("B")
        self._messages: list[Any] = []
        self._edits: dict[Any, Any] = {}

    # ---- the answers

    def rows(self, leaf: int | None) -> Rows | range:
        """Give the rows of the entries that make up the context at ``leaf``."""
        if leaf is None:
            return range(0)
        self._check_epoch()
        compaction, _, _, cyclic = self._log.store.landmarks(leaf)
        return self._select(leaf, compaction, cyclic)

    def projection(self, leaf: int | None) -> SessionProjection:
        """Give the context with its sources."""
        level, model = self._advance(leaf)
        messages = iter(self._messages)
        entries = [
            ProjectedEntry(entry, list(islice(messages, count)))
            for entry, count in zip(self._entries, self._counts, strict=True)
        ]
        return SessionProjection(entries, self._messages.copy(), level, model)

    def context(self, leaf: int | None, *, pair_tool_results: bool = False) -> SessionContext:
        """Give the messages, the thinking level and the model."""
        level, model = self._advance(leaf)
        pick = plain.paired_tool_results if pair_tool_results else list
        return SessionContext(pick(self._messages), level, model)

    def system_messages(self, leaf: int | None) -> list[Any]:
        """Give the system messages of the context: of entries that have the role, and of a compaction."""
        self._advance(leaf)
        roles = self._log.store.roles(self._rows)
        place = 0 if roles else -1
        messages: list[Any] = []
        while place >= 0:
            messages += _contribution(self._entries[place], self._edits, first=place == 0)
            place = roles.find(_SYSTEM, place + 1)
        return [m for m in messages if isinstance(m, dict) and m.get("role") == "system"]

    # ---- selection

    def _check_epoch(self) -> None:
        epoch = self._log.store.epoch()
        if epoch != self._epoch:
            self.forget()
            self._epoch = epoch

    def _select(self, leaf: int, compaction: int | None, cyclic: bool) -> Rows:
        store = self._log.store
        if compaction is None or cyclic:
            path = store.path_until_cycle(leaf)[0]
            if cyclic:
                self._warn(plain.cycle_text(store.id(path[0])))
            if compaction is None:
                return path
            return store.select(path, compaction, self._kept_row(compaction)[0])[0]
        kept, names = self._kept_row(compaction)
        rows, found = store.context_rows(leaf, compaction, kept)
        if not found and names is not None:
            # It will not get above its compaction any more: do not look for it every time.
            self._kept[compaction] = None
            self._warn(plain.kept_text(store.id(compaction), names))
        return rows

    def _kept_row(self, compaction: int) -> tuple[int | None, Any]:
        """The first row that a compaction keeps, and its id if that was not looked up before."""
        if compaction in self._kept:
            return self._kept[compaction], None
        entry = self._log.entry(compaction)
        kept_id = entry.get("firstKeptEntryId")
        if not plain.names_another(kept_id, entry.get("id")):
            kept_id = None
        row = None if kept_id is None else self._log.store.find(kept_id)
        self._kept[compaction] = row
        return row, kept_id

    def _warn(self, text: str) -> None:
        self._log.warn(BrokenTreeWarning, text)

    # ---- keeping up

    def _advance(self, leaf: int | None) -> tuple[Any, JsonObject | None]:
        """Make the remembered context that of ``leaf``; gives thinking level and model."""
        self._check_epoch()
        if leaf is None:
            self._drop_context()
            return plain.DEFAULT_THINKING_LEVEL, None
        store = self._log.store
        compaction, thinking, model, cyclic = store.landmarks(leaf)
        if leaf != self._leaf:
            new = None
            if self._leaf is not None and not cyclic:
                # A new compaction ends the search: what came before it has to be selected anew.
                new = store.descent(self._leaf, leaf, compaction)
            if new is None:
                self._rebuild(self._select(leaf, compaction, cyclic))
            else:
                self._extend(new.tolist())
            self._leaf = leaf
        return self._level_at(thinking), self._model_at(model)

    def _rebuild(self, selected: Rows) -> None:
        rows = array("I", selected.tolist())
        known = dict(zip(self._rows, self._entries, strict=True))
        if known:
            missing = [row for row in rows if row not in known]
            known.update(zip(missing, self._log.entries(missing), strict=True))
            entries = [known[row] for row in rows]
        else:
            entries = self._log.entries(selected)
        self._drop_context()
        self._edits = _usable_edits(entries)
        self._take(rows, entries)

    def _extend(self, rows: list[int]) -> None:
        entries = self._log.entries(rows)
        edits = _usable_edits(entries)
        self._edits.update(edits)
        if edits:
            self._edit_again(edits)
        self._take(rows, entries)

    def _edit_again(self, edits: dict[Any, Any]) -> None:
        """Project the targets of new edits anew."""
        for place, entry in enumerate(self._entries):
            if plain.id_key(entry.get("id", UNSET)) in edits:
                piece = _contribution(entry, self._edits, first=place == 0)
                start = sum(self._counts[:place])
                self._messages[start : start + self._counts[place]] = piece
                self._counts[place] = len(piece)

    def _take(self, rows: Sequence[int], entries: list[Any]) -> None:
        """Add entries at the end of the remembered context."""
        edits = self._edits
        messages: list[Any] = []
        counts = array("B")
        first = not self._entries
        for entry in entries:
            message = entry.get("message")
            plainly = not edits and isinstance(message, dict) and message.get("content") is not None
            if plainly and entry.get("type") == "message":
                # Nearly every entry: nothing to look up, nothing to build.
                messages.append(message)
                counts.append(1)
            else:
                piece = _contribution(entry, edits, first=first)
                messages += piece
                counts.append(len(piece))
            first = False
        self._rows.extend(rows)
        self._entries += entries
        self._counts.extend(counts)
        self._messages += messages

    # ---- settings

    def _level_at(self, row: int | None) -> Any:
        if row != self._level[0]:
            value = plain.DEFAULT_THINKING_LEVEL if row is None else self._body(row).get("thinkingLevel")
            self._level = (row, value)
        return self._level[1]

    def _model_at(self, row: int | None) -> JsonObject | None:
        if row != self._model[0]:
            self._model = (row, None if row is None else plain.model_of(self._body(row)))
        model = self._model[1]
        return None if model is None else dict(model)

    def _body(self, row: int) -> JsonObject:
        """The body of a row, which is most often one of the last that were read."""
        rows = self._rows
        for place in range(len(rows) - 1, max(-1, len(rows) - 1 - _NEAR), -1):
            if rows[place] == row:
                return self._entries[place]  # type: ignore[no-any-return]
        return self._log.entry(row)  # type: ignore[no-any-return]


def _usable_edits(entries: list[Any]) -> dict[Any, Any]:
    """The newest edit that can be applied, for each target."""
    edits = [entry for entry in entries if entry.get("type") == "context_edit"]
    return plain.newest_edits(e for e in edits if plain.is_replacement(e.get("replacement", UNSET)))


def _contribution(entry: Any, edits: dict[Any, Any], *, first: bool) -> list[Any]:
    """The messages of one selected entry; only a compaction that comes first has any."""
    kind = entry.get("type")
    if kind == "message" and entry.get("message") is None:
        return []
    if kind == "compaction" and not first:
        return []
    edit = edits.get(plain.id_key(entry.get("id", UNSET))) if edits else None
    return plain.project_context_entry(entry, edit)
