"""The cyclic garbage collector, off while thousands of new dicts would wake it again and again.

It is on again when the last one that wanted it off is done, if it was on before the first one came:
threads may want it off at the same time, and a process may be forked meanwhile.
"""

from __future__ import annotations

import gc
import os
import threading

_lock = threading.Lock()
_depth = 0
_was_on = False


class Paused:
    """Keeps the collector off: ``with Paused(): ...``."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _depth, _was_on  # noqa: PLW0603 - one state for the process, as the collector has
        with _lock:
            if _depth == 0:
                _was_on = gc.isenabled()
                gc.disable()
            _depth += 1

    def __exit__(self, *_: object) -> None:
        global _depth  # noqa: PLW0603
        with _lock:
            _depth -= 1
            if _depth == 0 and _was_on:
                gc.enable()


def _in_child() -> None:
    """Undo what threads of the parent process wanted: they are not here."""
    global _lock, _depth  # noqa: PLW0603
    _lock = threading.Lock()
    if _depth and _was_on:
        gc.enable()
    _depth = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
