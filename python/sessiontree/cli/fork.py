"""``sessiontree fork``: begin a new session from an old one."""

from __future__ import annotations

import os

import click

from sessiontree import SessionManager, jsontext, migrations
from sessiontree._native import Store
from sessiontree.cli import _place
from sessiontree.cli._output import say_json, say_path
from sessiontree.cli._progress import progress


@click.command("fork", short_help="Begin a new session from an old one.")
@_place.session_argument
@click.option("--at", metavar="ID", help="Take only the path to this entry, not the whole tree.")
@click.option("--to", metavar="DIR", help="Working directory of the new session.")
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    at: str | None,
    to: str | None,
    as_json: bool,
) -> None:
    r"""Copy SESSION into a new one and print the path of its file; SESSION itself stays as it is.

    The new session belongs to the working directory of SESSION, or to the one that --to names.

    \b
    Examples:
      sessiontree fork
      sessiontree fork 0198 --at a1b2c3d4
      sessiontree fork 0198 --to ~/code/other

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    if at is not None and to is not None:
        raise click.UsageError("--at stays in the session's working directory: it goes without --to")
    place = _place.Place(cwd, session_dir)
    path = place.find(session)
    with progress("copying"):
        forked = _path_only(place, path, at) if at is not None else _whole(place, path, to)
    with SessionManager.open(forked, place.session_dir, read_only=True) as opened:
        facts = {
            "path": forked,
            "session": opened.get_session_id(),
            "cwd": opened.get_cwd(),
            "entries": opened.get_entry_count(),
        }
    if as_json:
        say_json(facts)
    else:
        say_path(forked)


def _whole(place: _place.Place, path: str, to: str | None) -> str:
    with SessionManager.open(path, read_only=True) as source:
        cwd = to or source.get_cwd()
    with SessionManager.fork_from(path, cwd, place.session_dir) as forked:
        return _written(forked.get_session_file())


def _path_only(place: _place.Place, path: str, at: str) -> str:
    with SessionManager.open(path, read_only=True) as source:
        leaf = _place.entry_id(source, at)
    _refuse_old(path)
    with SessionManager.open(path, place.session_dir) as source:
        forked = _written(source.create_branched_session(leaf))
    if not os.path.exists(forked):
        raise click.ClickException(
            f"the path to {leaf!r} holds no message yet, so there is no session to make"
        )
    return forked


def _refuse_old(path: str) -> None:
    """Opening an old version to branch from it would migrate it in place; whole forks leave it alone."""
    header = jsontext.loads(Store.open(path).header())
    if migrations.needs_migration(header):
        raise click.ClickException(
            f"the session is of version {header.get('version') or 1}: fork it whole, which migrates the copy, "
            f"and take the path from there ({path})"
        )


def _written(path: str | None) -> str:
    if path is None:
        raise click.ClickException("the session is in memory")
    return path
