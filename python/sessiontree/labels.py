"""Labels: names that label entries give to other entries (docs/format.md).

A label entry with a label sets it for its target, one without clears it, wherever in the tree it
stands. Labels are told in the order in which they were first set.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sessiontree.log import SessionLog


def map_key(value: Any) -> Any:
    """Give a dict key that is equal exactly where a JavaScript Map's keys are: 1 is not "1" nor true."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return (type(value), value)
    if isinstance(value, (int, float)):
        return (float, float(value))
    return (object, id(value))


class Labels:
    """The labels of a log, kept up with it: a look-up costs only the label entries that are new."""

    __slots__ = ("_generation", "_labels", "_log", "_seen")

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._forget()

    def _forget(self) -> None:
        self._labels: dict[Any, tuple[Any, Any, Any]] = {}
        self._seen = 0
        self._generation = self._log.generation

    def _current(self) -> dict[Any, tuple[Any, Any, Any]]:
        if self._generation != self._log.generation:
            self._forget()
        rows = self._log.store.labels(self._seen)
        if rows:
            for entry in self._log.entries(rows):
                self._apply(entry)
            self._seen += len(rows)
        return self._labels

    def _apply(self, entry: dict[str, Any]) -> None:
        target = entry.get("targetId")
        if entry.get("label"):
            self._labels[map_key(target)] = (target, entry["label"], entry.get("timestamp"))
        else:
            self._labels.pop(map_key(target), None)

    def get(self, target: Any) -> tuple[Any, Any] | None:
        """Give the label of an entry and the time it was set, if there is one."""
        found = self._current().get(map_key(target))
        return found[1:] if found else None

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Give (target id, label, timestamp) in order of first setting."""
        return iter(list(self._current().values()))

    def __len__(self) -> int:
        return len(self._current())
