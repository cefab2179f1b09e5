"""One session as the viewer looks at it: through windows, whatever its size.

Entries are named by their rows. Rows mean something only as long as the file is the one that was opened,
so everything comes with a stamp; who asks with an old one is told so (`StaleError`) and starts over.
"""

from __future__ import annotations

import base64
import os
import re
import threading
import time
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from sessiontree import SessionManager
from sessiontree.exceptions import SessionFileLostError
from sessiontree.export.draw import Drawer
from sessiontree.export.html import title_of
from sessiontree.export.markdown import is_image
from sessiontree.export.model import clear, items
from sessiontree.export.moved import MovedOut
from sessiontree.export.outline import Outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from sessiontree.export.model import Item

LONGEST = 40_000
"""Characters of one text that are shown at first."""

LONGEST_WHOLE = 5_000_000
"""And when all of it is asked for."""

_BYTES_AT_ONCE = 4 << 20
_ENTRIES_AT_ONCE = 64
_HTML_AT_ONCE = 500_000
_WORTH_A_LOOK = 256 << 10
_SEARCH_SECONDS = 0.25
_PATHS = 4
_ROW = re.compile(r"e(?:0|[1-9][0-9]{0,14})")

# What stands in a line of JSON as it is shown: ASCII, but for quotes, backslashes, and signs of JSON that are
# shown with blanks around them. And words that are shown without standing there.
_AS_IT_IS = re.compile(r"[ !#-+\--9;-Z^-z|~]+")
_OWN_WORDS = "thinking bash output error (failed)"
_MODEL_CHANGE = 2


class StaleError(Exception):
    """The rows of the request are those of a file that is not there any more."""


class OpenedSession:
    """A session that is being looked at. All methods are safe from any thread.

    Args:
        path: the session's file; it is only read.
        image_address: gives the address of an image by row and part.

    Raises:
        OSError: the file cannot be read.
        InvalidSessionError: it is no session.
    """

    def __init__(self, path: str, image_address: Callable[[Item, int], str] | None = None) -> None:
        self._name = path
        self._image_address = image_address
        self._paths: OrderedDict[int, npt.NDArray[np.int64]] = OrderedDict()
        self._lock = threading.RLock()
        self._open()

    # ---- keeping up

    def _open(self) -> None:
        self._session = SessionManager.open(self._name, read_only=True)
        self._log = self._session._log  # noqa: SLF001 - rows are what windows are made of
        self._file = f"{os.stat(self._name).st_ino:x}-{zlib.crc32(self._log.store.header()):x}"
        self._lay()

    def _lay(self) -> None:
        self._generation = self._log.generation
        self._parents = self._session.columns()["parent"]
        self._outline = Outline(self._parents.tolist())
        self._paths.clear()

    def refresh(self) -> dict[str, Any]:
        """Take in the whole lines that were appended; gives the `state`.

        Raises:
            OSError: the file is gone.
            InvalidSessionError: it is no session any more.
        """
        with self._lock:
            try:
                self._session.refresh()
            except SessionFileLostError:
                # Another session lies there now: it is shown from here on, under a stamp of its own.
                self._open()
            if self._generation != self._log.generation:
                self._lay()
            elif len(self._log.store) != len(self._parents):
                self._grow()
            return self.state()

    def _grow(self) -> None:
        before, self._parents = self._parents, self._session.columns()["parent"]
        # New entries may be the parents that older ones waited for, or take over the children of their ids.
        if np.array_equal(before, self._parents[: len(before)]):
            self._outline.grow(self._parents[len(before) :].tolist())
        else:
            self._lay()

    def state(self) -> dict[str, Any]:
        """Give what changes while a session grows: stamp, number of entries, leaf's row, title, facts."""
        with self._lock:
            leaf = self._log.store.leaf()
            title, facts = title_of(self._session)
            return {
                "stamp": self.stamp,
                "count": len(self._outline),
                "leaf": -1 if leaf is None else leaf,
                "labels": len(self._session.get_labels()),
                "title": title,
                "facts": facts,
            }

    @property
    def stamp(self) -> str:
        """What tells this file from one that was put in its place."""
        return f"{self._file}-{self._generation}"

    def check(self, stamp: str) -> None:
        """Refuse rows of another file.

        Raises:
            StaleError: the stamp is not that of the file as it is now.
        """
        if stamp != self.stamp:
            raise StaleError

    # ---- branches

    def _path(self, leaf: int) -> npt.NDArray[np.int64]:
        """The rows of a branch, root first; where parents form a cycle, up to its beginning."""
        path = self._paths.pop(leaf, None)
        if path is None:
            inside = 0 <= leaf < len(self._outline)
            path = self._log.store.path_until_cycle(leaf)[0].numpy() if inside else np.empty(0, np.int64)
        self._paths[leaf] = path
        if len(self._paths) > _PATHS:
            self._paths.popitem(last=False)
        return path

    def place(self, name: str, leaf: int = -1) -> dict[str, Any]:
        """Say where an entry stands.

        Args:
            name: an entry's id, or ``e`` and its row; "" for the session's leaf.
            leaf: the branch that is shown; it stays if the entry is on it.

        Returns:
            ``row`` (-1 for an entry that does not exist), ``leaf`` and ``length`` of the branch that has it,
            its ``index`` there, and its ``line`` in the tree.
        """
        with self._lock:
            row = self._row(name)
            if row < 0:
                return {"row": -1}
            index = np.flatnonzero(self._path(leaf) == row)
            if not len(index):
                leaf = self._outline.deepest(row) if name else row
                index = np.flatnonzero(self._path(leaf) == row)
            return {
                "row": row,
                "leaf": leaf,
                "length": len(self._path(leaf)),
                # In a cycle, the walk up from the end need not come by.
                "index": int(index[0]) if len(index) else 0,
                "line": self._outline.line[row],
            }

    def _row(self, name: str) -> int:
        if not name:
            leaf = self._log.store.leaf()
            return len(self._outline) - 1 if leaf is None else leaf
        # Rows come first: an id may look like one.
        if _ROW.fullmatch(name) and int(name[1:]) < len(self._outline):
            return int(name[1:])
        row = self._log.store.find(name)
        return row if row is not None and row < len(self._outline) else -1

    def row_at(self, leaf: int, index: int) -> int:
        """Give the row at a place of a branch, or of its nearer end; -1 for an empty one."""
        with self._lock:
            path = self._path(leaf)
            return int(path[max(0, min(index, len(path) - 1))]) if len(path) else -1

    # ---- windows

    def lines(self, leaf: int, start: int, count: int) -> list[tuple[int, int, bool, str, str, str]]:
        """Give lines of the tree: row, depth, whether on the branch of ``leaf``, kind, words, label."""
        with self._lock:
            rows = self._outline.order[max(0, start) : max(0, start) + min(count, 500)].tolist()
            on = set(np.intersect1d(self._path(leaf), np.array(rows, np.int64)).tolist())
            store = self._log.store
            shown = {row: self._words(row) for row in rows if store.span(row)[1] > _WORTH_A_LOOK}
            for item in self._items([row for row in rows if row not in shown]):
                shown[item.row] = clear(item.kind), item.first_words, clear(item.label)
            return [(row, self._outline.depth[row], row in on, *shown[row]) for row in rows]

    def _words(self, row: int) -> tuple[str, str, str]:
        """Describe an entry that is too long to be parsed for a line."""
        id = self._log.store.id(row)
        label = self._session.get_label(id) if isinstance(id, str) else None
        return "long entry", f"{self._log.store.span(row)[1]:,} bytes", clear(str(label or ""))

    def entries(self, leaf: int, start: int, count: int) -> list[str]:
        """Draw entries of a branch: at least one if there is one, then as many as make half a megabyte."""
        drawn: list[str] = []
        size = 0
        drawer = Drawer(LONGEST, self._image_address)
        with self._lock:
            rows = self._path(leaf)[max(0, start) : max(0, start) + count].tolist()
            for item in self._items(rows, MovedOut.of(self._session)):
                drawn.append(drawer.article(item))
                size += len(drawn[-1])
                if size > _HTML_AT_ONCE:
                    break
        return drawn

    def entry(self, row: int) -> str:
        """Draw one entry with all its text, up to `LONGEST_WHOLE` characters a part; "" if there is none."""
        item = self._item(row)
        return Drawer(LONGEST_WHOLE, self._image_address).article(item) if item else ""

    def image(self, row: int, part: int) -> tuple[str, bytes] | None:
        """Give the media type and bytes of an image; None where there is none."""
        item = self._item(row)
        if item is None or not 0 <= part < len(item.parts):
            return None
        found = item.parts[part]
        if found.kind != "image" or not is_image(found):
            return None
        try:
            return found.title, base64.b64decode("".join(found.text.split()) + "===")
        except ValueError:
            return None

    def find(self, words: str, start: int) -> tuple[list[int], int | None]:
        """Look for text in all entries from a row on, for a quarter of a second.

        Returns:
            The rows that were found, and the row to go on from; None at the end.
        """
        words = words.lower()
        found: list[int] = []
        until = time.monotonic() + _SEARCH_SECONDS
        labelled = {row for row, label in self.labels() if words in label.lower()}
        for batch in self._batches(range(max(0, start), len(self._outline))):
            with self._lock:
                likely = self._likely(batch, words, labelled)
                found += [
                    item.row for item in items(self._session, likely) if words in item.all_text().lower()
                ]
            if time.monotonic() > until:
                after = batch[-1] + 1
                return found, after if after < len(self._outline) else None
        return found, None

    def _likely(self, rows: list[int], words: str, labelled: set[int]) -> list[int]:
        """Leave out rows whose lines cannot have the words: to parse 500 MB would take half a minute."""
        if not _AS_IT_IS.fullmatch(words) or words in _OWN_WORDS:
            return rows
        needle, store = words.encode(), self._log.store

        def may_have(row: int, line: bytes) -> bool:
            # A line may also have letters and slashes as escapes.
            as_escape = b"\\u00" in line or b"\\/" in line
            elsewhere = row in labelled or store.kind(row) == _MODEL_CHANGE
            return as_escape or elsewhere or needle in line.lower()

        return [row for row, line in zip(rows, store.lines(rows), strict=True) if may_have(row, line)]

    def labels(self) -> list[tuple[int, str]]:
        """Give rows and labels, in the order in which they were first set."""
        with self._lock:
            rows = [(self._log.store.find(id), clear(str(label))) for id, label in self._session.get_labels()]
            return [(row, label) for row, label in rows if row is not None]

    def _item(self, row: int) -> Item | None:
        with self._lock:
            if not 0 <= row < len(self._outline):
                return None
            return next(self._items([row], MovedOut.of(self._session)), None)

    def _items(self, rows: Sequence[int], moved: MovedOut | None = None) -> Iterator[Item]:
        """Give items; images that were moved out are read only where they are shown."""
        for batch in self._batches(rows):
            yield from items(self._session, batch, moved=moved)

    def _batches(self, rows: Iterable[int]) -> Iterator[list[int]]:
        """Cut rows into batches that are few, and short when taken together."""
        batch: list[int] = []
        size = 0
        for row in rows:
            batch.append(row)
            size += self._log.store.span(row)[1]
            if size > _BYTES_AT_ONCE or len(batch) >= _ENTRIES_AT_ONCE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch
