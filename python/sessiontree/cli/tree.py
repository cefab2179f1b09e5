"""``sessiontree tree``: the whole session as a tree, long straight stretches folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sessiontree.cli import _entry, _place
from sessiontree.cli._forest import Forest
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._report import report_lines
from sessiontree.cli._text import cell_len, count, one_line
from sessiontree.cli.path import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree import SessionManager

# Kinds of entries that are worth a line wherever they stand: compactions and summaries of branches.
_LANDMARKS = (5, 6)
_LABEL = 10
# Folding fewer entries would save no lines.
_LEAST_FOLDED = 3
_SHOWN_BRANCHES = 12


@click.command("tree", short_help="Draw the tree of entries.")
@_place.session_argument
@click.option(
    "--keep", default=2, show_default=True, type=click.IntRange(0), help="Entries at each end of a fold."
)
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    keep: int,
    everything: bool,
    as_json: bool,
) -> None:
    r"""Draw the tree of SESSION.

    The line to the leaf goes straight down, other branches stand one step further in, under the entry that
    they leave from. Straight stretches are folded; labels, compactions and branches never are.

    \b
    Examples:
      sessiontree tree
      sessiontree tree 0198 --keep 0
      sessiontree tree session.jsonl --all

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    with _place.Place(cwd, session_dir).open(session) as opened:
        if as_json:
            say_json(tree_json(opened))
        else:
            draw(opened, None if everything else keep)


def draw(session: SessionManager, keep: int | None) -> None:
    """Print the tree; ``keep`` entries at each end of a fold, None folds nothing."""
    screen = Screen.of_stdout()
    with progress("drawing"):
        forest = Forest.of(session)
        labels = labels_of(session, forest)
    for line in _heading(session, forest, labels):
        say(screen.heading(line))
    drawing = _Drawing(session, forest, labels, screen, keep)
    for root in forest.roots:
        say()
        for line in drawing.lines(root):
            say(line)


def labels_of(session: SessionManager, forest: Forest) -> dict[int, str]:
    """Give the labels that stand, by the row of what they label."""
    entries = session.get_entries()
    targets = {
        target: None
        for row, kind in enumerate(forest.kinds)
        if kind == _LABEL and isinstance(target := _entry.field(entries[row], "targetId"), str)
    }
    found = {session.find_row(target): session.get_label(target) for target in targets}
    return {row: _entry.as_text(label) for row, label in found.items() if row is not None and label}


def _heading(session: SessionManager, forest: Forest, labels: dict[int, str]) -> Iterator[str]:
    name = session.get_session_name()
    yield "  ".join(filter(None, (session.get_session_id(), name, session.get_cwd())))
    branches = sum(len(below) - 1 for below in forest.children.values()) + len(forest.roots)
    facts = [
        count(len(forest.parents), "entry", "entries"),
        count(branches, "branch", "branches"),
        count(forest.kinds.count(5), "compaction"),
        count(len(labels), "label"),
    ]
    yield ", ".join(facts)
    yield from report_lines(session)


@dataclass(frozen=True, slots=True)
class _Drawing:
    session: SessionManager
    forest: Forest
    labels: dict[int, str]
    screen: Screen
    keep: int | None

    def lines(self, root: int) -> Iterator[str]:
        """Draw what hangs on a root. A stack, not recursion: trees can be deeper than Python's stack."""
        stack = [self._chain(root, 0)]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif isinstance(found, int):
                stack.append(self._chain(found, len(stack)))
            else:
                yield found

    def _chain(self, head: int, level: int) -> Iterator[str | int]:
        """Draw a chain: its lines, and the first rows of the branches that leave it, where they do."""
        run: list[int] = []
        before = self._indent(level, head=True)
        for row in self.forest.chain(head):
            if row != head and self._is_plain(row):
                run.append(row)
                continue
            yield from self._run(run, level)
            run = []
            yield self._line(row, before)
            before = self._indent(level)
            yield from self._branches(row, level)
        yield from self._run(run, level)

    def _branches(self, row: int, level: int) -> Iterator[str | int]:
        branches = self.forest.branches(row)
        shown = branches if self.keep is None else branches[:_SHOWN_BRANCHES]
        yield from shown
        hidden = len(branches) - len(shown)
        if hidden:
            yield self._fold(level + 1, f"{count(hidden, 'more branch', 'more branches')}")

    def _is_plain(self, row: int) -> bool:
        forest = self.forest
        return (
            row not in self.labels
            and row != forest.leaf
            and forest.kinds[row] not in _LANDMARKS
            and len(forest.children.get(row, ())) < 2
        )

    def _run(self, run: list[int], level: int) -> Iterator[str]:
        """Draw entries of which none is special, the middle of them folded."""
        keep = len(run) if self.keep is None else self.keep
        hidden = len(run) - 2 * keep
        before = self._indent(level)
        if hidden < _LEAST_FOLDED:
            yield from (self._line(row, before) for row in run)
            return
        yield from (self._line(row, before) for row in run[:keep])
        yield self._fold(level, count(hidden, "more entry", "more entries"))
        yield from (self._line(row, before) for row in run[keep + hidden :])

    def _indent(self, level: int, *, head: bool = False) -> str:
        return "│ " * (level - 1) + "├─" if head and level else "│ " * level

    def _fold(self, level: int, text: str) -> str:
        return self.screen.paint(f"{self._indent(level)}⋮ {text}", "dim")

    def _line(self, row: int, indent: str) -> str:
        forest = self.forest
        mark = "◉" if row == forest.leaf else "●" if row in forest.on_path else "○"
        label = one_line(self.labels.get(row, ""), self.screen.width // 3)
        tags = [(f"[{label}]", "label")] if label else []
        if row == forest.leaf:
            tags.append(("◀ leaf", "bold"))
        taken = len(indent) + 2 + sum(cell_len(tag) + 2 for tag, _ in tags)
        entry = self.session.get_entries()[row]
        line = line_of(self.screen, entry, "", self.screen.width - taken)
        return "  ".join([f"{indent}{mark} {line}", *(self.screen.paint(*tag) for tag in tags)])


def tree_json(session: SessionManager) -> dict[str, Any]:
    """Give the tree as one object: facts of the session, and its entries in file order, flat."""
    forest = Forest.of(session)
    labels = labels_of(session, forest)
    return {
        "session": session.get_session_id(),
        "path": session.get_session_file(),
        "cwd": session.get_cwd(),
        "name": session.get_session_name(),
        "leaf": session.get_leaf_id(),
        "entries": [_node(forest, labels, row, entry) for row, entry in enumerate(session.get_entries())],
    }


def _node(forest: Forest, labels: dict[int, str], row: int, entry: Any) -> dict[str, Any]:
    node = {key: _entry.field(entry, key) for key in ("id", "parentId", "type", "timestamp")}
    role = _entry.field(_entry.field(entry, "message"), "role")
    if role is not None:
        node["role"] = role
    if row in labels:
        node["label"] = labels[row]
    node["onPath"] = row in forest.on_path
    return node
