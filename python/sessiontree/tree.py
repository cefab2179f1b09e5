"""The session as a tree of lazy nodes: children are looked up when they are asked for."""

from __future__ import annotations

from sessiontree import jsontext
from sessiontree.entries import UNSET

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
        with self._log.lock:
            self._log.check_generation(self._generation)
            return self._log.store.id(self._row)

    @property
    def entry(self) -> Any:
        """The entry as a fresh dict."""
        with self._log.lock:
            self._log.check_generation(self._generation)
            return self._log.entry(self._row)

    @property
    def children(self) -> list[TreeNode]:
        """The nodes below, sorted by time; entries with an unknown time come last, in file order."""
        with self._log.lock:
            self._log.check_generation(self._generation)
            rows = _by_time(self._log, self._log.store.tree_children(self._row))
            return [TreeNode(self._log, self._labels, row) for row in rows]

    def _label(self) -> tuple[Any, Any] | None:
        with self._log.lock:
            return self._labels.get(self.id)

    @property
    def label(self) -> Any:
        """The entry's label, or None."""
        found = self._label()
        return found[0] if found else None

    @property
    def label_timestamp(self) -> Any:
        """When the label was set, or None."""
        found = self._label()
        return found[1] if found else None

    def __repr__(self) -> str:
        return f"TreeNode({self.id!r})"


def _by_time(log: SessionLog, rows: list[int]) -> list[int]:
    """Sort siblings whose times the index does not know, which come last, in among the others.

    The index knows times in the form that pi writes; the others are read as JavaScript reads them.
    What is no time at all stays last, in file order.
    """
    if len(rows) < 2 or log.store.time(rows[-1]) is not None:
        return rows
    return sorted(rows, key=lambda row: _time_key(log, row))


def _time_key(log: SessionLog, row: int) -> tuple[bool, float, int]:
    time: float | None = log.store.time(row)
    if time is None:
        entry = log.entry(row)
        time = jsontext.parse_date(entry.get("timestamp", UNSET) if isinstance(entry, dict) else UNSET)
    known = time == time  # noqa: PLR0124 - NaN is what is no date
    return not known, time if known else 0, row


def roots(log: SessionLog, labels: Labels) -> list[TreeNode]:
    """Give the nodes that hang on nothing: no parent, an unknown one, themselves, or a cycle."""
    return [TreeNode(log, labels, row) for row in log.store.tree_roots().tolist()]
