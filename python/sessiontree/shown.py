"""What listings show of sessions, kept in the cache folder, so that only changed files are read.

A file is taken as it was shown before if its size, inode and both its times are as they were; everything
else is read (`sessiontree.listing`). So what is kept is never the authority: where it is missing, stale,
damaged, in the hands of others or turned off (``SESSIONTREE_CACHE=off``), the answer is the same and only
takes longer. Each folder that was listed has one file, which is replaced as a whole: a line with a check sum,
and the rows as JSON. A row is not kept within two seconds of a change of its file, since another change could leave no trace then.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections import namedtuple

from sessiontree._cachedir import CACHE_VARIABLE, cache_dir, is_ours, write_private
from sessiontree._collector import Paused
from sessiontree._native import SessionFiles
from sessiontree._orjson import orjson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, NamedTuple

    from sessiontree._native import SessionInfo

    Depth = Literal["own", "below"]
    Mark = tuple[int, int, int, int]
    OnError = Callable[[str, Exception], object]
    OnProgress = Callable[[int, int], object]

FIRST_WORDS = 1000
"""Characters of the first message that are shown."""

_FACTS = (
    "id",
    "cwd",
    "name",
    "parent_session_path",
    "created_ms",
    "modified_ms",
    "message_count",
    "first_message",
    "last_role",
    "stop_reason",
    "version",
    "skipped_lines",
    "size",
    "mtime_ns",
    "cost",
)
_FIRST_MESSAGE = _FACTS.index("first_message")
_FOLDER = "listing"
_FIRST_LINE = b"sessiontree listing 1 %08x\n"
_SETTLED_NS = 2_000_000_000
_BATCH_FILES = 256
_BATCH_BYTES = 16 << 20

if TYPE_CHECKING:

    class Shown(NamedTuple):
        """What a listing shows of a session: the attributes of `SessionInfo`, the first message cut."""

        path: str
        inode: int
        ctime_ns: int
        id: str
        cwd: str
        name: str | None
        parent_session_path: str | None
        created_ms: int | None
        modified_ms: int
        message_count: int
        first_message: str
        last_role: str | None
        stop_reason: str | None
        version: float | None
        skipped_lines: int
        size: int
        mtime_ns: int
        cost: float
else:
    # `typing` takes 20 ms to import.
    Shown = namedtuple("Shown", ("path", "inode", "ctime_ns", *_FACTS))  # noqa: PYI024 - see above

# Where in a row stands what must be as it was, in the order of a `Mark`.
_MARK = [Shown._fields.index(name) for name in ("size", "mtime_ns", "inode", "ctime_ns")]


def _find(folder: str, depth: Depth) -> SessionFiles | None:
    return SessionFiles.find(folder, order="listed", depth=depth)


_early: list[tuple[str, Depth, threading.Thread, list[SessionFiles | None]]] = []


def look_early(folder: str, depth: Depth) -> None:
    """Begin to look at a folder's files while the program does something else: most of it is the system's work.

    The next `Listing` of the folder takes what was found. Trouble is met there again, and told.
    """
    found: list[SessionFiles | None] = []

    def look() -> None:
        with contextlib.suppress(OSError, ValueError):
            found.append(_find(os.path.abspath(folder), depth))

    # Not a daemon: those are cut off in the middle of native code when the program ends.
    thread = threading.Thread(target=look)
    _early.append((os.path.abspath(folder), depth, thread, found))
    thread.start()


def _seen_early(folder: str, depth: Depth) -> SessionFiles | None:
    while _early:
        *which, thread, found = _early.pop()
        thread.join()
        if which == [folder, depth] and found:
            return found[0]
    return None


class Listing:
    """The sessions of a folder, or of the folders in it, as a listing shows them.

    Args:
        folder: the folder; one that does not exist has no sessions.
        depth: "own" for its files, "below" for those of its folders.
        on_progress: called with (files read, files to read) if files must be read.
        on_error: called with (path, exception) for each file and folder that cannot be read, or is no session.

    Example:
        >>> Listing("/no/such/folder").rows
        []
    """

    def __init__(
        self,
        folder: str,
        depth: Depth = "own",
        *,
        on_progress: OnProgress | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self.rows: list[Shown] = []
        # What is kept of a relative folder would be that of another one elsewhere.
        self._folder = os.path.abspath(folder)
        self._depth = depth
        self._on_error = on_error
        self._on_progress = on_progress
        self._kept: list[Shown] = []
        self._changed = False
        try:
            files = _seen_early(self._folder, depth) or _find(self._folder, depth)
        except FileNotFoundError:
            files = None
        except OSError as error:
            self._tell(folder, error)
            files = None
        if files is not None:
            # Thousands of new rows would wake the collector again and again, for nothing.
            with Paused():
                self._read(files)

    def _tell(self, path: str, error: Exception) -> None:
        if self._on_error is not None:
            self._on_error(path, error)

    def _read(self, files: SessionFiles) -> None:
        for path, error in files.troubles():
            self._tell(path, error)
        looks = files.looks()
        known = self._known()
        missing = []
        for place, (path, mark) in enumerate(looks):
            row = known.pop(path, None)
            if row is not None and tuple(map(row.__getitem__, _MARK)) == mark:
                self.rows.append(Shown._make(row))
            else:
                missing.append(place)
        self._kept = self.rows.copy()
        self._changed = bool(known)
        if missing:
            files.keep(missing)
            self._read_missing(files, dict(map(looks.__getitem__, missing)))

    def _read_missing(self, files: SessionFiles, marks: dict[str, Mark]) -> None:
        done, total = 0, len(marks)
        while batch := files.read(_BATCH_FILES, _BATCH_BYTES):
            for item in batch:
                if isinstance(item, tuple):
                    self._tell(*item)
                else:
                    self._take(item, marks[item.path])
            done += len(batch)
            if self._on_progress is not None:
                self._on_progress(done, total)

    def _take(self, info: SessionInfo, mark: Mark) -> None:
        facts: list[Any] = [getattr(info, name) for name in _FACTS]
        facts[_FIRST_MESSAGE] = facts[_FIRST_MESSAGE][:FIRST_WORDS]
        row = Shown(info.path, mark[2], mark[3], *facts)
        self.rows.append(row)
        # What was looked at must be what was read, and settled.
        settled = max(mark[1], mark[3]) < time.time_ns() - _SETTLED_NS
        if settled and mark[:2] == (info.size, info.mtime_ns):
            self._kept.append(row)
            self._changed = True

    # ---- the cache

    def _file(self) -> str:
        # Not `hashlib`, which takes 8 ms to import. Rows have their paths, so that two folders with the same
        # number would only take turns.
        folder = os.fsencode(self._folder)
        name = f"{zlib.crc32(folder):08x}{zlib.adler32(folder):08x}"
        return os.path.join(listings_dir(), f"{name}-{self._depth}.json")

    def _known(self) -> dict[str, list[Any]]:
        """What is kept of this folder; nothing where it cannot be believed."""
        if os.environ.get(CACHE_VARIABLE) == "off" or not is_ours(cache_dir()):
            return {}
        try:
            with open(self._file(), "rb") as file:
                first, text = file.readline(100), file.read()
        except OSError:
            return {}
        if first != _FIRST_LINE % zlib.crc32(text):
            return {}
        return {row[0]: row for row in orjson.loads(text)}

    def save(self) -> None:
        """Keep what was read; where that is not possible nothing happens."""
        if not self._changed or os.environ.get(CACHE_VARIABLE) == "off":
            return
        text = b"[" + b",".join(filter(None, map(_row_text, self._kept))) + b"]"
        with contextlib.suppress(OSError):
            write_private(self._file(), _FIRST_LINE % zlib.crc32(text) + text)


def listings_dir() -> str:
    """Where it is kept: in ``SESSIONTREE_CACHE_DIR``, or the user's own cache folder.

    Example:
        >>> os.path.basename(listings_dir())
        'listing'
    """
    return os.path.join(cache_dir(), _FOLDER)


def _row_text(row: Shown) -> bytes:
    """A row as JSON; nothing for one that would come back changed: lone surrogates, infinite numbers."""
    try:
        text = orjson.dumps(list(row))
    except (TypeError, ValueError):
        return b""
    return text if orjson.loads(text) == list(row) else b""
