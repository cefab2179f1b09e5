"""``sessiontree search``: find entries of all sessions by their words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessiontree.catalog import ROLES
from sessiontree.cli import _catalog, _place
from sessiontree.cli._errors import complain
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import safe

if TYPE_CHECKING:
    from sessiontree.catalog import Hit


@click.command("search", short_help="Find entries of all sessions by their words.")
@click.argument("words", nargs=-1, required=True)
@click.option("-e", "--regex", is_flag=True, help="The words are a regular expression.")
@click.option("--phrase", is_flag=True, help="The words stand together, in this order.")
@click.option("--prefix", is_flag=True, help="The last word is the beginning of one.")
@click.option(
    "--role", multiple=True, type=click.Choice(ROLES), help="Only what these have said; repeatable."
)
@click.option("--sort", type=click.Choice(["relevance", "time"]), default="relevance", show_default=True)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most N hits.")
@_catalog.filter_options
@_place.place_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line, for other programs.")
def command(
    words: tuple[str, ...],
    regex: bool,
    phrase: bool,
    prefix: bool,
    role: tuple[str, ...],
    sort: Any,
    limit: int,
    cwd: str | None,
    session_dir: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    r"""Find entries of all sessions by their words.

    All WORDS must occur; "two words" in quotes is a phrase, begin* a prefix, one OR other either, and
    after -- also -word: it must not occur. Messages, tool calls, tool results, summaries, names and
    labels are searched.

    \b
    Examples:
      sessiontree search retry backoff --project .
      sessiontree search '"connection refused"' --role tool --since 7d
      sessiontree search -e 'TODO|FIXME' --sort time
      sessiontree search -- cache -redis

    Exit codes: 0 something was found, 1 nothing was found, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    with _catalog.up_to_date(place) as catalog:
        try:
            with progress("searching"):
                hits = catalog.search(
                    " ".join(words),
                    regex=regex,
                    phrase=phrase,
                    prefix=prefix,
                    role=role or None,
                    sort=sort,
                    limit=limit,
                    **_catalog.filters(place, options),
                )
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if as_json:
        for hit in hits:
            say_json(_hit_json(hit))
    else:
        _show(hits)
    if not hits:
        complain(f"nothing was found for {' '.join(words)!r}")
    return 0 if hits else 1


def _hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "path": hit.path,
        "sessionId": hit.session_id,
        "sessionName": hit.session_name,
        "cwd": hit.cwd,
        "entryId": hit.entry_id,
        "role": hit.role,
        "time": _catalog.iso(hit.time),
        "model": hit.model,
        "snippet": hit.snippet,
        "marks": [list(mark) for mark in hit.marks],
    }


def _show(hits: list[Hit]) -> None:
    """Print hits, those of one session below its heading."""
    screen = Screen.of_stdout()
    by_session: dict[str, list[Hit]] = {}
    for hit in hits:
        by_session.setdefault(hit.path, []).append(hit)
    for number, (path, found) in enumerate(by_session.items()):
        if number:
            say()
        say(
            f"{screen.heading(found[0].session_name or found[0].session_id)}  {screen.paint(safe(found[0].cwd, keep=''), 'dim')}"
        )
        say(screen.paint(safe(path, keep=""), "dim"))
        for hit in found:
            when = hit.time.astimezone().strftime("%Y-%m-%d %H:%M") if hit.time else "?"
            head = f"  {safe(hit.entry_id, keep='')} {when} {hit.role}: "
            say(screen.paint(head, "label") + _marked(screen, hit))


def _marked(screen: Screen, hit: Hit) -> str:
    """The snippet, what was found in it set off."""
    parts, at = [], 0
    for start, end in hit.marks:
        parts += [
            safe(hit.snippet[at:start], keep=""),
            screen.paint(safe(hit.snippet[start:end], keep=""), "bold"),
        ]
        at = end
    return "".join([*parts, safe(hit.snippet[at:], keep="")])
