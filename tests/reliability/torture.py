"""The long run: every fault many times, counted; ``make torture``.

Prints a table, and with ``--write FILE`` puts it into that file between its two marks. Anything that is
lost ends the run with an error.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import preload
from .sessions import COUNTS

START, END = "<!-- table -->", "<!-- end of table -->"

MEANING = {
    "write": "a write fails (EIO, ENOSPC), once and from then on",
    "short": "a write stops short at one byte after another; cutting back works, or fails too",
    "sync": "fsync or fdatasync fails",
    "cut": "cutting back fails",
    "link": "no hard links, or linking fails",
    "rename": "renaming fails",
    "unlink": "a temporary file cannot be removed",
    "open": "opening fails (EIO, EACCES, EMFILE, EINTR)",
    "stat": "asking for a file's state fails",
    "lock": "locking or unlocking fails, is interrupted, or is not supported",
    "seek": "asking for the position behind a write fails",
    "read": "reading fails",
    "mkdir": "making a folder fails",
    "chmod": "setting a mode fails",
}


def injected(table, every):
    for name, count in preload.run("faulting", every, timeout=3600).items():
        table.append((MEANING[name], count))


def killed(table, kills, *short):
    counts = preload.run("killing", "calls", *short, timeout=3600)
    table.append(("killed before each system call, and in the middle of each write", sum(counts.values())))
    seen = preload.run("killing", "times", kills, timeout=7200)
    half, deeds = seen["left-half-done"], seen["acknowledged-deeds"]
    what = f"killed at a random time ({half} in the middle of a deed; {deeds} deeds acknowledged before)"
    table.append((what, seen["killed-at-a-random-time"]))


def tested(table, marked):
    """The rest of these tests; they note what they tried."""
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-m", marked, str(here)]
    command += ["--ignore", str(here / "test_injected.py")]
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "counts"
        command += ["--basetemp", str(Path(folder) / "tests")]
        huge = "0" if marked == "not slow" else "1"
        env = {**os.environ, COUNTS: str(notes), "SESSIONTREE_HUGE": huge}
        done = subprocess.run(command, env=env, check=False)
        if done.returncode:
            raise SystemExit("a test failed")
        table.extend(json.loads(text) for text in notes.read_text().splitlines())


def shown(table, seconds, command):
    release = ".".join(platform.release().split(".")[:2])
    kernel = f"{platform.system()} {release}, Python {platform.python_version()}"
    lines = ["| fault | times | lost |", "|---|---:|---:|"]
    lines += [f"| {what} | {count:,} | 0 |" for what, count in table]
    return "\n".join([*lines, "", f"`{command}`, {seconds / 60:.0f} min; {kernel}."])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: two minutes")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    start, table = time.monotonic(), []
    injected(table, 10 if given.quick else 1)
    killed(table, *([200, "short"] if given.quick else [2000]))
    tested(table, "not slow" if given.quick else "slow or not slow")
    text = shown(table, time.monotonic() - start, "make torture QUICK=1" if given.quick else "make torture")
    print(text)
    if given.write:
        before, _, rest = given.write.read_text().partition(START)
        given.write.write_text(f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
