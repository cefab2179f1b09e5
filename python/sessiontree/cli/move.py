"""``sessiontree move``: the sessions of a project whose folder was renamed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from sessiontree import moves, paths
from sessiontree.cli import _place
from sessiontree.cli._errors import complain, explain
from sessiontree.cli._output import say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import count, safe
from sessiontree.exceptions import SessionTreeError

if TYPE_CHECKING:
    from sessiontree.moves import Move


@click.command("move", short_help="Bring sessions along after a project's folder was renamed.")
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--force", is_flag=True, help="Also if there is no directory NEW.")
@click.option("--session-dir", metavar="DIR", help="Folder of the session files, if not pi's.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a session, one a line.")
def command(old: str, new: str, dry_run: bool, force: bool, session_dir: str | None, as_json: bool) -> int:
    r"""Bring the sessions of the directory OLD along, which is now called NEW, and those of directories below it.

    Their headers name the new directory then, and their files lie where pi looks for them; every other byte
    stays, and the files' times too. Nothing is ever overwritten. No other program should be working on these
    sessions.

    \b
    Examples:
      sessiontree move ~/code/old ~/code/new --dry-run      # after mv ~/code/old ~/code/new
      sessiontree move ~/code/old ~/code/new

    Exit codes: 0 done; 1 failed, or there are no such sessions; 2 wrong usage.
    """
    place = _place.Place(None, session_dir)
    if not force and not os.path.isdir(paths.resolve_path(new)):
        raise _place.NotFoundError(
            f"no such directory: {new!r}; rename the project's folder first, or give --force"
        )
    with progress("looking for sessions"):
        try:
            wanted = moves.plan(old, new, place.session_dir)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if not wanted:
        raise _place.NotFoundError(f"no sessions of {paths.resolve_path(old)!r}")
    failed = 0
    done: list[Move] = []
    if dry_run:
        done = wanted
    else:
        with progress("moving") as tell:
            for number, each in enumerate(wanted):
                tell(number, len(wanted))
                failed += not _moved(each, done)
    for each in done:
        _say(each, as_json=as_json)
    if not as_json:
        say(f"{count(len(done), 'session')} {'would be moved' if dry_run else 'moved'}")
    return 1 if failed else 0


def _moved(each: Move, done: list[Move]) -> bool:
    try:
        moves.move(each)
    except (OSError, SessionTreeError) as error:
        complain(explain(error)[0])
        return False
    done.append(each)
    return True


def _say(each: Move, *, as_json: bool) -> None:
    if as_json:
        say_json(_json(each))
    elif each.source == each.target:
        say(f"{safe(each.source, keep='')}: {safe(each.cwd or '', keep='')}")
    else:
        say(f"{safe(each.source, keep='')} -> {safe(each.target, keep='')}")


def _json(each: Move) -> dict[str, Any]:
    return {"source": each.source, "target": each.target, "cwd": each.cwd, "parentSession": each.parent}
