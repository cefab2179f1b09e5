"""New entries in the making: their ids, times and lines, one by one and many at once."""

import json
import os
from itertools import count

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import (
    Host,
    SessionClosedError,
    SessionManager,
    SessionReplacedWarning,
    UnsupportedVersionError,
    jsontext,
    opening,
)
from sessiontree._native import Store, message_lines, written_time

FIRST = {"role": "user", "content": "first", "timestamp": 1}
FIRST_ENTRY = {
    "type": "message",
    "id": "e0",
    "parentId": None,
    "timestamp": "2026-01-01T00:00:00.000Z",
    "message": FIRST,
}


def fixed_host():
    """Clock and ids that every session counts anew."""
    ticks, ids = count(1_700_000_000_000, 7), count()
    return Host(
        clock_ms=lambda: next(ticks), uuid4=lambda: f"{next(ids):08x}-rest", uuid7=lambda: f"s{next(ids)}"
    )


def session_of(*entries):
    return SessionManager.in_memory("/code", entries=entries)


@given(st.lists(strategies.values(), max_size=8))
def test_many_messages_are_written_as_one_by_one(messages):
    """`append_many` gives the bytes, the index and the ids that as many appends give."""
    alone, together = (SessionManager.in_memory("/code", id="s", host=fixed_host()) for _ in range(2))
    ids = [alone.append_message(message) for message in messages]
    assert together.append_many(messages) == ids
    stores = [session._log.store for session in (alone, together)]
    assert stores[0].read(0, stores[0].end()) == stores[1].read(0, stores[1].end())
    for name, column in alone.columns().items():
        assert column.tolist() == together.columns()[name].tolist()
    assert together.get_leaf_id() == alone.get_leaf_id()


def test_a_thousand_messages_are_known_as_a_scan_knows_them(tmp_path):
    """What is indexed of many lines at once is what opening the file finds."""
    session = SessionManager.create("/code", str(tmp_path))
    session.append_message(FIRST)
    ids = session.append_many([{**FIRST, "content": "x" * (n % 50), "timestamp": n} for n in range(1000)])
    again = SessionManager.open(session.get_session_file())
    assert list(again.get_ids())[1:] == ids
    assert len(set(ids)) == 1000
    for name, column in session.columns().items():
        assert column.tolist() == again.columns()[name].tolist()


@given(strategies.values())
def test_a_message_is_written_as_stringify_writes_it(message):
    """Whoever writes a message's text, it is that of `dumps`, and the index knows the line as a scan does."""
    session = SessionManager.in_memory("/code", entries=[FIRST_ENTRY])
    ids = [session.append_message(message), session.append_message(message), *session.append_many([message])]
    store = session._log.store
    for row, id in enumerate(ids, start=1):
        text = jsontext.dumps(message)
        before = json.dumps({"type": "message", "id": id, "parentId": ["e0", *ids][row - 1]})[:-1]
        line = store.line(row)
        assert line.startswith(before.replace(": ", ":").replace(", ", ",").encode())
        assert line.endswith(b',"message":' + text + b"}")
    again = Store.memory(store.read(0, store.end()))
    for name, column in again.columns().items():
        assert column.tolist() == session.columns()[name].tolist()


NUMBERS = st.one_of(
    st.floats(), st.integers(), st.floats(1e-9, 1e-3), st.integers(-(2**70), 2**70).map(float)
)


@given(st.lists(NUMBERS))
def test_numbers_of_messages_are_those_of_javascript(numbers):
    """A message's numbers have the texts that `dumps` gives them."""
    store = session_of()._log.store
    if store.append_message(numbers, "00000000", None, False, False) is not None:
        assert store.line(0).endswith(b',"message":' + jsontext.dumps(numbers) + b"}")
    else:
        assert any(isinstance(number, int) and not -(2**63) <= number < 2**63 for number in numbers)


@pytest.mark.parametrize(
    "message",
    [{1: 2}, {"a": object()}, {"a": "\ud800"}, {"a": 2**63}, {"\ud800": 1}, type("T", (str,), {})("a")],
)
def test_unusual_values_are_left_to_the_other_writer(message):
    """What the native writer does not know it leaves alone; nothing is appended then."""
    store = session_of()._log.store
    assert store.append_message(message, "00000000", None, False, False) is None
    assert store.append_messages([FIRST, message], ["a", "b"], None, None, False, False) is None
    assert len(store) == 0


def test_nesting_and_circles_end():
    """A hundred levels are written at once, more and circles by the other writer, which refuses circles."""
    deep, circle = [], []
    circle.append(circle)
    for _ in range(98):
        deep = [deep]
    store = session_of()._log.store
    assert store.append_message([deep], "00000000", None, False, False) == 0
    assert store.append_message([[deep]], "00000001", None, False, False) is None
    session = session_of()
    session.append_message([[deep]])
    assert session.get_entry(session.get_leaf_id())["message"] == [[deep]]
    with pytest.raises(TypeError, match="circular"):
        session.append_message(circle)


def test_an_id_that_is_taken_is_not_given_again(monkeypatch):
    """A random id that an entry has is drawn again, also where that is found out last of all."""
    session = session_of(FIRST_ENTRY)
    first = session.append_message(FIRST)
    draws = [first, "00000007", first]
    monkeypatch.setattr("sessiontree.appending.random_id", draws.pop)
    monkeypatch.setattr(opening, "_pool", [])
    second = session.append_message(FIRST)
    assert second != first
    assert draws == [first, "00000007"]
    assert session.append_message(FIRST) == "00000007"
    assert session.get_entry_count() == 4


@pytest.mark.parametrize("times", [None, ["2026-01-01T00:00:00.000Z"]])
def test_each_message_needs_an_id_and_a_time(times):
    """More ids than messages, or other times, are refused."""
    store = session_of()._log.store
    with pytest.raises(ValueError, match="each message needs"):
        store.append_messages(
            [FIRST, FIRST], ["a", "b"][: 1 if times is None else 2], None, times, False, False
        )


@pytest.mark.parametrize("time", ["", "+012026-01-01T00:00:00.000Z", "2026-13-01T00:00:00.000Z"])
def test_odd_times_are_left_to_the_other_writer(time):
    """A time that is not written as usual gives None."""
    store = session_of()._log.store
    assert store.append_messages([FIRST], ["a"], None, [time], False, False) is None


@pytest.mark.parametrize("row", [1, 2**32 - 1])
def test_a_leaf_must_be_a_row(row):
    """A row that is not there is an IndexError, not another parent."""
    store = session_of(FIRST_ENTRY)._log.store
    with pytest.raises(IndexError):
        store.append_message(FIRST, "00000000", row, False, False)
    with pytest.raises(IndexError):
        store.append_messages([FIRST], ["a"], row, None, False, False)


def test_a_session_that_is_closed_takes_no_message():
    """What was asked before is not believed for ever."""
    session = session_of(FIRST_ENTRY)
    session.append_message(FIRST)
    assert session._log.swift is not None
    session.close()
    with pytest.raises(SessionClosedError):
        session.append_message(FIRST)


def test_a_file_of_a_newer_version_in_its_place_takes_no_message(tmp_path):
    """After the file is another one its version is looked at again, and the leaf is kept."""
    path = tmp_path / "s.jsonl"
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}
    path.write_bytes(jsontext.dumps(header) + b"\n" + jsontext.dumps(FIRST_ENTRY) + b"\n")
    session = SessionManager.open(path)
    session.append_message(FIRST)
    session.branch("e0")
    other = tmp_path / "other"
    other.write_bytes(jsontext.dumps({**header, "version": 4}) + b"\n" + jsontext.dumps(FIRST_ENTRY) + b"\n")
    size = other.stat().st_size
    other.rename(path)
    with pytest.warns(SessionReplacedWarning), pytest.raises(UnsupportedVersionError):
        session.append_message(FIRST)
    assert session.get_leaf_id() == "e0"
    assert path.stat().st_size == size


def test_a_bad_message_among_many_changes_nothing():
    """The error names the place within the entry, and nothing of the batch is there."""
    session = session_of()
    with pytest.raises(TypeError, match=r"message\.content\[1\]"):
        session.append_many([FIRST, {"role": "user", "content": ["a", object()]}])
    assert session.get_entry_count() == 0


@given(st.integers(-(10**15), 3 * 10**14))
def test_times_are_written_as_javascript_writes_them(ms):
    """The fast text of a time is the general one, or is left to that."""
    assert written_time(ms) in (jsontext.to_iso(ms), None)
    assert (written_time(ms) is None) == (len(jsontext.to_iso(ms)) != 24)


@pytest.mark.parametrize("now", [-1, 253_402_300_800_000, 1.5, 2**70])
def test_an_odd_clock_gives_what_it_gave(now):
    """What a host's clock says is written as `to_iso` writes it, or refused as it refuses it."""
    options = opening.options_of({"host": Host(clock_ms=lambda: now)})
    try:
        expected = jsontext.to_iso(now)
    except (ValueError, OverflowError) as error:
        with pytest.raises(type(error)):
            opening.timestamp(options)
    else:
        assert opening.timestamp(options) == expected


def test_ids_that_are_taken_or_repeat_are_not_drawn():
    """Of random bytes those ids are given that no entry has, each once."""
    taken = {"type": "custom", "id": "00000001", "parentId": None}
    store = session_of(taken)._log.store
    random = bytes.fromhex("00000002 00000001 00000002 ffffffff")
    assert store.free_ids(random) == ["00000002", "ffffffff"]


def test_what_collides_is_drawn_again(monkeypatch):
    """Where random ids repeat, as many are drawn as are needed, and all differ."""
    store = session_of()._log.store
    draws = iter([bytes(40), *(os.urandom(4 * 64) for _ in range(9))])
    monkeypatch.setattr(opening.os, "urandom", lambda _size: next(draws))
    monkeypatch.setattr(opening, "_pool", [])
    ids = opening.draw_ids(opening.DEFAULT_HOST, 10, store)
    assert len(set(ids)) == 10
    assert ids[0] == "00000000"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_draw_other_ids():
    """What was drawn ahead is drawn anew in a child."""
    opening.random_id()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, opening.random_id().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 8).decode() not in [opening.random_id() for _ in range(200)]
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("messages", [b"[]", b"[1]", b"[1,2,3]"])
def test_lines_need_as_many_ids_as_messages(messages):
    """Messages that are more or fewer than ids are refused, and so are timestamps."""
    with pytest.raises(ValueError, match="each message needs"):
        message_lines(messages, ["a", "b"], None, ["t", "u"])
    with pytest.raises(ValueError, match="each message needs"):
        message_lines(b"[1]", ["a"], None, [])


def test_odd_ids_are_quoted():
    """Ids with quotes or lone surrogates are read back as they are, as parents as well."""
    lines = message_lines(b'["]",{"a":[2]}]', ['"', "\ud800"], "\x1f", ["t", "u"])
    entries = [jsontext.loads(line) for line in lines.splitlines()]
    assert [entry["id"] for entry in entries] == ['"', "\ud800"]
    assert [entry["parentId"] for entry in entries] == ["\x1f", '"']
    assert [entry["message"] for entry in entries] == ["]", {"a": [2]}]


@pytest.mark.parametrize("count_of_rows", [1000, 1100, 4099, 17_000, 33_000])
def test_an_entry_takes_at_most_64_bytes_of_the_index(count_of_rows):
    """Columns and the table of ids together, whatever the number of entries, scanned or appended."""
    header = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
    line = b'{"type":"custom","id":"%08x","parentId":"%08x"}\n'
    lines = [line % (n, n - 1 if n else 0) for n in range(count_of_rows)]
    scanned = Store.memory(header + b"".join(lines))
    appended = Store.memory(header)
    for some in lines:
        appended.append(some)
    for store in (scanned, appended):
        assert len(store) == count_of_rows
        assert store.heap_bytes() <= 64 * count_of_rows


def test_ids_of_a_path_come_in_order():
    """Iterating over a path's ids, in growing batches, gives each of them once."""
    session = session_of()
    ids = session.append_many([FIRST] * 3000)
    assert list(session.path_ids()) == ids
    assert list(session.get_ids()) == ids
    assert list(reversed(session.path_ids())) == ids[::-1]
    assert session.path_ids()[::700] == ids[::700]
    assert session._log.store.ids(iter([2, 0])) == [ids[2], ids[0]]
    assert session._log.store.roles([]) == b""
    with pytest.raises(IndexError):
        session._log.store.ids(range(2999, 3001))


@given(st.lists(strategies.texts(), max_size=8))
def test_entries_are_read_as_each_of_them(pairs):
    """Entries that are read together have the values that their texts have, to the sign of zero."""
    lines = ['{"x":' + text.replace("\n", " ") + "}\n" for text, _ in pairs]
    header = '{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
    store = Store.memory("".join([header, *lines]).encode("utf-8", "surrogatepass"))
    assert len(store) == len(pairs)
    values = store.parse(range(len(store)), jsontext.fast_loads(), lambda _row, line: jsontext.loads(line))
    assert repr(values) == repr([jsontext.loads(store.line(row)) for row in range(len(store))])


def test_what_cannot_be_read_is_left_to_the_caller():
    """Errors of the given reader that are no ValueError go through, others ask `otherwise`."""
    store = session_of({"type": "custom", "id": "a", "parentId": None})._log.store

    def refuse(_line):
        raise ValueError("no")

    def fail(_line):
        raise KeyError("no")

    assert store.parse([0, 0], refuse, lambda row, line: (row, jsontext.loads(line)["id"])) == [(0, "a")] * 2
    with pytest.raises(KeyError):
        store.parse([0], fail, lambda _row, _line: None)


class PressedError(BaseException):
    """What stands for Ctrl-C."""


class Interrupted:
    """A store whose writes are followed by Ctrl-C."""

    def __init__(self, store):
        self.store = store

    def __len__(self):
        return len(self.store)

    def __getattr__(self, name):
        method = getattr(self.store, name)
        if not name.startswith(("append", "persist")):
            return method

        def interrupted(*given, **named):
            before = len(self.store)
            done = method(*given, **named)
            if len(self.store) > before:
                raise PressedError
            return done

        return interrupted


def user(text):
    return {"role": "user", "content": text, "timestamp": 0}


APPENDS = {
    "message": lambda session: session.append_message(user("new")),
    "messages": lambda session: session.append_many([user("new"), user("newer")]),
    "odd message": lambda session: session.append_message({**user("new"), "odd": "\ud800"}),
    "name": lambda session: session.append_session_info("name"),
    "label": lambda session: session.append_label_change(session.get_leaf_id(), "here"),
}


@pytest.mark.parametrize("do", APPENDS.values(), ids=APPENDS)
@pytest.mark.parametrize("first", ["assistant", "custom"], ids=["in a file", "not yet"])
def test_an_interrupt_behind_a_write_leaves_the_entry_on_the_branch(tmp_path, monkeypatch, do, first):
    """Ctrl-C is heard when the native call is over: what was written is the leaf, and the next entry hangs on it."""
    session = SessionManager.create("/code", str(tmp_path))
    if first == "assistant":
        session.append_message({"role": "assistant", "content": [], "timestamp": 1})
    else:
        session.append_custom_entry("note")
    old, log = session.get_leaf_id(), session._log
    with monkeypatch.context() as patch:
        patch.setattr(log, "store", Interrupted(log.store))
        if log.swift is not None:
            patch.setattr(log, "swift", log.store)
        with pytest.raises(PressedError):
            do(session)
    leaf = session.get_leaf_id()
    assert leaf == session.get_entries()[-1]["id"] != old
    session.append_message(user("next"))
    session.append_message({"role": "assistant", "content": [], "timestamp": 1})
    ids = list(session.path_ids())
    assert ids.index(old) < ids.index(leaf) < len(ids) - 2
    again = SessionManager.open(session.get_session_file(), read_only=True)
    assert list(again.path_ids()) == ids
