"""Entries are built as pi writes them, key for key."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from sessiontree import entries
from sessiontree.entries import UNSET, assert_valid_session_id
from sessiontree.exceptions import InvalidSessionIdError

EXPECTED = Path(__file__).parent / "conformance" / "expected"
NODE = ("id", "parentId", "timestamp")
BUILDERS = {
    "message": (entries.message_entry, ("message",), ()),
    "thinking_level_change": (entries.thinking_level_change_entry, ("thinkingLevel",), ()),
    "model_change": (entries.model_change_entry, ("provider", "modelId"), ()),
    "usage": (entries.usage_entry, ("kind", "provider", "model", "usage"), ("note",)),
    "compaction": (
        entries.compaction_entry,
        ("summary", "firstKeptEntryId", "tokensBefore"),
        ("details", "usage", "fromHook", "systemMessage"),
    ),
    "branch_summary": (
        entries.branch_summary_entry,
        ("fromId", "summary"),
        ("details", "usage", "fromHook"),
    ),
    "custom": (entries.custom_entry, ("customType",), ("data",)),
    "custom_message": (
        entries.custom_message_entry,
        ("customType", "content", "display"),
        ("details",),
    ),
    "context_edit": (entries.context_edit_entry, ("targetId", "replacement"), ()),
    "label": (entries.label_entry, ("targetId",), ("label",)),
    "session_info": (entries.session_info_entry, ("name",), ()),
}
ID = "2024"
TIME = "2026-08-31T10:30:00.000Z"


def texts(value):
    """Every recorded text of a file, wherever it stands in a result."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value["text"]
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def written_by_pi():
    """The lines that pi itself added in the recorded scenarios: their ids are placeholders."""
    for path in sorted(EXPECTED.glob("*.json")):
        for text in texts(json.loads(path.read_text("utf-8"))):
            for line in text.split("\n"):
                if '"id":"new-' in line and '"timestamp":"<now>"' in line:
                    yield json.loads(line)


def rebuild(entry):
    """Build the entry anew from its fields."""
    build, required, optional = BUILDERS[entry["type"]]
    given = [entry[key] for key in (*NODE, *required)]
    return build(*given, *[entry.get(key) for key in optional])


def is_complete(entry):
    """Whether pi was given all required arguments and no explicit null (some scenarios do neither)."""
    _, required, optional = BUILDERS[entry["type"]]
    return all(key in entry for key in (*NODE, *required)) and all(
        entry.get(key, 0) is not None for key in optional
    )


def test_entries_have_the_keys_of_pi_in_its_order():
    """Each line pi wrote in a recorded scenario is rebuilt with the same keys in the same order."""
    lines = [entry for entry in written_by_pi() if is_complete(entry)]
    assert {entry["type"] for entry in lines} == {*BUILDERS} - {"usage"}
    for entry in lines:
        assert list(rebuild(entry).items()) == list(entry.items())


def test_usage_has_its_fields_after_the_node():
    """No recorded usage entry is complete; its keys follow type, id, parentId, timestamp."""
    entry = entries.usage_entry(ID, None, TIME, "k", "p", "m", {"input": 1}, "n")
    assert list(entry) == ["type", *NODE, "kind", "provider", "model", "usage", "note"]


def recorded_headers():
    """The headers that pi wrote for new sessions."""
    for path in sorted(EXPECTED.glob("*.json")):
        for text in texts(json.loads(path.read_text("utf-8"))):
            first = text.split("\n", 1)[0]
            if first.startswith('{"type":"session"') and '"timestamp":"<now>"' in first:
                yield json.loads(first)


def test_headers_have_the_keys_of_pi_in_their_order():
    """A header is built with the keys of a recorded one, with and without a parent session."""
    plain = [
        header
        for header in recorded_headers()
        if set(header) <= {"type", "version", "parentSession", "cwd", "id", "timestamp"}
    ]
    assert any("parentSession" in header for header in plain)
    assert any("parentSession" not in header for header in plain)
    for header in plain:
        built = entries.session_header(
            header["id"], header["timestamp"], header["cwd"], header.get("parentSession")
        )
        assert list(built.items()) == list(header.items())


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("absent", [None, UNSET])
def test_absent_options_leave_no_key(kind, absent):
    """An optional argument that is None or UNSET is not written, whatever the kind of entry."""
    build, required, optional = BUILDERS[kind]
    values = [f"v-{key}" for key in required]
    entry = build(ID, None, TIME, *values, *[absent for _ in optional])
    assert set(entry) == {"type", *NODE, *required}
    assert [entry[key] for key in required] == values
    assert entry == build(ID, None, TIME, *values)


@pytest.mark.parametrize("absent", [None, UNSET])
def test_header_without_parent_has_no_key_for_it(absent):
    """None and UNSET both mean that the session was not forked."""
    assert "parentSession" not in entries.session_header(ID, TIME, "/c", absent)


@pytest.mark.parametrize("falsy", [0, False, "", [], {}])
def test_falsy_options_are_written(falsy):
    """Only None and UNSET count as absent: an empty value is a value."""
    assert entries.custom_entry(ID, None, TIME, "c", falsy)["data"] is falsy
    compaction = entries.compaction_entry(ID, None, TIME, "s", "k", 1, falsy, None, False)
    assert compaction["details"] is falsy
    assert compaction["fromHook"] is False


def test_compaction_without_kept_entry_names_itself():
    """Nothing before a compaction is kept when no kept entry is named."""
    assert entries.compaction_entry(ID, None, TIME, "s", None, 1)["firstKeptEntryId"] == ID


def test_an_empty_note_is_left_out():
    """An empty note says nothing, so it is not written, as in pi."""
    assert "note" not in entries.usage_entry(ID, None, TIME, "k", "p", "m", {}, "")


@pytest.mark.parametrize("id", ["a", "0", "abc", "A-b_c.9", "a" * 300, "a..b"])
def test_valid_session_ids_pass(id):
    """ASCII letters and digits pass, and dots, lines and dashes between them."""
    assert_valid_session_id(id)


@pytest.mark.parametrize(
    "id",
    [*["", "-a", "a-", "a b", ".a", "a.", "_a", "é", "a/b", "a\n", "\na", "a\\b", "²", "a٣b"], None, 7, b"a"],
)
def test_invalid_session_ids_are_refused(id):
    """Anything that could be no file name, or leave the folder, is refused and shown."""
    with pytest.raises(InvalidSessionIdError) as caught:
        assert_valid_session_id(id)
    assert repr(id) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_unset_is_one_falsy_value():
    """UNSET is falsy, prints its name, and stays itself when it is copied or pickled."""
    assert not UNSET
    assert repr(UNSET) == "UNSET"
    assert copy.deepcopy([UNSET])[0] is UNSET
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET


def test_types_are_found_without_importing_typing_first():
    """Importing the module costs no typing; asking for a type brings it in."""
    code = (
        "import sys; before = 'typing' in sys.modules\n"
        "from sessiontree import entries\n"
        "assert ('typing' in sys.modules) == before\n"
        "assert all(hasattr(entries, name) for name in entries.__all__)\n"
        "assert entries.MessageEntry.__required_keys__ == {'type', 'id', 'parentId', 'timestamp', 'message'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_attribute_errors():
    """A name the module does not have is reported like in any other module."""
    with pytest.raises(AttributeError, match="no_such_name"):
        entries.no_such_name  # noqa: B018
