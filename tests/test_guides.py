"""The examples of the migration guides run, one after the other."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["from-pi.md", "from-python-ports.md"])
def test_the_examples_of_a_guide_run(name, tmp_path):
    """Every Python block of the page runs, with what the blocks before it have made."""
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 3
    names = {"folder": tmp_path}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(DOCS / name), "exec"), names)


def test_every_method_the_guides_name_exists():
    """The names in the right-hand columns are names of SessionManager or of the package."""
    import sessiontree

    for name in ("from-pi.md", "from-python-ports.md"):
        text = (DOCS / name).read_text(encoding="utf-8")
        for method in re.findall(r"`SessionManager\.([a-z_]+)\(", text):
            assert hasattr(sessiontree.SessionManager, method), (name, method)
