"""``sessiontree list``: which sessions there are."""

from __future__ import annotations

import bisect
import itertools
import os
import time
from typing import TYPE_CHECKING, Any

import click

from sessiontree import paths
from sessiontree._native import newest_first
from sessiontree.cli import _place
from sessiontree.cli._errors import complain, explain
from sessiontree.cli._output import Screen, flush, say, say_json_array
from sessiontree.cli._progress import progress
from sessiontree.cli._text import cell_len, one_line, pad, safe, size_text
from sessiontree.cli._time import age, iso, minute, when
from sessiontree.shown import Listing

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Sequence

    from sessiontree import SessionInfo

# Columns of the table that stand to the right.
_NUMBERS = ("age", "messages", "size", "cost")
_PROJECT = "project"
# What a narrow terminal does without, in this order, so that the last column has so many cells.
_UNWANTED = ("state", "size", "messages", "cost", _PROJECT, "age")
_LEAST_ABOUT = 16
# Widths are those of so many rows; the first lines do not wait for the last ones.
_MEASURED = 200
_ABOUT = 500
# So many lines are written at once.
_BLOCK = 50
# Characters of an id that are shown at least.
_SHORTEST = 8
_UNKNOWN = -(1 << 63)

SORTS: dict[str, Callable[[SessionInfo], Any]] = {
    "modified": lambda row: row.modified_ms,
    "created": lambda row: _UNKNOWN if row.created_ms is None else row.created_ms,
    "mtime": lambda row: row.mtime_ns,
    "cost": lambda row: row.cost,
    "messages": lambda row: row.message_count,
    "size": lambda row: row.size,
    "name": lambda row: (row.name or "").casefold(),
    "project": lambda row: row.cwd,
}
_ASCENDING = ("name", "project")
_BY_TIME = ("modified", "mtime")


@click.command("list", short_help="List sessions, newest first.")
@_place.place_options
@click.option("--all", "everywhere", is_flag=True, help="Of all working directories.")
@click.option("--project", metavar="DIR", help="Of this directory and those below it, or of this name.")
@click.option("--since", callback=when, metavar="WHEN", help="Not older than a date, or 12h, 7d, 2w, 3m, 1y.")
@click.option("--until", callback=when, metavar="WHEN", help="Older than that.")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="modified",
    show_default=True,
    help="Newest or most first; names and projects in their order.",
)
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Only the first N.")
@click.option("--watch", is_flag=True, help="Show changes as they happen, until Ctrl-C.")
@_place.json_option
def command(cwd: str | None, session_dir: str | None, watch: bool, as_json: bool, **options: Any) -> int:
    r"""List the sessions of the working directory, newest first: age, messages, size, cost, name, first words.

    What is shown is kept in the cache folder, so that only new and changed files are read.

    \b
    Examples:
      sessiontree list
      sessiontree list --all --limit 20
      sessiontree list --project parser --since 7d --sort cost
      sessiontree list --all --watch
      sessiontree list --json | jq -r '.[].path'

    With --watch, --json prints an object a line: a session that is new or has changed, or that is gone.

    Exit codes: 0 fine, also without any session; 1 something could not be read, or the folder that is named
    does not exist; 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    look = Look(place, **options)
    if watch:
        from sessiontree.cli._watch import Watch

        Watch(look, as_json=as_json).run()
    listing = look.listing()
    if not listing.rows:
        place.check_named()
    rows = look.chosen(listing.rows)
    if as_json:
        say_json_array(map(info_json, rows))
    else:
        show(rows, everywhere=look.everywhere)
    listing.save()
    failed = look.tell_unreadable()
    if not rows and not failed and not as_json:
        complain(look.nothing())
    return 1 if failed else 0


class Look:
    """Where to look, and what is wanted of what is found."""

    def __init__(
        self,
        place: _place.Place,
        *,
        everywhere: bool,
        project: str | None,
        since: dt.datetime | None,
        until: dt.datetime | None,
        sort: str,
        reverse: bool,
        limit: int | None,
    ) -> None:
        self.everywhere = everywhere or project is not None
        self._place = place
        self._unreadable: dict[str, Exception] = {}
        self._others = False
        self._bounds = [
            None if moment is None else round(moment.timestamp() * 1000) for moment in (since, until)
        ]
        self._sort, self._reverse, self._limit = sort, reverse, limit
        self._tests: list[Callable[[str], bool]] = []
        self._below = self.everywhere and not place.session_dir
        if self.everywhere:
            self._folder = place.session_dir or paths.sessions_root()
        else:
            from sessiontree.listing import scope

            self._folder, belongs = scope(place.cwd, place.session_dir)
            self._tests.append(belongs)
        if project is not None:
            self._tests.append(of_project(project))

    def listing(self) -> Listing:
        """Look at the files; what cannot be read is kept for `tell_unreadable`."""
        with progress("reading sessions") as tell:
            return Listing(
                self._folder,
                "below" if self._below else "own",
                on_progress=tell,
                on_error=self._unreadable.setdefault,
            )

    def chosen(self, rows: list[SessionInfo]) -> list[SessionInfo]:
        """Choose, sort, and cut."""
        self._others = bool(rows)
        if self._tests or self._bounds != [None, None]:
            known: dict[str, bool] = {}
            rows = [row for row in rows if self._is_wanted(row, known)]
        return self._sorted(rows)[: self._limit]

    def _sorted(self, rows: list[SessionInfo]) -> list[SessionInfo]:
        descending = (self._sort not in _ASCENDING) != self._reverse
        if descending and self._sort in _BY_TIME:
            return newest_first(rows, self._sort)
        # Equal ones by file name, backwards.
        by_name = sorted(rows, key=lambda row: (row.path.rpartition(os.sep)[2], row.path), reverse=True)
        return sorted(by_name, key=SORTS[self._sort], reverse=descending)

    def _is_wanted(self, row: SessionInfo, known: dict[str, bool]) -> bool:
        since, until = self._bounds
        if (since is not None and row.modified_ms < since) or (
            until is not None and row.modified_ms >= until
        ):
            return False
        wanted = known.get(row.cwd)
        if wanted is None:
            wanted = known[row.cwd] = all(test(row.cwd) for test in self._tests)
        return wanted

    def nothing(self) -> str:
        """Say that there is nothing."""
        if self._bounds != [None, None] or len(self._tests) > (not self.everywhere):
            return "no such sessions"
        place, folder = self._place, self._place.session_dir
        whose = "any directory" if self.everywhere else place.cwd
        if not folder:
            return f"no sessions of {whose} yet"
        others = "; --all lists those of other directories" if self._others and not self.everywhere else ""
        return f"no sessions of {whose} in {folder}{others}"

    def tell_unreadable(self) -> int:
        """Say what could not be read since the last call, and of how many that was."""
        troubles, self._unreadable = self._unreadable, {}
        for path, error in troubles.items():
            text, _ = explain(error)
            complain(text if path in text else f"{text} ({path})")
        return len(troubles)


def of_project(project: str) -> Callable[[str], bool]:
    """Say which directories belong to a project: a directory with those below it, or those of a name.

    Example:
        >>> list(map(of_project("/code/a"), ["/code/a", "/code/a/b", "/code/ab"]))
        [True, True, False]
        >>> list(map(of_project("a"), ["/x/a", "/x/a/b"]))
        [True, False]
    """
    inside = paths.resolve_path(project)
    below = inside if inside.endswith(os.sep) else inside + os.sep
    is_name = os.sep not in project and project not in (".", "..", "~")

    def belongs(cwd: str) -> bool:
        return cwd == inside or cwd.startswith(below) or (is_name and os.path.basename(cwd) == project)

    return belongs


def info_json(info: SessionInfo) -> dict[str, Any]:
    """Give what a listing knows of a session; of the first message the first 1,000 characters."""
    return {
        "path": info.path,
        "id": info.id,
        "cwd": info.cwd,
        "name": info.name,
        "parentSession": info.parent_session_path,
        "created": iso(info.created_ms),
        "modified": iso(info.modified_ms),
        "messageCount": info.message_count,
        "firstMessage": info.first_message,
        "size": info.size,
        "cost": info.cost,
        "version": info.version,
        "lastRole": info.last_role,
        "stopReason": info.stop_reason,
        "skippedLines": info.skipped_lines,
    }


def show(infos: Sequence[SessionInfo], *, everywhere: bool) -> None:
    """Print a table: as wide as the terminal, or with whole values and tabs between them for a pipe."""
    screen = Screen.of_stdout()
    if screen.terminal and infos:
        lines = table(screen, infos, everywhere=everywhere)
    else:
        lines = ("\t".join(_whole(info)) for info in infos)
    for first in lines:
        # A reader has something to do while the rest is made.
        say(first)
        flush()
        break
    while some := list(itertools.islice(lines, _BLOCK)):
        say("\n".join(some))


def _whole(info: SessionInfo) -> list[str]:
    """The fields of a line for programs: the same ones always, with neither tabs nor line breaks in them."""
    return [
        safe(info.id, keep=""),
        minute(info.modified_ms),
        str(info.message_count),
        str(info.size),
        f"{info.cost:.4f}",
        state(info),
        one_line(info.cwd, _ABOUT),
        one_line(info.name or "", _ABOUT),
        one_line(info.first_message, _ABOUT),
    ]


def table(screen: Screen, infos: Sequence[SessionInfo], *, everywhere: bool) -> Iterator[str]:
    """Give the lines of a table for a terminal."""
    titles = ["id", "age", "messages", "size", "cost", "state", *([_PROJECT] if everywhere else []), "about"]
    length = _unique_length([info.id for info in infos])
    now = time.time_ns() // 1_000_000
    rows = (_row(info, length, now, everywhere=everywhere) for info in infos)
    first = [titles, *itertools.islice(rows, _MEASURED)]
    widths = [max(map(cell_len, column)) for column in zip(*first, strict=True)]
    if everywhere:
        widths[-2] = min(widths[-2], max(10, screen.width // 4))
    kept = _that_fit(titles, widths, screen.width)
    room = max(10, screen.width - sum(widths[at] + 2 for at in kept))
    for number, row in enumerate(itertools.chain(first, rows)):
        cells = [_cell(titles[at], row[at], widths[at]) for at in kept]
        line = "  ".join([*cells, one_line(row[-1], room)])
        yield screen.paint(line, "bold" if number == 0 else "")


def _that_fit(titles: list[str], widths: list[int], width: int) -> list[int]:
    """Say which columns stand before the last one; a narrow terminal does without the least wanted."""
    kept = list(range(len(titles) - 1))
    for title in _UNWANTED:
        if sum(widths[at] + 2 for at in kept) + _LEAST_ABOUT <= width:
            break
        kept = [at for at in kept if titles[at] != title]
    return kept


def _cell(title: str, text: str, width: int) -> str:
    if title == _PROJECT and cell_len(text) > width:
        # The end of a path tells more than its beginning.
        text = f"…{text[1 - width :]}"
    line = one_line(text, width)
    return line.rjust(width) if title in _NUMBERS else pad(line, width)


def _unique_length(ids: list[str]) -> int:
    """How far ids must be shown to stay apart, eight characters at least.

    Example:
        >>> _unique_length(["0198-0001-a", "0198-0001-b", "0198-0001-b"]), _unique_length(["a", "b"])
        (11, 8)
    """
    unique = set(ids)
    longest = max(map(len, unique), default=0)
    lengths = range(_SHORTEST, longest)
    # Ids that are apart stay apart when more of them is shown.
    apart = bisect.bisect_left(
        lengths, True, key=lambda length: len({id[:length] for id in unique}) == len(unique)
    )
    return _SHORTEST + apart


def _row(info: SessionInfo, length: int, now: int, *, everywhere: bool) -> list[str]:
    about = one_line(info.first_message, _ABOUT)
    if info.name:
        about = f"{one_line(info.name, _ABOUT)} · {about}"
    return [
        safe(info.id[:length], keep=""),
        age(info.modified_ms, now),
        f"{info.message_count:,}",
        size_text(info.size),
        f"${info.cost:,.2f}" if info.cost else "",
        state(info),
        *([_tilde(one_line(info.cwd, _ABOUT)) or "?"] if everywhere else []),
        about,
    ]


def _tilde(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path


def state(info: SessionInfo) -> str:
    """Say who has the word: waiting for the model, done, or failed."""
    if info.last_role == "assistant":
        return {"error": "failed", "aborted": "stopped", "toolUse": "working"}.get(
            info.stop_reason or "", "done"
        )
    return "waiting" if info.last_role else ""
