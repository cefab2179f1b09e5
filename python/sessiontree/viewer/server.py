"""The process around the viewer: a socket of this machine alone, and an end at Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
from typing import TYPE_CHECKING, Any

from sessiontree.viewer import NEEDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HOST = "127.0.0.1"

_SETTINGS: dict[str, Any] = {
    "http": "h11",
    "ws": "none",
    "lifespan": "off",
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,
    "limit_concurrency": 512,
    "timeout_graceful_shutdown": 3,
}


def listen(port: int) -> socket.socket:
    """Take a port of this machine.

    Args:
        port: which one; 0 for any that is free.

    Raises:
        OSError: it is in use, or may not be taken.
    """
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # So that a viewer can follow one that has just ended; it shares no port that is in use.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((_HOST, port))
        taken.listen(128)
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                errno.EADDRINUSE,
                f"port {port} of {_HOST} is in use: choose another one with --port, or any free one with --port 0",
            ) from None
        raise OSError(error.errno, f"port {port} of {_HOST}: {os.strerror(error.errno or 0)}") from None
    return taken


def serve(
    roots: Sequence[str],
    on_ready: Callable[[str], object],
    *,
    port: int = 0,
    catalog_file: str | None = None,
) -> None:
    """Show the sessions of some folders until Ctrl-C.

    Args:
        roots: folders with session files, or with folders that hold them, or both.
        on_ready: called with the link, once it can be used.
        port: where to listen on 127.0.0.1; 0 for any free one.
        catalog_file: the catalog's file; the user's own if left out.

    Raises:
        ImportError: starlette or uvicorn is not installed.
        OSError: the port is in use.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ModuleNotFoundError as error:
        raise ImportError(NEEDS) from error
    from sessiontree.export.draw import Drawer
    from sessiontree.viewer.app import build
    from sessiontree.viewer.shelf import Shelf

    Drawer()  # says what is missing before anything is promised
    token, place = secrets.token_urlsafe(32), f"/{secrets.token_hex(6)}/"
    shelf = Shelf(roots, catalog_file)
    with listen(port) as taken:
        # Streams ask whether the server ends; it does not exist yet.
        servers: list[uvicorn.Server] = []
        app = build(shelf, token, place, stopping=lambda: servers[0].should_exit)
        servers.append(uvicorn.Server(uvicorn.Config(app, **_SETTINGS)))
        on_ready(f"http://{_HOST}:{taken.getsockname()[1]}{place}?token={token}")
        shelf.start()
        try:
            with contextlib.suppress(KeyboardInterrupt):
                servers[0].run(sockets=[taken])
        finally:
            shelf.stop()
