"""What SECURITY.md promises: hostile sessions drive no terminal and choose no path; files are private."""

import ast
import json
import os
import re
import stat
import time
from pathlib import Path

import numpy as np
import pytest
import sessiontree
from sessiontree import SessionManager, _cachedir, doctor
from sessiontree.catalog import Catalog
from sessiontree.cli import _app, main
from sessiontree.exceptions import SessionTreeError

SENT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = "\x1b]0;owned\x07\x9b2J\u202egnp.exe\x7f\u2028\r../../../etc/$(touch owned)`touch owned`'\"\n"
STAMP = "2026-01-01T00:00:00.000Z"
UNIX = pytest.mark.skipif(os.name == "nt", reason="modes and links are Unix's")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An agent folder, a cache and a working directory that nobody else has."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PI_CODING_AGENT_SESSION_DIR", raising=False)
    monkeypatch.chdir(project)
    return project


def entries():
    """Entries of all types, with the same in each of their texts."""
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {"total": 1}}
    model = {
        "provider": EVIL,
        "model": EVIL,
        "api": EVIL,
        "usage": usage,
        "stopReason": EVIL,
        "errorMessage": EVIL,
    }
    call = {"type": "toolCall", "id": EVIL, "name": EVIL, "arguments": {EVIL: EVIL, "path": EVIL}}
    image = {"type": "image", "mimeType": EVIL, "data": EVIL}
    texts = [{"type": "text", "text": f"word {EVIL}"}, {"type": "thinking", "thinking": EVIL}, call, image]
    bash = {"role": "bashExecution", "command": EVIL, "output": EVIL, "exitCode": 1, "fullOutputPath": EVIL}
    result = {
        "role": "toolResult",
        "toolCallId": EVIL,
        "toolName": EVIL,
        "content": texts[:1],
        "details": EVIL,
    }
    bodies = [
        ("message", {"message": {"role": "user", "content": texts, "timestamp": 1}}),
        ("message", {"message": {"role": "assistant", "content": texts, "timestamp": 2, **model}}),
        ("message", {"message": {**result, "timestamp": 3}}),
        ("message", {"message": {**bash, "timestamp": 4}}),
        ("message", {"message": {"role": EVIL, "content": EVIL}}),
        ("model_change", {"provider": EVIL, "modelId": EVIL}),
        ("thinking_level_change", {"thinkingLevel": EVIL}),
        ("custom", {"customType": EVIL, "data": EVIL}),
        ("custom_message", {"customType": EVIL, "content": EVIL, "display": True}),
        ("usage", {"kind": EVIL, "provider": EVIL, "model": EVIL, "usage": usage, "note": EVIL}),
        ("branch_summary", {"fromId": EVIL, "summary": EVIL}),
        ("label", {"targetId": "00000000", "label": EVIL}),
        ("label", {"targetId": EVIL, "label": EVIL}),
        ("session_info", {"name": EVIL}),
        (EVIL, {EVIL: EVIL}),
        ("context_edit", {"targetId": EVIL, "replacement": {"content": EVIL}}),
    ]
    parent = None
    for n, (kind, body) in enumerate(bodies):
        yield {"type": kind, "id": f"{n:08x}", "parentId": parent, "timestamp": STAMP, **body}
        parent = f"{n:08x}"
    yield {
        "type": "message",
        "id": EVIL,
        "parentId": parent,
        "timestamp": EVIL,
        "message": {"role": "user", "content": EVIL},
    }
    yield {
        "type": "message",
        "id": EVIL,
        "parentId": EVIL + "x",
        "timestamp": STAMP,
        "message": {"role": "user", "content": "x"},
    }
    yield {"type": "compaction", "id": "ffffffff", "parentId": EVIL, "timestamp": STAMP, "summary": EVIL,
           "firstKeptEntryId": EVIL, "tokensBefore": 1, "details": {"readFiles": [EVIL]}}  # fmt: skip


@pytest.fixture
def hostile(home, tmp_path):
    """A session whose every text is hostile, its id and directory among them, where sessions of the directory lie."""
    header = {
        "type": "session",
        "version": 3,
        "id": EVIL,
        "timestamp": EVIL,
        "cwd": str(home),
        "parentSession": EVIL,
    }
    folder = Path(sessiontree.get_default_session_dir(str(home)))
    path = folder / f"{STAMP.replace(':', '-')}_evil.jsonl"
    lines = [json.dumps(line, ensure_ascii=False).encode() for line in (header, *entries())]
    path.write_bytes(
        b"\n".join([*lines, EVIL.encode().replace(b"\n", b""), b'{"type":"mess' + EVIL[:9].encode()])
    )
    other = {**header, "cwd": EVIL, "id": "good-1"}
    (folder / "2025_good-1.jsonl").write_bytes(b"\n".join([json.dumps(other).encode(), *lines[1:]]) + b"\n")
    return path


def commands(path):
    """Each command of the command line, as it is used on a session."""
    at = ["00000000"]
    return {
        "list": [["list"], ["list", "--all", "--json"], ["list", "--all", "--sort", "cost"]],
        "search": [["search", "word"], ["search", "word", "--json"]],
        "stats": [["stats"], ["stats", "--json"], ["stats", path], ["stats", "--by", "model"]],
        "tree": [["tree", path], ["tree", path, "--json"]],
        "show": [["show", path], ["show", path, "--path"], ["show", path, "--json"], ["show", path, "--entry", *at],
                 ["show", path, "--entry", EVIL], ["show", EVIL]],
        "path": [["path", path], ["path", "evil"], ["path", EVIL]],
        "label": [["label", path], ["label", path, *at, EVIL], ["label", path, EVIL, EVIL]],
        "name": [["name", path], ["name", path, EVIL], ["name", path]],
        "append": [["append", path, "-m", EVIL], ["append", path, "--at", EVIL, "-m", "x"]],
        "fork": [["fork", path], ["fork", path, "--at", *at], ["fork", path, "--to", EVIL]],
        "branch": [["branch", "list", path], ["branch", "list", path, "--json"], ["branch", "delete", path, *at],
                   ["branch", "delete", path, EVIL], ["branch", "restore", path, EVIL]],
        "move": [["move", EVIL, "/new", "--dry-run"], ["move", os.getcwd(), EVIL, "--force", "--dry-run"]],
        "compact": [["compact", path, "--dry-run"], ["compact", path, "--dry-run", "--json"]],
        "navigate": [["navigate", path, *at], ["navigate", path, EVIL]],
        "settings": [["settings"], ["settings", EVIL], ["settings", EVIL, EVIL]],
        "doctor": [["doctor", path], ["doctor", path, "--json"], ["doctor", path, "--fix", "--yes"], ["doctor", EVIL]],
        "shrink": [["shrink", path], ["shrink", path, "--json"], ["shrink", EVIL]],
        "catalog": [["catalog", "check"], ["catalog", "rebuild"], ["catalog"]],
        "cache": [["cache"], ["cache", "clear"], ["cache", EVIL]],
        "export": [["export", path, "-o", "page.html"], ["export", path, "-o", "text.md"], ["export", path, "-o", EVIL]],
        "completion": [["completion", "bash"], ["completion", EVIL]],
        "demo": [["demo", EVIL]],
    }  # fmt: skip


# These run until they are interrupted; what they print goes the same ways as `show` and errors do.
ENDLESS = {"follow", "serve"}


def test_every_command_is_tried(hostile):
    """A new command must be tried here, too."""
    assert commands("x").keys() | ENDLESS == _app.COMMANDS.keys()


@pytest.mark.parametrize("command", sorted(commands("x")))
def test_nothing_in_a_session_drives_a_terminal(hostile, capsys, command):
    """No command prints a character that acts on a terminal, to either stream, whatever the session holds."""
    for arguments in commands(str(hostile))[command]:
        capsys.readouterr()
        main(arguments)
        done = capsys.readouterr()
        for text in (done.out, done.err):
            assert not SENT.findall(text), (arguments, text)
        assert "fault of the program" not in done.err
        assert "Traceback" not in done.err


def test_nothing_in_a_session_chooses_a_path_or_runs(hostile, tmp_path, capsys):
    """Whatever is done with a hostile session, files turn up only where sessions, caches and results lie."""
    for command, tried in commands(str(hostile)).items():
        for arguments in tried:
            if EVIL not in arguments and command not in ("export", "settings"):
                main(arguments)
    capsys.readouterr()
    found = {str(path.relative_to(tmp_path)).split("/")[0] for path in tmp_path.rglob("*")}
    assert found == {"agent", "cache", "project"}
    assert os.listdir(tmp_path / "project") == []
    for path in tmp_path.rglob("*"):
        assert not SENT.search(path.name), path
        assert "owned" not in path.name


def test_an_id_is_no_path(home, tmp_path):
    """An id that could be a path is refused where one is given, and never becomes part of a name where it is read."""
    for id in ("../x", "a/b", "..", "", "a\0", "a\n", ".x", "\u202e", "x" * 10 + "/"):
        with pytest.raises(ValueError, match="session id"):
            SessionManager.create(str(home), tmp_path / "s", id=id)
    assert not list((tmp_path / "s").rglob("*"))


@UNIX
def test_what_is_made_is_for_its_owner_alone(home, tmp_path, capsys):
    """Whatever the umask allows: files 0600, folders 0700; sessions, cache, catalog, images, archives, settings."""
    before = os.umask(0)
    try:
        session = SessionManager.create(str(home), remember_leaf=True)
        first = session.append_message({"role": "user", "content": "x" * 5_000_000, "timestamp": 1})
        session.append_message({"role": "assistant", "content": "y", "timestamp": 1})
        session.branch(first)
        session.close()
        path = session.get_session_file()
        image = {"type": "image", "data": "QUJD" * 30_000, "mimeType": "image/png"}
        with open(path, "ab") as file:
            message = {"role": "user", "content": [image]}
            file.write(
                json.dumps({"type": "message", "id": "i", "parentId": None, "message": message}).encode()
                + b"\nx\n"
            )
        os.utime(path, (1, 1))
        for arguments in (
            ["list"], ["search", "x"], ["show", path], ["shrink", path], ["doctor", path, "--fix", "--yes"],
            ["settings", "theme", "dark"], ["fork", path],
        ):  # fmt: skip
            main(arguments)
    finally:
        os.umask(before)
    made = [
        found for root in ("agent", "cache") for found in (tmp_path / root, *(tmp_path / root).rglob("*"))
    ]
    assert {"leaves", "locks"} <= {found.name for found in made}
    assert any(found.name.startswith("catalog") for found in made)
    assert any(found.name.endswith(".images") for found in made)
    for found in made:
        assert not stat.S_IMODE(found.stat().st_mode) & 0o077, found


@UNIX
def test_a_cache_folder_that_others_can_write_to_is_not_used(home, tmp_path, monkeypatch):
    """What others can put there is not believed, and nothing is written there."""
    cache = tmp_path / "open"
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(cache))
    session = SessionManager.create(str(home), remember_leaf=True)
    first = session.append_message({"role": "user", "content": "x" * 5_000_000, "timestamp": 1})
    session.append_message({"role": "assistant", "content": "y", "timestamp": 1})
    session.branch(first)
    assert _cachedir.index_dir(session.get_session_file()) is None
    with pytest.raises(PermissionError, match="others may write"), Catalog() as catalog:
        catalog.refresh([tmp_path])
    assert main(["list"]) == 0
    assert os.listdir(cache) == []


@UNIX
def test_links_in_the_cache_are_not_followed(home, tmp_path):
    """A link under the name of a temporary file, or of the catalog, does no harm to what it names."""
    target = tmp_path / "target"
    target.write_bytes(b"keep")
    cache = tmp_path / "cache"
    (cache / "leaves").mkdir(parents=True)
    name = cache / "leaves" / "x.json"
    name.symlink_to(target)
    _cachedir.write_private(str(name), b"new")
    assert (name.is_symlink(), name.read_bytes(), target.read_bytes()) == (False, b"new", b"keep")
    database = cache / "c.sqlite3"
    database.symlink_to(target)
    with pytest.raises((OSError, SessionTreeError)), Catalog(database) as catalog:
        catalog.refresh([tmp_path])
    assert target.read_bytes() == b"keep"


@UNIX
def test_a_link_that_is_put_in_the_place_of_a_session_is_not_written_through(home, tmp_path):
    """A repair replaces the file it has looked at, or nothing."""
    victim = tmp_path / "victim.jsonl"
    header = {"type": "session", "version": 3, "id": "v", "timestamp": STAMP, "cwd": "/v"}
    victim.write_bytes(json.dumps(header).encode() + b"\nno json\n")
    path = tmp_path / "s.jsonl"
    path.write_bytes(json.dumps({**header, "id": "s"}).encode() + b"\nno json " * 1_000_000 + b"\n")
    kept = victim.read_bytes()

    def swap(_done, _total):
        if not path.is_symlink():
            path.rename(tmp_path / "moved.jsonl")
            path.symlink_to(victim)

    with pytest.raises(OSError):
        doctor.fix(path, progress=swap)
    assert victim.read_bytes() == kept
    assert path.is_symlink()


def colliding(count):
    """Ids whose product with the factor of a well-known hash has nothing in its upper bits."""
    inverse = np.uint64(pow(0xF1357AEA2E62A9C5, -1, 1 << 64))
    start, found = 1, []
    while len(found) < count:
        ids = np.arange(start, start + (1 << 22), dtype=np.uint64) * inverse
        letters = ids.view(np.uint8).reshape(-1, 8)
        plain = ((letters > 34) & (letters < 127) & (letters != 92)).all(axis=1)
        found += [bytes(row).decode("ascii") for row in letters[plain]]
        start += 1 << 22
    return found[:count]


def test_ids_that_collide_take_no_time(tmp_path):
    """Whoever chooses the ids of a session does not choose how long it takes to open it."""

    def seconds(ids):
        path = tmp_path / "s.jsonl"
        header = {"type": "session", "version": 3, "id": "s", "timestamp": STAMP, "cwd": "/w"}
        lines = [
            {"type": "custom", "id": id, "parentId": None, "timestamp": STAMP, "customType": "x"}
            for id in ids
        ]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in [header, *lines]))
        began = time.perf_counter()
        with SessionManager.open(str(path), read_only=True) as session:
            assert session.get_entry(ids[0]) is not None
        doctor.check(path)
        return time.perf_counter() - began

    count = 40_000
    plain = min(seconds([f"{n:08x}" for n in range(count)]) for _ in range(3))
    assert seconds(colliding(count)) < 10 * plain + 0.5


def test_nothing_is_evaluated():
    """No module runs a shell, evaluates text, or unpickles."""
    forbidden = {
        "eval",
        "exec",
        "compile",
        "system",
        "popen",
        "Popen",
        "call",
        "check_output",
        "loads_pickle",
    }
    for path in Path(sessiontree.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "marshal", "shelve", "subprocess", "pty"}, path
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", None)
                assert name not in forbidden, (path, node.lineno)
                owner = getattr(getattr(node.func, "value", None), "id", None)
                assert not (owner == "os" and getattr(node.func, "attr", "") in ("system", "popen")), path
