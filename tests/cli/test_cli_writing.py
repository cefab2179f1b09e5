"""The commands that write: append and fork."""

import io
import json
import os
import sys
from pathlib import Path

import pytest
from cli_sessions import sample
from sessiontree import SessionManager


@pytest.fixture
def stdin(monkeypatch):
    """Put bytes on standard input."""

    def stdin(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))

    return stdin


def test_append_adds_one_line(run, branches):
    """A user message becomes the leaf; the bytes before it stay."""
    before = branches.read_bytes()
    done = run("append", branches, "-m", "one more\nquestion")
    after = branches.read_bytes()
    assert done.code == 0
    assert after.startswith(before)
    entry = json.loads(after[len(before) :])
    assert entry["id"] == done.out.strip()
    assert entry["message"]["content"] == [{"type": "text", "text": "one more\nquestion"}]
    assert entry["message"]["role"] == "user"
    assert entry["parentId"] == json.loads(before.splitlines()[-1])["id"]


def test_append_takes_text_from_standard_input(run, branches, stdin):
    """Text from a pipe is taken whole, but for the last newline."""
    stdin("from\na pipe é\n".encode())
    id = run("append", branches).out.strip()
    session = SessionManager.open(branches, read_only=True)
    assert session.get_entry(id)["message"]["content"][0]["text"] == "from\na pipe é"


def test_append_refuses_what_is_no_utf8(run, branches, stdin):
    """Bytes that are no text are an error that names the first one; nothing is appended."""
    before = branches.read_bytes()
    stdin(b"first\nsecond \xff\n")
    done = run("append", branches)
    assert (done.code, branches.read_bytes()) == (1, before)
    assert "byte 0xff at byte 13 (line 2)" in done.err


def test_append_at_another_entry(run, branches):
    """--at hangs the message on that entry, found by the beginning of its id."""
    done = run("append", branches, "--at", "902a17", "-m", "elsewhere", "--json").json
    session = SessionManager.open(branches, read_only=True)
    assert session.get_entry(done["id"])["parentId"] == "902a174f"
    assert done["path"] == str(branches)


def test_append_a_whole_message(run, branches):
    """A message given as JSON is stored with all its fields."""
    message = {"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1, "extra": {"a": 1.5}}
    id = run("append", branches, "--message", json.dumps(message)).out.strip()
    assert SessionManager.open(branches, read_only=True).get_entry(id)["message"] == message


def test_navigate_says_where_it_went(run, branches, tmp_path):
    """Without a text to write anew, the new place is printed."""
    entries = SessionManager.open(branches, read_only=True).get_entries()
    answer = next(e["id"] for e in entries if e.get("message", {}).get("role") == "assistant")
    assert run("navigate", branches, answer).out == f"the session stands at {answer}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["compaction", "3"],
        ["compaction.modelOverrides", "[]"],
        ["compaction", '{"keepRecentTokens": "many"}'],
        ["retry.provider", "true"],
    ],
)
def test_settings_keep_their_sections(run, arguments):
    """A value in the place of a section, and one inside that does not fit, is refused."""
    done = run("settings", *arguments)
    assert (done.code, "must be" in done.err) == (1, True)
    assert run("settings", "compaction", '{"keepRecentTokens": 5}').code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-m", " \n"], "the message is empty"),
        (["--message", "{"], "no JSON"),
        (["--message", "[]"], "object with a 'role'"),
        (["--message", '{"role":"user"}'], "needs 'content'"),
        (["-m", "a", "--message", "{}"], "give one of them"),
        (["--new", "-m", "a", "--at", "x"], "--new begins a session"),
    ],
)
def test_append_refuses_nonsense(run, branches, arguments, says):
    """Wrong usage is exit code 2 and writes nothing."""
    before = branches.read_bytes()
    done = run("append", *([] if "--new" in arguments else [branches]), *arguments)
    assert (done.code, says in done.err) == (2, True), done.err
    assert branches.read_bytes() == before


def test_append_closes_a_torn_line(run, tmp_path, branches):
    """Nothing is ever glued to a torn line: it is closed first."""
    torn = branches.read_bytes() + b'{"type":"message","id":"half'
    branches.write_bytes(torn)
    id = run("append", branches, "-m", "next").out.strip()
    data = branches.read_bytes()
    assert data.startswith(torn + b"\n{")
    assert json.loads(data.splitlines()[-1])["id"] == id


def test_append_does_not_create_by_mistake(run, home):
    """A path that does not exist is an error; nothing appears."""
    done = run("append", home / "typo.jsonl", "-m", "hello")
    assert done.code == 1
    assert "--new" in done.err
    assert not (home / "typo.jsonl").exists()


def test_append_refuses_a_newer_version(run, write):
    """A session of a newer format is left alone."""
    path = write('{"type":"message","id":"aaaaaaaa","parentId":null,"message":{"role":"user","content":"a"}}')
    path.write_text(path.read_text().replace('"version": 3', '"version": 4'))
    before = path.read_bytes()
    done = run("append", path, "-m", "hello")
    assert (done.code, path.read_bytes()) == (1, before)
    assert "version 4" in done.err


def test_fork_copies_the_whole_tree(run, branches, tmp_path):
    """A fork has all entries, a new id, the old path as its parent; the source stays as it is."""
    before = branches.read_bytes()
    target = tmp_path / "forks"
    done = run("fork", branches, "--session-dir", target, "--to", "/elsewhere", "--json").json
    old, new = (
        SessionManager.open(branches, read_only=True),
        SessionManager.open(done["path"], read_only=True),
    )
    assert list(new.get_entries()) == list(old.get_entries())
    assert new.get_header()["parentSession"] == str(branches)
    assert new.get_cwd() == "/elsewhere" == done["cwd"]
    assert new.get_session_id() == done["session"] != old.get_session_id()
    assert branches.read_bytes() == before
    assert os.stat(done["path"]).st_mode & 0o777 == 0o600


def test_fork_of_a_path(run, branches, tmp_path):
    """--at takes the path to that entry only, with the labels of what is on it."""
    before = branches.read_bytes()
    path = run("fork", branches, "--session-dir", tmp_path / "forks", "--at", "1711eb57").out.strip()
    old, new = SessionManager.open(branches, read_only=True), SessionManager.open(path, read_only=True)
    expected = [e["id"] for e in old.get_branch("1711eb57") if e["type"] != "label"]
    assert [e["id"] for e in new.get_entries()][: len(expected)] == expected
    assert new.get_label("1711eb57") == "last row fixed"
    assert branches.read_bytes() == before


def test_fork_of_a_path_without_conversation(run, branches, tmp_path):
    """A path without any message makes no session, and says so."""
    first = SessionManager.open(branches, read_only=True).get_entries()[0]["id"]
    done = run("fork", branches, "--session-dir", tmp_path / "forks", "--at", first)
    assert done.code == 1
    assert "no message" in done.err
    assert not list(Path(tmp_path).glob("forks/*"))


def test_fork_of_an_old_version_leaves_it_alone(run, tmp_path):
    """A version 1 file is migrated in the copy only."""
    path = tmp_path / "old.jsonl"
    path.write_bytes(sample("notes-version1.jsonl"))
    before = path.read_bytes()
    done = run("fork", path, "--session-dir", tmp_path / "forks", "--json").json
    assert done["entries"] == 15
    assert SessionManager.open(done["path"], read_only=True).get_header()["version"] == 3
    assert path.read_bytes() == before


def test_fork_of_a_path_never_migrates_the_source(run, tmp_path):
    """Of an old version only the whole tree can be forked: its file must stay as it is."""
    path = tmp_path / "old.jsonl"
    path.write_bytes(sample("notes-version1.jsonl"))
    entry = run("path", path, "--json").json[3]["id"]
    done = run("fork", path, "--session-dir", tmp_path / "forks", "--at", entry)
    assert (done.code, path.read_bytes()) == (1, sample("notes-version1.jsonl"))
    assert "fork it whole" in done.err
