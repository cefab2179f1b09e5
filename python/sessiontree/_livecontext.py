"""The context at a leaf of an open session, from the index: only what is selected is parsed."""

from __future__ import annotations

from sessiontree import context as plain
from sessiontree.context import ProjectedEntry, SessionContext, SessionProjection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessiontree._native import Rows
    from sessiontree.log import SessionLog


class LiveContext:
    """Contexts of one log."""

    __slots__ = ("_log",)

    def __init__(self, log: SessionLog) -> None:
        self._log = log

    def rows(self, leaf: int | None) -> Rows | range:
        """Give the rows of the entries that make up the context at ``leaf``."""
        if leaf is None:
            return range(0)
        store = self._log.store
        path, _cyclic = store.path_until_cycle(leaf)
        compaction = store.landmarks(path)[0]
        if compaction is None:
            return path
        kept = store.find(self._log.entry(compaction).get("firstKeptEntryId"))
        return store.select(path, compaction, kept)

    def projection(self, leaf: int | None) -> SessionProjection:
        """Give the context with its sources."""
        selected = self._log.entries(self.rows(leaf))
        edits = plain.newest_edits(selected)
        messages = plain._projected(selected, edits)  # noqa: SLF001
        entries = [ProjectedEntry(e, m) for e, m in zip(selected, messages, strict=True)]
        level, model = self._settings(leaf)
        return SessionProjection(entries, [m for e in entries for m in e.messages], level, model)

    def context(self, leaf: int | None, *, pair_tool_results: bool = False) -> SessionContext:
        """Give the messages, the thinking level and the model."""
        found = self.projection(leaf)
        messages = plain.paired_tool_results(found.messages) if pair_tool_results else found.messages
        return SessionContext(messages, found.thinking_level, found.model)

    def _settings(self, leaf: int | None) -> tuple[Any, Any]:
        if leaf is None:
            return "off", None
        store = self._log.store
        _, thinking, model = store.landmarks(store.path_until_cycle(leaf)[0])
        level = "off" if thinking is None else self._log.entry(thinking).get("thinkingLevel")
        return level, None if model is None else plain.model_of(self._log.entry(model))
