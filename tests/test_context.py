"""From plain lists of entries to what a model sees."""

import json
import math
import warnings
from pathlib import Path

import pytest
from sessiontree import context
from sessiontree.entries import UNSET
from sessiontree.exceptions import BrokenTreeWarning, EntryNotFoundError

CASES = Path(__file__).parent / "conformance"
FUNCTIONS = {
    "projectContextEntry": context.project_context_entry,
    "sessionEntryToContextMessages": context.session_entry_to_context_messages,
    "getLatestCompactionEntry": context.get_latest_compaction_entry,
}


def message(id, parent, role="user", **fields):
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": "2024-01-01T00:00:00.000Z",
        "message": {"role": role, "content": id, "timestamp": 1, **fields},
    }


def chain(*entries):
    """Entries without parents, hung on each other."""
    parent = None
    linked = []
    for entry in entries:
        linked.append({**entry, "parentId": parent})
        parent = entry["id"]
    return linked


def compaction(id, kept, **fields):
    return {
        "type": "compaction",
        "id": id,
        "timestamp": "2024-01-01T00:00:00.000Z",
        "summary": f"summary {id}",
        "firstKeptEntryId": kept,
        "tokensBefore": 9,
        **fields,
    }


def edit(id, target, replacement):
    return {"type": "context_edit", "id": id, "targetId": target, "replacement": replacement}


def ids(entries):
    return [entry["id"] for entry in entries]


def plain(value):
    """Results as the recording writes them."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float) and math.isnan(value):
        return {"$num": "NaN"}
    return value


def recorded(*names):
    """(request, recorded result) of the scenarios that call one free function on one entry or list."""
    params = []
    for name in names:
        requests = json.loads((CASES / "cases" / f"{name}.json").read_text())["requests"]
        results = json.loads((CASES / "expected" / f"{name}.json").read_text())["results"]
        for number, (request, result) in enumerate(zip(requests, results, strict=True)):
            if request["fn"] in FUNCTIONS:
                params.append(pytest.param(request, result, id=f"{name}-{number}"))
    return params


@pytest.mark.parametrize(
    ("request_", "result"), recorded("ctx-entry-function", "ctx-project-function", "ctx-functions")
)
def test_free_functions_answer_as_recorded(request_, result):
    """The functions on single entries give what pi gave, and fail where it failed."""
    function = FUNCTIONS[request_["fn"]]
    if "error" in result:
        with pytest.raises(TypeError):
            function(*request_["args"])
    else:
        assert plain(function(*request_["args"])) == result["ok"]


def test_leaf_left_out_none_and_unknown():
    """Left out is the last entry, None the empty path, and an unknown id an error, not the last entry."""
    entries = chain(message("a1", None), message("a2", None), message("a3", None))
    assert ids(context.build_context_entries(entries)) == ["a1", "a2", "a3"]
    assert ids(context.build_context_entries(entries, UNSET)) == ["a1", "a2", "a3"]
    assert ids(context.build_context_entries(entries, "a2")) == ["a1", "a2"]
    assert context.build_context_entries(entries, None) == []
    assert context.build_session_context(entries, None) == context.SessionContext([], "off", None)
    for build in (
        context.build_context_entries,
        context.build_session_projection,
        context.build_session_context,
    ):
        assert build([]) is not None
        for unknown in ("gone", "", 1, True):
            with pytest.raises(EntryNotFoundError, match="no entry has the id"):
                build(entries, unknown)
    with pytest.raises(EntryNotFoundError):
        context.build_context_entries([], "a1")


def test_ids_are_compared_by_type_and_value():
    """1, "1" and true are three ids; 1 and 1.0 are one."""
    entries = [
        {"id": 1, "type": "x", "n": "number"},
        {"id": "1", "type": "x", "n": "text"},
        {"id": True, "type": "x", "n": "true"},
    ]
    for parent, found in ((1.0, "number"), ("1", "text"), (True, "true")):
        path = context.build_context_entries([*entries, {"id": "leaf", "parentId": parent}])
        assert path[0].get("n") == found
    for falsy in (None, "", 0, 0.0, False):
        assert len(context.build_context_entries([*entries, {"id": "leaf", "parentId": falsy}])) == 1


def test_huge_number_as_id():
    """An integer beyond a double is the infinity it is in JavaScript, not an error."""
    entries = [{"id": 10**400, "type": "x"}, {"id": "leaf", "parentId": float("inf"), "type": "x"}]
    assert len(context.build_context_entries(entries)) == 2


def test_last_duplicate_owns_the_id():
    """Where an id stands twice, children hang on the later entry."""
    entries = [{"id": "a", "n": 1}, {"id": "a", "n": 2}, {"id": "b", "parentId": "a", "n": 3}]
    assert [e["n"] for e in context.build_context_entries(entries)] == [2, 3]


def test_cycle_ends_with_a_warning():
    """A path that runs into a cycle has each of its entries once and says so."""
    entries = [message("a1", "a3"), message("a2", "a1"), message("a3", "a2"), message("a4", "a2")]
    with pytest.warns(BrokenTreeWarning, match="cycle"):
        assert ids(context.build_context_entries(entries)) == ["a3", "a1", "a2", "a4"]
    with pytest.warns(BrokenTreeWarning):
        assert ids(context.build_context_entries([message("a1", "a1")])) == ["a1"]


def test_selection_of_the_newest_compaction():
    """The newest compaction comes first, then what it kept without system messages, then the rest."""
    entries = chain(
        message("m1", None),
        message("s1", None, "system"),
        compaction("c1", "m1"),
        message("m2", None),
        message("s2", None, "system"),
        message("m3", None),
        compaction("c2", "m2"),
        message("s3", None, "system"),
        message("m4", None),
    )
    assert ids(context.build_context_entries(entries)) == ["c2", "m2", "m3", "s3", "m4"]
    wide = [e if e["id"] != "c2" else {**e, "firstKeptEntryId": "s1"} for e in entries]
    assert ids(context.build_context_entries(wide)) == ["c2", "c1", "m2", "m3", "s3", "m4"]
    projection = context.build_session_projection(wide)
    assert [len(one.messages) for one in projection.entries] == [1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("kept", "warns"), [("gone", True), ("m9", True), (7, True), ("c1", False), (None, False)]
)
def test_kept_entry_not_on_the_path(kept, warns):
    """Nothing before the compaction is kept; naming an entry that is not there gives a warning."""
    entries = [*chain(message("m1", None), compaction("c1", kept), message("m2", None)), message("m9", "m1")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert ids(context.build_context_entries(entries, "m2")) == ["c1", "m2"]
    assert [w.category for w in caught] == [BrokenTreeWarning] * warns
    assert not caught or caught[0].filename == __file__


def test_edits_apply_to_contributions():
    """The newest edit of each target counts; text becomes a block for assistant and toolResult."""
    blocks = [{"type": "text", "text": "new"}]
    entries = chain(
        message("u1", None),
        message("a1", None, "assistant"),
        message("r1", None, "toolResult"),
        message("s1", None, "system"),
        edit("e1", "u1", None),
        edit("e2", "u1", {"content": "new"}),
        edit("e3", "a1", {"content": "new", "more": 1}),
        edit("e4", "r1", {"content": "new"}),
        edit("e5", "s1", {"content": "new"}),
    )
    contents = [m["content"] for m in context.build_session_context(entries).messages]
    assert contents == ["new", blocks, blocks, "s1"]
    assert entries[0]["message"]["content"] == "u1"
    gone = [*entries, {**edit("e6", "a1", None), "parentId": "e5"}]
    assert [m["role"] for m in context.build_session_context(gone).messages] == [
        "user",
        "toolResult",
        "system",
    ]


@pytest.mark.parametrize("replacement", [5, "x", [], {}, {"content": None}, {"content": {}}])
def test_malformed_edit_raises(replacement):
    """An edit that would leave a message without content is an error of the free functions."""
    with pytest.raises(TypeError, match="replacement"):
        context.project_context_entry(message("u1", None), edit("e1", "u1", replacement))


def test_odd_entries_raise():
    """A null entry and a null message raise, as they do in pi; other scalars contribute nothing."""
    with pytest.raises(TypeError):
        context.build_context_entries([None])
    for odd in ({"message": None}, {}):
        entry = {"type": "message", "id": "m1", **odd}
        with pytest.raises(TypeError):
            context.build_session_context([entry])
    assert context.build_session_context([5]).messages == []


def test_settings_come_from_the_whole_path():
    """Level and model survive a compaction; the newest model change or assistant counts."""
    entries = chain(
        {"type": "thinking_level_change", "id": "t1", "thinkingLevel": "high"},
        {"type": "model_change", "id": "m1", "provider": "p", "modelId": "x"},
        message("a1", None, "assistant", provider="q", model="y"),
        compaction("c1", "c1"),
    )
    built = context.build_session_context(entries)
    assert (built.thinking_level, built.model) == ("high", {"provider": "q", "modelId": "y"})
    assert context.build_session_context(entries, "m1").model == {"provider": "p", "modelId": "x"}
    bare = chain({"type": "model_change", "id": "m1"})
    assert context.build_session_context(bare).model == {}


def test_replayed_system_message():
    """Contents are joined, sections patched with integer-like names first, tools taken off and put on."""
    messages = [
        {"role": "user", "content": "hi"},
        {
            "role": "system",
            "content": "base",
            "sections": {"b": "B", "10": "ten", "a": "A", "2": "two", "01": "x"},
            "toolsAdded": [{"name": "t1"}, {"name": "t2"}],
            "timestamp": 5,
        },
        {
            "role": "system",
            "content": [
                {"type": "text", "text": "more"},
                {"type": "image"},
                {"type": "text", "text": "lines"},
            ],
            "sections": {"a": None, "b": "B2"},
            "toolsRemoved": [{"name": "t1"}],
            "toolsAdded": [{"name": "t2", "v": 2}, {"name": "t1", "v": 2}],
            "timestamp": 6,
        },
    ]
    replayed = context.get_current_system_message(messages)
    assert json.dumps(replayed) == json.dumps(
        {
            "role": "system",
            "content": "base\n\nmore\nlines",
            "sections": {"2": "two", "10": "ten", "b": "B2", "01": "x"},
            "toolsAdded": [{"name": "t2", "v": 2}, {"name": "t1", "v": 2}],
            "timestamp": 5,
        }
    )


def test_nothing_to_replay():
    """Without a timestamp and without tools there is no system message to store."""
    assert context.get_current_system_message([]) is None
    assert context.get_current_system_message([{"role": "system", "content": "x"}]) is None
    odd = [None, 5, {"role": "system", "content": 5, "sections": [], "toolsAdded": {}, "timestamp": None}]
    assert context.get_current_system_message(odd) == {"role": "system", "content": "", "timestamp": 0}


def call(*call_ids, **fields):
    blocks = [{"type": "toolCall", "id": c, "name": "ls", "arguments": {}} for c in call_ids]
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": "t"}, *blocks],
        "timestamp": 7,
        **fields,
    }


def result(call_id, text="ok"):
    return {"role": "toolResult", "toolCallId": call_id, "content": text}


def shape(messages):
    return [m.get("toolCallId", m["role"]) if isinstance(m, dict) else m for m in messages]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([call("a", "b"), result("b"), result("a")], ["assistant", "b", "a"]),
        ([result("a"), call("a")], ["assistant", "a"]),
        ([call("a"), {"role": "user"}, result("a")], ["assistant", "a", "user"]),
        ([call("a"), result("a"), result("a")], ["assistant", "a"]),
        ([call("a"), result("a"), call("a"), {"role": "user"}], ["assistant", "a", "assistant", "a", "user"]),
        ([call("a", "a")], ["assistant", "a"]),
        ([5, result(None), {"role": "assistant", "content": None}], [5, "assistant"]),
    ],
)
def test_paired_tool_results(messages, expected):
    """Every call has exactly one result right behind it, and no result is left without its call."""
    paired = context.paired_tool_results(messages)
    assert shape(paired) == expected
    assert context.paired_tool_results(paired) == paired


def test_missing_result_says_so():
    """The stand-in for a missing result is an error result of the same tool."""
    stand_in = context.paired_tool_results([call("a")])[1]
    assert (stand_in["toolName"], stand_in["isError"], stand_in["timestamp"]) == ("ls", True, 7)
