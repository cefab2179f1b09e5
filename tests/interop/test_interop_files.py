"""Files that one program wrote are read by the other as the same session."""

import re

import pytest
from _names import snake
from sessions import EVERYTHING, LONE_SURROGATE, assistant, play, seen_by_pi, seen_here, user
from sessiontree import SessionManager

pytestmark = pytest.mark.interop


def written_here(folder, steps):
    with SessionManager.create("/code/proj", folder) as session:
        play(steps, lambda method, arguments: getattr(session, snake(method))(*arguments))
        return session.get_session_file(), seen_here(session)


def written_by_pi(pi, folder, steps):
    made = pi.call("create", "/code/proj", str(folder), as_="w")
    play(steps, lambda method, arguments: pi.call(method, *left_out(method, arguments), on="w"))
    return made["file"]


def left_out(method, arguments):
    """Taking a label off is undefined in pi, which JSON can only say by leaving it out."""
    return arguments[:1] if method == "appendLabelChange" and arguments[1] is None else arguments


def test_pi_reads_what_is_written_here(pi, tmp_path):
    """Entries, tree, labels, name, leaf and context of our file are the same in pi."""
    path, ours = written_here(tmp_path, EVERYTHING)
    pi.open(path)
    theirs = seen_by_pi(pi)
    assert len(theirs["entries"]) == 23
    assert theirs == ours


def test_what_pi_writes_is_read_here(pi, tmp_path):
    """Entries, tree, labels, name, leaf and context of pi's file are the same here."""
    path = written_by_pi(pi, tmp_path, EVERYTHING)
    theirs = seen_by_pi(pi, "w")
    with SessionManager.open(path) as session:
        assert seen_here(session) == theirs
        assert session.open_report.skipped == 0


def test_both_write_the_same_lines(pi, tmp_path):
    """For the same steps both files hold the same keys in the same order, line for line."""
    (tmp_path / "pi").mkdir()
    (tmp_path / "here").mkdir()
    theirs = written_by_pi(pi, tmp_path / "pi", EVERYTHING)
    ours, _ = written_here(tmp_path / "here", EVERYTHING)
    assert masked_lines(ours) == masked_lines(theirs)


def masked_lines(path):
    """The raw lines, with ids, session ids and times of the run taken out of the text."""
    with open(path, encoding="utf-8", newline="\n") as f:
        text = f.read()
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME", text)
    text = re.sub(r'"timestamp":\d{13}', '"timestamp":0', text)
    ids = {}
    pattern = r'"([0-9a-f]{8}(?:-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?)"'
    text = re.sub(pattern, lambda m: f'"#{ids.setdefault(m[1], len(ids))}"', text)
    return text.split("\n")


def test_lone_surrogates_survive_both_ways(pi, tmp_path):
    """Half a surrogate pair, which UTF-8 cannot hold, comes back from either file."""
    steps = [("appendMessage", [user(LONE_SURROGATE)]), ("appendMessage", [assistant(LONE_SURROGATE)])]
    path, ours = written_here(tmp_path, steps)
    pi.open(path)
    assert seen_by_pi(pi) == ours
    with SessionManager.open(written_by_pi(pi, tmp_path, steps)) as session:
        assert seen_here(session)["messages"] == ours["messages"]


def test_pi_forks_our_file_and_we_fork_its_file(pi, tmp_path):
    """A fork by either has the other's entries, ids and all."""
    path, ours = written_here(tmp_path, EVERYTHING)
    pi.call("forkFrom", str(path), "/code/other", str(tmp_path), as_="f")
    assert seen_by_pi(pi, "f")["entries"] == ours["entries"]
    theirs = written_by_pi(pi, tmp_path, EVERYTHING)
    with SessionManager.fork_from(theirs, "/code/other", tmp_path) as session:
        assert seen_here(session)["entries"] == seen_by_pi(pi, "w")["entries"]


def test_a_branched_session_of_either_is_the_same(pi, tmp_path):
    """createBranchedSession leaves the same entries, labels and links on both sides."""
    path, ours = written_here(tmp_path, EVERYTHING)
    leaf = ours["leaf"]
    pi.open(path)
    copied = pi.call("createBranchedSession", leaf, on="a")
    with SessionManager.open(path) as session:
        mine = session.create_branched_session(leaf)
        here = seen_here(session)
    assert str(mine) != copied
    with SessionManager.open(copied) as session:
        there = seen_here(session)
    assert without_new_ids(here) == without_new_ids(there)


def without_new_ids(seen):
    """The branch without the ids of the label entries, which both sides draw at random."""
    kept = [
        {k: v for k, v in e.items() if e["type"] != "label" or k in ("type", "label", "targetId")}
        for e in seen["entries"]
    ]
    return kept, seen["messages"], [(node[2], node[3]) for node in seen["tree"]]
