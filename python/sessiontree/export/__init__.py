"""Sessions as files for people and for other programs: HTML, Markdown, JSON Lines of one branch."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree.export.moved import MovedOut
    from sessiontree.manager import SessionManager

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl"}


def export_session(
    session: SessionManager,
    output: str | os.PathLike[str],
    *,
    format: str | None = None,
    leaf_id: str | None = None,
    redact: Any = None,
) -> None:
    """Write a session to a file, all or nothing.

    Images that `sessiontree.doctor.shrink` moved out are in it as if they had not been moved: what is
    written stands alone. Those that are lost or damaged are told by a `SessionWarning`.

    Args:
        session: the session; it is only read.
        output: the file; it must not exist, and its folder must: the name of one that does not is more likely
            a slip than a wish.
        format: "html" (all branches), "markdown" or "jsonl" (one branch); by the file's ending if
            left out.
        leaf_id: the entry whose branch is written, or shown first; the session's leaf if left out.
        redact: a `redact.Redactor`: called with the header and each entry, its ``text`` with labels, names
            and directories; gives what is written instead.

    Raises:
        ValueError: the format is not known.
        EntryNotFoundError: no entry has ``leaf_id``.
        ImportError: a library that the format needs is not installed.
        OSError: the file exists, its folder does not, or it cannot be written.

    Example:
        >>> from sessiontree import SessionManager
        >>> session = SessionManager.in_memory("/code")
        >>> _ = session.append_message({"role": "user", "content": "hello", "timestamp": 0})
        >>> "".join(parts(session, "markdown")).splitlines()[-1]
        'hello'
    """
    from sessiontree._native import create_file
    from sessiontree._warn import warn
    from sessiontree.exceptions import SessionWarning
    from sessiontree.export.moved import MovedOut

    name = os.fspath(output)
    chosen = format or format_of(name)
    _check_place(name)
    moved = MovedOut.of(session)
    pieces = parts(session, chosen, leaf_id=leaf_id, redact=redact, moved=moved)
    create_file(name, (piece.encode("utf-8", "replace") for piece in pieces))
    if moved.lost:
        count = "an image" if moved.lost == 1 else f"{moved.lost:,} images"
        warn(f"{count} that had been moved out of the session could not be brought back", SessionWarning)


def _check_place(name: str) -> None:
    """Refuse, before any work is done, a place where nothing can be written."""
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", name)
    if os.path.exists(name):
        raise FileExistsError(errno.EEXIST, "file exists", name)
    folder = os.path.dirname(os.path.abspath(name))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such directory", folder)


def format_of(path: str) -> str:
    """Give the format that a file's ending asks for.

    Raises:
        ValueError: the ending is not known.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise ValueError(f"the ending {ending!r} names no format; use one of {', '.join(sorted(FORMATS))}")
    return FORMATS[ending]


def parts(
    session: SessionManager,
    format: str,
    *,
    leaf_id: str | None = None,
    redact: Any = None,
    moved: MovedOut | None = None,
) -> Iterator[str]:
    """Give the text of an export piece by piece; see `export_session`.

    ``moved`` brings images back, and counts those that are lost; it is made if left out.
    """
    if moved is None:
        from sessiontree.export.moved import MovedOut

        moved = MovedOut.of(session)
    if leaf_id is None:
        leaf_id = session.get_leaf_id()
    if format == "html":
        from sessiontree.export.html import html_parts

        # No path is asked for: the page shows what it can of parents that form a cycle.
        row = None if leaf_id is None else session.find_row(leaf_id)
        return html_parts(session, -1 if row is None else row, redact, moved)
    path = session.path_rows(leaf_id).tolist() if leaf_id is not None else []
    if format == "markdown":
        from sessiontree.export.markdown import markdown_parts

        return markdown_parts(session, path, redact, moved)
    if format == "jsonl":
        return _lines(session, path, redact, moved)
    raise ValueError(f"unknown format {format!r}: use 'html', 'markdown' or 'jsonl'")


def _lines(session: SessionManager, path: list[int], redact: Any, moved: MovedOut) -> Iterator[str]:
    """Give the branch as a session file of its own: header, then the entries, each the child of the one before."""
    from sessiontree import jsontext

    header = session.get_header()
    yield jsontext.dumps(redact(header) if redact else header).decode() + "\n"
    parent = None
    for row in path:
        entry = moved.restore(session._log.entry(row))  # noqa: SLF001 - rows are the manager's own
        if isinstance(entry, dict):
            entry["parentId"] = parent
            parent = entry.get("id")
        yield jsontext.dumps(redact(entry) if redact else entry).decode() + "\n"
