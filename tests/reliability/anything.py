"""The Python layer over arbitrary bytes: only the errors that are documented may come out.

``check(data, folder)`` writes the bytes where a session or settings file should be, and does with them
whatever one can do. The tests give it a small corpus and what hypothesis makes up; ``fuzz_python.py``
searches for bytes that reach new code.
"""

import contextlib
import os
import warnings
from pathlib import Path

from sessiontree import SessionManager, SettingsManager, doctor, parse_session_entries
from sessiontree.compaction import estimate_projected_context_tokens, prepare_compaction
from sessiontree.compaction.prepare import prepare_projection
from sessiontree.context import build_session_context
from sessiontree.exceptions import (
    CorruptSessionError,
    InvalidSessionError,
    SessionTreeError,
    SessionWarning,
    SettingsError,
    UnsupportedVersionError,
)
from sessiontree.loading import load_entries_from_file
from sessiontree.migrations import migrate_session_entries

from .sessions import header, left_over, line, user

SMALL = {"enabled": True, "reserveTokens": 10, "keepRecentTokens": 5}
KEYS = ["compaction.enabled", "compaction.reserveTokens", "retry.maxRetries", "defaultModel"]


def check(data, folder):
    """Everything there is, once with the bytes as a whole file and once behind a header."""
    warnings.simplefilter("ignore", SessionWarning)
    path = Path(folder) / "s.jsonl"
    for text in (data, line(header()) + data):
        path.write_bytes(text)
        check_readers(path)
        assert path.read_bytes() == text, "reading has written"
        check_doctor(path, text)
        path.write_bytes(text)
        check_writers(path, text)
        path.unlink()
    check_free_functions(data)
    check_settings(data, Path(folder) / "settings.json")
    assert not left_over(folder)


def opened(path, **options):
    """The session, or None if the file is refused as it should be."""
    try:
        return SessionManager.open(path, **options)
    except InvalidSessionError as error:
        refusal = str(error)
    assert "line " in refusal or "empty" in refusal, refusal
    return None


def check_readers(path):
    session = opened(path, read_only=True, cwd_override="/code")
    loaded = load_entries_from_file(path)
    if session is None:
        return
    assert len(loaded) >= len(session.get_entries())
    ask(session)
    session.refresh()
    session.close()


def ask(session):
    """Put every question to a session; what has no answer is a documented error."""
    entries = list(session.get_entries())
    ids = [i for i in session.get_ids() if isinstance(i, str)]
    assert session.get_entry_count() <= len(entries)
    assert (session.get_leaf_id() is None) == (not ids)
    for leaf in [None, *ids[:3], *ids[-3:]]:
        with contextlib.suppress(CorruptSessionError):
            path = session.path_ids(leaf)
            assert len(session.get_branch(leaf)) == len(path) == len(session.path_rows(leaf))
    for name in ids[:20]:
        assert session.get_entry(name)["id"] == name
        session.get_children(name)
        session.get_label(name)
    walk(session.get_tree(), len(entries))
    session.get_session_name()
    assert isinstance(session.get_session_id(), str)
    session.columns()
    str(session.open_report)
    messages = session.build_session_context().messages
    assert len(session.build_session_context(pair_tool_results=True).messages) <= 2 * len(messages) + 1
    projection = session.build_session_projection()
    with contextlib.suppress(CorruptSessionError):
        branch = list(session.get_branch())
        # Free functions raise TypeError where a message is none, or lacks what it must have.
        with contextlib.suppress(TypeError):
            estimate_projected_context_tokens(projection, branch)
        with contextlib.suppress(TypeError):
            prepare_projection(projection, branch, SMALL)
        with contextlib.suppress(TypeError):
            prepare_compaction(branch, SMALL)


def walk(nodes, room):
    """Each entry stands at most once in the tree."""
    left = list(nodes)
    while left:
        room -= 1
        assert room >= 0, "the tree has more nodes than there are entries"
        left.extend(left.pop().children)


def check_writers(path, text):
    session = opened(path, cwd_override="/code")
    if session is None:
        assert path.read_bytes() == text
        return
    before = list(session.get_ids())
    try:
        new = session.append_message(user("next"))
    except UnsupportedVersionError:
        assert path.read_bytes() == text
        session.close()
        return
    session.append_label_change(new, "label")
    leaf = session.append_session_info("name")
    after = path.read_bytes()
    with SessionManager.open(path, read_only=True) as again:
        assert list(again.get_ids())[: len(before) + 1] == [*before, new]
        assert (again.get_leaf_id(), again.get_label(new)) == (leaf, "label")
        assert again.get_session_name() == "name"
    with SessionManager.fork_from(path, "/other", str(path.parent / "forks")) as copy:
        assert len(copy.get_entries()) >= len(before) + 3
        os.unlink(copy.get_session_file())
    with contextlib.suppress(CorruptSessionError):
        os.unlink(session.create_branched_session(leaf))
    session.close()
    assert path.read_bytes() == after


def check_doctor(path, text):
    try:
        found = doctor.check(path)
    except InvalidSessionError:
        assert path.read_bytes() == text
        return
    try:
        doctor.plan(path)
        doctor.fix(path)
    except UnsupportedVersionError:
        assert path.read_bytes() == text
        return
    assert not doctor.check(path).fixable, found
    session = opened(path, read_only=True, cwd_override="/code")
    if session is not None:
        ask(session)
        session.close()
    for beside in [*path.parent.glob("*.bak*"), *path.parent.glob("*.rejected*")]:
        beside.unlink()


def check_free_functions(data):
    entries = parse_session_entries(data.decode("utf-8", "surrogateescape"))
    migrated = migrate_session_entries(entries)
    with contextlib.suppress(SessionTreeError, TypeError):
        build_session_context([e for e in migrated if isinstance(e, dict) and e.get("type") != "session"])


def check_settings(data, path):
    path.write_bytes(data)
    settings = SettingsManager.create("/code", agent_dir=str(path.parent))
    problems = settings.drain_errors()
    settings.get_settings()
    for key in KEYS:
        with contextlib.suppress(SettingsError):
            settings.get(key)
    try:
        settings.set("compaction.enabled", True)
    except SettingsError:
        assert path.read_bytes() == data
    else:
        assert not problems
        assert SettingsManager.create("/code", agent_dir=str(path.parent)).get("compaction.enabled") is True
    path.unlink()
