"""``sessiontree settings``: show and change pi's settings."""

from __future__ import annotations

from typing import Any

import click

from sessiontree import jsontext
from sessiontree.cli import _model, _place
from sessiontree.cli._errors import complain
from sessiontree.cli._output import json_text, say, say_json
from sessiontree.cli._text import safe


@click.command("settings", short_help="Show and change pi's settings.")
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Take the setting out, so that the default counts again.")
@click.option("--cwd", metavar="DIR", help="Working directory.")
@_place.json_option
def command(key: str | None, value: str | None, unset: bool, cwd: str | None, as_json: bool) -> int:
    r"""Show all settings, or one; with VALUE, change it in the file of all projects (settings.json).

    KEY is written with dots. VALUE is JSON; what is no JSON is a text. What others write meanwhile stays.

    \b
    Examples:
      sessiontree settings
      sessiontree settings compaction.keepRecentTokens
      sessiontree settings compaction.keepRecentTokens 30000
      sessiontree settings compaction.keepRecentTokens --unset

    Exit codes: 0 fine, 1 failed, 2 wrong usage.
    """
    settings = _model.settings_of(_place.Place(cwd, None))
    unreadable = settings.drain_errors()
    for problem in unreadable:
        complain(f"{problem.error} (the defaults count instead)")
    failed = int(bool(unreadable))
    if key is None:
        _say_all(settings.get_settings(), as_json=as_json)
        return failed
    if unset and value is not None:
        raise click.UsageError("--unset takes a setting out: it goes with no VALUE")
    if unset:
        settings.unset(key)
    elif value is not None:
        settings.set(key, _meant(value))
    say(json_text(settings.get(key)))
    return failed


def _meant(value: str) -> Any:
    try:
        return jsontext.loads(value)
    except ValueError:
        return value


def _say_all(settings: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(settings)
        return
    for name, value in _flat(settings, ""):
        say(f"{safe(name, keep='')} = {json_text(value)}")


def _flat(value: dict[str, Any], before: str) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, inner in value.items():
        rows += _flat(inner, f"{before}{key}.") if isinstance(inner, dict) else [(before + key, inner)]
    return rows
