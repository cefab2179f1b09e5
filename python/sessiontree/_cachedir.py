"""Where caches lie."""

from __future__ import annotations

import contextlib
import os

from sessiontree._native import create_file
from sessiontree.paths import make_private_dirs

CACHE_DIR_VARIABLE = "SESSIONTREE_CACHE_DIR"
CACHE_VARIABLE = "SESSIONTREE_CACHE"
"""Set to "off", it turns saved indexes off."""

WORTH_SAVING = 4 << 20
"""Smaller files, in bytes, are scanned in the time that a look into the cache would take."""


def cache_dir() -> str:
    """Give the folder of all caches: ``SESSIONTREE_CACHE_DIR``, or the user's own cache folder."""
    given = os.environ.get(CACHE_DIR_VARIABLE)
    if given:
        return given
    import platformdirs

    return platformdirs.user_cache_dir("sessiontree", appauthor=False)


def index_dir(path: str) -> str | None:
    """Give the folder of saved indexes for a session file; None for a small one, or where they are off."""
    if os.environ.get(CACHE_VARIABLE) == "off":
        return None
    try:
        if os.path.getsize(path) < WORTH_SAVING:
            return None
    except OSError:
        return None
    cache = cache_dir()
    return os.path.join(cache, "index") if is_ours(cache) else None


def is_ours(folder: str) -> bool:
    """Whether nobody else can put files into a cache folder, or there is none yet.

    Who can may let a saved index or a catalog say what it likes; so such a folder is not used.
    """
    try:
        stat = os.stat(folder)
    except OSError:
        return True
    return os.name == "nt" or (stat.st_uid in (os.geteuid(), 0) and not stat.st_mode & 0o002)


def check_ours(folder: str) -> None:
    """Refuse a cache folder that others can put files into.

    Raises:
        PermissionError: they can.
    """
    if not is_ours(folder):
        raise PermissionError(1, "others may write to the cache folder", folder)


def write_private(path: str, data: bytes) -> None:
    """Replace a file of the cache in one step; nobody else can read it, and no link is followed.

    Raises:
        OSError: it cannot be written; then the old one is as it was.
    """
    folder = os.path.dirname(path)
    check_ours(os.path.dirname(folder))
    make_private_dirs(folder)
    # One name for all writers: what a killed one has left goes with the next record.
    new = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    try:
        create_file(new, [data])
        os.replace(new, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
