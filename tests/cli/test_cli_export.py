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
    """An ending that names no format is wrong usage, told in one line, and nothing is written."""
    done = run("export", branches, "-o", tmp_path / "out.txt")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "--format" in done.err
    assert not (tmp_path / "out.txt").exists()
    assert run("export", branches).code == 2
    assert run("export", branches, "-o", tmp_path / "out.txt", "--format", "markdown").code == 0


def test_export_makes_no_folder(run, branches, tmp_path):
    """A folder that does not exist is one line, and does not exist afterwards."""
    done = run("export", branches, "-o", tmp_path / "nope" / "out.jsonl")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "nope" in done.err
    assert not (tmp_path / "nope").exists()


@pytest.mark.parametrize("ending", ["html", "md", "jsonl"])
def test_own_patterns_are_taken_out_of_every_format(run, branches, tmp_path, ending):
    """--redact-pattern works alone and repeated; an expression that is none is wrong usage."""
    pytest.importorskip("detect_secrets")
    output = tmp_path / f"out.{ending}"
    options = ("--redact-pattern", r"(?i)release", "--redact-pattern", "csv[a-z]+")
    assert run("export", branches, "-o", output, *options).code == 0
    text = output.read_text("utf-8").lower()
    assert "release" not in text
    assert "csvtail" not in text.replace("csvtail-branches", "")
    assert "[redacted: own pattern]" in text
    done = run("export", branches, "-o", tmp_path / "no.md", "--redact-pattern", "(")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert not (tmp_path / "no.md").exists()


def test_a_pattern_that_takes_for_ever_ends_the_export(run, write, tmp_path, monkeypatch):
    """It is one line that names the pattern, exit code 1, and nothing is written."""
    pytest.importorskip("detect_secrets")
    monkeypatch.setattr("sessiontree.export.patterns.SECONDS", 0.3)
    message = {"role": "user", "content": "a" * 60 + "!"}
    path = write({"type": "message", "id": "a", "parentId": None, "message": message})
    done = run("export", path, "-o", tmp_path / "out.md", "--redact-pattern", "(a|aa)+$")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "'(a|aa)+$' takes longer than" in done.err
    assert not (tmp_path / "out.md").exists()


def test_a_folder_is_no_file_to_write(run, branches, tmp_path):
    """A folder, the name of standard output and an empty name are wrong usage, in a line."""
    for output, said in ((tmp_path, "is a folder"), ("-", "'-' names none"), ("", "names no format")):
        done = run("export", branches, "-o", output)
        assert (done.code, len(done.err.splitlines()), said in done.err) == (2, 1, True)
    assert run("export", branches, "-o", tmp_path, "--format", "markdown").code == 2


def test_what_cannot_be_written_is_told_before_the_work(run, branches, tmp_path, monkeypatch):
    """A file that exists, and a folder that does not, are found before an entry is read; from Python, too."""
    from sessiontree import export

    monkeypatch.setattr(export, "parts", None)
    taken = tmp_path / "taken.md"
    taken.write_text("mine")
    for output, wrong in ((taken, FileExistsError), (tmp_path / "no" / "x.md", FileNotFoundError),
                          (tmp_path, IsADirectoryError), (taken / "x.md", FileNotFoundError)):  # fmt: skip
        with SessionManager.open(branches, read_only=True) as session, pytest.raises(wrong):
            export.export_session(session, output, format="markdown")
        assert run("export", branches, "-o", output, "--format", "markdown").code in (1, 2)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name == "no") == []
