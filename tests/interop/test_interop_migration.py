"""Sessions of versions 1 and 2: read alike, migrated by either, read by the other."""

import json
import shutil

import both
import pytest
from sessions import renumbered, seen_by_pi, seen_here
from sessiontree import SessionManager

pytestmark = pytest.mark.interop

OLD_CASES = ["migrate-v1-linear.jsonl", "migrate-v1-compaction-valid.jsonl", "migrate-v2-hookmessage.jsonl"]


@pytest.fixture(params=OLD_CASES)
def old_session(request):
    """A recorded session of version 1 or 2."""
    return both.CASES / request.param


def migrated_here(source, folder):
    path = folder / "here.jsonl"
    shutil.copyfile(source, path)
    with SessionManager.open(path) as session:
        seen = seen_here(session)
    return path, seen


def migrated_by_pi(pi, source, folder):
    path = folder / "pi.jsonl"
    shutil.copyfile(source, path)
    pi.open(path, as_="m")
    return path, seen_by_pi(pi, "m")


def check_both_ways(pi, source, folder):
    """Each reads the other's migration as its own maker did, and both migrations have one structure."""
    here, ours = migrated_here(source, folder)
    there, theirs = migrated_by_pi(pi, source, folder)
    pi.open(here)
    assert seen_by_pi(pi) == ours
    with SessionManager.open(there) as session:
        assert seen_here(session) == theirs
    for which in ("entries", "branch", "context entries"):
        assert renumbered(ours, which) == renumbered(theirs, which)
    assert ours["messages"] == theirs["messages"]
    assert ours["model"] == theirs["model"]
    assert ours["thinking level"] == theirs["thinking level"]


def test_old_sessions_are_migrated_alike(pi, old_session, tmp_path):
    """A small session of version 1 or 2 comes out the same from both migrations."""
    check_both_ways(pi, old_session, tmp_path)


def test_real_sessions_are_migrated_alike(pi, real_session, tmp_path):
    """A real session of a thousand entries comes out the same from both migrations."""
    check_both_ways(pi, real_session, tmp_path)


def test_every_entry_of_a_real_session_is_there(pi, real_session, tmp_path):
    """All lines but the header are entries, and the context has pi's messages."""
    lines = real_session.read_text(encoding="utf-8").splitlines()
    path, ours = migrated_here(real_session, tmp_path)
    assert len(ours["entries"]) == len(lines) - 1
    assert json.loads(path.read_text(encoding="utf-8").split("\n")[0])["version"] == 3
    pi.open(path)
    assert ours["messages"] == seen_by_pi(pi)["messages"]


def test_real_sessions_migrate_alike_with_the_same_ids(installed_pi, real_session):
    """With one source of ids both sides write the same migration, entry for entry."""
    reads = ["getEntries", "buildSessionContext", "buildContextEntries", "getTree", "getHeader", "getLeafId"]
    request = {
        "op": "open",
        "file": str(real_session),
        "timeout_ms": 60000,
        "ops": [{"op": name} for name in reads],
    }
    assert both.compare_requests([request]) == []


def test_read_only_reading_agrees_and_writes_nothing(pi, real_session, tmp_path):
    """Read without migrating the file, a session of version 1 gives pi's messages."""
    path = tmp_path / "session.jsonl"
    shutil.copyfile(real_session, path)
    before = path.read_bytes()
    with SessionManager.open(path, read_only=True) as session:
        ours = seen_here(session)
    assert path.read_bytes() == before
    _, theirs = migrated_by_pi(pi, real_session, tmp_path)
    assert ours["messages"] == theirs["messages"]
    assert renumbered(ours) == renumbered(theirs)
