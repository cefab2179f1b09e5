"""One entry as HTML: text in elements, and nothing that could run.

Markdown is drawn by markdown-it-py with HTML switched off, code by Pygments. Everything else is text
that is escaped. Both the exported page and the viewer show what is drawn here.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from sessiontree._images import is_mark
from sessiontree.export.markdown import is_image
from sessiontree.export.model import clear
from sessiontree.export.moved import LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

    from sessiontree.export.model import Item, Part

NEEDS = "pages need markdown-it-py and Pygments: pip install 'sessiontree[export]'"

_LONGEST_HIGHLIGHT = 50_000
"""Characters of code that are highlighted; longer ones are shown plain."""

_LONGEST_MARKDOWN = 60_000
"""Characters of Markdown that are drawn as such; longer ones are shown as they are."""

_PIECE = 20_000

_FOLDED = ("thinking", "call", "result", "json")

# What HTML cannot hold, or shows as nothing: controls but for blanks, lone surrogates.
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def safe(text: str) -> str:
    r"""Escape text; what cannot be shown, or would reorder it, becomes U+FFFD.

    Example:
        >>> safe('<b title="x">\x1b[31m')
        '&lt;b title=&quot;x&quot;&gt;�[31m'
    """
    return html.escape(clear(text.replace("\r\n", "\n")))


class Drawer:
    """Draws entries.

    Args:
        longest: characters of a part that are shown; what is cut is said, and can be asked for.
        image_address: gives the address of an item's image, by the number of its part; pictures are put
            into the page if left out.

    Raises:
        ImportError: the libraries that draw Markdown and code are not installed.
    """

    def __init__(
        self, longest: int | None = None, image_address: Callable[[Item, int], str] | None = None
    ) -> None:
        self._longest = longest
        self._image_address = image_address
        self._markdown = _parser()

    def article(self, item: Item) -> str:
        """Give the element of an entry."""
        label = f'<span class="label">{safe(item.label)}</span>' if item.label else ""
        parts = "".join(self._part(item, number, part) for number, part in enumerate(item.parts))
        return (
            f'<article id="e{item.row}" data-id="{safe(item.id)}" class="k-{_css(item.kind)}" tabindex="-1">'
            f'<h2><a href="#{link_to(item)}">{safe(item.title)}</a>{label}'
            f"<time>{safe(item.time)}</time></h2>{parts}</article>\n"
        )

    def _part(self, item: Item, number: int, part: Part) -> str:
        if part.kind == "image":
            return self._image(item, number, part)
        text, rest = part.text, ""
        if self._longest is not None and len(text) > self._longest:
            text = text[: self._longest]
            rest = f'<button class="more">Show all {len(part.text):,} characters</button>'
        if part.kind == "plain":
            return f"<p>{safe(text)}</p>{rest}"
        if part.kind == "markdown":
            return f'<div class="md" dir="auto">{self._prose(text)}</div>{rest}'
        body = code(text, "json") if part.kind in ("json", "call") else plain(text)
        title = part.title or ("Data" if part.kind == "json" else part.kind)
        if part.kind not in _FOLDED:
            return body + rest
        size = f'<span class="size" data-size="{len(part.text):,} characters"></span>'
        return f'<details class="{part.kind}"><summary>{safe(title)} {size}</summary>{body}{rest}</details>'

    def _prose(self, text: str) -> str:
        if len(text) > _LONGEST_MARKDOWN:
            return plain(text)
        drawn: str = self._markdown.render(_UNSHOWN.sub("\ufffd", text.replace("\r\n", "\n")))
        return drawn

    def _image(self, item: Item, number: int, part: Part) -> str:
        if is_mark(part.text):
            return f"<p>{safe(LOST)}</p>"
        if not is_image(part):
            return f"<pre>{safe(part.text[:200])}</pre>"
        if self._image_address is not None:
            address = html.escape(self._image_address(item, number))
        else:
            address = f"data:{part.title};base64,{''.join(part.text.split())}"
        return f'<img alt="image" loading="lazy" src="{address}">'


def link_to(item: Item) -> str:
    """Give the fragment that leads to an entry: its id where that is plain, else its row."""
    plain = re.fullmatch(r"[A-Za-z0-9._~-]{1,80}", item.id) and not re.fullmatch(r"e\d+", item.id)
    return item.id if plain else f"e{item.row}"


def _css(kind: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in kind)[:40]


def plain(text: str) -> str:
    """Give text as it is; a long one in pieces, which a browser lays out only when they come into view."""
    if len(text) <= _PIECE:
        return f"<pre>{safe(text)}</pre>"
    pieces, start = [], 0
    while start < len(text):
        # Pieces end with a line, if lines are not very long: each is a block of its own.
        end = text.rfind("\n", start, start + _PIECE) + 1 or start + _PIECE
        pieces.append(f'<span class="piece">{safe(text[start:end])}</span>')
        start = end
    return f"<pre>{''.join(pieces)}</pre>"


def code(text: str, language: str) -> str:
    """Give code with its syntax highlighted; plain text where the language is not known, or it is long."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if len(text) > _LONGEST_HIGHLIGHT:
        return plain(text)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return plain(text)
    drawn: str = highlight(clear(text.replace("\r\n", "\n")), lexer, HtmlFormatter(nowrap=True))
    return f'<pre class="code">{drawn}</pre>'


def code_style() -> str:
    """Give the style of highlighted code, light and dark."""
    from pygments.formatters import HtmlFormatter

    def rules(style: str, where: str) -> str:
        drawn: str = HtmlFormatter(style=style).get_style_defs(where)  # type: ignore[no-untyped-call]
        return drawn

    light = rules("default", "pre")
    chosen = rules("github-dark", ":root[data-theme=dark] pre")
    by_itself = rules("github-dark", ":root:not([data-theme=light]) pre")
    return f"{light}\n{chosen}\n@media (prefers-color-scheme: dark) {{\n{by_itself}\n}}\n"


def _parser() -> MarkdownIt:
    try:
        import pygments  # noqa: F401
        from markdown_it import MarkdownIt
    except ModuleNotFoundError as error:
        raise ImportError(NEEDS) from error

    def fence(text: str, language: str, _attributes: str) -> str:
        return code(text, language or "text")

    parser = MarkdownIt("commonmark", {"html": False, "highlight": fence}).enable(["table", "strikethrough"])
    # Pictures from elsewhere would tell their server who reads the page; the policy forbids them too.
    parser.disable("image")
    for kind in ("th_open", "td_open"):
        parser.add_render_rule(kind, _cell)
    parser.add_render_rule("link_open", _link)
    return parser


def _cell(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: dict[str, Any]
) -> str:
    """Open a cell of a table; its alignment is a class, since the policy lets no style attribute work."""
    style = str(tokens[at].attrs.pop("style", ""))
    if style:
        tokens[at].attrSet("class", f"to-{style.rpartition(':')[2]}")
    return self.renderToken(tokens, at, options, env)


def _link(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: dict[str, Any]
) -> str:
    """Open a link; the page it leads to learns nothing of this one."""
    tokens[at].attrSet("rel", "noopener noreferrer")
    tokens[at].attrSet("target", "_blank")
    return self.renderToken(tokens, at, options, env)
