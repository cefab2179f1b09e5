"""The session's file as a log of lines: where it is, how lines get in, what was met on the way.

A log is in one of three states:

* in memory: the session is never written to disk;
* pending: the session will have a file, but has no conversation yet, so nothing is on disk;
* on file: every line is in the file before it is in the index.

The bytes and the index live in the native `Store`; a pending log and one in memory hold the very
text that the file would hold, so that going to disk changes nothing but the place.
"""

from __future__ import annotations

import os
import threading

from sessiontree import _warn, jsontext
from sessiontree._collector import Paused
from sessiontree._native import Store, migrate_file, sweep
from sessiontree.exceptions import (
    ConcurrentWriterWarning,
    InvalidSessionError,
    ReadOnlySessionError,
    SessionClosedError,
    SessionFileLostError,
    SessionReplacedWarning,
    SessionWarning,
    TornWriteWarning,
    UnsupportedVersionError,
)
from sessiontree.host import is_usual

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from sessiontree._native import Migration, Rows
    from sessiontree.host import Host

    Change: TypeAlias = tuple[bool, int, bool, bool, bool]
    """What an append or a refresh met; see `sessiontree._native.Store.append`."""

DURABILITIES = ("os", "flush", "fsync")

_FEW = 512
"""So many new bodies do not disturb the garbage collector."""

ALONE = (True, 0, False, False, False)
"""What an append reports when nobody else was there."""

_abandoned: list[Any] = []
"""What a thread of the parent process was working on when this process was forked."""


class Options:
    """How a session is used; the keyword-only options that all ways of opening one share."""

    __slots__ = ("cache", "durability", "host", "lenient_header", "read_only", "remember_leaf", "strict")

    def __init__(
        self,
        *,
        host: Host,
        read_only: bool = False,
        strict: bool = False,
        durability: str = "os",
        cache: bool = True,
        remember_leaf: bool = False,
        lenient_header: bool = False,
    ) -> None:
        if durability not in DURABILITIES:
            raise ValueError(f"durability must be one of 'os', 'flush', 'fsync', not {durability!r}")
        self.host = host
        self.read_only = read_only
        self.strict = strict
        self.durability = durability
        self.cache = cache
        self.remember_leaf = remember_leaf
        self.lenient_header = lenient_header


def open_store(path: str, options: Options) -> Store | None:
    """Scan a session file; migrate it first if it is old and may be written.

    Returns:
        The store; None if a writable open meets a missing or empty file, which is a new session.
    """
    if not options.read_only:
        sweep(path)
    try:
        store = _scan(path, options)
    except FileNotFoundError:
        if options.read_only:
            raise
        return None
    except InvalidSessionError:
        if options.read_only or not _is_empty(path):
            raise
        return None
    if options.read_only or not _is_old(store):
        return store
    return _migrate(store, path, options) or _scan(path, options)


def _scan(path: str, options: Options) -> Store:
    """Index a file, with the help of its saved index where that is wanted."""
    from sessiontree._cachedir import index_dir

    folder = index_dir(path) if options.cache else None
    return Store.open(path, lenient_header=options.lenient_header, cache=folder)


def _is_empty(path: str) -> bool:
    try:
        return os.path.getsize(path) == 0
    except FileNotFoundError:
        return True


def _is_old(store: Store) -> bool:
    from sessiontree import migrations

    return migrations.needs_migration(jsontext.loads(store.header()))


def _migrate(store: Store, path: str, options: Options) -> Store | None:
    from sessiontree import migrations

    def begin() -> Migration | None:
        # Under the lock: somebody else may have appended, or migrated the file already.
        seen = store.end(), store.tail()
        replaced = store.refresh()[2]
        known = not replaced and seen == (store.end(), store.tail())
        now = store if known else Store.open(path, lenient_header=options.lenient_header)
        return migrations.migrated_parts(now, options.host) if _is_old(now) else None

    return migrate_file(path, begin)


def migrated(store: Store, options: Options) -> Store:
    """Give a session of an older version as one of the current version, in memory."""
    from sessiontree import migrations

    if not _is_old(store):
        return store
    return Store.memory(b"".join(migrations.migrated_parts(store, options.host)))


class SessionLog:
    """One session's lines."""

    __slots__ = (
        "_checked",
        "_closed",
        "_warned",
        "at_once",
        "generation",
        "lock",
        "on_disk",
        "options",
        "path",
        "persisted",
        "source",
        "store",
        "strict",
        "swift",
        "sync",
    )

    def __init__(self, store: Store, options: Options, path: str | None, *, at_once: bool = False) -> None:
        # An old version that must not be written is looked at in memory, as the current version.
        self.source = store if options.read_only and path is not None and _is_old(store) else None
        self.store = store if self.source is None else migrated(store, options)
        self.options = options
        self.path = path
        self.strict = options.strict
        self.sync = options.durability == "fsync"
        self.persisted = path is not None
        self.on_disk = path is not None and (self.source is not None or not store.in_memory())
        # A file that was there but empty gets its header with the first entry of any kind.
        self.at_once = at_once
        # Held for everything that is asked of the store; a manager shares its own.
        self.lock = threading.RLock()
        self.generation = 0
        # The store, if a message may go there without any further question.
        self.swift: Store | None = None
        self._warned: set[type[SessionWarning]] = set()
        self._checked = -1
        self._closed: str | None = None

    @classmethod
    def begin(
        cls, header: Any, options: Options, path: str | None, *, at_once: bool = False, lines: bytes = b""
    ) -> SessionLog:
        """Begin a session that has no file yet."""
        return cls(Store.memory(jsontext.dumps(header) + b"\n" + lines), options, path, at_once=at_once)

    # ---- reading

    def header(self) -> dict[str, Any]:
        """Give the header; a fresh dict."""
        self.check_open()
        header: dict[str, Any] = jsontext.loads(self.store.header())
        return header

    def entry(self, row: int) -> Any:
        """Parse one entry."""
        self.check_open()
        return self._parse(row, self.store.line(row))

    def entries(self, rows: Rows | Sequence[int]) -> list[Any]:
        """Parse many entries."""
        self.check_open()
        if len(rows) == 1:
            return [self._parse(rows[0], self.store.line(rows[0]))]
        if len(rows) <= _FEW:
            return self.store.parse(rows, jsontext.fast_loads(), self._parse)
        with Paused():
            return self.store.parse(rows, jsontext.fast_loads(), self._parse)

    def _parse(self, row: int, line: bytes) -> Any:
        try:
            return jsontext.loads(line)
        except ValueError as error:
            offset = self.store.span(row)[0]
            raise SessionFileLostError(
                f"the entry is no JSON any more: {error} ({self.path}, byte {offset}); was the file changed?"
            ) from error

    def check_open(self) -> None:
        """Refuse to work after close()."""
        if self._closed is not None:
            raise SessionClosedError(self._closed)

    def check_generation(self, generation: int) -> None:
        """Refuse rows of a scan that is not the newest, or of a session that is closed."""
        self.check_open()
        if generation != self.generation:
            raise SessionFileLostError(
                f"the file was replaced and scanned again; ask for the entries anew ({self.path})"
            )

    def warn(self, category: type[SessionWarning], text: str) -> None:
        """Give a warning, once for each kind."""
        if category not in self._warned:
            self._warned.add(category)
            _warn.warn(f"{text} ({self.path})", category)

    # ---- writing

    def check_writable(self) -> None:
        """Refuse a write that must not be."""
        self.check_open()
        if self.options.read_only:
            raise ReadOnlySessionError(f"the session was opened with read_only=True ({self.path})")
        if self._checked != self.generation:
            self.check_version(self.path)
            self._checked = self.generation
        if not self.is_pending() and is_usual(self.options.host):
            self.swift = self.store

    def check_version(self, place: str | None) -> None:
        """Refuse a session of a newer format than is written here."""
        from sessiontree.migrations import is_newer

        header = self.header()
        if is_newer(header):
            raise UnsupportedVersionError(
                f"header version {header.get('version')!r} is newer than 3: the session can be read, not written; "
                f"use a newer sessiontree ({place})"
            )

    def is_pending(self) -> bool:
        """Say whether the session will have a file, and has none yet."""
        return self.path is not None and not self.on_disk

    def append(self, lines: bytes, *, conversation: bool = False) -> Change:
        """Append whole lines, all or nothing.

        Args:
            lines: each with its LF.
            conversation: whether a user or assistant message is among them: then a pending session
                gets its file.

        Returns:
            What was met, for `took` and `tell`: `ALONE` if nothing. The first is False, with nothing written, if
            the lines must be built anew: the file is another one now, or another writer has taken
            one of the new ids.
        """
        store = self.store
        if self.path is not None and not self.on_disk:
            if self.at_once or conversation or store.conversation() is not None:
                store.persist(self.path, lines, sync=self.sync)
                self.on_disk = True
            else:
                store.append(lines)
            return ALONE
        return store.append(lines, strict=self.strict, sync=self.sync)

    def took(self, change: Change) -> None:
        """Note what an append or a refresh met: after a new scan all rows are new."""
        if change[2]:
            self._renew()

    def _renew(self) -> None:
        self.generation += 1
        self.swift = None

    def catch_up(self) -> None:
        """See what the store is now, after an exception that may have come behind a write or a new scan."""
        self.on_disk = self.path is not None and (self.source is not None or not self.store.in_memory())
        self._renew()

    def refresh(self) -> Change:
        """Take in what other writers appended; what was met, for `tell`."""
        self.check_open()
        try:
            if self.source is not None:
                return self._refresh_source(self.source)
            change = self.store.refresh()
            self.took(change)
        except BaseException:
            self.catch_up()
            raise
        return change

    def _refresh_source(self, source: Store) -> Change:
        """Bring a session that is migrated in memory up to its file."""
        change = source.refresh()
        if change[1] or change[2]:
            self.store = migrated(source, self.options)
            self._renew()
            if not _is_old(source):
                self.source = None
        return change

    def tell(self, change: Change, *, wanted: bool = False) -> None:
        """Warn of other writers; entries that were asked for are no surprise."""
        _written, foreign, replaced, rebuilt, sealed = change
        if replaced:
            self.warn(SessionReplacedWarning, "the session file shrank or was replaced; scanned again")
        elif rebuilt:
            self.warn(
                SessionReplacedWarning, "the session file had vanished; written anew from what was open"
            )
        if foreign and not replaced and not wanted:
            self.warn(ConcurrentWriterWarning, f"another writer appended {foreign} entries")
        if sealed and foreign:
            self.warn(TornWriteWarning, "a torn line of another writer was closed with a newline")

    def reopen(self) -> None:
        """Scan the file anew, in a process forked while another thread was at work on this session.

        What that thread held is left as it is, for ever: nobody will finish its work here.
        """
        _abandoned.append((self.store, self.source))
        self._renew()
        if self.path is None or not self.on_disk:
            self._closed = "the process was forked while another thread was changing this session in memory"
            return
        try:
            store = Store.open(self.path, lenient_header=self.options.lenient_header)
            self.source = None if self.source is None else store
            self.store = store if self.source is None else migrated(store, self.options)
        except (OSError, ValueError) as error:
            self._closed = f"the session could not be opened again after a fork: {error}"

    def flush(self) -> None:
        """Make what was written durable, as far as the chosen durability says."""
        self.check_open()
        if self.options.durability != "os" and self.on_disk and not self.options.read_only:
            self.store.sync()

    def close(self) -> None:
        """End the use of the session and let go of its file; does nothing the second time."""
        if self._closed is not None:
            return
        self.swift = None
        try:
            self.flush()
        finally:
            self._closed = f"the session is closed ({self.path})" if self.path else "the session is closed"
            self.store.close()
            if self.source is not None:
                self.source.close()
