"""Random requests in the recorded shape: session files (valid, damaged, hostile) and steps on them.

A request carries ``tags``: what is in it that sessiontree answers differently on purpose. Where a tag is in
``DEVIATING`` only "comes back with an answer" is asked; everything else must agree.
"""

import json

READS = [
    "getEntries",
    "getBranch",
    "getTree",
    "getLeafId",
    "getLeafEntry",
    "getSessionName",
    "getHeader",
    "buildContextEntries",
    "buildSessionContext",
    "buildSessionProjection",
    "getEntryCount",
]
# tag -> why the answers differ (the numbers are those of tests/conformance/deviations.json)
DEVIATING = {
    "old-fork": "B07: pi does not migrate",
    "cycle": "B13, B28: pi hangs or loses the entries",
    "duplicate": "B27: pi loses the first entry",
    "odd-message": "B14, B20: pi throws",
    "odd-edit": "B15: pi throws or makes messages without content",
    "odd-tail": "B18: pi's leaf becomes undefined",
    "odd-name": "B17: pi throws",
    "bad-line-rewritten": "B08: pi drops what it cannot read",
    "odd-time": "B29: pi's comparator is not an order",
    "sealed-by-reading": "B11: pi writes on opening",
    "extra-header": "B38: pi drops unknown header fields",
    "blank-summary": "B34, B35: pi stores no text, and tells it from none",
    "no-budget": "B36: pi drops the limit instead of refusing",
    "second-writer": "B12: pi does not see it",
    "lost-file": "B03 to B06: pi writes files without a header, or elsewhere",
}
PIECES = [
    "a",
    "word ",
    "\n",
    "\t",
    '"',
    "\\",
    "/",
    "\x7f",
    "\x85",
    "é",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "中",
    "😀",
    "\ud83d",
    "\ude00",
    "</summary>",
    "0",
    " ",
    "<read-files>",
]
NUMBERS = [0, 1, -1, 1.5, 1e21, 1e-7, 123456789, 2**53, 0.1, 1e300]


class SessionMaker:
    """Session files, and requests on them."""

    def __init__(self, random):
        self.random = random
        self.tags = set()

    # ---- values
    def chance(self, probability):
        return self.random.random() < probability

    def text(self, most=8):
        return "".join(self.random.choice(PIECES) for _ in range(self.random.randrange(most)))

    def summary(self):
        """Mostly not blank: pi alone tells a blank summary from none."""
        if self.chance(0.9):
            return "S" + self.text()
        self.tags.add("blank-summary")
        return self.random.choice(["", " ", "\n\ufeff"])

    def value(self, depth=0):
        kind = self.random.randrange(7 if depth < 3 else 4)
        if kind == 0:
            return self.text()
        if kind == 1:
            return self.random.choice(NUMBERS)
        if kind in (2, 3):
            return self.random.choice([None, True, False])
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.text(4) or "k": self.value(depth + 1) for _ in range(self.random.randrange(4))}

    def usage(self):
        counts = {k: self.random.randrange(5000) for k in ("input", "output", "cacheRead", "cacheWrite")}
        cost = {k: self.random.random() for k in ("input", "output", "cacheRead", "cacheWrite", "total")}
        return {**counts, "totalTokens": sum(counts.values()), "cost": cost}

    # ---- messages
    def blocks(self):
        makers = [
            lambda: {"type": "text", "text": self.text()},
            lambda: {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            lambda: {"type": "thinking", "thinking": self.text()},
        ]
        return [self.random.choice(makers)() for _ in range(self.random.randrange(3))]

    def calls(self):
        names = ["read", "write", "edit", "bash"]
        return [
            {
                "type": "toolCall",
                "id": f"c{n}",
                "name": self.random.choice(names),
                "arguments": self.arguments(),
            }
            for n in range(self.random.randrange(3))
        ]

    def arguments(self):
        return {"path": self.random.choice(["a.py", "b/c.md", "é"]), **({"n": 1} if self.chance(0.3) else {})}

    def message(self, at):
        role = self.random.choice(
            ["user", "user", "assistant", "assistant", "toolResult", "system", "bash", "custom"]
        )
        time = {"timestamp": at}
        if role == "assistant":
            return {
                "role": role,
                "content": self.blocks() + self.calls(),
                "api": "x",
                "provider": "p",
                "model": "m",
                **({"usage": self.usage()} if self.chance(0.7) else {}),
                "stopReason": self.random.choice(["stop", "stop", "toolUse", "aborted", "error"]),
                **time,
            }
        if role == "toolResult":
            return {
                "role": role,
                "toolCallId": "c0",
                "toolName": "read",
                "content": self.blocks(),
                "isError": False,
                **time,
            }
        if role == "bash":
            return {
                "role": "bashExecution",
                "command": "ls",
                "output": self.text(),
                "exitCode": 0,
                "cancelled": False,
                "truncated": False,
                **time,
            }
        if role == "custom":
            return {"role": role, "customType": "x", "content": self.text(), "display": True, **time}
        content = self.text() if self.chance(0.6) or role == "system" else self.blocks()
        return {"role": role, "content": content, **time}

    def odd_message(self):
        """What no program should write into "message"."""
        self.tags.add("odd-message")
        return self.random.choice(
            [
                None,
                5,
                "text",
                [],
                {},
                {"role": 5},
                {"role": "user", "content": 7},
                {"role": "assistant", "content": {}},
            ]
        )

    # ---- entries
    def body(self, at, ids):
        """Type and own fields of an entry."""
        some_id = self.random.choice(ids) if ids and self.chance(0.9) else "nowhere"
        makers = {
            "message": lambda: {"message": self.message(at)},
            "model_change": lambda: {"provider": "p", "modelId": self.text(3)},
            "thinking_level_change": lambda: {"thinkingLevel": self.random.choice(["off", "low", "high"])},
            "usage": lambda: {"kind": "k", "provider": "p", "model": "m", "usage": self.usage()},
            "compaction": lambda: {
                "summary": self.summary(),
                "firstKeptEntryId": some_id,
                "tokensBefore": 100,
            },
            "branch_summary": lambda: {"fromId": some_id, "summary": self.text()},
            "custom": lambda: {"customType": "x", "data": self.value()},
            "custom_message": lambda: {
                "customType": "x",
                "content": self.text(),
                "display": self.chance(0.5),
            },
            "context_edit": lambda: {"targetId": some_id, "replacement": self.replacement()},
            "label": lambda: {"targetId": some_id, **({"label": self.text(3)} if self.chance(0.7) else {})},
            "session_info": lambda: {"name": self.text()},
            "from_the_future": lambda: {"data": self.value()},
        }
        kind = self.random.choices(list(makers), [12, 1, 1, 1, 2, 1, 1, 2, 2, 2, 1, 1])[0]
        return kind, makers[kind]()

    def replacement(self):
        return self.random.choice(
            [None, {"content": self.text()}, {"content": [{"type": "text", "text": "e"}]}]
        )

    def entry(self, number, ids, hostile):
        at = 1704067200000 + number * 1000
        kind, fields = self.body(at, ids)
        parent = ids[-1] if ids else None
        if self.chance(0.2):
            parent = self.random.choice([*ids, None, "nowhere"])
        out = {
            "type": kind,
            "id": f"n{number:02d}",
            "parentId": parent,
            "timestamp": f"2024-01-01T00:{number // 60:02d}:{number % 60:02d}.000Z",
            **fields,
        }
        return self.spoilt(out, ids) if hostile and self.chance(0.15) else out

    def spoilt(self, entry, ids):
        """The entry with something in it that should not be there."""
        kind = self.random.randrange(8)
        if kind == 0:
            entry["message"] = self.odd_message()
        elif kind == 1 and ids:
            self.tags.add("duplicate")
            entry["id"] = self.random.choice(ids)
        elif kind == 2 and self.chance(0.2):  # pi hangs on cycles, and waiting for it costs seconds
            entry["parentId"] = f"n{self.random.randrange(40):02d}"
            self.tags.add("cycle")
        elif kind == 3 and entry["type"] == "context_edit":
            self.tags.add("odd-edit")
            entry["replacement"] = self.random.choice([5, "text", {}, {"content": 5}])
        elif kind == 4:
            self.tags.add("odd-time")
            entry["timestamp"] = self.random.choice(["", "never", 5, None])
        elif kind == 5 and entry["type"] == "session_info":
            self.tags.add("odd-name")
            entry["name"] = self.random.choice([5, {}, True])
        elif kind == 6:
            entry["parentId"] = self.random.choice(["", 0, False, None])
        else:
            entry["type"] = self.random.choice(["", "unknown", "Message"])
        return entry

    # ---- files
    def lines(self, hostile, most=25):
        """A header and entries as a list of lines."""
        header = {
            "type": "session",
            "version": 3,
            "id": "sess-1",
            "timestamp": "2024-01-01T00:00:00.000Z",
            "cwd": "/code/proj",
        }
        if self.chance(0.1):
            self.tags.add("extra-header")
            header["extra"] = self.value()
        ids, out = [], [self.line(header)]
        for number in range(self.random.randrange(1, most)):
            entry = self.entry(number, ids, hostile)
            ids.append(f"n{number:02d}")
            out.append(self.line(entry))
        return out, ids

    def line(self, value):
        return json.dumps(value, ensure_ascii=self.chance(0.5) or has_surrogate(value), separators=(",", ":"))

    def damaged(self, lines):
        """Lines between the others that hold no entry, and an end that is torn off."""
        junk = ["", "  ", "{", "not json", '{"type":"message","id":"x', "null", "\x00\x00", '{"a":1}}', "\r"]
        for _ in range(self.random.randrange(3)):
            self.tags.add("bad-line")
            lines.insert(self.random.randrange(1, len(lines) + 1), self.random.choice(junk))
        end = "\n" if self.chance(0.6) else ""
        if not end and self.chance(0.5):
            lines[-1] = lines[-1][: self.random.randrange(len(lines[-1]) + 1)]
        return end

    def old_version(self, lines):
        """The same session as version 1 (a chain without ids) or version 2."""
        version = self.random.choice([1, 2])
        out = []
        for i, line in enumerate(lines):
            value = json.loads(line)
            if i == 0:
                value["version"] = version
                if version == 1 and self.chance(0.5):
                    del value["version"]
            elif version == 1:
                for key in ("id", "parentId"):
                    value.pop(key)
                if value["type"] == "compaction":
                    del value["firstKeptEntryId"]
                    value["firstKeptEntryIndex"] = self.random.randrange(1, i + 1)
            out.append(self.line(value))
        return out

    def file(self):
        """``({"text": ...}, ids)`` of a session file."""
        hostile = self.chance(0.3)
        lines, ids = self.lines(hostile)
        if not hostile and self.chance(0.15):
            return {"text": "\n".join(self.old_version(lines)) + "\n"}, []
        end = self.damaged(lines) if self.chance(0.3) else "\n"
        if not end:
            self.tags.add("sealed-by-reading")
        return {"text": "\n".join(lines) + end}, ids

    # ---- steps
    def writes(self, ids):
        target = self.random.choice([*ids, "nowhere"]) if ids else "nowhere"
        steps = [
            ("appendMessage", [self.message(1704070000000)]),
            ("appendThinkingLevelChange", ["high"]),
            ("appendModelChange", ["p", self.text(3)]),
            ("appendCompaction", [self.summary(), target, 5]),
            ("appendCustomEntry", ["x", self.value()]),
            ("appendCustomMessageEntry", ["x", self.text(), True]),
            ("appendSessionInfo", [self.text()]),
            ("appendLabelChange", [target, self.text(3)]),
            ("appendContextEdit", [target, self.replacement()]),
            ("appendUsage", ["k", "p", "m", self.usage()]),
            ("branch", [target]),
            ("branchWithSummary", [target, self.text()]),
            ("resetLeaf", []),
            ("createBranchedSession", [target]),
        ]
        op, args = self.random.choice(steps)
        return self.meddling() if self.chance(0.04) else {"op": op, "args": args}

    def meddling(self):
        """What another program does to the file, or a change to another one."""
        line = self.line(
            {"type": "custom", "id": "other", "parentId": None, "timestamp": "", "customType": "o"}
        )
        kind = self.random.randrange(5)
        if kind == 0:
            self.tags.add("second-writer")
            return {"op": "$append", "args": ["session.jsonl", {"text": line + "\n"}]}
        if kind == 1:
            self.tags.add("lost-file")
            return {"op": "$unlink", "args": ["session.jsonl"]}
        if kind == 2:
            self.tags.add("second-writer")
            return {
                "op": "$append",
                "args": ["session.jsonl", {"text": line[: self.random.randrange(len(line))]}],
            }
        if kind == 3:
            return {"op": "newSession"}
        self.tags.add("lost-file")
        return {"op": "setSessionFile", "args": ["<dir>/session.jsonl"]}

    def reads(self, ids):
        step = {"op": self.random.choice(READS)}
        if ids and self.chance(0.3):
            op = self.random.choice(["getBranch", "getChildren", "getLabel", "getEntry"])
            step = {"op": op, "args": [self.random.choice([*ids, "nowhere"])]}
        return step

    def steps(self, ids):
        out = []
        known = list(ids)
        for n in range(self.random.randrange(1, 12)):
            out.append(self.writes(known) if self.chance(0.5) else self.reads(known))
            known.append(f"new-{n + 1}")
        out += [{"op": op} for op in READS]
        return out

    # ---- requests
    def open_(self):
        file, ids = self.file()
        return {"op": "open", "file": file, "ops": self.steps(ids)}

    def load(self):
        return {"op": "load", "file": self.file()[0]}

    def fork(self):
        file, ids = self.file()
        if "bad-line" in self.tags:
            self.tags.add("bad-line-rewritten")
        if not ids:
            self.tags.add("old-fork")
        return {"op": "forkFrom", "file": file, "ops": self.steps(ids)}

    def create(self):
        return {"op": "create", "ops": self.steps([])}

    def list(self):
        files = []
        for n in range(self.random.randrange(1, 5)):
            src, _ = self.file()
            # pi's listing splits at U+2028 and CR too (B19): none of these as they are
            text = src["text"].replace("\u2028", "\\u2028").replace("\r", "")
            src["text"] = text.replace('"sess-1"', f'"sess-{n}"')
            files.append({"name": f"s{n}.jsonl", "src": src, "mtime": 1700000000 + n})
        return {
            "op": self.random.choice(["list", "listAll", "findMostRecent"]),
            "cwd": "/code/proj",
            "files": files,
        }


def has_surrogate(value):
    return any("\ud800" <= c <= "\udfff" for c in json.dumps(value, ensure_ascii=False))
