"""How a session begins: its options, header, folder and file name, and the log that holds it."""

from __future__ import annotations

import os

from sessiontree import jsontext
from sessiontree._native import written_time
from sessiontree.entries import assert_valid_session_id, session_header
from sessiontree.host import DEFAULT_HOST, clock_ms, uuid4
from sessiontree.log import Options, SessionLog
from sessiontree.paths import get_default_session_dir, make_private_dirs, normalize_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from sessiontree._native import Store
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


_INT64 = 1 << 63


def timestamp(options: Options) -> str:
    """Read the clock, as entries write it."""
    now = options.host.clock_ms()
    written = written_time(now) if now.__class__ is int and -_INT64 <= now < _INT64 else None
    return jsontext.to_iso(now) if written is None else written


def timestamps(options: Options, count: int) -> list[str] | None:
    """Read the clock for entries that are written at once; None if it is the system's, read once for all."""
    if options.host.clock_ms is clock_ms:
        return None
    return [timestamp(options) for _ in range(count)]


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


def on_one_line(name: str) -> str:
    """Turn each run of line breaks into one space."""
    if "\n" not in name and "\r" not in name:
        return name
    name = name.replace("\r", "\n")
    while "\n\n" in name:
        name = name.replace("\n\n", "\n")
    return name.replace("\n", " ")


def draw_ids(host: Host, count: int, store: Store, given: Iterable[str] = ()) -> list[str]:
    """Draw ids that no entry of a session has, that are not among the given ones, and that differ."""
    taken = set(given)
    ids: list[str] = []
    if host.uuid4 is uuid4 and not taken:
        # A collision is rare: then a few are missing, and are drawn one by one.
        ids = store.free_ids(os.urandom(4 * count))
    if len(ids) < count:
        taken.update(ids)
    while len(ids) < count:
        id = draw_id(host, lambda drawn: drawn in taken or store.find(drawn) is not None)
        ids.append(id)
        taken.add(id)
    return ids


_POOL = 64
"""Ids that are drawn at once: asking the system for randomness takes as long as all else of an id."""

_pool: list[str] = []


def random_id() -> str:
    """Give the first eight digits of a random UUID; the rest need not be made. Nobody has looked whether it is taken."""
    try:
        return _pool.pop()
    except IndexError:
        digits = os.urandom(4 * _POOL).hex()
        _pool.extend(digits[at : at + 8] for at in range(8, 8 * _POOL, 8))
        return digits[:8]


if hasattr(os, "register_at_fork"):
    # Two processes must not draw the same ids.
    os.register_at_fork(after_in_child=_pool.clear)


def new_id(host: Host, store: Store) -> str:
    """Draw an id that no entry of a session has."""
    if host.uuid4 is uuid4:
        # Nearly always the first one is free.
        id = random_id()
        if store.find(id) is None:
            return id
    return draw_id(host, lambda drawn: store.find(drawn) is not None)


def draw_id(host: Host, is_taken: Callable[[str], bool]) -> str:
    """Draw an id that is not taken; after 100 tries a whole UUID (as pi does)."""
    ours = host.uuid4 is uuid4
    for _ in range(100):
        id = random_id() if ours else host.uuid4()[:8]
        if not is_taken(id):
            return id
    return host.uuid4()
