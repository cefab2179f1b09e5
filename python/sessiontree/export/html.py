"""A session as one HTML file that opens offline: every branch, searchable, and nothing of it runs.

What entries look like is drawn in `sessiontree.export.draw`. The page's own script and style are the
only ones that the page's Content-Security-Policy lets run, by their hashes; nothing is loaded from
anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from sessiontree import jsontext
from sessiontree.export.draw import Drawer, code_style, safe
from sessiontree.export.model import clear, items
from sessiontree.export.outline import Outline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree.export.moved import MovedOut
    from sessiontree.manager import SessionManager

_CHUNK_ENTRIES = 64
_CHUNK_CHARACTERS = 400_000

_WAYS_OUT = re.compile(r"<(?=!--|/?script)", re.IGNORECASE)

_WITHOUT_SCRIPT = (
    "<noscript><p>The entries are shown by this page's own script, which is switched off.</p></noscript>"
)


def html_parts(
    session: SessionManager, leaf_row: int, change: Any = None, moved: MovedOut | None = None
) -> Iterator[str]:
    """Give the page piece by piece.

    Args:
        session: the session; all its branches are on the page.
        leaf_row: the row of the entry whose branch is shown first; -1 for none.
        change: applied to everything that is shown first; a `Redactor`.
        moved: brings images back that were moved out.

    Raises:
        ImportError: the libraries that draw Markdown and code are not installed.
    """
    drawer = Drawer()
    style, script = page_style(), asset("pane.js") + asset("page.js") + asset("whole.js")
    name, facts = title_of(session, change)
    yield _head(name, style, script)
    yield skeleton(name, facts)
    yield f'<main id="entries">{_WITHOUT_SCRIPT}</main>\n{HELP}'
    nodes: list[list[Any]] = []
    texts: list[str] = []
    for item in items(session, range(len(session.get_entries())), change, moved):
        nodes.append([item.parent, clear(item.kind), item.first_words, clear(item.label), item.id])
        texts.append(drawer.article(item))
        if len(texts) == _CHUNK_ENTRIES or sum(map(len, texts)) > _CHUNK_CHARACTERS:
            yield _chunk(len(nodes) - len(texts), texts)
            texts = []
    yield _chunk(len(nodes) - len(texts), texts)
    outline = Outline(node[0] for node in nodes)
    tree = {"nodes": nodes, "order": list(outline.order), "depth": list(outline.depth), "leaf": leaf_row}
    yield f'<script type="application/json" id="data">{_inert(tree)}</script>\n'
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _chunk(first: int, texts: list[str]) -> str:
    """Give entries as data: no browser could hold 20,000 of them as elements without stopping to think."""
    return f'<script type="application/json" class="entries" data-first="{first}">{_inert(texts)}</script>\n'


def title_of(session: SessionManager, change: Any = None) -> tuple[str, str]:
    """Give a page's title and the line below it."""
    name, cwd = session.get_session_name() or session.get_session_id(), session.get_cwd()
    if change is not None:
        name, cwd = change.text(name), change.text(cwd)
    count = len(session.get_entries())
    return clear(name), f"{clear(cwd)} · {count:,} {'entry' if count == 1 else 'entries'}"


@cache
def asset(name: str) -> str:
    """Give a file that belongs to the pages."""
    return resources.files("sessiontree.export").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def page_style() -> str:
    """Give the style of the pages."""
    return asset("page.css") + code_style()


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
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(name)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


def skeleton(name: str, facts: str, before: str = "") -> str:
    """Give what stands around the entries: title, search, buttons, the place of the tree."""
    return (
        f'<header>{before}<button id="side" title="Branches (b)" aria-controls="tree">☰</button>'
        f'<h1>{safe(name)}</h1><p class="facts" id="facts">{safe(facts)}</p>'
        '<select id="labels" aria-label="Labels" hidden></select>'
        '<input id="search" type="search" placeholder="Search (press /)" aria-label="Search">'
        '<span id="found" role="status"></span>'
        '<button id="theme" title="Dark or light (t)">◐</button>'
        '<button id="keys" title="Keys (?)">?</button></header>\n'
        '<nav id="tree" aria-label="Branches"></nav>\n'
    )


_KEYS = (
    ("/", "search; Enter and Shift+Enter go through what was found, as n and N do"),
    ("j k", "next and previous entry"),
    ("g G", "first and last entry of the branch"),
    ("o", "fold and unfold the entry"),
    ("b", "branches at the side"),
    ("t", "dark or light"),
    ("?", "this help"),
)
HELP = (
    '<dialog id="help"><h2>Keys</h2><dl>'
    + "".join(f"<dt>{html.escape(keys)}</dt><dd>{what}</dd>" for keys, what in _KEYS)
    + '</dl><button id="close">Close</button></dialog>\n'
)


def _inert(value: Any) -> str:
    """Give JSON that nothing in it can take out of its element; a type that is no script never runs."""
    text = jsontext.js_stringify(value).encode("utf-8", "replace").decode()
    return _WAYS_OUT.sub("\\\\u003c", text)
