"""``sessiontree doctor``: say what is wrong with session files, and repair them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from sessiontree import doctor
from sessiontree.cli import _place
from sessiontree.cli._errors import complain, explain
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import count, safe
from sessiontree.exceptions import SessionTreeError

if TYPE_CHECKING:
    from sessiontree.doctor import Diagnosis, Finding

_STYLES = {"error": "error", "warning": "label", "note": "dim"}


@click.command("doctor", short_help="Say what is wrong with session files, and repair them.")
@click.argument("sessions", nargs=-1)
@click.option("--fix", is_flag=True, help="Repair; shows the plan and asks first.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option(
    "--read-images",
    is_flag=True,
    help="Read the images that 'shrink' moved out, too, and tell which have changed.",
)
@_place.place_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a file, one a line.")
def command(
    sessions: tuple[str, ...],
    fix: bool,
    yes: bool,
    read_images: bool,
    cwd: str | None,
    session_dir: str | None,
    as_json: bool,
) -> int:
    r"""Say what is wrong with session files: damaged lines, broken trees, references to nothing, and more.

    With --fix, what can be repaired is: entries in damaged lines get lines of their own, doubled ids are
    told apart, lost entries hang where they were written. The old file stays beside it (.bak), and bytes
    without a place go to a file .rejected. Nothing is repaired without --fix.

    Images that 'shrink' moved out are reported where they are lost or have another length; whether their
    content is what it was is known after --read-images only. No repair brings them back.

    Notes are no faults: large lines, entries of other programs, files that others may open.

    \b
    Examples:
      sessiontree doctor
      sessiontree doctor ~/.pi/agent/sessions/*/*.jsonl
      sessiontree doctor 0198 --fix

    Exit codes: 0 there is nothing to report but notes, 1 something was found or failed, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    found = shown = False
    for given in sessions or (None,):
        try:
            path = place.find(given)
            with progress("reading") as tell:
                diagnosis = doctor.check(path, read_images=read_images, progress=tell)
            if fix and diagnosis.fixable:
                diagnosis = _repair(path, diagnosis, yes=yes, read_images=read_images, as_json=as_json)
        except (OSError, SessionTreeError, _place.NotFoundError) as error:
            complain(explain(error)[0])
            found = True
            continue
        _report(diagnosis, as_json=as_json, alone=len(sessions) < 2)
        found, shown = found or bool(diagnosis), shown or bool(diagnosis.findings)
    if len(sessions) > 1 and not (found or shown or as_json):
        # Of each there was nothing to say; to say nothing of all would look as if nothing had been done.
        say(f"{len(sessions):,} sessions, nothing to report")
    return 1 if found else 0


def _repair(path: str, before: Diagnosis, *, yes: bool, read_images: bool, as_json: bool) -> Diagnosis:
    """Show what would be done, ask, and do it."""
    if not as_json:
        say(f"{safe(path, keep='')}: to be done")
        for action in before.plan:
            say(f"  {safe(action, keep='')}")
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise click.UsageError("--fix asks before it writes: give --yes where nobody can answer")
        if not click.confirm("Repair the file?", err=True):
            return before
    with progress("repairing") as tell:
        after = doctor.fix(path, read_images=read_images, progress=tell)
    if not as_json:
        for what, where in (("the old file", after.backup), ("the rest", after.rejected)):
            if where:
                say(f"  {what} is in {safe(where, keep='')}")
    return after


def _report(diagnosis: Diagnosis, *, as_json: bool, alone: bool) -> None:
    if as_json:
        say_json(_json(diagnosis))
        return
    screen = Screen.of_stdout()
    name = safe(diagnosis.path, keep="")
    if not diagnosis and (alone or diagnosis.findings):
        notes = f" but {count(len(diagnosis.findings), 'note')}" if diagnosis.findings else ""
        say(f"{name}: {count(diagnosis.entries, 'entry', 'entries')}, nothing to report{notes}")
    elif diagnosis:
        say(screen.paint(name, "bold"))
    for finding in diagnosis.findings:
        say(_line(finding, screen))
    for kind, total in diagnosis.counts.items():
        shown = sum(finding.kind == kind for finding in diagnosis.findings)
        if shown < total:
            say(f"  and {total - shown:,} more: {kind}")


def _line(finding: Finding, screen: Screen) -> str:
    place = f"line {finding.line}, byte {finding.byte}" if finding.line else "the file"
    mark = " (--fix repairs it)" if finding.fixable else ""
    about = f" {safe(finding.entry_id, keep='')}" if finding.entry_id else ""
    kind = screen.paint(finding.kind, _STYLES[finding.severity])
    return f"  {place}: {kind}{about}: {safe(finding.text, keep='')}{mark}"


def _json(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "path": diagnosis.path,
        "entries": diagnosis.entries,
        "size": diagnosis.size,
        "imageBytes": diagnosis.image_bytes,
        "backup": diagnosis.backup,
        "rejected": diagnosis.rejected,
        "counts": dict(diagnosis.counts),
        "findings": [
            {
                "kind": finding.kind,
                "severity": finding.severity,
                "line": finding.line,
                "byte": finding.byte,
                "entryId": finding.entry_id,
                "text": finding.text,
                "action": finding.action,
                "fixable": finding.fixable,
            }
            for finding in diagnosis.findings
        ],
    }
