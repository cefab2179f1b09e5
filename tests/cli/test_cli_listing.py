"""The list command, and which session an argument means."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from cli_sessions import SAMPLES, user
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import get_default_session_dir
from sessiontree._native import KeptFiles, Looking
from sessiontree.cli._text import _words
from sessiontree.cli.listing import _unique_length


@pytest.fixture
def sessions(home, write):
    """Three sessions of the working directory and one of another; the last written is the newest."""

    def place(id, text, cwd, second):
        folder = get_default_session_dir(str(cwd))
        path = write(user("aaaaaaaa", None, text, second), id=id, cwd=cwd, name=f"{folder}/2026_{id}.jsonl")
        os.utime(path, (1767225600 + second, 1767225600 + second))
        return path

    return {
        "abc-1": place("abc-1", "first", home, 1),
        "abc-2": place("abc-2", "second", home, 2),
        "xyz": place("xyz", "third", home, 3),
        "far": place("far", "elsewhere", "/elsewhere", 4),
    }


def test_list_shows_this_directory(run, sessions):
    """Newest first, only those of the working directory; --all has the others too."""
    assert [info["id"] for info in run("list", "--json").json] == ["xyz", "abc-2", "abc-1"]
    assert [info["id"] for info in run("list", "--json", "--all").json] == ["far", "xyz", "abc-2", "abc-1"]
    assert [info["id"] for info in run("list", "--json", "--cwd", "/elsewhere").json] == ["far"]
    assert [info["id"] for info in run("list", "--json", "-n", "2").json] == ["xyz", "abc-2"]


def test_list_says_what_matters(run, sessions, home):
    """A listing has the facts of a session as JSON, and the most of it as a line."""
    info = run("list", "--json").json[0]
    assert info == {
        "path": str(sessions["xyz"]),
        "id": "xyz",
        "cwd": str(home),
        "name": None,
        "parentSession": None,
        "created": "2026-01-01T00:00:00.000Z",
        "modified": "2026-01-01T00:00:03.000Z",
        "messageCount": 1,
        "firstMessage": "third",
        "size": sessions["xyz"].stat().st_size,
        "cost": 0,
        "version": 3,
        "lastRole": "user",
        "stopReason": None,
        "skippedLines": 0,
    }
    line = run("list").lines[0].split("\t")
    assert (line[0], *line[2:]) == (
        "xyz",
        "1",
        str(sessions["xyz"].stat().st_size),
        "0.0000",
        "waiting",
        str(home),
        "",
        "third",
    )


def test_an_empty_list(run, home):
    """No sessions are no error: an empty list, and a word about it on stderr."""
    done = run("list")
    assert (done.code, done.out) == (0, "")
    assert f"no sessions of {home} yet" in done.err
    assert run("list", "--json").json == []


def test_a_named_folder_without_sessions_of_the_directory(run, sessions, tmp_path):
    """It is told apart whether the folder holds none, or only those of other directories."""
    folder = sessions["xyz"].parent
    done = run("list", "--session-dir", str(folder), "--cwd", str(tmp_path))
    text = f"no sessions of {tmp_path} in {folder}; --all lists those of other directories"
    assert (done.code, done.out, text in done.err) == (0, "", True)
    empty = tmp_path / "empty"
    empty.mkdir()
    for options, whose in (((), tmp_path), (("--all",), "any directory")):
        done = run("list", "--session-dir", str(empty), "--cwd", str(tmp_path), *options)
        assert (done.code, done.err) == (0, f"sessiontree: no sessions of {whose} in {empty}\n")


def test_what_cannot_be_read_is_told(run, sessions):
    """A file that is no session leaves the others in the list, is named on stderr, and makes the code 1."""
    bad = sessions["xyz"].with_name("bad.jsonl")
    bad.write_text("no session\n")
    done = run("list", "--json")
    assert (done.code, len(done.json)) == (1, 3)
    assert done.err.count(str(bad)) == 1
    assert len(done.err.splitlines()) == 1


def test_a_folder_that_cannot_be_read_is_told(run, home, sessions):
    """A folder that is none, and one that may not be read, are lines on stderr; the rest is listed."""
    agent = home.parent / "agent"
    if os.geteuid():
        (agent / "sessions" / "--closed--").mkdir(mode=0)
        done = run("list", "--all", "--json")
        assert (done.code, len(done.json), "--closed--" in done.err) == (1, 4, True)
    os.rename(agent / "sessions", agent / "old")
    (agent / "sessions").write_text("a file")
    for arguments in (["list"], ["list", "--all"]):
        done = run(*arguments)
        assert (done.code, "not a directory" in done.err) == (1, True)


def ids(done):
    return [info["id"] for info in done.json]


def test_lists_are_sorted_and_filtered(run, sessions, write, home):
    """By what is asked for, the other way round, by project and by time."""
    assert ids(run("list", "--json", "--reverse")) == ["abc-1", "abc-2", "xyz"]
    run("name", sessions["abc-2"], "zeta")
    run("name", sessions["xyz"], "Alpha")
    assert ids(run("list", "--json", "--sort", "name")) == ["abc-1", "xyz", "abc-2"]
    assert ids(run("list", "--json", "--sort", "size"))[-1] == "abc-1"
    assert ids(run("list", "--json", "--sort", "project", "--all"))[0] == "far"
    assert ids(run("list", "--json", "--project", "/elsewhere")) == ["far"]
    assert ids(run("list", "--json", "--project", "elsewhere")) == ["far"]
    assert ids(run("list", "--json", "--project", home.name)) == ["xyz", "abc-2", "abc-1"]
    assert ids(run("list", "--json", "--since", "2026-01-01T00:00:02Z")) == ["xyz", "abc-2"]
    assert ids(run("list", "--json", "--until", "2026-01-01T00:00:02Z")) == ["abc-1"]
    done = run("list", "--since", "2030-01-01")
    assert (done.code, done.out, "no such sessions" in done.err) == (0, "", True)
    assert run("list", "--sort", "colour").code == 2


@pytest.fixture
def patient(monkeypatch):
    """Keep what is shown at once, instead of two seconds after the last change."""
    from sessiontree import shown

    monkeypatch.setattr(shown, "_SETTLED_NS", -10_000_000_000)


def test_unchanged_files_are_not_read_again(run, sessions, patient, monkeypatch, tmp_path):
    """A second listing reads nothing, a third one only what has changed, and each says the same."""
    from sessiontree._native import SessionFiles
    from sessiontree.shown import Listing

    folder = str(sessions["far"].parents[1])
    read = []
    real = Listing._take
    monkeypatch.setattr(Listing, "_take", lambda self, info: (read.append(info.id), real(self, info))[1])
    first = run("list", "--all", "--json")
    assert sorted(read) == ["abc-1", "abc-2", "far", "xyz"]
    read.clear()
    assert run("list", "--all", "--json").json == first.json
    assert read == []
    with open(sessions["xyz"], "a") as file:
        file.write(json.dumps(user("bbbbbbbb", "aaaaaaaa", "more", 9)) + "\n")
    sessions["far"].unlink()
    again = run("list", "--all", "--json").json
    assert read == ["xyz"]
    assert [(info["id"], info["messageCount"]) for info in again] == [("xyz", 2), ("abc-2", 1), ("abc-1", 1)]
    infos = SessionFiles.find(folder, order="listed", depth="below").read(99, 1 << 30)
    assert {(i.id, i.message_count, i.modified_ms, i.size, i.cost, i.cwd) for i in infos} == {
        (r.id, r.message_count, r.modified_ms, r.size, r.cost, r.cwd) for r in Listing(folder, "below").rows
    }


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "folder", "off", "unwritable"])
def test_the_cache_never_decides(run, sessions, patient, monkeypatch, tmp_path, damage):
    """Whatever is wrong with what is kept, the listing is the same; nothing is said about it."""
    before = run("list", "--all", "--json").json
    (kept,) = (tmp_path / "cache" / "listing").iterdir()
    data = kept.read_bytes()
    if damage == "cut":
        kept.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        kept.write_bytes(data.replace(b"elsewhere", b"somewhere"))
    elif damage == "empty":
        kept.write_bytes(b"")
    elif damage == "folder":
        kept.unlink()
        kept.mkdir()
    elif damage == "off":
        monkeypatch.setenv("SESSIONTREE_CACHE", "off")
    else:
        monkeypatch.setenv("SESSIONTREE_CACHE_DIR", "/dev/null/nowhere")
    for _ in range(2):
        done = run("list", "--all", "--json")
        assert (done.code, done.json, done.err) == (0, before, "")


def test_a_file_that_changed_just_now_is_read_again(run, sessions, tmp_path):
    """Within two seconds of a change nothing is kept: another change could leave no trace."""
    run("list", "--all")
    kept = list((tmp_path / "cache").glob("listing/*"))
    assert not any(b"abc-1" in path.read_bytes() for path in kept)


def test_a_relative_folder_is_another_one_elsewhere(run, write, patient, tmp_path, monkeypatch):
    """Folders of the same name in two directories are told apart, and paths are whole."""
    for place in ("one", "two"):
        write(user("aaaaaaaa", None, place), id=place, name=f"{place}/own/s.jsonl")
    for place in ("one", "two", "one"):
        monkeypatch.chdir(tmp_path / place)
        (info,) = run("list", "--all", "--session-dir", "own", "--json").json
        assert (info["id"], info["path"]) == (place, str(tmp_path / place / "own" / "s.jsonl"))


def test_odd_texts_are_kept(run, home, write, patient):
    """A text that UTF-8 cannot hold, and a name of a file that is no text, are listed the same way each time."""
    folder = get_default_session_dir(str(home))
    path = write('{"type":"session_info","id":"a","parentId":null,"name":"x\\ud800y"}', cwd=home, id="odd")
    os.makedirs(folder, exist_ok=True)
    os.rename(path, os.fsencode(f"{folder}/") + b"\xff.jsonl")
    for _ in range(2):
        (info,) = json.loads(run("list", "--json").out)
        assert (info["id"], info["name"]) == ("odd", "x\ud800y")


def test_a_list_imports_no_more_than_it_needs(sessions, home):
    """What takes long to import is not needed for a list: it is there at once."""
    code = (
        "import sys; from sessiontree.cli import main; main(['list', '--all']); "
        "print(*{'numpy', 'rich', 'sqlite3', 'hashlib', 'orjson', 'json', 'dataclasses', 'sessiontree.manager', "
        "'sessiontree.settings', 'sessiontree.catalog'} & sys.modules.keys(), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (len(done.stdout.splitlines()), done.stderr.strip()) == (4, "")


def test_a_look_in_advance_is_the_look(run, sessions, monkeypatch, home):
    """What a list of everything begins with, before the rest is imported, is what it goes on with, once."""
    from sessiontree import shown

    found = []

    class Files:
        """Takes down which folders are looked at when their files are needed."""

        @staticmethod
        def find(folder, **how):
            found.append(how["depth"])
            return KeptFiles.find(folder, **how)

    monkeypatch.setattr(shown, "KeptFiles", Files)
    assert len(run("list", "--all", "--json").json) == 4
    assert found == []
    assert len(run("list", "--json").json) == 3
    assert found == ["own"]
    assert [row["id"] for row in run("list", "--all", "--json").json] == ["far", "xyz", "abc-2", "abc-1"]
    assert found == ["own"]
    # Wrong usage, and another folder, leave nothing behind that a later list could take.
    assert run("list", "--all", "--nonsense").code == 2
    assert len(run("list", "--all", "--json", "--session-dir", sessions["far"].parent).json) == 1
    assert len(run("list", "--all", "--json").json) == 4
    assert found == ["own", "own"]


def test_an_early_look_is_given_up(home, sessions):
    """What nobody asks for any more ends by itself, and what is asked for twice is looked at again."""
    folder = str(sessions["far"].parents[1])
    looking = Looking(folder, depth="below", kept=None, settled=0)
    assert len(looking.found()) == 4
    assert looking.found() is None
    assert Looking(f"{folder}/nothing", depth="own", kept=None, settled=0).found() is None
    with pytest.raises(ValueError, match="no such depth"):
        Looking(folder, depth="deep", kept=None, settled=0)
    for _ in range(20):
        Looking(folder, depth="below", kept=None, settled=0)


def test_costs_are_those_of_the_catalog(run, home, write):
    """What a listing says a session has cost is what the statistics say."""
    usage = {"input": 1, "cost": {"total": 0.25}}
    write(
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "assistant", "content": [], "usage": usage}},
        {"type": "usage", "id": "b", "parentId": "a", "usage": usage},
        {"type": "compaction", "id": "c", "parentId": "b", "summary": "s", "usage": usage},
        cwd=home,
        name=f"{get_default_session_dir(str(home))}/s.jsonl",
    )  # fmt: skip
    assert run("list", "--json").json[0]["cost"] == 0.75
    assert json.loads(run("stats", "--by", "session", "--json").out)["cost"] == 0.75
    assert run("list").lines[0].split("\t")[4] == "0.7500"


def test_watching_tells_what_changes(sessions, home):
    """In a pipe each new, changed and removed session is told once, as it happens."""
    program = subprocess.Popen(
        [sys.executable, "-m", "sessiontree", "list", "--watch", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(60, program.kill)
    timer.start()
    try:
        seen = [json.loads(program.stdout.readline()) for _ in range(3)]
        assert {(event["event"], event["id"]) for event in seen} == {
            ("new", "xyz"),
            ("new", "abc-2"),
            ("new", "abc-1"),
        }
        with open(sessions["abc-1"], "a") as file:
            file.write(json.dumps(user("bbbbbbbb", "aaaaaaaa", "more", 9)) + "\n")
        event = json.loads(program.stdout.readline())
        assert (event["event"], event["id"], event["messageCount"]) == ("changed", "abc-1", 2)
        sessions["abc-2"].unlink()
        assert json.loads(program.stdout.readline()) == {"event": "gone", "path": str(sessions["abc-2"])}
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=20)
        assert (program.returncode, out, err.strip()) == (130, "", "")
    finally:
        timer.cancel()
        program.kill()
        program.communicate()


def test_a_session_is_meant_in_five_ways(run, sessions, monkeypatch):
    """By path, by id, by the beginning of an id, as the newest, and from another directory."""

    def meant(*arguments):
        return run("tree", *arguments, "--json").json["session"]

    assert meant(sessions["abc-1"]) == "abc-1"
    assert meant(os.path.relpath(sessions["abc-1"])) == "abc-1"
    assert meant("abc-2") == "abc-2"
    assert meant("xy") == "xyz"
    assert meant() == "xyz"
    assert meant("fa") == "far"
    assert meant("--cwd", "/elsewhere") == "far"
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(SAMPLES))
    assert meant("019face3-3800") == "019face3-3800-7c3e-9b42-5d1e8f0a6c21"


def test_the_beginning_of_several_ids(run, sessions):
    """It is wrong usage and lists the candidates; nothing is guessed."""
    done = run("tree", "abc")
    assert done.code == 2
    assert "abc-1 (first)" in done.err
    assert "abc-2 (second)" in done.err


@pytest.mark.parametrize("given", ["nothere", "", "*"])
def test_no_such_session(run, sessions, given):
    """An id that nothing begins with is exit code 1."""
    done = run("tree", given)
    assert (done.code, len(done.err.splitlines())) == (1, 1)


def test_no_session_yet(run, home):
    """Without any session the newest one is an error that says where to look."""
    done = run("tree")
    assert done.code == 1
    assert "list --all" in done.err


@pytest.mark.parametrize("how", ["option", "variable", "settings"])
def test_the_session_folder(run, home, tmp_path, write, monkeypatch, how):
    """The folder comes from --session-dir, else the environment, else the global settings."""
    write(user("aaaaaaaa", None, "here"), id="here", cwd=home, name="own/s_here.jsonl")
    own = tmp_path / "own"
    arguments = []
    if how == "option":
        arguments = ["--session-dir", own]
        monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "wrong"))
    elif how == "variable":
        monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(own))
    else:
        (tmp_path / "agent").mkdir()
        (tmp_path / "agent" / "settings.json").write_text(json.dumps({"sessionDir": str(own)}))
    assert [info["id"] for info in run("list", "--json", *arguments).json] == ["here"]
    assert run("tree", "--json", *arguments).json["session"] == "here"


@pytest.mark.parametrize("how", ["option", "variable"])
@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["list", "--all"]])
def test_a_folder_that_is_named_must_exist(run, home, tmp_path, monkeypatch, how, arguments):
    """One that is not there is told, with code 1; an empty one, and pi's own before the first session, are fine."""
    folder = tmp_path / "mistyped"
    named = ["--session-dir", folder] if how == "option" else []
    if how == "variable":
        monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(folder))
    done = run(*arguments, *named)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"sessiontree: no such folder: {str(folder)!r}\n"
    folder.mkdir()
    assert run(*arguments, *named).code == 0
    folder.rmdir()
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)
    assert run(*arguments).code == 0


def test_append_begins_a_session(run, home):
    """--new begins a session of the working directory, which is the newest then."""
    done = run("append", "--new", "-m", "hello", "--json").json
    assert run("list", "--json").json[0]["id"] == done["session"]
    assert run("path", "--json").json[-1]["id"] == done["id"]
    again = run("append", "-m", "more", "--json").json
    assert again["session"] == done["session"]
    assert os.stat(done["path"]).st_mode & 0o777 == 0o600


def test_the_demo_leaves_no_trace(run, sessions, tmp_path, monkeypatch):
    """The demo works on a copy: the sessions stay byte for byte, and its folder is gone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sessions.values()}
    done = run("demo")
    assert done.code == 0, done.err
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sessions.values()} == before
    assert not list(tmp_path.glob("sessiontree-demo-*"))
    for said in (
        "listed 4 sessions",
        "opened: 1 entry",
        "appended a message",
        "forked",
        "opened again: 2 entries",
    ):
        assert said in done.out


def test_the_demo_as_json(run, sessions):
    """Each step is an object in a line of its own, with the facts that the words tell and its seconds."""
    steps = [json.loads(line) for line in run("demo", "--json").lines]
    assert [step["step"] for step in steps] == ["list", "open", "context", "append", "fork", "open again"]
    assert all(step["seconds"] > 0 for step in steps)
    assert steps[0]["sessions"] == 4
    assert steps[0]["bytes"] == sum(path.stat().st_size for path in sessions.values())
    assert steps[1]["path"] in map(str, sessions.values())
    assert [step.get("entries") for step in steps] == [None, 1, None, None, 2, 2]
    assert steps[2]["messages"] == 1
    assert len(steps[3]["id"]) == 8
    samples = [json.loads(line) for line in run("demo", "--json", "--samples").lines]
    assert (samples[0]["step"], samples[0]["sessions"]) == ("list samples", 3)
    assert samples[-1]["step"] == "open"
    assert [step["tornTail"] for step in samples if "thumbs-torn" in step.get("path", "")] == [True]


def test_the_demo_leaves_the_cache_alone(run, home, write, tmp_path, monkeypatch):
    """What is saved about the copy of a big session goes with the copy."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    entries = [user(f"{n:08x}", f"{n - 1:08x}" if n else None, "x" * 50_000, n) for n in range(120)]
    write(*entries, name=f"{get_default_session_dir(str(home))}/2026_big.jsonl", id="big", cwd=home)
    assert run("demo").code == 0
    assert os.environ["SESSIONTREE_CACHE_DIR"] == str(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_the_demo_has_samples(run, home):
    """Without sessions of one's own the demo shows the bundled ones."""
    done = run("demo")
    assert done.code == 0, done.err
    assert "listed 3 sessions" in done.out
    assert "(bundled samples)" in done.out
    assert "csvtail: the row without a newline" in done.out
    assert "opened thumbs-torn.jsonl: 8 entries, a torn last line left alone" in done.out
    assert "opened notes-version1.jsonl: 15 entries" in done.out


@given(st.lists(st.text("ab", max_size=14), max_size=8))
def test_shown_ids_stay_apart(ids):
    """As many characters are shown as it takes to tell them apart, and not one more, but eight at least."""
    length = _unique_length(ids)

    def are_apart(length):
        return len({id[:length] for id in ids}) == len(set(ids))

    assert are_apart(length)
    assert length == 8 or (length > 8 and not are_apart(length - 1))


@given(st.text(st.sampled_from("ab  \n\t\x1c\x1f\xa0ü語"), max_size=20))
def test_blanks_between_words_become_one(text):
    """Only what a terminal takes for blanks is one, in any writing."""
    assert _words(text).strip(" ") == re.sub(r"[\t\n\r\x0b\x0c ]+", " ", text).strip(" ")


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120, 200])
def test_a_list_fits_the_terminal(run, sessions, monkeypatch, columns):
    """No line is wider than the terminal, wide characters counted as two; less wanted columns give way."""
    from rich.cells import cell_len
    from sessiontree.cli._output import Screen

    run("name", sessions["xyz"], "日本語" * 40)
    screen = Screen(columns, colour=False, terminal=True)
    monkeypatch.setattr(Screen, "of_stdout", classmethod(lambda cls: screen))
    lines = run("list", "--all").lines
    assert max(map(cell_len, lines)) <= columns
    titles = lines[0].split()
    assert (titles[0], titles[-1]) == ("id", "about")
    if columns >= 80:
        assert {"age", "messages", "cost", "project"} <= set(titles)
    if columns >= 120:
        assert titles == ["id", "age", "messages", "size", "cost", "state", "project", "about"]
    assert any("日" in line for line in lines)
    assert lines[2].startswith("xyz ")
