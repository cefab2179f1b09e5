"""A settings file on disk: reading while others write, pi's lock, replacing in one step."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sessiontree._cachedir import cache_dir, check_ours, write_private
from sessiontree._native import create_file, replace_file, sweep
from sessiontree.exceptions import SettingsError
from sessiontree.jsontext import dumps
from sessiontree.paths import make_private_dirs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STALE_SECONDS: Final = 10.0
"""proper-lockfile's rule: a lock folder that was not touched for so long was left by a dead process."""
_LOCK_PATIENCE_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.02
_READ_ATTEMPTS: Final = 4


def read_text(path: Path, is_sound: Callable[[str], bool]) -> str:
    """The text of a file, empty if there is none.

    pi writes settings in place, so a reader can meet half a file: what is not sound is read again a few
    times before it is believed.
    """
    text = ""
    for attempt in range(_READ_ATTEMPTS):
        if attempt:
            time.sleep(_RETRY_SECONDS)
        try:
            text = path.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        if is_sound(text.removeprefix("\ufeff")):
            break
    return text


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a settings file, creating its folder.

    Raises:
        SettingsError: somebody else holds the lock and does not let go.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(path.name + ".lock")
    with _kernel_lock(path) as record:
        _remove_dead(folder, record)
        _take(folder, path)
        _note(folder, record)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _note(folder: Path, record: Path | None) -> None:
    """Write down which lock folder is ours: if this process is killed, the next one need not wait."""
    if record is not None:
        with contextlib.suppress(OSError):
            write_private(str(record), _mark(folder).encode())


def _remove_dead(folder: Path, record: Path | None) -> None:
    """Remove the lock folder that one of our own processes left; it is dead, for we have its kernel lock."""
    if record is not None:
        with contextlib.suppress(OSError):
            if record.read_text() == _mark(folder):
                folder.rmdir()


def _mark(folder: Path) -> str:
    """What tells a folder from one that is made later under its name."""
    stat = folder.stat()
    return f"{stat.st_ino} {stat.st_mtime_ns}"


@contextlib.contextmanager
def _kernel_lock(path: Path) -> Iterator[Path | None]:
    """Keep our own processes apart: the lock folder alone cannot, once one of two finds it stale.

    The lock file lies in the user's cache and not beside the settings, where it would turn up in projects.

    Yields:
        A file beside the lock file that only its holder uses; None without a lock.
    """
    import filelock

    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    try:
        check_ours(cache_dir())
        place = Path(cache_dir()) / "locks"
        make_private_dirs(str(place))
        lock = filelock.FileLock(place / f"{name}.lock", timeout=_LOCK_PATIENCE_SECONDS, mode=0o600)
        lock.acquire()
    except filelock.Timeout as error:
        raise _busy(path) from error
    except OSError:
        # Without a cache folder pi's lock has to do.
        yield None
        return
    try:
        yield place / f"{name}.held"
    finally:
        lock.release()


def _take(folder: Path, path: Path) -> None:
    deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            if _is_stale(folder):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            elif time.monotonic() > deadline:
                raise _busy(path) from None
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _is_stale(folder: Path) -> bool:
    try:
        return folder.stat().st_mtime < time.time() - _STALE_SECONDS
    except OSError:
        return False


def _busy(path: Path) -> SettingsError:
    text = f'"{path}" is locked by another program; nothing was changed, try again'
    return SettingsError(text, path=str(path))


def replace(path: Path, text: str) -> None:
    """Write a file in one step; a link stays a link, and its target keeps its mode."""
    data = text.encode("utf-8", "surrogatepass")
    sweep(path)
    try:
        replace_file(path, lambda: [data])
    except FileNotFoundError:
        create_file(path, [data], sync=True)


def pretty(value: Any, indent: str = "") -> str:
    """``JSON.stringify(value, null, 2)``, but for large integers, which keep all their digits."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        items = [f"{_plain(key)}: {pretty(item, inner)}" for key, item in value.items()]
        brackets = "{}"
    elif isinstance(value, list) and value:
        items = [pretty(item, inner) for item in value]
        brackets = "[]"
    else:
        return _plain(value)
    body = ",\n".join(inner + item for item in items)
    return f"{brackets[0]}\n{body}\n{indent}{brackets[1]}"


def _plain(value: Any) -> str:
    return dumps(value).decode("utf-8", "surrogatepass")
