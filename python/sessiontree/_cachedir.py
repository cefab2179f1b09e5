"""Where caches lie."""

from __future__ import annotations

import os

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
    return os.path.join(cache_dir(), "index")
