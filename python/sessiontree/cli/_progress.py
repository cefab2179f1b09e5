"""How far something is: a line on stderr once it takes longer than half a second, if that is a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tell = Callable[[int, int], None]

_SHOW_AFTER = 0.5
_REDRAW = 0.1
_CELLS = 24
# Left times are guesses until so much is done.
_GUESS_FROM = 0.05


@contextlib.contextmanager
def progress(what: str) -> Iterator[Tell]:
    """Show how far something is; what is given takes (done, in all), and need not be called at all.

    Nothing may be printed inside: the line is cleared at the end.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _done, _total: None
        return
    bar = _Bar(what)
    try:
        yield bar.tell
    finally:
        bar.end()


class _Bar:
    """Draws from a thread of its own, so that work that tells nothing is seen to go on as well."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._state = (0, 0)
        self._began = time.monotonic()
        self._shown = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def tell(self, done: int, total: int) -> None:
        """Take how far it is."""
        self._state = (done, total)

    def end(self) -> None:
        """Clear the line."""
        self._ended.set()
        self._thread.join()
        if self._shown:
            self._write("")

    def _run(self) -> None:
        wait = _SHOW_AFTER
        while not self._ended.wait(wait):
            self._write(line(self._what, *self._state, time.monotonic() - self._began))
            wait = _REDRAW

    def _write(self, text: str) -> None:
        # A terminal that is gone is no reason to stop the work.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"\r{text}{' ' * (self._shown - len(text))}{'' if text else chr(13)}")
            sys.stderr.flush()
        self._shown = len(text)


def line(what: str, done: int, total: int, seconds: float) -> str:
    """Give the line to be shown.

    Args:
        what: what is done, such as "reading sessions".
        done: how much of it.
        total: how much there is; 0 if that is not known.
        seconds: how long it has taken.

    Example:
        >>> line("reading", 30, 120, 2.0)
        'reading ██████                    25 %, 6 s left'
        >>> line("reading", 0, 0, 2.0)
        'reading, 2 s'
    """
    if total <= 0:
        return f"{what}, {seconds:.0f} s"
    share = min(1.0, done / total)
    full = int(share * _CELLS)
    left = f", {seconds * (1 - share) / share:.0f} s left" if share > _GUESS_FROM else ""
    return f"{what} {'█' * full}{' ' * (_CELLS - full)} {100 * share:3.0f} %{left}"
