"""The floors: the least that a program must do, with a JSON library or without one.

``json``, ``orjson`` and ``msgspec`` parse every line; the cyclic collector is off meanwhile, which helps
them. ``read only`` and ``stat only`` do not even look at what they read. No floor checks, locks or
remembers anything.
"""

import fcntl
import gc
import json
import os
import re
import shutil
import sys
import uuid
from datetime import UTC, datetime

import stopwatch
from stopwatch import (
    digest,
    digest_of_body,
    digest_of_file,
    digest_of_messages,
    message,
    opening_message,
    the_only_file,
)


def loader(name):
    if name == "json":
        return json.loads
    if name == "orjson":
        import orjson

        return orjson.loads
    import msgspec

    return msgspec.json.Decoder().decode


def dumper(name):
    if name == "json":
        return lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if name == "orjson":
        import orjson

        return orjson.dumps
    import msgspec

    return msgspec.json.Encoder().encode


class Floor:
    """The works that need a JSON library."""

    def __init__(self, library):
        self.loads, self.dumps = loader(library), dumper(library)
        gc.disable()

    def entries(self, path):
        loads = self.loads
        with open(path, "rb") as file:
            return [loads(line) for line in file]

    def open(self, request, clock):
        with clock:
            entries = self.entries(request["file"])
            by_id = {entry["id"]: entry for entry in entries[1:]}
        return {"entries": len(by_id), "leaf": entries[-1]["id"]}

    def context(self, request, clock):
        with clock:
            entries = self.entries(request["file"])
            messages = context_messages(path_of(entries), entries)
        answer = {"messages": len(messages)}
        if request.get("check"):
            answer["hash"] = digest_of_messages(messages)
        return answer

    def context_lines(self, request, clock):
        """Parse just the lines that the context needs, which are in memory already."""
        with open(request["file"], "rb") as file:
            lines = file.readlines()
        entries = [json.loads(line) for line in lines]
        line_of = {entry["id"]: line for entry, line in zip(entries, lines, strict=True)}
        wanted = [line_of[entry["id"]] for entry in selected(path_of(entries))]
        del entries, lines, line_of
        loads = self.loads
        with clock:
            messages = [loads(line) for line in wanted]
        return {"messages": sum(is_in_context(m) for m in messages)}

    def path(self, request, clock):
        entries = self.entries(request["file"])
        by_id = {entry["id"]: entry for entry in entries[1:]}
        with clock:
            ids, id = [], entries[-1]["id"]
            while id is not None:
                ids.append(id)
                id = by_id[id]["parentId"]
            ids.reverse()
        return {"length": len(ids), "first": ids[0], "last": ids[-1]}

    def list(self, request, clock):
        with clock:
            count = messages = 0
            for path in session_files(request):
                count += 1
                messages += sum(entry["type"] == "message" for entry in self.entries(path))
        return {"sessions": count, "messages": messages}

    def search(self, request, clock):
        """Parse everything, and look for the words in what was said."""
        most = request.get("most")
        words = [
            re.compile(rf"(?<![^\W_]){word}(?![^\W_])", re.IGNORECASE) for word in request["query"].split()
        ]
        with clock:
            hits = {
                (os.path.basename(path), entry["id"]): None
                for path in session_files(request)
                for entry in self.entries(path)
                for text in searched(entry)
                if all(word.search(text) for word in words)
            }
        if most is not None:
            return {"hits": min(most, len(hits)), **({"sound": True} if request.get("check") else {})}
        answer = {"hits": len(hits)}
        if request.get("check"):
            answer["hash"] = digest(f"{file} {id}".encode() for file, id in sorted(hits))
        return answer

    def append(self, request, clock, *, locked=False):
        path = os.path.join(request["folder"], "floor.jsonl")
        messages = [opening_message(), *(message(n) for n in range(request["times"]))]
        with open(path, "ab", buffering=0) as file:
            parent = self.append_one(file, messages[0], None, locked)
            with clock:
                for one in messages[1:]:
                    parent = self.append_one(file, one, parent, locked)
        return digest_of_file(path, "user")

    def append_locked(self, request, clock):
        return self.append(request, clock, locked=True)

    def append_one(self, file, one, parent, locked):
        id = uuid.uuid4().hex[:8]
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        entry = {"type": "message", "id": id, "parentId": parent, "timestamp": stamp, "message": one}
        line = self.dumps(entry) + b"\n"
        if locked:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.fstat(file.fileno())
            os.stat(file.name)
        file.write(line)
        if locked:
            fcntl.flock(file, fcntl.LOCK_UN)
        return id

    def fork(self, request, clock):
        with clock:
            entries = self.entries(request["file"])
            path = os.path.join(request["folder"], "floor.jsonl")
            with open(path, "wb") as file:
                file.writelines(self.dumps(entry) + b"\n" for entry in entries)
        return {"leaf": entries[-1]["id"], **checked(request, path)}


def searched(entry):
    """The texts of an entry that a search looks at: what was said, called and printed, and names."""
    if entry["type"] == "session_info":
        return [entry["name"]]
    message = entry.get("message", {})
    content = message.get("content", "")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    said = "\n".join([block["text"] for block in blocks if block["type"] == "text"])
    sections = "\n".join(message.get("sections", {}).values())
    calls = [called(block) for block in blocks if block["type"] == "toolCall"]
    return [f"{said}\n{sections}", *calls]


def called(block):
    return "\n".join([block["name"], *map(str, block["arguments"].values())])


def checked(request, path):
    return digest_of_body(path) if request.get("check") else {}


def path_of(entries):
    """From the root to the last entry."""
    by_id = {entry["id"]: entry for entry in entries[1:]}
    path, id = [], entries[-1]["id"]
    while id is not None:
        path.append(by_id[id])
        id = by_id[id]["parentId"]
    path.reverse()
    return path


def selected(path):
    """What the newest compaction leaves of a path, the compaction first."""
    at = max((n for n, entry in enumerate(path) if entry["type"] == "compaction"), default=None)
    if at is None:
        return path
    first = next((n for n in range(at) if path[n]["id"] == path[at]["firstKeptEntryId"]), at)
    kept = [e for e in path[first:at] if e["type"] != "message" or e["message"]["role"] != "system"]
    return [path[at], *kept, *path[at + 1 :]]


def is_in_context(entry):
    return entry["type"] in ("message", "compaction", "custom_message", "branch_summary")


def milliseconds(stamp):
    return round(datetime.fromisoformat(stamp).timestamp() * 1000)


def context_messages(path, entries):
    chosen = selected(path)
    messages = [message_of(chosen[0], first=True)] + [message_of(e, first=False) for e in chosen[1:]]
    return [message for message in messages if message is not None]


def message_of(entry, *, first):
    kind = entry["type"]
    if kind == "message":
        return entry["message"]
    if kind == "compaction" and first:
        own = {"summary": entry["summary"], "tokensBefore": entry["tokensBefore"]}
        return {"role": "compactionSummary", **own, "timestamp": milliseconds(entry["timestamp"])}
    if kind == "branch_summary":
        own = {"summary": entry["summary"], "fromId": entry["fromId"]}
        return {"role": "branchSummary", **own, "timestamp": milliseconds(entry["timestamp"])}
    if kind == "custom_message":
        own = {key: entry[key] for key in ("customType", "content", "display", "details") if key in entry}
        return {"role": "custom", **own, "timestamp": milliseconds(entry["timestamp"])}
    return None


# ---- without looking at what is read


def session_files(request):
    folder = request.get("folder")
    if folder is not None:
        return [entry.path for entry in os.scandir(folder)]
    return [
        file.path
        for folder in os.scandir(os.path.join(request["root"], "sessions"))
        for file in os.scandir(folder.path)
    ]


def read(path, buffer):
    size = 0
    with open(path, "rb", buffering=0) as file:
        while got := file.readinto(buffer):
            size += got
    return size


def read_file(request, clock):
    with clock:
        size = read(request["file"], bytearray(1 << 20))
    return {"bytes": size}


def read_files(request, clock):
    with clock:
        buffer = bytearray(1 << 20)
        sizes = [read(path, buffer) for path in session_files(request)]
    return {"sessions": len(sizes), "bytes": sum(sizes)}


def stat_files(request, clock):
    with clock:
        sizes = [os.stat(path).st_size for path in session_files(request)]
    return {"sessions": len(sizes), "bytes": sum(sizes)}


def newest_by_stat(request, clock):
    with clock:
        newest = max(session_files(request), key=lambda path: os.stat(path).st_mtime_ns)
    return {"file": os.path.basename(newest)}


def splice(request, clock):
    """A new header, then the rest of the file as it is, copied by the kernel."""
    path = os.path.join(request["folder"], "floor.jsonl")
    with clock, open(request["file"], "rb") as source, open(path, "wb") as target:
        target.write(source.readline())
        target.flush()
        at = source.tell()
        os.lseek(source.fileno(), at, os.SEEK_SET)
        while os.copy_file_range(source.fileno(), target.fileno(), 1 << 30):
            pass
    return checked(request, path)


def copy(request, clock):
    with clock:
        shutil.copyfile(request["file"], os.path.join(request["folder"], "floor.jsonl"))
    return checked(request, the_only_file(request["folder"]))


def works(peer):
    if peer == "read only":
        return {"open": read_file, "context": read_file, "list": read_files, "migrate": read_file}
    if peer == "stat only":
        return {"list": stat_files, "recent": newest_by_stat}
    if peer == "cp":
        return {"fork": copy}
    if peer == "splice":
        return {"fork": splice}
    floor = Floor(peer.partition(",")[0])
    named = {
        "open": floor.open,
        "context": floor.context,
        "path ids": floor.path,
        "list": floor.list,
        "append": floor.append,
        "search": floor.search,
        "fork": floor.fork,
    }
    variants = {
        "orjson, locked": {"append": floor.append_locked},
        "orjson, its lines": {"context": floor.context_lines},
    }
    return variants.get(peer, named)


if __name__ == "__main__":
    sys.exit(stopwatch.main(works(sys.argv.pop(1))))
