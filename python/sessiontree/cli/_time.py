"""Times as people write and read them."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_AGO = r"(\d{1,6})([hdwmy])"
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}
# From which number of seconds on an age is said in a unit, and how long that unit is.
_AGES: Sequence[tuple[float, int, str]] = (
    (365.25 * 86_400, 31_557_600, "y"),
    (60 * 86_400, 2_629_800, "mo"),
    (14 * 86_400, 604_800, "w"),
    (2 * 86_400, 86_400, "d"),
    (2 * 3_600, 3_600, "h"),
    (60, 60, "min"),
)


def when(ctx: click.Context, param: click.Parameter, value: str | None) -> dt.datetime | None:
    """Read a moment: a date, a date with a time, or how long ago; a time without zone is local."""
    if value is None:
        return None
    ago = re.fullmatch(_AGO, value)
    try:
        if ago:
            return dt.datetime.now(dt.UTC) - dt.timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
        return dt.datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError, OSError):
        hint = "such as 2026-08-31, 2026-08-31T10:30, 12h, 7d, 2w, 3m, 1y"
        raise click.BadParameter(f"not a time: {value!r} ({hint})", ctx, param) from None


def age(ms: int, now_ms: int) -> str:
    """Say how long ago something was, in the unit that fits.

    Example:
        >>> age(0, 59_000), age(0, 7_200_000), age(0, 86_400_000 * 20), age(10, 0)
        ('now', '2 h', '2 w', 'now')
    """
    seconds = (now_ms - ms) / 1000
    for least, unit, name in _AGES:
        if seconds >= least:
            return f"{int(seconds // unit)} {name}"
    return "now"


def minute(ms: int | None) -> str:
    """Give a time as a local date with hours and minutes, ``?`` for one that is not known."""
    try:
        return "?" if ms is None else dt.datetime.fromtimestamp(ms / 1000).isoformat(" ", "minutes")  # noqa: DTZ006
    except (OverflowError, ValueError, OSError):
        return "?"


def iso(ms: int | None) -> str | None:
    """Give a time as session files write it; None for one that is not known or not of the years 1 to 9999."""
    try:
        moment = None if ms is None else dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
