"""How a session begins, and what is asked for every new entry: the time, an id."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import Host, jsontext
from sessiontree.host import DEFAULT_HOST
from sessiontree.opening import draw_id, timestamp

YEAR_10000 = 253_402_300_800_000
NEAR = st.sampled_from([0, 999, 1000, 1_788_172_200_000, YEAR_10000, 8_640_000_000_000_000])
TIMES = st.one_of(
    st.integers(0, YEAR_10000 + 5000),
    st.builds(int.__add__, NEAR, st.integers(-1500, 0)),
    st.floats(-1e15, 1e15),
)


def read(ms):
    return timestamp(SimpleNamespace(host=Host(clock_ms=lambda: ms)))


@given(st.lists(TIMES, max_size=6))
def test_remembering_a_second_changes_no_timestamp(times):
    """Whatever the clock says, one after the other, the texts are those of `to_iso`."""
    assert [read(ms) for ms in times] == [jsontext.to_iso(ms) for ms in times]


@pytest.mark.parametrize("ms", [float("nan"), 8_640_000_000_000_001, -8_640_000_000_000_001])
def test_an_impossible_clock_is_refused(ms):
    """A time that no date has is an error also when the second before it is remembered."""
    read(8_640_000_000_000_000)
    with pytest.raises(ValueError, match="no date has the time"):
        read(ms)


def test_drawn_ids_are_eight_hex_digits_and_none_that_is_taken():
    """The short way of drawing gives ids like any other, and asks whether they are taken."""
    asked = []
    drawn = draw_id(DEFAULT_HOST, lambda drawn: not asked.append(drawn) and len(asked) < 3)
    assert drawn == asked[2]
    assert len(set(asked)) == 3
    assert all(len(id) == 8 and int(id, 16) >= 0 for id in asked)


def test_a_host_of_ones_own_draws_the_ids():
    """With an own source of UUIDs, ids are what that gives, and after 100 taken ones a whole UUID."""
    host = Host(uuid4=lambda: "12345678-rest")
    assert draw_id(host, lambda _: False) == "12345678"
    assert draw_id(host, lambda _: True) == "12345678-rest"
