"""SessionManager: the life of one session (open, append, branch, fork, label, name)."""

from __future__ import annotations

import os
import threading

from sessiontree import entries as make
from sessiontree import forksafe, jsontext
from sessiontree.appending import SessionAppender
from sessiontree.exceptions import ReadOnlySessionError
from sessiontree.finding import SessionFinder
from sessiontree.labels import Labels
from sessiontree.log import SessionLog, migrated, open_store
from sessiontree.opening import (
    cwd_of,
    draw_id,
    file_name,
    log_at,
    named_log,
    new_header,
    new_session_id,
    options_of,
    session_folder,
    timestamp,
)
from sessiontree.paths import normalize_path, resolve_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any, Self, Unpack

    from sessiontree._options import OpenOptions
    from sessiontree.entries import JsonObject


class SessionManager(SessionFinder, SessionAppender):
    """One session: an append-only tree of entries, with a leaf where the next one goes.

    Make one with `open`, `create`, `continue_recent`, `in_memory` or `fork_from`. All of them take
    the keyword options ``read_only``, ``strict`` (another writer is an error), ``durability``
    ("os", "flush", "fsync"), ``cache``, ``remember_leaf``, ``lenient_header`` and ``host``.

    Example:
        >>> session = SessionManager.in_memory("/code")
        >>> first = session.append_message({"role": "user", "content": "hello", "timestamp": 0})
        >>> session.get_leaf_id() == first
        True
    """

    def __init__(self, log: SessionLog, cwd: str, session_dir: str) -> None:
        """Take over a log; use the class methods instead."""
        self._lock = threading.RLock()
        forksafe.register(self)
        self._cwd = resolve_path(cwd)
        self._session_dir = session_dir
        self._attach(log)

    # ---- ways to make one

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        session_dir: str | None = None,
        cwd_override: str | None = None,
        **options: Unpack[OpenOptions],
    ) -> Self:
        """Open a session file.

        A version 1 or 2 file is migrated at once, atomically, unless ``read_only``. A missing or
        empty file is a new session, which is written with its first conversation.

        Args:
            path: the file; ``~`` and ``file://`` are understood.
            session_dir: where later new files go; the file's folder if left out.
            cwd_override: working directory to use instead of the header's.
            **options: see the class.

        Raises:
            InvalidSessionError: the file is no session; it names path, line and byte. Read-only, an
                empty file as well.
            OSError: the file cannot be read; read-only, also if it is missing.

        Example:
            >>> SessionManager.open("missing.jsonl", cwd_override="/code").get_entry_count()
            0
        """
        settings = options_of(options)
        resolved = resolve_path(path)
        folder = normalize_path(session_dir) if session_dir else os.path.dirname(resolved)
        store = open_store(resolved, settings)
        if store is None:
            cwd = resolve_path(os.getcwd() if cwd_override is None else cwd_override)
            return cls(log_at(settings, cwd, resolved), cwd, folder)
        log = SessionLog(store, settings, resolved)
        return cls(log, cwd_of(log, cwd_override), folder)

    @classmethod
    def create(
        cls,
        cwd: str,
        session_dir: str | None = None,
        id: str | None = None,
        parent_session: str | None = None,
        **options: Unpack[OpenOptions],
    ) -> Self:
        """Begin a new session; its file appears with the first user or assistant message.

        Args:
            cwd: the working directory, stored in the header.
            session_dir: the folder; the default one of ``cwd`` if left out.
            id: the session's id; a UUID of version 7 if left out.
            parent_session: path of the session it continues.
            **options: see the class.

        Raises:
            InvalidSessionIdError: ``id`` cannot be part of a file name.
        """
        settings = options_of(options)
        folder = session_folder(cwd, session_dir)
        return cls(named_log(settings, resolve_path(cwd), folder, id, parent_session), cwd, folder)

    @classmethod
    def continue_recent(
        cls, cwd: str, session_dir: str | None = None, **options: Unpack[OpenOptions]
    ) -> Self:
        """Open the newest session of a working directory, by file time; begin one if there is none."""
        from sessiontree.listing import find_recent_session

        path = find_recent_session(cwd, session_dir)
        if path is None:
            return cls.create(cwd, session_dir, **options)
        return cls.open(path, session_folder(cwd, session_dir), cwd, **options)

    @classmethod
    def in_memory(
        cls,
        cwd: str | None = None,
        entries: Iterable[Any] | None = None,
        id: str | None = None,
        parent_session: str | None = None,
        **options: Unpack[OpenOptions],
    ) -> Self:
        """Begin a session that is never written, optionally from entries held elsewhere.

        Args:
            cwd: the working directory; the process's if left out.
            entries: header (optional) and entries; a snapshot is taken. Old versions are migrated.
            id: the session's id, if no header is given.
            parent_session: for the header, if none is given.
            **options: see the class.
        """
        settings = options_of(options)
        where = resolve_path(os.getcwd() if cwd is None else cwd)
        given = list(entries or ())
        header = next((e for e in given if isinstance(e, dict) and e.get("type") == "session"), None)
        if header is None:
            header = new_header(settings, where, id, parent_session)
        lines = b"".join(jsontext.dumps(e) + b"\n" for e in given if e is not header)
        log = SessionLog.begin(header, settings, None, lines=lines)
        log.store = migrated(log.store, settings)
        return cls(log, where, "")

    @classmethod
    def fork_from(
        cls,
        source_path: str | os.PathLike[str],
        target_cwd: str,
        session_dir: str | None = None,
        id: str | None = None,
        **options: Unpack[OpenOptions],
    ) -> Self:
        """Copy a session, with its whole history, to another working directory.

        The source is only read. Its lines are copied as they are behind a new header; an old version
        is migrated on the way.

        Raises:
            InvalidSessionError: the source is empty or no session.
            OSError: it cannot be read, or the copy cannot be written (then there is none).
        """
        from sessiontree import forks

        settings = options_of(options)
        source, cwd, folder = resolve_path(source_path), resolve_path(target_cwd), ""

        def place(old: JsonObject) -> tuple[str, bytes]:
            nonlocal folder
            folder = session_folder(target_cwd, session_dir)
            own_id, stamp = new_session_id(settings, id), timestamp(settings)
            header = forks.fork_header(old, own_id, stamp, cwd, source)
            return file_name(folder, stamp, own_id), header

        return cls(forks.forked_log(source, settings, place), cwd, folder)

    # ---- branching

    def branch(self, entry_id: str) -> None:
        """Move the leaf to an entry: the next append starts a branch there. Nothing is written.

        Raises:
            EntryNotFoundError: no entry has this id.

        Example:
            >>> session = SessionManager.in_memory("/code")
            >>> question, answer = session.append_many([{"role": "user"}, {"role": "assistant"}])
            >>> session.branch(question)
            >>> session.get_leaf_id() == question
            True
        """
        with self._lock:
            self._log.check_open()
            self._leaf = self._row(entry_id)
            self._branched = True
            self._remember_leaf()

    def reset_leaf(self) -> None:
        """Move the leaf before all entries: the next append is a new root. Nothing is written."""
        with self._lock:
            self._log.check_open()
            self._leaf = None
            self._branched = True
            self._remember_leaf()

    def _remember_leaf(self) -> None:
        if self._log.options.remember_leaf and not self._log.options.read_only:
            from sessiontree import remembered

            remembered.remember(self._log, self.get_leaf_id())

    def branch_with_summary(
        self,
        entry_id: str | None,
        summary: str,
        details: Any = None,
        from_hook: bool | None = None,
        usage: Any = None,
        *,
        label: str | None = None,
    ) -> str:
        """Move the leaf to an entry (None: before all) and append what happened on the branch left.

        All or nothing: if the summary, and its ``label`` if one is given, cannot be written, the leaf stays.
        Gives the summary's id.

        Raises:
            EntryNotFoundError: no entry has ``entry_id``.
        """
        with self._lock:
            self._log.check_writable()
            left = self.get_leaf_id() or "root"
            own = (left, summary, details, usage, from_hook)
            needs = () if entry_id is None else (entry_id,)
            return self._append_for_id(
                make.branch_summary_entry, *own, parent=entry_id, needs=needs, label=label
            )

    def create_branched_session(self, leaf_id: str) -> str | None:
        """Make a session of the path to an entry alone, and go on in it.

        Label entries are left out and written again at the end, for the entries that are copied.
        The old file stays as it is. All or nothing.

        Returns:
            The path of the new session's file (which appears with its first conversation); None in
            memory.

        Raises:
            EntryNotFoundError: no entry has this id.
        """
        from sessiontree import forks

        with self._lock:
            log = self._log
            log.check_writable()
            row, options = self._row(leaf_id), log.options
            id, stamp = options.host.uuid7(), timestamp(options)
            parent = log.path if log.persisted else None
            header = forks.fork_header(log.header(), id, stamp, self._cwd, parent)
            rows = log.store.path_rows(row)
            labels = forks.label_lines(log, self._labels, rows, lambda taken: draw_id(options.host, taken))
            path = file_name(self._session_dir, stamp, id) if log.persisted else None
            sync = options.durability == "fsync"
            store = log.store.branch(rows, header, labels, target=path, sync=sync)
            self._change_to(SessionLog(store, options, path))
            return path

    def _change_to(self, log: SessionLog) -> None:
        """Leave the session for another one, once what was written is as durable as it is to be."""
        self._log.flush()
        self._attach(log)

    # ---- the session's life

    def new_session(self, id: str | None = None, parent_session: str | None = None) -> str | None:
        """Leave the current session and begin a new one in the same folder; gives its path.

        Raises:
            ReadOnlySessionError: the session was opened with ``read_only=True``; nothing could be written.
        """
        with self._lock:
            self._log.check_open()
            if self._log.options.read_only:
                raise ReadOnlySessionError(
                    f"a new session could not be written: read_only=True ({self._place()})"
                )
            options, persisted = self._log.options, self._log.persisted
            folder = self._session_dir if persisted else None
            self._change_to(named_log(options, self._cwd, folder, id, parent_session))
            return self._log.path

    def set_session_file(self, path: str | os.PathLike[str]) -> None:
        """Leave the current session and open another file; on any failure nothing has changed."""
        with self._lock:
            self._log.check_open()
            resolved = resolve_path(path)
            options = self._log.options
            store = open_store(resolved, options)
            fresh = (
                log_at(options, self._cwd, resolved)
                if store is None
                else SessionLog(store, options, resolved)
            )
            self._change_to(fresh)

    def refresh(self) -> int:
        """Take in the whole lines that other writers appended; gives the number of new entries.

        The leaf stays, except in a read-only session that never moved it: there it follows the last
        entry.
        """
        with self._lock:
            log, leaf = self._log, self.get_leaf_id()
            before, generation = len(log.store), log.generation
            change = log.refresh()
            if log.options.read_only and not self._branched:
                self._leaf = log.store.leaf()
            elif generation != log.generation:
                self._find_leaf(leaf)
            log.tell(change, wanted=True)
            return max(0, len(log.store) - before)

    def _recover(self) -> None:
        """Go on in a process that was forked while another thread was at work on this session."""
        self._lock = threading.RLock()
        leaf = self._leaf
        self._log.lock = self._lock
        self._log.reopen()
        self._labels = Labels(self._log)
        if leaf is not None and leaf >= len(self._log.store):
            self._leaf = self._log.store.leaf()

    def flush(self) -> None:
        """Make what was written durable, by the chosen ``durability``; creates no file."""
        with self._lock:
            self._log.flush()

    def close(self) -> None:
        """End the use of the session; creates no file. Afterwards everything raises SessionClosedError."""
        with self._lock:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        with self._lock:
            return f"<SessionManager {self._place()}: {len(self._log.store)} entries>"
