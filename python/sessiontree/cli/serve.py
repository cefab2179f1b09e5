"""``sessiontree serve``: sessions in the browser."""

from __future__ import annotations

import os
import sys
import tempfile

import click

from sessiontree.cli import _catalog, _place
from sessiontree.cli._errors import complain
from sessiontree.cli._output import say, say_json


@click.command("serve", short_help="Show sessions in the browser, as they grow.")
@_place.place_options
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of 127.0.0.1; any free one if left out."
)
@click.option(
    "--open/--no-open",
    "open_it",
    default=None,
    help="Start the browser; the default if stdout is a terminal.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the link as JSON, for other programs.")
def command(cwd: str | None, session_dir: str | None, port: int, open_it: bool | None, as_json: bool) -> int:
    r"""Show sessions in the browser: list, search, and each session as it grows. Ctrl-C ends it.

    It listens on 127.0.0.1 alone. The link holds a token, without which nothing is shown: whoever has the
    link can read all sessions until the viewer ends.

    \b
    Examples:
      sessiontree serve
      sessiontree serve --no-open --port 8000

    Exit codes: 0 ended by Ctrl-C, 1 failed, 2 wrong usage.
    """
    from sessiontree.viewer.server import serve

    place = _place.Place(cwd, session_dir)
    wanted = sys.stdout.isatty() and not as_json if open_it is None else open_it

    def ready(link: str) -> None:
        if as_json:
            say_json({"url": link})
        else:
            say(link)
        sys.stdout.flush()
        if wanted:
            _start_browser(link)

    serve(_catalog.roots(place), ready, port=port)
    return 0


def _start_browser(link: str) -> None:
    """Start the browser with a file that leads to the link: arguments of programs can be seen by all users."""
    import atexit
    import contextlib
    import html
    import threading
    import webbrowser

    handle, path = tempfile.mkstemp(prefix="sessiontree-", suffix=".html")
    with os.fdopen(handle, "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(link)}">\n')

    def start() -> None:
        if not webbrowser.open(f"file://{path}"):
            complain("no browser could be started: open the link yourself")

    def remove() -> None:
        with contextlib.suppress(OSError):
            os.remove(path)

    atexit.register(remove)
    # Some browsers come back only when they are closed, and the server has yet to start.
    threading.Thread(target=start, daemon=True).start()
