"""The command that writes a session for people."""

import pytest
from sessiontree import SessionManager


@pytest.mark.parametrize("ending", ["html", "md", "jsonl"])
def test_export_writes_a_file(run, branches, tmp_path, ending):
    """The file's ending decides the format; a file that exists is left alone."""
    if ending == "html":
        pytest.importorskip("markdown_it")
        pytest.importorskip("pygments")
    before = branches.read_bytes()
    output = tmp_path / f"out.{ending}"
    done = run("export", branches, "-o", output)
    assert (done.code, done.out) == (0, f"{output}\n"), done.err
    text = output.read_text("utf-8")
    assert "which release should this go into" in text.lower()
    assert branches.read_bytes() == before
    again = run("export", branches, "-o", output)
    assert (again.code, len(again.err.splitlines())) == (1, 1)
    assert output.read_text("utf-8") == text


def test_export_of_another_branch(run, branches, tmp_path):
    """--at writes the branch to that entry, as a session file that opens."""
    output = tmp_path / "branch.jsonl"
    assert run("export", branches, "-o", output, "--at", "902a17").code == 0
    old, new = SessionManager.open(branches, read_only=True), SessionManager.open(output, read_only=True)
    assert list(new.path_ids()) == list(old.path_ids("902a174f"))


def test_export_needs_a_known_ending(run, branches, tmp_path):
    """An ending that names no format is one line, and nothing is written."""
    done = run("export", branches, "-o", tmp_path / "out.txt")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert not (tmp_path / "out.txt").exists()
    assert run("export", branches).code == 2
