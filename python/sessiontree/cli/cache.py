"""``sessiontree cache``: what is kept in the cache folder."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click

from sessiontree import _cachedir, shown
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._place import json_option
from sessiontree.cli._text import cell_len, count, pad, safe, size_text

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS = {
    "catalog": "texts and totals of all sessions, for searching and statistics",
    "listing": "what listings show",
    "index": "indexes of big sessions, so that they open at once",
    "leaves": "where sessions were left",
}
_MADE_AGAIN = ("catalog", "listing", "index")


@click.command("cache", short_help="Say what is kept in the cache folder, and clear it.")
@click.argument("action", type=click.Choice(["info", "clear"]), default="info", required=False)
@click.argument("kinds", nargs=-1, type=click.Choice(list(_KINDS)))
@json_option
def command(action: str, kinds: tuple[str, ...], as_json: bool) -> int:
    r"""Say what is kept in the cache folder (SESSIONTREE_CACHE_DIR), or clear it.

    Sessions are never kept there, and nothing there is believed unless it fits the session files.
    Everything is made again when it is needed, but for the places where sessions were left: 'clear' removes
    these only if they are named.

    \b
    Kinds:
      catalog  texts and totals of all sessions, for searching and statistics
      listing  what listings show
      index    indexes of big sessions, so that they open at once
      leaves   where sessions were left

    \b
    Examples:
      sessiontree cache
      sessiontree cache clear
      sessiontree cache clear index leaves

    Exit codes: 0 fine, 1 something could not be removed, 2 wrong usage.
    """
    if action == "info" and kinds:
        raise click.UsageError("kinds go with 'clear'; 'info' shows all of them")
    chosen = kinds or (_MADE_AGAIN if action == "clear" else tuple(_KINDS))
    found = {kind: _files(kind) for kind in chosen}
    sizes = {kind: sum(map(_size, names)) for kind, names in found.items()}
    if action == "clear":
        for names in found.values():
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(name)
    if as_json:
        rows = {kind: {"files": len(names), "bytes": sizes[kind]} for kind, names in found.items()}
        say_json({"path": _cachedir.cache_dir(), "cleared" if action == "clear" else "kinds": rows})
    elif action == "clear":
        files = sum(map(len, found.values()))
        say(f"{count(files, 'file')} removed, {size_text(sum(sizes.values()))}")
    else:
        _show(found, sizes)
    return 0


def _show(found: dict[str, list[str]], sizes: dict[str, int]) -> None:
    screen = Screen.of_stdout()
    say(screen.heading(_cachedir.cache_dir()))
    rows = [
        (kind, count(len(names), "file"), size_text(sizes[kind]), safe(_KINDS[kind]))
        for kind, names in found.items()
    ]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for kind, files, size, about in rows:
        say(f"{pad(kind, widths[0])}  {files.rjust(widths[1])}  {size.rjust(widths[2])}  {about}")


def _files(kind: str) -> list[str]:
    """Give the files of a kind; files of others in the folder are none of ours."""
    cache = _cachedir.cache_dir()
    folders: dict[str, tuple[str, Callable[[str], bool]]] = {
        "catalog": (cache, lambda name: name.startswith("catalog-") and ".sqlite3" in name),
        "listing": (shown.listings_dir(), lambda name: name.endswith((".rows", ".rows.new", ".json"))),
        "index": (os.path.join(cache, "index"), lambda name: name.endswith((".index", ".tmp"))),
        "leaves": (os.path.join(cache, "leaves"), lambda name: ".json" in name),
    }
    folder, is_ours = folders[kind]
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if is_ours(name)]
    except FileNotFoundError:
        return []


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
