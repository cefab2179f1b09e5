"""Differential fuzzer: random requests to pi and to sessiontree; the first difference is made small.

    .venv/bin/python tests/interop/fuzz.py --seconds 60 --seed 7

Prints what it did, and on a difference the smallest request found that still shows it, and exits with 1.
"""

import argparse
import json
import random
import re
import sys
import time

import both
import compare
from fuzz_cases import Maker
from fuzz_sessions import DEVIATING

BATCH = 40
# Texts of Python's own errors: whatever the input, none of them may be an answer.
INTERNAL = re.compile(
    r"object (?:has no attribute|is not \w+able|does not support)|'NoneType'|unhashable|indices must be"
    r"|not supported between|unsupported operand|cannot import|panicked|recursion|index out of range"
)


def asked(requests):
    """``(differences per request, pi's answers, ours)``."""
    theirs = both.oracle(requests)
    ours = both.candidate(requests)
    return [judged(*triple) for triple in zip(requests, theirs, ours, strict=True)]


def judged(request, theirs, ours):
    """What is wrong with our answer: a crash always, a difference unless it is meant."""
    if compare.CRASH in ours or INTERNAL.search(json.dumps([*error_texts(ours)])):
        return [("", "an answer", ours)]
    if theirs.get("hangs") or "requestError" in theirs or excused(request):
        return []
    if "requestError" in ours:
        return [("", "an answer", ours)]
    return both.differences(theirs, ours)


def error_texts(result):
    """The texts of all errors in a result."""
    if isinstance(result, dict):
        for key, value in result.items():
            if key in ("error", "openError", "requestError") and isinstance(value, dict):
                yield value.get("message")
            else:
                yield from error_texts(value)
    elif isinstance(result, list):
        for value in result:
            yield from error_texts(value)


def excused(request):
    """Is a difference meant, for what the request was made of or for what became of it by making it smaller?"""
    if any(tag in DEVIATING for tag in request.get("tags", ())):
        return True
    file = request.get("file") or {}
    return any(map(keeps_from_later, [file, *(f.get("src", {}) for f in request.get("files", ()))]))


def keeps_from_later(file):
    """Does a compaction of a version 1 file keep what comes behind it (B09)?"""
    for number, line in enumerate(file.get("text", "").split("\n")):
        found = re.search(r'"firstKeptEntryIndex":(\d+)', line)
        if found and int(found[1]) > number:
            return True
    return False


def smaller(request):
    """All requests with one line, one step or one file less, big bites first."""
    yield from fewer(request, "ops", request.get("ops") or [])
    yield from fewer(request, "files", request.get("files") or [])
    text = (request.get("file") or {}).get("text")
    if text is not None:
        for lines in shorter(text.split("\n")):
            yield {**request, "file": {"text": "\n".join(lines)}}


def fewer(request, key, items):
    for kept in shorter(items):
        yield {**request, key: kept}


def shorter(items):
    """The list without its halves, quarters, ... and single items."""
    size = len(items) // 2
    while size:
        for at in range(0, len(items), size):
            yield items[:at] + items[at + size :]
        size //= 2


def minimised(request, found):
    """The smallest request that still differs at the same kind of place."""
    kind = place(found)
    while True:
        candidates = list(smaller(request))
        for at in range(0, len(candidates), BATCH):
            batch = candidates[at : at + BATCH]
            hit = next(
                ((r, f) for r, f in zip(batch, asked(batch), strict=True) if f and place(f) == kind), None
            )
            if hit:
                request, found = hit
                break
        else:
            return request, found


def place(found):
    """Where the first difference lies, without the numbers of lines and steps."""
    return "".join(c for c in found[0][0] if not c.isdigit())


def show(seed, number, request, found):
    print(f"\nDIFFERENCE (seed {seed}, request {number}); smallest request:")
    print(json.dumps(request, ensure_ascii=True))
    for path, theirs, ours in found[:6]:
        print(f"  {path}\n    pi : {json.dumps(theirs)[:500]}\n    got: {json.dumps(ours)[:500]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument(
        "--keep-going", action="store_true", help="show differences without making them small"
    )
    options = parser.parse_args()
    sys.setrecursionlimit(10000)
    seed = random.randrange(10**9) if options.seed is None else options.seed
    maker = Maker(random.Random(seed))
    until = time.monotonic() + options.seconds
    done = strict = failures = 0
    while time.monotonic() < until:
        requests = [maker.request() for _ in range(BATCH)]
        for number, (request, found) in enumerate(zip(requests, asked(requests), strict=True), done):
            if not found:
                continue
            failures += 1
            if not options.keep_going:
                show(seed, number, *minimised(request, found))
                return 1
            show(seed, number, request, found)
        done += len(requests)
        strict += sum(not excused(request) for request in requests)
    print(f"seed {seed}: {done} requests, {strict} of them compared in full, {failures} differ")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
