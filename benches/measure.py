"""Runs measurements, each in a process of its own, and brings the answers together."""

import dataclasses
import functools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
VENV = HERE / ".venv-peers"
PORT = "pp-coding-agent==0.2.2"
WANTED = (PORT, "msgspec==0.20.0", "orjson")
TIMEOUT = 600
SPARE = 2 << 30
"""Bytes of the disk that stay free."""

OURS, PI, PP = "sessiontree", "pi 1.6.0", "pp 0.2.2"


class UnavailableError(Exception):
    """A peer cannot run here; the text says why."""


class SkippedError(Exception):
    """A work is not done; the text says why."""


@functools.cache
def pi():
    """The real pi and its node, installed by tests/interop."""
    sys.path.insert(0, str(HERE.parent / "tests" / "interop"))
    import pi_install

    try:
        return pi_install.find()
    except pi_install.PiUnavailableError as why:
        raise UnavailableError(str(why)) from None


@functools.cache
def peers_python():
    """A Python with the best Python port and msgspec, in an environment of their own."""
    python = VENV / "bin" / "python"
    stamp = VENV / "installed"
    if stamp.exists() and stamp.read_text() == repr(WANTED):
        return python
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        run_or_raise([sys.executable, "-m", "venv", str(VENV)])
        run_or_raise([str(python), "-m", "pip", "install", "-q", *WANTED])
    except subprocess.SubprocessError as error:
        shutil.rmtree(VENV, ignore_errors=True)
        raise UnavailableError(f"{', '.join(WANTED)} cannot be installed: {str(error)[-200:]}") from None
    stamp.write_text(repr(WANTED))
    return python


def run_or_raise(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise subprocess.SubprocessError(done.stderr.strip())


def command(peer):
    """The command that measures a peer, up to the request."""
    if peer == OURS:
        return [sys.executable, str(PEERS / "ours.py")]
    if peer == PI:
        return [str(pi().node), str(PEERS / "pi.mjs")]
    if peer == PP:
        return [str(peers_python()), str(PEERS / "pp.py")]
    python = peers_python() if peer == "msgspec" else sys.executable
    return [str(python), str(PEERS / "floors.py"), peer]


def environment(peer, extra):
    """The environment of a measured process; nothing of the user's sessions or caches is touched."""
    env = {**os.environ, "PYTHONPATH": str(HERE.parent / "python"), "PYTHONDONTWRITEBYTECODE": "", **extra}
    if peer == PI:
        env["PI_PACKAGE"] = str(pi().package)
    if peer == PP:
        # The port is slow enough without asking what else it might find.
        env.pop("PYTHONPATH")
    return env


@dataclasses.dataclass
class Result:
    """What a peer did in a work: all its runs, or why there are none."""

    runs: list = dataclasses.field(default_factory=list)
    error: str | None = None
    unavailable: bool = False

    @property
    def seconds(self):
        return statistics.median(run["seconds"] for run in self.runs) if self.runs else None

    @property
    def spread(self):
        times = [run["seconds"] for run in self.runs]
        return [min(times), max(times)] if times else None

    def megabytes(self, field):
        return statistics.median(run[field] for run in self.runs) if self.runs else None

    @property
    def answers(self):
        return [run["answer"] for run in self.runs]


def ask(peer, request, extra_env):
    """One measurement; raises RuntimeError with the peer's last words if it fails."""
    text = json.dumps(request)
    try:
        done = subprocess.run(
            [*command(peer), text],
            capture_output=True,
            text=True,
            env=environment(peer, extra_env),
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer in {TIMEOUT} s") from None
    if done.returncode:
        raise RuntimeError(last_words(done.stderr))
    return json.loads(done.stdout.splitlines()[-1])


def last_words(text):
    """The line that names the error, of Python's traceback or Node's."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.split(" ")[0] or line.startswith("FATAL")]
    return (named or lines or ["it died without a word"])[-1][:160]


class Place:
    """Where one work's scratch files lie; each run gets fresh ones."""

    def __init__(self, work, data, catalogs=None):
        self.work, self.data = work, data
        data.root.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="scratch-", dir=data.root))
        self.cache = catalogs / work.data if work.catalog else self.folder / "cache"
        self.facts = data.facts(work.data) if work.data else {}
        self.source = data.path(work.data) if work.data else None

    def __enter__(self):
        if self.source is not None:
            self.warm_up()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def warm_up(self):
        """Bring the files into the page cache: the disk is not what is measured."""
        buffer = bytearray(1 << 20)
        files = self.source.rglob("*.jsonl") if self.source.is_dir() else [self.source]
        for path in files:
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    def request(self, peer, *, check):
        """What a peer is asked, with fresh files for this run."""
        work = self.work
        request = {"do": work.action(peer), "check": check, **work.how}
        if work.times:
            request["times"] = work.times
        if self.source is not None:
            where = work.place(self.source, self.facts)
            request.update(where)
        if work.scratch == "folder":
            request["folder"] = tempfile.mkdtemp(dir=self.folder)
        if work.scratch in ("copy", "grown"):
            request["file"], request["bytes"] = self.copy(), self.facts["bytes"]
        if work.cached:
            request["cache"] = peer == OURS
        return request

    def copy(self):
        path = self.folder / "copy.jsonl"
        path.unlink(missing_ok=True)
        shutil.copyfile(self.source, path)
        return str(path)

    def env(self):
        # Never the user's own folder: what is not in the data is not looked at.
        agent = self.source if self.source is not None and self.source.is_dir() else self.folder / "agent"
        return {"PI_CODING_AGENT_DIR": str(agent), "SESSIONTREE_CACHE_DIR": str(self.cache)}

    def measure(self, peer, *, check):
        request = self.request(peer, check=check)
        if self.work.cached and peer == OURS:
            self.save_index(request)
        if self.work.catalog and peer == OURS and not self.cache.exists():
            ask(OURS, {**request, "do": "refresh"}, self.env())
        if self.work.scratch == "grown":
            grow(Path(request["file"]), self.facts)
        return ask(peer, request, self.env())

    def save_index(self, request):
        """Open once, so that the index is saved; one of a file that has just changed would not be."""
        age = time.time() - os.stat(request["file"]).st_ctime
        time.sleep(max(0, 2.2 - age))
        ask(OURS, request, self.env())


def grow(path, facts):
    """Append a megabyte of entries to a session file, as another program would."""
    parent, lines = facts["leaf"], []
    for number in range(1000):
        id = f"feed{number:04x}"
        message = {"role": "user", "content": "x" * 850, "timestamp": 1}
        stamp = "2026-06-01T00:00:00.000Z"
        entry = {"type": "message", "id": id, "parentId": parent, "timestamp": stamp, "message": message}
        lines.append(json.dumps(entry, separators=(",", ":")))
        parent = id
    with path.open("a") as file:
        file.write("\n".join(lines) + "\n")


class Measurer:
    """Measures works; what a peer did already, in another work of the same kind, is not done again."""

    def __init__(self, data, runs):
        self.data, self.runs = data, runs
        self.known = {}
        data.root.mkdir(parents=True, exist_ok=True)
        self.catalogs = tempfile.TemporaryDirectory(prefix="catalogs-", dir=data.root)

    def work(self, work):
        """peer -> `Result`, the peers taking turns.

        Raises:
            SkippedError: The disk has no room for the work's files.
        """
        self.check_room(work)
        results = {peer: self.known.get(self.key(work, peer)) or Result() for peer in work.peers}
        open_ones = [peer for peer in work.peers if not results[peer].runs]
        with Place(work, self.data, Path(self.catalogs.name)) as place:
            for number in range(self.runs):
                for peer in open_ones:
                    self.once(place, peer, results[peer], check=number == 0)
        for peer in open_ones:
            self.known[self.key(work, peer)] = results[peer]
        return results, place.facts

    def check_room(self, work):
        """Make sure that a work does not fill the disk up."""
        if work.data is None:
            return
        size = self.data.recipes[work.data].bytes
        copies = 2 if work.scratch == "folder" else 1 if work.scratch in ("copy", "grown") else 0
        needed = self.data.to_make(work.data) + (copies + work.catalog) * size
        free = shutil.disk_usage(self.data.root).free
        if needed + SPARE > free:
            gb = 1e9
            raise SkippedError(f"it needs {needed / gb:.1f} GB, and {free / gb:.1f} GB are free")

    def key(self, work, peer):
        if peer == OURS or work.scratch == "grown":
            return (work.name, peer)
        return (peer, work.action(peer), work.data, work.given, work.times, repr(work.how))

    def once(self, place, peer, result, *, check):
        if result.error:
            return
        try:
            result.runs.append(place.measure(peer, check=check))
        except UnavailableError as why:
            result.error, result.unavailable = f"not measured: {why}", True
        except RuntimeError as why:
            result.error, result.runs = f"fails: {why}", []


def judge(results, facts):
    """peer -> whether all its answers are the right ones; None where there is nothing to compare with.

    What the generator knows about its file is right; what it does not know is right as the first of pi
    and the others says it.
    """
    right, said_by = dict(facts), {key: {"generator"} for key in facts}
    for peer in sorted(results, key=lambda peer: (peer == OURS, peer != PI)):
        for key, value in said(results[peer]):
            right.setdefault(key, value)
            said_by.setdefault(key, set()).add(peer)
    return {peer: judged(results[peer], right, said_by) for peer in results}


def said(result):
    return [item for answer in result.answers for item in answer.items()]


def judged(result, right, said_by):
    compared = [(key, value) for key, value in said(result) if len(said_by[key]) > 1]
    if any(right[key] != value for key, value in said(result)):
        return False
    return True if compared else None


def machine():
    """What this ran on."""
    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), "")
    return {
        "cpus": os.cpu_count(),
        "cpu": model or platform.processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": list(os.getloadavg()),
    }
