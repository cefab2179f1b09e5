"""Sessions that come along when a project's folder was renamed."""

import json
import os

import pytest
from sessiontree import SessionManager, get_default_session_dir, moves
from sessiontree.exceptions import SessionConflictError
from sessiontree.listing import list_sessions

ENTRY = {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "é"}}
TAIL = b'{"type":"custom","id":"b","parentId":"a","n":1e400}\r\n\nno json\n{"torn'


@pytest.fixture(autouse=True)
def agent(tmp_path, monkeypatch):
    """An agent folder and a cache of our own."""
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "agent"


@pytest.fixture
def place(tmp_path):
    """Put a session into the folder of a directory."""

    def place(id, cwd, folder=None, before=b"", **more):
        header = {"type": "session", "version": 3, "id": id, "extra": 1.50, "cwd": cwd, **more}
        header = {key: value for key, value in header.items() if value is not None}
        folder = folder or get_default_session_dir(cwd)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"2026_{id}.jsonl")
        with open(path, "wb") as file:
            file.write(
                before + json.dumps(header).encode() + b"\n" + json.dumps(ENTRY).encode() + b"\n" + TAIL
            )
        os.chmod(path, 0o640)
        os.utime(path, ns=(10**18 + 7, 10**18 + 7))
        return path

    return place


def content(path):
    with open(path, "rb") as file:
        return file.read()


def moved(old, new, session_dir=None):
    found = moves.plan(old, new, session_dir)
    for each in found:
        moves.move(each)
    return found


def shown(cwd):
    return sorted(info.id for info in list_sessions(cwd))


def test_sessions_follow_their_project(place):
    """The header names the new directory, the file lies where pi looks; all else stays as it is."""
    path = place("one", "/code/old", before=b"\xef\xbb\xbf\n")
    before = content(path)
    (each,) = moved("/code/old", "/code/new/name")
    assert each.target == os.path.join(get_default_session_dir("/code/new/name"), "2026_one.jsonl")
    assert content(each.target) == before.replace(b'"/code/old"', b'"/code/new/name"')
    stat = os.stat(each.target)
    assert (stat.st_mode & 0o777, stat.st_mtime_ns) == (0o640, 10**18 + 7)
    assert not os.path.exists(os.path.dirname(path))
    assert (shown("/code/old"), shown("/code/new/name")) == ([], ["one"])


def test_directories_below_come_along_and_others_stay(place):
    """Sessions of directories in the renamed one move as well; those of a like-named one do not."""
    place("inner", "/code/old/sub")
    place("like", "/code/older")
    place("same-folder", "/code/old-sub", folder=get_default_session_dir("/code/old/sub"))
    moved("/code/old", "/elsewhere")
    assert (shown("/elsewhere/sub"), shown("/code/older")) == (["inner"], ["like"])
    assert shown("/code/old-sub") == ["same-folder"]


def test_sessions_without_a_directory_go_with_their_folder(place):
    """What a listing of the old directory shows is moved; a header that names nothing keeps naming nothing."""
    path = place("bare", None, folder=get_default_session_dir("/code/old"))
    before = content(path)
    place("renamed-before", "/code/oldest", folder=get_default_session_dir("/code/old"))
    assert shown("/code/old") == ["bare", "renamed-before"]
    found = {each.source: each for each in moved("/code/old", "/code/new")}
    assert content(found[path].target) == before
    assert shown("/code/new") == ["bare", "renamed-before"]


def test_two_names_with_one_folder(place):
    """If both directories have the same folder the file stays where it is, and only its header changes."""
    path = place("one", "/code/a-b")
    other = place("two", "/code/a/b")
    kept = content(other)
    (each,) = moved("/code/a-b", "/code/a/b")
    assert (each.source, each.target) == (path, path)
    assert shown("/code/a/b") == ["one", "two"]
    assert os.stat(path).st_mtime_ns == 10**18 + 7
    assert content(other) == kept


def test_a_folder_of_its_own(place, tmp_path):
    """With a session folder the headers change, and the files stay."""
    own = str(tmp_path / "own")
    path = place("one", "/code/old", folder=own)
    place("two", "/code/other", folder=own)
    assert [each.target for each in moved("/code/old", "/code/new", own)] == [path]
    assert [info.id for info in list_sessions("/code/new", own)] == ["one"]
    assert [info.id for info in list_sessions("/code/other", own)] == ["two"]


def test_parents_that_move_are_found(place):
    """The path of a parent session is brought up to date where the parent moves as well."""
    parent = place("parent", "/code/old")
    place("child", "/code/old", parentSession=parent)
    place("stranger", "/code/old", parentSession="/not/moved.jsonl")
    found = {os.path.basename(each.target): each.target for each in moved("/code/old", "/code/new")}
    with SessionManager.open(found["2026_child.jsonl"], read_only=True) as session:
        assert session.get_header()["parentSession"] == found["2026_parent.jsonl"]
    with SessionManager.open(found["2026_stranger.jsonl"], read_only=True) as session:
        assert session.get_header()["parentSession"] == "/not/moved.jsonl"


def test_what_lies_beside_a_session_comes_along(place):
    """Images, copies and archives under the session's name move with it."""
    path = place("one", "/code/old")
    os.mkdir(f"{path}.images")
    for name in (f"{path}.images/x", f"{path}.bak", f"{path}.branch-a.archive"):
        with open(name, "w") as file:
            file.write(name)
    (each,) = moved("/code/old", "/code/new")
    for ending in (".images/x", ".bak", ".branch-a.archive"):
        assert content(each.target + ending) == (path + ending).encode()
    assert not os.path.exists(os.path.dirname(path))


def test_nothing_is_overwritten(place):
    """A file in the way is found before anything is moved; one that appears later stops that move."""
    path = place("one", "/code/old")
    place("two", "/code/old")
    (first, second) = moves.plan("/code/old", "/code/new")
    os.makedirs(os.path.dirname(second.target), exist_ok=True)
    with open(second.target, "w") as file:
        file.write("mine")
    with pytest.raises(FileExistsError) as caught:
        moves.plan("/code/old", "/code/new")
    assert caught.value.filename == second.target
    with pytest.raises(FileExistsError):
        moves.move(second)
    assert content(second.target) == b"mine"
    assert os.path.exists(path)
    assert os.path.exists(second.source)
    moves.move(first)
    assert not os.path.exists(path)


def test_an_interrupted_move_goes_on(place):
    """If the new file was complete but the old one still there, the same call ends it."""
    path = place("one", "/code/old")
    before = content(path)
    (each,) = moved("/code/old", "/code/new")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(before)
    moved("/code/old", "/code/new")
    assert not os.path.exists(path)
    assert content(each.target) == before.replace(b"/code/old", b"/code/new")


def test_a_writer_at_work_is_noticed(place, monkeypatch):
    """If somebody appends while a session is copied, it stays where it is, with what was appended."""
    path = place("one", "/code/old")
    (each,) = moves.plan("/code/old", "/code/new")
    real = moves._parts

    def racing(each):
        yield from real(each)
        with open(path, "ab") as file:
            file.write(b"late\n")

    monkeypatch.setattr(moves, "_parts", racing)
    before = content(path)
    with pytest.raises(SessionConflictError):
        moves.move(each)
    assert content(path) == before + b"late\n"
    assert not os.path.exists(each.target)


def test_a_failure_leaves_everything(place, monkeypatch):
    """If a companion cannot be moved, the session and all that lies beside it stay."""
    path = place("one", "/code/old")
    for name in ("a", "b"):
        with open(f"{path}.{name}", "w") as file:
            file.write(name)
    (each,) = moves.plan("/code/old", "/code/new")
    real = os.rename

    def failing(here, there):
        if here.endswith(".b"):
            raise PermissionError(13, "permission denied", here)
        real(here, there)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", failing)
        with pytest.raises(PermissionError):
            moves.move(each)
    assert sorted(os.listdir(os.path.dirname(path))) == [
        "2026_one.jsonl",
        "2026_one.jsonl.a",
        "2026_one.jsonl.b",
    ]
    assert os.listdir(os.path.dirname(each.target)) == []


def test_where_a_session_was_left_is_kept(place):
    """A place that somebody has navigated to holds for the moved session too."""
    path = place("one", "/code/old")
    with SessionManager.open(path) as session:
        session.append_message({"role": "user", "content": "x", "timestamp": 1})
    with SessionManager.open(path, remember_leaf=True) as session:
        session.branch("a")
    (each,) = moved("/code/old", "/code/new")
    with SessionManager.open(each.target, remember_leaf=True) as session:
        assert session.get_leaf_id() == "a"


@pytest.mark.parametrize(("old", "new"), [("/code/a", "/code/a/"), ("/code/a", "/code/a/b")])
def test_moves_that_cannot_be(old, new):
    """Onto itself, and into itself."""
    with pytest.raises(ValueError, match="directory"):
        moves.plan(old, new)
