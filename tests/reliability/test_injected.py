"""System calls that fail, stop short, or are the last thing a process did."""

import pytest

from . import preload
from .operations import CASES


@pytest.fixture(scope="module", autouse=True)
def available():
    try:
        preload.library()
    except preload.UnavailableError as why:
        pytest.skip(str(why))


def test_a_failed_call_changes_nothing_or_does_all():
    """Each system call of each writing operation fails once and for good; each write stops short."""
    counts = preload.run("faulting", 50)
    assert counts["write"] > 50
    assert counts["sync"] > 30
    assert counts["short"] > 300


def test_a_writer_killed_at_any_call_leaves_a_sound_session():
    """Each operation is killed before each of its system calls and in the middle of its writes."""
    counts = preload.run("killing", "calls", "short")
    assert len(counts) == len(CASES)
    assert sum(counts.values()) > 400


def test_what_was_acknowledged_survives_a_kill_at_any_time():
    """Writers that do one thing after another are killed at random times; nothing they told is lost."""
    counts = preload.run("killing", "times", 40)
    assert counts["killed-at-a-random-time"] == 40
    assert counts["acknowledged-deeds"] > 0
