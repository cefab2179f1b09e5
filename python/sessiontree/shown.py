"""What listings show of sessions, kept in the cache folder, so that only changed files are read.

A file is taken as it was shown before if its size, inode and both its times are as they were; everything
else is read (`sessiontree.listing`). So what is kept is never the authority: where it is missing, stale,
damaged, in the hands of others or turned off (``SESSIONTREE_CACHE=off``), the answer is the same and only
takes longer. Each folder that was listed has one file, which is replaced as a whole; `rust/core/src/listing/kept.rs`
says what is in it. A row is not kept within two seconds of a change of its file, since another change could
leave no trace then.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib

from sessiontree._cachedir import CACHE_VARIABLE, cache_dir, is_ours, write_private
from sessiontree._native import KeptFiles, Looking, rows_to_keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from sessiontree._native import SessionInfo

    Depth = Literal["own", "below"]
    OnError = Callable[[str, Exception], object]
    OnProgress = Callable[[int, int], object]

_FOLDER = "listing"
_SETTLED_NS = 2_000_000_000
_BATCH_FILES = 256
_BATCH_BYTES = 16 << 20

_early: list[tuple[str, Depth, Looking]] = []


def _file(folder: str, depth: Depth) -> str:
    """Name the file in which a folder's rows are kept."""
    # Not `hashlib`, which takes 8 ms to import. Rows have their paths, so that two folders with the same
    # number would only take turns.
    name = os.fsencode(folder)
    return os.path.join(listings_dir(), f"{zlib.crc32(name):08x}{zlib.adler32(name):08x}-{depth}.rows")


def _believed(folder: str, depth: Depth) -> str | None:
    """Name the same file, if it may be believed."""
    is_off = os.environ.get(CACHE_VARIABLE) == "off" or not is_ours(cache_dir())
    return None if is_off else _file(folder, depth)


def _settled() -> int:
    """Give the time from which on a change is too new for its file to be kept."""
    return time.time_ns() - _SETTLED_NS


def look_early(folder: str, depth: Depth) -> None:
    """Begin to look at a folder's files, and at what is kept of them, while the program does something else.

    The next `Listing` of the folder takes what was found. Trouble is met there again, and told.
    """
    folder = os.path.abspath(folder)
    looking = Looking(folder, depth=depth, kept=_believed(folder, depth), settled=_settled())
    # What an earlier look found may not be so any more.
    _early[:] = [(folder, depth, looking)]


def _find(folder: str, depth: Depth) -> KeptFiles:
    found = None
    if _early:
        *which, looking = _early.pop()
        if which == [folder, depth]:
            found = looking.found()
    if found is None:
        found = KeptFiles.find(folder, depth=depth, kept=_believed(folder, depth), settled=_settled())
    return found


class Listing:
    """The sessions of a folder, or of the folders in it, as a listing shows them: first messages are cut.

    Attributes:
        rows: the sessions, in no order, with the first 1,000 characters of their first messages.

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
        self.rows: list[SessionInfo] = []
        # What is kept of a relative folder would be that of another one elsewhere.
        self._folder = os.path.abspath(folder)
        self._depth = depth
        self._on_error = on_error
        self._on_progress = on_progress
        self._is_stale = False
        try:
            files = _find(self._folder, depth)
        except FileNotFoundError:
            return
        except OSError as error:
            self._tell(folder, error)
            return
        self._read(files)

    def _tell(self, path: str, error: Exception) -> None:
        if self._on_error is not None:
            self._on_error(path, error)

    def _read(self, files: KeptFiles) -> None:
        for path, error in files.troubles():
            self._tell(path, error)
        self.rows = files.known()
        done, total = 0, len(files)
        while batch := files.read(_BATCH_FILES, _BATCH_BYTES):
            for item in batch:
                if isinstance(item, tuple):
                    self._tell(*item)
                else:
                    self._take(item)
            done += len(batch)
            if self._on_progress is not None:
                self._on_progress(done, total)
        self._is_stale = files.is_stale

    def _take(self, info: SessionInfo) -> None:
        self.rows.append(info)

    def save(self) -> None:
        """Keep what was read; where that is not possible nothing happens."""
        if self._is_stale and os.environ.get(CACHE_VARIABLE) != "off":
            with contextlib.suppress(OSError):
                write_private(_file(self._folder, self._depth), rows_to_keep(self.rows))


def listings_dir() -> str:
    """Where it is kept: in ``SESSIONTREE_CACHE_DIR``, or the user's own cache folder.

    Example:
        >>> os.path.basename(listings_dir())
        'listing'
    """
    return os.path.join(cache_dir(), _FOLDER)
