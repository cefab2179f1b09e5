"""What sessiontree gives where pi hangs, throws or hides entries (the recorded scenarios of deviations.json)."""

import pytest
from _asking import ask, errors, ids, nested, oks, rows

PATH_REQUESTS = [
    ("tree-self-parent", 1),
    ("tree-cycle-2", 1),
    ("tree-cycle-2", 3),
    ("tree-cycle-tail", 1),
]


@pytest.mark.parametrize(("name", "number"), PATH_REQUESTS)
def test_b13_a_path_through_a_cycle_is_an_error_that_names_it(name, number):
    """Where one path is asked for, a cycle is CorruptSessionError with the ids in its text."""
    (error,) = errors(ask(name, number))
    assert "cycle" in error["message"]


def test_b13_a_context_stops_at_the_first_repeated_entry():
    """A context whose path runs into a cycle has each entry once."""
    (context,) = oks(ask("tree-self-parent", 2))
    assert [m["content"] for m in context["messages"]] == ["hello"]
    (entries,) = oks(ask("tree-cycle-2", 2))
    assert ids(entries) == ["u1", "a1"]


def test_b13_a_child_of_a_cycle_can_be_appended_and_shown():
    """Appending below a cycle works, and the tree shows the new entry."""
    result = ask("tree-self-parent", 3)
    assert result["steps"][0]["ok"] == "new-1"
    assert nested(result["steps"][1]["ok"]) == [("u1", [("new-1", [])])]


@pytest.mark.parametrize("number", [2, 3])
def test_b13_edits_and_compactions_come_back_from_a_cycle(number):
    """An edit or a compaction below a cycle is written or refused, but comes back."""
    (step,) = ask("tree-cycle-tail", number)["steps"]
    assert step.get("ok") == "new-1" or "cycle" in step["error"]["message"]


@pytest.mark.parametrize("name", ["bs-collect-cycle", "bs-collect-cycle-target"])
def test_b13_a_branch_summary_refuses_a_cycle(name):
    """Collecting a branch that runs into a cycle is CorruptSessionError."""
    assert "cycle" in ask(name)["error"]["message"]


def test_b27_every_line_of_a_duplicate_id_is_in_the_tree_once():
    """Two lines with one id are two nodes; look-ups give the last one."""
    tree = ask("tree-duplicate-cycle")["steps"][0]["ok"]
    assert sorted(flat(tree)) == ["a1", "u1", "u1"]
    lines = ask("tree-duplicate-line")
    shown = next(step["ok"] for step in lines["steps"] if step["op"] == "getTree")
    assert sorted(flat(shown)) == ["a1", "a1", "u1", "u2"]


def flat(nodes):
    return [i for node in nodes for i in (node["entry"]["id"], *flat(node["children"]))]


def test_b27_entries_are_listed_in_file_order():
    """Both lines of a duplicate id are listed, each with its own content."""
    entries = ask("tree-duplicate-position")["steps"][0]["ok"]
    assert [e["message"]["content"] for e in entries] == ["x old", "y", "x new"]


def test_b27_ids_that_differ_only_in_invalid_bytes_are_one_id():
    """Invalid bytes read as U+FFFD, so the two lines share an id and are both in the tree."""
    tree = ask("load-invalid-utf8-in-id", 1)["steps"][1]["ok"]
    assert [node["entry"]["message"]["content"] for node in tree] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("tree-cycle-2", [("u1", [("a1", [])])]),
        ("tree-cycle-tail", [("c1", [("c2", []), ("u2", [])])]),
    ],
)
def test_b28_the_first_entry_of_a_cycle_is_a_root(name, shape):
    """Entries in a cycle are in the tree, below the first of them."""
    assert nested(ask(name)["steps"][0]["ok"]) == shape


def test_b28_an_empty_parent_id_hides_nothing():
    """Entries below an entry whose id is empty are all in the tree."""
    result = ask("tree-parent-empty")
    tree = next(step["ok"] for step in result["steps"] if step["op"] == "getTree")
    assert sorted(flat(tree)) == ["", "a1", "u1", "u2"]


def test_b29_children_without_a_time_come_last():
    """Known times are in order (null is 1970); entries without one follow in file order."""
    tree = ask("tree-sort-nan")["steps"][0]["ok"]
    assert ids(child["entry"] for child in tree[0]["children"]) == ["k6", "k7", "k3", "k5", "k1", "k2", "k4"]


@pytest.mark.parametrize(("name", "leaf"), [("load-scalar-tail", "a1"), ("load-empty-object-tail", "a1")])
def test_b18_a_line_without_an_id_is_never_the_leaf(name, leaf):
    """The leaf is the last entry that has an id, and the next append is its child."""
    result = ask(name)
    assert result["opened"]["leafId"] == leaf
    assert rows(result)[-1 if name != "load-scalar-tail" else 4]["parentId"] == leaf


def test_b18_scalar_lines_are_kept_but_carry_no_history():
    """Scalars and arrays are entries; path and leaf pass them over."""
    result = ask("load-scalar-lines", 1)
    assert result["opened"]["leafId"] == "u1"
    assert ids(result["steps"][-1]["ok"]) == ["u1", "new-1"]
    assert ask("fork-from-scalars")["opened"]["leafId"] == "u1"


def test_b16_a_line_that_is_no_object_does_not_stop_a_migration():
    """A scalar or an array in a version 1 file is kept as it is; the entries around it are chained."""
    scalar = ask("migrate-scalar-line")
    assert scalar["opened"]["leafId"] is not None
    (entries,) = oks(ask("migrate-array-line"))
    objects = [e for e in entries if isinstance(e, dict)]
    assert [1] in entries
    assert objects[1]["parentId"] == objects[0]["id"]


@pytest.mark.parametrize("number", [2, 4, 5, 6, 11])
def test_b14_an_odd_entry_contributes_nothing_to_a_branch_summary(number):
    """Entries without a readable message are passed over."""
    (result,) = ask("bs-prepare-odd", number)["results"]
    assert result["ok"]["messages"] == []


@pytest.mark.parametrize("name", ["ctx-edit-number", "ctx-edit-empty-object", "ctx-edit-content-null"])
def test_b15_an_edit_that_is_none_changes_nothing(name):
    """In the session's context an unusable edit is as if it were not there, and the rest works."""
    result = ask(name)
    assert not any(errors(result))
    for message in oks(result)[2]["messages"]:
        assert message.get("content") is not None or "summary" in message


@pytest.mark.parametrize("number", [3, 7])
def test_b15_the_free_function_still_refuses_such_an_edit(number):
    """projectContextEntry with an edit that holds no replacement raises."""
    assert "error" in ask("ctx-project-function", number)


def test_b15_a_branch_summary_passes_over_an_unusable_edit():
    """A context_edit without replacement does not stop the preparation."""
    (result,) = ask("bs-prepare-edits", 1)["results"]
    assert "ok" in result


@pytest.mark.parametrize("number", [3, 4, 8, 9])
def test_b32_an_unknown_leaf_is_an_error(number):
    """Free functions given an unknown leaf raise EntryNotFoundError instead of taking the last entry."""
    assert "not found" in ask("ctx-functions", number)["error"]["message"]


def test_b35_an_empty_previous_summary_counts_as_none():
    """A compaction after one with an empty summary gives the model no previous summary."""
    for result in ask("prep-empty-summary")["results"]:
        assert result["ok"].get("previousSummary") is None


def test_b40_usage_fields_that_are_no_numbers_count_as_0():
    """Text in a usage is not glued to the sum."""
    assert ask("tokens-calculate", 4)["ok"] == 3
    assert ask("tokens-context", 10)["ok"]["usageTokens"] == 0


def listed(name, number=0):
    return ask(name, number)["ok"]


@pytest.mark.parametrize(
    "name",
    [
        "list-odd-name-number",
        "list-odd-null-content",
        "list-odd-null-block",
        "list-odd-missing-message",
        "list-odd-object-content",
    ],
)
def test_b17_b20_an_odd_entry_hides_no_session(name):
    """A session with one odd entry is listed, with what the other entries say."""
    found = {info["id"]: info for info in listed(name)}
    assert "good" in found["A"]["allMessagesText"]


def test_b19_lines_end_at_lf_alone():
    """U+2028, U+2029 and CR inside a line part nothing."""
    texts = [info["allMessagesText"] for info in listed("list-u2028")]
    assert any("hello\u2028world" in text for text in texts)
    assert "/w\u2028x" in [info["cwd"] for info in listed("list-u2028", 1)]


def test_b21_what_cannot_be_opened_is_not_listed():
    """A header whose id is no string makes no session, in the list as in open."""
    assert all(isinstance(info["id"], str) for info in listed("list-header-id-number"))


def test_b22_a_dangling_link_hides_no_other_session():
    """The newest session is found and continued beside a dangling link."""
    assert isinstance(ask("list-dangling-link")["ok"], str)
    continued = ask("list-dangling-link", 1)["opened"]
    assert continued["flushed"] is True


def test_b26_a_byte_order_mark_is_accepted_and_kept():
    """A file that begins with a BOM is a session, for load, open and the list."""
    assert len(ask("load-bom-header")["ok"]) == 5
    opened = ask("load-bom-header", 1)
    assert opened["opened"]["leafId"] == "a2"
    assert opened["files"]["session.jsonl"]["text"].startswith("\ufeff{")
    assert len(listed("list-bom")) > 0


def test_b41_equal_times_are_ordered_by_name_bytewise():
    """Of sessions with one time the names come in descending order of their bytes."""
    names = [info["path"] for info in listed("list-order-ties")]
    times = [info["modified"]["$date"] for info in listed("list-order-ties")]
    assert len(set(times)) < len(times)
    pairs = list(zip(times, (name.encode() for name in names), strict=True))
    assert pairs == sorted(pairs, reverse=True)
