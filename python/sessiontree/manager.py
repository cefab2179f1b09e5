"""SessionManager: the life of one session (open, append, branch, fork, label, name)."""

from __future__ import annotations

import os
import threading

from sessiontree import entries as make
from sessiontree import forksafe, jsontext
from sessiontree._native import message_lines
from sessiontree.exceptions import ReadOnlySessionError, SessionFileLostError
from sessiontree.finding import SessionFinder
from sessiontree.labels import Labels
from sessiontree.log import ALONE, SessionLog, migrated, open_store
from sessiontree.opening import (
    cwd_of,
    draw_id,
    draw_ids,
    file_name,
    log_at,
    named_log,
    new_header,
    new_id,
    new_session_id,
    on_one_line,
    options_of,
    session_folder,
    timestamp,
    timestamps,
)
from sessiontree.paths import normalize_path, resolve_path
from sessiontree.reading import SessionReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, Self, TypeAlias, Unpack

    from sessiontree._options import OpenOptions
    from sessiontree.entries import AgentMessage, JsonObject, UsageEntry

    # Inside the class `list` is pi's method.
    Ids: TypeAlias = list[str]
    Batch: TypeAlias = list[AgentMessage]

_CONVERSATION = ("user", "assistant")

_TRIES = 100
"""How often an append is begun anew because the file was replaced meanwhile."""


class SessionManager(SessionFinder, SessionReader):
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

    # ---- appending

    def _append(
        self,
        build: Callable[..., Any],
        *own: Any,
        conversation: bool = False,
        parent: Any = make.UNSET,
        needs: tuple[object, ...] = (),
        label: str | None = None,
    ) -> Any:
        """Append what ``build(id, parent id, timestamp, *own)`` gives; the leaf moves when it is written.

        A ``label`` for it goes out in the same write, or neither does. Where the file turns out to be another
        one than before, all is done once more, on that one; entries with the ids in ``needs`` must be in it.
        """
        with self._lock:
            for _ in range(_TRIES):
                log = self._log
                log.check_writable()
                for id in needs:
                    self._row(id)
                leaf = self._leaf_id()
                options = log.options
                id = new_id(options.host, log.store)
                entry = build(id, leaf if parent is make.UNSET else parent, timestamp(options), *own)
                lines, last_id = jsontext.dumps(entry) + b"\n", id
                if label:
                    last_id = draw_ids(options.host, 1, log.store, {id})[0]
                    named = make.label_entry(last_id, id, timestamp(options), id, label)
                    lines += jsontext.dumps(named) + b"\n"
                if self._write(lines, leaf, last_id, conversation):
                    return entry
            raise self._restless()

    def _restless(self) -> SessionFileLostError:
        return SessionFileLostError(f"the file is replaced again and again ({self._place()})")

    def _append_for_id(self, build: Callable[..., Any], *own: Any, **how: Any) -> str:
        id: str = self._append(build, *own, **how)["id"]
        return id

    def _write(self, lines: bytes, leaf: str | None, last_id: str, conversation: bool) -> bool:
        """Append lines; false if the file was another one, or an id taken, so that they must be built anew."""
        log, generation = self._log, self._log.generation
        change = log.append(lines, conversation)
        if change == ALONE:
            self._leaf = len(log.store) - 1
            return True
        written = change[0]
        if written:
            self._leaf = log.store.find(last_id)
        elif generation != log.generation:
            self._find_leaf(leaf)
        # Last of all: a program may turn warnings into errors.
        log.tell(change)
        return written

    def _find_leaf(self, id: str | None) -> None:
        """Find the leaf again after a new scan; the last entry if its id is gone."""
        row = None if id is None else self._log.store.find(id)
        self._leaf = self._log.store.leaf() if row is None and id is not None else row

    def append_message(self, message: AgentMessage) -> str:
        """Append a message to the leaf; it becomes the leaf.

        Args:
            message: a dict with the file's own keys; a snapshot is taken.

        Returns:
            The new entry's id.

        Raises:
            TypeError: the message holds what JSON lacks; names the key path.
            OSError: it could not be written; nothing has changed then.
            SessionConflictError: ``strict`` and another writer was there.

        Example:
            >>> session = SessionManager.in_memory("/code")
            >>> len(session.append_message({"role": "user", "content": "hello", "timestamp": 0}))
            8
        """
        talk = isinstance(message, dict) and message.get("role") in _CONVERSATION
        id: str = self._append(make.message_entry, message, conversation=talk)["id"]
        return id

    def append_many(self, messages: Iterable[AgentMessage]) -> Ids:
        """Append messages one after the other: one lock, one write, all or nothing.

        Returns:
            The new entries' ids.

        Raises:
            TypeError: it is one message or text, or a message holds what JSON lacks.
        """
        with self._lock:
            self._log.check_writable()
            if isinstance(messages, (str, bytes, dict)):
                raise TypeError(f"append_many takes several messages, not one {type(messages).__name__}")
            batch = list(messages)
            talk = any(isinstance(m, dict) and m.get("role") in _CONVERSATION for m in batch)
            if not batch:
                return []
            for _ in range(_TRIES):
                self._log.check_writable()
                leaf = self._leaf_id()
                ids, lines = self._chain(leaf, batch)
                if self._write(lines, leaf, ids[-1], talk):
                    return ids
            raise self._restless()

    def _chain(self, parent: str | None, messages: Batch) -> tuple[Ids, bytes]:
        options = self._log.options
        ids = draw_ids(options.host, len(messages), self._log.store)
        try:
            texts = jsontext.dumps(messages)
        except TypeError:
            # Said once more, with the path from the entry on.
            for message in messages:
                jsontext.dumps({"message": message})
            raise
        return ids, message_lines(texts, ids, parent, timestamps(options, len(messages)))

    def append_thinking_level_change(self, level: str) -> str:
        """Append a change of the thinking level; gives the entry's id."""
        return self._append_for_id(make.thinking_level_change_entry, level)

    def append_model_change(self, provider: str, model_id: str) -> str:
        """Append a change of the model; gives the entry's id."""
        return self._append_for_id(make.model_change_entry, provider, model_id)

    def append_usage(
        self, kind: str, provider: str, model: str, usage: Any, note: str | None = None
    ) -> UsageEntry:
        """Append tokens spent outside the conversation; gives the entry, as pi does."""
        return self._append(make.usage_entry, kind, provider, model, usage, note)  # type: ignore[no-any-return]

    def append_compaction(
        self,
        summary: str,
        first_kept_entry_id: str | None,
        tokens_before: int,
        details: Any = None,
        from_hook: bool | None = None,
        usage: Any = None,
    ) -> str:
        """Append a summary in the place of what came before; gives the entry's id.

        The system message of the current context is stored with it, so that it survives.

        Args:
            summary: what the model will see instead of the summarised entries.
            first_kept_entry_id: the first entry that stays in the context; None keeps nothing.
            tokens_before: tokens of the context before the compaction.
            details: the caller's own data.
            from_hook: whether a hook made the summary.
            usage: what making it cost.
        """
        from sessiontree.context import get_current_system_message

        with self._lock:
            self._log.check_writable()

            def build(id: str, parent: str | None, now: str) -> Any:
                system = get_current_system_message(self._contexts.system_messages(self._leaf))
                stored: Any = {**system, "timestamp": jsontext.parse_date(now)} if system else None
                return make.compaction_entry(
                    id,
                    parent,
                    now,
                    summary,
                    first_kept_entry_id,
                    tokens_before,
                    details,
                    usage,
                    from_hook,
                    stored,
                )

            return self._append_for_id(build)

    def append_custom_entry(self, custom_type: str, data: Any = None) -> str:
        """Append an extension's data, which the model never sees; gives the entry's id."""
        return self._append_for_id(make.custom_entry, custom_type, data)

    def append_custom_message_entry(
        self, custom_type: str, content: Any, display: bool, details: Any = None
    ) -> str:
        """Append an extension's message to the model; gives the entry's id."""
        return self._append_for_id(make.custom_message_entry, custom_type, content, display, details)

    def append_session_info(self, name: str) -> str:
        """Name the session; line breaks become spaces, an empty name clears it. Gives the entry's id."""
        if not isinstance(name, str):
            raise TypeError(f"the name must be a string, not {type(name).__name__}")
        clean = jsontext.trim(on_one_line(name))
        return self._append_for_id(make.session_info_entry, clean)

    def append_label_change(self, target_id: str, label: str | None) -> str:
        """Label an entry, or with None or "" take its label off; gives the new entry's id.

        Raises:
            EntryNotFoundError: no entry has ``target_id``.
        """
        with self._lock:
            self._log.check_writable()
            return self._append_for_id(make.label_entry, target_id, label, needs=(target_id,))

    def append_context_edit(self, target_id: str, replacement: Any) -> str:
        """Change what an earlier entry contributes to the context; gives the new entry's id.

        Args:
            target_id: a user, assistant, tool-result or custom message on the current branch.
            replacement: None to leave it out, or ``{"content": text or blocks}``.

        Raises:
            EntryNotFoundError: no entry has ``target_id``.
            ValueError: it is not on the branch or cannot be edited, or the replacement has another form.
        """
        from sessiontree.edits import checked_edit

        with self._lock:
            self._log.check_writable()
            row = self._row(target_id)
            edit = checked_edit(self._log, self._leaf, row, target_id, replacement)
            return self._append_for_id(make.context_edit_entry, target_id, edit, needs=(target_id,))

    # ---- branching

    def branch(self, entry_id: str) -> None:
        """Move the leaf to an entry: the next append starts a branch there. Nothing is written.

        Raises:
            EntryNotFoundError: no entry has this id.
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
