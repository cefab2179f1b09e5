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
    "short": "a write stops short, at each byte; cutting back works, or fails as well",
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


def injected(table):
    for name, count in preload.run("faulting", 1, timeout=3600).items():
        table.append((MEANING[name], count))


def killed(table, kills):
    counts = preload.run("killing", "calls", timeout=3600)
    table.append(("killed before each system call, and in the middle of each write", sum(counts.values())))
    seen = preload.run("killing", "times", kills, timeout=7200)
    half, deeds = seen["left-half-done"], seen["acknowledged-deeds"]
    table.append(
        (
            f"killed at a random time ({half} of them in the middle of a deed, {deeds} deeds acknowledged before)",
            seen["killed-at-a-random-time"],
        )
    )


def tested(table):
    """The rest of these tests, slow ones too; they note what they tried."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "counts"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow", str(Path(__file__).parent)],
            env={**os.environ, COUNTS: str(notes)},
            check=False,
        )
        if done.returncode:
            raise SystemExit("a test failed")
        table.extend(json.loads(text) for text in notes.read_text().splitlines())


def shown(table, seconds):
    kernel = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    lines = ["| fault | times | lost |", "|---|---:|---:|"]
    lines += [f"| {what} | {count:,} | 0 |" for what, count in table]
    return "\n".join(
        [*lines, "", f"{sum(count for _, count in table):,} in {seconds / 60:.0f} min; {kernel}."]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    start, table = time.monotonic(), []
    injected(table)
    killed(table, given.kills)
    tested(table)
    text = shown(table, time.monotonic() - start)
    print(text)
    if given.write:
        before, _, rest = given.write.read_text().partition(START)
        given.write.write_text(f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
