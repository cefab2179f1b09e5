"""Paths, trees and ancestors of the native index, against walks over plain dicts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import SessionManager
from sessiontree._native import Store
from sessiontree.exceptions import CorruptSessionError, EntryNotFoundError

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/code"}
MISSING = object()


def store_of(entries):
    return Store.memory(b"".join(json.dumps(entry).encode() + b"\n" for entry in [HEADER, *entries]))


def memory(entries):
    return SessionManager.in_memory("/code", entries=[HEADER, *entries])


def time(second):
    return f"2024-01-01T00:00:{second:02}.000Z"


IDS = st.sampled_from(["a", "b", "c", "00000001", "00000002", "äöü", "", 1, 2, True, None])
TIMES = st.sampled_from([time(1), time(2), time(3), "bad", None])
ENTRIES = st.fixed_dictionaries(
    {"type": st.just("x")}, optional={"id": IDS, "parentId": IDS, "timestamp": TIMES}
)
FORESTS = st.lists(ENTRIES, min_size=1, max_size=14)


class Twin:
    """The same questions, answered the slow way."""

    def __init__(self, entries):
        self.entries = entries
        self.rows = range(len(entries))
        self.by_id = {self.key(entry.get("id", MISSING)): row for row, entry in enumerate(entries)}

    @staticmethod
    def key(value):
        """1 and true are two ids."""
        return type(value).__name__, value

    def parent(self, row):
        parent = self.entries[row].get("parentId")
        return self.by_id.get(self.key(parent)) if parent else None

    def path(self, row):
        path = [row]
        while (row := self.parent(path[-1])) is not None:
            if row in path:
                return path[::-1], True
            path.append(row)
        return path[::-1], False


@given(FORESTS)
def test_walks_are_those_of_the_twin(entries):
    """Paths, depths, descents, subtrees and leaves are what parent ids say, however broken they are."""
    store, twin = store_of(entries), Twin(entries)
    paths = {row: twin.path(row) for row in twin.rows}
    for row in twin.rows:
        path, cyclic = paths[row]
        got, flag = store.path_until_cycle(row)
        assert (got.tolist(), flag) == (path, cyclic)
        if cyclic:
            with pytest.raises(CorruptSessionError):
                store.depth(row)
        else:
            assert store.path_rows(row).tolist() == path
            assert store.depth(row) == len(path)
        assert store.subtree(row).tolist() == [r for r in twin.rows if row in paths[r][0]]
        for above in twin.rows:
            behind = store.descent(above, row)
            assert store.on_path(above, row) == (above in path)
            expected = path[path.index(above) + 1 :] if above in path else None
            assert (behind if behind is None else behind.tolist()) == expected
    parents = {twin.parent(row) for row in twin.rows}
    assert store.leaves().tolist() == [row for row in twin.rows if row not in parents]


@given(FORESTS)
def test_common_ancestor_is_the_last_shared_row(entries):
    """It is the deepest row on both paths; a cycle is an error that names its ids."""
    store, twin = store_of(entries), Twin(entries)
    for a in twin.rows:
        for b in twin.rows:
            (one, broken), (two, broken_too) = twin.path(a), twin.path(b)
            if a != b and (broken or broken_too):
                with pytest.raises(CorruptSessionError) as caught:
                    store.common_ancestor(a, b)
                assert caught.value.ids
            elif a != b:
                shared = [x for x, y in zip(one, two, strict=False) if x == y]
                assert store.common_ancestor(a, b) == (shared[-1] if shared else None)


@given(FORESTS)
def test_tree_shows_each_line_once(entries):
    """From the roots down every entry is there once, also where ids stand twice or parents form cycles."""
    session = memory(entries)
    open_nodes = list(session.get_tree())
    shown = []
    while open_nodes:
        node = open_nodes.pop()
        shown.append(node.row)
        open_nodes += node.children
    assert sorted(shown) == list(range(len(entries)))


def tree(session):
    """Ids as nested lists."""

    def ids(nodes):
        return [[node.id, *ids(node.children)] for node in nodes]

    return ids(session.get_tree())


def test_siblings_are_sorted_by_time():
    """Children are sorted by time as JavaScript reads it, in file order where equal, without a time last."""
    times = [time(30), "bad", time(10), 0, "2024-01-01T00:00:20Z", None, time(10), "Jan 1 2024 00:00:05 UTC"]
    children = [
        {"type": "x", "id": f"k{n}", "parentId": "r", "timestamp": stamp} for n, stamp in enumerate(times)
    ]
    session = memory(
        [{"type": "x", "id": "r", "parentId": None}, *children, {"type": "x", "id": "k8", "parentId": "r"}]
    )
    order = ["k3", "k5", "k7", "k2", "k6", "k4", "k0", "k1", "k8"]
    assert tree(session) == [["r", *([id] for id in order)]]


@pytest.mark.parametrize(
    ("parents", "shown"),
    [
        ({"a": "b", "b": "a", "c": "a"}, [["a", ["b"], ["c"]]]),
        ({"a": "a", "b": "a"}, [["a", ["b"]]]),
        ({"b": "a", "c": "b", "a": "c", "d": "a"}, [["b", ["c", ["a", ["d"]]]]]),
        ({"a": "gone", "b": None, "c": False}, [["a"], ["b"], ["c"]]),
        ({"u1": "", "a1": "u1", "": "a1", "u2": ""}, [["u1", ["a1", ["", ["u2"]]]]]),
    ],
)
def test_tree_of_broken_parents(parents, shown):
    """A cycle's first entry is a root, and so is what hangs on itself, on nothing or on an unknown id."""
    assert (
        tree(memory([{"type": "x", "id": id, "parentId": parent} for id, parent in parents.items()])) == shown
    )


def test_tree_of_a_line_that_stands_twice():
    """Of two lines with one id both are shown, and the last one has the children."""
    lines = [("u", None), ("a", "u"), ("a", "u"), ("b", "a")]
    session = memory([{"type": "x", "id": id, "parentId": parent} for id, parent in lines])
    assert tree(session) == [["u", ["a"], ["a", ["b"]]]]


def test_epoch_stays_while_entries_are_added():
    """The epoch changes when older entries get other ancestors, and only then."""
    store = store_of([{"id": "a"}, {"id": "b", "parentId": "a"}, {"id": "c", "parentId": "late"}])
    epoch = store.epoch()
    store.append(b'{"id":"d","parentId":"b"}\n')
    assert store.epoch() == epoch
    store.append(b'{"id":"late"}\n')
    assert store.epoch() != epoch
    epoch = store.epoch()
    store.append(b'{"id":"a"}\n')
    assert store.epoch() != epoch
    assert store_of([]).epoch() != store_of([]).epoch()


def test_rows_that_do_not_exist_are_an_error():
    """Every walk refuses a row behind the last one with IndexError."""
    store = store_of([{"id": "a"}])
    walks = [
        store.path_rows,
        store.path_until_cycle,
        store.depth,
        store.subtree,
        store.tree_children,
        store.landmarks,
    ]
    for walk in walks:
        with pytest.raises(IndexError):
            walk(1)
    for call in (
        lambda: store.common_ancestor(0, 1),
        lambda: store.on_path(1, 0),
        lambda: store.descent(0, 1),
        lambda: store.context_rows(0, 1, None),
        lambda: store.context_rows(0, 0, 1),
    ):
        with pytest.raises(IndexError):
            call()


@pytest.fixture(scope="module")
def long_session(tmp_path_factory):
    """A chain of a million entries."""
    path = tmp_path_factory.mktemp("walks") / "long.jsonl"
    with path.open("w") as file:
        file.write(json.dumps(HEADER) + "\n")
        parent = "null"
        for n in range(1_000_000):
            file.write(f'{{"type":"x","id":"{n:08x}","parentId":{parent}}}\n')
            parent = f'"{n:08x}"'
    return path


@pytest.mark.slow
def test_a_million_entries(long_session):
    """A chain of a million entries is walked without recursion, and its tree is lazy."""
    with SessionManager.open(long_session, read_only=True) as session:
        branch = session.get_branch()
        assert (len(branch), branch[-1]["id"]) == (1_000_000, f"{999_999:08x}")
        assert session.common_ancestor(f"{5:08x}", f"{999_999:08x}") == f"{5:08x}"
        (root,) = session.get_tree()
        (child,) = root.children
        assert child.id == f"{1:08x}"


def test_unknown_ids_of_common_ancestor():
    """An id that no entry has is an error, not an empty answer."""
    session = memory([{"type": "x", "id": "a", "parentId": None}])
    with pytest.raises(EntryNotFoundError):
        session.common_ancestor("a", "gone")
