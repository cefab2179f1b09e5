"""How a session begins: its options, header, folder and file name, and the log that holds it."""

from __future__ import annotations

import os

from sessiontree import jsontext
from sessiontree.entries import assert_valid_session_id, session_header
from sessiontree.host import DEFAULT_HOST, uuid4
from sessiontree.log import Options, SessionLog
from sessiontree.paths import get_default_session_dir, make_private_dirs, normalize_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from sessiontree._options import OpenOptions
    from sessiontree.host import Host


_OPTIONS = frozenset(Options.__slots__)


def options_of(given: OpenOptions) -> Options:
    """Give the options with the default host filled in.

    Raises:
        TypeError: an option that does not exist, or a host that is none.
    """
    unknown = given.keys() - _OPTIONS
    if unknown:
        names = ", ".join(sorted(_OPTIONS))
        raise TypeError(f"unknown option {min(unknown)!r}; the options are {names}")
    host = given.get("host") or DEFAULT_HOST
    if not all(callable(getattr(host, source, None)) for source in ("clock_ms", "uuid4", "uuid7")):
        raise TypeError(f"host must be a Host, not {type(host).__name__}")
    chosen: Any = {**given, "host": host}
    return Options(**chosen)


_YEAR_10000 = 253_402_300_800_000

_last_second: tuple[int, str] = (-1, "")
"""A second and its text without milliseconds: entries are written many a second."""


def timestamp(options: Options) -> str:
    """Read the clock, as entries write it."""
    global _last_second  # noqa: PLW0603 - one pair, read and replaced as a whole
    now = options.host.clock_ms()
    if now.__class__ is not int or not 0 <= now < _YEAR_10000:
        return jsontext.to_iso(now)
    second, milli = divmod(now, 1000)
    known, text = _last_second
    if second != known:
        text = jsontext.to_iso(second * 1000)[:-4]
        _last_second = (second, text)
    return f"{text}{milli:03d}Z"


def new_session_id(options: Options, id: str | None) -> str:
    """Give the id that was asked for, if it may be one, or a new UUID of version 7."""
    if id is None:
        return options.host.uuid7()
    assert_valid_session_id(id)
    return id


def new_header(options: Options, cwd: str, id: str | None, parent: str | None) -> Any:
    """Build the header of a new session."""
    return session_header(new_session_id(options, id), timestamp(options), cwd, parent)


def file_name(folder: str, stamp: str, id: str) -> str:
    """Give the path of a new session's file: its time and its id."""
    return os.path.join(folder, f"{stamp.replace(':', '-').replace('.', '-')}_{id}.jsonl")


def session_folder(cwd: str, session_dir: str | None) -> str:
    """Give the folder for new files; it is made if it is missing."""
    if session_dir is None or session_dir == "":
        return get_default_session_dir(cwd)
    folder = normalize_path(session_dir)
    make_private_dirs(folder)
    return folder


def named_log(
    options: Options, cwd: str, folder: str | None, id: str | None, parent: str | None
) -> SessionLog:
    """Begin a session; with a folder its file is named by time and id."""
    header = new_header(options, cwd, id, parent)
    path = None if folder is None else file_name(folder, header["timestamp"], header["id"])
    return SessionLog.begin(header, options, path)


def log_at(options: Options, cwd: str, path: str) -> SessionLog:
    """Begin a session at a path of the caller's; an empty file there gets its header first of all."""
    return SessionLog.begin(new_header(options, cwd, None, None), options, path, at_once=os.path.exists(path))


def cwd_of(log: SessionLog, override: str | None) -> str:
    """Give the working directory: the override, the header's, or the process's."""
    if override is not None:
        return override
    cwd = log.header().get("cwd")
    return cwd if isinstance(cwd, str) else os.getcwd()


def branched_log(header: bytes, lines: Iterable[bytes], options: Options, path: str | None) -> SessionLog:
    """Make the log of a branched session: on disk if it has a conversation, else waiting for one."""
    from sessiontree._native import Store

    store = Store.memory(header + b"".join(lines))
    if path is not None and store.conversation() is not None:
        store.persist(path, b"", sync=options.durability == "fsync")
    return SessionLog(store, options, path)


def on_one_line(name: str) -> str:
    """Turn each run of line breaks into one space."""
    if "\n" not in name and "\r" not in name:
        return name
    name = name.replace("\r", "\n")
    while "\n\n" in name:
        name = name.replace("\n\n", "\n")
    return name.replace("\n", " ")


def draw_id(host: Host, is_taken: Callable[[str], bool]) -> str:
    """Draw an id that is not taken; after 100 tries a whole UUID (as pi does)."""
    ours = host.uuid4 is uuid4
    for _ in range(100):
        # The first eight digits of a UUID are random ones; the rest need not be made.
        id = os.urandom(4).hex() if ours else host.uuid4()[:8]
        if not is_taken(id):
            return id
    return host.uuid4()
