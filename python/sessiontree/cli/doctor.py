"""``sessiontree doctor``: say what is wrong with session files, and repair them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sessiontree import doctor
from sessiontree.cli import _place
from sessiontree.cli._errors import complain, explain
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._text import count, safe
from sessiontree.exceptions import SessionTreeError

if TYPE_CHECKING:
    from sessiontree.doctor import Diagnosis


@click.command("doctor", short_help="Say what is wrong with session files, and repair them.")
@click.argument("sessions", nargs=-1)
@click.option("--fix", is_flag=True, help="Repair; shows the plan and asks first.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@_place.place_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a file, one a line.")
def command(
    sessions: tuple[str, ...], fix: bool, yes: bool, cwd: str | None, session_dir: str | None, as_json: bool
) -> int:
    r"""Say what is wrong with session files: damaged lines, broken trees, references to nothing, and more.

    With --fix, what can be repaired is: entries in damaged lines get lines of their own, doubled ids are
    told apart, lost entries hang where they were written. A copy of the old file is left beside it (.bak),
    and bytes without a place go to a file .rejected. Nothing is repaired without --fix.

    \b
    Examples:
      sessiontree doctor
      sessiontree doctor ~/.pi/agent/sessions/*/*.jsonl
      sessiontree doctor 0198 --fix

    Exit codes: 0 there is nothing to report, 1 something was found or failed, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    found = False
    for given in sessions or (None,):
        try:
            path = place.find(given)
            diagnosis = doctor.check(path)
            if fix and diagnosis.fixable:
                diagnosis = _repair(path, diagnosis, yes=yes, as_json=as_json)
        except (OSError, SessionTreeError) as error:
            complain(explain(error)[0])
            found = True
            continue
        _report(diagnosis, as_json=as_json, alone=len(sessions) < 2)
        found = found or bool(diagnosis)
    return 1 if found else 0


def _repair(path: str, before: Diagnosis, *, yes: bool, as_json: bool) -> Diagnosis:
    """Show what would be done, ask, and do it."""
    if not as_json:
        say(f"{safe(path, keep='')}: to be done")
        for action in doctor.plan(path):
            say(f"  {safe(action, keep='')}")
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise click.UsageError("--fix asks before it writes: give --yes where nobody can answer")
        if not click.confirm("Repair the file?", err=True):
            return before
    return doctor.fix(path)


def _report(diagnosis: Diagnosis, *, as_json: bool, alone: bool) -> None:
    if as_json:
        say_json(_json(diagnosis))
        return
    screen = Screen.of_stdout()
    name = safe(diagnosis.path, keep="")
    if not diagnosis:
        if alone:
            say(f"{name}: {count(diagnosis.entries, 'entry', 'entries')}, nothing to report")
        return
    say(screen.paint(name, "bold"))
    for finding in diagnosis.findings:
        place = f"line {finding.line}, byte {finding.byte}" if finding.line else "the file"
        mark = " (--fix repairs it)" if finding.fixable else ""
        about = f" {safe(finding.entry_id, keep='')}" if finding.entry_id else ""
        say(f"  {place}: {screen.paint(finding.kind, 'label')}{about}: {safe(finding.text, keep='')}{mark}")


def _json(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "path": diagnosis.path,
        "entries": diagnosis.entries,
        "size": diagnosis.size,
        "imageBytes": diagnosis.image_bytes,
        "findings": [
            {("entryId" if key == "entry_id" else key): value for key, value in asdict(finding).items()}
            for finding in diagnosis.findings
        ],
    }
