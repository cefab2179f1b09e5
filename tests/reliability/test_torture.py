"""The long run itself, in short."""

from . import torture


def test_the_table_names_every_fault():
    """Each kind of injected fault has a row of its own, in words."""
    from .faulting import KINDS

    assert set(torture.MEANING) == {*KINDS, "short"}
    text = torture.shown([("a", 1000), ("b", 2)], 120, "make torture")
    assert "| a | 1,000 | 0 |" in text
    assert "`make torture`, 2 min" in text
