"""A session as one HTML file that opens offline: every branch, searchable, and nothing of it runs.

The content is drawn here, as text: Markdown by markdown-it-py with HTML switched off, code by
Pygments. The page's own script and style are the only ones that the page's Content-Security-Policy
lets run, by their hashes; nothing is loaded from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from typing import TYPE_CHECKING, Any

from sessiontree import jsontext
from sessiontree.export.markdown import is_image
from sessiontree.export.model import items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sessiontree.export.model import Item, Part
    from sessiontree.manager import SessionManager

_NEEDS = "HTML export needs markdown-it-py and Pygments: pip install 'sessiontree[export]'"
_LONGEST_HIGHLIGHT = 50_000
"""Characters of code that are highlighted; longer ones are shown plain."""

_FOLDED = ("thinking", "call", "result", "json")


def html_parts(session: SessionManager, leaf_row: int, change: Any = None) -> Iterator[str]:
    """Give the page piece by piece.

    Args:
        session: the session; all its branches are on the page.
        leaf_row: the row of the entry whose branch is shown first; -1 for none.
        change: applied to each entry first; a `Redactor`.

    Raises:
        ImportError: the libraries that draw Markdown and code are not installed.
    """
    draw = _drawer()
    style = _asset("page.css") + _code_style()
    script = _asset("page.js")
    name = session.get_session_name() or session.get_session_id()
    yield _head(name, style, script)
    yield _top(session, name)
    nodes = []
    yield '<main id="entries">\n'
    for item in items(session, range(session.get_entries().__len__()), change):
        nodes.append(_node(item))
        yield _article(item, draw)
    yield "</main>\n"
    yield _data({"nodes": nodes, "leaf": leaf_row})
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _node(item: Item) -> list[Any]:
    return [item.row, item.parent, item.kind, item.first_words, item.label, item.id]


def _asset(name: str) -> str:
    return resources.files("sessiontree.export").joinpath("assets", name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Give the Content-Security-Policy that lets only this style and this script work."""
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _head(name: str, style: str, script: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(style, script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(name)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


def _top(session: SessionManager, name: str) -> str:
    return (
        "<header>"
        f"<h1>{_safe(name)}</h1>"
        f'<p class="facts">{_safe(session.get_cwd())} · {len(session.get_entries())} entries</p>'
        '<input id="search" type="search" placeholder="Search (press /)" aria-label="Search">'
        '<span id="found" role="status"></span>'
        '<button id="theme" title="Dark or light (t)">◐</button>'
        "</header>\n"
        '<nav id="tree" aria-label="Branches"></nav>\n'
    )


def _data(value: Any) -> str:
    # "<" is escaped, so that no text can end the element; a type that is no script never runs.
    text = jsontext.js_stringify(value).encode("utf-8", "replace").decode().replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>\n'


def _safe(text: str) -> str:
    """Escape text; what HTML cannot hold becomes U+FFFD."""
    return html.escape(
        "".join(c if _allowed(c) else "\ufffd" for c in text) if not text.isprintable() else text
    )


def _allowed(c: str) -> bool:
    return c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f" and not "\ud800" <= c <= "\udfff")


def _article(item: Item, draw: Callable[[str], str]) -> str:
    label = f'<span class="label">{_safe(item.label)}</span>' if item.label else ""
    head = (
        f'<article id="e{item.row}" data-id="{_safe(item.id)}" class="k-{_css(item.kind)}" tabindex="-1">'
        f'<h2><a href="#e{item.row}">{_safe(item.title)}</a>{label}'
        f"<time>{_safe(item.time)}</time></h2>"
    )
    return head + "".join(_part(part, draw) for part in item.parts) + "</article>\n"


def _css(kind: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in kind)[:40]


def _part(part: Part, draw: Callable[[str], str]) -> str:
    if part.kind == "markdown":
        return f'<div class="md">{draw(part.text)}</div>'
    if part.kind == "image":
        return _image(part)
    if part.kind == "plain":
        return f"<p>{_safe(part.text)}</p>"
    body = _code(part.text, "json") if part.kind in ("json", "call") else f"<pre>{_safe(part.text)}</pre>"
    title = part.title or ("Data" if part.kind == "json" else part.kind)
    if part.kind in _FOLDED:
        size = f'<span class="size">{len(part.text):,} characters</span>'
        return f'<details class="{part.kind}"><summary>{_safe(title)} {size}</summary>{body}</details>'
    return body


def _image(part: Part) -> str:
    if not is_image(part):
        return f"<pre>{_safe(part.text[:200])}</pre>"
    data = "".join(part.text.split())
    return f'<img alt="image" loading="lazy" src="data:{part.title};base64,{data}">'


def _code(text: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if len(text) > _LONGEST_HIGHLIGHT:
        return f"<pre>{_safe(text)}</pre>"
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return f"<pre>{_safe(text)}</pre>"
    clean = "".join(c if _allowed(c) else "\ufffd" for c in text)
    drawn: str = highlight(clean, lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code">{drawn}</pre>'


def _drawer() -> Callable[[str], str]:
    try:
        import pygments  # noqa: F401
        from markdown_it import MarkdownIt
    except ModuleNotFoundError as error:
        raise ImportError(_NEEDS) from error

    def fence(text: str, language: str, _attributes: str) -> str:
        return _code(text, language or "text")

    parser = MarkdownIt("commonmark", {"html": False, "highlight": fence}).enable(["table", "strikethrough"])
    # Pictures from elsewhere would tell their server who reads the page; the policy forbids them too.
    parser.disable("image")

    def draw(text: str) -> str:
        clean = "".join(c if _allowed(c) else "\ufffd" for c in text) if not text.isascii() else text
        drawn: str = parser.render(clean)
        return drawn

    return draw


def _code_style() -> str:
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="default").get_style_defs("pre")  # type: ignore[no-untyped-call]
    dark = HtmlFormatter(style="github-dark").get_style_defs(":root[data-theme=dark] pre")  # type: ignore[no-untyped-call]
    return f"{light}\n{dark}\n"
