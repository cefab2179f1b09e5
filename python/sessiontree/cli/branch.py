"""``sessiontree branch``: the branches of a session; taking one out into an archive, and putting it back."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sessiontree import archives, paths
from sessiontree.cli import _entry, _place
from sessiontree.cli._output import Screen, say, say_json, say_json_array
from sessiontree.cli._progress import progress
from sessiontree.cli._text import cell_len, count, one_line, pad, safe, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree.archives import Archive, Plan


@click.group("branch", short_help="List branches, archive one, put it back.")
def command() -> None:
    r"""List the branches of a session; take one out into an archive beside it, and put it back.

    \b
    Examples:
      sessiontree branch list 0198
      sessiontree branch delete 0198 a1b2c3d4 --dry-run
      sessiontree branch restore 0198 a1b2c3d4

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """


@command.command("list", short_help="List the branches of a session, and what was archived of it.")
@_place.session_argument
@_place.json_option
def list_branches(session: str | None, cwd: str | None, session_dir: str | None, as_json: bool) -> None:
    r"""List the branches of SESSION with their first and last entries, and its archived branches.

    \b
    Examples:
      sessiontree branch list
      sessiontree branch list 0198 --json

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    path = place.find(session)
    with progress("reading"):
        rows = list(_rows(place, path))
    if as_json:
        say_json_array(rows)
        return
    screen = Screen.of_stdout()
    cells = [["", "from", "to", "entries", "hangs on"], *([_mark(row), *_cells(row)] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    room = max(10, screen.width - sum(widths) - 2 * len(widths))
    texts = ["last entry", *(row["text"] for row in rows)]
    for number, (row, text) in enumerate(zip(cells, texts, strict=True)):
        line = "  ".join([*map(pad, row, widths), one_line(text, room)]).rstrip()
        say(screen.paint(line, "bold") if number == 0 else line)


def _rows(place: _place.Place, path: str) -> Iterator[dict[str, Any]]:
    with place.open(path) as opened:
        for branch in archives.branches(path):
            kind, text = _entry.describe(opened.get_entry(branch.leaf))
            about = f"{kind}: {one_line(text, 200)}" if text else kind
            current = {"current": branch.is_current}
            yield {
                "head": branch.head, "leaf": branch.leaf, "parent": branch.parent, "entries": branch.entries,
                **current, "archive": None, "text": about,
            }  # fmt: skip
    for stored in archives.archives(path):
        yield {
            "head": stored.head, "leaf": stored.leaf, "parent": None, "entries": stored.entries,
            "current": False, "archive": stored.path, "text": f"archived {stored.archived[:16].replace('T', ' ')}",
        }  # fmt: skip


def _mark(row: dict[str, Any]) -> str:
    return "◉" if row["current"] else "⋮" if row["archive"] else "○"


def _cells(row: dict[str, Any]) -> list[str]:
    parent = "archived" if row["archive"] else one_line(row["parent"] or "-", 36)
    return [one_line(row["head"], 36), one_line(row["leaf"], 36), f"{row['entries']:,}", parent]


@command.command("delete", short_help="Take a branch out, into an archive beside the session.")
@click.argument("session", shell_complete=_place.complete_session)
@click.argument("entry")
@click.option("--below", is_flag=True, help="ENTRY and all that hangs below it, whatever branches these are.")
@click.option("--current", is_flag=True, help="Also the branch that the session stands on.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_place.place_options
@_place.json_option
def delete(
    session: str,
    entry: str,
    below: bool,
    current: bool,
    dry_run: bool,
    yes: bool,
    cwd: str | None,
    session_dir: str | None,
    as_json: bool,
) -> int:
    r"""Take the branch that ENTRY is on out of SESSION: from where it leaves the tree to its end.

    The lines go, byte for byte, into a file beside the session (its name ends in .archive); 'branch restore'
    puts them back. Entries that other branches need are never taken, nor is the branch that the session
    stands on, without --current: the last entry that is left in the file is its place then. No other program
    should be working on the session; if one has written to it meanwhile, nothing is changed.

    \b
    Examples:
      sessiontree branch delete 0198 a1b2c3d4 --dry-run
      sessiontree branch delete 0198 dead-end
      sessiontree branch delete 0198 a1b2c3d4 --below --yes

    Exit codes: 0 done, 1 failed, not found or refused, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    path = place.find(session)
    with place.open(path) as opened:
        id = _place.entry_id(opened, entry)
    with progress("reading"):
        plan = archives.plan(path, id, below=below, current=current)
    if dry_run:
        _say_plan(plan, as_json=as_json)
        return 0
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise click.UsageError("'branch delete' asks first: give --yes where nobody can answer")
        _say_plan(plan, as_json=False)
        if not click.confirm("Take them out?", err=True):
            return 1
    with progress("writing"):
        stored = archives.archive(plan)
    if as_json:
        say_json(_json(stored))
    else:
        say(f"{count(stored.entries, 'entry', 'entries')} moved to {safe(stored.path, keep='')}")
    return 0


def _say_plan(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        say_json(
            {"head": plan.head, "parent": plan.parent, "entries": len(plan.rows), "size": plan.size,
             "leaf": plan.leaf, "notes": list(plan.notes)}
        )  # fmt: skip
        return
    where = f"below {safe(plan.parent, keep='')}" if plan.parent else "from a root of the tree on"
    say(f"{count(len(plan.rows), 'entry', 'entries')}, {size_text(plan.size)}, {where} go into an archive")
    for note in plan.notes:
        say(f"  {note}")
    say(f"  the session stands on {safe(plan.leaf or 'nothing', keep='')} then")


@command.command("restore", short_help="Put a branch back.")
@click.argument("session", shell_complete=_place.complete_session)
@click.argument("branch", required=False)
@click.option("--keep", is_flag=True, help="Leave the archive where it is.")
@_place.place_options
@_place.json_option
def restore(
    session: str, branch: str | None, keep: bool, cwd: str | None, session_dir: str | None, as_json: bool
) -> int:
    r"""Put BRANCH back into SESSION, to its old place: its first or last entry's id, or the archive's path.

    Left out, it is the only archive there is. The archive is removed once its entries are in the session.

    \b
    Examples:
      sessiontree branch restore 0198
      sessiontree branch restore 0198 a1b2c3d4 --keep

    Exit codes: 0 done, or they were there already; 1 failed or not found; 2 wrong usage.
    """
    path = _place.Place(cwd, session_dir).find(session)
    stored = _the_archive(path, branch)
    with progress("writing"):
        entries = archives.restore(path, stored.path, keep=keep)
    if as_json:
        say_json({**_json(stored), "restored": entries})
    elif entries:
        say(f"{count(entries, 'entry', 'entries')} put back into {safe(path, keep='')}")
    else:
        say(f"the entries were in {safe(path, keep='')} already")
    return 0


def _the_archive(path: str, given: str | None) -> Archive:
    """Find the archive that is meant."""
    found = archives.archives(path)
    if given is not None:
        alike = [each for each in found if given in (each.path, each.head, each.leaf)]
        begun = [each for each in found if given and each.head.startswith(given)]
        found = alike or begun or [each for each in found if paths.paths_equal(each.path, given)]
    if not found:
        what = f"no archive of {given!r}" if given else "no archive"
        raise _place.NotFoundError(f"{what} beside {path!r}; 'branch list' shows what there is")
    if len(found) > 1:
        shown = ", ".join(f"{each.head} ({each.path})" for each in found)
        raise click.UsageError(f"several archives can be meant: {shown}")
    return found[0]


def _json(stored: Archive) -> dict[str, Any]:
    return {("archive" if key == "path" else key): value for key, value in asdict(stored).items()}
