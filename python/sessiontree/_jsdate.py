"""Dates as JavaScript's ``Date`` reads and writes them; the face is `sessiontree.jsontext`.

Times are milliseconds since 1970 in UTC. The calendar is the proleptic Gregorian one, and a date
exists within 100,000,000 days of 1970 (ECMA-262, Time Values and Time Range).
"""

from __future__ import annotations

from sessiontree import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

NAN: Final = float("nan")
LIMIT: Final = 8_640_000_000_000_000
DAY: Final = 86_400_000


def parse_date(value: object) -> float:
    """Give ``new Date(value).getTime()`` for a value read from JSON.

    Args:
        value: texts are read as V8 reads them: the format of ECMA-262 (a date alone is UTC, a date
            and time without a zone is local) and the looser forms, such as ``"Jan 1 2026 10:00 PM
            EST"``. Numbers are milliseconds, None is 0, booleans are 0 and 1, of lists the text is
            read. A key that is missing is not None but no date: pass `sessiontree.entries.UNSET` for it.

    Returns:
        Milliseconds since 1970 as an int, or NaN for what is no date.

    Example:
        >>> parse_date("2026-08-31T10:30:00.000Z"), parse_date("tomorrow")
        (1788172200000, nan)
    """
    if isinstance(value, str):
        return _parse_text(value)
    if value is None:
        return 0
    if isinstance(value, int | float):
        return clip(value)
    if isinstance(value, list | tuple):
        return _parse_text(_list_text(value))
    return NAN


def _parse_text(text: str) -> float:
    ms = _native.parse_date(text)
    return NAN if ms is None else ms


def clip(ms: float) -> float:
    """Cut the fraction off a time; NaN where no date exists."""
    return int(ms) if -LIMIT <= ms <= LIMIT else NAN


def _calendar(day_number: int) -> tuple[int, int, int]:
    """Give year, month and day of a day counted from 1970-01-01."""
    era, day = divmod(day_number + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    return 400 * era + year + (month > 9), (month + 2) % 12 + 1, day - (153 * month + 2) // 5 + 1


def to_iso(ms: float) -> str:
    """Give ``new Date(ms).toISOString()``, the form of all timestamps in a session file.

    Raises:
        ValueError: there is no date for this time, which may be NaN.

    Example:
        >>> to_iso(1788172200000)
        '2026-08-31T10:30:00.000Z'
    """
    clipped = clip(ms)
    if clipped != clipped:  # noqa: PLR0124 - NaN
        raise ValueError(f"no date has the time {ms!r}: it must be within {LIMIT} ms of 1970")
    day_number, rest = divmod(int(clipped), DAY)
    year, month, day = _calendar(day_number)
    seconds, milli = divmod(rest, 1000)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milli:03d}"
    return f"{shown}-{month:02d}-{day:02d}T{clock}Z"


def _leaves(values: list[object] | tuple[object, ...]) -> Iterator[object]:
    """All values of nested lists in order; an empty list counts as one null."""
    stack: list[Iterator[object]] = [iter(values or (None,))]
    while stack:
        for value in stack[-1]:
            if isinstance(value, list | tuple):
                stack.append(iter(value or (None,)))
                break
            yield value
        else:
            stack.pop()


def _list_text(values: list[object] | tuple[object, ...]) -> str:
    """Give JavaScript's ``String(values)`` of values read from JSON."""
    return ",".join(_leaf_text(value) for value in _leaves(values))


def _leaf_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        from sessiontree import _jsonwrite

        return _jsonwrite.number_text(value)
    return "[object Object]"
