"""What folders look like: the names of their session files with sizes and times, and nothing read.

A folder is remembered as two byte strings, so that one that has not changed costs a comparison.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from sessiontree._native import look_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    OnError = Callable[[str, Exception], object]

_UNKNOWN: Final = (0, 0, 0)
"""The stat of a file that is to be looked at again, whatever it looks like."""

Stat = tuple[int, int, int]


class Look(NamedTuple):
    """A folder's session files: names, and (size, mtime in ns, inode) of each, in bytes."""

    names: bytes
    stats: bytes

    def files(self) -> dict[str, Stat]:
        """The stat of each name."""
        names = os.fsdecode(self.names).split("\0") if self.names else []
        flat = array("Q", self.stats)
        return dict(zip(names, zip(flat[::3], flat[1::3], flat[2::3], strict=True), strict=True))

    def without(self, doubtful: set[str]) -> Look:
        """The same, but some files are to be looked at again."""
        if not doubtful:
            return self
        files = self.files()
        flat = [n for name in files for n in (_UNKNOWN if name in doubtful else files[name])]
        return Look(self.names, array("Q", flat).tobytes())


NOTHING: Final = Look(b"", b"")


class Scan:
    """The folders of some roots, as they look now.

    Attributes:
        roots: the roots whose folders are all known; one that does not exist has none.
        folders: what each folder looks like.
        failed: folders that exist and could not be read.
        files: how many files there are.
    """

    def __init__(self, on_error: OnError | None) -> None:
        self.roots: set[str] = set()
        self.folders: dict[str, Look] = {}
        self.failed: set[str] = set()
        self.files = 0
        self._on_error = on_error

    @property
    def complete(self) -> bool:
        """Whether everything was seen."""
        return not self.failed

    def add_root(self, root: str, go_on: Callable[[], None]) -> None:
        """Look at a folder and its folders."""
        below: list[str] = []
        if self._add(root, below):
            self.roots.add(root)
        for folder in below:
            go_on()
            self._add(folder, None)

    def covers(self, folder: str, parent: str) -> bool:
        """Whether a folder that was not found is gone."""
        return (folder in self.roots or parent in self.roots) and folder not in self.failed

    def _add(self, folder: str, below: list[str] | None) -> bool:
        try:
            look = self._read(folder, below)
        except FileNotFoundError:
            return True
        except NotADirectoryError:
            return below is None
        except OSError as error:
            self._fail(folder, error)
            return False
        if look.names:
            self.folders[folder] = look
        return True

    def _fail(self, path: str, error: OSError) -> None:
        self.failed.add(path)
        if self._on_error is not None:
            self._on_error(path, error)

    def _read(self, folder: str, below: list[str] | None) -> Look:
        names, stats, count, folders, failed = look_at(folder)
        for path, error in failed:
            self._fail(path, error)
        if below is not None:
            below += folders
        self.files += count
        return Look(names, stats)


class Change(NamedTuple):
    """A file that is new or looks different."""

    path: str
    folder: str
    size: int
    mtime_ns: int


def changes(scan: Scan, known: dict[str, Look]) -> Iterator[Change]:
    """Give the files that are new or look different."""
    for folder, look in scan.folders.items():
        before = known.get(folder, NOTHING)
        if before == look:
            continue
        old = before.files()
        for name, stat in look.files().items():
            if stat == _UNKNOWN or old.get(name) != stat:
                yield Change(os.path.join(folder, name), folder, stat[0], stat[1])


def missing(scan: Scan, known: dict[str, tuple[str, Look]]) -> Iterator[str]:
    """Give the files that were there and are not any more; a folder that could not be read keeps all."""
    for folder, (parent, look) in known.items():
        now = scan.folders.get(folder)
        if now == look or (now is None and not scan.covers(folder, parent)):
            continue
        left = now.files() if now is not None else {}
        yield from (os.path.join(folder, name) for name in look.files() if name not in left)
