"""Windows: a part of a list of entries, by number from either end, by entries, or by time.

They are cut on the index, so that of a session of any size only what is shown is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from sessiontree.cli import _place
from sessiontree.cli._text import count
from sessiontree.cli._time import when

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    import numpy.typing as npt

    from sessiontree import SessionManager

    Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """What is wanted of a list of rows."""

    first: int | None = None
    last: int | None = None
    skip: int = 0
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    begin: str | None = None
    end: str | None = None

    def cut(self, session: SessionManager, rows: Rows) -> Cut:
        """Cut a list of rows.

        Raises:
            NotFoundError: the window begins or ends at an entry that is not among the rows.
        """
        chosen = self._by_entries(session, rows)
        chosen = self._by_time(session, chosen)
        if self.first is not None:
            chosen = chosen[self.skip : self.skip + self.first]
        elif self.last is not None:
            stop = max(0, len(chosen) - self.skip)
            chosen = chosen[max(0, stop - self.last) : stop]
        before = 0 if not len(chosen) else int(np.flatnonzero(rows == chosen[0])[0])
        return Cut(chosen, before, len(rows))

    def _by_entries(self, session: SessionManager, rows: Rows) -> Rows:
        start, stop = 0, len(rows)
        if self.begin is not None:
            start = _position(session, rows, self.begin)
        if self.end is not None:
            stop = _position(session, rows, self.end) + 1
        return rows[start:stop]

    def _by_time(self, session: SessionManager, rows: Rows) -> Rows:
        if self.since is None and self.until is None:
            return rows
        times = session.columns()["timestamp"][rows]
        wanted = np.ones(len(rows), dtype=bool)
        if self.since is not None:
            wanted &= times >= round(self.since.timestamp() * 1000)
        if self.until is not None:
            # An unknown time is the lowest number there is.
            wanted &= (times < round(self.until.timestamp() * 1000)) & (times != np.iinfo(np.int64).min)
        return rows[wanted]


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows of a window, how many there are before it, and in all."""

    rows: Rows
    before: int
    total: int

    @property
    def is_part(self) -> bool:
        """Whether anything is left out."""
        return len(self.rows) < self.total

    def text(self, noun: str, plural: str | None = None) -> str:
        """Say which part it is.

        Example:
            >>> Cut(np.arange(2), 3, 9).text("message")
            'messages 4 to 5 of 9'
        """
        many = plural or f"{noun}s"
        if not len(self.rows):
            return f"none of {count(self.total, noun, many)}"
        return f"{many} {self.before + 1:,} to {self.before + len(self.rows):,} of {self.total:,}"


def _position(session: SessionManager, rows: Rows, given: str) -> int:
    id = _place.entry_id(session, given)
    found = np.flatnonzero(rows == session.find_row(id))
    if not len(found):
        raise _place.NotFoundError(f"the entry {id!r} is not among those that are shown")
    return int(found[0])


def window_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a window, which come as one argument ``window``."""

    def with_window(*args: Any, **kwargs: Any) -> Any:
        names = ("first", "last", "skip", "since", "until", "begin", "end")
        chosen = {name: kwargs.pop(name) for name in names}
        if chosen["first"] is not None and chosen["last"] is not None:
            raise click.UsageError("--first and --last are two ends: give one of them")
        if chosen["skip"] and chosen["first"] is None and chosen["last"] is None:
            raise click.UsageError("--skip goes with --first or --last")
        return function(*args, window=Window(**chosen), **kwargs)

    with_window.__doc__ = function.__doc__
    with_window.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    options = (
        click.option("--first", type=click.IntRange(1), metavar="N", help="Only the first N."),
        click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N."),
        click.option(
            "--skip", type=click.IntRange(0), default=0, metavar="N",
            help="Leave so many out before, from the same end: the next page.",
        ),
        click.option("--from", "begin", metavar="ENTRY", help="Begin at this entry."),
        click.option("--to", "end", metavar="ENTRY", help="End at this entry."),
        click.option("--since", callback=when, metavar="WHEN", help="Not older than a date, or 12h, 7d, 2w, 3m, 1y."),
        click.option("--until", callback=when, metavar="WHEN", help="Older than that."),
    )  # fmt: skip
    decorated: Callable[..., Any] = with_window
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
