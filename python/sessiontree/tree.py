"""The session as a tree of lazy nodes: children are looked up when they are asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessiontree.labels import Labels
    from sessiontree.log import SessionLog


class TreeNode:
    """An entry in the tree.

    Attributes:
        entry: the entry; parsed when asked for.
        children: nodes of the entries whose parent it is, oldest first.
        label: its label, or None.
        label_timestamp: when the label was set, or None.

    Example:
        >>> from sessiontree import SessionManager
        >>> session = SessionManager.in_memory("/code")
        >>> root = session.append_message({"role": "user", "content": "hello", "timestamp": 0})
        >>> [node.id == root for node in session.get_tree()]
        [True]
    """

    __slots__ = ("_generation", "_labels", "_log", "_row")

    def __init__(self, log: SessionLog, labels: Labels, row: int) -> None:
        self._log = log
        self._labels = labels
        self._row = row
        self._generation = log.generation

    @property
    def row(self) -> int:
        """The row of the entry in the index."""
        return self._row

    @property
    def id(self) -> Any:
        """The entry's id; its body is not read for it."""
        return self._log.store.id(self._row)

    @property
    def entry(self) -> Any:
        """The entry as a fresh dict."""
        self._log.check_generation(self._generation)
        return self._log.entry(self._row)

    @property
    def children(self) -> list[TreeNode]:
        """The nodes below, sorted by time; entries with an unknown time come last, in file order."""
        self._log.check_generation(self._generation)
        store = self._log.store
        if store.owner(self._row) != self._row:
            return []
        rows = [row for row in store.children(self._row) if row != self._row]
        return [TreeNode(self._log, self._labels, row) for row in sort_by_time(store, rows)]

    @property
    def label(self) -> Any:
        """The entry's label, or None."""
        found = self._labels.get(self.id)
        return found[0] if found else None

    @property
    def label_timestamp(self) -> Any:
        """When the label was set, or None."""
        found = self._labels.get(self.id)
        return found[1] if found else None

    def __repr__(self) -> str:
        return f"TreeNode({self.id!r})"


def sort_by_time(store: Any, rows: list[int]) -> list[int]:
    """Sort rows by time, stable; rows without a known time come last."""
    if len(rows) < 2:
        return rows
    times = [(row, store.time(row)) for row in rows]
    return [row for row, _ in sorted(times, key=lambda pair: (pair[1] is None, pair[1] or 0))]


def roots(log: SessionLog, labels: Labels) -> list[TreeNode]:
    """Give the nodes that hang on nothing: no parent, an unknown one, themselves, or a cycle."""
    store = log.store
    rows = sorted([*store.roots().tolist(), *store.orphans().tolist()])
    return [TreeNode(log, labels, row) for row in rows]
