"""pytest-benchmark suites for the public functions; each checks its answer.

.venv/bin/python -m pytest benches/test_api.py                       # times them
.venv/bin/python -m pytest benches/test_api.py --benchmark-disable   # checks the answers alone
"""

import functools
import itertools
import shutil

import pytest
from generate import Data
from sessiontree import SessionManager, jsontext

DATA = Data("quick")


@functools.cache
def known(name):
    """A file's path, and what is in it."""
    facts = DATA.facts(name)
    return str(DATA.path(name)), facts


def opened(name):
    return SessionManager.open(known(name)[0], read_only=True, cache=False)


@pytest.fixture
def copy(tmp_path):
    """A session of its own to write to, with 20,000 entries."""
    path = shutil.copyfile(known("T200k")[0], tmp_path / "copy.jsonl")
    with SessionManager.open(path, cache=False) as session:
        yield session


def message(number):
    return {"role": "user", "content": [{"type": "text", "text": f"question {number}"}], "timestamp": number}


@pytest.mark.parametrize("name", ["S", "M", "L", "Limg", "T200k"])
def test_open(benchmark, name):
    session = benchmark(opened, name)
    facts = known(name)[1]
    assert (session.get_entry_count(), session.get_leaf_id()) == (facts["entries"], facts["leaf"])


def test_open_and_context_after_compaction(benchmark):
    context = benchmark(lambda: opened("Lc").build_session_context())
    assert context.messages[0]["role"] == "compactionSummary"
    assert 1 < len(context.messages) < known("Lc")[1]["entries"] / 10


def test_whole_context(benchmark):
    context = benchmark(lambda: opened("T200k").build_session_context())
    assert len(context.messages) == known("T200k")[1]["entries"]


def test_context_of_every_turn(benchmark, copy):
    copy.build_session_context()

    def turn():
        copy.append_message(message(1))
        return copy.build_session_context()

    context = benchmark(turn)
    assert len(context.messages) == copy.get_entry_count()


def test_path_as_rows(benchmark):
    session = opened("T200k")
    rows = benchmark(session.path_rows)
    assert rows.tolist() == list(range(known("T200k")[1]["entries"]))


def test_path_as_ids(benchmark):
    session = opened("T200k")
    ids = benchmark(lambda: list(session.path_ids()))
    assert ids[-1] == known("T200k")[1]["leaf"]
    assert len(ids) == known("T200k")[1]["entries"]


def test_every_entry(benchmark):
    session = opened("T200k")
    entries = benchmark(lambda: list(session.get_entries()))
    assert [entry["id"] for entry in entries] == list(session.path_ids())


def test_entry_by_id(benchmark):
    session = opened("T200k")
    id = known("T200k")[1]["leaf"]
    assert benchmark(session.get_entry, id)["id"] == id


@pytest.mark.parametrize("name", ["D1", "D2", "D3"])
def test_list(benchmark, monkeypatch, name):
    path, facts = known(name)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", path)
    infos = benchmark(SessionManager.list_all, None if name == "D1" else path)
    assert len(infos) == facts["sessions"]
    assert sum(info.message_count for info in infos) == facts["messages"]


def test_append(benchmark, copy):
    before = copy.get_entry_count()
    ids = []
    benchmark(lambda: ids.append(copy.append_message(message(1))))
    assert copy.get_entry_count() == before + len(ids)
    assert copy.get_leaf_id() == ids[-1]


def test_append_many(benchmark, copy):
    before, batch = copy.get_entry_count(), [message(number) for number in range(1000)]
    made = []
    benchmark(lambda: made.extend(copy.append_many(batch)))
    assert copy.get_entry_count() == before + len(made)
    assert copy.get_entry(made[-1])["message"] == batch[-1]


def test_label(benchmark, copy):
    target, numbers = copy.path_ids()[500], itertools.count()

    def label():
        text = f"label {next(numbers)}"
        copy.append_label_change(target, text)
        return text, copy.get_label(target)

    text, found = benchmark(label)
    assert text == found


def test_children(benchmark):
    session = opened("T200k")
    ids = session.path_ids()
    session.get_children(ids[0])
    assert [entry["id"] for entry in benchmark(session.get_children, ids[700])] == [ids[701]]


def test_fork(benchmark, tmp_path):
    path, facts = known("M")
    copies = []

    def fork():
        copies.append(SessionManager.fork_from(path, "/code/other", str(tmp_path), cache=False))
        return copies[-1]

    copy = benchmark(fork)
    assert (copy.get_entry_count(), copy.get_leaf_id()) == (facts["entries"], facts["leaf"])


def test_branched_session(benchmark, tmp_path):
    def start():
        session = SessionManager.open(known("M")[0], str(tmp_path), read_only=False, cache=False)
        return (session, session.get_leaf_id()), {}

    def branch(session, leaf):
        session.create_branched_session(leaf)
        return session

    session = benchmark.pedantic(branch, setup=start, rounds=5)
    assert session.build_session_context().messages == opened("M").build_session_context().messages


def test_migration(benchmark, tmp_path):
    def start():
        return (shutil.copyfile(known("V1")[0], tmp_path / "old.jsonl"),), {}

    session = benchmark.pedantic(lambda path: SessionManager.open(path, cache=False), setup=start, rounds=5)
    assert session.get_entry_count() == known("V1")[1]["entries"]
    assert session.get_header()["version"] == 3


@pytest.mark.parametrize("size", [10, 10_000])
def test_json_both_ways(benchmark, size):
    value = {"text": 'a "line"\n' * size, "numbers": [1, 2.5, -0.0, 1e21], "more": {"é": None}}
    assert benchmark(lambda: jsontext.loads(jsontext.dumps(value))) == value
