"""The session's file as a log of lines: where it is, how lines get in, what was met on the way.

A log is in one of three states:

* in memory: the session is never written to disk;
* pending: the session will have a file, but has no conversation yet, so nothing is on disk;
* on file: every line is in the file before it is in the index.

The bytes and the index live in the native `Store`; a pending log and one in memory hold the very
text that the file would hold, so that going to disk changes nothing but the place.
"""

from __future__ import annotations

import gc
import os
import warnings

from sessiontree import jsontext
from sessiontree._native import Store, replace_file
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from sessiontree._native import Rows
    from sessiontree.host import Host

DURABILITIES = ("os", "flush", "fsync")

_BATCH = 512
"""How many bodies are read at once."""

_ALONE = (True, 0, False, False, False)
"""What an append reports when nobody else was there."""


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
    try:
        store = Store.open(path, lenient_header=options.lenient_header)
    except FileNotFoundError:
        if options.read_only:
            raise
        return None
    except InvalidSessionError:
        if options.read_only or os.path.getsize(path) > 0:
            raise
        return None
    return _migrated(store, path, options)


def _migrated(store: Store, path: str, options: Options) -> Store:
    from sessiontree import migrations

    if not migrations.needs_migration(jsontext.loads(store.header())):
        return store
    if options.read_only:
        return Store.memory(b"".join(migrations.migrated_parts(store, options.host)))

    def parts() -> Iterable[bytes]:
        # Under the lock: somebody else may have appended, or migrated the file already.
        fresh = Store.open(path, lenient_header=options.lenient_header)
        if not migrations.needs_migration(jsontext.loads(fresh.header())):
            return [fresh.read(0, fresh.end())]
        return migrations.migrated_parts(fresh, options.host)

    replace_file(path, parts)
    return Store.open(path, lenient_header=options.lenient_header)


class SessionLog:
    """One session's lines."""

    __slots__ = (
        "_closed",
        "_header",
        "_warned",
        "at_once",
        "generation",
        "options",
        "path",
        "persisted",
        "store",
    )

    def __init__(self, store: Store, options: Options, path: str | None, *, at_once: bool = False) -> None:
        self.store = store
        self.options = options
        self.path = path
        self.persisted = path is not None
        # A file that was there but empty gets its header with the first entry of any kind.
        self.at_once = at_once
        self.generation = 0
        self._warned: set[type[SessionWarning]] = set()
        self._header: dict[str, Any] | None = None
        self._closed = False

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
        parsed: list[Any] = []
        # Thousands of new dicts would wake the cyclic collector again and again, for nothing.
        collecting = len(rows) > _BATCH and gc.isenabled()
        if collecting:
            gc.disable()
        try:
            for start in range(0, len(rows), _BATCH):
                self._parse_into(parsed, rows[start : start + _BATCH])
        finally:
            if collecting:
                gc.enable()
        return parsed

    def _parse_into(self, parsed: list[Any], rows: Rows | Sequence[int]) -> None:
        lines = self.store.lines(rows)
        before = len(parsed)
        try:
            parsed.extend(map(jsontext.loads, lines))
        except ValueError:
            del parsed[before:]
            parsed.extend(self._parse(rows[at], line) for at, line in enumerate(lines))

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
        if self._closed:
            raise SessionClosedError("the session is closed")

    def check_generation(self, generation: int) -> None:
        """Refuse rows of a scan that is not the newest."""
        if generation != self.generation:
            raise SessionFileLostError(
                f"the file was replaced and scanned again; ask for the entries anew ({self.path})"
            )

    def warn(self, category: type[SessionWarning], text: str, level: int = 3) -> None:
        """Give a warning, once for each kind."""
        if category not in self._warned:
            self._warned.add(category)
            warnings.warn(text, category, stacklevel=level)

    @property
    def on_disk(self) -> bool:
        """Whether the session has a file."""
        return self.persisted and not self.store.in_memory()

    # ---- writing

    def check_writable(self) -> None:
        """Refuse a write that must not be."""
        self.check_open()
        if self.options.read_only:
            raise ReadOnlySessionError(f"the session was opened with read_only=True ({self.path})")
        if self._header is None:
            self._header = self.header()
            self._refuse_newer(self._header)

    def _refuse_newer(self, header: dict[str, Any]) -> None:
        from sessiontree.migrations import header_version

        version = header_version(header)
        if version >= 4:
            self._header = None
            raise UnsupportedVersionError(
                f"header version {header.get('version')!r} is newer than 3: the session can be read, not written; "
                f"use a newer sessiontree ({self.path})"
            )

    def append(self, lines: bytes, *, conversation: bool) -> bool:
        """Append whole lines, all or nothing.

        Args:
            lines: each with its LF.
            conversation: whether a user or assistant message is among them: then a pending session
                gets its file.

        Returns:
            False, with nothing written, if the lines must be built anew: the file is another one now,
            or another writer has taken one of the new ids.
        """
        sync = self.options.durability == "fsync"
        store = self.store
        if self.persisted and store.in_memory():
            if self.at_once or conversation or store.conversation() is not None:
                assert self.path is not None  # noqa: S101
                store.persist(self.path, lines, sync=sync)
                return True
            store.append(lines)
            return True
        change = store.append(lines, strict=self.options.strict, sync=sync)
        if change != _ALONE:
            self._tell(change)
        return change[0]

    def refresh(self) -> int:
        """Take in what other writers appended; the number of new entries."""
        self.check_open()
        before = len(self.store)
        change = self.store.refresh()
        self._tell(change, wanted=True)
        return len(self.store) - before

    def _tell(self, change: tuple[bool, int, bool, bool, bool], *, wanted: bool = False) -> None:
        _written, foreign, replaced, _rebuilt, sealed = change
        if replaced:
            self.generation += 1
            self.warn(
                SessionReplacedWarning,
                f"the session file shrank or was replaced; scanned again ({self.path})",
                5,
            )
        elif foreign and not wanted:
            self.warn(ConcurrentWriterWarning, f"another writer appended {foreign} entries ({self.path})", 5)
        if sealed and foreign:
            self.warn(
                TornWriteWarning, f"a torn line of another writer was closed with a newline ({self.path})", 5
            )

    def flush(self) -> None:
        """Make what was written durable, as far as the chosen durability says."""
        self.check_open()
        if self.options.durability != "os" and self.on_disk and not self.options.read_only:
            self.store.sync()

    def close(self) -> None:
        """End the use of the session; does nothing the second time."""
        if not self._closed:
            self.flush()
            self._closed = True
