"""Compacting, navigating and settings on the command line; a model is a function here."""

import json

import pytest
from sessiontree import SessionManager
from sessiontree.cli import _model
from sessiontree.compaction import SummaryResponse


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of our own."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def model(monkeypatch):
    """What the model answers; the list of what it was asked."""
    asked = []

    def answer(request):
        asked.append(request)
        if isinstance(asked.answer, BaseException):
            raise asked.answer
        return SummaryResponse(asked.answer)

    asked = type("Asked", (list,), {"answer": "## Goal\nFind the row."})()
    monkeypatch.setattr(_model, "summarizer", lambda model, base_url: answer)
    return asked


@pytest.fixture
def long(home):
    """A session of ten turns."""
    session = SessionManager.create(home, home.parent / "sessions")
    for turn in range(10):
        session.append_message({"role": "user", "content": f"question {turn} " * 50, "timestamp": 0})
        text = [{"type": "text", "text": f"answer {turn} " * 50}]
        session.append_message({"role": "assistant", "content": text, "timestamp": 0})
    session.close()
    return session.get_session_file()


OPTIONS = ["--model", "local/small", "--context-window", "8000", "--keep", "500"]


def test_a_dry_run_asks_nobody(run, long, model):
    """It says what would be cut, kept, and how much there is; nothing is written."""
    with open(long, "rb") as file:
        before = file.read()
    plan = run("compact", long, "--dry-run", "--keep", "500", "--json").json
    text = run("compact", long, "--dry-run", "--keep", "500").out
    assert plan["messagesToSummarize"] > 10
    assert f"{plan['tokensBefore']:,} tokens" in text
    assert plan["firstKeptEntryId"] in text
    assert plan["messagesToSummarize"] + plan["turnPrefixMessages"] + plan["messagesKept"] == 20
    assert 500 <= plan["tokensKept"] < 800
    assert plan["tokensToSummarize"] + plan["tokensKept"] == plan["tokensBefore"]
    assert f"about {plan['tokensKept']:,} tokens" in text
    assert run("compact", long, "--dry-run").out.startswith("nothing to do")
    assert model == []
    with open(long, "rb") as file:
        assert file.read() == before


def test_compact(run, long, model):
    """The summary is printed and appended."""
    done = run("compact", long, *OPTIONS, "-m", "the row")
    assert (done.code, done.err) == (0, "")
    assert "Find the row." in done.out
    assert "the row" in model[0].prompt
    last = SessionManager.open(long, read_only=True).get_leaf_entry()
    assert (last["type"], last["summary"].startswith("## Goal")) == ("compaction", True)


@pytest.mark.parametrize(
    "trouble", [KeyboardInterrupt(), ConnectionError("no network"), ImportError("needs openai")]
)
def test_trouble_leaves_the_session_as_it_was(run, long, model, trouble, monkeypatch):
    """After Ctrl-C or a failure nothing has been written."""
    monkeypatch.setattr(
        _model, "settings_of", lambda place: _model.SettingsManager.in_memory({"retry": {"enabled": False}})
    )
    model.answer = trouble
    with open(long, "rb") as file:
        before = file.read()
    done = run("compact", long, *OPTIONS)
    assert done.code == (130 if isinstance(trouble, KeyboardInterrupt) else 1)
    assert len(done.err.splitlines()) <= 1
    with open(long, "rb") as file:
        assert file.read() == before


def test_navigate(run, long, model):
    """Without a summary the place is remembered, with one it is appended."""
    ids = [entry["id"] for entry in SessionManager.open(long, read_only=True).get_entries()]
    done = run("navigate", long, ids[9], "--summarize", "--model", "local/small")
    assert (done.code, "Find the row." in done.out) == (0, True)
    leaf = SessionManager.open(long, read_only=True).get_leaf_entry()
    assert (leaf["type"], leaf["parentId"]) == ("branch_summary", ids[9])
    done = run("navigate", long, ids[4], "--json")
    assert done.json["newLeafId"] == ids[3]
    assert done.json["editorText"].startswith("question 2")
    with SessionManager.open(long, remember_leaf=True) as session:
        assert session.get_leaf_id() == ids[3]
    assert run("navigate", long, "nowhere").code == 1


def test_models_must_be_named(run, long):
    """Which model, and where it is, must be said."""
    for arguments in (
        ["compact", long],
        ["compact", long, "--model", "small"],
        ["compact", long, "--model", "x/y"],
    ):
        done = run(*arguments)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert "--model" in done.err or "--base-url" in done.err


def test_settings(run, home):
    """Settings are shown, changed and taken out."""
    assert run("settings", "compaction.keepRecentTokens").out == "20000\n"
    assert run("settings", "compaction.keepRecentTokens", "30000").out == "30000\n"
    assert run("settings").out == "compaction.keepRecentTokens = 30000\n"
    assert run("settings", "--json").json == {"compaction": {"keepRecentTokens": 30000}}
    file = home.parent / "agent" / "settings.json"
    assert json.loads(file.read_text()) == {"compaction": {"keepRecentTokens": 30000}}
    assert run("settings", "defaultModel", "claude").out == '"claude"\n'
    assert run("settings", "compaction.keepRecentTokens", "--unset").out == "20000\n"
    done = run("settings", "compaction.keepRecentTokens", "many")
    assert (done.code, len(done.err.splitlines())) == (1, 1)


def test_commands_stand_where_navigate_went(run, long, model):
    """Until something is appended; reading with --at moves nothing."""
    ids = [entry["id"] for entry in SessionManager.open(long, read_only=True).get_entries()]
    assert run("navigate", long, ids[5]).code == 0
    assert run("path", long, "--json").lines[-1].find(ids[5]) >= 0
    assert run("show", long, "--at", ids[1]).code == 0
    assert run("path", long, "--json").lines[-1].find(ids[5]) >= 0
    new = run("append", long, "-m", "another way").out.strip()
    assert SessionManager.open(long, read_only=True).get_entry(new)["parentId"] == ids[5]
    assert run("append", long, "-m", "bad\udcff").code == 2
