"""Names and labels of sessions and entries, and completion of what is typed."""

import json
import os
import subprocess
import sys

import pytest
from cli_sessions import user
from sessiontree import SessionManager, get_default_session_dir


def test_a_label_is_set_listed_used_and_removed(run, branches):
    """A label is an appended entry; it is listed, names its entry, and can be taken off."""
    before = branches.read_bytes()
    id = run("label", branches, "902a17", "a place").out.strip()
    assert branches.read_bytes().startswith(before)
    assert SessionManager.open(branches, read_only=True).get_label("902a174f") == "a place"
    listed = run("label", branches, "--json").json
    assert {"entryId": "902a174f", "label": "a place"}.items() <= listed[-1].items()
    assert any("a place" in line and line.startswith("902a174f") for line in run("label", branches).lines)
    assert run("path", branches, "--to", "a place", "--json").json[-1]["id"] == "902a174f"
    done = run("label", branches, "a place", "--remove", "--json").json
    assert (done["targetId"], done["label"]) == ("902a174f", None)
    assert done["id"] != id
    assert SessionManager.open(branches, read_only=True).get_label("902a174f") is None
    assert run("label", branches, "902a174f", "--remove").code == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["902a174f"], 2),
        (["902a174f", "x", "--remove"], 2),
        (["902a174f", " "], 2),
        (["--remove"], 2),
        (["nothere", "x"], 1),
    ],
)
def test_a_label_refuses_nonsense(run, branches, arguments, code):
    """What cannot be meant writes nothing."""
    before = branches.read_bytes()
    done = run("label", branches, *arguments)
    assert (done.code, len(done.err.splitlines()), branches.read_bytes()) == (code, 1, before)


def test_a_name_is_set_shown_and_cleared(run, branches):
    """The name is an appended entry; without one the exit code is 1."""
    before = branches.read_bytes()
    assert run("name", branches, "two", "words\nmore").code == 0
    assert branches.read_bytes().startswith(before)
    assert run("name", branches).out == "two words more\n"
    assert run("name", branches, "--json").json == {"name": "two words more"}
    assert run("name", branches, "--clear").code == 0
    done = run("name", branches)
    assert (done.code, "no name" in done.err) == (1, True)
    assert run("name", branches, " ").code == 2
    assert run("name", branches, "x", "--clear").code == 2
    assert run("name", branches.parent / "missing.jsonl", "x").code == 1
    assert not (branches.parent / "missing.jsonl").exists()


@pytest.fixture
def named(home, write):
    """A session of the working directory."""
    folder = get_default_session_dir(str(home))
    return write(
        user("aaaaaaaa", None, "first words"), id="abc-1", cwd=home, name=f"{folder}/2026_abc-1.jsonl"
    )


def completed(words, **more):
    """What a shell is told for the last of these words."""
    env = {
        **os.environ,
        "_SESSIONTREE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
        **more,
    }
    program = [sys.executable, "-c", "import sys; from sessiontree.cli import main; sys.exit(main())"]
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [line.split(",", 1) for line in done.stdout.splitlines()]


def test_completion_knows_commands_options_and_sessions(named):
    """Commands, options, their values and the ids of sessions are completed; a path is the shell's business."""
    assert ["plain", "completion"] in completed(["sessiontree", "comp"])
    assert ["plain", "--last"] in completed(["sessiontree", "show", "--la"])
    assert ["plain", "relevance"] in completed(["sessiontree", "search", "--sort", ""])
    assert completed(["sessiontree", "tree", "ab"]) == [["plain", "abc-1"]]
    assert completed(["sessiontree", "tree", "x/"]) == [["file", "x/"]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run, shell):
    """The script of each shell asks the program for what fits."""
    done = run("completion", shell)
    assert done.code == 0
    assert "_SESSIONTREE_COMPLETE" in done.out
    assert f"{shell}_complete" in done.out
    assert run("completion", shell, "--json").json == {"shell": shell, "script": done.out.rstrip("\n")}


def test_bash_takes_its_script(named, tmp_path):
    """A real bash completes the only command that begins so, and the only session."""
    program = tmp_path / "bin" / "sessiontree"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys; from sessiontree.cli import main; sys.exit(main())\n"
    )
    program.chmod(0o755)
    script = (
        'eval "$(sessiontree completion bash)"; '
        'COMP_WORDS=(sessiontree tree a); COMP_CWORD=2; _sessiontree_completion sessiontree; echo "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("abc-1\n", "")


def test_help_texts_have_examples_a_line_each(run):
    """Examples stand below each other, as they can be typed."""
    from sessiontree.cli._app import COMMANDS

    for command in COMMANDS:
        lines = run(command, "--help").lines
        at = next((n for n, line in enumerate(lines) if line.strip() == "Examples:"), None)
        assert at is not None, command
        assert lines[at + 1].strip().startswith(("sessiontree ", "eval ")), command
        assert any(line.strip().startswith("Exit codes: ") for line in lines), command
        assert not any("\\b" in line for line in lines)


def test_json_of_a_name_without_one(run, write):
    """JSON says null where there is no name."""
    done = run("name", write(user("aaaaaaaa", None, "x")), "--json")
    assert (done.code, json.loads(done.out)) == (1, {"name": None})


@pytest.mark.parametrize(
    "command", [["label"], ["name"], ["branch", "list"], ["show", "--path"], ["path", "--last", "9"]]
)
def test_control_characters_are_shown_as_escapes(run, write, command):
    """What a session holds never acts on a terminal, whichever command shows it."""
    bad = "\x1b]0;owned\x07\x9b2J\u202egnp.exe\x7f\u2028"
    path = write(
        user("aaaaaaaa", None, f"text {bad}"),
        {
            "type": "label",
            "id": f"b{bad}",
            "parentId": "aaaaaaaa",
            "targetId": "aaaaaaaa",
            "label": f"l{bad}",
        },
        {"type": "session_info", "id": f"c{bad}", "parentId": f"b{bad}", "name": f"name {bad}"},
    )
    for form in ([], ["--json"]):
        done = (
            run(*command[:2], path, *command[2:], *form)
            if command[0] == "branch"
            else run(command[0], path, *command[1:], *form)
        )
        assert (done.code, bool(done.out)) == (0, True)
        assert not set(done.out) & set("\x1b\x07\x9b\u202e\x7f\u2028")


def test_a_session_with_hostile_names_is_listed(run, home, write):
    """A listing, in a table, in a pipe and as JSON, shows what would act on a terminal."""
    bad = "\x1b]0;owned\x07\x9b2J\u202e\t\nx"
    folder = get_default_session_dir(str(home))
    write(
        user("aaaaaaaa", None, bad),
        {"type": "session_info", "id": "n", "parentId": None, "name": bad},
        id=f"i{bad}",
        name=f"{folder}/s.jsonl",
    )
    for form in ([], ["--json"], ["--all"]):
        done = run("list", *form)
        assert (done.code, bool(done.out)) == (0, True)
        assert not set(done.out) & set("\x1b\x07\x9b\u202e")
    (line,) = run("list").lines
    assert len(line.split("\t")) == 9
