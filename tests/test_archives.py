"""Branches taken out of sessions and put back: no byte is lost, and nothing that stays is harmed."""

import json
import os
import random

import pytest
from sessiontree import SessionManager, archives, doctor
from sessiontree.exceptions import (
    ArchiveError,
    EntryNotFoundError,
    InvalidSessionError,
    SessionConflictError,
    UnsupportedVersionError,
)

HEADER = {
    "type": "session",
    "version": 3,
    "id": "s1",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "cwd": "/code",
}


def entry(id, parent, text="text", **more):
    message = {"role": "user", "content": text, "timestamp": 1767225600000}
    stamp = "2026-01-01T00:00:00.000Z"
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": stamp,
        "message": message,
        **more,
    }


def label(id, parent, target, text):
    return {"type": "label", "id": id, "parentId": parent, "timestamp": "", "targetId": target, "label": text}


@pytest.fixture
def write(tmp_path):
    """Write a session; dicts become lines, bytes stay as they are."""

    def write(*lines, tail=b"", header=HEADER, name="s.jsonl"):
        path = tmp_path / name
        parts = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in (header, *lines)]
        path.write_bytes(b"\n".join(parts) + b"\n" + tail)
        path.chmod(0o600)
        return path

    return write


@pytest.fixture
def forked(write):
    r"""A tree: a-b-c-d is one branch, x-y-z leaves it at b, p-q leaves that at x; d is the leaf.

    Blank lines and foreign values stand in between.
    """
    return write(
        entry("a", None),
        entry("b", "a"),
        entry("x", "b"),
        b"",
        entry("y", "x"),
        entry("p", "x"),
        entry("c", "b"),
        entry("z", "y"),
        b"  null ",
        entry("q", "p"),
        entry("d", "c"),
    )


def ids(path):
    with SessionManager.open(path, read_only=True) as session:
        return list(session.get_ids())


def is_sound(path):
    """Whether the doctor finds nothing but the values that are no entries."""
    return {finding.kind for finding in doctor.check(path).findings} <= {"foreign"}


def taken(path, id, **how):
    return archives.archive(archives.plan(path, id, **how))


def test_branches_are_stretches_to_one_leaf(forked):
    """Each leaf has the entries that lead to it alone; the current one is marked."""
    found = {b.leaf: (b.head, b.parent, b.entries, b.is_current) for b in archives.branches(forked)}
    assert found == {
        "z": ("y", "x", 2, False),
        "q": ("p", "x", 2, False),
        "d": ("c", "b", 2, True),
    }


@pytest.mark.parametrize("id", ["p", "q"])
def test_a_branch_goes_and_comes_back(forked, id):
    """Any entry of it names it. Its lines are in the archive, all other bytes stay; back, all is as before."""
    before = forked.read_bytes()
    stored = taken(forked, id)
    assert ids(forked) == ["a", "b", "x", "y", "c", "z", "d"]
    lines = before.splitlines(keepends=True)
    gone = [line for line in lines if b'"id": "p"' in line or b'"id": "q"' in line]
    assert forked.read_bytes() == b"".join(line for line in lines if line not in gone)
    with open(stored.path, "rb") as file:
        assert file.read().split(b"\n", 1)[1] == b"".join(gone)
    assert (stored.session, stored.head, stored.leaf, stored.entries) == ("s1", "p", "q", 2)
    assert os.stat(stored.path).st_mode & 0o777 == 0o600
    assert not stored.path.endswith(".jsonl")
    assert archives.archives(forked) == [stored]
    assert is_sound(forked)
    assert archives.restore(forked, stored.path) == 2
    assert forked.read_bytes() == before
    assert archives.archives(forked) == []


def test_what_several_branches_share_stays(forked):
    """An entry that branches share names none of them; with ``below`` all that hangs below it goes."""
    before = forked.read_bytes()
    with pytest.raises(ArchiveError, match="2 branches go through 'x', to 'z', 'q'"):
        archives.plan(forked, "x")
    stored = taken(forked, "x", below=True)
    assert (ids(forked), stored.entries) == (["a", "b", "c", "d"], 5)
    archives.restore(forked, stored.path)
    assert forked.read_bytes() == before


def test_below_an_entry_within_a_branch(forked):
    """With ``below`` a branch is cut off at an entry; what is above it stays."""
    taken(forked, "z", below=True)
    assert ids(forked) == ["a", "b", "x", "y", "p", "c", "q", "d"]


def test_the_branch_that_the_session_stands_on(forked):
    """It goes only if that is said; the last entry that is left is the leaf then, and the old one comes back."""
    before = forked.read_bytes()
    with pytest.raises(ArchiveError, match="stands on"):
        archives.plan(forked, "c")
    wanted = archives.plan(forked, "c", current=True)
    assert wanted.leaf == "q"
    stored = archives.archive(wanted)
    with SessionManager.open(forked) as session:
        assert session.get_leaf_id() == "q"
    archives.restore(forked, stored.path)
    assert forked.read_bytes() == before


def test_a_place_that_was_navigated_to_counts(forked, tmp_path, monkeypatch):
    """Where somebody has navigated the session stands: that branch is protected, and the place survives."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    with SessionManager.open(forked, remember_leaf=True) as session:
        session.branch("y")
    with pytest.raises(ArchiveError, match="stands on"):
        archives.plan(forked, "z", below=False)
    stored = taken(forked, "q")
    for _ in range(2):
        with SessionManager.open(forked, remember_leaf=True) as session:
            assert session.get_leaf_id() == "y"
        if os.path.exists(stored.path):
            archives.restore(forked, stored.path)


def test_not_everything(write):
    """A session of one branch keeps it, whatever is said."""
    path = write(entry("a", None), entry("b", "a"))
    for how in ({}, {"current": True}, {"below": True, "current": True}):
        with pytest.raises(ArchiveError, match="all there is"):
            archives.plan(path, "a", **how)


def test_a_root_of_several(write):
    """A branch that begins the session goes if there is another one."""
    path = write(entry("a", None), entry("b", "a"), entry("r", None), entry("t", "r"))
    before = path.read_bytes()
    stored = taken(path, "b")
    assert ids(path) == ["r", "t"]
    archives.restore(path, stored.path)
    assert path.read_bytes() == before


def test_what_is_appended_meanwhile_stays_behind(forked):
    """Put back after an append, the session is the old one with what was appended behind it."""
    before = forked.read_bytes()
    stored = taken(forked, "z")
    with SessionManager.open(forked) as session:
        session.append_message({"role": "user", "content": "new", "timestamp": 1})
    added = forked.read_bytes().splitlines(keepends=True)[-1]
    archives.restore(forked, stored.path)
    assert forked.read_bytes() == before + added


def test_a_tail_without_newline(write):
    """The last line may lack its newline: that comes back too, and nothing is ever glued to it."""
    last = json.dumps(entry("y", "x")).encode()
    path = write(entry("a", None), entry("b", "a"), entry("x", "a"), tail=last)
    before = path.read_bytes()
    stored = taken(path, "x", current=True)
    archives.restore(path, stored.path, keep=True)
    assert path.read_bytes() == before
    assert archives.restore(path, stored.path, keep=True) == 0
    path.write_bytes(b"\n".join(before.split(b"\n")[:3]) + b"\n")
    with SessionManager.open(path) as session:
        session.append_message({"role": "user", "content": "new", "timestamp": 1})
    archives.restore(path, stored.path)
    assert ids(path)[:4] == ["a", "b", "x", "y"]
    assert is_sound(path)


def test_branches_come_back_in_any_order(forked):
    """Two archives put back in the other order give the same lines, and the same leaf."""
    before = forked.read_bytes()
    first, second = taken(forked, "z"), taken(forked, "p", below=True)
    archives.restore(forked, first.path)
    archives.restore(forked, second.path)
    assert sorted(forked.read_bytes().splitlines()) == sorted(before.splitlines())
    assert ids(forked)[-1] == "d"
    assert is_sound(forked)


def test_a_branch_that_hangs_on_another_archived_one(forked):
    """It can be put back once what it hangs on is there."""
    before = forked.read_bytes()
    below = taken(forked, "z", below=True)
    above = taken(forked, "y")
    with pytest.raises(ArchiveError, match="put back what holds it first"):
        archives.restore(forked, below.path)
    archives.restore(forked, above.path)
    archives.restore(forked, below.path)
    assert forked.read_bytes() == before


def test_a_session_that_was_repaired_meanwhile(forked):
    """Where the lines around it have changed, a branch goes behind the entry that it hangs on."""
    stored = taken(forked, "z")
    changed = forked.read_bytes().replace(b'"text"', b'"other"')
    forked.write_bytes(changed)
    assert archives.restore(forked, stored.path) == 2
    assert set(ids(forked)) == set("abxypczqd")
    assert ids(forked)[-1] == "d"
    assert is_sound(forked)


@pytest.mark.parametrize("seed", range(30))
def test_random_trees(write, seed):
    """Whatever tree: each branch that may go comes back byte for byte, in any order of several."""
    draw = random.Random(seed)
    lines, known = [], []
    for n in range(draw.randrange(2, 40)):
        parent = draw.choice([*known[-3:], *known[:3], None]) if known else None
        lines.append(entry(f"e{n}", parent, "é" * draw.randrange(20)))
        known.append(f"e{n}")
        if draw.random() < 0.1:
            lines.append(draw.choice([b"", b"no json", b" 0", b"[1]", b"\r"]))
    path = write(*lines)
    before = path.read_bytes()
    stored = []
    for id in draw.sample(known, min(5, len(known))):
        try:
            plan = archives.plan(path, id, below=draw.random() < 0.3, current=draw.random() < 0.3)
        except (ArchiveError, EntryNotFoundError):
            continue
        sizes = path.stat().st_size
        stored.append(archives.archive(plan))
        assert path.stat().st_size == sizes - plan.size
    draw.shuffle(stored)
    while stored:
        again = []
        for each in stored:
            try:
                archives.restore(path, each.path)
            except ArchiveError:
                again.append(each)
        assert len(again) < len(stored)
        stored = again
    assert sorted(path.read_bytes().split(b"\n")) == sorted(before.split(b"\n"))
    assert len(ids(path)) == len(known) + before.split(b"\n").count(b"[1]")


def test_another_writer_is_noticed(forked):
    """If somebody has written since the plan was made, nothing is taken out."""
    wanted = archives.plan(forked, "z")
    with SessionManager.open(forked) as session:
        session.branch("z")
        session.append_message({"role": "user", "content": "on", "timestamp": 1})
    before = forked.read_bytes()
    with pytest.raises(SessionConflictError):
        archives.archive(wanted)
    assert forked.read_bytes() == before
    assert archives.archives(forked) == []


def test_a_writer_while_it_is_replaced(forked, monkeypatch):
    """An append in the very moment of the replacement, by a writer without locks, is noticed too."""
    wanted = archives.plan(forked, "z")
    real = archives.replace_file

    def racing(path, parts):
        def then_append():
            made = parts()
            with open(forked, "ab") as file:
                file.write(json.dumps(entry("late", "d")).encode() + b"\n")
            return made

        return real(path, then_append)

    monkeypatch.setattr(archives, "replace_file", racing)
    before = forked.read_bytes()
    with pytest.raises(SessionConflictError):
        archives.archive(wanted)
    assert forked.read_bytes().startswith(before)
    assert "late" in ids(forked)
    assert archives.archives(forked) == []


def test_a_failure_before_the_replacement_leaves_nothing(forked, monkeypatch):
    """If the session cannot be replaced, it is as it was, and there is no archive."""
    before = forked.read_bytes()

    def failing(_path, parts):
        list(parts())
        raise OSError(28, "no space left on device")

    wanted = archives.plan(forked, "z")
    monkeypatch.setattr(archives, "replace_file", failing)
    with pytest.raises(OSError, match="no space"):
        archives.archive(wanted)
    assert (forked.read_bytes(), archives.archives(forked)) == (before, [])


def test_an_interrupt_after_the_replacement_loses_nothing(forked, monkeypatch):
    """If the session was replaced and then something fails, the archive stays."""
    real = archives.replace_file

    def interrupted(path, parts):
        real(path, parts)
        raise KeyboardInterrupt

    wanted = archives.plan(forked, "z")
    with monkeypatch.context() as patch:
        patch.setattr(archives, "replace_file", interrupted)
        with pytest.raises(KeyboardInterrupt):
            archives.archive(wanted)
    assert "z" not in ids(forked)
    (stored,) = archives.archives(forked)
    archives.restore(forked, stored.path)
    assert "z" in ids(forked)


def test_an_archive_without_its_deletion(forked):
    """A crash between the two steps leaves the entries in both places: putting them back is no error."""
    before = forked.read_bytes()
    stored = taken(forked, "z")
    forked.write_bytes(before)
    assert archives.restore(forked, stored.path) == 0
    assert forked.read_bytes() == before


def test_what_labels_and_names_lose_is_said(write):
    """Labels and names that were set on a branch go with it; labels of its entries from elsewhere stay."""
    path = write(
        entry("a", None),
        entry("x", "a"),
        label("l", "x", "a", "inside"),
        {"type": "session_info", "id": "n", "parentId": "l", "timestamp": "", "name": "named here"},
        entry("b", "a"),
        label("m", "b", "x", "outside"),
    )
    wanted = archives.plan(path, "x")
    assert [note.split()[:2] + note.split()[-1:] for note in wanted.notes] == [
        ["labels", "of", "1"],
        ["labels", "of", "1"],
        ["the", "session's", "too"],
    ]
    stored = archives.archive(wanted)
    with SessionManager.open(path, read_only=True) as session:
        assert (session.get_label("a"), session.get_session_name()) == (None, None)
    archives.restore(path, stored.path)
    with SessionManager.open(path, read_only=True) as session:
        assert (session.get_label("a"), session.get_label("x")) == ("inside", "outside")
        assert session.get_session_name() == "named here"


def test_entries_that_others_need(write):
    """Doubled ids, and what a compaction elsewhere keeps, are refused."""
    doubled = write(entry("a", None), entry("x", "a"), entry("b", "a"), entry("x", "b"), entry("c", "b"))
    with pytest.raises(ArchiveError, match="stands twice"):
        archives.plan(doubled, "x")
    kept = write(
        entry("a", None),
        entry("x", "a"),
        entry("b", "a"),
        {"type": "compaction", "id": "k", "parentId": "b", "summary": "s", "firstKeptEntryId": "x"},
        name="kept.jsonl",
    )
    with pytest.raises(ArchiveError, match="the compaction 'k' keeps"):
        archives.plan(kept, "x")


def test_files_that_are_left_alone(write):
    """Torn ones, old and newer versions, and what is no session."""
    torn = write(entry("a", None), entry("x", "a"), entry("b", "a"), tail=b'{"type":"mess')
    with pytest.raises(ArchiveError, match="torn"):
        archives.plan(torn, "x")
    for version in (1, 2, 4):
        path = write(entry("a", None), header={**HEADER, "version": version}, name=f"v{version}.jsonl")
        assert [branch.leaf for branch in archives.branches(path)] == ["a"]
        with pytest.raises(UnsupportedVersionError):
            archives.plan(path, "a")
    with pytest.raises(InvalidSessionError):
        archives.plan(write(header={"type": "message"}, name="none.jsonl"), "a")
    with pytest.raises(EntryNotFoundError):
        archives.plan(write(entry("a", None), name="a.jsonl"), "nothere")


def test_archives_that_cannot_be_put_back(forked, write):
    """A damaged one, one of another session, and one whose ids are taken change nothing."""
    stored = taken(forked, "z")
    after = forked.read_bytes()
    other = write(entry("a", None), entry("x", "a"), header={**HEADER, "id": "s2"}, name="other.jsonl")
    with pytest.raises(ArchiveError, match="another session"):
        archives.restore(other, stored.path)
    forked.write_bytes(after + json.dumps(entry("z", "d")).encode() + b"\n")
    with pytest.raises(ArchiveError, match="'z' is taken"):
        archives.restore(forked, stored.path)
    forked.write_bytes(after)
    with open(stored.path, "rb") as file:
        data = file.read()
    for damaged in (data[:-5], data.replace(b'"text"', b'"tezt"'), b"{}\n", b"", b"no json"):
        with open(stored.path, "wb") as file:
            file.write(damaged)
        with pytest.raises(ArchiveError):
            archives.restore(forked, stored.path)
    assert forked.read_bytes() == after
    assert os.path.exists(stored.path)


def test_names_of_archives(forked):
    """An archive never takes the name of another one; a link's archive lies beside the file."""
    link = forked.parent / "elsewhere" / "link.jsonl"
    link.parent.mkdir()
    link.symlink_to(forked)
    first = taken(link, "z")
    assert os.path.dirname(first.path) == str(forked.parent)
    archives.restore(link, first.path, keep=True)
    second = taken(link, "z")
    assert second.path != first.path
    assert link.is_symlink()
    assert {each.path for each in archives.archives(link)} == {first.path, second.path}
