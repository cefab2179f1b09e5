"""The catalog as commands use it: where it looks, brought up to date first, and chosen from by options."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import os
from typing import TYPE_CHECKING, Any

import click

from sessiontree import paths
from sessiontree._cachedir import cache_dir
from sessiontree.catalog import Catalog
from sessiontree.cli._errors import complain, explain, os_error
from sessiontree.cli._progress import progress
from sessiontree.cli._time import when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessiontree.catalog import Filters
    from sessiontree.cli._place import Place


def roots(place: Place) -> list[str]:
    """The folders that are looked into: pi's, or the one that was given."""
    return [place.session_dir or paths.sessions_root()]


@contextlib.contextmanager
def up_to_date(place: Place) -> Iterator[Catalog]:
    """Give the catalog, brought up to date; what cannot be read is told in a line."""
    with named_cache(), Catalog() as catalog:
        with progress("reading sessions") as tell:
            catalog.refresh(roots(place), tell, on_error=tell_trouble)
        yield catalog


@contextlib.contextmanager
def named_cache() -> Iterator[None]:
    """Say of trouble with the catalog's files that they are a cache, and how to have it elsewhere."""
    try:
        yield
    except OSError as error:
        folder = os.path.abspath(cache_dir())
        if not os.path.abspath(os.fsdecode(error.filename or "")).startswith(folder):
            raise
        raise click.ClickException(
            f"the cache cannot be used: {os_error(error)}; SESSIONTREE_CACHE_DIR names another folder for it"
        ) from None


def tell_trouble(path: str, error: Exception) -> None:
    """Say in a line what could not be read."""
    text, _ = explain(error)
    complain(text if path in text else f"{text} ({path})")


if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:
    # Older versions of click know no types of parameters.
    _ParamType = click.ParamType


class _Amount(_ParamType):
    """Some money: a number that one can compare with."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        try:
            amount = float(value)
        except ValueError:
            amount = math.nan
        if math.isnan(amount):
            self.fail(f"not an amount: {value!r}", param, ctx)
        return amount


_AMOUNT = _Amount()


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
        click.option(
            "--min-cost", type=_AMOUNT, metavar="USD", help="Of sessions that cost at least so much."
        ),
        click.option(
            "--max-cost", type=_AMOUNT, metavar="USD", help="Of sessions that cost at most so much."
        ),
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
