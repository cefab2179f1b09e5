"""``sessiontree path``: the entries from the root to the leaf, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessiontree.cli import _entry, _place
from sessiontree.cli._output import Screen, say, say_json_array
from sessiontree.cli._report import tell_report
from sessiontree.cli._text import cell_len, one_line, pad
from sessiontree.cli._window import Window, window_options

if TYPE_CHECKING:
    from sessiontree import SessionManager


@click.command("path", short_help="List the entries from the root to the leaf.")
@_place.session_argument
@window_options
@_place.json_option
def command(
    session: str | None, cwd: str | None, session_dir: str | None, window: Window, as_json: bool
) -> None:
    r"""List the entries of SESSION from the root to its leaf, or to the entry that --to names.

    \b
    Examples:
      sessiontree path
      sessiontree path 0198 --to a1b2c3d4
      sessiontree path 0198 --last 20
      sessiontree path 0198 --since 1d --json

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    with _place.Place(cwd, session_dir).open(session) as opened:
        _list(opened, window, as_json=as_json)


def _list(session: SessionManager, window: Window, *, as_json: bool) -> None:
    if window.end is not None:
        # Any entry has a path, not only those on the way to the leaf.
        session.branch(_place.entry_id(session, window.end))
    rows = window.cut(session, session.path_rows()).rows.tolist()
    tell_report(session)
    entries = session.get_entries()
    chosen = (entries[row] for row in rows)
    if as_json:
        say_json_array(chosen)
        return
    screen = Screen.of_stdout()
    for entry in chosen:
        say(line_of(screen, entry, time_of(entry), screen.width))


def line_of(screen: Screen, entry: Any, before: str, width: int) -> str:
    """Give an entry's line: id, what stands before its kind, its kind, the beginning of its text."""
    kind, text = _entry.describe(entry)
    id = pad(one_line(_entry.as_text(_entry.field(entry, "id")), 12), 8)
    head = pad(one_line(kind, 14), 10)
    room = width - sum(cell_len(part) + 2 for part in (id, before, head) if part)
    parts = [screen.paint(id, "dim"), before, screen.paint(head, kind), one_line(text, max(8, room))]
    return "  ".join(part for part in parts if part).rstrip()


def time_of(entry: Any) -> str:
    """Give an entry's time in seconds; text that is no time is shown as it is."""
    stamp = _entry.as_text(_entry.field(entry, "timestamp"))
    return pad(one_line(stamp[:19].replace("T", " "), 19), 19)
