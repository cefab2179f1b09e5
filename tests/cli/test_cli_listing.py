"""The list command, and which session an argument means."""

import json
import os

import pytest
from cli_sessions import SAMPLES, user
from sessiontree import get_default_session_dir


@pytest.fixture
def sessions(home, write):
    """Three sessions of the working directory and one of another; the last written is the newest."""

    def place(id, text, cwd, second):
        folder = get_default_session_dir(str(cwd))
        path = write(user("aaaaaaaa", None, text, second), id=id, cwd=cwd, name=f"{folder}/2026_{id}.jsonl")
        os.utime(path, (1767225600 + second, 1767225600 + second))
        return path

    return {
        "abc-1": place("abc-1", "first", home, 1),
        "abc-2": place("abc-2", "second", home, 2),
        "xyz": place("xyz", "third", home, 3),
        "far": place("far", "elsewhere", "/elsewhere", 4),
    }


def test_list_shows_this_directory(run, sessions):
    """Newest first, only those of the working directory; --all has the others too."""
    assert [info["id"] for info in run("list", "--json").json] == ["xyz", "abc-2", "abc-1"]
    assert [info["id"] for info in run("list", "--json", "--all").json] == ["far", "xyz", "abc-2", "abc-1"]
    assert [info["id"] for info in run("list", "--json", "--cwd", "/elsewhere").json] == ["far"]
    assert [info["id"] for info in run("list", "--json", "-n", "2").json] == ["xyz", "abc-2"]


def test_list_says_what_matters(run, sessions, home):
    """A listing has the facts of a session as JSON, and the most of it as a line."""
    info = run("list", "--json").json[0]
    assert info == {
        "path": str(sessions["xyz"]),
        "id": "xyz",
        "cwd": str(home),
        "name": None,
        "parentSession": None,
        "created": "2026-01-01T00:00:00.000Z",
        "modified": "2026-01-01T00:00:03.000Z",
        "messageCount": 1,
        "firstMessage": "third",
        "size": sessions["xyz"].stat().st_size,
        "cost": 0,
        "version": 3,
        "lastRole": "user",
        "stopReason": None,
        "skippedLines": 0,
    }
    line = run("list").lines[0].split("\t")
    assert (line[0], *line[2:]) == (
        "xyz",
        "1",
        str(sessions["xyz"].stat().st_size),
        "0.0000",
        "waiting",
        str(home),
        "",
        "third",
    )


def test_an_empty_list(run, home):
    """No sessions are no error: an empty list, and a word about it on stderr."""
    done = run("list")
    assert (done.code, done.out) == (0, "")
    assert f"no sessions of {home} yet" in done.err
    assert run("list", "--json").json == []


def test_what_cannot_be_read_is_told(run, sessions):
    """A file that is no session leaves the others in the list, is named on stderr, and makes the code 1."""
    bad = sessions["xyz"].with_name("bad.jsonl")
    bad.write_text("no session\n")
    done = run("list", "--json")
    assert (done.code, len(done.json)) == (1, 3)
    assert done.err.count(str(bad)) == 1
    assert len(done.err.splitlines()) == 1


def test_a_session_is_meant_in_five_ways(run, sessions, monkeypatch):
    """By path, by id, by the beginning of an id, as the newest, and from another directory."""

    def meant(*arguments):
        return run("tree", *arguments, "--json").json["session"]

    assert meant(sessions["abc-1"]) == "abc-1"
    assert meant(os.path.relpath(sessions["abc-1"])) == "abc-1"
    assert meant("abc-2") == "abc-2"
    assert meant("xy") == "xyz"
    assert meant() == "xyz"
    assert meant("fa") == "far"
    assert meant("--cwd", "/elsewhere") == "far"
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(SAMPLES))
    assert meant("019face3-3800") == "019face3-3800-7c3e-9b42-5d1e8f0a6c21"


def test_the_beginning_of_several_ids(run, sessions):
    """It is wrong usage and lists the candidates; nothing is guessed."""
    done = run("tree", "abc")
    assert done.code == 2
    assert "abc-1 (first)" in done.err
    assert "abc-2 (second)" in done.err


@pytest.mark.parametrize("given", ["nothere", "", "*"])
def test_no_such_session(run, sessions, given):
    """An id that nothing begins with is exit code 1."""
    done = run("tree", given)
    assert (done.code, len(done.err.splitlines())) == (1, 1)


def test_no_session_yet(run, home):
    """Without any session the newest one is an error that says where to look."""
    done = run("tree")
    assert done.code == 1
    assert "list --all" in done.err


@pytest.mark.parametrize("how", ["option", "variable", "settings"])
def test_the_session_folder(run, home, tmp_path, write, monkeypatch, how):
    """The folder comes from --session-dir, else the environment, else the global settings."""
    write(user("aaaaaaaa", None, "here"), id="here", cwd=home, name="own/s_here.jsonl")
    own = tmp_path / "own"
    arguments = []
    if how == "option":
        arguments = ["--session-dir", own]
        monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "wrong"))
    elif how == "variable":
        monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(own))
    else:
        (tmp_path / "agent").mkdir()
        (tmp_path / "agent" / "settings.json").write_text(json.dumps({"sessionDir": str(own)}))
    assert [info["id"] for info in run("list", "--json", *arguments).json] == ["here"]
    assert run("tree", "--json", *arguments).json["session"] == "here"


def test_append_begins_a_session(run, home):
    """--new begins a session of the working directory, which is the newest then."""
    done = run("append", "--new", "-m", "hello", "--json").json
    assert run("list", "--json").json[0]["id"] == done["session"]
    assert run("path", "--json").json[-1]["id"] == done["id"]
    again = run("append", "-m", "more", "--json").json
    assert again["session"] == done["session"]
    assert os.stat(done["path"]).st_mode & 0o777 == 0o600


def test_the_demo_leaves_no_trace(run, sessions, tmp_path, monkeypatch):
    """The demo works on a copy: the sessions stay byte for byte, and its folder is gone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sessions.values()}
    done = run("demo")
    assert done.code == 0, done.err
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sessions.values()} == before
    assert not list(tmp_path.glob("sessiontree-demo-*"))
    for said in (
        "listed 4 sessions",
        "opened: 1 entry",
        "appended a message",
        "forked",
        "opened again: 2 entries",
    ):
        assert said in done.out


def test_the_demo_leaves_the_cache_alone(run, home, write, tmp_path, monkeypatch):
    """What is saved about the copy of a big session goes with the copy."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    entries = [user(f"{n:08x}", f"{n - 1:08x}" if n else None, "x" * 50_000, n) for n in range(120)]
    write(*entries, name=f"{get_default_session_dir(str(home))}/2026_big.jsonl", id="big", cwd=home)
    assert run("demo").code == 0
    assert os.environ["SESSIONTREE_CACHE_DIR"] == str(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_the_demo_has_samples(run, home):
    """Without sessions of one's own the demo shows the bundled ones."""
    done = run("demo")
    assert done.code == 0, done.err
    assert "listed 3 sessions" in done.out
    assert "(bundled samples)" in done.out
    assert "csvtail: the row without a newline" in done.out
    assert "opened thumbs-torn.jsonl: 8 entries, a torn last line left alone" in done.out
    assert "opened notes-version1.jsonl: 15 entries" in done.out
