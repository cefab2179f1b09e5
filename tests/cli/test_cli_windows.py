"""Parts of a session: windows by number, entry and time, and following what is written."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from cli_sessions import user
from sessiontree import SessionManager

PROGRAM = [sys.executable, "-m", "sessiontree"]


@pytest.fixture
def long(write):
    """Thirty messages in a chain, a second apart."""
    return write(*[user(f"e{n:02}", f"e{n - 1:02}" if n else None, f"text {n}", n) for n in range(30)])


def texts(done):
    return [message["content"] for message in done.json["messages"]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], range(30)),
        (["--first", "3"], range(3)),
        (["--last", "3"], range(27, 30)),
        (["--last", "3", "--skip", "4"], range(23, 26)),
        (["--first", "3", "--skip", "28"], range(28, 30)),
        (["--last", "3", "--skip", "99"], range(0)),
        (["--from", "e10", "--to", "e12"], range(10, 13)),
        (["--from", "e28"], range(28, 30)),
        (["--from", "e10", "--first", "2"], range(10, 12)),
        (["--since", "2026-01-01T00:00:27Z"], range(27, 30)),
        (["--until", "2026-01-01T00:00:02Z"], range(2)),
        (["--since", "2026-01-01T00:00:05Z", "--until", "2026-01-01T00:00:07Z"], range(5, 7)),
        (["--at", "e05", "--last", "2"], range(4, 6)),
    ],
)
def test_windows(run, long, arguments, expected):
    """A window is the same part in every form: of the context, as text, of the path, as stored entries."""
    wanted = [f"text {n}" for n in expected]
    assert texts(run("show", long, "--json", *arguments)) == wanted
    shown = [line for line in run("show", long, *arguments).lines if line.startswith("text ")]
    assert shown == wanted
    entries = [json.loads(line) for line in run("show", long, "--path", "--json", *arguments).lines]
    assert [entry["message"]["content"] for entry in entries] == wanted
    if "--at" not in arguments:
        assert [e["message"]["content"] for e in run("path", long, "--json", *arguments).json] == wanted


def test_a_window_says_what_it_is_of(run, long):
    """The last line says which part is shown; the JSON has it as numbers."""
    assert run("show", long, "--last", "3").lines[-1].startswith("messages 28 to 30 of 30, ")
    part = run("show", long, "--first", "2", "--skip", "5", "--json").json
    assert (part["first"], part["total"]) == (5, 30)
    assert run("show", long, "--since", "2030-01-01").lines[-1].startswith("none of 30 messages")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--first", "1", "--last", "1"], 2),
        (["--skip", "1"], 2),
        (["--first", "0"], 2),
        (["--since", "soon"], 2),
        (["--from", "nothere"], 1),
        (["--entry", "e01", "--last", "1"], 2),
    ],
)
def test_windows_that_cannot_be(run, long, arguments, code):
    """What contradicts itself is wrong usage; what is not there is not found."""
    done = run("show", long, *arguments)
    assert (done.code, len(done.err.splitlines())) == (code, 1)


def test_an_entry_outside_of_what_is_shown(run, branches):
    """A window that begins at an entry of another branch, or one that was compacted, says so."""
    done = run("show", branches, "--from", "902a174f")
    assert (done.code, "not among those that are shown" in done.err) == (1, True)


def test_show_gives_what_the_manager_builds(run, branches, write):
    """Read piece by piece, a context is what the manager builds: with compactions, edits and odd entries."""
    edited = write(
        user("a", None, "one"),
        user("b", "a", "two"),
        {"type": "context_edit", "id": "c", "parentId": "b", "targetId": "a", "replacement": None},
        {
            "type": "context_edit",
            "id": "d",
            "parentId": "c",
            "targetId": "b",
            "replacement": {"content": "x"},
        },
        {
            "type": "compaction",
            "id": "k",
            "parentId": "d",
            "summary": "s",
            "timestamp": "2026-01-01",
            "firstKeptEntryId": "b",
        },
        {
            "type": "compaction",
            "id": "l",
            "parentId": "k",
            "summary": "t",
            "timestamp": "2026-01-01",
            "firstKeptEntryId": "b",
        },
        {"type": "message", "id": "m", "parentId": "l", "message": None},
        {"type": "thinking_level_change", "id": "t", "parentId": "m", "thinkingLevel": "low"},
        user("e", "t", "three"),
        name="edited.jsonl",
    )
    for path in (branches, edited):
        context = SessionManager.open(path, read_only=True).build_session_context()
        shown = run("show", path, "--json").json
        assert shown == {
            "messages": context.messages,
            "thinkingLevel": context.thinking_level,
            "model": context.model,
        }


def test_skipped_lines_are_told(run, write):
    """What a command leaves out because it is no entry is told on stderr, with its place."""
    path = write(user("a", None, "one"), "no json", user("b", "a", "two"), tail="{torn")
    for command in ("show", "path", "tree"):
        done = run(command, path)
        told = done.out if command == "tree" else done.err
        assert (done.code, "(line 3, byte " in told, "torn" in told) == (0, True, True)


@pytest.fixture
def follow(long):
    """Start following a session in a process of its own, and end it by Ctrl-C."""
    programs = []

    def follow(*arguments):
        program = subprocess.Popen(
            [*PROGRAM, "follow", str(long), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Whoever waits for a line in vain gets an end of file.
        timer = threading.Timer(60, program.kill)
        timer.start()
        programs.append((program, timer))
        return program

    yield follow
    for program, timer in programs:
        timer.cancel()
        program.kill()
        program.communicate()


def test_follow_shows_what_is_written(follow, long):
    """The last entries come at once, new ones when they are whole, whoever writes; Ctrl-C ends it quietly."""
    program = follow("--json", "-n", "2")
    first = [json.loads(program.stdout.readline())["id"] for _ in range(2)]
    assert first == ["e28", "e29"]
    id = SessionManager.open(long).append_message({"role": "user", "content": "new", "timestamp": 1})
    assert json.loads(program.stdout.readline())["id"] == id
    with open(long, "a") as file:
        text = json.dumps(user("zz", id, "in two parts"))
        file.write(text[:30])
        file.flush()
        time.sleep(0.6)
        file.write(text[30:] + "\n")
    assert json.loads(program.stdout.readline())["message"]["content"] == "in two parts"
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=20)
    assert (program.returncode, out, err.strip()) == (130, "", "")


def test_follow_survives_a_replaced_file(follow, long):
    """A repair or migration puts another file there: what follows is still shown."""
    program = follow("-n", "1", "--json")
    assert json.loads(program.stdout.readline())["id"] == "e29"
    copy = long.with_suffix(".new")
    copy.write_bytes(long.read_bytes() + json.dumps(user("zz", "e29", "after")).encode() + b"\n")
    os.replace(copy, long)
    assert json.loads(program.stdout.readline())["id"] == "zz"


def test_follow_ends_with_its_reader(follow):
    """Where nobody reads any more, following ends, though nothing is written."""
    program = follow("-n", "1")
    program.stdout.readline()
    program.stdout.close()
    assert program.wait(20) == 0
    assert program.stderr.read() == ""
