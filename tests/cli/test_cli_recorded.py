"""The reading commands on every session file of the recorded scenarios, odd ones among them."""

from pathlib import Path

import pytest
from sessiontree.cli._text import safe

CASES = sorted((Path(__file__).parents[1] / "conformance" / "cases").glob("*.jsonl"))


@pytest.mark.parametrize(
    "arguments",
    [["tree", "--all"], ["tree", "--json"], ["show"], ["show", "--json"], ["path"], ["path", "--json"]],
)
def test_every_recorded_file(run, arguments):
    """Each file gives a result or one line of error, never a fault of the program nor a control character."""
    assert len(CASES) > 150
    for path in CASES:
        done = run(arguments[0], path, *arguments[1:])
        assert done.code in (0, 1), path
        assert "fault of the program" not in done.err, (path, done.err)
        assert done.code == 0 or len(done.err.splitlines()) == 1, (path, done.err)
        assert safe(done.out) == done.out, path
