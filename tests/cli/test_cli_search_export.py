"""The commands that look through all sessions, and that write one for people."""

import json
import re

import pytest
from cli_sessions import SAMPLES
from sessiontree import SessionManager


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of this test's own."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))


def test_search_finds_entries(run):
    """Each hit names its session and entry; the marks lie on what was found."""
    hits = run("search", "carriage return", "--all", "--session-dir", SAMPLES, "--json").json
    assert [hit["entry"] for hit in hits] == [entry_with("carriage return")]
    [start, end] = hits[0]["marks"][0]
    assert hits[0]["snippet"][start:end] == "carriage"
    text = run("search", "carriage return", "--all", "--session-dir", SAMPLES).out
    assert "the carriage return stays on the last column" in text


def entry_with(text):
    session = SessionManager.open(SAMPLES / "csvtail-branches.jsonl", read_only=True)
    [id] = [entry["id"] for entry in session.get_entries() if text in json.dumps(entry)]
    return id


def test_search_keeps_to_the_directory(run):
    """Without --all only sessions of the working directory are searched; nothing found is exit code 1."""
    done = run("search", "carriage", "--session-dir", SAMPLES)
    assert (done.code, done.out, done.err) == (1, "", "")
    assert run("search", "carriage", "--session-dir", SAMPLES, "--cwd", "/home/ada/csvtail").code == 0


def test_search_by_role_and_regex(run):
    """--role and --regex narrow what is found."""
    arguments = ["--all", "--session-dir", SAMPLES, "--json"]
    assert {hit["role"] for hit in run("search", "row", "--role", "user", *arguments).json} == {"user"}
    assert run("search", r"no.time", "--regex", *arguments).json
    done = run("search", "(", "--regex", *arguments)
    assert (done.code, len(done.err.splitlines())) == (1, 1)


def test_search_does_not_write_to_sessions(run, tmp_path):
    """Only the cache folder is written."""
    before = {path: path.read_bytes() for path in SAMPLES.iterdir()}
    assert run("search", "row", "--all", "--session-dir", SAMPLES).code == 0
    assert {path: path.read_bytes() for path in SAMPLES.iterdir()} == before
    assert list((tmp_path / "cache").iterdir())


def test_search_shows_no_control_characters(run, write, tmp_path):
    """Snippets are as harmless to a terminal as all other text."""
    entry = {"type": "message", "id": "aaaaaaaa", "parentId": None}
    entry["message"] = {"role": "user", "content": "needle \x1b]0;x\x07 \x9b2J", "timestamp": 1767225600000}
    path = write(entry, name="own/s.jsonl")
    for more in ([], ["--json"]):
        out = run("search", "needle", "--all", "--session-dir", path.parent, *more).out
        assert "needle" in out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


@pytest.mark.parametrize("ending", ["html", "md", "jsonl"])
def test_export_writes_a_file(run, branches, tmp_path, ending):
    """The file's ending decides the format; a file that exists is left alone."""
    if ending == "html":
        pytest.importorskip("markdown_it")
        pytest.importorskip("pygments")
    before = branches.read_bytes()
    output = tmp_path / f"out.{ending}"
    done = run("export", branches, "-o", output)
    assert (done.code, done.out) == (0, f"{output}\n"), done.err
    text = output.read_text("utf-8")
    assert "which release should this go into" in text.lower()
    assert branches.read_bytes() == before
    again = run("export", branches, "-o", output)
    assert (again.code, len(again.err.splitlines())) == (1, 1)
    assert output.read_text("utf-8") == text


def test_export_of_another_branch(run, branches, tmp_path):
    """--at writes the branch to that entry, as a session file that opens."""
    output = tmp_path / "branch.jsonl"
    assert run("export", branches, "-o", output, "--at", "902a17").code == 0
    old, new = SessionManager.open(branches, read_only=True), SessionManager.open(output, read_only=True)
    assert list(new.path_ids()) == list(old.path_ids("902a174f"))


def test_export_needs_a_known_ending(run, branches, tmp_path):
    """An ending that names no format is one line, and nothing is written."""
    done = run("export", branches, "-o", tmp_path / "out.txt")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert not (tmp_path / "out.txt").exists()
    assert run("export", branches).code == 2
