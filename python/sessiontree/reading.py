"""The reading half of a session: look-ups, paths, the tree, labels, contexts."""

from __future__ import annotations

from sessiontree import jsontext
from sessiontree.exceptions import EntryNotFoundError
from sessiontree.labels import Labels
from sessiontree.report import OpenReport
from sessiontree.sequences import EntrySequence, IdSequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading

    import numpy as np
    import numpy.typing as npt

    from sessiontree._native import ColumnArrays, Rows
    from sessiontree.context import SessionContext, SessionProjection
    from sessiontree.entries import SessionEntry, SessionHeader
    from sessiontree.log import SessionLog
    from sessiontree.tree import TreeNode


class SessionReader:
    """What can be asked of a session. All methods are safe from any thread."""

    _lock: threading.RLock
    _log: SessionLog
    _labels: Labels
    _leaf: int | None
    _cwd: str
    _session_dir: str

    def _attach(self, log: SessionLog) -> None:
        """Take a log as the session's own; the leaf is its last entry with a string id."""
        from sessiontree._livecontext import LiveContext

        log.lock = self._lock
        self._log = log
        self._labels = Labels(log)
        self._contexts = LiveContext(log)
        self._leaf = self._first_leaf()
        self._branched = False
        self._name: tuple[int | None, int, str | None] = (None, -1, None)

    def _first_leaf(self) -> int | None:
        log = self._log
        if log.options.remember_leaf and log.on_disk:
            from sessiontree import remembered

            return remembered.recall(log)
        return log.store.leaf()

    def _row(self, id: object) -> int:
        """Find an entry that must exist."""
        row = self._log.store.find(id)
        if row is None:
            raise EntryNotFoundError(f"no entry has the id {id!r} ({self._place()})")
        return row

    def _place(self) -> str:
        return self._log.path or "in memory"

    # ---- facts

    def get_cwd(self) -> str:
        """Give the working directory of the session."""
        return self._cwd

    def get_session_dir(self) -> str:
        """Give the folder where new files of this session go; empty for a session in memory."""
        return self._session_dir

    def get_session_id(self) -> str:
        """Give the session's id."""
        with self._lock:
            header: dict[str, str] = self._log.header()
        return header["id"]

    def get_session_file(self) -> str | None:
        """Give the path of the session's file, which may not exist yet; None in memory."""
        return self._log.path

    def is_persisted(self) -> bool:
        """Say whether the session has, or will have, a file."""
        return self._log.persisted

    def uses_default_session_dir(self) -> bool:
        """Say whether new files go to the default folder of the working directory."""
        from sessiontree.paths import default_session_dir, paths_equal

        return bool(self._session_dir) and paths_equal(self._session_dir, default_session_dir(self._cwd))

    def get_header(self) -> SessionHeader:
        """Give the session header as a fresh dict, unknown fields included."""
        with self._lock:
            header: SessionHeader = self._log.header()  # type: ignore[assignment]
        return header

    @property
    def open_report(self) -> OpenReport:
        """What the file holds besides sound entries; false for a sound file."""
        with self._lock:
            self._log.check_open()
            return OpenReport(self._log)

    # ---- entries

    def get_leaf_id(self) -> str | None:
        """Give the id of the entry that the next append hangs on; None before any entry."""
        with self._lock:
            self._log.check_open()
            return self._leaf_id()

    def _leaf_id(self) -> str | None:
        id = None if self._leaf is None else self._log.store.id(self._leaf)
        return id if isinstance(id, str) else None

    def get_leaf_entry(self) -> SessionEntry | None:
        """Give the leaf's entry, or None before any entry."""
        with self._lock:
            self._log.check_open()
            return None if self._leaf is None else self._log.entry(self._leaf)

    def get_entry(self, id: str) -> SessionEntry | None:
        """Give the entry with this id as a fresh dict; the last one if the id stands twice.

        Returns:
            The entry, or None if there is none.

        Example:
            >>> from sessiontree import SessionManager
            >>> SessionManager.in_memory("/code").get_entry("a1b2c3d4") is None
            True
        """
        with self._lock:
            self._log.check_open()
            row = self._log.store.find(id)
            return None if row is None else self._log.entry(row)

    def find_row(self, id: str) -> int | None:
        """Give the row of an entry: its place in `get_entries` and in `columns`; None if there is none.

        Where an id stands twice it is the last one's row. No body is read.
        """
        with self._lock:
            self._log.check_open()
            return self._log.store.find(id)

    def get_entries(self) -> EntrySequence:
        """Give all entries in file order, as a lazy sequence; nothing is parsed until it is looked at."""
        with self._lock:
            self._log.check_open()
            return EntrySequence(self._log, range(len(self._log.store)))

    def get_entry_count(self) -> int:
        """Count the different ids; entries without an id count together as one (as pi does)."""
        with self._lock:
            self._log.check_open()
            return self._log.store.distinct_ids()

    def get_children(self, id: str | None) -> list[SessionEntry]:
        """Give the entries whose ``parentId`` is exactly this id, in file order; None gives the roots."""
        with self._lock:
            self._log.check_open()
            return self._log.entries(self._log.store.children_of_key(id))

    # ---- paths

    def _start(self, from_id: object) -> int | None:
        if from_id is None:
            return self._leaf
        return self._log.store.find(from_id)

    def get_branch(self, from_id: str | None = None) -> EntrySequence:
        """Give the path from the root to an entry, as a lazy sequence.

        Args:
            from_id: the entry; the current leaf if left out. An unknown id gives an empty path.

        Raises:
            CorruptSessionError: the path runs into a cycle; has the ids of the cycle.
        """
        with self._lock:
            return EntrySequence(self._log, self._path(from_id))

    def _path(self, from_id: object) -> Rows | range:
        self._log.check_open()
        start = self._start(from_id)
        return range(0) if start is None else self._log.store.path_rows(start)

    def path_rows(self, id: str | None = None) -> npt.NDArray[np.int64]:
        """Give the rows of a path, root first: an int64 array into `columns`."""
        with self._lock:
            rows = self._path(id)
        if isinstance(rows, range):
            import numpy as np

            return np.empty(0, dtype=np.int64)
        return rows.numpy()

    def path_ids(self, id: str | None = None) -> IdSequence:
        """Give the ids of a path, root first, as a lazy sequence; no body is read."""
        with self._lock:
            return IdSequence(self._log, self._path(id))

    def common_ancestor(self, a: str, b: str) -> str | None:
        """Give the id of the deepest entry on the paths of both, or None if there is none.

        Raises:
            EntryNotFoundError: one of them does not exist.
            CorruptSessionError: a path runs into a cycle.
        """
        with self._lock:
            self._log.check_open()
            row = self._log.store.common_ancestor(self._row(a), self._row(b))
            return None if row is None else self._log.store.id(row)  # type: ignore[return-value]

    def columns(self) -> ColumnArrays:
        """Give the index as read-only numpy arrays, one element an entry in file order.

        ``offset`` and ``length`` (uint64, bytes; without the newline), ``parent`` (int64 row; -1 root,
        -2 parent not in the file), ``kind`` and ``role`` (uint8, see docs/architecture.md),
        ``timestamp`` (int64, ms since 1970; the lowest int64 where it is unknown).
        """
        with self._lock:
            self._log.check_open()
            return self._log.store.columns()

    # ---- tree, labels, name

    def get_tree(self) -> list[TreeNode]:
        """Give the roots of the tree as lazy nodes; children are looked up when asked for."""
        from sessiontree.tree import roots

        with self._lock:
            self._log.check_open()
            return roots(self._log, self._labels)

    def get_label(self, id: str) -> str | None:
        """Give the label of an entry, or None."""
        with self._lock:
            self._log.check_open()
            found = self._labels.get(id)
            return found[0] if found else None

    def get_labels(self) -> list[tuple[str, str]]:
        """Give (entry id, label) of all labels, in the order in which they were first set."""
        with self._lock:
            self._log.check_open()
            return [(target, label) for target, label, _ in self._labels if isinstance(target, str)]

    def get_ids(self) -> IdSequence:
        """Give the ids of all entries in file order, as a lazy sequence; no body is read."""
        with self._lock:
            self._log.check_open()
            return IdSequence(self._log, range(len(self._log.store)))

    def get_session_name(self) -> str | None:
        """Give the session's name: the latest one set, trimmed; None if there is none or it was cleared."""
        with self._lock:
            self._log.check_open()
            row = self._log.store.last_info()
            if row is None:
                return None
            if self._name[:2] != (row, self._log.generation):
                self._name = (row, self._log.generation, self._read_name(row))
            return self._name[2]

    def _read_name(self, row: int) -> str | None:
        name = self._log.entry(row).get("name")
        return jsontext.trim(name) or None if isinstance(name, str) else None

    # ---- context

    def build_context_entries(self) -> EntrySequence:
        """Give the entries that make up the model's context, the newest compaction first."""
        with self._lock:
            self._log.check_open()
            return EntrySequence(self._log, self._contexts.rows(self._leaf))

    def build_session_projection(self) -> SessionProjection:
        """Give the context with each message's source entry."""
        with self._lock:
            self._log.check_open()
            return self._contexts.projection(self._leaf)

    def build_session_context(self, *, pair_tool_results: bool = False) -> SessionContext:
        """Give what is sent to the model: messages, thinking level and model at the leaf.

        The list is fresh; the message dicts are shared with the next context and must not be changed.

        Args:
            pair_tool_results: leave out tool results without their call, and complete calls without
                a result, as model providers demand; pi does not, so the default does not.

        Example:
            >>> from sessiontree import SessionManager
            >>> session = SessionManager.in_memory("/code")
            >>> _ = session.append_message({"role": "user", "content": "hello", "timestamp": 0})
            >>> session.build_session_context().messages[0]["content"]
            'hello'
        """
        with self._lock:
            self._log.check_open()
            return self._contexts.context(self._leaf, pair_tool_results=pair_tool_results)
