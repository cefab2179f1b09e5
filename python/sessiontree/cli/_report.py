"""What a session's file holds besides sound entries, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessiontree.cli._errors import complain
from sessiontree.cli._text import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree import SessionManager


def report_lines(session: SessionManager) -> Iterator[str]:
    """Say what the file holds besides sound entries, a line each; nothing for a sound file."""
    report = session.open_report
    for skipped in report.skipped_lines[:3]:
        yield f"no JSON: {skipped.reason} (line {skipped.line}, byte {skipped.byte})"
    if report.skipped > 3:
        yield f"and {report.skipped - 3:,} more lines that are no JSON"
    if report.torn_tail:
        yield "the last line is torn: its writer died, or is writing still"
    if report.orphans:
        yield f"{count(len(report.orphans), 'entry', 'entries')} whose parent is missing"
    if report.duplicate_ids:
        yield f"{count(len(report.duplicate_ids), 'id')} twice or more"


def tell_report(session: SessionManager) -> None:
    """Say on stderr what a command does not show, because it is no entry."""
    for text in report_lines(session):
        complain(f"{text} ({session.get_session_file()})")
