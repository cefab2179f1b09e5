"""Sessions that go on working on both sides of `os.fork`.

A lock that another thread holds while the process forks is never given back in the child: that thread
does not exist there. So the forking thread takes the locks of all sessions first, and nobody is at work
on a session when the process is copied. A session whose lock is not to be had in time (its thread
waits for another process, or scans gigabytes) is not waited for: the child gives it a new lock and
scans its file anew.

The kernel's lock on a file is not inherited in a useful way, as parent and child would hold it together:
the native append opens its descriptor anew in a process that did not open it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessiontree.manager import SessionManager

PATIENCE_SECONDS = 1.0
"""How long a fork waits for threads that are at work on sessions, all together."""

_sessions: dict[int, weakref.ref[SessionManager]] = {}
_taken: dict[int, list[SessionManager]] = {}
"""Sessions whose locks a forking thread holds, by the thread's number."""


def register(session: SessionManager) -> None:
    """Look after a session for as long as it lives."""
    key = id(session)
    _sessions[key] = weakref.ref(session, lambda _: _sessions.pop(key, None))


def _alive() -> list[SessionManager]:
    return [session for ref in list(_sessions.values()) if (session := ref()) is not None]


def _before() -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    _taken[threading.get_ident()] = [
        session
        for session in _alive()
        if session._lock.acquire(timeout=max(0.0, end - time.monotonic()))  # noqa: SLF001
    ]


def _release() -> list[SessionManager]:
    sessions = _taken.pop(threading.get_ident(), [])
    for session in sessions:
        session._lock.release()  # noqa: SLF001
    return sessions


def _in_child() -> None:
    free = {id(session) for session in _release()}
    # Other threads of the parent may have been about to fork as well.
    _taken.clear()
    for session in _alive():
        if id(session) not in free:
            session._recover()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
