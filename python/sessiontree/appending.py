"""The appending half of a session: entries from arguments, their lines, and the leaf behind them."""

from __future__ import annotations

from sessiontree import entries as make
from sessiontree import jsontext
from sessiontree._native import message_lines
from sessiontree.exceptions import SessionFileLostError, SessionTreeError
from sessiontree.log import ALONE
from sessiontree.opening import draw_ids, new_id, on_one_line, random_id, timestamp, timestamps
from sessiontree.reading import SessionReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias

    from sessiontree.entries import AgentMessage, UsageEntry
    from sessiontree.log import Change

    # Inside the class of a session `list` is pi's method.
    Ids: TypeAlias = list[str]
    Batch: TypeAlias = list[AgentMessage]

_CONVERSATION = ("user", "assistant")

_TRIES = 100
"""How often an append is begun anew because the file was replaced meanwhile."""


def _is_talk(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in _CONVERSATION


def _texts(messages: Batch) -> bytes:
    try:
        return jsontext.dumps(messages)
    except TypeError:
        # Said once more, with the path from the entry on.
        for message in messages:
            jsontext.dumps({"message": message})
        raise


class SessionAppender(SessionReader):
    """What adds entries to the leaf of a session."""

    def _append(
        self,
        build: Callable[..., Any],
        *own: Any,
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
                try:
                    if self._settle(log.append(lines), leaf, last_id):
                        return entry
                except BaseException as error:
                    self._catch_up(error, last_id, leaf)
                    raise
            raise self._restless()

    def _restless(self) -> SessionFileLostError:
        return SessionFileLostError(f"the file is replaced again and again ({self._place()})")

    def _append_for_id(self, build: Callable[..., Any], *own: Any, **how: Any) -> str:
        id: str = self._append(build, *own, **how)["id"]
        return id

    def _settle(self, change: Change, leaf: str | None, last_id: str) -> bool:
        """Move the leaf after an append; false if its lines must be built anew.

        That is so where the file was another one, or one of the new ids is taken; ``leaf`` is what it was.
        """
        log = self._log
        log.took(change)
        if change == ALONE:
            self._leaf = len(log.store) - 1
            return True
        if change[0]:
            self._leaf = log.store.find(last_id)
        elif change[2]:
            self._find_leaf(leaf)
        # Last of all: a program may turn warnings into errors.
        log.tell(change)
        return change[0]

    def _catch_up(self, error: BaseException, last_id: str, leaf: str | None = None) -> None:
        """Bring the session in line with its file, after an exception in the midst of an append.

        Ctrl-C is heard when the native call is over: what was appended is in the file then, and the leaf. An
        error of the call itself (it has a number, or is of ours) says what became of the lines.
        """
        if isinstance(error, SessionTreeError) or getattr(error, "errno", None) is not None:
            return
        log = self._log
        log.catch_up()
        row = log.store.find(last_id)
        if row is not None:
            self._leaf = row
        elif self._leaf is not None and self._leaf >= len(log.store):
            self._find_leaf(leaf)

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
            >>> from sessiontree import SessionManager
            >>> session = SessionManager.in_memory("/code")
            >>> len(session.append_message({"role": "user", "content": "hello", "timestamp": 0}))
            8
        """
        with self._lock:
            log = self._log
            store = log.swift
            if store is not None:
                id = random_id()
                try:
                    done = store.append_message(message, id, self._leaf, log.strict, log.sync)
                    if isinstance(done, int):
                        self._leaf = done
                        return id
                    if done is not None and self._settle(*done, id):
                        return id
                except BaseException as error:
                    self._catch_up(error, id)
                    raise
            return self._append_batch([message])[0]

    def append_many(self, messages: Iterable[AgentMessage]) -> Ids:
        """Append messages one after the other: one lock, one write, all or nothing.

        Returns:
            The new entries' ids.

        Raises:
            TypeError: it is one message or text, or a message holds what JSON lacks.

        Example:
            >>> from sessiontree import SessionManager
            >>> session = SessionManager.in_memory("/code")
            >>> session.append_many([{"role": "user"}, {"role": "assistant"}]) == list(session.path_ids())
            True
        """
        with self._lock:
            self._log.check_writable()
            if isinstance(messages, (str, bytes, dict)):
                raise TypeError(f"append_many takes several messages, not one {type(messages).__name__}")
            batch = list(messages)
            return self._append_batch(batch) if batch else []

    def _append_batch(self, messages: Batch) -> Ids:
        """Append messages, where more has to be looked at than in the usual case."""
        for _ in range(_TRIES):
            log = self._log
            log.check_writable()
            leaf, options = self._leaf_id(), log.options
            ids = draw_ids(options.host, len(messages), log.store)
            times = timestamps(options, len(messages))
            try:
                done = None
                if not log.is_pending():
                    done = log.store.append_messages(messages, ids, self._leaf, times, log.strict, log.sync)
                if isinstance(done, int):
                    self._leaf = done
                    return ids
                if done is None:
                    now = times or [timestamp(options)] * len(ids)
                    lines = message_lines(_texts(messages), ids, leaf, now)
                    change = log.append(lines, conversation=any(map(_is_talk, messages)))
                else:
                    change = done[0]
                if self._settle(change, leaf, ids[-1]):
                    return ids
            except BaseException as error:
                self._catch_up(error, ids[-1], leaf)
                raise
        raise self._restless()

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
