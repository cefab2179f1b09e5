"""Where a session was left, carried over a change of its file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sessiontree.manager import SessionManager
from sessiontree.remembered import may_recall

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def leaf_kept(source: str, target: str | None = None) -> Iterator[None]:
    """Let a session stand where it stood, if somebody has navigated there and the entry is left.

    Args:
        source: its file before the change.
        target: its file afterwards, if that is another one.
    """
    remembered = _left_at(source)
    yield
    if remembered is not None:
        with SessionManager.open(target or source, remember_leaf=True) as session:
            if session.get_entry(remembered) is not None:
                session.branch(remembered)


def _left_at(path: str) -> str | None:
    """Give the entry that somebody has navigated to; None if a session stands on its last one, or on none."""
    if not may_recall(path):
        return None
    with SessionManager.open(path, read_only=True, remember_leaf=True) as session:
        row = session._log.store.leaf()  # noqa: SLF001 - where it would stand if nobody had navigated
        leaf = session.get_leaf_id()
        return None if leaf is None or row is None or session.find_row(leaf) == row else leaf
