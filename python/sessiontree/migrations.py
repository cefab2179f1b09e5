"""Older versions of the format, brought to the current one."""

from __future__ import annotations

from sessiontree.entries import CURRENT_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def header_version(header: Any) -> float:
    """Give a header's version as JavaScript's Number() sees it."""
    version = header.get("version")
    if version is None:
        return 1
    try:
        return float(version)
    except (TypeError, ValueError):
        return float("nan")


def needs_migration(header: Any) -> bool:
    """Say whether a file with this header is of an older version."""
    return header_version(header) < CURRENT_SESSION_VERSION
