"""Asks pi and sessiontree the same and compares the answers.

``oracle`` puts recorded-style requests to the real pi with a fixed clock and fixed ids; ``candidate`` puts
them to sessiontree through the conformance adapter; ``differences`` compares by the comparer's rules.
``PiProcess`` is one living pi without any of that, for tests that share real files with it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pi_install

HERE = Path(__file__).resolve().parent
CONFORMANCE = HERE.parent / "conformance"
CASES = CONFORMANCE / "cases"
sys.path.insert(0, str(CONFORMANCE))

import compare  # noqa: E402
import wording  # noqa: E402


def oracle(requests, base=CASES):
    """pi's answers, its long texts replaced by tokens."""
    pi = pi_install.find()
    with tempfile.TemporaryDirectory() as folder:
        mask = os.path.join(folder, "mask.json")
        wording.write(mask, str(pi.package))
        done = subprocess.run(
            [str(pi.node), str(CONFORMANCE / "oracle.mjs")],
            input=json.dumps({"base": str(base), "requests": requests}),
            capture_output=True,
            text=True,
            check=False,
            env={**pi.environment(), "ORACLE_MASK": mask},
        )
    if done.returncode:
        raise RuntimeError(f"the oracle failed: {done.stderr[-1000:]}")
    return json.loads(done.stdout)


def candidate(requests, base=CASES, timeout=120):
    """sessiontree's answers, in a process of its own: a hang or a crash is an answer too."""
    process = subprocess.Popen(
        [sys.executable, str(CONFORMANCE / "adapter.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(json.dumps({"base": str(base), "requests": requests}), timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return one_by_one(requests, base, timeout, f"no result after {timeout} s")
    if process.returncode:
        return one_by_one(requests, base, timeout, f"exit status {process.returncode}: {err[-300:].strip()}")
    return json.loads(out)


def one_by_one(requests, base, timeout, why):
    """After a failed batch, the answers of those requests that do not fail alone."""
    if len(requests) == 1:
        return [{compare.CRASH: why}]
    return [candidate([request], base, timeout)[0] for request in requests]


def differences(theirs, ours):
    """``[(path, pi's, ours)]`` by the comparer's rules; a crash or a hang of ours is always one."""
    if isinstance(ours, dict) and (compare.CRASH in ours or "requestError" in ours):
        return [("", "an answer", ours)]
    return compare.compare(theirs, ours, strict=False)


def compare_requests(requests, base=CASES):
    """All differences of all requests, each with its request's number."""
    pairs = zip(oracle(requests, base), candidate(requests, base), strict=True)
    return [(i, *d) for i, (theirs, ours) in enumerate(pairs) for d in differences(theirs, ours)]


class PiError(Exception):
    """What pi said when it refused."""


class PiProcess:
    """A living pi with its own clock and ids; ``pi.call("getEntries", on="a")``."""

    def __init__(self):
        pi = pi_install.find()
        self.process = subprocess.Popen(
            [str(pi.node), str(HERE / "pi_server.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=pi.environment(),
        )

    def call(self, fn, *args, on=None, as_=None):
        request = {"fn": fn, "args": list(args)}
        request.update({k: v for k, v in (("on", on), ("as", as_)) if v is not None})
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            raise PiError(reply["error"])
        return reply.get("ok")

    def open(self, path, as_="a"):
        return self.call("open", str(path), as_=as_)

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
