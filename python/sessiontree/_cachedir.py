"""Where caches lie."""

from __future__ import annotations

import os

CACHE_DIR_VARIABLE = "SESSIONTREE_CACHE_DIR"


def cache_dir() -> str:
    """Give the folder of all caches: ``SESSIONTREE_CACHE_DIR``, or the user's own cache folder."""
    given = os.environ.get(CACHE_DIR_VARIABLE)
    if given:
        return given
    import platformdirs

    return platformdirs.user_cache_dir("sessiontree", appauthor=False)
