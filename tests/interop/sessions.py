"""Sessions for the interop tests: one of everything, and what two programs must agree on about it."""

from _encode import tree

USAGE = {
    "input": 1200,
    "output": 34,
    "cacheRead": 5,
    "cacheWrite": 0,
    "totalTokens": 1239,
    "cost": {"input": 0.0036, "output": 0.00051, "cacheRead": 1.5e-06, "cacheWrite": 0, "total": 0.0041115},
}
# Text that JSON writers and line readers are known to treat differently.
HARD_TEXT = (
    'quote " back \\ slash / tab \t nul \x00 del \x7f next-line \x85 ls \u2028 ps \u2029 bom \ufeff 😀 é'
)
LONE_SURROGATE = "half \ud83d of a pair"


def user(text, at=1704067201000):
    return {"role": "user", "content": text, "timestamp": at}


def assistant(text, at=1704067202000, calls=()):
    content = [{"type": "text", "text": text}]
    content += [{"type": "toolCall", "id": f"call_{n}", "name": n, "arguments": a} for n, a in calls]
    return {
        "role": "assistant",
        "content": content,
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-x",
        "usage": USAGE,
        "stopReason": "stop",
        "timestamp": at,
    }


def tool_result(call, text, at=1704067203000):
    content = [{"type": "text", "text": text}]
    return {
        "role": "toolResult",
        "toolCallId": call,
        "toolName": "read",
        "content": content,
        "isError": False,
        "timestamp": at,
    }


# What to do to a session, as (pi's method, arguments); "$n" stands for the id that step n returned.
EVERYTHING = [
    ("appendModelChange", ["anthropic", "claude-x"]),
    ("appendThinkingLevelChange", ["high"]),
    ("appendMessage", [user("please read the file")]),
    ("appendMessage", [assistant("reading", calls=[("read", {"path": "a.py", "n": 1e21, "f": 0.1})])]),
    ("appendMessage", [tool_result("call_read", "print(1)")]),
    ("appendMessage", [assistant("done")]),
    ("appendCustomEntry", ["ext", {"state": [1, 2.5, None, {"k": "v"}]}]),
    ("appendCustomEntry", ["bare"]),
    ("appendCustomMessageEntry", ["note", "shown to the model", True, {"from": "ext"}]),
    ("appendLabelChange", ["$2", "start here"]),
    ("appendSessionInfo", ["  A name\nover two lines "]),
    ("appendUsage", ["cache_warm", "anthropic", "claude-x", USAGE, "warmed"]),
    ("appendContextEdit", ["$8", {"content": "edited"}]),
    ("branch", ["$4"]),
    ("appendMessage", [user(HARD_TEXT)]),
    ("branchWithSummary", ["$5", "what the side branch did", {"readFiles": ["a.py"]}]),
    ("appendMessage", [user("second question")]),
    ("appendMessage", [assistant("second answer")]),
    ("appendCompaction", ["all so far", "$16", 4321, {"readFiles": ["a.py"], "modifiedFiles": []}]),
    ("appendMessage", [user("after the compaction")]),
    ("appendLabelChange", ["$16", "kept"]),
    ("appendContextEdit", ["$19", None]),
    ("appendLabelChange", ["$2", None]),
    ("appendMessage", [assistant(HARD_TEXT)]),
]


def play(steps, perform):
    """Do the steps by ``perform(method, arguments)``, putting in the ids that earlier ones returned."""
    made = []
    for method, arguments in steps:
        filled = [made[int(a[1:])] if isinstance(a, str) and a.startswith("$") else a for a in arguments]
        value = perform(method, filled)
        made.append(value["id"] if isinstance(value, dict) else value)
    return made


def bare(value):
    """The value without null members: where JavaScript has undefined, JSON text has nothing."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if v is not None}
    return [bare(v) for v in value] if isinstance(value, list) else value


def nodes(tree):
    """A tree as a flat list: (id, ids of the children, label, time of the label) in order."""
    flat = []
    stack = list(reversed(tree))
    while stack:
        node = stack.pop()
        stack.extend(reversed(node["children"]))
        children = [child["entry"].get("id") for child in node["children"]]
        flat.append((node["entry"].get("id"), children, node.get("label"), node.get("labelTimestamp")))
    return flat


def seen_by_pi(pi, on="a"):
    """All that pi says of its session."""
    context = pi.call("buildSessionContext", on=on)
    return {
        "header": pi.call("getHeader", on=on),
        "entries": bare(pi.call("getEntries", on=on)),
        "branch": bare(pi.call("getBranch", on=on)),
        "context entries": bare(pi.call("buildContextEntries", on=on)),
        "messages": bare(context["messages"]),
        "thinking level": context["thinkingLevel"],
        "model": context["model"],
        "leaf": pi.call("getLeafId", on=on),
        "name": pi.call("getSessionName", on=on),
        "tree": [tuple(node) for node in pi.call("getTree", on=on)],
        "id": pi.call("getSessionId", on=on),
        "cwd": pi.call("getCwd", on=on),
    }


def seen_here(session):
    """The same of a session that sessiontree has open."""
    context = session.build_session_context()
    return {
        "header": session.get_header(),
        "entries": bare(list(session.get_entries())),
        "branch": bare(list(session.get_branch())),
        "context entries": bare(list(session.build_context_entries())),
        "messages": bare(list(context.messages)),
        "thinking level": context.thinking_level,
        "model": context.model,
        "leaf": session.get_leaf_id(),
        "name": session.get_session_name(),
        "tree": nodes(tree(list(session.get_tree()))),
        "id": session.get_session_id(),
        "cwd": session.get_cwd(),
    }


def renumbered(seen, which="entries"):
    """Entries with their ids replaced by their place in the file, wherever an id is named."""
    place = {entry["id"]: f"#{i}" for i, entry in enumerate(seen["entries"]) if "id" in entry}
    names = ("id", "parentId", "targetId", "firstKeptEntryId", "fromId")
    return [
        {k: place.get(v, v) if k in names and isinstance(v, str) else v for k, v in entry.items()}
        for entry in seen[which]
    ]
