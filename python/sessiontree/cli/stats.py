"""``sessiontree stats``: tokens and cost by project, model, day or session, and how a context grew."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

import click

from sessiontree.cli import _catalog, _charts, _place
from sessiontree.cli._errors import complain
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import cell_len, one_line, pad

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sessiontree.catalog import Total

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR = 24
# A name may take so many cells before bars and the last columns give way.
_NAME = 32
_MOST_ROWS = 40


@click.command("stats", short_help="Tokens and cost by project, model, day or session.")
@click.option(
    "--by",
    type=click.Choice(["project", "model", "day", "session"]),
    multiple=True,
    help="What to sum up by; repeatable. Left out: model, project and the last days.",
)
@click.option("--context", metavar="SESSION", help="How the context of one session grew, answer by answer.")
@click.option(
    "--png",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Draw the charts into a file too (needs matplotlib); .svg and .pdf will do as well.",
)
@_catalog.filter_options
@_place.place_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line, for other programs.")
def command(
    by: tuple[Any, ...],
    context: str | None,
    png: str | None,
    cwd: str | None,
    session_dir: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    r"""Sum up tokens and cost, as the session files have them; what forks share counts once.

    Bars show what models, projects and sessions have cost, and how many answers a day has had.

    \b
    Examples:
      sessiontree stats
      sessiontree stats --by day --since 4w
      sessiontree stats --by session --project . --json
      sessiontree stats --context 0198 --png growth.png

    Exit codes: 0 fine, 1 there is nothing to sum up, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    if png is not None:
        _charts.check()
        _check_folder(png)
    if context is not None:
        with progress("reading"):
            title, rows = f"context of {context}, tokens by answer", growth(place, context)
        series = [_charts.Series(title, rows, "growth")]
        if as_json:
            for when, tokens in rows:
                say_json({"time": when, "contextTokens": tokens})
        else:
            _show_chart(title, rows)
    else:
        tables = _tables(place, by, options)
        series = [_series(key, totals) for key, totals in tables]
        if as_json:
            for key, totals in tables:
                for total in totals:
                    say_json({"by": key, **_total_json(total)})
        else:
            _show_tables(tables)
    if not any(each.rows for each in series):
        complain("there is nothing to sum up")
        return 1
    if png is not None:
        _charts.draw(png, series)
    return 0


def _check_folder(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise _place.NotFoundError(f"no such folder: {folder!r}")


def _series(key: str, totals: list[Total]) -> _charts.Series:
    """What is drawn of a table: days by what was done in them, all else by what it has cost."""
    if key == "day":
        return _charts.Series("answers by day", [(total.key, total.calls) for total in totals], "days")
    return _charts.Series(
        f"cost by {key}, US dollars", [(total.key, total.used.cost) for total in totals], "ranks"
    )


def _tables(
    place: _place.Place, by: tuple[Any, ...], options: dict[str, Any]
) -> list[tuple[str, list[Total]]]:
    with _catalog.up_to_date(place) as catalog:
        filters = _catalog.filters(place, options)
        with progress("summing up"):
            return [(key, catalog.totals(key, **filters)) for key in by or ("model", "project", "day")]


def _total_json(total: Total) -> dict[str, Any]:
    used = total.used
    return {
        "key": total.key,
        "calls": total.calls,
        "sessions": total.sessions,
        "input": used.input,
        "output": used.output,
        "cacheRead": used.cache_read,
        "cacheWrite": used.cache_write,
        "cost": used.cost,
    }


def growth(place: _place.Place, given: str) -> list[tuple[str, float]]:
    """Time and context tokens of each answer on the way to a session's leaf."""
    from sessiontree.compaction import calculate_context_tokens
    from sessiontree.compaction.usage import get_assistant_usage

    points: list[tuple[str, float]] = []
    with place.open(given) as session:
        for entry in session.get_branch():
            message = entry.get("message") if isinstance(entry, dict) else None
            usage = get_assistant_usage(message) if isinstance(message, dict) else None
            if usage is not None:
                points.append((str(entry.get("timestamp", "")), calculate_context_tokens(usage)))
    return points


def _show_tables(tables: list[tuple[str, list[Total]]]) -> None:
    screen = Screen.of_stdout()
    for number, (by, totals) in enumerate(tables):
        shown = totals[-_MOST_ROWS:] if by == "day" else totals[:_MOST_ROWS]
        if not shown:
            continue
        if number:
            say()
        # Days show how busy they were, all else what it has cost.
        amounts = [float(total.calls) if by == "day" else total.used.cost for total in shown]
        most = max(amounts)
        rows = [[by, "cost", "calls", "sessions", "input", "output", "cached"], *map(_row, shown)]
        _show_rows(screen, rows, [0.0, *(amount / most if most else 0.0 for amount in amounts)])
        if len(totals) > len(shown):
            say(screen.paint(f"… and {len(totals) - len(shown):,} more", "dim"))


def _row(total: Total) -> list[str]:
    used = total.used
    numbers = (total.calls, total.sessions, used.input, used.output, used.cache_read)
    return [total.key or "?", f"${used.cost:,.2f}", *(f"{number:,}" for number in numbers)]


def _show_rows(screen: Screen, rows: Sequence[Sequence[str]], shares: Sequence[float]) -> None:
    """Print a table; its bars have what the names leave, the last columns go where there is no room."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    wanted = min(widths[0], _NAME)
    while len(widths) > 2 and wanted + sum(widths[1:]) + 2 * len(widths) > screen.width:
        widths.pop()
    room = screen.width - sum(widths[1:]) - 2 * len(widths)
    widths[0] = max(1, min(widths[0], room - _BAR if room - _BAR > wanted else min(room, wanted)))
    cells_of_bar = min(_BAR, max(0, room - widths[0] - 1))
    for number, (row, share) in enumerate(zip(rows, shares, strict=True)):
        name = pad(one_line(row[0], widths[0]), widths[0])
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False))
        line = "  ".join([name, *numbers, bar(share, cells_of_bar)]).rstrip()
        say(screen.paint(line, "bold") if number == 0 else line)


def bar(share: float, width: int = _BAR) -> str:
    """A bar of at most so many cells, in eighths.

    Example:
        >>> bar(0.5, 4), bar(0.01, 4), bar(0, 4)
        ('██', '▏', '')
    """
    eighths = round(share * width * 8)
    if share > 0 and width > 0 and eighths == 0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return "█" * full + _BLOCKS[rest].strip()


def _show_chart(title: str, rows: list[tuple[str, float]]) -> None:
    """Bars, one a row; of many rows each n-th. Without rows there is nothing to give a title to."""
    if not rows:
        return
    screen = Screen.of_stdout()
    say(screen.heading(title))
    most = max((value for _, value in rows), default=0)
    for when, value in _thinned(rows):
        say(
            f"{_minute(when)}  {value:>10,.0f}  {bar(value / most if most else 0, max(10, screen.width - 32))}"
        )


def _thinned(rows: list[tuple[str, float]]) -> Iterable[tuple[str, float]]:
    step = -(-len(rows) // _MOST_ROWS) or 1
    return [row for at, row in enumerate(rows) if at % step == 0 or at == len(rows) - 1]


def _minute(when: str) -> str:
    try:
        return dt.datetime.fromisoformat(when).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(when, 16).ljust(16)
