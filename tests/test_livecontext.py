"""The contexts of an open session: as the free functions give them, at the price of what is new."""

import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import SessionManager, context
from sessiontree._livecontext import LiveContext
from sessiontree.exceptions import BrokenTreeWarning

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/code"}


def memory(entries):
    return SessionManager.in_memory("/code", entries=[HEADER, *entries])


def user(id, parent, text="hi"):
    message = {"role": "user", "content": text, "timestamp": 1}
    return {"type": "message", "id": id, "parentId": parent, "message": message}


def chain(length, parent=None, prefix="m"):
    entries = []
    for n in range(length):
        entries.append(user(f"{prefix}{n}", parent, f"text {n}"))
        parent = f"{prefix}{n}"
    return entries


# ---- random sessions


class Ref(int):
    """Stands for the id of an entry that is there already: the n-th last one."""


REFS = st.one_of(st.integers(0, 30).map(Ref), st.sampled_from([Ref(0), Ref(1), "gone", None, "new4", "new9"]))
MESSAGES = st.sampled_from(
    [
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "provider": "p", "model": "m"},
        {"role": "assistant"},
        {"role": "toolResult", "toolCallId": "c", "content": None},
        {"role": "system", "content": "s", "timestamp": 1},
        None,
        5,
        "text",
        [],
    ]
)
REPLACEMENTS = st.sampled_from([None, {"content": "new"}, {"content": []}, {"content": None}, {}, 5, "new"])
OTHERS = st.sampled_from(
    [
        {"type": "message"},
        {"type": "context_edit", "targetId": Ref(0)},
        {"type": "thinking_level_change", "thinkingLevel": "low"},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        {"type": "model_change", "provider": "q", "modelId": "x"},
        {"type": "model_change", "provider": "q"},
        {"type": "branch_summary", "summary": "B", "fromId": "x"},
        {"type": "custom_message", "customType": "t", "content": "c", "display": True},
        {"type": "label", "targetId": Ref(1)},
        {"type": "of another writer"},
    ]
)


def bodies(**keys):
    return st.fixed_dictionaries(
        {key: value if hasattr(value, "map") else st.just(value) for key, value in keys.items()}
    )


BODIES = st.one_of(
    bodies(type="message", message=MESSAGES),
    bodies(type="message", message=MESSAGES),
    bodies(type="compaction", summary="S", firstKeptEntryId=REFS),
    bodies(type="context_edit", targetId=REFS, replacement=REPLACEMENTS),
    OTHERS,
)
# Most entries go on from the leaf; some hang anywhere, use an id again, or come before their parent.
LEAF = Ref(-1)
ODD_PARENTS = st.one_of(REFS, st.sampled_from(["", 0, False, "new1", "new5", "new9"]))
PARENTS = st.one_of(*[st.just(LEAF)] * 5, ODD_PARENTS)
NEW_IDS = st.one_of(*[st.none()] * 9, REFS)


def placed(drawn, entries, leaf_id):
    """The entry that was drawn, with the ids it means."""
    body, new_id, parent, _ = drawn

    def meant(value):
        if not isinstance(value, Ref):
            return value
        if value == LEAF:
            return leaf_id
        return entries[-1 - value % len(entries)]["id"] if entries else None

    own = meant(new_id) or f"new{len(entries)}"
    return {**{key: meant(value) for key, value in body.items()}, "id": own, "parentId": meant(parent)}


def without_nonsense(entry):
    """The same entry, made to contribute nothing where it makes no sense."""
    null = entry["type"] == "message" and entry.get("message") is None
    edit = entry["type"] == "context_edit" and not context.is_replacement(entry.get("replacement", ()))
    return {**entry, "type": "nothing"} if null or edit else entry


def expected(entries, leaf_id):
    return context.build_session_projection([without_nonsense(e) for e in entries], leaf_id)


def check(contexts, session, entries):
    leaf_id = session.get_leaf_id()
    wanted = expected(entries, leaf_id)
    leaf = None if leaf_id is None else session._log.store.find(leaf_id)
    got = contexts.projection(leaf)
    assert [one.messages for one in got.entries] == [one.messages for one in wanted.entries]
    assert got.messages == wanted.messages
    short = contexts.context(leaf)
    assert short.messages == wanted.messages
    assert (short.thinking_level, short.model) == (wanted.thinking_level, wanted.model)
    system = [m for m in wanted.messages if isinstance(m, dict) and m.get("role") == "system"]
    assert contexts.system_messages(leaf) == system
    rows = contexts.rows(leaf)
    assert [session._log.entry(row)["id"] for row in rows] == [e.source_entry["id"] for e in wanted.entries]


# The last says whether another writer was it: then the leaf stays.
APPENDS = st.tuples(BODIES, NEW_IDS, PARENTS, st.sampled_from([False, False, False, True]))
MOVES = st.one_of(st.integers(0, 30), st.none())
STEPS = st.lists(st.one_of(APPENDS, APPENDS, APPENDS, MOVES), max_size=40)


@given(STEPS)
def test_context_after_any_steps_is_that_of_the_free_functions(steps):
    """Whatever is appended and wherever the leaf moves, the remembered context is the right one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokenTreeWarning)
        session = memory([])
        entries = []
        for step in steps:
            if step is None:
                session.reset_leaf()
            elif isinstance(step, tuple):
                entries.append(placed(step, entries, session.get_leaf_id()))
                session._log.store.append(json.dumps(entries[-1]).encode() + b"\n")
                if not step[-1]:
                    session._leaf = session._log.store.leaf()
            elif entries:
                session.branch(entries[-1 - step % len(entries)]["id"])
            check(session._contexts, session, entries)
        check(LiveContext(session._log), session, entries)


# ---- what it costs


@pytest.fixture
def read_rows(monkeypatch):
    """The rows whose bodies are parsed from now on."""
    from sessiontree.log import SessionLog

    rows = []
    one, many = SessionLog.entry, SessionLog.entries

    def entry(log, row):
        rows.append(row)
        return one(log, row)

    def entries(log, wanted):
        rows.extend(wanted[at] for at in range(len(wanted)))
        return many(log, wanted)

    monkeypatch.setattr(SessionLog, "entry", entry)
    monkeypatch.setattr(SessionLog, "entries", entries)
    return rows


def test_a_turn_parses_only_what_is_new(read_rows):
    """After an append only the new entries are read, whatever the length of the context."""
    session = memory(chain(500))
    first = session.build_session_context()
    assert len(read_rows) == 500
    read_rows.clear()
    for turn in range(3):
        session.append_message({"role": "user", "content": f"turn {turn}", "timestamp": 2})
        session.append_thinking_level_change("high")
        read_rows.clear()
        built = session.build_session_context()
        assert read_rows == [500 + 2 * turn, 501 + 2 * turn]
        assert len(built.messages) == 501 + turn
        assert built.messages[0] is first.messages[0]
    assert len(first.messages) == 500
    read_rows.clear()
    session.build_session_context()
    assert read_rows == []


def test_only_the_selection_is_parsed(read_rows):
    """Of a long session with a compaction near its end only the context's entries are read."""
    session = memory(chain(5000))
    session.append_compaction("S", "m4990", 9)
    session.append_message({"role": "user", "content": "x", "timestamp": 2})
    fresh = memory([*session.get_entries()])
    read_rows.clear()
    assert len(fresh.build_session_context().messages) == 12
    assert len(set(read_rows)) == 12


def test_a_branch_takes_over_what_it_shares(read_rows):
    """Moving the leaf back and on another way reads only entries that were not in the context."""
    session = memory(chain(100))
    session.build_session_context()
    session.branch("m49")
    session.append_message({"role": "user", "content": "other", "timestamp": 2})
    read_rows.clear()
    assert len(session.build_session_context().messages) == 51
    assert read_rows == [100]


def test_an_edit_replaces_only_its_target():
    """A new edit changes its target's messages and shares all others."""
    session = memory(chain(20))
    before = session.build_session_context().messages
    session.append_context_edit("m7", {"content": "edited"})
    after = session.build_session_context().messages
    assert [n for n in range(20) if before[n] is not after[n]] == [7]
    assert (before[7]["content"], after[7]["content"]) == ("text 7", "edited")
    session.append_context_edit("m7", None)
    assert len(session.build_session_context().messages) == 19


def test_lists_are_fresh():
    """A caller may change the lists it got: the next context does not show it."""
    session = memory(chain(3))
    session.build_session_context().messages.clear()
    projection = session.build_session_projection()
    projection.entries[0].messages.clear()
    projection.messages.clear()
    assert len(session.build_session_context().messages) == 3
    assert [len(one.messages) for one in session.build_session_projection().entries] == [1, 1, 1]


def test_model_is_fresh():
    """A caller may change the model it got."""
    session = memory([{"type": "model_change", "id": "a", "parentId": None, "provider": "p", "modelId": "m"}])
    session.build_session_context().model.clear()
    assert session.build_session_context().model == {"provider": "p", "modelId": "m"}


# ---- what is broken


def test_cycle_warns_once():
    """A context whose path runs into a cycle starts at the first repeated entry; the warning comes once."""
    session = memory([user("a", "c"), user("b", "a"), user("c", "b"), user("d", "b")])
    with pytest.warns(BrokenTreeWarning, match="'c'.*cycle"):
        assert len(session.build_session_context().messages) == 4
    assert len(session.build_session_context().messages) == 4


@pytest.mark.filterwarnings("ignore::sessiontree.exceptions.BrokenTreeWarning")
def test_leaf_moves_on_in_a_cycle():
    """Going on from an entry of a cycle does not show the cycle twice."""
    session = memory([user("a", "c", "A"), user("b", "a", "B"), user("c", "b", "C"), user("d", "b", "D")])
    for leaf, shown in (("c", "ABC"), ("d", "CABD"), ("b", "CAB"), ("d", "CABD")):
        session.branch(leaf)
        assert "".join(m["content"] for m in session.build_session_context().messages) == shown


def test_an_edit_may_come_before_its_target():
    """An edit applies to an entry that is appended after it, also when another edit came between."""
    edit = {"type": "context_edit", "id": "e", "parentId": "m0", "targetId": "later", "replacement": None}
    session = memory([*chain(1), edit])
    assert len(session.build_session_context().messages) == 1
    session.append_context_edit("m0", {"content": "edited"})
    assert session.build_session_context().messages[0]["content"] == "edited"
    session._log.store.append(json.dumps(user("later", session.get_leaf_id())).encode() + b"\n")
    session.branch("later")
    assert [m["content"] for m in session.build_session_context().messages] == ["edited"]


@pytest.mark.parametrize("kept", ["gone", "off"])
def test_missing_kept_entry_warns_once(kept):
    """An unknown kept entry, or one of another branch, keeps nothing, and says so once."""
    compaction = {"type": "compaction", "id": "c", "parentId": "m9", "summary": "S", "firstKeptEntryId": kept}
    session = memory([*chain(10), user("off", "m3"), compaction])
    with pytest.warns(BrokenTreeWarning, match="first kept entry"):
        assert len(session.build_session_context().messages) == 1
    for _ in range(2):
        session.append_message({"role": "user", "content": "x", "timestamp": 2})
        session.build_session_context()


def test_late_parent_lengthens_the_context(tmp_path):
    """An entry that arrives after its children joins the context that was built without it."""
    path = tmp_path / "s.jsonl"
    lines = [HEADER, user("child", "parent"), user("leaf", "child")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with SessionManager.open(path) as session:
        assert len(session.build_session_context().messages) == 2
        with path.open("a") as other:
            other.write(json.dumps(user("parent", None, "late")) + "\n")
        session.refresh()
        assert [m["content"] for m in session.build_session_context().messages] == ["late", "hi", "hi"]


def test_replaced_file_gives_its_own_context(tmp_path):
    """After the file was replaced nothing of the old context is shown."""
    path = tmp_path / "s.jsonl"
    for text in ("old", "new"):
        lines = [HEADER, user("a", None, text), user("b", "a", text)]
        (tmp_path / text).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "old").rename(path)
    with SessionManager.open(path) as session:
        assert session.build_session_context().messages[0]["content"] == "old"
        (tmp_path / "new").replace(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session.refresh()
        assert session.build_session_context().messages[0]["content"] == "new"


def test_pair_tool_results():
    """With the option, a call without a result gets one; without it the context is as pi's."""
    call = {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "ls"}], "timestamp": 3}
    session = memory(chain(1))
    session.append_message(call)
    assert len(session.build_session_context().messages) == 2
    paired = session.build_session_context(pair_tool_results=True).messages
    assert [m["role"] for m in paired] == ["user", "assistant", "toolResult"]
    assert len(session.build_session_context().messages) == 2
