"""Lazy sequences over the rows of a session: bodies are parsed when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sessiontree._native import Rows
    from sessiontree.log import SessionLog

_BATCH = 256


class _RowSequence(Sequence):  # type: ignore[type-arg]
    """What the sequences share: rows, and a check that they still mean what they meant."""

    __slots__ = ("_generation", "_log", "_rows")

    _MOST = _BATCH
    """How many are read at once, once so many were wanted."""

    def __init__(self, log: SessionLog, rows: Rows | range, generation: int | None = None) -> None:
        self._log = log
        self._rows = rows
        self._generation = log.generation if generation is None else generation

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[int]:
        """The rows of what is in it: places in `get_entries` and in `columns`. Nothing is read."""
        return self._rows.tolist() if hasattr(self._rows, "tolist") else list(self._rows)

    def _of(self, rows: Rows | range) -> _RowSequence:
        return type(self)(self._log, rows, self._generation)

    def _read(self, rows: Rows | range) -> list[Any]:
        """Give what stands at the rows; the lock is held, and the rows mean what they meant."""
        raise NotImplementedError

    def _batch(self, rows: Rows | range) -> list[Any]:
        with self._log.lock:
            self._log.check_generation(self._generation)
            return self._read(rows)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._of(self._rows[index])
        try:
            row = self._rows[index]
        except TypeError:
            hint = ", use get_entry(id) for an id" if isinstance(index, str) else ""
            raise TypeError(f"an index must be an int or a slice, not {type(index).__name__}{hint}") from None
        except IndexError:
            raise IndexError(f"there is no entry {index}, there are {len(self._rows)}") from None
        return self._batch(range(row, row + 1))[0]

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._batches())

    def _batches(self) -> Iterator[list[Any]]:
        start, size = 0, _BATCH
        while start < len(self._rows):
            yield self._batch(self._rows[start : start + size])
            start, size = start + size, min(self._MOST, size * 4)

    def __reversed__(self) -> Iterator[Any]:
        for end in range(len(self._rows), 0, -_BATCH):
            yield from reversed(self._batch(self._rows[max(0, end - _BATCH) : end]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)) or len(other) != len(self):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"


class EntrySequence(_RowSequence):
    """Entries as dicts, parsed on access; every access gives a fresh dict.

    Example:
        >>> from sessiontree import SessionManager
        >>> session = SessionManager.in_memory("/code")
        >>> _ = session.append_message({"role": "user", "content": "hello", "timestamp": 0})
        >>> session.get_entries()[-1]["message"]["content"]
        'hello'
    """

    __slots__ = ()

    def _read(self, rows: Rows | range) -> list[Any]:
        return self._log.entries(rows)


class IdSequence(_RowSequence):
    """Ids of entries; no body is read for them."""

    __slots__ = ()

    _MOST = 1 << 16

    def _read(self, rows: Rows | range) -> list[Any]:
        return self._log.store.ids(rows)
