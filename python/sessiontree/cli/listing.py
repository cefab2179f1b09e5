"""``sessiontree list``: which sessions there are."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len

from sessiontree import SessionManager
from sessiontree.cli import _place
from sessiontree.cli._errors import complain, explain
from sessiontree.cli._output import Screen, say, say_json_array
from sessiontree.cli._text import one_line, pad, safe, size_text

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from sessiontree import SessionInfo

# Columns of the table: numbers stand to the right, and directories are cut first.
_NUMBERS = (2, 3)
_DIRECTORY = 5


@click.command("list", short_help="List sessions, newest first.")
@_place.place_options
@click.option("--all", "everywhere", is_flag=True, help="Of all working directories.")
@click.option("-n", "--limit", type=click.IntRange(1), help="Only the newest N.")
@_place.json_option
def command(
    cwd: str | None, session_dir: str | None, everywhere: bool, limit: int | None, as_json: bool
) -> int:
    """List the sessions of the working directory, newest first."""
    place = _place.Place(cwd, session_dir)
    unreadable: list[tuple[str, Exception]] = []
    infos = sessions(place, everywhere=everywhere, limit=limit, unreadable=unreadable)
    if as_json:
        say_json_array(map(info_json, infos))
    elif infos:
        show(infos, everywhere=everywhere)
    else:
        where = place.session_dir or ("any directory" if everywhere else place.cwd)
        complain(f"no sessions of {where} yet")
    for path, error in unreadable:
        text, _ = explain(error)
        complain(text if path in text else f"{text} ({path})")
    return 1 if unreadable else 0


def sessions(
    place: _place.Place, *, everywhere: bool, limit: int | None, unreadable: list[tuple[str, Exception]]
) -> Sequence[SessionInfo]:
    """List sessions; what cannot be read is added to ``unreadable``."""

    def note(path: str, error: Exception) -> None:
        unreadable.append((path, error))

    found: Sequence[SessionInfo]
    if everywhere:
        found = SessionManager.list_all(place.session_dir, limit=limit, on_error=note)
    else:
        found = SessionManager.list(place.cwd, place.session_dir, limit=limit, on_error=note)
    return found


def info_json(info: SessionInfo) -> dict[str, Any]:
    """Give what a listing knows of a session, without its text."""
    return {
        "path": info.path,
        "id": info.id,
        "cwd": info.cwd,
        "name": info.name,
        "parentSession": info.parent_session_path,
        "created": _iso(info.created),
        "modified": _iso(info.modified),
        "messageCount": info.message_count,
        "firstMessage": info.first_message,
        "size": info.size,
        "version": info.version,
        "lastRole": info.last_role,
        "stopReason": info.stop_reason,
        "skippedLines": info.skipped_lines,
    }


def _iso(time: dt.datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def show(infos: Sequence[SessionInfo], *, everywhere: bool) -> None:
    """Print a table: as wide as the terminal, or whole and separated by tabs for a pipe."""
    screen = Screen.of_stdout()
    rows = [_row(info, everywhere=everywhere) for info in infos]
    if not screen.terminal:
        for row in rows:
            say("\t".join(row))
        return
    titles = ["id", "modified", "messages", "size", "state", *(["directory"] if everywhere else []), "about"]
    shown = _unique_beginnings([row[0] for row in rows])
    table = [titles, *([id, *row[1:]] for id, row in zip(shown, rows, strict=True))]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    if everywhere:
        widths[_DIRECTORY] = min(widths[_DIRECTORY], max(10, screen.width // 4))
    room = max(10, screen.width - sum(widths[:-1]) - 2 * len(widths[:-1]))
    for number, row in enumerate(table):
        line = "  ".join([*map(_cell, range(len(row)), row[:-1], widths), one_line(row[-1], room)])
        say(screen.paint(line, "bold" if number == 0 else ""))


def _cell(column: int, text: str, width: int) -> str:
    line = one_line(text, width)
    return line.rjust(width) if column in _NUMBERS else pad(line, width)


def _unique_beginnings(ids: list[str]) -> list[str]:
    """Shorten ids as far as they stay apart, to eight characters at least."""
    alike = max((_alike(*pair) for pair in itertools.pairwise(sorted(set(ids)))), default=0)
    return [id[: max(8, alike + 1)] for id in ids]


def _alike(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _row(info: SessionInfo, *, everywhere: bool) -> list[str]:
    row = [
        safe(info.id, keep=""),
        info.modified.astimezone().strftime("%Y-%m-%d %H:%M") if info.modified else "?",
        f"{info.message_count:,}",
        size_text(info.size),
        _state(info),
    ]
    if everywhere:
        row.append(one_line(info.cwd, 500))
    return [*row, one_line(info.name or info.first_message, 500)]


def _state(info: SessionInfo) -> str:
    """Say who has the word: waiting for the model, done, or failed."""
    if info.last_role == "assistant":
        return {"error": "failed", "aborted": "stopped", "toolUse": "working"}.get(
            info.stop_reason or "", "done"
        )
    return "waiting" if info.last_role else ""
