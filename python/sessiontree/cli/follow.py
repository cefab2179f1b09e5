"""``sessiontree follow``: a session as it grows."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import click

from sessiontree.cli import _place
from sessiontree.cli._errors import complain
from sessiontree.cli._output import Screen, flush, reader_is_gone, say, say_json
from sessiontree.cli.path import line_of, time_of
from sessiontree.cli.show import show_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessiontree import SessionManager

_INTERVAL = 0.2


@click.command("follow", short_help="Show new entries of a session as they are written.")
@_place.session_argument
@click.option(
    "-n",
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    help="Begin with the last N entries.",
)
@click.option("--full", is_flag=True, help="Whole texts, not one line an entry.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON object a line: entries as they are stored."
)
def command(
    session: str | None, cwd: str | None, session_dir: str | None, last: int, full: bool, as_json: bool
) -> None:
    r"""Show the last entries of SESSION, and new ones as they are written, by whatever program; until Ctrl-C.

    Entries of all branches come in the order of the file. A line that is still being written is shown when it
    is whole. Nothing is ever written to the session.

    \b
    Examples:
      sessiontree follow
      sessiontree follow 0198 --full
      sessiontree follow 0198 --json -n 0 | jq -r .type

    Exit codes: 1 failed or not found, 2 wrong usage, 130 ended by Ctrl-C.
    """
    with _place.Place(cwd, session_dir).open(session) as opened:
        _Follower(opened, full=full, as_json=as_json).run(last)


class _Follower:
    """Shows what comes, in one of three ways."""

    def __init__(self, session: SessionManager, *, full: bool, as_json: bool) -> None:
        self._session = session
        self._full = full
        self._as_json = as_json
        self._screen = Screen.of_stdout()
        self._was_there = True

    def run(self, last: int) -> None:
        """Show the end of the session, then whatever is added."""
        entries = self._session.get_entries()
        seen = len(entries)
        self._show(entries[max(0, seen - last) :])
        while not reader_is_gone():
            time.sleep(_INTERVAL)
            if not self._is_there():
                continue
            self._session.refresh()
            entries = self._session.get_entries()
            if len(entries) < seen:
                complain("the file was replaced by a shorter one; what follows is new in it")
                seen = len(entries)
            self._show(entries[seen:])
            seen = len(entries)

    def _is_there(self) -> bool:
        """Whether the file is there; it may be back later, so its absence is only told."""
        path = self._session.get_session_file() or ""
        there = os.path.exists(path)
        if self._was_there and not there:
            complain(f"the file is gone; waiting for it ({path})")
        self._was_there = there
        return there

    def _show(self, entries: Iterable[Any]) -> None:
        shown = False
        for entry in entries:
            shown = True
            if self._as_json:
                say_json(entry)
            elif self._full:
                show_entry(self._screen, entry)
            else:
                say(line_of(self._screen, entry, time_of(entry), self._screen.width))
        if shown:
            flush()
