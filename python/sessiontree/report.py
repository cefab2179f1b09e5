"""What opening a session met: lines that are no entries, and where."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessiontree.log import SessionLog


class SkippedLine:
    """A line that is no JSON: physical line (from 1), byte offset of the fault, and why."""

    __slots__ = ("byte", "line", "reason")

    def __init__(self, line: int, byte: int, reason: str) -> None:
        self.line = line
        self.byte = byte
        self.reason = reason

    def __repr__(self) -> str:
        return f"SkippedLine(line={self.line}, byte={self.byte}, reason={self.reason!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SkippedLine):
            return NotImplemented
        return (self.line, self.byte, self.reason) == (other.line, other.byte, other.reason)

    def __hash__(self) -> int:
        return hash((self.line, self.byte))


class OpenReport:
    """What a session's file holds besides sound entries, as of now.

    The report is true if there is anything to say; it is false, and empty, for a sound file.

    Attributes:
        skipped: number of lines that are no JSON.
        skipped_lines: the first 1,000 of them.
        blank: number of lines that are blank or hold null, false, 0 or "".
        header_lines: number of session headers; 1 in a sound file.
        torn_tail: whether the last line is torn; the next append closes it with a newline.
        unterminated: whether the last line lacks its newline, but is whole.

    Example:
        >>> from sessiontree import SessionManager
        >>> bool(SessionManager.in_memory("/code").open_report)
        False
    """

    def __init__(self, log: SessionLog) -> None:
        report = log.store.report()
        tail = log.store.tail()
        self._log = log
        self.skipped = report["skipped"]
        self.skipped_lines = tuple(SkippedLine(*row) for row in report["skipped_lines"])
        self.blank = report["blank"]
        self.header_lines = report["headers"]
        self.torn_tail = tail == "torn"
        self.unterminated = tail == "whole"

    @property
    def orphans(self) -> list[str]:
        """Ids of the entries whose parent is not in the file, in file order; computed when asked for."""
        with self._log.lock:
            store = self._log.store
            return [str(store.id(row)) for row in store.orphans().tolist()]

    @property
    def duplicate_ids(self) -> list[str]:
        """String ids that stand in more than one entry, in file order; computed when asked for."""
        with self._log.lock:
            store = self._log.store
            if store.distinct_ids() == len(store):
                return []
            rows = (row for row in range(len(store)) if store.has_text_id(row) and store.owner(row) != row)
            return list(dict.fromkeys(str(store.id(row)) for row in rows))

    def __bool__(self) -> bool:
        return bool(
            self.skipped or self.header_lines > 1 or self.torn_tail or self.orphans or self.duplicate_ids
        )

    def __repr__(self) -> str:
        return (
            f"OpenReport(skipped={self.skipped}, header_lines={self.header_lines}, "
            f"torn_tail={self.torn_tail}, orphans={len(self.orphans)}, duplicate_ids={len(self.duplicate_ids)})"
        )
