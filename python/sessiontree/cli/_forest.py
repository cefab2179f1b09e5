"""The tree of a session as straight chains, so that any tree can be drawn without recursion and not too wide.

Each entry has one main child: the one on the way to the leaf, else the one with the most entries below.
Entries and their main children form chains; the other children begin chains of their own, one step further
in. A chain that is not on the way to the leaf holds less than half of what its parent's chain holds, so even
a million entries nest no deeper than 20 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree import SessionManager

UNKNOWN_TIME = -(1 << 63)


@dataclass(frozen=True, slots=True)
class Forest:
    """Parents and children of all entries, by their place in the file."""

    parents: list[int]
    children: dict[int, list[int]]
    roots: list[int]
    sizes: list[int]
    on_path: set[int]
    leaf: int | None
    kinds: list[int]

    @classmethod
    def of(cls, session: SessionManager) -> Forest:
        """Take the index of a session apart; no entry is read for it."""
        columns = session.columns()
        parents = columns["parent"].tolist()
        times = columns["timestamp"].tolist()
        children: dict[int, list[int]] = {}
        roots = []
        for row, parent in enumerate(parents):
            if parent < 0 or parent == row:
                roots.append(row)
            else:
                children.setdefault(parent, []).append(row)
        for siblings in children.values():
            if len(siblings) > 1:
                siblings.sort(key=lambda row: (times[row] == UNKNOWN_TIME, times[row]))
        leaf_id = session.get_leaf_id()
        leaf = None if leaf_id is None else session.find_row(leaf_id)
        order = _order(parents, children, roots)
        return cls(
            parents,
            children,
            roots,
            _sizes(children, order),
            _ancestors(parents, leaf),
            leaf,
            columns["kind"].tolist(),
        )

    def main_child(self, row: int) -> int | None:
        """Give the child that goes straight on, or None at the end of a chain."""
        below = self.children.get(row)
        if not below:
            return None
        if len(below) == 1:
            return below[0]
        on_path = [child for child in below if child in self.on_path]
        return on_path[0] if on_path else max(reversed(below), key=self.sizes.__getitem__)

    def chain(self, row: int) -> Iterator[int]:
        """Give an entry and what goes straight on below it."""
        at: int | None = row
        while at is not None:
            yield at
            at = self.main_child(at)

    def branches(self, row: int) -> list[int]:
        """Give the children that do not go straight on."""
        below = self.children.get(row, ())
        if len(below) < 2:
            return []
        main = self.main_child(row)
        return [child for child in below if child != main]


def _order(parents: list[int], children: dict[int, list[int]], roots: list[int]) -> list[int]:
    """Give all rows, parents first. The first entry of a cycle is made a root, so that nothing is lost."""
    order: list[int] = []
    seen = bytearray(len(parents))
    _visit(children, list(roots), order, seen)
    if len(order) < len(parents):
        for row in range(len(parents)):
            if not seen[row]:
                _cut_cycle(parents, children, row)
                roots.append(row)
                _visit(children, [row], order, seen)
        roots.sort()
    return order


def _visit(children: dict[int, list[int]], waiting: list[int], order: list[int], seen: bytearray) -> None:
    while waiting:
        row = waiting.pop()
        if not seen[row]:
            seen[row] = 1
            order.append(row)
            waiting.extend(children.get(row, ()))


def _cut_cycle(parents: list[int], children: dict[int, list[int]], row: int) -> None:
    children[parents[row]].remove(row)
    parents[row] = -1


def _sizes(children: dict[int, list[int]], order: list[int]) -> list[int]:
    """Count each entry with all that is below it."""
    sizes = [1] * len(order)
    for row in reversed(order):
        for child in children.get(row, ()):
            sizes[row] += sizes[child]
    return sizes


def _ancestors(parents: list[int], row: int | None) -> set[int]:
    """Give a row and all above it."""
    found: set[int] = set()
    while row is not None and row >= 0:
        found.add(row)
        row = parents[row] if parents[row] != row else None
    return found
