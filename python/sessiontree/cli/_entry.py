"""One entry in a few words. Whatever an entry holds, also what no writer should have written, is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree import jsontext

if TYPE_CHECKING:
    from collections.abc import Callable

Described = tuple[str, str]


def describe(entry: Any) -> Described:
    """Give what an entry is (role or type) and its text."""
    kind = field(entry, "type")
    if not isinstance(kind, str):
        return "?", as_json(entry)
    if kind == "message":
        return describe_message(field(entry, "message"))
    known = _KINDS.get(kind)
    return known(entry) if known else (kind, "")


def describe_message(message: Any) -> Described:
    """Give a message's role and text; a call of a tool or the name of one stands before its text."""
    role = field(message, "role")
    if not isinstance(role, str):
        return "message", as_json(message)
    known = _ROLES.get(role)
    return known(message) if known else (role, content_text(field(message, "content")))


def field(value: Any, key: str) -> Any:
    """Look into a dict; None for what is no dict or has no such key."""
    return value.get(key) if isinstance(value, dict) else None


def as_text(value: Any) -> str:
    """Give text as it is, nothing for None, and everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """Give a value as JSON text."""
    return jsontext.dumps(value).decode("utf-8", "surrogatepass")


def content_text(content: Any) -> str:
    """Give the text of a message's content: a string, or blocks."""
    if not isinstance(content, list):
        return as_text(content)
    return "\n".join(text for text in map(block_text, content) if text)


def block_text(block: Any) -> str:
    """Give one block of content as text; thinking is not said aloud."""
    kind = field(block, "type")
    if kind == "text":
        return as_text(field(block, "text"))
    if kind == "toolCall":
        return call_text(block)
    if kind == "image":
        return image_text(block)
    return "" if kind == "thinking" else as_text(block)


def call_text(block: Any) -> str:
    """Give a tool call as ``name(key=value, ...)``."""
    arguments = field(block, "arguments")
    if isinstance(arguments, dict):
        inner = ", ".join(f"{key}={as_json(value)}" for key, value in arguments.items())
    else:
        inner = as_text(arguments)
    return f"{as_text(field(block, 'name'))}({inner})"


def image_text(block: Any) -> str:
    """Say that there is an image, and how big."""
    data = field(block, "data")
    size = len(data) * 3 // 4 if isinstance(data, str) else 0
    return f"[{as_text(field(block, 'mimeType')) or 'image'}, {size:,} bytes]"


def _assistant(message: Any) -> Described:
    text = content_text(field(message, "content"))
    if field(message, "stopReason") in ("error", "aborted"):
        reason = as_text(field(message, "errorMessage")) or as_text(field(message, "stopReason"))
        text = f"[{reason}] {text}".rstrip()
    return "assistant", text


def _tool_result(message: Any) -> Described:
    mark = " failed" if field(message, "isError") is True else ""
    text = f"{as_text(field(message, 'toolName'))}{mark}: {content_text(field(message, 'content'))}"
    return "tool", text


def _bash(message: Any) -> Described:
    return "bash", f"$ {as_text(field(message, 'command'))}\n{as_text(field(message, 'output'))}"


def _summary(message: Any) -> Described:
    return "summary", as_text(field(message, "summary"))


def _custom_message(entry: Any) -> Described:
    text = f"{as_text(field(entry, 'customType'))}: {content_text(field(entry, 'content'))}"
    return "custom", text


def _compaction(entry: Any) -> Described:
    before = field(entry, "tokensBefore")
    tokens = f"({before:,.0f} tokens before) " if isinstance(before, (int, float)) else ""
    return "compaction", f"{tokens}{as_text(field(entry, 'summary'))}"


def _label(entry: Any) -> Described:
    label = as_text(field(entry, "label"))
    return "label", f"{as_text(field(entry, 'targetId'))} {'= ' + label if label else 'cleared'}"


def _edit(entry: Any) -> Described:
    new = field(entry, "replacement")
    what = "removed" if new is None else f"= {content_text(field(new, 'content'))}"
    return "edit", f"{as_text(field(entry, 'targetId'))} {what}"


def _of(name: str, *keys: str) -> Callable[[Any], Described]:
    """Describe an entry by some of its fields."""
    return lambda entry: (name, " ".join(filter(None, (as_text(field(entry, key)) for key in keys))))


_ROLES: dict[str, Callable[[Any], Described]] = {
    "assistant": _assistant,
    "toolResult": _tool_result,
    "bashExecution": _bash,
    "custom": _custom_message,
    "hookMessage": _custom_message,
    "compactionSummary": _summary,
    "branchSummary": _summary,
}
_KINDS: dict[str, Callable[[Any], Described]] = {
    "compaction": _compaction,
    "branch_summary": _of("branch", "summary"),
    "model_change": _of("model", "provider", "modelId"),
    "thinking_level_change": _of("thinking", "thinkingLevel"),
    "usage": _of("usage", "kind", "provider", "model", "note"),
    "custom": _of("data", "customType"),
    "custom_message": _custom_message,
    "context_edit": _edit,
    "label": _label,
    "session_info": _of("name", "name"),
}
