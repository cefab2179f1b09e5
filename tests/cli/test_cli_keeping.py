"""Commands that look after sessions: branches taken out, projects renamed, caches."""

import json
import os
import pty
import subprocess
import sys

import pytest
from cli_sessions import user
from sessiontree import SessionManager, get_default_session_dir

PROGRAM = [sys.executable, "-m", "sessiontree"]


@pytest.fixture
def forked(write):
    """A session with a branch x-y beside the one that it stands on, a-b-c."""
    return write(
        user("a", None, "root"),
        user("x", "a", "side", 2),
        user("b", "a", "main", 3),
        user("y", "x", "side end", 4),
        user("c", "b", "main end", 5),
    )


def test_branches_are_listed(run, forked):
    """Each branch has a line with its first and last entry; the current one is marked."""
    rows = run("branch", "list", forked, "--json").json
    assert [(row["head"], row["leaf"], row["parent"], row["current"]) for row in rows] == [
        ("x", "y", "a", False),
        ("b", "c", "a", True),
    ]
    lines = run("branch", "list", forked).lines
    assert lines[1].split()[:5] == ["○", "x", "y", "2", "a"]
    assert lines[2].startswith("◉")
    assert "main end" in lines[2]


def test_a_branch_goes_and_comes_back(run, forked):
    """It is shown first, taken out, listed as archived, and put back byte for byte."""
    before = forked.read_bytes()
    plan = run("branch", "delete", forked, "y", "--dry-run")
    assert (plan.code, plan.lines[0].startswith("2 entries, ")) == (0, True)
    assert run("branch", "delete", forked, "y", "--dry-run", "--json").json["leaf"] == "c"
    assert forked.read_bytes() == before
    done = run("branch", "delete", forked, "y", "--yes", "--json").json
    assert (done["head"], done["entries"], os.path.exists(done["archive"])) == ("x", 2, True)
    assert len(SessionManager.open(forked, read_only=True).get_entries()) == 3
    rows = run("branch", "list", forked, "--json").json
    assert [row["archive"] for row in rows] == [None, done["archive"]]
    assert "archived" in run("branch", "list", forked).lines[-1]
    again = run("branch", "restore", forked)
    assert (again.code, "2 entries put back" in again.out) == (0, True)
    assert forked.read_bytes() == before
    assert not os.path.exists(done["archive"])


def test_a_label_names_a_branch(run, forked):
    """Any name of an entry will do."""
    run("label", forked, "y", "dead end")
    assert run("branch", "delete", forked, "dead end", "--yes").code == 0
    assert run("branch", "restore", forked, "x", "--keep", "--json").json["restored"] == 2
    assert run("branch", "restore", forked, "x", "--json").json["restored"] == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["delete", "y"], 2),
        (["delete", "y", "--json"], 2),
        (["delete", "nothere", "--yes"], 1),
        (["delete", "c", "--yes"], 1),
        (["delete", "a", "--yes"], 1),
        (["restore"], 1),
        (["restore", "x"], 1),
        (["nonsense"], 2),
    ],
)
def test_what_is_refused(run, forked, arguments, code):
    """Nobody to answer, nothing there, the branch it stands on, what branches share: a line, and no change."""
    before = forked.read_bytes()
    done = run("branch", arguments[0], forked, *arguments[1:])
    assert (done.code, len(done.err.splitlines()), forked.read_bytes()) == (code, 1, before)


def test_several_archives_must_be_told_apart(run, write):
    """Which of two is put back has to be said."""
    path = write(user("a", None, "r"), user("x", "a", "1"), user("y", "a", "2"), user("b", "a", "3"))
    for id in ("x", "y"):
        run("branch", "delete", path, id, "--yes")
    assert run("branch", "restore", path).code == 2
    assert run("branch", "restore", path, "y").code == 0
    assert run("branch", "restore", path).code == 0


def answered(answer, *arguments):
    """Run the program on a terminal of its own and type an answer."""
    mine, theirs = pty.openpty()
    program = subprocess.Popen([*PROGRAM, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(mine, answer)
    written = b""
    try:
        while piece := os.read(mine, 4096):
            written += piece
    except OSError:
        pass
    os.close(mine)
    return program.wait(20), written.decode()


def test_it_asks_on_a_terminal(forked):
    """The plan is shown; a no changes nothing, a yes does it."""
    before = forked.read_bytes()
    code, text = answered(b"n\n", "branch", "delete", forked, "y")
    assert (code, "go into an archive" in text, forked.read_bytes()) == (1, True, before)
    code, _ = answered(b"y\n", "branch", "delete", forked, "y")
    assert (code, len(forked.read_bytes()) < len(before)) == (0, True)


def test_a_project_is_renamed(run, home, write):
    """A dry run says what would be done; then the sessions are listed under the new name."""
    new = home.parent / "renamed"
    path = write(
        user("a", None, "x"), cwd=home, id="one", name=f"{get_default_session_dir(str(home))}/2026_one.jsonl"
    )
    assert run("move", home, new).code == 1
    os.mkdir(new)
    plan = run("move", home, new, "--dry-run")
    assert (plan.code, str(path) in plan.out, "1 session would be moved" in plan.out) == (0, True, True)
    assert path.exists()
    (done,) = [json.loads(line) for line in run("move", home, new, "--json").lines]
    assert (done["source"], done["cwd"]) == (str(path), str(new))
    assert [info["id"] for info in run("list", "--cwd", new, "--json").json] == ["one"]
    assert run("list", "--json").json == []
    assert run("move", home, new).code == 1
    assert run("move", new, new).code == 2


def test_a_move_that_is_in_the_way(run, home, write):
    """What would be overwritten is named, and nothing is moved."""
    old, new = str(home), str(home.parent / "renamed")
    os.mkdir(new)
    path = write(user("a", None, "x"), cwd=old, id="one", name=f"{get_default_session_dir(old)}/s.jsonl")
    taken = write(user("a", None, "y"), cwd=new, id="two", name=f"{get_default_session_dir(new)}/s.jsonl")
    before = taken.read_bytes()
    done = run("move", old, new)
    assert (done.code, str(taken) in done.err, path.exists(), taken.read_bytes()) == (1, True, True, before)


def test_the_cache_is_looked_after(run, home, write, tmp_path):
    """It says what is kept; clearing it removes ours alone, and places only if they are named."""
    cache = tmp_path / "cache"
    path = write(
        user("a", None, "green tea"), user("b", "a", "x"), cwd=home,
        name=f"{get_default_session_dir(str(home))}/2026_one.jsonl",
    )  # fmt: skip
    os.utime(path, (1, 1))
    run("search", "tea")
    run("navigate", path, "a")
    (cache / "notes.txt").write_text("mine")
    kinds = run("cache", "--json").json["kinds"]
    assert kinds["catalog"]["files"] >= 1
    assert kinds["leaves"]["files"] == 1
    assert str(cache) in run("cache").out
    assert run("cache", "clear").code == 0
    assert sorted(os.listdir(cache)) == ["leaves", "notes.txt"]
    assert len(os.listdir(cache / "leaves")) == 1
    assert run("cache", "clear", "leaves").code == 0
    assert os.listdir(cache / "leaves") == []
    assert run("cache", "info", "leaves").code == 2
    assert run("cache", "clear", "everything").code == 2
