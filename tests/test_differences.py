"""docs/differences.md: every difference from pi has tests, and those that have no better place are here."""

import json
import re
import stat
from pathlib import Path

import pytest
from sessiontree import SessionManager, jsontext
from sessiontree.cli import main
from sessiontree.doctor import check
from sessiontree.exceptions import BrokenTreeWarning

TESTS = Path(__file__).resolve().parent
PAGE = (TESTS.parent / "docs" / "differences.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "| pi 1.6.0 |" not in line]


def test_every_difference_is_on_the_page():
    """The page has a row for each known fault of pi."""
    numbers = {bug["id"] for bug in json.loads((TESTS / "conformance" / "deviations.json").read_text())}
    assert numbers <= set(re.findall(r"B\d\d", " ".join(row.split("|")[1] for row in ROWS)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip() or "-")
def test_every_difference_has_tests(row):
    """The tests that a row names exist."""
    named = re.findall(r"`(test_\w+)`", row.split("|")[4])
    assert named
    sources = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]
    for name in named:
        assert any(re.search(rf"def {name}\(", source) for source in sources), name


def user(text):
    return {"role": "user", "content": text, "timestamp": 1}


def test_b07_a_fork_of_an_old_session_is_a_new_one(tmp_path):
    """The copy is of version 3 with a chain of ids; the source keeps its bytes."""
    source = tmp_path / "old.jsonl"
    header = {"type": "session", "id": "s1", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/c"}
    lines = [header, *({"type": "message", "timestamp": "", "message": user(str(n))} for n in range(3))]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = source.read_bytes()
    fork = SessionManager.fork_from(source, "/code", tmp_path / "sessions")
    header, *entries = map(json.loads, Path(fork.get_session_file()).read_text().splitlines())
    assert (header["version"], header["parentSession"]) == (3, str(source))
    assert [entry["parentId"] for entry in entries] == [None, *(entry["id"] for entry in entries[:-1])]
    assert [message["content"] for message in fork.build_session_context().messages] == ["0", "1", "2"]
    assert source.read_bytes() == before


def test_b30_calls_parse_nothing_of_the_rest(tmp_path, monkeypatch):
    """In a session of 2,000 entries each call parses what it is about and nothing else."""
    session = SessionManager.create("/c", tmp_path)
    session.append_session_info("the name")
    ids = session.append_many([user(str(n)) for n in range(2000)])
    session.branch(ids[3])
    session.append_message({"role": "assistant", "content": []})
    session.append_label_change(ids[2], "here")
    opened = SessionManager.open(session.get_session_file(), cache=False)
    parsed = []
    loads = jsontext.loads
    monkeypatch.setattr(jsontext, "loads", lambda text: parsed.append(text) or loads(text))
    calls = [
        (lambda: opened.get_children(ids[3]), 2),
        (opened.get_session_name, 1),
        (lambda: opened.get_label(ids[2]), 1),
        (lambda: opened.append_label_change(ids[5], "there"), 1),
        (lambda: opened.append_context_edit(ids[1], None), 1),
        (lambda: opened.append_compaction("S", ids[2], 5), 12),
    ]
    for call, most in calls:
        parsed.clear()
        call()
        assert len(parsed) <= most, call


def test_b33_what_is_appended_is_a_snapshot(tmp_path):
    """Neither the caller's own dict nor one that was read leads into the session."""
    session = SessionManager.create("/c", tmp_path)
    message = {"role": "user", "content": [{"type": "text", "text": "a"}], "timestamp": 1}
    id = session.append_message(message)
    message["content"][0]["text"] = "changed"
    session.get_entry(id)["message"]["content"].clear()
    next(iter(session.get_entries()))["message"] = None
    for one in (session, SessionManager.open(session.get_session_file(), read_only=True)):
        assert one.get_entry(id)["message"]["content"] == [{"type": "text", "text": "a"}]


def test_b37_a_kept_entry_that_is_not_there_is_told(tmp_path):
    """The context begins with the summary, as in pi; a warning and the doctor say why."""
    session = SessionManager.create("/c", tmp_path)
    session.append_message(user("before"))
    session.append_compaction("SUMMARY", "gone", 5)
    session.append_message(user("after"))
    opened = SessionManager.open(session.get_session_file(), read_only=True)
    with pytest.warns(BrokenTreeWarning, match="gone"):
        messages = opened.build_session_context().messages
    assert [message["role"] for message in messages] == ["compactionSummary", "user"]
    assert "gone" in str(check(session.get_session_file()).findings)


def test_new_files_are_private(tmp_path):
    """Nobody else may read a session, nor look into the folder that was made for it."""
    folder = tmp_path / "sessions"
    session = SessionManager.create("/c", folder)
    session.append_message(user("secret"))
    path = Path(session.get_session_file())
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, folder)] == [0o600, 0o700]


def test_a_beginning_of_several_ids_is_an_error_that_lists_them(tmp_path, capsys):
    """Neither is opened, and the user sees how to go on."""
    for id in ("abcd-1", "abcd-2"):
        SessionManager.create("/c", tmp_path, id=id).append_message(user(id))
    assert main(["show", "abcd", "--cwd", "/c", "--session-dir", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "abcd-1" in told
    assert "abcd-2" in told
