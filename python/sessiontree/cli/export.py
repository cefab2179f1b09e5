"""``sessiontree export``: a session as a file for people or for other programs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sessiontree.cli import _place
from sessiontree.cli._output import say_json, say_path
from sessiontree.cli._progress import progress

if TYPE_CHECKING:
    from sessiontree.export.redact import Redactor


@click.command("export", short_help="Write a session as HTML, Markdown or JSON Lines.")
@_place.session_argument
@click.option("-o", "--output", required=True, metavar="FILE", help="What to write; it must not exist.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown", "jsonl"]),
    help="By the ending of FILE if left out.",
)
@click.option("--at", metavar="ID", help="Write the branch to this entry instead of the leaf's.")
@click.option("--redact", is_flag=True, help="Take keys, tokens and passwords out.")
@click.option(
    "--redact-pattern",
    "patterns",
    multiple=True,
    metavar="REGEX",
    help="Take out what matches this, too, in ten seconds a text at most; repeatable, implies --redact.",
)
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    output: str,
    form: str | None,
    at: str | None,
    redact: bool,
    patterns: tuple[str, ...],
    as_json: bool,
) -> None:
    r"""Write SESSION to a file: all branches as one HTML page, one branch as Markdown or as a session file.

    \b
    Examples:
      sessiontree export -o session.html
      sessiontree export 0198 -o branch.md --at a1b2c3d4
      sessiontree export 0198 -o shared.html --redact

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    from sessiontree.export import export_session

    _check_output(output)
    form = form or _format_of(output)
    redactor = _redactor(patterns) if redact or patterns else None
    with _place.Place(cwd, session_dir).open(session) as opened:
        leaf = _place.entry_id(opened, at) if at is not None else None
        with progress(f"writing {form}"):
            export_session(opened, output, format=form, leaf_id=leaf, redact=redactor)
    if as_json:
        say_json({"path": os.path.abspath(output), "format": form, "size": os.path.getsize(output)})
    else:
        say_path(output)


def _check_output(output: str) -> None:
    if output == "-":
        raise click.UsageError("an export is a file: '-' names none")
    if os.path.isdir(output):
        raise click.UsageError(f"{output!r} is a folder: name the file to write in it")


def _format_of(output: str) -> str:
    from sessiontree.export import format_of

    try:
        return format_of(output)
    except ValueError as error:
        raise click.UsageError(f"{error}, or say it with --format") from None


def _redactor(patterns: tuple[str, ...]) -> Redactor:
    from sessiontree.export.redact import Redactor

    try:
        return Redactor(patterns)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
