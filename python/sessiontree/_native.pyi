"""The private native module: bytes, index and walks of one session.

Rows number the entries of a session in file order, from 0; session headers are not rows. Columns
and kinds are described in ``docs/architecture.md``. All methods are safe from any thread.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from os import PathLike
from typing import Any, Final, Protocol, Self, TypedDict, final, overload

import numpy as np
import numpy.typing as npt

BUILD_PROFILE: Final[str]
VERSION: Final[str]

class ScanReport(TypedDict):
    """What a scan met besides entries; ``skipped_lines`` holds at most 1,000 (line, byte, reason)."""

    skipped: int
    skipped_lines: list[tuple[int, int, str]]
    blank: int
    headers: int

class ColumnArrays(TypedDict):
    """One read-only array a column; ``timestamp`` is the lowest int64 where the time is unknown."""

    offset: npt.NDArray[np.uint64]
    length: npt.NDArray[np.uint64]
    parent: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    role: npt.NDArray[np.uint8]
    timestamp: npt.NDArray[np.int64]

def create_file(path: str | PathLike[str], parts: Iterable[bytes], *, sync: bool = False) -> None:
    """Create a file from the parts, all or nothing; FileExistsError if the name is taken."""

def replace_file(path: str | PathLike[str], make_parts: Callable[[], Iterable[bytes] | None]) -> bool:
    """Replace a file under its lock: temporary file beside it, fsync, rename; owner and mode are kept.

    ``make_parts`` is called once the lock is held, and again if the file changes before it is
    replaced. It gives None if there is nothing to do; then the answer is False.
    """

def migrate_file(path: str | PathLike[str], begin: Callable[[], Migration | None]) -> Store | None:
    """Replace an old file by its migration, as `replace_file` does; ``begin`` is called under the lock.

    The answer is the session in the new file, or None if that is to be opened: there was nothing to
    do, or the old file has ids already.
    """

class Examination(TypedDict):
    """What `examine` gives."""

    findings: list[tuple[tuple[Any, bool], tuple[int, int, bytes | None], tuple[bytes, bytes, int, int]]]
    """Kind and whether a repair makes an end of it; line, byte, id; what is shown, what it becomes, a, b."""
    counts: dict[Any, int]
    entries: int
    size: int
    image_bytes: int
    mode: int

def examine(
    path: str | PathLike[str],
    look_for: Callable[[bytes], tuple[bool, bytes] | None],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Examination:
    """Read a session file and say what is wrong with it; of each kind the first thousand findings.

    ``look_for`` gets the text of each image that was moved out, and says what is wrong with that: whether it
    is lost, and in words.
    """

def repair_file(
    path: str | PathLike[str], *, progress: Callable[[int, int], None] | None = None
) -> tuple[str, str | None] | None:
    """Repair a session file, all or nothing; None if there is nothing to do.

    Gives the paths of the old file and of what has no place in the new one.
    """

def moved_image(text: bytes) -> tuple[str, int] | None:
    """Give the hash and the length that a text names, if it stands for an image that was moved out."""

def exchange_images(
    path: str | PathLike[str],
    exchange: Callable[[bytes], bytes | None],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Put other texts in the place of images, under the file's lock, all or nothing; how many.

    ``exchange`` is given the text of an image, or the mark of one that was moved out; None leaves it.
    """

def may_hold_minus_zero(text: bytes) -> bool:
    """Whether the number -0 may stand in a JSON text; never false where one does."""

def survey(value: object) -> int:
    """What orjson's text of a value needs: 0 nothing, 1 other texts of doubles, 2 another writer."""

def message_lines(messages: bytes, ids: list[str], parent: str | None, timestamps: list[str]) -> bytes:
    """The lines of message entries, each of which hangs on the one before.

    ``messages`` is the text of a JSON array. ValueError if there is not an id and a timestamp for each.
    """

def written_time(ms: int) -> str | None:
    """A time in ms since 1970 as entries write it; None outside of the years 0 to 9999."""

def derived_id(line_number: int, line: bytes, attempt: int = 0) -> str:
    """The id that an entry of a version 1 file gets; ``attempt`` counts collisions."""

def splice_members(line: bytes, members: dict[str, bytes]) -> bytes:
    """The text of an object with members replaced where they stand, or added at its end.

    Values are JSON texts; keys must need no escapes. Of duplicate keys the last one is replaced.
    """

@final
class Migration:
    """An iterator over the parts of a file of version 1 or 2 as one of version 3.

    With ``give_ids`` it is of version 1; ``ids`` are JSON texts, one a row, for rows without a
    string id of their own. Left out, they derive from line number and line (`derived_id`).
    """

    def __new__(cls, store: Store, *, give_ids: bool, ids: list[bytes] | None = None) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

def sweep(path: str | PathLike[str]) -> int:
    """Remove temporary files of dead writers from the folder of a file; how many there were."""

@final
class Rows:
    """A frozen sequence of rows, four bytes each."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Rows: ...
    def tolist(self) -> list[int]: ...
    def numpy(self) -> npt.NDArray[np.int64]: ...

@final
class Store:
    """One session's bytes (a file, or memory) and its index."""

    @staticmethod
    def open(
        path: str | PathLike[str],
        *,
        lenient_header: bool = False,
        chunk_size: int | None = None,
        cache: str | PathLike[str] | None = None,
    ) -> Store:
        """Scan a file; only reads. OSError, or InvalidSessionError for an empty file or no session.

        With ``cache``, a folder, a saved index that can be believed is taken for what it covers, and
        a scan of several MB is saved there.
        """

    @staticmethod
    def memory(data: bytes, *, lenient_header: bool = False) -> Store:
        """Scan the text of a session file that lies in memory."""

    @staticmethod
    def open_forked(
        source: str | PathLike[str],
        begin: Callable[[bytes], tuple[str, bytes] | None],
        *,
        lenient_header: bool = False,
        sync: bool = False,
    ) -> Store | None:
        """Open and fork a file at once: its lines are copied while they are checked; all or nothing.

        ``begin`` gets the header's line and gives path and header of the copy (a line with its LF).
        None, with nothing done, if it gives None, or if the file does not begin with its header.
        """

    def __len__(self) -> int:
        """The number of rows."""

    def path(self) -> str: ...
    def in_memory(self) -> bool: ...
    def header(self) -> bytes:
        """The header's line, without its LF."""

    def report(self) -> ScanReport: ...
    def tail(self) -> str:
        """What lies behind the last LF: "clean", "whole" (an entry without LF) or "torn"."""

    def end(self) -> int:
        """Offset behind the last byte that was looked at."""

    def body(self) -> tuple[int, int]:
        """Start and end of what stands behind the header's line, without a torn tail."""

    def saved_end(self) -> int:
        """Up to which byte a saved index was believed instead of a scan; 0 without one."""

    def heap_bytes(self) -> int:
        """Memory of the index in bytes."""

    def find(self, id: object) -> int | None:
        """The last row with this id, compared by JSON type and value."""

    def free_ids(self, random: bytes) -> list[str]:
        """Ids of eight hex digits, from four bytes each: without those that an entry has, or that repeat."""

    def owner(self, row: int) -> int:
        """The row that a look-up of this row's id gives."""

    def id(self, row: int) -> str | float | bool | None:
        """The row's id; None where it is missing, null, an object or an array."""

    def ids(self, rows: Rows | Iterable[int]) -> list[str | float | bool | None]:
        """The ids of rows, each as `id` gives it."""

    def roles(self, rows: Rows | Iterable[int]) -> bytes:
        """The roles of rows, a byte each."""

    def has_text_id(self, row: int) -> bool: ...
    def kind(self, row: int) -> int: ...
    def role(self, row: int) -> int: ...
    def time(self, row: int) -> int | None:
        """Milliseconds since 1970, or None where the time is unknown."""

    def parent(self, row: int) -> int:
        """The parent's row, -1 for a root, -2 where the parent is not in the file."""

    def span(self, row: int) -> tuple[int, int]:
        """Byte offset and length (without LF) of the row's line."""

    def line(self, row: int) -> bytes:
        """The row's line without its LF; SessionFileLostError if the file changed under it."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes of the file, or SessionFileLostError."""

    def lines(self, rows: Rows | Iterable[int]) -> list[bytes]: ...
    def parse(
        self,
        rows: Rows | Iterable[int],
        loads: Callable[[bytes], Any],
        otherwise: Callable[[int, bytes], Any],
    ) -> list[Any]:
        """The values of rows, by ``loads``; ``otherwise`` gets what raises ValueError or may hold -0."""

    def leaf(self) -> int | None:
        """The last row whose id is a string."""

    def conversation(self) -> int | None:
        """The first user or assistant message."""

    def distinct_ids(self) -> int:
        """The number of different ids; all rows without id count as one."""

    def labels(self, start: int = 0) -> list[int]:
        """Rows of label entries in file order, from the start-th on."""

    def last_info(self) -> int | None:
        """The last ``session_info`` row."""

    def roots(self) -> Rows: ...
    def orphans(self) -> Rows:
        """Rows whose parent is not in the file."""

    def children(self, row: int) -> list[int]:
        """Rows whose parent is this row, in file order."""

    def children_of_key(self, id: object) -> list[int]:
        """Rows whose parentId equals this value exactly, in file order."""

    def columns(self) -> ColumnArrays: ...
    def path_rows(self, leaf: int) -> Rows:
        """From the root to ``leaf``; CorruptSessionError (with ``ids``) for a cycle."""

    def path_until_cycle(self, leaf: int) -> tuple[Rows, bool]:
        """The path, cut where it would repeat a row; and whether it was."""

    def on_path(self, row: int, leaf: int) -> bool:
        """Whether ``row`` lies on the path of ``leaf``."""

    def depth(self, row: int) -> int:
        """How many rows the path to a row has; CorruptSessionError for a cycle."""

    def common_ancestor(self, a: int, b: int) -> int | None:
        """The deepest row on both paths; CorruptSessionError for a cycle."""

    def subtree(self, row: int) -> Rows:
        """A row and everything below it, in file order."""

    def leaves(self) -> Rows:
        """Rows that are no row's parent, in file order."""

    def tree_roots(self) -> Rows:
        """Rows that hang on nothing, and the first row of each cycle, in file order.

        A parentId of "", 0 or false counts if an entry has this id, unlike in paths.
        """

    def tree_children(self, row: int) -> list[int]:
        """Rows below a row in the tree: by time, then file order; unknown times last.

        From the roots down, this shows each row once.
        """

    def epoch(self) -> int:
        """A number that stays as long as rows are only added below others.

        What was found out about the ancestors of a row holds as long as it stays.
        """

    def landmarks(self, leaf: int) -> tuple[int | None, int | None, int | None, bool]:
        """The newest compaction, thinking-level change, and model change or assistant message of a path.

        The last value says that the path runs into a cycle and was cut where it would repeat a row.
        A leaf that has moved on since the last call costs only what was added.
        """

    def context_rows(self, leaf: int, compaction: int, kept: int | None) -> tuple[Rows, bool]:
        """The rows of a context whose path runs into no cycle, and whether ``kept`` is on it.

        The compaction comes first, then what it kept of the path before it from ``kept`` on, without
        system messages, then what follows it. Only these rows are walked over.
        """

    def select(self, path: Rows, compaction: int, kept: int | None) -> tuple[Rows, bool]:
        """As context_rows, from a path that is there already."""

    def descent(self, before: int, leaf: int, stop: int | None = None) -> Rows | None:
        """The rows behind ``before`` on the path to ``leaf``, or None if it is not on it.

        The search ends at the row ``stop``.
        """

    def append(
        self, lines: bytes, *, strict: bool = False, sync: bool = False
    ) -> tuple[bool, int, bool, bool, bool]:
        """Append whole lines, all or nothing.

        Gives (written, rows of other writers taken in before, file was replaced, file was rebuilt,
        torn line was sealed). Not written means that the lines have to be built anew: the file was
        replaced, or another writer has taken one of the new ids. Strict refuses, with
        SessionConflictError and nothing taken in, if the file is not as it was last seen.
        """

    def append_message(
        self, message: object, id: str, leaf: int | None, strict: bool, sync: bool, /
    ) -> int | tuple[tuple[bool, int, bool, bool, bool], str | None] | None:
        """Append the entry of a message, at the time it is, to the row ``leaf``.

        Gives the new row where nothing else was met; else what `append` gives, and the id of ``leaf``. None,
        with nothing done, if an entry has the id, or if the message's text has to be written elsewhere.
        """

    def append_messages(
        self,
        messages: list[Any],
        ids: list[str],
        leaf: int | None,
        times: list[str] | None,
        strict: bool,
        sync: bool,
        /,
    ) -> int | tuple[tuple[bool, int, bool, bool, bool], str | None] | None:
        """Append messages, each of which hangs on the one before; as `append_message`, but gives the last row.

        No entry may have one of the ids. Without times it is the time it is now. ValueError if there is not
        an id and a time for each.
        """

    def refresh(self) -> tuple[bool, int, bool, bool, bool]:
        """Take in whole lines that others appended; same counts as append."""

    def persist(self, path: str | PathLike[str], lines: bytes, *, sync: bool = False) -> None:
        """Turn a session in memory into a new file, with ``lines`` at its end; all or nothing."""

    def fork(self, path: str | PathLike[str], header: bytes, *, sync: bool = False) -> bool:
        """Write the session to a new file behind another header, and go on with that; all or nothing.

        ``header`` is a line with its LF. False, with nothing done, where the old one does not begin
        the file.
        """

    def branch(
        self,
        path: Rows,
        header: bytes,
        more: bytes,
        *,
        target: str | PathLike[str] | None = None,
        sync: bool = False,
    ) -> Store:
        """Make a session of a path, re-chained without its label entries; all or nothing.

        It is written to ``target`` if there is a conversation in it, and lies in memory otherwise.
        ``header`` is a line, ``more`` are lines that come last, each with its LF.
        """

    def sync(self) -> None: ...
    def close(self) -> None:
        """Let go of the file and the index; afterwards there are no rows."""

@final
class SessionInfo:
    """What a listing shows of one session; frozen, and equal to another with the same values.

    Texts are decoded, and times built, when they are asked for.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        id: str,
        *,
        cwd: str | None = None,
        name: str | None = None,
        parent_session_path: str | None = None,
        created_ms: int | None = None,
        modified_ms: int = 0,
        message_count: int = 0,
        first_message: str | None = None,
        last_role: str | None = None,
        stop_reason: str | None = None,
        version: float | None = ...,
        skipped_lines: int = 0,
        size: int = 0,
        mtime_ns: int = 0,
        cost: float = 0.0,
    ) -> SessionInfo: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str, str], dict[str, Any]]: ...
    @property
    def path(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def cwd(self) -> str:
        """The header's directory as it is written there; empty if it has none."""

    @property
    def name(self) -> str | None:
        """The latest name, trimmed; None if there is none or it was cleared."""

    @property
    def parent_session_path(self) -> str | None: ...
    @property
    def created(self) -> datetime | None:
        """The header's time in UTC; None if it has none, or one that `datetime` cannot hold."""

    @property
    def modified(self) -> datetime | None:
        """The newest time of a message of user or assistant, else the header's, else the file's."""

    @property
    def created_ms(self) -> int | None:
        """`created` in milliseconds since 1970."""

    @property
    def modified_ms(self) -> int:
        """`modified` in milliseconds since 1970; lists are sorted by it."""

    @property
    def message_count(self) -> int:
        """The number of message entries of all roles, on all branches."""

    @property
    def first_message(self) -> str:
        """The first text of the user, or "(no messages)"."""

    @property
    def all_messages_text(self) -> str:
        """All texts of user and assistant, joined by spaces; reads the file at every access."""

    @property
    def last_role(self) -> str | None:
        """The role of the last message in the file."""

    @property
    def stop_reason(self) -> str | None:
        """The last message's ``stopReason``: "stop" if the assistant is done, "error" if it failed, ..."""

    @property
    def version(self) -> float | None:
        """The header's version; None if it is no number."""

    @property
    def skipped_lines(self) -> int:
        """The number of lines that are no JSON."""

    @property
    def cost(self) -> float:
        """What answers, tool results and summaries say they have cost, in US dollars; forks count too."""

    @property
    def size(self) -> int:
        """Bytes of the file."""

    @property
    def mtime_ns(self) -> int:
        """The file's time in nanoseconds since 1970."""

def look_at(
    folder: str | PathLike[str],
) -> tuple[bytes, bytes, int, list[str], list[tuple[str, OSError]]]:
    """Look at a folder's session files; OSError if the folder cannot be read.

    Gives their names with NUL between them, (size, mtime in ns, inode) of each as native uint64, how many
    they are, the folders and links beside them, and files that cannot be looked at: all 0 in their place.
    """

def pack_info(info: SessionInfo) -> bytes:
    """Make a session the bytes that `unpack_infos` takes."""

def unpack_infos(packed: list[bytes]) -> list[SessionInfo]:
    """Make sessions of what `pack_info` gave; ValueError for bytes that are damaged."""

def newest_first(infos: list[SessionInfo], by: str) -> list[SessionInfo]:
    """A sorted list; ``by`` is "modified", "modified, mtime" or "mtime", equal times by name backwards."""

class _Cancel(Protocol):
    """What tells a listing to stop: a `threading.Event`."""

    def is_set(self) -> bool:
        """Whether to stop."""

@final
class SessionFiles:
    """The session files of a folder in an order, with a place from which reading goes on."""

    @staticmethod
    def find(
        folder: str | PathLike[str],
        *,
        order: str,
        depth: str = "own",
        lenient_header: bool = False,
        threads: int = 0,
        cancel: _Cancel | None = None,
    ) -> SessionFiles | None:
        """Find the files; OSError for the folder itself, None if cancelled.

        ``order`` is "name", "recent" (newest file first, equal times by name) or "listed" (equal times
        by name backwards); ``depth`` is "own" (the folder's files), "below" (those of its folders) or
        "both"; with ``threads=0`` there are as many as the machine runs at once.
        """

    def __len__(self) -> int: ...
    def prefer(self, id: str) -> None:
        """Put the files first whose names end in this session id."""

    def troubles(self) -> list[tuple[str, Exception]]:
        """What could not be looked at since the last call."""

    def read(
        self, count: int, size: int, *, cancel: _Cancel | None = None
    ) -> list[SessionInfo | tuple[str, Exception]] | None:
        """Read the next ``count`` files, or so many that hold ``size`` bytes; None if cancelled.

        A file that cannot be read, or is no session, is its path and its error; the list is empty at
        the end.
        """

    def read_all(
        self, by: str, belongs: Callable[[str], bool], *, cancel: _Cancel | None = None
    ) -> tuple[list[SessionInfo], list[tuple[str, Exception]]] | None:
        """Read all further files: sessions as `newest_first` sorts them, and what could not be read.

        ``belongs`` is asked once for each directory whether its sessions are wanted. None if cancelled.
        """

    def read_each(
        self,
        take: Callable[[list[SessionInfo | tuple[str, Exception]]], object],
        *,
        cancel: _Cancel | None = None,
    ) -> bool:
        """Read all further files, and call ``take`` with some of them while others are being read.

        What ``take`` raises ends it and comes out here. False if cancelled. ``take`` must not use this object.
        """

    def next_header(self, id: str | None = None) -> tuple[str, str] | None:
        """The path and directory of the next file that is a session (with this id)."""

@final
class KeptFiles:
    """Session files, and what is kept of those that are as they were: only the others are read.

    What it shows of a first message are 1,000 characters.
    """

    @staticmethod
    def find(folder: str, *, depth: str, kept: str | None, settled: int) -> KeptFiles:
        """Find the files, as `SessionFiles.find` does, and what the file ``kept`` holds of them.

        Files that changed at ``settled`` (nanoseconds since 1970) or later are shown, but not to be kept.
        """

    def __len__(self) -> int:
        """How many files are not known."""

    @property
    def is_stale(self) -> bool:
        """Whether there are other rows to keep now than are kept."""

    def known(self) -> list[SessionInfo]:
        """The sessions that need not be read; given out once."""

    def troubles(self) -> list[tuple[str, Exception]]:
        """What could not be looked at since the last call."""

    def read(self, count: int, size: int) -> list[SessionInfo | tuple[str, Exception]]:
        """Read the next files, as `SessionFiles.read` does."""

@final
class Looking:
    """`KeptFiles.find` on a thread of its own, which needs nothing of Python."""

    def __new__(cls, folder: str, *, depth: str, kept: str | None, settled: int) -> Looking: ...
    def found(self) -> KeptFiles | None:
        """Wait for the end; None if there was trouble, or if it was asked for before."""

def rows_to_keep(infos: list[SessionInfo]) -> bytes:
    """The file that keeps those sessions of `KeptFiles` that may be kept."""

def header_line(path: str | PathLike[str]) -> bytes:
    """The header's line, without byte order mark and LF; nothing behind it is read.

    OSError, or InvalidSessionError for what is no session.
    """

def parse_date(text: str) -> int | None:
    """The time that JavaScript's ``new Date(text)`` has, in ms since 1970; None if it is none.

    The local time zone is looked at again after a second.
    """
