"""Sessions to draw."""

import json

import pytest
from browser import browser  # noqa: F401 - a fixture
from sessiontree import SessionManager


def user(text):
    return {"role": "user", "content": text, "timestamp": 0}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks), "provider": "p", "model": "m", "timestamp": 0}


@pytest.fixture
def talk():
    """A session with two branches, a label, a tool call, an image and a compaction."""
    session = SessionManager.in_memory("/code")
    session.append_session_info("Fix the parser")
    first = session.append_message(user("why does it **fail**?"))
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "parser.py"}}
    look = session.append_message(
        assistant({"type": "text", "text": "looking\n\n```python\nprint('x')\n```"}, call)
    )
    session.append_message(
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "read",
            "content": [{"type": "text", "text": "needle-in-the-result"}],
            "isError": False,
            "timestamp": 0,
        }
    )
    session.append_label_change(first, "start")
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    session.append_message(
        {
            "role": "user",
            "content": [{"type": "image", "data": pixel, "mimeType": "image/png"}],
            "timestamp": 0,
        }
    )
    session.branch(look)
    session.append_message(user("another way"))
    session.append_compaction("## Goal\nfix it", first, 100)
    return session


HOSTILE = (
    "<script>document.documentElement.dataset.owned='yes'</script>",
    "<img src=x onerror=\"document.documentElement.dataset.owned='yes'\">",
    "[click](javascript:document.documentElement.dataset.owned='yes')",
    "</script></pre></article></main><script>document.documentElement.dataset.owned='yes'</script>",
    "<svg onload=\"document.documentElement.dataset.owned='yes'\">",
    "![x](https://example.invalid/track.png)",
    "\u202e\x1b[31m\x00<b>bold",
    '"><iframe srcdoc="<script>parent.document.documentElement.dataset.owned=1</script>">',
)


@pytest.fixture
def hostile():
    """A session with something that wants to run in every field."""
    session = SessionManager.in_memory("/code" + HOSTILE[0])
    for text in HOSTILE:
        session.append_session_info(text)
        id = session.append_message(user(text))
        session.append_label_change(id, text)
        session.append_message(
            assistant(
                {"type": "text", "text": f"```{text}\n{text}\n```\n{text}"},
                {"type": "thinking", "thinking": text},
                {"type": "toolCall", "id": text, "name": text, "arguments": {text: text}},
                {"type": text, "text": text},
            )
        )
        session.append_message(
            {
                "role": "toolResult",
                "toolName": text,
                "content": [{"type": "image", "data": text, "mimeType": text}],
                "timestamp": 0,
            }
        )
        session.append_message({"role": text, "content": text, "timestamp": 0})
        session.append_custom_entry(text, {text: text})
        session.append_model_change(text, text)
        session.append_compaction(text, None, 1)
    entries = [json.loads(json.dumps(e)) for e in session.get_entries()]
    for at, entry in enumerate(entries):
        entry["timestamp"] = HOSTILE[at % len(HOSTILE)]
    return SessionManager.in_memory("/code", entries)


def entry(id, parent, text="hi"):
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": text},
    }


ODD = {
    "no entries": [],
    "a cycle": [entry("a", "b"), entry("b", "a"), entry("c", None)],
    "its own parent": [entry("a", "a"), entry("b", "a")],
    "no parent": [entry("a", "zz"), entry("b", "a")],
    "one id twice": [entry("a", None), entry("a", None, "two"), entry("b", "a")],
    "a parent behind": [entry("b", "a"), entry("a", None), entry("c", "b")],
    "values": [1, "x", [1], {"type": "x"}, {"id": 5, "parentId": None}, entry("a", None)],
    "odd messages": [
        {"type": "message", "id": "q", "parentId": None, "message": None},
        {"type": "message", "id": "r", "parentId": "q", "message": {"role": None, "content": {"a": 1}}},
        {
            "type": "message",
            "id": "s",
            "parentId": "r",
            "message": {
                "role": "assistant",
                "content": [None, 1, {"type": "text", "text": 5}, {"type": "image", "data": 5}],
            },
        },
        {
            "type": "message",
            "id": "t",
            "parentId": "s",
            "message": {"role": "user", "content": [{"type": "toolCall"}]},
        },
    ],
    "ids like rows": [entry("e2", None), entry("e1", "e2"), entry("e0", "e1")],
    "many children": [entry("r", None), *(entry(f"c{n}", "r") for n in range(500))],
    "halves of characters": [entry("a", None, "\ud800 half \udc00")],
}
"""Entries as they should not be, by what is odd about them."""


def write_odd(path, entries):
    """Write a session file of any entries."""
    header = {"type": "session", "version": 3, "id": "odd", "timestamp": "t", "cwd": "/code"}
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in (header, *entries)) + "\n")
    return path
