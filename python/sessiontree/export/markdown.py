"""A session as a Markdown document: one branch, root first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sessiontree.export.model import items

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sessiontree.export.model import Item, Part
    from sessiontree.manager import SessionManager

_TICKS = re.compile(r"`{3,}")
_MEDIA_TYPE = re.compile(r"image/[a-z0-9.+-]+\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*\Z")


def markdown_parts(session: SessionManager, rows: Any, change: Any = None) -> Iterator[str]:
    """Give the document piece by piece.

    Args:
        session: the session.
        rows: the rows to write, in order.
        change: applied to each entry first; a `Redactor`.
    """
    name = session.get_session_name() or session.get_session_id()
    yield f"# {_one_line(name)}\n\nSession `{session.get_session_id()}` of `{_one_line(session.get_cwd())}`\n"
    for item in items(session, rows, change):
        yield _item(item)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _item(item: Item) -> str:
    label = f" — {_one_line(item.label)}" if item.label else ""
    head = f"\n## {_one_line(item.title)}{label}\n\n<sub>{_escaped(item.time)} · {_escaped(item.id)}</sub>\n"
    return head + "".join(f"\n{_part(part)}\n" for part in item.parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _part(part: Part) -> str:
    if part.kind == "markdown":
        return part.text
    if part.kind == "image":
        return _image(part)
    language = {"json": "json", "call": "json"}.get(part.kind, "text")
    if part.kind == "call" and part.title == "bash":
        language = "text"
    title = f"**{_one_line(part.title)}**\n\n" if part.title else ""
    return title + fenced(part.text, language)


def fenced(text: str, language: str) -> str:
    """Put text into a fence that nothing inside it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _image(part: Part) -> str:
    if not is_image(part):
        return fenced(part.text[:200], "text")
    return f"![image](data:{part.title};base64,{''.join(part.text.split())})"


def is_image(part: Part) -> bool:
    """Say whether a part is what it claims: an image type, and base64."""
    return bool(_MEDIA_TYPE.match(part.title) and part.title != "image/svg+xml" and _BASE64.match(part.text))
