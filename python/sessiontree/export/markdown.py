"""A session as a Markdown document: one branch, root first.

Texts of messages are Markdown by intent, but they come from anywhere. So HTML in them is escaped where
it would be HTML, a code block that they leave open is closed, and control characters are shown instead
of sent: the document ends up in terminals, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sessiontree._images import is_mark
from sessiontree.export.model import items
from sessiontree.export.moved import LOST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sessiontree.export.model import Item, Part
    from sessiontree.export.moved import MovedOut
    from sessiontree.manager import SessionManager

_TICKS = re.compile(r"`{3,}")
_MEDIA_TYPE = re.compile(r"image/[a-z0-9.+-]+\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*\Z")
# Controls but for tab and LF, marks that reorder text, line separators, lone surrogates.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FENCE = re.compile(r"(?: {0,3}|\s*(?:[-*+>]|\d+[.)])\s+)(`{3,}|~{3,})(.*)")
_CODE_OR_TAG = re.compile(r"(`+)(?!`)[\s\S]*?[^`]\1(?!`)|\\[\s\S]|<(?=[A-Za-z/!?])(?!https?://|mailto:)")


def markdown_parts(
    session: SessionManager, rows: Any, change: Any = None, moved: MovedOut | None = None
) -> Iterator[str]:
    """Give the document piece by piece.

    Args:
        session: the session.
        rows: the rows to write, in order.
        change: applied to everything that is shown first; a `Redactor`.
        moved: brings images back that were moved out.
    """
    name, cwd = session.get_session_name() or session.get_session_id(), session.get_cwd()
    if change is not None:
        name, cwd = change.text(name), change.text(cwd)
    yield f"# {_one_line(name)}\n\nSession {_quoted(session.get_session_id())} of {_quoted(cwd)}\n"
    for item in items(session, rows, change, moved):
        yield shown(_item(item))


def shown(text: str) -> str:
    r"""Show control characters as escapes; a CR before an LF goes.

    Example:
        >>> shown("\x1b[2Jgone\r\n")
        '\\x1b[2Jgone\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _one_line(text: str) -> str:
    """Give text as a part of a line, with nothing in it that is HTML."""
    return _escaped(shown(" ".join(text.split())))


def _quoted(text: str) -> str:
    """Give text as code on a line; a tick would end it."""
    return f"`{shown(' '.join(text.split())).replace('`', chr(39))}`"


def _item(item: Item) -> str:
    label = f" — {_one_line(item.label)}" if item.label else ""
    head = (
        f"\n## {_one_line(item.title)}{label}\n\n<sub>{_one_line(item.time)} · {_one_line(item.id)}</sub>\n"
    )
    return head + "".join(f"\n{_part(part)}\n" for part in item.parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _part(part: Part) -> str:
    if part.kind == "markdown":
        return contained(part.text)
    if part.kind == "plain":
        return _one_line(part.text)
    if part.kind == "image":
        return _image(part)
    language = {"json": "json", "call": "json"}.get(part.kind, "text")
    if part.kind == "call" and part.title == "bash" and not part.text.startswith("{"):
        language = "text"
    title = f"**{_one_line(part.title)}**\n\n" if part.title else ""
    return title + fenced(part.text, language)


def contained(text: str) -> str:
    r"""Give Markdown that has no HTML and leaves no code block open.

    Example:
        >>> contained("see <b>this</b>, `<b>` and <https://example.org>")
        'see \\<b>this\\</b>, `<b>` and <https://example.org>'
        >>> contained("~~~\nopen")
        '~~~\nopen\n~~~'
    """
    done: list[str] = []
    prose: list[str] = []
    fence = ""

    def end_prose() -> None:
        if prose:
            done.append(_without_html("\n".join(prose)))
            prose.clear()

    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            done.append(line)
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            end_prose()
            done.append(line)
            fence = found[1]
        else:
            prose.append(line)
    end_prose()
    return "\n".join([*done, fence] if fence else done)


def _without_html(prose: str) -> str:
    """Escape what begins a tag or a comment, but in code; paragraph by paragraph, as code ends with one."""
    paragraphs = re.split(r"(\n[ \t]*\n)", prose)
    return "".join(_CODE_OR_TAG.sub(lambda m: "\\<" if m[0] == "<" else m[0], part) for part in paragraphs)


def fenced(text: str, language: str) -> str:
    """Put text into a fence that nothing inside it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _image(part: Part) -> str:
    if is_mark(part.text):
        return _one_line(LOST)
    if not is_image(part):
        return fenced(part.text[:200], "text")
    return f"![image](data:{part.title};base64,{''.join(part.text.split())})"


def is_image(part: Part) -> bool:
    """Say whether a part is what it claims: an image type, and base64."""
    return is_image_data(part.title, part.text)


def is_image_data(media_type: str, data: str) -> bool:
    """Say whether this is the base64 of an image that cannot hold scripts, as SVG can."""
    return bool(_MEDIA_TYPE.match(media_type) and media_type != "image/svg+xml" and _BASE64.match(data))
