"""Where a session gets its times and ids from: the one seam for tests and special hosts."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_HEX = "0123456789abcdef"


def _format_uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid4() -> str:
    """Draw a random UUID (version 4) as text."""
    digits = os.urandom(16).hex()
    return _format_uuid(f"{digits[:12]}4{digits[13:16]}{_HEX[8 | int(digits[16], 16) & 3]}{digits[17:]}")


def clock_ms() -> int:
    """Give the wall-clock time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class _Uuid7:
    """UUIDs of version 7 that never go back, even where the clock does (RFC 9562, method 1)."""

    def __init__(self) -> None:
        self._ms = 0
        self._counter = 0

    def __call__(self) -> str:
        ms = clock_ms()
        if ms > self._ms:
            self._ms, self._counter = ms, int.from_bytes(os.urandom(2), "big") & 0x7FF
        else:
            self._counter += 1
            if self._counter > 0xFFF:
                self._ms, self._counter = self._ms + 1, 0
        rest = os.urandom(8).hex()
        variant = _HEX[8 | int(rest[0], 16) & 3]
        return _format_uuid(f"{self._ms:012x}7{self._counter:03x}{variant}{rest[1:]}")


uuid7 = _Uuid7()


class Host:
    """Clock and id sources of a session.

    Args:
        clock_ms: gives the time in milliseconds since 1970; read once for each new entry.
        uuid4: gives a whole UUID; an entry's id is its first eight characters, drawn again while an
            entry has it.
        uuid7: gives the id of a new session.

    Example:
        >>> Host(clock_ms=lambda: 0).clock_ms()
        0
    """

    __slots__ = ("clock_ms", "is_default", "uuid4", "uuid7")

    def __init__(
        self,
        clock_ms: Callable[[], int] = clock_ms,
        uuid4: Callable[[], str] = uuid4,
        uuid7: Callable[[], str] = uuid7,
    ) -> None:
        self.clock_ms = clock_ms
        self.uuid4 = uuid4
        self.uuid7 = uuid7
        self.is_default = False


DEFAULT_HOST = Host()
DEFAULT_HOST.is_default = True


def is_usual(host: Host) -> bool:
    """Say whether new entries get the system's time and random ids."""
    return host.clock_ms is clock_ms and host.uuid4 is uuid4
