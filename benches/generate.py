"""Makes the session files and folders that everything here is measured on; the same ones everywhere.

    .venv/bin/python benches/generate.py [--scale full|quick|smoke] [NAME ...]

They lie in ``benches/data/<scale>/``. ``quick`` ones are a tenth of the size, ``smoke`` ones a hundredth.
What is there already, and made by this very code, is left alone; files that only show growth (G, E, N)
are made when they are named or measured. ``facts.json`` beside them says what is in
each: the measurements are checked against it.

| name | what |
|---|---|
| S, M, L, XL | one long session of 1, 50, 500, 1,000 MB; compactions in its first third only, branches |
| Lc | 500 MB with a compaction near the end: about 1 % is the context |
| Limg | 500 MB, nine tenths of them pictures of 1 to 9 MB |
| T200k, T100 | 200,000 and 100 tiny entries in one chain |
| V1 | 100 MB of version 1: no ids, a compaction by index, hook messages |
| D1 | 5,000 sessions of 53 KB, in 50 folders |
| D2, D3 | 1,000 of 290 KB, and 10,000 of 6 KB, in one folder |
| G1 to G4000 | as L, of 1, 10, 100, 1,000 and 4,000 MB |
| E1k to E1000k | as T200k, of 1,000 to 1,000,000 entries |
| N100 to N100000 | 100 to 100,000 sessions of 2 KB in one folder |
"""

import argparse
import dataclasses
import functools
import hashlib
import json
import math
import os
import random
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import orjson
import texts

HERE = Path(__file__).resolve().parent
MB = 1_000_000
SCALES = {"full": 1, "quick": 10, "smoke": 100}
GROWTH = {
    1: {"G": (1, 10, 100, 1000, 4000), "E": (1, 10, 100, 1000), "N": (100, 1000, 10_000, 100_000)},
    10: {"G": (1, 10, 100), "E": (1, 10, 100), "N": (100, 1000)},
    100: {"G": (1,), "E": (1,), "N": (100,)},
}
"""Sizes in MB, thousands of entries, sessions, by the divisor of a scale."""

START = 1_767_225_600_000
"""1 January 2026, in ms."""

AGENT = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5"}
PLACE = "/home/dev/projects/app"
TINY_ENTRY = 300
"""More bytes than an entry of `tiny_entries` has."""


class Session:
    """A session on its way: entries with the keys, and their order, that pi writes."""

    def __init__(self, seed, cwd=PLACE, version=3):
        self.rng = random.Random(f"session {seed}")
        self.cwd, self.version = cwd, version
        self.clock = START + self.rng.randrange(10**9)
        self.lines, self.size, self.entries, self.messages = [], 0, -1, 0
        self.leaf, self.ids, self.users, self.labels = None, set(), [], 0
        self.id = str(uuid.UUID(int=self.rng.getrandbits(128) & ~(0xF << 76) | 7 << 76))
        self.stamp = self.now()
        versioned = {"version": version} if version > 1 else {}
        self.put({"type": "session", **versioned, "id": self.id, "timestamp": self.stamp, "cwd": cwd})

    def now(self):
        self.clock += self.rng.randrange(200, 20_000)
        seconds, ms = divmod(self.clock, 1000)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03}Z"

    def put(self, entry):
        line = orjson.dumps(entry) + b"\n"
        self.lines.append(line)
        self.size += len(line)
        self.entries += 1

    def new_id(self):
        while (id := f"{self.rng.getrandbits(32):08x}") in self.ids:
            pass
        self.ids.add(id)
        return id

    def add(self, kind, own, *, own_first=False, stamp=None):
        """An entry below the leaf; custom ones carry their own fields before the id."""
        stamp = stamp or self.now()
        if self.version == 1:
            self.put({"type": kind, "timestamp": stamp, **own})
            return None
        id = self.new_id()
        chain = {"id": id, "parentId": self.leaf, "timestamp": stamp}
        self.put({"type": kind, **own, **chain} if own_first else {"type": kind, **chain, **own})
        self.leaf = id
        return id

    def message(self, role, own):
        self.messages += 1
        stamp = self.now()
        return self.add("message", {"message": {"role": role, **own, "timestamp": self.clock}}, stamp=stamp)

    # ---- material

    def text(self, kind, size):
        pool = texts.pool(kind)
        size = min(size, len(pool) // 2)
        start = self.rng.randrange(len(pool) - size)
        return pool[start : start + size]

    def length(self, median, spread, highest):
        """Lengths are spread as in real sessions: most are short, some very long (log-normal)."""
        return max(8, min(highest, int(median * math.exp(self.rng.gauss(0, spread)))))

    def words(self, median, spread=0.9, highest=6000):
        kind = "world" if self.rng.random() < 0.08 else "prose"
        return self.text(kind, self.length(median, spread, highest))

    def noise(self, size):
        pool = texts.base64_pool(12_000_000)
        start = self.rng.randrange(len(pool) - size)
        return pool[start : start + size]

    def usage(self):
        rng = self.rng
        tokens = {
            "input": rng.randrange(40, 3000),
            "output": rng.randrange(20, 4000),
            "cacheRead": rng.choice((0, rng.randrange(500, 180_000))),
            "cacheWrite": rng.choice((0, rng.randrange(60, 9000))),
        }
        # Dyadic prices: their sums are exact, and every JSON writer spells them alike.
        cost = {key: n / 65536 for key, n in tokens.items()}
        cost = {key: int(c) if c == int(c) else c for key, c in cost.items()}
        total = sum(cost.values())
        cost["total"] = int(total) if total == int(total) else total
        return {**tokens, "totalTokens": sum(tokens.values()), "cost": cost}

    # ---- who says what

    def setup(self, size=12_000):
        """The system prompt with its tools, the model and the thinking level."""
        schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        tools = [
            {"name": name, "description": self.text("prose", size // 20), "parameters": schema}
            for name in ("read", "bash", "edit", "write")
        ]
        sections = {"preamble": self.text("prose", size // 2), "tools": self.text("prose", size // 4)}
        self.message("system", {"content": "", "sections": sections, "toolsAdded": tools})
        self.add("model_change", {"provider": AGENT["provider"], "modelId": AGENT["model"]})
        self.add("thinking_level_change", {"thinkingLevel": "medium"})

    def user(self, scale=1.0):
        text = self.words(220 * scale, 1.0)
        content = text if self.rng.random() < 0.5 else [{"type": "text", "text": text}]
        self.users.append(self.message("user", {"content": content}))

    def call(self, scale):
        """A tool call: (id, name, block)."""
        form, id = self.rng.random(), f"toolu_01{self.noise(22).replace('+', 'A').replace('/', 'B')}"
        path = f"{self.cwd}/src/{self.rng.choice(texts.NAMES)}_{self.rng.randrange(400)}.py"

        def source(median, highest):
            return self.text("code", self.length(median * scale, 0.9, highest))

        if form < 0.5:
            line = self.text("log", self.length(90, 0.8, 900)).replace("\n", " ; ")
            name, arguments = "bash", {"command": f"cd {self.cwd} && {line}", "timeout": 120}
        elif form < 0.72:
            name, arguments = "read", {"path": path, "offset": self.rng.randrange(1, 900), "limit": 200}
        elif form < 0.92:
            change = {"oldText": source(400, 6000), "newText": source(500, 6000)}
            name, arguments = "edit", {"path": path, "edits": [change]}
        else:
            name, arguments = "write", {"path": path, "content": source(3000, 40_000)}
        return id, name, {"type": "toolCall", "id": id, "name": name, "arguments": arguments}

    def assistant(self, calls=0, scale=1.0):
        content, made = [], [self.call(scale) for _ in range(calls)]
        if self.rng.random() < 0.6:
            thought = self.text("prose", self.length(450 * scale, 1.0, 8000))
            signature = self.noise(self.length(600 * scale, 0.8, 4000))
            content.append({"type": "thinking", "thinking": thought, "thinkingSignature": signature})
        if not made or self.rng.random() < 0.4:
            content.append({"type": "text", "text": self.words(320 * scale)})
        content += [block for _, _, block in made]
        stop = {"usage": self.usage(), "stopReason": "toolUse" if made else "stop"}
        self.message("assistant", {"content": content, **AGENT, **stop})
        return [(id, name) for id, name, _ in made]

    def tool(self, id, name, scale=1.0):
        kinds, weights = ("world", "colours", "log", "prose", "code"), (4, 16, 25, 15, 40)
        kind = self.rng.choices(kinds, weights)[0]
        text = self.text(kind, self.length(2500 * scale, 1.3, 50_000))
        own = {"toolCallId": id, "toolName": name, "content": [{"type": "text", "text": text}]}
        if name == "edit":
            diff = self.text("code", self.length(900 * scale, 0.8, 8000))
            own["details"] = {"diff": diff, "firstChangedLine": self.rng.randrange(900)}
        self.message("toolResult", {**own, "isError": self.rng.random() < 0.05})

    def picture(self, size):
        blocks = [
            {"type": "text", "text": "Read image file [image/png]"},
            {"type": "image", "data": self.noise(size), "mimeType": "image/png"},
        ]
        own = {"toolCallId": "toolu_01picture", "toolName": "read", "content": blocks, "isError": False}
        self.message("toolResult", own)

    def turn(self, scale=1.0, most_steps=25):
        """A question, what the agent does about it, its answer."""
        self.user(scale)
        for _ in range(min(most_steps, int(self.rng.expovariate(0.2)))):
            for id, name in self.assistant(1 if self.rng.random() < 0.85 else 2, scale):
                self.tool(id, name, scale)
        self.assistant(scale=scale)

    def leave_branch(self):
        """Go back to an earlier question, sometimes with a summary of what is left."""
        at = len(self.users) - self.rng.randrange(2, min(30, len(self.users)))
        left, self.leaf = self.leaf, self.users[at]
        del self.users[at + 1 :]
        if self.rng.random() < 0.5:
            self.add("branch_summary", {"fromId": left, "summary": self.text("prose", 1500)})

    def compaction(self):
        self.add(
            "compaction",
            {
                "summary": self.text("prose", 6000),
                "firstKeptEntryId": self.users[-2] if len(self.users) > 1 else self.leaf,
                "tokensBefore": self.rng.randrange(100_000, 190_000),
                "details": {"readFiles": [f"src/a_{n}.py" for n in range(30)], "modifiedFiles": ["src/b.py"]},
                "usage": self.usage(),
            },
        )

    def aside(self):
        """Now and then, what is no message."""
        form = self.rng.random()
        if form < 0.02:
            model = self.rng.choice((("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5")))
            self.add("model_change", dict(zip(("provider", "modelId"), model, strict=True)))
        elif form < 0.04:
            self.add("thinking_level_change", {"thinkingLevel": self.rng.choice(("off", "low", "high"))})
        elif form < 0.06:
            self.labels += 1
            self.add("label", {"targetId": self.users[-1], "label": f"checkpoint {self.entries}"})
        elif form < 0.10:
            items = [{"id": n, "text": self.text("prose", 40)} for n in range(self.rng.randrange(1, 12))]
            self.add("custom", {"customType": "todo", "data": {"items": items}}, own_first=True)
        elif form < 0.11:
            own = {"customType": "note", "content": self.text("prose", 400), "display": False}
            self.add("custom_message", own, own_first=True)
        elif form < 0.12:
            self.add("session_info", {"name": f'Refactor "part" {self.entries} — step'})
        elif form < 0.13:
            own = {"kind": "cache_warm", "provider": "anthropic", "model": AGENT["model"]}
            self.add("usage", {**own, "usage": self.usage()})

    # ---- writing

    def flush(self, file):
        file.write(b"".join(self.lines))
        self.lines.clear()

    def facts(self):
        known = {"bytes": self.size, "entries": self.entries, "labels": self.labels}
        return {**known, "leaf": self.leaf, "id": self.id}


def long_session(path, size, seed, *, late_compaction=False):
    """Turns until the size is reached."""
    session = Session(seed)
    with path.open("wb") as file:
        session.setup()
        step = size / 100
        compact_at, late_at = step, size * 0.99 if late_compaction else math.inf
        while session.size < size:
            if len(session.users) > 5 and session.rng.random() < 0.012:
                session.leave_branch()
            session.turn()
            session.aside()
            if compact_at < session.size < size * 0.3:
                session.compaction()
                compact_at += step
            if session.size > late_at:
                session.compaction()
                # Later branches begin behind it: else it need not be on the path.
                session.users.clear()
                late_at = math.inf
            session.flush(file)
    return session.facts()


def pictures(path, size, seed):
    """Mostly pictures; some turns before and after."""
    session = Session(seed)
    with path.open("wb") as file:
        session.setup()
        while session.size < size:
            session.turn()
            if session.size < size * 0.95:
                session.user()
                session.assistant()
                most = max(40_000, min(9_000_000, size // 20))
                session.picture(session.rng.randrange(most // 9, most))
                session.assistant()
            session.flush(file)
    return session.facts()


def tiny_entries(path, count, seed):
    """A chain of questions and answers of a few words."""
    session = Session(seed)
    nothing = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    with path.open("wb") as file:
        for number in range(count):
            if number % 2:
                words = [{"type": "text", "text": f"ok {number}"}]
                how = {"api": "a", "provider": "p", "model": "m", "usage": {**nothing, "cost": free}}
                session.message("assistant", {"content": words, **how, "stopReason": "stop"})
            else:
                session.message("user", {"content": f"step {number}"})
            if number % 4096 == 0:
                session.flush(file)
        session.flush(file)
    return session.facts()


def version_1(path, size, seed):
    """Entries without ids, a compaction by index, messages of hooks."""
    session = Session(seed, version=1)
    with path.open("wb") as file:
        compact_at = size * 0.9
        while session.size < size:
            session.turn()
            if session.rng.random() < 0.1:
                own = {"customType": "hook", "content": session.text("prose", 200), "display": True}
                session.message("hookMessage", own)
            if session.size > compact_at:
                kept = {"firstKeptEntryIndex": session.entries - 3, "tokensBefore": 150_000}
                session.add("compaction", {"summary": session.text("prose", 6000), **kept})
                compact_at = math.inf
            session.flush(file)
    return {"bytes": session.size, "entries": session.entries}


def short_session(folder, size, seed, cwd, scale):
    """One of many: its file's time is the time of its last entry."""
    session = Session(seed, cwd)
    session.setup(min(6000, size // 5))
    if session.rng.random() < 0.3:
        session.add("session_info", {"name": f"Session {seed}"})
    while session.size < size:
        session.turn(scale, most_steps=1 if size < 20_000 else 4)
    name = f"{session.stamp.replace(':', '-').replace('.', '-')}_{session.id}.jsonl"
    path = folder / name
    with path.open("wb") as file:
        session.flush(file)
    os.utime(path, ns=(session.clock * 10**6,) * 2)
    return session, name


def many_sessions(root, count, size, folders, scale):
    """Folders as pi names them, or all in one."""
    facts = {"bytes": 0, "sessions": count, "entries": 0, "messages": 0}
    newest = 0
    for number in range(count):
        cwd = f"/home/dev/projects/app-{number % folders:02}"
        encoded = "--" + cwd.strip("/").replace("/", "-") + "--"
        folder = root / "sessions" / encoded if folders > 1 else root
        folder.mkdir(parents=True, exist_ok=True)
        session, name = short_session(folder, size, f"{root.name} {number}", cwd, scale)
        facts["bytes"] += session.size
        facts["entries"] += session.entries
        facts["messages"] += session.messages
        if number == count // 2:
            facts["id"], facts["cwd"] = session.id, cwd
        if session.clock > newest:
            newest, facts["newest"] = session.clock, name
    return facts


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a file or folder is made: its name, the function that makes it at a path, about how big it gets."""

    name: str
    make: Callable
    bytes: int


def recipes(divisor):
    """name -> `Recipe`."""
    part = functools.partial

    def file(name, make, **how):
        size = how["size"] if "size" in how else how["count"] * TINY_ENTRY
        return name, Recipe(f"{name}.jsonl", part(make, **how), size)

    def folder(name, count, size, *args):
        # What the last turn adds, and the rest of the last block on the disk.
        return name, Recipe(
            name, part(many_sessions_at, (count, size, *args)), count * (size * 3 // 2 + 4096)
        )

    return dict(
        [
            file("S", long_session, size=MB // min(divisor, 10), seed="S"),
            file("M", long_session, size=50 * MB // divisor, seed="M"),
            file("L", long_session, size=500 * MB // divisor, seed="L"),
            file("XL", long_session, size=1000 * MB // divisor, seed="XL"),
            file("Lc", long_session, size=500 * MB // divisor, seed="Lc", late_compaction=True),
            file("Limg", pictures, size=500 * MB // divisor, seed="Limg"),
            file("T100", tiny_entries, count=100, seed="T100"),
            file("T200k", tiny_entries, count=200_000 // divisor, seed="T200k"),
            file("V1", version_1, size=100 * MB // divisor, seed="V1"),
            folder("D1", 5000 // divisor, 37_000, 50, 0.6),
            folder("D2", 1000 // divisor, 265_000, 1, 1.0),
            folder("D3", 10_000 // divisor, 4300, 1, 0.12),
            *(file(f"G{mb}", long_session, size=mb * MB, seed=f"G{mb}") for mb in GROWTH[divisor]["G"]),
            *(file(f"E{n}k", tiny_entries, count=n * 1000, seed=f"E{n}") for n in GROWTH[divisor]["E"]),
            *(folder(f"N{n}", n, 1500, 1, 0.04) for n in GROWTH[divisor]["N"]),
        ]
    )


def many_sessions_at(args, path):
    return many_sessions(path, *args)


@functools.cache
def made_by():
    """The fingerprint of this code: what another version made is made anew."""
    sources = [Path(__file__).read_bytes(), Path(texts.__file__).read_bytes()]
    return hashlib.sha256(b"".join(sources)).hexdigest()[:16]


class Data:
    """The files of one scale; made when they are first asked for."""

    def __init__(self, scale, root=HERE / "data"):
        self.scale, self.root = scale, Path(root) / scale
        self.recipes = recipes(SCALES[scale])
        self.facts_file = self.root / "facts.json"

    def path(self, name):
        return self.root / self.recipes[name].name

    def to_make(self, name):
        """About how many bytes must be written before the file can be used."""
        return 0 if self.is_made(name) else self.recipes[name].bytes

    def is_made(self, name):
        return self.known().get(name, {}).get("by") == made_by() and self.path(name).exists()

    def remove(self, name):
        """Give the room back; what is asked for again is made again."""
        path = self.path(name)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def facts(self, name):
        """What is in the file; it is made if it is not there, or not by this code."""
        return self.known()[name] if self.is_made(name) else self.make(name)

    def known(self):
        try:
            facts = json.loads(self.facts_file.read_bytes())
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def make(self, name):
        path, recipe = self.path(name), self.recipes[name]
        self.root.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        facts = {**recipe.make(path=path), "by": made_by()}
        known = {**self.known(), name: facts}
        beside = self.facts_file.with_suffix(".new")
        beside.write_text(json.dumps(known, indent=1))
        beside.replace(self.facts_file)
        return facts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    data = Data(options.scale)
    unknown = set(options.names) - set(data.recipes)
    if unknown:
        parser.error(f"no such files: {', '.join(sorted(unknown))}; there are {', '.join(data.recipes)}")
    for name in options.names or [n for n in data.recipes if n[0] not in "GEN"]:
        start = time.perf_counter()
        facts = data.facts(name)
        print(
            f"{name:6} {facts['bytes'] / MB:8.1f} MB  {time.perf_counter() - start:5.1f} s  {facts}",
            flush=True,
        )


if __name__ == "__main__":
    main()
