"""A viewer in the browser: all sessions, what was said in them, and each one as it grows.

It listens on 127.0.0.1 only, gives nothing to who lacks the token of its link, and opens sessions
read-only. `docs/viewer.md` says what it defends against. Needs ``pip install 'sessiontree[serve]'``.

Modules: `guard` lets requests in or not; `app` answers them; `shelf` knows which sessions there are;
`opened` is one session, looked at through windows; `server` is the process around them.
"""

from __future__ import annotations

NEEDS = "the viewer needs starlette and uvicorn: pip install 'sessiontree[serve]'"
