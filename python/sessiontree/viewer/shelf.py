"""Which sessions there are, and those of them that are being looked at.

The list comes from a listing at first, which takes a moment, and from the catalog once that is up to
date; a thread of its own keeps it so, while somebody looks. A session is asked for by a key made from
its path. Only sessions that were found have one: no request can name a file.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from sessiontree import paths
from sessiontree.catalog import Catalog
from sessiontree.exceptions import SessionTreeError
from sessiontree.export.model import clear
from sessiontree.listing import iter_sessions
from sessiontree.viewer.opened import OpenedSession

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Sequence

    from sessiontree import SessionInfo
    from sessiontree.catalog import CatalogSession, Hit
    from sessiontree.export.model import Item

_OPENED: Final = 8
_PAUSE: Final = 1.0
_PAUSE_WITHOUT_CATALOG: Final = 15.0
_FIRST_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as the list shows it.

    Attributes:
        key: what asks for it.
        id: its id.
        name: its name; "" for none.
        words: the first words of its user.
        cwd: its directory.
        created: ms since 1970; None where it is unknown.
        modified: time of the newest message, likewise.
        written: time of the file, likewise.
        messages: how many messages.
        size: bytes.
        cost: US dollars; None before the catalog knows.
        models: the models that answered.
        last_role: who spoke last.
        stop_reason: why the last answer ended.
    """

    key: str
    id: str
    name: str
    words: str
    cwd: str
    created: int | None
    modified: int | None
    written: int
    messages: int
    size: int
    cost: float | None
    models: tuple[str, ...]
    last_role: str
    stop_reason: str


_SORTS: Final[dict[str, Callable[[Listed], Any]]] = {
    "modified": lambda row: -(row.modified or 0),
    "created": lambda row: -(row.created or 0),
    "messages": lambda row: -row.messages,
    "size": lambda row: -row.size,
    "cost": lambda row: -(row.cost or 0),
    "name": lambda row: (not row.name, row.name.lower()),
}
SORTS: Final = tuple(_SORTS)


def key_of(path: str) -> str:
    """Give the key that asks for a session file.

    Example:
        >>> key_of("/sessions/a.jsonl") == key_of("/sessions/a.jsonl") != key_of("/sessions/b.jsonl")
        True
    """
    return blake2b(os.fsencode(path), digest_size=12).hexdigest()


class Shelf:
    """All sessions of some folders.

    Args:
        roots: folders with session files, or with folders that hold them, or both.
        catalog_file: the catalog's file; the user's own if left out.
    """

    def __init__(self, roots: Sequence[str], catalog_file: str | None = None) -> None:
        # The listing and the catalog have to name files alike: keys are made of their paths.
        self._roots = [paths.resolve_path(root) for root in roots]
        # Two connections: who reads does not wait for the thread that writes.
        self._writer, self._reader = Catalog(catalog_file), Catalog(catalog_file)
        self._lock = threading.Lock()
        self._rows: list[Listed] = []
        self._haystacks: list[str] = []
        self._paths: dict[str, str] = {}
        self._opened: OrderedDict[str, OpenedSession] = OrderedDict()
        self._wanted, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep_up, name="sessiontree-shelf", daemon=True)
        self.version = 0
        self.progress: tuple[int, int] | None = None
        self.trouble = ""

    # ---- keeping up

    def start(self) -> None:
        """Begin to look for sessions."""
        self._wanted.set()
        self._thread.start()

    def stop(self) -> None:
        """End that, and let go of all files."""
        self._stop.set()
        self._wanted.set()
        self._thread.join(10)
        self._writer.close()
        self._reader.close()

    def touch(self) -> int:
        """Say that somebody looks; gives a number that changes with the list."""
        self._wanted.set()
        return self.version

    def _keep_up(self) -> None:
        self._take(map(_from_info, self._listed()), {})
        while not self._stop.is_set():
            pause = _PAUSE
            try:
                self._read_catalog()
                self.trouble = ""
            except CancelledError:
                return
            except (OSError, SessionTreeError) as error:
                self.trouble = f"search is not available: {error}"
                self._take(map(_from_info, self._listed()), {})
                pause = _PAUSE_WITHOUT_CATALOG
            self._stop.wait(pause)
            self._wanted.wait()
            self._wanted.clear()

    def _listed(self) -> list[SessionInfo]:
        found: dict[str, SessionInfo] = {}
        for root in self._roots:
            try:
                for info in iter_sessions(root, cancel=self._stop):
                    found.setdefault(info.path, info)
            except (OSError, CancelledError):
                continue
        return list(found.values())

    def _read_catalog(self) -> None:
        def tell(done: int, total: int) -> None:
            self.progress = (done, total)

        try:
            done = self._writer.refresh(self._roots, tell, self._stop)
        finally:
            self.progress = None
        changed = done.added + done.grown + done.replaced + done.removed
        if changed or any(row.cost is None for row in self._rows[:1]):
            found = self._writer.sessions(roots=self._roots)
            costs = {session.info.path: session for session in found}
            self._take((_from_info(session.info) for session in found), costs)

    def _take(self, rows: Iterable[tuple[str, Listed]], known: dict[str, CatalogSession]) -> None:
        """Make a new list the list."""
        paths, listed = {}, []
        for path, row in rows:
            session = known.get(path)
            paths[row.key] = path
            listed.append(_with_costs(row, session) if session else row)
        haystacks = [f"{row.name}\n{row.words}\n{row.cwd}\n{row.id}".lower() for row in listed]
        with self._lock:
            self._rows, self._haystacks, self._paths = listed, haystacks, paths
            self.version += 1

    # ---- being asked

    def page(self, words: str, sort: str, start: int, count: int) -> dict[str, Any]:
        """Give a part of the list.

        Args:
            words: all of them must occur in name, first words, directory or id.
            sort: one of `SORTS`.
            start: from which one on.
            count: how many, at most.
        """
        self._wanted.set()
        with self._lock:
            rows, haystacks, version = self._rows, self._haystacks, self.version
        wanted = words.lower().split()
        if wanted:
            pairs = zip(rows, haystacks, strict=True)
            rows = [row for row, text in pairs if all(word in text for word in wanted)]
        rows = sorted(rows, key=_SORTS.get(sort, _SORTS["modified"]))
        return {
            "version": version,
            "total": len(rows),
            "progress": self.progress,
            "trouble": self.trouble,
            "sessions": [asdict(row) for row in rows[max(0, start) : max(0, start) + count]],
        }

    def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Find entries of all sessions by their words; the last one may be the beginning of a word.

        Raises:
            OSError: the catalog cannot be read.
        """
        try:
            hits = self._reader.search(query, prefix=True, limit=limit, roots=self._roots)
        except ValueError:  # nothing to look for, such as a lone sign
            return []
        return [_hit(hit) for hit in hits if key_of(hit.path) in self._paths]

    def open(self, key: str) -> OpenedSession | None:
        """Give a session that is on the list; the last eight that were asked for stay open.

        Raises:
            OSError: its file cannot be read.
            InvalidSessionError: it is no session any more.
        """
        with self._lock:
            path = self._paths.get(key)
            opened = self._opened.pop(key, None) if path else None
            if opened:
                self._opened[key] = opened
        if path is None or opened is not None:
            return opened
        opened = OpenedSession(path, _image_address)
        with self._lock:
            self._opened[key] = opened
            while len(self._opened) > _OPENED:
                # Somebody may still be at work on it: it closes when the last one lets go.
                self._opened.popitem(last=False)
        return opened


def _image_address(item: Item, part: int) -> str:
    """Where an image is, seen from the session's page."""
    return f"image?row={item.row}&part={part}"


def _ms(moment: dt.datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _from_info(info: SessionInfo) -> tuple[str, Listed]:
    return info.path, Listed(
        key=key_of(info.path),
        id=info.id,
        name=clear(info.name or ""),
        words=clear(" ".join(info.first_message[:_FIRST_WORDS].split())),
        cwd=clear(info.cwd),
        created=_ms(info.created),
        modified=_ms(info.modified),
        written=info.mtime_ns // 1_000_000,
        messages=info.message_count,
        size=info.size,
        cost=None,
        models=(),
        last_role=info.last_role or "",
        stop_reason=info.stop_reason or "",
    )


def _with_costs(row: Listed, session: CatalogSession) -> Listed:
    return replace(row, cost=session.used.cost, models=session.models)


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "key": key_of(hit.path),
        "name": clear(hit.session_name or hit.session_id),
        "cwd": clear(hit.cwd),
        "entry": hit.entry_id,
        "role": hit.role,
        "time": _ms(hit.time),
        "snippet": clear(hit.snippet),
        "marks": hit.marks,
    }
