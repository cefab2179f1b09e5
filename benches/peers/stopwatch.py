"""What every measured Python process shares: the clock, the memory, how it is asked and answers.

A process is given one request as JSON text and prints one JSON object: ``seconds`` of the part that
counts, ``peak_mb`` of the whole process meanwhile, ``extra_mb`` over what it took before, and the answer.
"""

import contextlib
import gc
import hashlib
import json
import os
import sys
import time


class Clock:
    """``with clock: ...`` around what counts."""

    def __init__(self):
        self.seconds = self.peak_mb = self.extra_mb = 0.0

    def __enter__(self):
        gc.collect()
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forget the highest memory so far
        self.before = memory_mb("VmRSS")
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start
        self.peak_mb = memory_mb("VmHWM")
        self.extra_mb = self.peak_mb - self.before


def memory_mb(field):
    """``VmRSS`` or ``VmHWM`` of this process; elsewhere than on Linux its highest memory for both."""
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith(field))
        return int(line.split()[1]) / 1000
    except OSError:
        import resource

        unit = 1e6 if sys.platform == "darwin" else 1e3
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def digest(texts):
    """One fingerprint of many byte strings."""
    sum = hashlib.sha256()
    for text in texts:
        sum.update(text)
        sum.update(b"\n")
    return sum.hexdigest()[:16]


def digest_of_messages(messages):
    """A fingerprint of values, by JSON.stringify's text of each."""
    from sessiontree import jsontext

    return digest(map(jsontext.dumps, messages))


def compact(value):
    """JSON.stringify's text, of values without unusual numbers."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def digest_of_infos(rows):
    """A fingerprint of what a listing shows: rows of id, name, messages, first text, ms of change."""
    return digest(map(compact, rows))


def message(number):
    """What is appended, again and again."""
    text = f"question {number}: " + 'a line of text with a "quote" and an end.\n' * 2
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1767225600000 + number}


def opening_message():
    """What stands before the appended ones: some programs write no file without an assistant's word."""
    return {"role": "assistant", "content": [], "timestamp": 1}


def digest_of_file(path, role=None):
    """The messages (of a role) of a session file, whatever their ids and times are."""
    texts = []
    with open(path, "rb") as file:
        for line in file:
            entry = json.loads(line)
            if entry["type"] == "message" and role in (None, entry["message"]["role"]):
                texts.append(compact(entry["message"]))
    return {"messages": len(texts), "hash": digest(texts)}


def digest_of_body(path):
    """The lines behind the header, label entries aside, whose ids are new in every copy."""
    count, sum = 0, hashlib.sha256()
    with open(path, "rb") as file:
        file.readline()
        for line in file:
            if not line.startswith((b'{"type":"label"', b'{"type": "label"')):
                count += 1
                sum.update(line)
    return {"entries": count, "hash": sum.hexdigest()[:16]}


def the_only_file(folder):
    (name,) = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    return os.path.join(folder, name)


def main(works):
    """Do what the command line asks for, and print what came of it."""
    request = json.loads(sys.argv[1])
    clock = Clock()
    answer = works[request["do"]](request, clock)
    result = {
        "seconds": clock.seconds / request.get("times", 1),
        "peak_mb": round(clock.peak_mb, 1),
        "extra_mb": round(clock.extra_mb, 1),
        "answer": answer,
    }
    print(json.dumps(result))
