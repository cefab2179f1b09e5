"""Who may ask: only this machine's browser, by the right name, and with the token.

Three things are looked at before anything else happens, for every request, also for pages that do not
exist. The Host header must name this machine, so that a website whose name was made to point here
(DNS rebinding) is sent away. The token must come along: once in the link, then as a cookie. And the
method must be one that only reads.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "sessiontree"

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d{1,5})?", re.IGNORECASE)

HEADERS = {
    # Scripts and styles are files of the viewer; nothing that a session holds can be one. No inline
    # script or handler runs, no frame shows this page, no form sends anything, nothing comes from elsewhere.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}

# The browser goes on by itself, from a page of this origin: only so it sends a SameSite=Strict cookie,
# wherever the link was opened from.
_ENTERED = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>sessiontree</title><link rel="icon" href="assets/icon.svg">'
    '<meta http-equiv="refresh" content="0;url=./"><p><a href="./">Sessions</a></p></html>'
)
_REFUSED = "this needs the link that 'sessiontree serve' printed, with its token\n"


class Guard:
    """Lets requests through to an application, or answers them itself.

    Args:
        app: what answers the requests that are let through.
        token: what they must bring.
        place: the path below which everything lies, "/" at both ends. It is drawn anew for each start, and
            the cookie is bound to it: cookies know no ports, so other servers of this machine would get it.
    """

    def __init__(self, app: ASGIApp, token: str, place: str) -> None:
        self._app = app
        self._token = token.encode()
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        answer = self.answer(HTTPConnection(scope), scope["method"])
        await (answer or self._app)(scope, receive, send_with_headers)

    def answer(self, request: HTTPConnection, method: str) -> Response | None:
        """Give the answer to a request that is not let through; None for one that is."""
        if not _HOST.fullmatch(request.headers.get("host", "")):
            return PlainTextResponse("this server is for this machine alone\n", 400)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("nothing here can be changed\n", 405, {"allow": "GET, HEAD"})
        path = request.scope["path"]
        given = parse_qs(request.scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if path == self._place and self._is_token(given):
            return self._enter()
        if path.startswith(self._place) and self._is_token(request.cookies.get(COOKIE, "")):
            return None
        return PlainTextResponse(_REFUSED, 403)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _enter(self) -> Response:
        """Turn the token of the link into a cookie, and leave the link."""
        response = HTMLResponse(_ENTERED)
        response.set_cookie(COOKIE, self._token.decode(), path=self._place, httponly=True, samesite="strict")
        return response
