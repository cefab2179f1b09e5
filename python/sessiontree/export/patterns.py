"""Regular expressions of a user, which may take for ever on some text: Python cannot stop a match.

So they run in a process of their own, which ends by itself when one replacement takes too long.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

from sessiontree.export import _matching
from sessiontree.export._matching import NUMBER, read_number, read_text, text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS: Final = 10.0
"""So long may one pattern take for one text."""


class Patterns:
    """Replaces what patterns match.

    Args:
        patterns: regular expressions, as text.
        by: what is put in the place of each match; it has no backslash.

    Raises:
        ValueError: a pattern is no regular expression, or matches the empty text.
    """

    def __init__(self, patterns: Iterable[str], by: str) -> None:
        self._patterns = [_checked(pattern) for pattern in patterns]
        self._by = by
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def subn(self, text: str) -> tuple[str, int]:
        """Give a text with all matches of all patterns replaced, one pattern after the other; how many.

        Raises:
            ValueError: a pattern takes longer than `SECONDS`.
            OSError: the process cannot be started.
        """
        total = 0
        for number in range(len(self._patterns) if text else 0):
            with self._lock:
                text, count = self._ask(number, text)
            total += count
        return text, total

    def _ask(self, number: int, text: str) -> tuple[str, int]:
        process = self._process or self._start()
        began = time.monotonic()
        try:
            _send(process, NUMBER.pack(number) + text_bytes(text))
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            count = read_number(process.stdout)
            return (read_text(process.stdout) if count else text), count
        except (EOFError, BrokenPipeError):
            self._process = None
            raise ValueError(self._why(number, text, time.monotonic() - began)) from None

    def _why(self, number: int, text: str, seconds: float) -> str:
        pattern, length = self._patterns[number], f"a text of {len(text):,} characters"
        if seconds < 0.9 * SECONDS:
            return f"the pattern {pattern!r} could not be looked for in {length}: its process has ended"
        return (
            f"the pattern {pattern!r} takes longer than {SECONDS:g} seconds for {length}; "
            "one without nested repetitions, as in (a+)+, is faster"
        )

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", _matching.__file__, str(SECONDS), self._by]
        self._process = process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        weakref.finalize(self, _end, process)
        _send(process, NUMBER.pack(len(self._patterns)) + b"".join(map(text_bytes, self._patterns)))
        return process


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.write(data)
    process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, whatever it is doing."""
    process.kill()
    try:
        process.communicate()
    except (OSError, ValueError):
        process.wait()


def _checked(pattern: str) -> str:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    if compiled.fullmatch(""):
        raise ValueError(f"the pattern {pattern!r} matches nothing at all, and so everywhere")
    return pattern
