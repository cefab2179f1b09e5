"""Where a session was left, carried over a change of its file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sessiontree.manager import SessionManager

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def leaf_kept(source: str, target: str | None = None) -> Iterator[None]:
    """Let a session stand where it stood, if somebody has navigated there and the entry is left.

    Args:
        source: its file before the change.
        target: its file afterwards, if that is another one.
    """
    with SessionManager.open(source, read_only=True, remember_leaf=True) as session:
        remembered = session.get_leaf_id()
    with SessionManager.open(source, read_only=True) as session:
        moved = remembered != session.get_leaf_id()
    yield
    if moved and remembered is not None:
        with SessionManager.open(target or source, remember_leaf=True) as session:
            if session.get_entry(remembered) is not None:
                session.branch(remembered)
