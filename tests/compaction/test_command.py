"""``sessiontree compact`` and ``navigate`` as processes, with the vendors' clients and a model behind HTTP."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sessiontree import SessionManager

from . import _server
from ._server import serving

VENDORS = {"openai": _server.openai, "anthropic": _server.anthropic}
SUMMARY = "## Goal\nFind the row."


class Command:
    """Runs the command line in a process of its own, with a home that nobody else has."""

    def __init__(self, folder):
        self.folder = folder
        agent = folder / "agent"
        agent.mkdir()
        settings = {"retry": {"baseDelayMs": 1}, "compaction": {"keepRecentTokens": 500}}
        (agent / "settings.json").write_text(json.dumps(settings))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "PI_CODING_AGENT_DIR": str(agent),
            "SESSIONTREE_CACHE_DIR": str(folder / "cache"),
            "LOCAL_API_KEY": "from-the-environment",
            "ANTHROPIC_API_KEY": "from-the-environment",
            "NO_PROXY": "127.0.0.1",
        }

    def start(self, *arguments, stderr=subprocess.PIPE):
        command = [sys.executable, "-m", "sessiontree", *map(str, arguments)]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=stderr, text=True
        )

    def run(self, *arguments):
        """``(exit code, standard output, standard error)``."""
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)


@pytest.fixture
def session(tmp_path):
    """The file of a session of ten turns."""
    with SessionManager.create(tmp_path, tmp_path / "sessions") as manager:
        for turn in range(10):
            manager.append_message({"role": "user", "content": f"question {turn} " * 50, "timestamp": 0})
            text = [{"type": "text", "text": f"answer {turn} " * 50}]
            manager.append_message({"role": "assistant", "content": text, "timestamp": 0})
    return Path(manager.get_session_file())


@pytest.fixture(params=["openai", "anthropic"])
def vendor(request):
    pytest.importorskip(request.param)
    return request.param


def at(vendor, model):
    """The options that lead to a local model."""
    provider = "local" if vendor == "openai" else "anthropic"
    url = model.url + ("/v1" if vendor == "openai" else "")
    return ["--model", f"{provider}/m", "--base-url", url]


def leaf(path):
    with SessionManager.open(path, read_only=True, cache=False) as manager:
        return manager.get_leaf_entry()


def test_compact(command, session, vendor):
    """The summary that the model streams is printed and appended; the key comes from the environment."""
    before = session.read_bytes()
    with serving(VENDORS[vendor](SUMMARY)) as model:
        code, out, err = command.run("compact", session, *at(vendor, model))
    assert (code, err, SUMMARY in out) == (0, "", True)
    assert session.read_bytes().startswith(before)
    entry = leaf(session)
    assert (entry["type"], entry["summary"].startswith(SUMMARY)) == ("compaction", True)
    assert entry["usage"]["output"] == 30
    assert "from-the-environment" in json.dumps(model.asked[0]["headers"])


def test_compact_again_after_a_busy_moment(command, session, vendor):
    """An answer that says "overloaded" is waited out, as the settings say."""
    busy = _server.status(503, {"error": {"message": "overloaded", "type": "server_error"}})
    with serving(busy, busy, VENDORS[vendor](SUMMARY)) as model:
        code, _, err = command.run("compact", session, *at(vendor, model))
    assert (code, err, len(model.asked)) == (0, "", 3)


@pytest.mark.parametrize("kind", ["refused", "broken"])
def test_a_failure_is_one_line_and_changes_nothing(command, session, vendor, kind):
    """The exit code is 1, the reason is told, the session is as it was."""
    answer = VENDORS[vendor]
    name = "finish" if vendor == "openai" else "stop"
    key = {"error": {"message": "no such key", "type": "authentication_error"}}
    bad, reason = {
        "refused": (_server.status(401, key), "no such key"),
        "broken": (answer("half a", **{name: None}), "ended before the answer was complete"),
    }[kind]
    before = session.read_bytes()
    with serving(bad) as model:
        code, out, err = command.run("compact", session, *at(vendor, model))
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert reason in err
    assert session.read_bytes() == before


@pytest.mark.parametrize("what", ["compact", "navigate"])
def test_ctrl_c_while_the_model_is_silent(command, session, vendor, what):
    """The process ends with 130, without a traceback, and the session is as it was."""
    before = session.read_bytes()
    with SessionManager.open(session, read_only=True) as manager:
        root = manager.get_entries()[1]["id"]
    arguments = [session] if what == "compact" else [session, root, "--summarize"]
    with serving(VENDORS[vendor]("a word", hang=True)) as model:
        with command.start(what, *arguments, *at(vendor, model)) as process:
            assert model.was_asked(1, seconds=60)  # importing the vendor's package takes its time
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert model.hung_up.wait(60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert session.read_bytes() == before


def test_progress_is_for_terminals(command, session, vendor):
    """On a terminal the command says how much the model has written."""
    ours, theirs = pty.openpty()
    try:
        with (
            serving(VENDORS[vendor](*[SUMMARY] * 3)) as model,
            command.start("compact", session, *at(vendor, model), stderr=theirs) as process,
        ):
            process.communicate(timeout=60)
        os.close(theirs)
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
    assert process.returncode == 0
    assert "the model has written" in shown


def test_navigate(command, session, vendor):
    """The branch that is left is summarised at the new place, under the label."""
    with SessionManager.open(session, read_only=True) as manager:
        target = manager.get_entries()[5]["id"]
    with serving(VENDORS[vendor](SUMMARY)) as model:
        code, out, err = command.run(
            "navigate", session, target, "--summarize", "--label", "left", *at(vendor, model)
        )
    assert (code, err, SUMMARY in out) == (0, "", True)
    with SessionManager.open(session, read_only=True) as manager:
        summary, label = list(manager.get_entries())[-2:]
        assert (summary["type"], summary["parentId"]) == ("branch_summary", target)
        assert (label["type"], manager.get_label(summary["id"])) == ("label", "left")
