"""``sessiontree shrink``: move large images out of a session file and back."""

from __future__ import annotations

import os

import click

from sessiontree import doctor
from sessiontree.cli import _place
from sessiontree.cli._output import say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import count, safe, size_text


@click.command("shrink", short_help="Move large images out of a session file, and back.")
@click.argument("session")
@click.option(
    "--restore", is_flag=True, help="Bring the images back; the file is then what it was, byte for byte."
)
@click.option(
    "--at-least", type=click.IntRange(1), default=65_536, show_default=True, metavar="BYTES",
    help="Move images whose base64 text is at least so long.",
)  # fmt: skip
@_place.place_options
@_place.json_option
def command(
    session: str, restore: bool, at_least: int, cwd: str | None, session_dir: str | None, as_json: bool
) -> int:
    r"""Move large images out of SESSION into files beside it, named by their content.

    Until they are brought back with --restore, pi and other programs see no images there. The images' files
    stay when they are brought back.

    \b
    Examples:
      sessiontree shrink 0198
      sessiontree shrink 0198 --restore

    Exit codes: 0 done, or nothing to do; 1 failed; 2 wrong usage.
    """
    path = _place.Place(cwd, session_dir).find(session)
    before = os.path.getsize(path)
    with progress("reading") as tell:
        if restore:
            images = doctor.restore(path, progress=tell)
        else:
            images = doctor.shrink(path, at_least=at_least, progress=tell)
    after = os.path.getsize(path)
    if as_json:
        say_json({"path": path, "images": images, "sizeBefore": before, "sizeAfter": after})
    else:
        what = "brought back" if restore else "moved out"
        say(
            f"{safe(path, keep='')}: {count(images, 'image')} {what}, {size_text(before)} -> {size_text(after)}"
        )
    return 0
