"""``sessiontree catalog``: look after the catalog that searching and statistics use."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sessiontree.catalog import Catalog
from sessiontree.cli import _catalog, _place
from sessiontree.cli._output import say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import count, safe, size_text

if TYPE_CHECKING:
    from sessiontree.catalog import Refreshed


@click.command("catalog", short_help="Look after the catalog of all sessions.")
@click.argument(
    "action",
    type=click.Choice(["refresh", "info", "check", "compact", "clear"]),
    default="info",
    required=False,
)
@_place.place_options
@_place.json_option
def command(action: str, cwd: str | None, session_dir: str | None, as_json: bool) -> int:
    r"""Look after the catalog of all sessions, which searching and statistics use.

    It is a copy of what the session files hold, in the cache folder (SESSIONTREE_CACHE_DIR), readable by
    you alone. It is brought up to date whenever it is used, and can be removed at any time.

    \b
    refresh  bring it up to date
    info     say where it is, how big, and how many sessions it has
    check    look it over; a damaged one is begun anew by itself when it is used
    compact  merge its parts and give room back
    clear    remove it

    \b
    Examples:
      sessiontree catalog refresh
      sessiontree catalog clear

    Exit codes: 0 all is well, 1 it is damaged or something could not be read, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    with _catalog.named_cache(), Catalog() as catalog:
        if action == "refresh":
            with progress("reading sessions") as tell:
                report = catalog.refresh(_catalog.roots(place), tell, on_error=_catalog.tell_trouble)
            _say_report(report, as_json=as_json)
            return 1 if report.failed else 0
        if action == "check":
            with progress("checking"):
                faults = catalog.check()
            if as_json:
                say_json({"path": catalog.path, "faults": faults})
            else:
                say("\n".join(safe(fault) for fault in faults) or f"{safe(catalog.path)} is sound")
            return 1 if faults else 0
        if action == "compact":
            with progress("compacting"):
                catalog.compact()
        elif action == "clear":
            path = catalog.path
            catalog.clear()
            say_json({"removed": path}) if as_json else say(f"removed {safe(path)}")
            return 0
        _say_info(catalog, as_json=as_json)
        return 0


def _say_report(report: Refreshed, *, as_json: bool) -> None:
    if as_json:
        say_json({**asdict(report)})
        return
    say(
        f"{count(report.files, 'session file')}: {report.added:,} new, {report.grown:,} grown, "
        f"{report.replaced:,} read anew, {report.removed:,} gone; {size_text(report.bytes_read)} read"
    )


def _say_info(catalog: Catalog, *, as_json: bool) -> None:
    sessions, size = len(catalog.sessions()), catalog.size()
    if as_json:
        say_json({"path": catalog.path, "sessions": sessions, "bytes": size})
    else:
        say(f"{safe(catalog.path)}: {count(sessions, 'session')}, {size_text(size)}")
