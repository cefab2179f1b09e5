"""Sessions out of the catalog: packed, made when they are asked for, and in their order."""

import copy
import dataclasses
import json
import pickle
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import SessionInfo
from sessiontree._native import pack_info, unpack_infos
from sessiontree.catalog import Catalog, CatalogSession, Tokens
from strategies import strings

numbers = st.integers(0, 2**63 - 1)
times = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
texts = strings()
optional = st.one_of(st.none(), texts)
infos = st.builds(
    SessionInfo,
    st.text("ab/\udcff\u00e9", min_size=1),
    texts,
    cwd=optional,
    name=optional,
    parent_session_path=optional,
    created_ms=times,
    modified_ms=st.integers(-(2**63), 2**63 - 1),
    message_count=numbers,
    first_message=optional,
    last_role=optional,
    stop_reason=optional,
    version=st.one_of(st.none(), st.floats(allow_nan=False)),
    skipped_lines=numbers,
    size=numbers,
    mtime_ns=st.integers(-(2**63), 2**63 - 1),
    cost=st.floats(allow_nan=False),
)


def write(folder, name, *, hour=0, cost=0.5, model="m"):
    stamp = f"2024-01-01T{hour:02}:00:00.000Z"
    usage = {"input": 3, "output": 2, "cacheRead": 1, "cacheWrite": 4, "cost": {"total": cost}}
    answer = {"role": "assistant", "content": "tea", "provider": "p", "model": model, "usage": usage}
    entries = (
        {"type": "session", "version": 3, "id": name, "timestamp": stamp, "cwd": "/w"},
        {"type": "message", "id": "1", "parentId": None, "timestamp": stamp, "message": answer},
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


@pytest.fixture
def filled(tmp_path):
    for hour, name in enumerate("abcde"):
        write(tmp_path / "s", name, hour=min(hour, 3))
    with Catalog(tmp_path / "catalog.db") as catalog:
        catalog.refresh([tmp_path / "s"])
        yield catalog


def ids(sessions):
    return "".join(session.info.id for session in sessions)


@given(st.lists(infos, max_size=3))
def test_packing_keeps_everything(given):
    """What is unpacked equals what was packed, whatever its texts and numbers."""
    assert unpack_infos([pack_info(info) for info in given]) == given


@given(infos, st.data())
def test_damaged_bytes_are_an_error(info, data):
    """Bytes that are cut, or longer, are a ValueError; others may say something else, and never a crash."""
    packed = pack_info(info)
    cut = data.draw(st.integers(0, len(packed) - 1))
    for wrong in (packed[:cut], packed + b"x"):
        with pytest.raises(ValueError, match="damaged"):
            unpack_infos([wrong])
    place, byte = data.draw(st.integers(0, len(packed) - 1)), data.draw(st.integers(0, 255))
    try:
        (other,) = unpack_infos([packed[:place] + bytes([byte]) + packed[place + 1 :]])
    except ValueError:
        return
    assert isinstance(other, SessionInfo)


def test_a_session_is_a_value_whether_or_not_it_was_looked_into(filled):
    """Listed sessions equal, hash, print, copy and pickle like those that are made by hand."""
    first, again = filled.sessions(), filled.sessions()
    assert first == again
    session = filled.sessions()[0]
    by_hand = CatalogSession(session.info, Tokens(3, 2, 1, 4, 0.5), ("p/m",), has_text=True)
    for other in filled.sessions()[0], pickle.loads(pickle.dumps(filled.sessions()[0])):
        assert other == by_hand
    assert hash(filled.sessions()[0]) == hash(by_hand)
    assert repr(filled.sessions()[0]) == repr(by_hand)
    assert copy.deepcopy(filled.sessions()[0]) == copy.copy(filled.sessions()[0]) == by_hand
    assert dataclasses.replace(filled.sessions()[0], has_text=False) != by_hand
    assert filled.sessions()[0].models == ("p/m",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        session.used = by_hand.used
    with pytest.raises(AttributeError, match="no attribute 'cost'"):
        _ = session.cost


def test_a_limit_gives_the_beginning_of_the_whole_list(filled):
    """However many are wanted, in either order: they are the first of all, equal times backwards by name."""
    assert ids(filled.sessions()) == "edcba"
    for limit in (0, 1, 4, 5, 6, 2**80, None):
        for reverse in (False, True):
            some = filled.sessions(limit=limit, reverse=reverse)
            assert some == filled.sessions(reverse=reverse)[:limit]


def test_cost_of_a_session_is_what_its_file_says(filled):
    """A listing out of the catalog tells the cost, as one out of the files does."""
    assert [session.info.cost for session in filled.sessions()] == [0.5] * 5


def test_a_catalog_of_another_version_is_made_anew(filled, tmp_path):
    """A file that an older or newer release has written is given up, and the sessions are read again."""
    filled.close()
    file = filled.path
    for version in (1, 99):
        with sqlite3.connect(file) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        with Catalog(tmp_path / "catalog.db") as catalog:
            assert catalog.refresh([tmp_path / "s"]).added == 5
            assert ids(catalog.sessions()) == "edcba"
            file = catalog.path


def test_damage_in_what_was_packed_is_mended(filled):
    """A row whose bytes are no session any more makes the catalog begin anew."""
    with sqlite3.connect(filled.path) as connection:
        connection.execute("UPDATE sessions SET info = substr(info, 1, 50) WHERE id = 'c'")
    connection.close()
    assert ids(filled.sessions()) == "edcba"
