"""Sessions of a project whose folder was renamed: they get its new name, and go where pi looks for them.

A session belongs to the directory that its header names, and lies in a folder named after it
(`sessiontree.paths`). After ``mv old new`` neither pi nor a listing finds the sessions of ``old`` any more.
`move` writes the new directory into the header and puts the file into the folder for it; every byte behind the
header's line stays, and so do the file's time, mode and name, by which it is found as before.

A session is moved in one step: the new file comes into being whole, under a name that nobody has, and only then
the old one goes, under the lock that all writers take and only if nobody has written to it meanwhile. What lies
beside a session under its name (images that were moved out, copies, archives) goes with it. If a move is
interrupted the rest can be moved by the same call.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat as modes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessiontree import jsontext, migrations, paths
from sessiontree._leafkept import leaf_kept
from sessiontree._native import SessionFiles, create_file, header_line, replace_file, splice_members
from sessiontree.exceptions import SessionConflictError, UnsupportedVersionError
from sessiontree.listing import scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    PathLike = str | os.PathLike[str]

__all__ = ["Move", "move", "plan"]

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one session.

    Attributes:
        source: its file.
        target: where its file goes; the same path if only its header changes.
        cwd: the directory that its header names afterwards; None if it names none.
        parent: the path of its parent session afterwards, where that is moved too; else None.
        companions: names of files and folders beside it that go along.
    """

    source: str
    target: str
    cwd: str | None
    parent: str | None
    companions: tuple[str, ...]


def plan(old: PathLike, new: PathLike, session_dir: PathLike | None = None) -> list[Move]:
    """Find the sessions of a directory and of those below it, and say what becomes of them.

    Args:
        old: the directory as it was called.
        new: as it is called now.
        session_dir: the folder of all sessions; if left out, pi's folders, one a directory.

    Returns:
        A move for each session, by path; nothing is written.

    Raises:
        OSError: a folder cannot be read.
        FileExistsError: a file is in the way; nothing is ever overwritten.
        ValueError: the two are the same directory.
    """
    before, after = paths.resolve_path(old), paths.resolve_path(new)
    if paths.paths_equal(before, after):
        raise ValueError(f"both are the same directory: {after!r}")
    if after.startswith(_below(before)):
        raise ValueError(f"a directory cannot have been moved into itself: {after!r}")
    found = dict(_found(before, after, session_dir))
    moves = []
    for source, (cwd, folder) in sorted(found.items()):
        target = os.path.join(folder, os.path.basename(source))
        parent = _parent(source, found)
        moves.append(Move(source, target, cwd, parent, () if target == source else _companions(source)))
    targets: set[str] = set()
    for each in moves:
        _check_free(each, targets)
        targets.add(each.target)
    return moves


def move(each: Move) -> None:
    """Move one session.

    Raises:
        OSError: it cannot be read or written; then it is where it was.
        FileExistsError: a file is in the way.
        SessionConflictError: somebody was writing to it; then it is where it was.
        UnsupportedVersionError: its version is newer than 3.
    """
    with open(each.source, "rb") as file:
        before = os.fstat(file.fileno())
    with leaf_kept(each.source, each.target):
        if each.source == each.target:
            replace_file(each.source, lambda: _parts(each))
            os.utime(each.target, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            _move_elsewhere(each)


def _move_elsewhere(each: Move) -> None:
    paths.make_private_dirs(os.path.dirname(each.target))

    # Nothing is replaced: it is called once the lock is held, and says that there is nothing to do.
    def go() -> None:
        _move_locked(each)

    replace_file(each.source, go)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(each.source))


def _move_locked(each: Move) -> None:
    before = os.stat(each.source)
    try:
        create_file(each.target, _parts(each), sync=True)
    except FileExistsError:
        if not _is_written(each):
            raise FileExistsError(errno.EEXIST, "a file is in the way", each.target) from None
    try:
        os.chmod(each.target, modes.S_IMODE(before.st_mode))
        os.utime(each.target, ns=(before.st_atime_ns, before.st_mtime_ns))
        moved = _with_companions(each)
    except BaseException:
        os.remove(each.target)
        raise
    now = os.stat(each.source)
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        for back, there in reversed(moved):
            os.rename(there, back)
        os.remove(each.target)
        raise SessionConflictError(f"another writer is at work on the session ({each.source})")
    os.remove(each.source)


def _with_companions(each: Move) -> list[tuple[str, str]]:
    """Rename what lies beside a session; all or nothing."""
    moved: list[tuple[str, str]] = []
    try:
        for name in each.companions:
            here = os.path.join(os.path.dirname(each.source), name)
            there = os.path.join(os.path.dirname(each.target), name)
            _rename_to_new(here, there)
            moved.append((here, there))
    except BaseException:
        for back, there in reversed(moved):
            os.rename(there, back)
        raise
    return moved


def _rename_to_new(here: str, there: str) -> None:
    if os.path.lexists(there):
        raise FileExistsError(errno.EEXIST, "a file is in the way", there)
    os.rename(here, there)


def _parts(each: Move) -> Iterator[bytes]:
    """Give the file with its new header; what is before and behind that line stays as it is."""
    line = header_line(each.source)
    header = jsontext.loads(line)
    if migrations.is_newer(header):
        raise UnsupportedVersionError(
            f"header version {header.get('version')!r} is newer than 3: nothing is changed ({each.source})"
        )
    changes = {}
    if each.cwd is not None:
        changes["cwd"] = json.dumps(each.cwd).encode()
    if each.parent is not None:
        changes["parentSession"] = json.dumps(each.parent).encode()
    return _spliced(each.source, line, splice_members(line, changes) if changes else line)


def _is_written(each: Move) -> bool:
    """Whether the target is what it is to become: a move was interrupted before the source went."""
    if os.path.islink(each.target) or not os.path.isfile(each.target):
        return False
    with open(each.target, "rb") as file:
        return all(file.read(len(part)) == part for part in _parts(each)) and not file.read(1)


def _spliced(path: str, old: bytes, new: bytes) -> Iterator[bytes]:
    with open(path, "rb") as file:
        head = file.read(len(old) + _PIECE)
        at = head.find(old)
        if at < 0:
            raise SessionConflictError(f"the session was changed meanwhile ({path})")
        yield head[:at] + new + head[at + len(old) :]
        while piece := file.read(_PIECE):
            yield piece


def _found(
    before: str, after: str, session_dir: PathLike | None
) -> Iterator[tuple[str, tuple[str | None, str]]]:
    """Give the sessions with the directory and the folder that they are to have."""
    folder, belongs = scope(before, session_dir)
    own = folder if session_dir is None else None
    root, depth = (paths.sessions_root(), "below") if session_dir is None else (folder, "own")
    below = _below(before)
    for path, cwd in _headers(root, depth):
        here = os.path.dirname(path)
        inside = cwd.startswith(below)
        if not inside and not (_is_same(cwd, before) or (here == own and belongs(cwd))):
            continue
        # A session without directory keeps having none; its folder says whose it is.
        wanted = os.path.join(after, cwd[len(below) :]) if inside else after
        target = here if session_dir is not None else paths.default_session_dir(wanted)
        yield path, (wanted if cwd else None, target)


def _below(folder: str) -> str:
    return folder if folder.endswith(os.sep) else folder + os.sep


def _headers(root: str, depth: Any) -> Iterator[tuple[str, str]]:
    try:
        files = SessionFiles.find(root, order="name", depth=depth)
    except FileNotFoundError:
        return
    while files is not None and (found := files.next_header()) is not None:
        yield found


def _is_same(cwd: str, directory: str) -> bool:
    try:
        return bool(cwd) and paths.paths_equal(paths.resolve_path(cwd), directory)
    except ValueError:
        return False


def _parent(source: str, found: dict[str, tuple[str | None, str]]) -> str | None:
    """Where a session's parent is afterwards, if it is moved."""
    parent = jsontext.loads(header_line(source)).get("parentSession")
    if not isinstance(parent, str) or parent not in found:
        return None
    return os.path.join(found[parent][1], os.path.basename(parent))


def _companions(source: str) -> tuple[str, ...]:
    folder, name = os.path.split(source)
    return tuple(sorted(other for other in os.listdir(folder) if other.startswith(f"{name}.")))


def _check_free(each: Move, taken: set[str]) -> None:
    if each.target == each.source:
        return
    names = (os.path.basename(each.target), *each.companions)
    for path in (os.path.join(os.path.dirname(each.target), name) for name in names):
        if path in taken or (os.path.lexists(path) and not (path == each.target and _is_written(each))):
            raise FileExistsError(errno.EEXIST, "a file is in the way", path)
