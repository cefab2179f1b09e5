"""``sessiontree export``: a session as a file for people or for other programs."""

from __future__ import annotations

import click

from sessiontree.cli import _place
from sessiontree.cli._output import say_path


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
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    output: str,
    form: str | None,
    at: str | None,
    redact: bool,
) -> None:
    """Write SESSION to a file: all branches as one HTML page, one branch as Markdown or as a session file."""
    from sessiontree.export import export_session

    with _place.Place(cwd, session_dir).open(session) as opened:
        leaf = _place.entry_id(opened, at) if at is not None else None
        export_session(opened, output, format=form, leaf_id=leaf, redact=_redactor() if redact else None)
    say_path(output)


def _redactor() -> object:
    from sessiontree.export.redact import Redactor

    return Redactor()
