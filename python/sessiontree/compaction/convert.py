"""Messages as a model gets them, and a conversation as one text to summarise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessiontree._jsvalues import ABSENT, described, member, role_of, text_of, truthy
from sessiontree.compaction.prompts import (
    BRANCH_SUMMARY_PREFIX,
    BRANCH_SUMMARY_SUFFIX,
    COMPACTION_SUMMARY_PREFIX,
    COMPACTION_SUMMARY_SUFFIX,
)
from sessiontree.jsontext import js_length, js_slice, js_stringify

TOOL_RESULT_MAX_LENGTH = 2000
"""UTF-16 units of a tool result that go into a text to summarise."""

_PLAIN_ROLES = ("system", "user", "assistant", "toolResult")


def convert_to_llm(messages: Iterable[Any]) -> list[Any]:
    r"""Turn the messages of a session into those a model knows.

    Bash executions, custom messages and summaries become user messages; system, user, assistant and
    toolResult messages pass unchanged (the same objects); unknown roles, and bash executions with
    ``excludeFromContext``, are left out.

    Raises:
        TypeError: a message is null.

    Example:
        >>> from sessiontree.compaction import convert_to_llm
        >>> convert_to_llm([{"role": "bashExecution", "command": "ls", "output": "a", "timestamp": 1}])
        [{'role': 'user', 'content': [{'type': 'text', 'text': 'Ran `ls`\n```\na\n```'}], 'timestamp': 1}]
    """
    converted = (_convert(message) for message in messages)
    return [message for message in converted if message is not None]


def _convert(message: Any) -> Any:
    role = role_of(message)
    if role in _PLAIN_ROLES:
        return message
    match role:
        case "bashExecution" if not truthy(message.get("excludeFromContext")):
            text = bash_execution_to_text(message)
        case "branchSummary":
            text = BRANCH_SUMMARY_PREFIX + _summary(message) + BRANCH_SUMMARY_SUFFIX
        case "compactionSummary":
            text = COMPACTION_SUMMARY_PREFIX + _summary(message) + COMPACTION_SUMMARY_SUFFIX
        case "custom":
            content = message.get("content", ABSENT)
            return _user_message(message, _blocks(content) if isinstance(content, str) else content)
        case _:
            return None
    return _user_message(message, _blocks(text))


def _blocks(text: str) -> list[Any]:
    return [{"type": "text", "text": text}]


def _summary(message: Mapping[str, Any]) -> str:
    return text_of(message.get("summary", ABSENT))


def _user_message(source: Mapping[str, Any], content: Any) -> dict[str, Any]:
    fields = {"role": "user", "content": content, "timestamp": source.get("timestamp", ABSENT)}
    return {key: value for key, value in fields.items() if value is not ABSENT}


def bash_execution_to_text(message: Mapping[str, Any]) -> str:
    """The text by which a command that the user ran himself is told to the model."""
    output = message.get("output", ABSENT)
    text = f"Ran `{text_of(message.get('command', ABSENT))}`\n"
    text += f"```\n{text_of(output)}\n```" if truthy(output) else "(no output)"
    exit_code = message.get("exitCode")
    if truthy(message.get("cancelled")):
        text += "\n\n(command cancelled)"
    elif exit_code is not None and (exit_code is False or exit_code != 0):
        text += f"\n\nCommand exited with code {text_of(exit_code)}"
    path = message.get("fullOutputPath")
    if truthy(message.get("truncated")) and truthy(path):
        text += f"\n\n[Output truncated. Full output: {text_of(path)}]"
    return text


def content_text(content: Any, separator: str = "\n") -> str:
    """The text of a message's content: a text itself, or its text blocks joined.

    Raises:
        TypeError: the content is neither text nor a list of blocks.
    """
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in blocks_of(content) if member(block, "type") == "text")
    return separator.join("" if text is None else text_of(text) for text in texts)


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a content, none of them null.

    Raises:
        TypeError: the content is no list, or a block is null.
    """
    if not isinstance(content, list):
        raise TypeError(
            f"the content of a message must be text or a list of blocks, not {described(content)}"
        )
    if None in content:
        raise TypeError(f"block {content.index(None)} of a message is null")
    return content


def serialize_conversation(messages: Iterable[Any]) -> str:
    r"""Write a conversation as one text, so that a model reports on it instead of carrying it on.

    Each message becomes a paragraph: ``[User]: ``, ``[Assistant]: ``, ``[Assistant tool calls]: `` with
    ``name(key=json, ...)``, ``[Tool result]: ``. Thinking, images and empty messages are left out; tool
    results are cut at 2,000 UTF-16 units, with a marker that says how many are missing. Call
    `convert_to_llm` first.

    Raises:
        TypeError: content or arguments are of a kind that cannot be written out.

    Example:
        >>> from sessiontree.compaction import serialize_conversation
        >>> serialize_conversation([{"role": "user", "content": "Hello"}])
        '[User]: Hello'
    """
    parts: list[str] = []
    for message in messages:
        role = role_of(message)
        content = member(message, "content")
        if role == "user":
            _add(parts, "[User]: ", content_text(content, ""))
        elif role == "assistant":
            _add_assistant(parts, blocks_of(content))
        elif role == "toolResult":
            _add(parts, "[Tool result]: ", _shortened(content_text(content, "")))
    return "\n\n".join(parts)


def _add(parts: list[str], heading: str, text: str) -> None:
    if text:
        parts.append(heading + text)


def _add_assistant(parts: list[str], blocks: list[Any]) -> None:
    if any(member(block, "type") == "text" for block in blocks):
        parts.append(f"[Assistant]: {content_text(blocks)}")
    calls = [_tool_call(block) for block in blocks if member(block, "type") == "toolCall"]
    _add(parts, "[Assistant tool calls]: ", "; ".join(calls))


def _tool_call(block: Mapping[str, Any]) -> str:
    pairs = (f"{key}={js_stringify(value)}" for key, value in _pairs(block.get("arguments")))
    return f"{text_of(block.get('name', ABSENT))}({', '.join(pairs)})"


def _pairs(arguments: Any) -> list[tuple[str, Any]]:
    """``Object.entries``: integer keys come first, in order; texts and lists have their indices as keys."""
    if arguments is None:
        raise TypeError("a tool call has no arguments")
    if isinstance(arguments, Mapping):
        numbered = sorted((key for key in arguments if _is_index(key)), key=int)
        named = (key for key in arguments if not _is_index(key))
        return [(key, arguments[key]) for key in (*numbered, *named)]
    if isinstance(arguments, str):
        units = (js_slice(arguments, i, i + 1) for i in range(js_length(arguments)))
        return [(str(i), unit) for i, unit in enumerate(units)]
    if isinstance(arguments, list):
        return [(str(i), value) for i, value in enumerate(arguments)]
    return []


def _is_index(key: str) -> bool:
    """Is this key an array index for JavaScript (0 to 2^32 - 2, written plainly)?"""
    if not (key.isascii() and key.isdigit()) or len(key) > 10:
        return False
    return (key == "0" or key[0] != "0") and int(key) < 2**32 - 1


def _shortened(text: str) -> str:
    length = js_length(text)
    if length <= TOOL_RESULT_MAX_LENGTH:
        return text
    head = js_slice(text, 0, TOOL_RESULT_MAX_LENGTH)
    following = js_slice(text, TOOL_RESULT_MAX_LENGTH, TOOL_RESULT_MAX_LENGTH + 1)
    if "\ud800" <= head[-1] <= "\udbff" and "\udc00" <= following <= "\udfff":
        # Half a character helps nobody; the count below still says what the limit cut off.
        head = head[:-1]
    return f"{head}\n\n[... {length - TOOL_RESULT_MAX_LENGTH} more characters truncated]"
