"""The catalog as commands use it: where it looks, brought up to date first, and chosen from by options."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from sessiontree import paths
from sessiontree.catalog import Catalog
from sessiontree.cli._errors import complain, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessiontree.catalog import Filters
    from sessiontree.cli._place import Place

_AGO = re.compile(r"(\d{1,6})([hdwmy])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}
_SHOW_AFTER = 0.5


def when(ctx: click.Context, param: click.Parameter, value: str | None) -> dt.datetime | None:
    """Read a moment: a date, a date with a time, or how long ago; a time without zone is local."""
    if value is None:
        return None
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            return dt.datetime.now(dt.UTC) - dt.timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
        return dt.datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError, OSError):
        hint = "such as 2026-08-31, 2026-08-31T10:30, 12h, 7d, 2w, 3m, 1y"
        raise click.BadParameter(f"not a time: {value!r} ({hint})", ctx, param) from None


def roots(place: Place) -> list[str]:
    """The folders that are looked into: pi's, or the one that was given."""
    return [place.session_dir or paths.sessions_root()]


@contextlib.contextmanager
def up_to_date(place: Place) -> Iterator[Catalog]:
    """Give the catalog, brought up to date; what cannot be read is told in a line."""
    with Catalog() as catalog:
        with progress("reading sessions") as tell:
            catalog.refresh(roots(place), tell, on_error=tell_trouble)
        yield catalog


def tell_trouble(path: str, error: Exception) -> None:
    """Say in a line what could not be read."""
    text, _ = explain(error)
    complain(text if path in text else f"{text} ({path})")


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show on a terminal how far something is, once it takes longer than half a second."""
    if not sys.stderr.isatty():
        yield None
        return
    began, shown = time.monotonic(), 0

    def tell(done: int, total: int) -> None:
        nonlocal shown
        if total and time.monotonic() - began > _SHOW_AFTER:
            text = f"{what}: {100 * done // total} %"
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
            shown = len(text)

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write(f"\r{' ' * shown}\r")
            sys.stderr.flush()


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose sessions."""
    options = (
        click.option(
            "--project", metavar="DIR", help="Of this directory and those below it, or of this name."
        ),
        click.option(
            "--since", callback=when, metavar="WHEN", help="Not older than a date, or 12h, 7d, 2w, 3m, 1y."
        ),
        click.option("--until", callback=when, metavar="WHEN", help="Older than that."),
        click.option("--model", metavar="MODEL", help="provider/model or model; * stands for anything."),
        click.option("--min-cost", type=float, metavar="USD", help="Of sessions that cost at least so much."),
        click.option("--max-cost", type=float, metavar="USD", help="Of sessions that cost at most so much."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def filters(place: Place, options: dict[str, Any]) -> Filters:
    """Turn the options of `filter_options` into filters of the catalog."""
    chosen: Filters = {
        "roots": roots(place),
        "project": options.get("project"),
        "since": options.get("since"),
        "until": options.get("until"),
        "model": options.get("model"),
        "min_cost": options.get("min_cost"),
        "max_cost": options.get("max_cost"),
    }
    return chosen


def iso(moment: dt.datetime | None) -> str | None:
    """A time as JSON has it."""
    if moment is None:
        return None
    return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
