"""Older files and lists of entries as ones of the current version."""

import itertools
import json
import math
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import Host, SessionManager, jsontext, migrate_session_entries
from sessiontree._native import Migration, Store, derived_id, splice_members
from sessiontree.exceptions import SessionFileLostError
from sessiontree.migrations import header_version, migrated_parts, needs_migration, splice

HEADER = {"type": "session", "id": "s", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/code"}


def counting_host():
    """Ids ``new-1``, ``new-2``, ..."""
    numbers = itertools.count(1)
    return Host(uuid4=lambda: f"new-{next(numbers)}")


def file_of(entries):
    return b"".join(jsontext.dumps(entry) + b"\n" for entry in entries)


def migrated(data, host=None):
    return b"".join(migrated_parts(Store.memory(data), host))


def values(data):
    return [jsontext.loads(line) for line in data.splitlines()]


# What JavaScript's Number() gives; asked of V8.
NUMBERS = [
    *[(None, 1), (True, 1), (False, 0), (-1, -1), (2.5, 2.5), (math.inf, math.inf), (10**400, math.inf)],
    *[("", 0), (" 2 ", 2), ("\xa02\n", 2), ("0x2", 2), ("0X1F", 31), ("0b11", 3), ("0o7", 7), ("+2", 2)],
    *[("2.", 2), (".5", 0.5), ("1e1", 10), ("1E+1", 10), ("5e-1", 0.5), ("00003", 3), ("1" * 400, math.inf)],
    *[("Infinity", math.inf), ("-Infinity", -math.inf), ("0x" + "f" * 300, math.inf)],
    *[([], 0), ([2], 2), (["2"], 2), ([[3]], 3), ([None], 0)],
]
NOT_NUMBERS = [
    *[
        "abc",
        "..",
        ".",
        "1e",
        "e5",
        "infinity",
        "1_0",
        "２",
        "2n",
        "0x",
        "0x1_0",
        "0b2",
        "+0x2",
        "1,2",
        "\x852",
    ],
    *[{}, [{}], [True], [1, 2]],
]


@pytest.mark.parametrize(("version", "number"), NUMBERS)
def test_version_is_what_javascript_reads(version, number):
    """The version of a header is its value as a number, as Number() converts it."""
    assert header_version({"version": version}) == number
    assert needs_migration({"version": version}) == (number < 3)


@pytest.mark.parametrize("version", NOT_NUMBERS)
def test_no_number_is_never_migrated(version):
    """A version that is no number is NaN, which is older than nothing."""
    assert math.isnan(header_version({"version": version}))
    assert not needs_migration({"version": version})


def test_missing_version_is_one():
    """A header without version, and what is no header, count as version 1."""
    assert header_version({}) == header_version(None) == 1


def test_nested_version_ends():
    """However deep an array around the version is, reading it ends."""
    deep = [2]
    for _ in range(100_000):
        deep = [deep]
    assert header_version({"version": deep}) == 2
    while deep:
        deep = deep.pop() if isinstance(deep, list) else None


# ---- files


def test_ids_derive_from_line_number_and_line():
    """Ids depend on nothing but the line and its place: any program arrives at them."""
    entry = {"type": "custom", "customType": "x"}
    one, two, three = values(migrated(file_of([HEADER, entry, entry])))
    assert one["version"] == 3
    assert two["id"] == derived_id(2, jsontext.dumps(entry))
    assert three == {**entry, "id": derived_id(3, jsontext.dumps(entry)), "parentId": two["id"]}
    assert two["id"] != three["id"]


def test_reading_and_migrating_give_the_same_ids(tmp_path):
    """A read-only open shows the ids that a later migration writes, and leaves the file alone."""
    path = tmp_path / "old.jsonl"
    data = file_of([HEADER, *({"type": "custom", "data": n} for n in range(50))])
    path.write_bytes(data)
    with SessionManager.open(path, read_only=True) as session:
        seen = [entry["id"] for entry in session.get_entries()]
    assert path.read_bytes() == data
    with SessionManager.open(path) as session:
        assert [entry["id"] for entry in session.get_entries()] == seen
    assert len(set(seen)) == 50
    assert path.read_bytes() != data


def test_given_ids_are_drawn_once_a_line():
    """An own host gives one id for each line that is no header, whether it is used or not."""
    lines = [HEADER, {"a": 1}, 5, {"id": "own"}, {"type": "session"}, {"b": 2}]
    out = values(migrated(file_of(lines), counting_host()))
    assert out[1:] == [
        {"a": 1, "id": "new-1", "parentId": None},
        5,
        {"id": "own", "parentId": "new-1"},
        {"type": "session", "version": 3},
        {"b": 2, "id": "new-4", "parentId": "own"},
    ]


def test_given_ids_are_cut_and_drawn_again_while_taken():
    """The first eight characters count; one that an entry has, or that was drawn before, is not used."""
    draws = iter(["taken000-x", "aaaaaaaa-x", "aaaaaaaa-y", "bbbbbbbb-x", "cccccccc"])
    out = values(migrated(file_of([HEADER, {}, {}, {"id": "taken000"}]), Host(uuid4=lambda: next(draws))))
    assert [entry["id"] for entry in out[1:]] == ["aaaaaaaa", "bbbbbbbb", "taken000"]


def test_a_source_that_repeats_itself_ends_in_a_whole_uuid():
    """When a hundred draws were taken, the next one is used as it is."""
    whole = str(uuid.UUID(int=7))
    out = values(migrated(file_of([HEADER, {}, {}]), Host(uuid4=lambda: whole)))
    assert [entry["id"] for entry in out[1:]] == [whole[:8], whole]


def test_odd_ids_of_a_host_are_escaped():
    """Whatever text a host gives, the line stays JSON."""
    out = values(migrated(file_of([HEADER, {}]), Host(uuid4=lambda: '"\\\ud800\n')))
    assert out[1]["id"] == '"\\\ud800\n'


def test_bytes_that_need_not_change_stay():
    """Blank and broken lines, big numbers, escapes, white space and a torn tail are copied."""
    kept = b'\n \r\nnot json\n{"type":"message\xff\n'
    line = b'{ "type" : "custom", "n":1e400, "x":"\\u0041\\ud800" , "i":12345678901234567890 }'
    data = file_of([HEADER]) + kept + line + b'\r\n{"torn":'
    out = migrated(data)
    new = b'"id":"%s","parentId":null' % derived_id(6, line + b"\r").encode()
    assert out.split(b"\n", 1)[1] == kept + line[:-2] + b"," + new + b' }\r\n{"torn":'


def test_parts_are_small(tmp_path):
    """A file comes in parts of about a megabyte, so that it is never in memory as a whole."""
    path = tmp_path / "big.jsonl"
    path.write_bytes(file_of([HEADER, *({"type": "custom", "data": "x" * 1000} for _ in range(4000))]))
    sizes = [len(part) for part in migrated_parts(Store.open(path))]
    assert len(sizes) >= 4
    assert max(sizes) < 1_500_000


def test_file_that_changes_meanwhile_is_an_error(tmp_path):
    """What is read while another process rewrites the file is not taken for the old file."""
    path = tmp_path / "s.jsonl"
    entries = [{"type": "custom", "data": "x" * 1000} for _ in range(2000)]
    path.write_bytes(file_of([HEADER, *entries]))
    parts = migrated_parts(Store.open(path))
    next(parts)
    with path.open("r+b") as file:
        file.truncate(1_200_000)
    with pytest.raises(SessionFileLostError):
        list(parts)


def test_version_2_keeps_its_tree():
    """From version 2 on ids and parents are not touched, only the role of hook messages is."""
    hook = {"type": "message", "id": 1, "message": {"role": "hookMessage"}}
    data = file_of([{**HEADER, "version": 2}, hook, {"x": 1}])
    assert values(migrated(data))[1:] == [{**hook, "message": {"role": "custom"}}, {"x": 1}]


# ---- lists of entries

IDS = st.sampled_from(["a", "b", "c", "", None, 1])
INDEXES = st.one_of(st.integers(-1, 8), st.sampled_from([1.0, 1.5, None, "1", True, 1e300]))


def entry(**keys):
    """A dict with some of these keys."""
    required = {"type": keys.pop("type")} if "type" in keys else {}
    return st.fixed_dictionaries(required, optional=keys)


ENTRIES = st.one_of(
    entry(id=IDS, parentId=IDS),
    entry(type=st.just("compaction"), id=IDS, firstKeptEntryIndex=INDEXES, firstKeptEntryId=IDS),
    entry(type=st.just("compaction"), firstKeptEntryIndex=INDEXES),
    entry(
        type=st.just("message"), message=st.sampled_from([None, {"role": "hookMessage"}, {"role": "user"}, 5])
    ),
    st.just({"type": "session", "id": "later"}),
    st.sampled_from([5, "text", [1], True]),
)
VERSIONS = st.sampled_from([{}, {"version": 1}, {"version": 2}, {"version": "1"}])


@given(VERSIONS, st.lists(ENTRIES, max_size=10), st.booleans())
def test_lists_and_files_are_migrated_alike(version, entries, own_host):
    """A list of entries comes out as the lines of the file with the same entries do."""
    entries = [{**HEADER, **version}, *entries]
    before = json.dumps(entries)
    hosts = (counting_host(), counting_host()) if own_host else (None, None)
    listed = migrate_session_entries(entries, host=hosts[0])
    assert json.dumps(entries) == before
    assert listed == values(migrated(file_of(entries), hosts[1]))
    assert migrate_session_entries(listed) == listed
    if not needs_migration(entries[0]) or header_version(entries[0]) >= 2:
        return
    ids = [e["id"] for e in listed if isinstance(e, dict) and e.get("type") != "session"]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(id, str) and id for id in ids)


@given(st.lists(ENTRIES, max_size=8))
def test_current_entries_stay_as_they_are(entries):
    """Entries of version 3 and later, and of no version at all, are given back unchanged."""
    for version in (3, 4, "abc"):
        current = [{**HEADER, "version": version}, *entries]
        assert migrate_session_entries(current) == current


def test_no_header_is_version_1():
    """Without a header the entries are of version 1; without entries there is nothing to do."""
    assert migrate_session_entries([]) == []
    (only,) = migrate_session_entries([{"type": "custom"}], host=counting_host())
    assert only == {"type": "custom", "id": "new-1", "parentId": None}


# ---- single lines


def test_splice_changes_only_what_it_must():
    """Members are replaced where they stand and added at the end; all else is the same bytes."""
    assert (
        splice(b' {"a": 1.50,"b":[1e400] } \r', {"a": b"2", "c": b"{}"})
        == b' {"a": 2,"b":[1e400],"c":{} } \r'
    )
    assert splice(b"{}", {"a": b"1"}) == b'{"a":1}'
    assert splice(b'{"\\u0061":1,"a":2}', {"a": b"3"}) == b'{"\\u0061":1,"a":3}'


@pytest.mark.parametrize(
    ("line", "members"),
    [(b"[1]", {}), (b'{"a":1', {}), (b"{}", {"a": b"x"}), (b"{}", {'"': b"1"}), (b"{}", {"\\": b"1"})],
)
def test_splice_refuses_what_would_be_no_json(line, members):
    """A line that is no object, a value that is no JSON and a key with escapes are errors."""
    with pytest.raises(ValueError, match=r"object|JSON|key"):
        splice_members(line, members)


def test_migration_is_an_iterator():
    """Each part comes once; after the last there are no more."""
    parts = Migration(Store.memory(file_of([HEADER])), give_ids=False)
    assert iter(parts) is parts
    assert len(list(parts)) == 1
    assert list(parts) == []
