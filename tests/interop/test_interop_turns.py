"""Both programs work on one file in turns."""

import random

import pytest
from _names import snake
from sessions import assistant, seen_by_pi, seen_here, user
from sessiontree import SessionManager

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::sessiontree.exceptions.SessionWarning"),
]
TURNS = 200


def step(chooser, ids, turn):
    """One random write: pi's method and its arguments."""
    target = chooser.choice(ids) if ids else None
    writes = [
        ("appendMessage", [user(f"question {turn}", 1704067200000 + turn)]),
        ("appendMessage", [assistant(f"answer {turn}", 1704067200000 + turn)]),
        ("appendModelChange", ["p", f"m{turn}"]),
        ("appendCustomEntry", ["ext", {"turn": turn}]),
        ("appendSessionInfo", [f"name {turn}"]),
    ]
    if target is not None:
        writes.append(("appendLabelChange", [target, f"label {turn}"]))
        writes.append(("branchWithSummary", [target, f"summary {turn}"]))
        writes.append(("appendCompaction", [f"compaction {turn}", target, turn]))
    return chooser.choice(writes)


@pytest.mark.parametrize("seed", [1, 2])
def test_appending_in_turns_loses_nothing(pi, tmp_path, seed):
    """After 200 turns of two writers every entry is there once, and both see the same session."""
    chooser = random.Random(seed)
    path = tmp_path / "session.jsonl"
    with SessionManager.open(path) as session:
        session.append_message(user("start"))
        ids = [session.get_leaf_id()]
        for turn in range(TURNS):
            method, arguments = step(chooser, ids, turn)
            if chooser.random() < 0.5:
                pi.open(path)
                made = pi.call(method, *arguments, on="a")
            else:
                if any(session.get_entry(a) is None for a in arguments if a in ids):
                    session.refresh()
                made = getattr(session, snake(method))(*arguments)
            ids.append(made)
        session.refresh()
        entries = list(session.get_entries())
        assert [entry["id"] for entry in entries] == ids
    pi.open(path)
    with SessionManager.open(path) as session:
        assert seen_here(session) == seen_by_pi(pi)


def test_a_stale_pi_does_not_harm_us(pi, tmp_path):
    """pi never reads again; what it appends beside our entries is taken in and nothing is lost."""
    path = tmp_path / "session.jsonl"
    with SessionManager.open(path) as session:
        first = session.append_message(user("start"))
        pi.open(path)
        written = [first]
        for turn in range(10):
            written.append(session.append_message(user(f"ours {turn}")))
            written.append(pi.call("appendMessage", user(f"theirs {turn}"), on="a"))
        session.refresh()
        assert [entry["id"] for entry in session.get_entries()] == written
        ours = [m["content"] for m in session.build_session_context().messages]
        assert ours == ["start", *[f"ours {turn}" for turn in range(10)]]
