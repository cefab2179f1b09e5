"""The current branch of a session as a session file of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from sessiontree.entries import CURRENT_SESSION_VERSION
from sessiontree.jsontext import js_stringify, to_iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class BranchOwner(Protocol):
    """The part of a SessionManager that is needed here."""

    def get_branch(self, from_id: str | None = None) -> Sequence[Any]:
        """The path from the root to an entry."""

    def get_session_id(self) -> str:
        """The session's id."""

    def get_cwd(self) -> str:
        """The session's working directory."""


class Clock(Protocol):
    """Where the time comes from."""

    def clock_ms(self) -> int:
        """Milliseconds since 1970."""


def serialize_session_branch(
    session: BranchOwner,
    create_trailing_entries: Callable[[str | None, str], Iterable[Any]] | None = None,
    *,
    host: Clock | None = None,
) -> str:
    """Write the current branch as the text of a session file, each entry the child of the one before.

    The header has the session's id and working directory and the time of now. Labels stay where they are
    on the path; other branches are left out.

    Args:
        session: a SessionManager.
        create_trailing_entries: gets the last entry's id and the header's time, and gives entries to be
            added at the end.
        host: source of the time.
    """
    timestamp = to_iso(host.clock_ms() if host is not None else time.time_ns() // 1_000_000)
    header = {
        "type": "session",
        "version": CURRENT_SESSION_VERSION,
        "id": session.get_session_id(),
        "timestamp": timestamp,
        "cwd": session.get_cwd(),
    }
    lines = [header]
    parent: str | None = None
    for entry in session.get_branch():
        lines.append({**entry, "parentId": parent})
        parent = entry.get("id")
    if create_trailing_entries is not None:
        lines.extend(create_trailing_entries(parent, timestamp))
    return "".join(f"{js_stringify(line)}\n" for line in lines)
