"""``sessiontree list --watch``: a listing that follows what happens."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from sessiontree.cli._errors import complain
from sessiontree.cli._output import Screen, flush, reader_is_gone, say_json, terminal_size, write
from sessiontree.cli.listing import info_json, show, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree import SessionInfo
    from sessiontree.cli.listing import Look

_INTERVAL = 1.0
_OTHER_SCREEN, _OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Watch:
    """Shows a listing again and again: the whole one on a terminal, what has changed in a pipe."""

    def __init__(self, look: Look, *, as_json: bool) -> None:
        self._look = look
        self._as_json = as_json
        self._screen = Screen.of_stdout()
        self._drawn = self._screen.terminal and not self._screen.dumb and not as_json

    def run(self) -> NoReturn:
        """Go on until Ctrl-C, or until nobody reads the output any more."""
        before: dict[str, SessionInfo] | None = None
        with self._other_screen() if self._drawn else _nothing():
            while True:
                listing = self._look.listing()
                rows = self._look.chosen(listing.rows)
                listing.save()
                now = {row.path: row for row in rows}
                if self._drawn:
                    self._draw(rows)
                elif now != before:
                    self._tell(now, before or {})
                before = now
                flush()
                if not self._drawn:
                    self._look.tell_unreadable()
                time.sleep(_INTERVAL)
                if reader_is_gone():
                    raise BrokenPipeError

    def _draw(self, rows: list[SessionInfo]) -> None:
        """Draw over what was there, so that nothing flickers."""
        size = terminal_size()
        screen = Screen(size.columns, self._screen.colour, terminal=True)
        lines = list(table(screen, rows[: size.lines], everywhere=self._look.everywhere)) if rows else []
        shown = (lines or [self._look.nothing()])[: size.lines - 1]
        write(_HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in shown) + _REST_OF_SCREEN)

    def _tell(self, now: dict[str, SessionInfo], before: dict[str, SessionInfo]) -> None:
        changed = [row for path, row in now.items() if before.get(path) != row]
        gone = [path for path in before if path not in now]
        if not self._as_json:
            show(changed, everywhere=self._look.everywhere)
            for path in gone:
                complain(f"gone: {path}")
            return
        for row in changed:
            say_json({"event": "changed" if row.path in before else "new", **info_json(row)})
        for path in gone:
            say_json({"event": "gone", "path": path})

    @contextmanager
    def _other_screen(self) -> Iterator[None]:
        write(_OTHER_SCREEN)
        try:
            yield
        finally:
            write(_OWN_SCREEN)
            flush()
            self._look.tell_unreadable()


@contextmanager
def _nothing() -> Iterator[None]:
    yield
