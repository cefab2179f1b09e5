"""What a page says of an entry: a title, a few facts, and parts (text, code, image, call, result).

Markdown and HTML are two ways of drawing the same parts, so that neither shows what the other hides.
Entries of unknown types and odd values are shown as they are, as JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sessiontree import jsontext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree.export.moved import MovedOut
    from sessiontree.manager import SessionManager

_BATCH = 64
"""How many entries are read at once."""

_LOOK = 2000

# Controls but for blanks, overrides and isolates of direction, lone surrogates.
_UNCLEAR = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

PartKind = Literal["markdown", "plain", "json", "image", "thinking", "call", "result"]

_TITLES = {
    "user": "User",
    "assistant": "Assistant",
    "toolResult": "Tool result",
    "system": "System",
    "bashExecution": "Shell",
    "custom": "Extension",
}
_ENTRY_TITLES = {
    "model_change": "Model",
    "thinking_level_change": "Thinking level",
    "usage": "Usage",
    "compaction": "Compaction",
    "branch_summary": "Branch summary",
    "custom": "Extension data",
    "custom_message": "Extension",
    "context_edit": "Context edit",
    "label": "Label",
    "session_info": "Name",
}


@dataclass(slots=True)
class Part:
    """One piece of an entry.

    Attributes:
        kind: how it is drawn.
        text: the text; base64 for an image, or the mark of one that was moved out.
        title: a heading for what is folded (tool name), or the image's media type.
    """

    kind: PartKind
    text: str
    title: str = ""


@dataclass(slots=True)
class Item:
    """One entry, ready to be drawn.

    Attributes:
        row: its row in the session.
        parent: its parent's row, -1 for none, -2 for one that is missing.
        id: the entry's id as text.
        kind: the entry's type.
        title: heading.
        time: the timestamp as it stands in the file.
        label: the entry's label, or "".
        parts: the pieces, in order.
    """

    row: int
    parent: int
    id: str
    kind: str
    title: str
    time: str
    label: str
    parts: list[Part] = field(default_factory=list)

    @property
    def first_words(self) -> str:
        """The beginning of the first text, on one line."""
        for part in self.parts:
            if part.kind != "image":
                # Only the beginning is looked at, however long the text is.
                words = " ".join(part.text[:_LOOK].split())
                if words:
                    return clear(words[:80])
        return ""

    def all_text(self) -> str:
        """What a search looks through: label, texts, and the names of tools."""
        texts = [text for part in self.parts if part.kind != "image" for text in (part.title, part.text)]
        return "\n".join([self.label, *texts])


def items(
    session: SessionManager, rows: Any, change: Any = None, moved: MovedOut | None = None
) -> Iterator[Item]:
    """Give the items of some rows.

    Args:
        session: the session.
        rows: the rows.
        change: applied to what is shown first; a `Redactor`.
        moved: brings images back that were moved out; else their marks are in their place.
    """
    log = session._log  # noqa: SLF001 - the pages are drawn from rows, which the manager does not show
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        for row, entry in zip(batch, log.entries(batch), strict=True):
            label = _label(session, entry)
            if moved is not None:
                moved.restore(entry)
            if change is None:
                yield _item(row, log.store.parent(row), entry, label)
            else:
                yield _item(row, log.store.parent(row), change(entry), change.text(label))


def _label(session: SessionManager, entry: Any) -> str:
    id = entry.get("id") if isinstance(entry, dict) else None
    label = session.get_label(id) if isinstance(id, str) else None
    return text_of(label) if label else ""


def _item(row: int, parent: int, entry: Any, label: str) -> Item:
    if not isinstance(entry, dict):
        return Item(row, parent, "", "value", "Value", "", "", [Part("json", text_of(entry))])
    id = entry.get("id")
    kind = text_of(entry.get("type", ""))
    made = Item(
        row=row,
        parent=parent,
        id=text_of(id) if id is not None else "",
        kind=kind,
        title=_ENTRY_TITLES.get(kind, kind or "Entry"),
        time=text_of(entry.get("timestamp", "")),
        label=label,
    )
    if kind == "message":
        _add_message(made, entry.get("message"))
    else:
        _add_entry(made, kind, entry)
    return made


def clear(text: str) -> str:
    r"""Replace what cannot be shown, and marks that would reorder what stands around them.

    Example:
        >>> clear("\x1b[31m \u202ednib")
        '�[31m �dnib'
    """
    return text if text.isprintable() and text.isascii() else _UNCLEAR.sub("\ufffd", text)


def text_of(value: Any) -> str:
    """Show a value: a string as it is, everything else as JSON."""
    return value if isinstance(value, str) else jsontext.js_stringify(value)


def _add_message(made: Item, message: Any) -> None:
    if not isinstance(message, dict):
        made.title = "Message"
        made.parts.append(Part("json", text_of(message)))
        return
    role = message.get("role")
    made.kind = role if isinstance(role, str) else "message"
    made.title = _TITLES.get(made.kind, made.kind)
    if role == "bashExecution":
        made.parts.append(Part("call", text_of(message.get("command", "")), "bash"))
        made.parts.append(Part("result", text_of(message.get("output", "")), "output"))
    elif role == "toolResult":
        failed = " (failed)" if message.get("isError") is True else ""
        _add_content(made, message.get("content"), "result", text_of(message.get("toolName", "")) + failed)
    else:
        _add_content(made, message.get("content"), "markdown", "")
        _add_sections(made, message.get("sections"))
    if isinstance(message.get("errorMessage"), str):
        made.parts.append(Part("plain", message["errorMessage"], "error"))


def _add_sections(made: Item, sections: Any) -> None:
    if isinstance(sections, dict):
        for name, text in sections.items():
            if isinstance(text, str):
                made.parts.append(Part("result", text, text_of(name)))


def _add_content(made: Item, content: Any, kind: PartKind, title: str) -> None:
    if isinstance(content, str):
        made.parts.append(Part(kind, content, title))
    elif isinstance(content, list):
        for block in content:
            made.parts.append(_block(block, kind, title))
    elif content is not None:
        made.parts.append(Part("json", text_of(content)))


def _block(block: Any, kind: PartKind, title: str) -> Part:
    if isinstance(block, dict):
        type_ = block.get("type")
        if type_ == "text" and isinstance(block.get("text"), str):
            return Part(kind, block["text"], title)
        if type_ == "thinking" and isinstance(block.get("thinking"), str):
            return Part("thinking", block["thinking"], "Thinking")
        if type_ == "toolCall":
            arguments = block.get("arguments", {})
            return Part("call", _pretty(arguments), text_of(block.get("name", "")))
        if type_ == "image" and isinstance(block.get("data"), str):
            return Part("image", block["data"], text_of(block.get("mimeType", "")))
    return Part("json", text_of(block))


def _pretty(value: Any) -> str:
    import json

    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text_of(value)


def _add_entry(made: Item, kind: str, entry: dict[str, Any]) -> None:
    if kind in ("compaction", "branch_summary"):
        made.parts.append(Part("markdown", text_of(entry.get("summary", ""))))
    elif kind == "custom_message":
        made.title = text_of(entry.get("customType", "")) or made.title
        _add_content(made, entry.get("content"), "markdown", "")
    elif kind == "label":
        made.parts.append(Part("plain", text_of(entry.get("label", ""))))
    elif kind == "session_info":
        made.parts.append(Part("plain", text_of(entry.get("name", ""))))
    elif kind == "model_change":
        made.parts.append(Part("plain", f"{text_of(entry.get('provider'))}/{text_of(entry.get('modelId'))}"))
    elif kind == "thinking_level_change":
        made.parts.append(Part("plain", text_of(entry.get("thinkingLevel"))))
    else:
        rest = {k: v for k, v in entry.items() if k not in ("type", "id", "parentId", "timestamp")}
        made.parts.append(Part("json", _pretty(rest)))
