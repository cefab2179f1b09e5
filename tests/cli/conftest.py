"""Sessions and a way to run the command line."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest
from cli_sessions import SAMPLES
from sessiontree.cli import main


@dataclasses.dataclass
class Done:
    """What a run gave back."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An agent folder and a working directory that nobody else has."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def run(home, capsys):
    """Run the command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def branches(tmp_path):
    """A copy of the sample with branches, labels and a compaction."""
    return Path(shutil.copy(SAMPLES / "csvtail-branches.jsonl", tmp_path))


@pytest.fixture
def write(tmp_path):
    """Write a session file from entries (dicts), or from text as it is."""

    def write(*entries, name="session.jsonl", cwd="/code", tail="", id="sess-1"):
        header = {
            "type": "session",
            "version": 3,
            "id": id,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": str(cwd),
        }
        lines = [e if isinstance(e, str) else json.dumps(e) for e in (header, *entries)]
        path = tmp_path / name
        os.makedirs(path.parent, exist_ok=True)
        path.write_text("\n".join(lines) + "\n" + tail, "utf-8")
        return path

    return write
