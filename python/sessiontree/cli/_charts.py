"""Charts as image files, drawn by matplotlib where that is installed."""

from __future__ import annotations

import datetime as dt
import os
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import click

from sessiontree.cli._text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_ROWS = 40
_NAME = 40


@dataclass(frozen=True, slots=True)
class Series:
    """Named values, and how they are drawn.

    Attributes:
        title: what they are.
        rows: name and value of each; of a line, time and value.
        kind: "ranks" (a bar a row), "days" (columns side by side) or "growth" (a line).
    """

    title: str
    rows: Sequence[tuple[str, float]]
    kind: Literal["ranks", "days", "growth"] = "ranks"


def check() -> None:
    """Make sure that charts can be drawn, before anything long is done for them.

    Raises:
        click.ClickException: matplotlib is not installed.
    """
    try:
        import_module("matplotlib.figure")
    except ModuleNotFoundError:
        raise click.ClickException(
            "charts as images need matplotlib: pip install 'sessiontree[charts]'"
        ) from None


def draw(path: str, series: Sequence[Series]) -> None:
    """Draw charts below each other into an image file; its ending says of which kind, PNG if it has none.

    Raises:
        click.ClickException: matplotlib is not installed, or cannot write such a file.
        OSError: the file cannot be written.
    """
    check()
    shown = [each for each in series if each.rows]
    figure = import_module("matplotlib.figure").Figure(
        figsize=(9, 1 + 4 * max(1, len(shown))), layout="constrained"
    )
    kinds = {"ranks": _ranks, "days": _days, "growth": _growth}
    with warnings.catch_warnings():
        # A letter that the font lacks is shown as a box; that is all that can be done about it.
        warnings.simplefilter("ignore")
        for number, each in enumerate(shown, 1):
            axes = figure.add_subplot(len(shown), 1, number)
            axes.set_title(each.title, parse_math=False)
            kinds[each.kind](axes, each.rows)
        try:
            figure.savefig(path, format=os.path.splitext(path)[1][1:] or "png")
        except ValueError as error:
            raise click.ClickException(f"{str(error).partition(' (')[0].lower()}: {path!r}") from None


def _ranks(axes: Any, rows: Sequence[tuple[str, float]]) -> None:
    rows = rows[:_MOST_ROWS]
    axes.barh(range(len(rows)), [value for _, value in rows])
    axes.set_yticks(range(len(rows)), [one_line(name, _NAME) or "?" for name, _ in rows], parse_math=False)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)


def _days(axes: Any, rows: Sequence[tuple[str, float]]) -> None:
    """Columns at their dates: days without anything leave a gap."""
    dated = [(day, value) for name, value in rows if (day := _day(name)) is not None]
    axes.bar([day for day, _ in dated], [value for _, value in dated], width=0.9)
    axes.tick_params(axis="x", rotation=30)
    axes.grid(axis="y", alpha=0.3)


def _growth(axes: Any, rows: Sequence[tuple[str, float]]) -> None:
    axes.plot(range(1, len(rows) + 1), [value for _, value in rows], drawstyle="steps-post")
    axes.set_xlabel("answer")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def _day(name: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(name)
    except ValueError:
        return None
