"""Dates as JavaScript's ``Date`` reads and writes them; the face is `sessiontree.jsontext`.

Times are milliseconds since 1970 in UTC. The calendar is the proleptic Gregorian one, and a date
exists within 100,000,000 days of 1970 (ECMA-262, Time Values and Time Range).
"""

from __future__ import annotations

import time

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
    found = _parse_written_form(text)
    if found is not None:
        return found
    from sessiontree import _jsdatetext

    return _jsdatetext.parse(text)


def _parse_written_form(text: str) -> float | None:
    """Read ``2026-08-31T10:30:00.000Z``, which is nearly every date in a file; None if it is not that."""
    if len(text) != 24 or text[4:20:3] != "--T::." or text[23] != "Z" or not text.isascii():
        return None
    digits = text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19] + text[20:23]
    if not digits.isdigit():
        return None
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:14])
    if not (0 < month < 13 and 0 < day < 32 and hour < 24 and minute < 60 and second < 60):
        return None
    return (
        days(year, month, day) * DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + int(digits[14:])
    )


def clip(ms: float) -> float:
    """Cut the fraction off a time; NaN where no date exists."""
    return int(ms) if -LIMIT <= ms <= LIMIT else NAN


def days(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01; a day beyond the month's end runs on into the next."""
    # Years begin in March here, so that the leap day is a year's last.
    year -= month < 3
    month_days = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return 365 * year + year // 4 - year // 100 + year // 400 + month_days + day - 719_469


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


def from_local(ms: int) -> float:
    """Turn a local wall-clock time into UTC.

    A time that the clock skips counts as if it had not been put forward yet; of a time that comes
    twice the first is meant.
    """
    before, after = _offset(ms - DAY), _offset(ms + DAY)
    for offset in (before, after):
        if _offset(ms - offset) == offset:
            return clip(ms - offset)
    return clip(ms - before)


def _offset(ms: int) -> int:
    """Milliseconds by which local clocks are ahead of UTC at this time."""
    try:
        return time.localtime(ms // 1000).tm_gmtoff * 1000
    except (OverflowError, OSError, ValueError):
        return -time.timezone * 1000  # a platform that knows no such year


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
