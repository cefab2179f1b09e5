"""Wrong arguments get an error that says what is wrong, and change nothing."""

import json
import warnings
from pathlib import Path

import pytest
import sessiontree
from sessiontree import SessionManager
from sessiontree.exceptions import BrokenTreeWarning, CorruptSessionError, ReadOnlySessionError

HI = {"role": "user", "content": "hi", "timestamp": 0}


@pytest.fixture
def session(tmp_path):
    session = SessionManager.create("/code", tmp_path)
    session.append_message(HI)
    return session


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda s: SessionManager.open(s.get_session_file().encode()),
            TypeError,
            "not bytes, try os.fsdecode",
        ),
        (lambda _: SessionManager.open(None), TypeError, "path must be a str or os.PathLike, not NoneType"),
        (lambda _: SessionManager.create(5), TypeError, "not int"),
        (lambda _: SessionManager.fork_from(b"x", "/c"), TypeError, "not bytes"),
        (lambda s: s.set_session_file(5), TypeError, "not int"),
        (lambda _: list(sessiontree.iter_sessions(5)), TypeError, "not int"),
        (
            lambda _: SessionManager.list("/c", limit="all"),
            TypeError,
            "limit must be an int or None, not str",
        ),
        (lambda _: SessionManager.list("/c", limit=-1), ValueError, "must not be negative: -1"),
        (lambda s: s.get_entries()["abc"], TypeError, r"not str, use get_entry\(id\)"),
        (lambda s: s.get_entries()[7], IndexError, "there is no entry 7, there are 1"),
        (lambda s: s.append_many("hello"), TypeError, "several messages, not one str"),
        (lambda s: s.append_many(HI), TypeError, "several messages, not one dict"),
        (
            lambda s: SessionManager.open(s.get_session_file(), colour=1),
            TypeError,
            "'colour'; the options are",
        ),
        (lambda s: SessionManager.open(s.get_session_file(), host=5), TypeError, "must be a Host, not int"),
    ],
)
def test_what_is_wrong_is_said(session, call, error, text):
    """The error is of the right kind, speaks of the argument, and the file is as it was."""
    path = Path(session.get_session_file())
    before = path.read_bytes()
    with pytest.raises(error, match=text):
        call(session)
    assert path.read_bytes() == before


def test_a_reader_begins_no_session(session):
    """What could not be written is not begun; the reader stays where it is."""
    path = session.get_session_file()
    reader = SessionManager.open(path, read_only=True)
    with pytest.raises(ReadOnlySessionError, match="new session could not be written"):
        reader.new_session()
    assert reader.get_session_file() == path


def test_errors_name_the_file(session, tmp_path):
    """A closed session and a cycle of parents say which session it is, and which entries."""
    session.close()
    with pytest.raises(sessiontree.exceptions.SessionClosedError, match=str(tmp_path)):
        session.get_entries()
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/c"}
    lines = [
        header,
        {"type": "custom", "id": "a", "parentId": "b"},
        {"type": "custom", "id": "b", "parentId": "a"},
    ]
    path = tmp_path / "cycle.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    broken = SessionManager.open(path, read_only=True)
    with pytest.raises(CorruptSessionError, match="cycle") as caught:
        broken.get_branch()
    assert (list(caught.value.ids), caught.value.path) == (['"a"', '"b"'], str(path))
    assert f'"a", "b" ({path})' in str(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokenTreeWarning)
        assert broken.build_session_context().messages == []
