"""What a list of messages amounts to: the system prompt it replays to, and its tool calls in pairs.

Messages are read leniently: what is odd in one of them is passed over.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Final

    from sessiontree.entries import JsonObject

NO_RESULT: Final = "No result was recorded for this tool call."
"""The text of a result that stands in for a missing one."""

_ARRAY_INDEX_LIMIT: Final = 2**32 - 1


def get_current_system_message(messages: Sequence[Any]) -> JsonObject | None:
    """Replay all system messages into one that says the same.

    Contents are joined by a blank line. ``sections`` are patched by name, None removes one. Tools
    are taken off by ``toolsRemoved`` and then put on by ``toolsAdded``, message by message.

    Args:
        messages: messages of a context, oldest first.

    Returns:
        A system message with the timestamp of the first one, or None if no system message has a
        timestamp and no tool is left. `SessionManager.append_compaction` stores it.

    Example:
        >>> base = {"role": "system", "content": "Be brief.", "sections": {"env": "linux"}, "timestamp": 1}
        >>> later = {"role": "system", "content": "", "sections": {"env": None}, "timestamp": 2}
        >>> get_current_system_message([base, later])
        {'role': 'system', 'content': 'Be brief.', 'timestamp': 1}
    """
    system = [m for m in messages if isinstance(m, dict) and m.get("role") == "system"]
    tools = _tools(system)
    if not tools and not any("timestamp" in message for message in system):
        return None
    texts = [text for text in map(_text, system) if text]
    sections = _sections(system)
    stamps = (message.get("timestamp") for message in system)
    replayed: JsonObject = {"role": "system", "content": "\n\n".join(texts)}
    if sections:
        replayed["sections"] = sections
    if tools:
        replayed["toolsAdded"] = tools
    replayed["timestamp"] = next((stamp for stamp in stamps if stamp is not None), 0)
    return replayed


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    return "\n".join(text if isinstance(text, str) else "" for text in texts)


def _sections(system: Iterable[JsonObject]) -> JsonObject:
    sections: JsonObject = {}
    for message in system:
        patch = message.get("sections")
        for name, text in patch.items() if isinstance(patch, dict) else ():
            if text is None:
                sections.pop(name, None)
            else:
                sections[name] = text
    # JavaScript puts integer-like names first, in their order.
    numbers = sorted(filter(_is_array_index, sections), key=int)
    return {name: sections[name] for name in [*numbers, *(n for n in sections if not _is_array_index(n))]}


def _is_array_index(name: str) -> bool:
    if not (name.isascii() and name.isdigit() and len(name) <= 10):
        return False
    return (name == "0" or name[0] != "0") and int(name) < _ARRAY_INDEX_LIMIT


def _tools(system: Iterable[JsonObject]) -> list[Any]:
    tools: dict[Any, Any] = {}
    for message in system:
        for tool in _objects(message.get("toolsRemoved")):
            tools.pop(_name(tool), None)
        for tool in _objects(message.get("toolsAdded")):
            tools[_name(tool)] = tool
    return list(tools.values())


def _objects(value: Any) -> Iterator[JsonObject]:
    yield from (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def _name(tool: JsonObject) -> Any:
    name = tool.get("name")
    return name if isinstance(name, str) else repr(name).encode("utf-8", "surrogatepass")


def paired_tool_results(messages: Sequence[Any]) -> list[Any]:
    """Make every tool call have one result right behind it, and every result its call.

    Models refuse a context where a call has no result or a result no call, which is what an
    interrupted turn, an edit or a moved branch leaves behind.

    Args:
        messages: messages of a context, oldest first; they are not changed.

    Returns:
        A new list. Results follow the assistant message with their call, in the order they came
        in. A result whose call is not there, or already has one, is left out. A call without a
        result gets one that says so, with ``isError`` true and the time of the call.

    Example:
        >>> call = {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "ls"}]}
        >>> [m["role"] for m in paired_tool_results([call, {"role": "user", "content": "stop"}])]
        ['assistant', 'toolResult', 'user']
    """
    results = _results_of_calls(messages)
    paired: list[Any] = []
    for place, message in enumerate(messages):
        if _role(message) == "toolResult":
            continue
        paired.append(message)
        if place in results:
            paired.extend(_complete(message, results[place]))
    return paired


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _calls(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [
        block
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "toolCall" and isinstance(block.get("id"), str)
    ]


def _results_of_calls(messages: Sequence[Any]) -> dict[int, dict[str, Any]]:
    """For each place of a message with calls: call id -> result, in the order of the results.

    Some providers use an id again in a later turn: a result answers the newest open call.
    """
    results: dict[int, dict[str, Any]] = {}
    open_calls: dict[str, int] = {}
    for place, message in enumerate(messages):
        role = _role(message)
        if role == "assistant":
            calls = _calls(message)
            if calls:
                results[place] = {}
                open_calls.update((call["id"], place) for call in calls)
        elif role == "toolResult":
            call_id = message.get("toolCallId")
            asked = open_calls.pop(call_id, None) if isinstance(call_id, str) else None
            if asked is not None:
                results[asked][call_id] = message
    return results


def _complete(message: JsonObject, results: dict[str, Any]) -> Iterator[Any]:
    yield from results.values()
    missing = {call["id"]: call for call in _calls(message) if call["id"] not in results}
    for call_id, call in missing.items():
        yield {
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": call.get("name", ""),
            "content": [{"type": "text", "text": NO_RESULT}],
            "isError": True,
            "timestamp": message.get("timestamp", 0),
        }
