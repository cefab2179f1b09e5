"""What the viewer answers: two pages, their files, and the data that the pages ask for.

Every address lies below the place of `Guard`. Answers to data are JSON; texts of sessions are in them as
text, or as the HTML that `sessiontree.export.draw` made of them.
"""

from __future__ import annotations

import asyncio
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from sessiontree.exceptions import SessionTreeError
from sessiontree.export.draw import safe
from sessiontree.export.html import HELP, asset, page_style, skeleton
from sessiontree.viewer.guard import Guard
from sessiontree.viewer.opened import OpenedSession, StaleError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from sessiontree.viewer.shelf import Shelf

_POLL_SECONDS = 0.4
_STILL_THERE_SECONDS = 15
_MOST_STREAMS = 64
_MOST_ROWS = 200
_FILES = {
    "list.js": "text/javascript",
    "session.js": "text/javascript",
    "viewer.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp")


def build(shelf: Shelf, token: str, place: str, stopping: Callable[[], bool] = lambda: False) -> ASGIApp:
    """Make the application.

    Args:
        shelf: the sessions.
        token: what a request must bring.
        place: the path below which everything lies, "/" at both ends.
        stopping: whether streams should end, because the server does.
    """
    pages = _Pages(shelf, stopping)
    routes = [
        Route("/", pages.list_page),
        Route("/sessions", pages.sessions),
        Route("/search", pages.search),
        Route("/events", pages.list_events),
        Route("/assets/{name}", _asset),
        Route("/s/{key}/", pages.session_page),
        Route("/s/{key}/place", pages.place),
        Route("/s/{key}/row", pages.row),
        Route("/s/{key}/lines", pages.lines),
        Route("/s/{key}/entries", pages.entries),
        Route("/s/{key}/entry", pages.entry),
        Route("/s/{key}/find", pages.find),
        Route("/s/{key}/labels", pages.labels),
        Route("/s/{key}/image", pages.image),
        Route("/s/{key}/events", pages.session_events),
    ]
    handlers: Any = {StaleError: _stale, SessionTreeError: _trouble, OSError: _trouble, ValueError: _unknown}
    app = Starlette(routes=[Mount(place.rstrip("/"), routes=routes)], exception_handlers=handlers)
    return Guard(app, token, place)


# ---- answers


def _json(value: Any) -> Response:
    # ASCII: texts may hold halves of characters, which UTF-8 lacks.
    return Response(json.dumps(value, separators=(",", ":")), media_type="application/json")


def _stale(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("the file was replaced: load the page again\n", 409)


def _trouble(_request: Request, error: Exception) -> Response:
    return _said(error, 404 if isinstance(error, FileNotFoundError) else 500)


def _unknown(_request: Request, error: Exception) -> Response:
    return _said(error, 400)


def _said(error: Exception, status: int) -> Response:
    # Names of files need not be text.
    return PlainTextResponse(f"{error}\n".encode("utf-8", "replace"), status)


def _int(request: Request, name: str, default: int = 0) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if len(given) > 15:
        raise ValueError(f"{name} is no number that could be meant")
    return int(given)


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


# ---- pages and their files


def _page(title: str, body: str, scripts: tuple[str, ...], up: str) -> HTMLResponse:
    tags = "".join(f'<script src="{up}assets/{name}" defer></script>\n' for name in scripts)
    styles = "".join(
        f'<link rel="stylesheet" href="{up}assets/{name}">\n' for name in ("page.css", "viewer.css")
    )
    return HTMLResponse(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="{up}assets/icon.svg">\n<title>{safe(title)}</title>\n'
        f"{styles}{tags}</head>\n{body}</html>\n"
    )


_LIST = (
    '<body class="list"><header><h1>Sessions</h1><p class="facts" id="facts"></p>'
    '<input id="search" type="search" placeholder="Search (press /)" aria-label="Search">'
    '<select id="sort" aria-label="Order"></select>'
    '<button id="theme" title="Dark or light (t)">◐</button></header>\n'
    '<main><p id="state" role="status"></p><ul id="sessions"></ul><div id="end"></div>'
    '<section id="said" hidden><h2>Said in sessions</h2><ul id="hits"></ul></section></main></body>\n'
)


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "page.css":
        return Response(page_style(), media_type="text/css")
    if name in ("pane.js", "page.js"):
        return Response(asset(name), media_type="text/javascript")
    if name not in _FILES:
        raise HTTPException(404)
    file = resources.files("sessiontree.viewer").joinpath("assets", name)
    return Response(file.read_text(encoding="utf-8"), media_type=_FILES[name])


class _Pages:
    """The answers that need the shelf. Plain methods run on threads, so that none waits for another."""

    def __init__(self, shelf: Shelf, stopping: Callable[[], bool]) -> None:
        self._shelf = shelf
        self._stopping = stopping
        self._streams = 0

    # ---- the list

    def list_page(self, _request: Request) -> Response:
        return _page("Sessions", _LIST, ("list.js",), "")

    def sessions(self, request: Request) -> Response:
        start, count = _int(request, "from"), min(_int(request, "count", 100), 10_000)
        return _json(self._shelf.page(_text(request, "q"), _text(request, "sort"), start, count))

    def search(self, request: Request) -> Response:
        query = _text(request, "q")[:1000]
        return _json(self._shelf.search(query, min(_int(request, "count", 50), 500)))

    async def list_events(self, _request: Request) -> Response:
        def look() -> dict[str, Any]:
            version = self._shelf.touch()
            return {"version": version, "progress": self._shelf.progress, "trouble": self._shelf.trouble}

        return self._stream(look)

    # ---- one session

    def _open(self, request: Request, *, anew: bool = False) -> OpenedSession:
        opened = self._shelf.open(request.path_params["key"])
        if opened is None:
            raise HTTPException(404, "no such session")
        if not anew:
            opened.check(_text(request, "stamp"))
        return opened

    def session_page(self, request: Request) -> Response:
        state = self._open(request, anew=True).refresh()
        back = '<a id="back" href="../../" title="All sessions" aria-label="All sessions">←</a>'
        live = '<span id="live" title="Shows what is added, as it is added"></span>'
        top = skeleton(state["title"], state["facts"], back).replace("</header>", f"{live}</header>", 1)
        body = f'<body class="session">\n{top}<main id="entries"></main>\n{HELP}</body>\n'
        return _page(state["title"], body, ("pane.js", "page.js", "session.js"), "../../")

    def place(self, request: Request) -> Response:
        opened = self._open(request, anew=not _text(request, "stamp"))
        found = opened.place(_text(request, "at"), _int(request, "leaf", -1))
        return _json({**found, "state": opened.state()})

    def row(self, request: Request) -> Response:
        return _json(self._open(request).row_at(_int(request, "leaf"), _int(request, "index")))

    def lines(self, request: Request) -> Response:
        leaf, start = _int(request, "leaf", -1), _int(request, "from")
        return _json(self._open(request).lines(leaf, start, _int(request, "count", 100)))

    def entries(self, request: Request) -> Response:
        leaf, start = _int(request, "leaf", -1), _int(request, "from")
        count = min(_int(request, "count", 40), _MOST_ROWS)
        return _json(self._open(request).entries(leaf, start, count))

    def entry(self, request: Request) -> Response:
        return _json(self._open(request).entry(_int(request, "row", -1)))

    def find(self, request: Request) -> Response:
        return _json(self._open(request).find(_text(request, "q"), _int(request, "from")))

    def labels(self, request: Request) -> Response:
        return _json(self._open(request).labels())

    def image(self, request: Request) -> Response:
        found = self._open(request, anew=True).image(_int(request, "row", -1), _int(request, "part", -1))
        if found is None or found[0] not in _IMAGES:
            raise HTTPException(404, "no such image")
        return Response(found[1], media_type=found[0])

    async def session_events(self, request: Request) -> Response:
        opened = await run_in_threadpool(lambda: self._open(request, anew=True))
        return self._stream(opened.refresh)

    # ---- what goes on

    def _stream(self, look: Callable[[], dict[str, Any]]) -> Response:
        if self._streams >= _MOST_STREAMS:
            raise HTTPException(503, "too many pages are being kept up to date")
        return StreamingResponse(self._events(look), media_type="text/event-stream")

    async def _events(self, look: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
        """Tell what there is, and again when it has changed."""
        self._streams += 1
        told, quiet = None, 0.0
        try:
            while not self._stopping():
                now = await run_in_threadpool(look)
                if now != told:
                    yield f"data: {json.dumps(now)}\n\n"
                    told, quiet = now, 0.0
                elif quiet > _STILL_THERE_SECONDS:
                    # A comment: whether somebody still listens is only known from writing.
                    yield ":\n\n"
                    quiet = 0.0
                await asyncio.sleep(_POLL_SECONDS)
                quiet += _POLL_SECONDS
        except (SessionTreeError, OSError) as error:
            yield f"event: lost\ndata: {json.dumps(str(error))}\n\n"
        finally:
            self._streams -= 1
