"""Counts the instructions of a scan, a listing and of appends, and compares them with those on record.

    .venv/bin/python benches/instructions.py [--record]

Times depend on the machine and on what else it does; the number of instructions hardly does. Counted are, by
valgrind's callgrind:

* ``scan``: the core opens a file of 1 MB, on one thread;
* ``list``: the core lists a folder of 100 sessions, on one thread;
* ``append``: the core appends to that file, each time;
* ``append from Python``: `SessionManager.append_message`, each time, the interpreter's work included.

The numbers on record are in ``instructions.json``. More than TOLERANCE above is a regression (exit status 1);
more than that below is worth recording, with --record. What was recorded with another compiler or another
Python is not compared. Without valgrind nothing is counted, and that is said.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import Data, made_by

HERE = Path(__file__).resolve().parent
RECORD = HERE / "instructions.json"
EXAMPLE = HERE.parent / "target" / "release" / "examples" / "counted"
TOLERANCE = 0.04
TIMES = 1000

PYTHON = """
import sys
from sessiontree import SessionManager
session = SessionManager.open(sys.argv[1], cache=False)
message = {"role": "user", "content": [{"type": "text", "text": "a line of text " * 8}], "timestamp": 1}
for _ in range(int(sys.argv[2])):
    session.append_message(message)
"""


def build():
    command = ["cargo", "build", "-q", "--release", "-p", "sessiontree-core", "--example", "counted"]
    subprocess.run(command, cwd=HERE.parent, check=True)


def counted(command):
    """The instructions of a command."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        # Hashes and addresses that change from run to run would change the count.
        env = {**os.environ, "PYTHONPATH": str(HERE.parent / "python"), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed under valgrind:\n{done.stderr[-2000:]}")
        return int(re.search(r"^(?:summary|totals): (\d+)", Path(out).read_text(), re.MULTILINE)[1])


def each(make_command, source):
    """The instructions of one of TIMES appends, start and end of the process taken off."""
    with tempfile.TemporaryDirectory() as folder:
        counts = []
        for times in (TIMES // 10, TIMES // 10 + TIMES):
            copy = shutil.copyfile(source, os.path.join(folder, f"{times}.jsonl"))
            counts.append(counted(make_command(copy, str(times))))
    return round((counts[1] - counts[0]) / TIMES)


def measured():
    data = Data("full")
    data.facts("S")
    source = str(data.path("S"))
    many = Data("smoke")
    many.facts("D3")
    return {
        "scan": counted([str(EXAMPLE), "scan", source]),
        "list": counted([str(EXAMPLE), "list", str(many.path("D3"))]),
        "append": each(lambda path, times: [str(EXAMPLE), "append", path, times], source),
        "append from Python": each(lambda path, times: [sys.executable, "-c", PYTHON, path, times], source),
    }


def circumstances():
    """What the numbers depend on besides the code."""
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[
        1
    ]
    return {"rust": rust, "python": platform.python_version(), "cpu": platform.machine(), "files": made_by()}


def compare(record, now, where):
    """Print both numbers of each count; whether all are in order."""
    sound = True
    for name, count in now.items():
        python = name.endswith("Python")
        other = [key for key in where if record["where"][key] != where[key] and (python or key != "python")]
        old = record["counts"].get(name)
        if old is None or other:
            why = f"recorded with another {', '.join(other)}" if old else "not recorded yet"
            print(f"{name}: {count:,} instructions, not compared: {why} (record with --record)")
            continue
        change = count / old - 1
        sound = sound and change <= TOLERANCE
        verdict = (
            "TOO MANY" if change > TOLERANCE else "fewer: record them" if change < -TOLERANCE else "as before"
        )
        print(f"{name}: {count:,} instructions, {change:+.1%} of {old:,}: {verdict}")
    return sound


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="keep today's numbers")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("instructions are not counted: there is no valgrind")
        return 0
    build()
    now, where = measured(), circumstances()
    if options.record:
        RECORD.write_text(json.dumps({"where": where, "counts": now}, indent=1) + "\n")
        print(json.dumps(now))
        return 0
    return 0 if compare(json.loads(RECORD.read_text()), now, where) else 1


if __name__ == "__main__":
    sys.exit(main())
