"""Warnings that point at the caller's line, however deep in this library they are given."""

from __future__ import annotations

import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from sessiontree.exceptions import SessionWarning


def warn(text: str, category: type[SessionWarning]) -> None:
    """Give a warning as if the first caller outside of this library had given it."""
    # `skip_file_prefixes` of warnings.warn does this from Python 3.12 on.
    level = 2  # 1 would be this function
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to a frame
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sessiontree."):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)
