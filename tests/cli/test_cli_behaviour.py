"""How the program behaves: errors, exit codes, pipes, interrupts, colours, missing extras."""

import gc
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
from cli_sessions import user
from rich.cells import cell_len

PROGRAM = [sys.executable, "-m", "sessiontree"]
HOSTILE = [
    b"",
    b"\n\n",
    b"\x00\xff\xfe",
    b"no json\n",
    b"[1]\n",
    b'{"type":"message"}\n',
    b'{"type":"session"}\n',
    b'{"type":"session","id":5}\n',
    b'{"type":"session","id":"x","version":9,"cwd":7}\n{"a":1}\n',
    b'{"type":"session","id":"x"}\n' + b"[" * 5000 + b"]" * 5000 + b"\n",
]


def start(*arguments, **how):
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], **how)


@pytest.mark.parametrize("command", ["tree", "show", "path", "fork"])
@pytest.mark.parametrize("data", HOSTILE)
def test_no_file_gives_a_traceback(run, tmp_path, command, data):
    """Whatever a file holds, the answer is a result, or one line on stderr that names the file."""
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(data)
    done = run(command, path, "--session-dir", tmp_path / "out")
    assert done.code in (0, 1)
    assert "fault of the program" not in done.err
    if done.code == 1:
        assert len(done.err.splitlines()) == 1
        assert str(path) in done.err


@pytest.mark.parametrize("command", ["tree", "show", "path", "append", "fork"])
def test_trouble_with_files_names_them(run, tmp_path, command):
    """A missing file and a folder are one line each, with the path."""
    more = ["-m", "x"] if command == "append" else []
    for path in (tmp_path / "missing.jsonl", tmp_path):
        done = run(command, path, *more)
        assert done.code == 1
        assert len(done.err.splitlines()) == 1
        assert str(path) in done.err


def test_wrong_usage_is_two(run, branches):
    """Unknown commands, options and values are exit code 2, in one line that says where help is."""
    for arguments in (["nonsense"], ["tree", "--nonsense"], ["tree", branches, "--keep", "-1"]):
        done = run(*arguments)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert "--help" in done.err


@pytest.mark.parametrize("arguments", [[], ["branch"]])
def test_without_a_command_there_is_help(run, arguments):
    """Nothing asked for is wrong usage, and what can be asked for is shown."""
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: sessiontree")
    assert any(line.strip().startswith("list ") for line in done.err.splitlines())


def test_a_working_directory_that_is_gone(run, tmp_path, monkeypatch, branches):
    """It is named as what is missing; a session that is named otherwise can be looked at."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for arguments in (["list"], ["tree"]):
        done = run(*arguments)
        assert (done.code, "the working directory is gone" in done.err) == (1, True)
    assert run("tree", branches, "--cwd", tmp_path).code == 0


def test_help_of_every_command(run):
    """Each command explains itself."""
    from sessiontree.cli._app import COMMANDS

    for command in COMMANDS:
        done = run(command, "--help")
        assert (done.code, done.out.startswith(f"Usage: sessiontree {command} ")) == (0, True)
    assert run("--help").out.count("\n  ") >= len(COMMANDS)
    assert run("--version").out.startswith("sessiontree ")


def test_an_entry_that_is_not_there(run, branches):
    """An unknown entry is exit code 1; the beginning of several ids is 2 and lists them."""
    assert run("show", branches, "--entry", "nothere").code == 1
    done = run("show", branches, "--entry", "9")
    assert done.code == 2
    assert "902a174f" in done.err
    assert run("path", branches, "--to", "").code == 1


def test_a_reader_that_leaves_early(branches):
    """Output into a pipe that is closed ends quietly, with exit code 0."""
    for arguments in (["tree", branches, "--all"], ["show", branches], ["path", branches, "--json"]):
        program = start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        program.stdout.close()
        assert (program.wait(20), program.stderr.read()) == (0, b"")
        program.stderr.close()


def test_an_interrupt_is_130(branches):
    """Ctrl-C ends the program without a traceback, with exit code 130."""
    program = start("append", branches, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    time.sleep(1.0)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=20)
    assert (program.returncode, out, err.strip()) == (130, b"", b"")


def on_terminal(*arguments, **environment):
    """Run the program on a terminal of its own and give what it wrote."""
    mine, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment}
    program = start(*arguments, stdout=theirs, stderr=theirs, stdin=theirs, env=env)
    os.close(theirs)
    written = b""
    while select.select([mine], [], [], 20)[0]:
        try:
            piece = os.read(mine, 65536)
        except OSError:
            break
        if not piece:
            break
        written += piece
    os.close(mine)
    assert program.wait(20) == 0
    return written.decode()


def test_colours_only_where_they_are_wanted(branches, monkeypatch):
    """A terminal gets colours, unless NO_COLOR is set or it is dumb; a pipe never does."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in on_terminal("tree", branches)
    assert "\x1b" not in on_terminal("tree", branches, NO_COLOR="1")
    assert "\x1b" not in on_terminal("tree", branches, TERM="dumb")
    assert b"\x1b" not in subprocess.run([*PROGRAM, "tree", branches], capture_output=True, check=True).stdout


@pytest.mark.parametrize("command", ["tree", "path"])
def test_lines_fit_the_terminal(write, command):
    """No line is wider than the terminal, wide characters counted as two; a tree uses the room there is."""
    wide = "日本語のテキスト" * 20
    path = write(
        user("aaaaaaaa", None, wide),
        {
            "type": "label",
            "id": "very-long-" + wide,
            "parentId": "aaaaaaaa",
            "targetId": "aaaaaaaa",
            "label": wide,
        },
        {"type": "odd" + wide, "id": "cccccccc", "parentId": "aaaaaaaa"},
        user("dddddddd", "cccccccc", "plain " * 40),
    )
    lines = on_terminal(command, path, NO_COLOR="1").splitlines()
    assert 78 <= max(map(cell_len, lines)) <= 80


def test_a_terminal_without_unicode(branches):
    """Where the encoding has only letters, drawings become plain signs."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*PROGRAM, "tree", branches], capture_output=True, env=env, check=True)
    assert b"+-" in done.stdout
    assert b"< leaf" in done.stdout
    assert b"\\u25" not in done.stdout


@pytest.mark.parametrize("missing", ["click", "rich.cells"])
def test_missing_extra_is_named(missing, write):
    """Without click, or without rich where it is needed, the program says what to install."""
    path = str(write(user("aaaaaaaa", None, "日本語" * 200)))
    script = f"import sys; sys.modules['{missing}'] = None; from sessiontree.cli import main; sys.exit(main(['path', {path!r}]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "sessiontree[cli]" in done.stderr


def test_warnings_are_one_line(run, branches, monkeypatch):
    """What the library warns of is one line, without a place in the program."""
    from sessiontree import BrokenTreeWarning
    from sessiontree.cli import tree

    monkeypatch.setattr(
        tree, "draw", lambda *_: warnings.warn("a kept entry is missing", BrokenTreeWarning, stacklevel=2)
    )
    done = run("tree", branches)
    assert (done.code, done.err) == (0, "sessiontree: warning: a kept entry is missing\n")


def test_no_traceback_even_for_a_fault(run, branches, monkeypatch):
    """A fault of the program itself is one line too, unless the traceback is asked for."""
    from sessiontree.cli import tree

    def fault(*_):
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(tree, "draw", fault)
    done = run("tree", branches)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "ZeroDivisionError: boom" in done.err
    monkeypatch.setenv("SESSIONTREE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run("tree", branches)


def test_paths_are_harmless_on_a_terminal(branches, tmp_path):
    """A path is printed as it is into a pipe; on a terminal its control characters are shown."""
    odd = tmp_path / "a\x1b]0;x\x07"
    piped = subprocess.run(
        [*PROGRAM, "fork", branches, "--session-dir", odd], capture_output=True, check=True
    )
    assert os.path.exists(piped.stdout.rstrip(b"\n"))
    shown = on_terminal("fork", branches, "--session-dir", odd)
    assert "\\x1b]0;x\\x07" in shown
    assert "\x1b" not in shown


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_under_the_output_is_named(branches):
    """Output that cannot be written is one line that names it, and exit code 1."""
    for arguments in (["tree", branches], ["show", branches, "--json"], ["list", "--json"], ["--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr.decode().strip()) == (
            1,
            "sessiontree: no space left on device: 'standard output'",
        )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize(
    ("command", "more"),
    [(command, ()) for command in ("tree", "show", "path", "follow", "fork", "doctor", "shrink")]
    + [("append", ("-m", "x")), ("navigate", ("a",)), ("compact", ("--model", "openai/gpt-5-mini"))],
)
def test_what_is_no_file(run, tmp_path, command, more, monkeypatch):
    """A pipe or a device in the place of a session is said to be no regular file, and is not waited for."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path / "pipe.jsonl", "/dev/null"):
        done = run(command, path, *more)
        assert (done.code, done.err) == (1, f"sessiontree: not a regular file: {str(path)!r}\n")


def test_progress_is_shown_on_a_terminal_only(monkeypatch, capsys):
    """What takes longer than half a second has a line on stderr, cleared at the end; a pipe gets nothing."""
    from sessiontree.cli import _progress

    with _progress.progress("reading") as tell:
        tell(1, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with _progress.progress("quick") as tell:
        tell(1, 2)
    assert capsys.readouterr().err == ""
    drawn = threading.Event()
    real = _progress.line
    monkeypatch.setattr(_progress, "line", lambda *facts: (drawn.set(), real(*facts))[1])
    began = time.monotonic()
    with _progress.progress("reading") as tell:
        tell(1, 2)
        assert drawn.wait(20)
        assert time.monotonic() - began >= 0.5
        # What is drawn is written after this.
        time.sleep(0.1)
    out, err = capsys.readouterr()
    assert (out, "50 %" in err, err.endswith("\r")) == ("", True, True)
    assert err.split("\r")[-2].strip() == ""


def test_the_collector_is_on_again(run):
    """The program imports itself without the collector, and leaves what is there alone; a caller's is not touched."""
    code = (
        "import gc, sys; from sessiontree.cli import main; sys.argv[1:] = ['--version']; main(); "
        "print(gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["True", "True"]
    frozen = gc.get_freeze_count()
    assert run("--version").code == 0
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, frozen)
