"""The garbage collector is off only while somebody wants it off."""

import gc
import os
import threading

import pytest
from sessiontree._collector import Paused


@pytest.fixture(autouse=True)
def _on():
    assert gc.isenabled()
    yield
    gc.enable()


def test_it_comes_back_after_errors_and_within_each_other():
    """The outermost one restores the collector, also when an error passes through."""

    def fails():
        with Paused():
            with Paused():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert gc.isenabled()


def test_off_stays_off():
    """A collector that was off before is off afterwards."""
    gc.disable()
    with Paused():
        pass
    assert not gc.isenabled()


def test_the_last_of_several_threads_restores_it():
    """Whoever comes first or goes first, the collector is off until all are done."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with Paused():
            inside.set()
            leave.wait(10)

    with Paused():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_threads_it_lacks():
    """In a process forked meanwhile the collector is on at once, and can be paused again."""
    with Paused():
        pid = os.fork()
        if pid == 0:
            was_on = gc.isenabled()
            with Paused():
                is_off = not gc.isenabled()
            os._exit(0 if was_on and is_off and gc.isenabled() else 1)
    assert os.waitpid(pid, 0)[1] == 0
