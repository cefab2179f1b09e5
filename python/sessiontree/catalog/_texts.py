"""The texts of an entry that can be searched, each with who said it.

Roles: ``user``, ``assistant``, ``call`` (name and arguments of a tool call), ``tool`` (what a tool gave),
``bash``, ``system``, ``custom``, ``summary`` (of compactions and branches), ``name`` and ``label``.
Thinking, images and the data of extensions are left out.
"""

from __future__ import annotations

from typing import Any, Final

from sessiontree import jsontext

LONGEST: Final = 200_000
"""Characters of one text that are kept; what follows cannot be searched."""

ROLES: Final = (
    "user",
    "assistant",
    "call",
    "tool",
    "bash",
    "system",
    "custom",
    "summary",
    "name",
    "label",
)
ALIASES: Final = {
    "toolCall": "call",
    "toolResult": "tool",
    "bashExecution": "bash",
    "hookMessage": "custom",
    "compactionSummary": "summary",
    "branchSummary": "summary",
}
_FIELDS: Final = {
    "compaction": ("summary", "summary"),
    "branch_summary": ("summary", "summary"),
    "session_info": ("name", "name"),
    "label": ("label", "label"),
}

Texts = list[tuple[str, str]]


def of_entry(entry: dict[str, Any]) -> Texts:
    """Give (role, text) of an entry; nothing for entries and values without text."""
    kind = entry.get("type")
    if kind == "message":
        message = entry.get("message")
        return _of_message(message) if isinstance(message, dict) else []
    if kind == "custom_message":
        return _with("custom", _content(entry.get("content")))
    if isinstance(kind, str) and kind in _FIELDS:
        role, key = _FIELDS[kind]
        text = entry.get(key)
        return _with(role, text) if isinstance(text, str) else []
    return []


def _of_message(message: dict[str, Any]) -> Texts:
    role = message.get("role")
    if not isinstance(role, str):
        return []
    role = ALIASES.get(role, role)
    if role == "bash":
        return _with(role, "\n".join(shown(message.get(key, "")) for key in ("command", "output")))
    if role == "summary":
        return _with(role, shown(message.get("summary", "")))
    content = message.get("content")
    text = _content(content)
    if isinstance(message.get("errorMessage"), str):
        text = f"{text}\n{message['errorMessage']}"
    if isinstance(message.get("sections"), dict):
        text = "\n".join(
            [text, *(section for section in message["sections"].values() if isinstance(section, str))]
        )
    texts = _with(role, text)
    if isinstance(content, list):
        texts += [("call", _call(block)) for block in content if _is(block, "toolCall")]
    return texts


def _with(role: str, text: str) -> Texts:
    return [(role, text)] if text.strip() else []


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _content(content: Any) -> str:
    """The texts of a content, a line each."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [block.get("text") for block in content if _is(block, "text")]
    return "\n".join(text for text in texts if isinstance(text, str))


def _call(block: dict[str, Any]) -> str:
    """A tool call: its name, and a line for each argument; texts are not escaped as in JSON."""
    arguments = block.get("arguments")
    name = shown(block.get("name", ""))
    if not isinstance(arguments, dict):
        return f"{name}\n{shown(arguments)}" if arguments is not None else name
    return "\n".join([name, *(f"{key}: {shown(value)}" for key, value in arguments.items())])


def shown(value: Any) -> str:
    """A string as it is, everything else as JSON."""
    return value if isinstance(value, str) else jsontext.js_stringify(value)


def joined(content: Any) -> str:
    """The text of a content as a listing shows it: text blocks joined by spaces."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return " ".join(_joined(block.get("text")) for block in content if _is(block, "text"))


def _joined(value: Any) -> str:
    """A value as JavaScript joins it with others; containers are left out."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return jsontext.number_text(value)
    return shown(value) if isinstance(value, (str, bool)) else ""


def model_of(message: dict[str, Any]) -> str:
    """The model that answered: ``provider/model``."""
    model = message.get("responseModel")
    return model_key(message.get("provider"), message.get("model") if model is None else model)


def model_key(provider: Any, model: Any) -> str:
    """The name of a model with its provider's; what is missing is ``undefined``, as in pi."""
    return "/".join("undefined" if part is None else shown(part) for part in (provider, model))


def clean(text: str, limit: int = LONGEST) -> str:
    """Make a text that SQLite can hold: no lone surrogates, none of the marks that searching uses."""
    text = text[:limit]
    for mark in "\0\x02\x03":
        if mark in text:
            text = text.replace(mark, " ")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8") if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
