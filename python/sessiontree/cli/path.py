"""``sessiontree path``: the entries from the root to the leaf, one a line."""

from __future__ import annotations

from typing import Any

import click
from rich.cells import cell_len

from sessiontree.cli import _entry, _place
from sessiontree.cli._output import Screen, say, say_json_array
from sessiontree.cli._text import one_line, pad


@click.command("path", short_help="List the entries from the root to the leaf.")
@_place.session_argument
@click.option("--to", metavar="ID", help="End at this entry instead of the leaf.")
@_place.json_option
def command(
    session: str | None, cwd: str | None, session_dir: str | None, to: str | None, as_json: bool
) -> None:
    """List the entries of SESSION from the root to its leaf."""
    with _place.Place(cwd, session_dir).open(session) as opened:
        entries = opened.get_branch(_place.entry_id(opened, to) if to is not None else None)
        if as_json:
            say_json_array(entries)
            return
        screen = Screen.of_stdout()
        for entry in entries:
            say(line_of(screen, entry, _time(entry), screen.width))


def line_of(screen: Screen, entry: Any, before: str, width: int) -> str:
    """Give an entry's line: id, what stands before its kind, its kind, the beginning of its text."""
    kind, text = _entry.describe(entry)
    id = pad(one_line(_entry.as_text(_entry.field(entry, "id")), 12), 8)
    head = pad(one_line(kind, 14), 10)
    room = width - sum(cell_len(part) + 2 for part in (id, before, head) if part)
    parts = [screen.paint(id, "dim"), before, screen.paint(head, kind), one_line(text, max(8, room))]
    return "  ".join(part for part in parts if part).rstrip()


def _time(entry: Any) -> str:
    """Give an entry's time in seconds; text that is no time is shown as it is."""
    stamp = _entry.as_text(_entry.field(entry, "timestamp"))
    return pad(one_line(stamp[:19].replace("T", " "), 19), 19)
