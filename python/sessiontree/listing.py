"""Finding and listing sessions without opening them.

Sessions lie in one folder a directory (`sessiontree.paths`). A listing reads every file once, checks
its lines as an open does, and keeps a `SessionInfo` of each. Each file stands alone: what cannot be
read is given to ``on_error`` and left out.

"Most recent" means two things, as in pi: lists are sorted by the time of the newest message of user
or assistant, while `find_most_recent_session` and ``limit`` go by the time of the file, so that only
the files that are wanted are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree import paths
from sessiontree._native import SessionFiles, SessionInfo, newest_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from typing import Literal, Protocol, TypeAlias, TypedDict, TypeGuard, TypeVar, Unpack, overload

    T = TypeVar("T")
    _Item: TypeAlias = SessionInfo | tuple[str, Exception]

    PathLike: TypeAlias = str | os.PathLike[str]
    OnError: TypeAlias = Callable[[str, Exception], object]
    OnProgress: TypeAlias = Callable[[int, int, "Sequence[SessionInfo] | None"], object]
    Sort: TypeAlias = Literal["modified", "mtime"]

    class ListingOptions(TypedDict, total=False):
        """Keywords of the listing functions; `list_sessions` says what they mean."""

        cancel: Cancel | None
        limit: int | None
        on_error: OnError | None
        sort: Sort
        lenient_header: bool

    class Cancel(Protocol):
        """What tells a listing to stop: a `threading.Event`."""

        def is_set(self) -> bool:
            """Whether to stop."""


__all__ = [
    "SessionInfo",
    "alist_all_sessions",
    "alist_sessions",
    "find_most_recent_session",
    "find_recent_session",
    "find_session_by_id",
    "iter_sessions",
    "list_all_sessions",
    "list_sessions",
]

# A batch is as much as is read before somebody is told: progress, the next item, a limit reached.
_BATCH_FILES = 1024
_BATCH_BYTES = 16 << 20
_ALL = 1 << 62


def list_sessions(
    cwd: PathLike,
    session_dir: PathLike | None = None,
    on_progress: OnProgress | None = None,
    *,
    cancel: Cancel | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    sort: Sort = "modified",
    lenient_header: bool = False,
) -> list[SessionInfo]:
    """List the sessions of a directory.

    In the directory's default folder only those sessions are left out that belong to another
    directory whose folder has the same name; in any other folder all sessions are left out that do
    not belong to ``cwd``.

    Args:
        cwd: The directory.
        session_dir: The folder to look into, not its folders; the default folder if left out.
        on_progress: Called with (files read, files in all, sessions so far) after every file. The
            sessions, newest first, come with the first, every tenth and the last call, else None.
        cancel: A `threading.Event`; once it is set, the listing stops.
        limit: At most so many sessions, those with the newest files.
        on_error: Called with (path, exception) for each file that cannot be read or is no session.
        sort: "modified" (newest message first) or "mtime" (newest file first); equal times by file
            name, backwards.
        lenient_header: Pass over objects of another type before the header.

    Raises:
        OSError: The folder cannot be read. A folder that does not exist is an empty list.
        ValueError: ``sort`` or ``limit`` is not one of the above, or a path is not one of this machine.
        concurrent.futures.CancelledError: ``cancel`` was set.

    Example:
        >>> list_sessions("/code/proj", "/no/such/folder")
        []
    """
    folder, belongs = scope(cwd, session_dir)
    listing = _Listing(cancel, limit, on_error, on_progress, 10)
    return listing.run(folder, "own", belongs, _by(sort, "modified"), lenient_header)


def list_all_sessions(
    session_dir: PathLike | None = None,
    on_progress: OnProgress | None = None,
    *,
    cancel: Cancel | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    sort: Sort = "modified",
    lenient_header: bool = False,
) -> list[SessionInfo]:
    """List the sessions of all directories, or of one folder.

    Args:
        session_dir: The folder to look into, not its folders; if left out, the default folders of
            all directories.
        on_progress: As for `list_sessions`; the sessions come with every hundredth call, if no folder
            is given.
        cancel: As for `list_sessions`.
        limit: As for `list_sessions`.
        on_error: As for `list_sessions`.
        sort: As for `list_sessions`.
        lenient_header: As for `list_sessions`.

    Raises:
        OSError: The folder cannot be read. A folder that does not exist is an empty list.
        ValueError: As for `list_sessions`.
        concurrent.futures.CancelledError: ``cancel`` was set.
    """
    if session_dir:
        listing = _Listing(cancel, limit, on_error, on_progress, 10)
        folder = paths.normalize_path(session_dir)
        return listing.run(folder, "own", _anything, _by(sort, "modified"), lenient_header)
    listing = _Listing(cancel, limit, on_error, on_progress, 100)
    by = _by(sort, "modified, mtime")
    return listing.run(paths.sessions_root(), "below", _anything, by, lenient_header)


def iter_sessions(
    root: PathLike | None = None,
    *,
    cwd: PathLike | None = None,
    cancel: Cancel | None = None,
    on_error: OnError | None = None,
    lenient_header: bool = False,
) -> Iterator[SessionInfo]:
    """Yield sessions as they are read, the newest file first.

    Nothing is read ahead but a batch: stop iterating, and the rest stays unread.

    Args:
        root: A folder with session files, or with folders that hold them, or both; the default folders
            of all directories if left out.
        cwd: Only sessions of this directory.
        cancel: As for `list_sessions`.
        on_error: As for `list_sessions`.
        lenient_header: As for `list_sessions`.

    Raises:
        OSError: The folder cannot be read. A folder that does not exist has no sessions.
        concurrent.futures.CancelledError: ``cancel`` was set.

    Example:
        >>> next(iter_sessions("/no/such/folder"), None) is None
        True
    """
    folder = paths.normalize_path(root) if root else paths.sessions_root()
    belongs = _anything if cwd is None else _Same(paths.resolve_path(cwd))
    listing = _Listing(cancel, None, on_error, None, 0)
    return listing.each(folder, "both", belongs, lenient_header)


def find_session_by_id(
    cwd: PathLike, id: str, session_dir: PathLike | None = None, *, on_error: OnError | None = None
) -> str | None:
    """Find the session with exactly this id, without reading more than headers.

    Files whose names end in the id are looked at first, then all others by name; the header decides.

    Args:
        cwd: The directory that the session must belong to, as for `list_sessions`.
        id: The whole id.
        session_dir: As for `list_sessions`.
        on_error: Called with (path, exception) for each file that cannot be read.

    Returns:
        The session's path, or None.

    Raises:
        OSError: The folder cannot be read.
    """
    if not isinstance(id, str):
        return None
    folder, belongs = scope(cwd, session_dir)
    files = _files(folder, "name")
    if files is None:
        return None
    files.prefer(id)
    return _first(files, belongs, on_error, id)


def find_recent_session(
    cwd: PathLike, session_dir: PathLike | None = None, *, on_error: OnError | None = None
) -> str | None:
    """Find the session of a directory whose file is the newest; which those are, `list_sessions` says.

    Args:
        cwd: The directory.
        session_dir: As for `list_sessions`.
        on_error: As for `find_session_by_id`.

    Returns:
        The session's path, or None.

    Raises:
        OSError: The folder cannot be read.
    """
    folder, belongs = scope(cwd, session_dir)
    return _most_recent(folder, belongs, on_error)


def find_most_recent_session(
    session_dir: PathLike, cwd: PathLike | None = None, *, on_error: OnError | None = None
) -> str | None:
    """Find the session in a folder whose file is the newest; equal times by name.

    Args:
        session_dir: The folder.
        cwd: Only sessions of this directory.
        on_error: As for `find_session_by_id`.

    Returns:
        The session's path, or None; a folder that does not exist has no sessions.

    Raises:
        OSError: The folder cannot be read.

    Example:
        >>> find_most_recent_session("/no/such/folder") is None
        True
    """
    belongs = _Same(paths.resolve_path(cwd)) if cwd else _anything
    return _most_recent(paths.normalize_path(session_dir), belongs, on_error)


async def alist_sessions(
    cwd: PathLike,
    session_dir: PathLike | None = None,
    on_progress: OnProgress | None = None,
    **how: Unpack[ListingOptions],
) -> list[SessionInfo]:
    """Await `list_sessions`, which runs on a thread of its own.

    Callbacks run in the event loop. When the task is cancelled, the thread has ended before the
    cancellation goes on.
    """
    from sessiontree import _async

    return await _async.on_own_thread(list_sessions, (cwd, session_dir), {"on_progress": on_progress, **how})


async def alist_all_sessions(
    session_dir: PathLike | None = None,
    on_progress: OnProgress | None = None,
    **how: Unpack[ListingOptions],
) -> list[SessionInfo]:
    """Await `list_all_sessions`, which runs on a thread of its own; see `alist_sessions`."""
    from sessiontree import _async

    return await _async.on_own_thread(list_all_sessions, (session_dir,), {"on_progress": on_progress, **how})


# ---- whose sessions


def _anything(_cwd: str) -> bool:
    return True


def scope(cwd: PathLike, session_dir: PathLike | None) -> tuple[str, Callable[[str], bool]]:
    """The folder of a directory's sessions, and which sessions in it belong to the directory."""
    default = paths.default_session_dir(cwd)
    folder = paths.normalize_path(session_dir) if session_dir else default
    resolved = paths.resolve_path(cwd)
    if paths.paths_equal(folder, default):
        return folder, _NoStranger(resolved)
    return folder, _Same(resolved)


class _Cached(dict[str, bool]):
    """Answers by a header's text of the directory; most sessions of a folder have the same one."""

    def __init__(self, cwd: str) -> None:
        super().__init__()
        self.cwd = cwd

    def __call__(self, cwd: str) -> bool:
        return self[cwd]

    def __missing__(self, cwd: str) -> bool:
        self[cwd] = answer = self.decide(cwd)
        return answer

    def decide(self, cwd: str) -> bool:
        raise NotImplementedError


class _Same(_Cached):
    """Sessions whose header has this directory."""

    def decide(self, cwd: str) -> bool:
        try:
            return cwd != "" and paths.paths_equal(paths.resolve_path(cwd), self.cwd)
        except ValueError:  # a file URL of another machine
            return False


class _NoStranger(_Cached):
    """Sessions but for those of another directory whose folder has the same name."""

    def decide(self, cwd: str) -> bool:
        try:
            same = cwd == "" or paths.paths_equal(paths.resolve_path(cwd), self.cwd)
            return same or paths.encode_cwd(cwd) != paths.encode_cwd(self.cwd)
        except ValueError:
            return True


# ---- reading


def _by(sort: str, modified: str) -> str:
    orders = {"modified": modified, "mtime": "mtime"}
    if sort not in orders:
        raise ValueError(f"sort must be 'modified' or 'mtime', not {sort!r}")
    return orders[sort]


def _files(
    folder: str,
    order: Literal["name", "recent", "listed"],
    depth: Literal["own", "below", "both"] = "own",
    *,
    lenient_header: bool = False,
    cancel: Cancel | None = None,
) -> SessionFiles | None:
    """Find the session files of a folder; None if there is no such folder."""
    try:
        files = SessionFiles.find(
            folder, order=order, depth=depth, lenient_header=lenient_header, cancel=cancel
        )
    except FileNotFoundError:
        return None
    return _unless_cancelled(files)


def _unless_cancelled(result: T | None) -> T:
    """The result of something that gives None once ``cancel`` is set."""
    if result is None:
        from concurrent.futures import CancelledError

        raise CancelledError("the listing was cancelled")
    return result


def _report(troubles: Iterable[tuple[str, Exception]], on_error: OnError | None) -> None:
    if on_error is not None:
        for path, error in troubles:
            on_error(path, error)


def _first(
    files: SessionFiles, belongs: Callable[[str], bool], on_error: OnError | None, id: str | None = None
) -> str | None:
    """The path of the next session that belongs."""
    path = None
    while (found := files.next_header(id)) is not None:
        if belongs(found[1]):
            path = found[0]
            break
    _report(files.troubles(), on_error)
    return path


def _most_recent(folder: str, belongs: Callable[[str], bool], on_error: OnError | None) -> str | None:
    files = _files(folder, "recent")
    return None if files is None else _first(files, belongs, on_error)


class _Listing:
    """One run over the files of a folder, with all that the caller wants to be told."""

    def __init__(
        self,
        cancel: Cancel | None,
        limit: int | None,
        on_error: OnError | None,
        on_progress: OnProgress | None,
        publish_every: int,
    ) -> None:
        if limit is not None and not isinstance(limit, int):
            raise TypeError(f"limit must be an int or None, not {type(limit).__name__}")
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative: {limit}")
        self.cancel = cancel
        self.limit = _ALL if limit is None else limit
        self.on_error = on_error
        self.on_progress = on_progress
        self.publish_every = publish_every

    def run(
        self,
        folder: str,
        depth: Literal["own", "below"],
        belongs: Callable[[str], bool],
        by: str,
        lenient: bool,
    ) -> list[SessionInfo]:
        """Read the files and sort what they show."""
        # Times are asked for before reading only where somebody sees the order of reading.
        at_once = self.on_progress is None and self.limit == _ALL
        files = self.find(folder, "name" if at_once else "listed", depth, lenient)
        if files is None:
            return []
        if at_once:
            infos, troubles = _unless_cancelled(files.read_all(by, belongs, cancel=self.cancel))
            _report(troubles, self.on_error)
            return infos
        return self.run_in_batches(files, belongs, by)

    def run_in_batches(
        self, files: SessionFiles, belongs: Callable[[str], bool], by: str
    ) -> list[SessionInfo]:
        run = _Run(self, len(files), belongs, by)
        if self.limit == _ALL:
            if not files.read_each(run.take, cancel=self.cancel):
                _unless_cancelled(None)
        else:
            for batch in self.batches(files, run.infos):
                run.take(batch)
        return newest_first(run.infos, by)

    def each(
        self, folder: str, depth: Literal["both"], belongs: Callable[[str], bool], lenient: bool
    ) -> Iterator[SessionInfo]:
        """Yield what the files show as they are read."""
        files = self.find(folder, "listed", depth, lenient)
        if files is not None:
            for batch in self.batches(files, ()):
                yield from (item for item in batch if self.keep(item, belongs))

    def find(
        self,
        folder: str,
        order: Literal["name", "listed"],
        depth: Literal["own", "below", "both"],
        lenient: bool,
    ) -> SessionFiles | None:
        self.check()
        files = _files(folder, order, depth, lenient_header=lenient, cancel=self.cancel)
        if files is not None:
            _report(files.troubles(), self.on_error)
        return files

    def check(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            _unless_cancelled(None)

    def batches(self, files: SessionFiles, infos: Sequence[SessionInfo]) -> Iterator[list[_Item]]:
        """Batches that grow from one file, so that the first is there at once, or from the limit."""
        count = 1 if self.limit == _ALL else self.limit
        while len(infos) < self.limit:
            count = min(count, _BATCH_FILES)
            batch = _unless_cancelled(files.read(count, _BATCH_BYTES, cancel=self.cancel))
            if not batch:
                return
            yield batch
            count *= 4

    def keep(self, item: _Item, belongs: Callable[[str], bool]) -> TypeGuard[SessionInfo]:
        """Whether a file is listed; one that could not be read is reported."""
        if isinstance(item, tuple):
            _report([item], self.on_error)
            return False
        return belongs(item.cwd)


class _Run:
    """What has been read so far, and who is told of it."""

    def __init__(self, listing: _Listing, total: int, belongs: Callable[[str], bool], by: str) -> None:
        self.listing = listing
        self.total = total
        self.belongs = belongs
        self.by = by
        self.loaded = 0
        self.infos: list[SessionInfo] = []

    def take(self, batch: list[_Item]) -> None:
        listing, infos = self.listing, self.infos
        for item in batch:
            self.loaded += 1
            if listing.keep(item, self.belongs):
                infos.append(item)
            full = len(infos) >= listing.limit
            if listing.on_progress is not None:
                loaded, total = self.loaded, self.total
                shown = loaded % listing.publish_every == 0 or loaded in (1, total) or full
                listing.on_progress(loaded, total, _Partial(infos, self.by) if shown else None)
                listing.check()
            if full:
                break


class _Partial(Sequence[SessionInfo]):
    """The sessions read so far, newest first; sorted when somebody looks."""

    __slots__ = ("_by", "_length", "_read", "_sorted")

    def __init__(self, read: list[SessionInfo], by: str) -> None:
        self._read = read  # grows on behind our back
        self._length = len(read)
        self._by = by
        self._sorted: list[SessionInfo] | None = None

    def __len__(self) -> int:
        return self._length

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> SessionInfo: ...
        @overload
        def __getitem__(self, index: slice) -> list[SessionInfo]: ...

    def __getitem__(self, index: int | slice) -> SessionInfo | list[SessionInfo]:
        if self._sorted is None:
            self._sorted = newest_first(self._read[: self._length], self._by)
        return self._sorted[index]
