"""The tree of a session as lines: which entry stands where, and how deep."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Outline:
    """The lines of a tree, top to bottom: a branch before the next one, the oldest first.

    Only where a branch forks do its lines move in, so that a conversation of 20,000 entries without
    forks is one column. Entries whose parents form a cycle, or are missing, begin anew at the left.

    Attributes:
        order: the row of each line (int32).
        depth: how far each row is moved in (int32, by row).
        line: the line of each row (int32, by row).

    Example:
        >>> outline = Outline([-1, 0, 0, 1])
        >>> list(outline.order), list(outline.depth)
        ([0, 1, 3, 2], [0, 1, 1, 1])
        >>> outline.grow([2])
        >>> list(outline.order)
        [0, 1, 3, 2, 4]
    """

    def __init__(self, parents: Iterable[int]) -> None:
        self._parents = array("i", parents)
        self._lay_all()

    def __len__(self) -> int:
        return len(self.order)

    def grow(self, parents: Iterable[int]) -> None:
        """Take in rows that were appended, if the older ones keep their parents.

        It is cheap where they go on from the last line.
        """
        before = len(self._parents)
        self._parents.extend(parents)
        for row in range(before, len(self._parents)):
            parent = self._parents[row]
            if not self.order or parent != self.order[-1] or self._first[parent] >= 0:
                self._lay_all()
                return
            self._first[parent] = row
            self._first.append(-1)
            self._next.append(-1)
            self.depth.append(self.depth[parent])
            self.line.append(len(self.order))
            self.order.append(row)

    def deepest(self, row: int) -> int:
        """Follow a branch on, by the newest child each time; gives its last entry."""
        met = set()
        while row not in met:
            met.add(row)
            child = self._first[row]
            while child >= 0:
                row, child = child, self._next[child]
        return row

    def _lay_all(self) -> None:
        count = len(self._parents)
        self._first, self._next = array("i", [-1]) * count, array("i", [-1]) * count
        roots = array("i")
        for row in range(count - 1, -1, -1):
            parent = self._parents[row]
            if 0 <= parent < count and parent != row:
                self._next[row], self._first[parent] = self._first[parent], row
            else:
                roots.append(row)
        self.order, self.depth = array("i"), array("i", [0]) * count
        self.line = array("i", [-1]) * count
        for row in reversed(roots):
            self._lay(row)
        for row in range(count):
            if self.line[row] < 0:
                self._lay(row)

    def _lay(self, start: int) -> None:
        stack = [start]
        while stack:
            row = stack.pop()
            if self.line[row] >= 0:
                continue
            self.line[row] = len(self.order)
            self.order.append(row)
            child = self._first[row]
            forks = child >= 0 and self._next[child] >= 0
            below = []
            while child >= 0:
                if self.line[child] < 0:
                    self.depth[child] = self.depth[row] + forks
                    below.append(child)
                child = self._next[child]
            stack.extend(reversed(below))
