"""The saved index of a big file may cost time, never a wrong answer."""

import os
import shutil
import stat
import subprocess
import sys
import threading
import time

import pytest
from sessiontree import SessionFileLostError, SessionManager

HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/code"}\n'
FILLER = "x" * 500
TRAPS = (
    "again", "grown", "swapped", "parent", "root", "edited", "rewritten", "truncated", "renamed", "copied", "corrupt", "torn",
    "together", "processes", "readonly", "full", "off", "odd", "touched", "lenient", "moved", "other",
)  # fmt: skip


def line(n, text=FILLER):
    parent = f'"{n - 1:08x}"' if n else "null"
    return (
        f'{{"type":"message","id":"{n:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z",'
        f'"message":{{"role":"user","content":"{text}"}}}}\n'
    ).encode()


def big(rows=7000):
    return HEADER + b"".join(line(n) for n in range(rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One file a test, all of them quiet for two seconds and opened once."""
    folder = tmp_path_factory.mktemp("saved")
    odd = (
        HEADER
        + b'not json\n{"type":"message","id":7,"parentId":"nowhere","message":{"role":"user"}}\n"scalar"\n'
        + b'{"type":"label","id":"0000000a","parentId":"","targetId":"x","label":"l"}\n'
        + big()[len(HEADER) :]
        + line(5)
    )
    for name in TRAPS:
        (folder / f"{name}.jsonl").write_bytes(odd if name == "odd" else big())
    time.sleep(2.1)
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(path))
    monkeypatch.delenv("SESSIONTREE_CACHE", raising=False)
    return path


def saved_end(session):
    return session._log.store.saved_end()


def facts(session):
    """All that the index answers, without its memory."""
    columns = session.columns()
    report = session.open_report
    return (
        {name: columns[name].tolist() for name in columns},
        session.get_entry_count(),
        session.get_leaf_id(),
        list(session.path_ids()),
        [node.id for node in session.get_tree()],
        session.get_label("x"),
        (report.skipped, report.skipped_lines, report.blank, report.header_lines, report.orphans),
        report.duplicate_ids,
        [e["message"]["content"][:9] for e in session.get_branch() if isinstance(e.get("message"), dict)],
    )


def opened(path):
    """Open with the cache; the answers must be those of a scan."""
    session = SessionManager.open(path, read_only=True)
    assert facts(session) == facts(SessionManager.open(path, read_only=True, cache=False))
    return session


@pytest.fixture
def path(folder, cache, request):
    """The test's own file, its index saved."""
    path = folder / f"{request.node.get_closest_marker('trap').args[0]}.jsonl"
    assert saved_end(opened(path)) == 0
    assert [p.suffix for p in (cache / "index").iterdir()] == [".index"]
    return path


def trap(name):
    return pytest.mark.trap(name)


@trap("again")
def test_the_second_open_believes_the_saved_index(path, cache):
    """Nothing is scanned again, and nobody else can read the index."""
    assert saved_end(opened(path)) == path.stat().st_size
    saved = next((cache / "index").iterdir())
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700


@trap("odd")
def test_odd_files_are_saved_whole(path):
    """Skipped lines, orphans, numeric and repeated ids are what a scan would say."""
    assert saved_end(opened(path)) == path.stat().st_size


@trap("grown")
def test_after_growth_only_the_rest_is_scanned(path):
    """What was appended is taken in, and the leaf is its last entry."""
    before = path.stat().st_size
    with path.open("ab") as file:
        file.write(line(7000))
    session = opened(path)
    assert saved_end(session) == before
    assert session.get_leaf_id() == f"{7000:08x}"


@trap("torn")
def test_a_torn_tail_behind_the_saved_part_is_seen(path):
    """The tail is looked at anew at every open."""
    with path.open("ab") as file:
        file.write(b'{"type":"mess')
    assert opened(path).open_report.torn_tail


@trap("edited")
def test_an_edit_with_the_old_time_is_noticed(path):
    """The time of change cannot be set back, the time of modification can."""
    before = path.stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(line(3000), line(3000, "y" * 500)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    session = opened(path)
    assert saved_end(session) == 0
    assert session.get_entry(f"{3000:08x}")["message"]["content"] == "y" * 500


@trap("rewritten")
def test_a_file_rewritten_at_the_same_size_is_scanned(path):
    """Other ids at the same places are found."""
    data = path.read_bytes().replace(b'"0000', b'"1111')
    path.write_bytes(data)
    session = opened(path)
    assert saved_end(session) == 0
    assert session.get_entry(f"{3000:08x}") is None


@trap("truncated")
def test_a_file_cut_and_grown_again_is_scanned(path):
    """What stands at the seam is not what stood there."""
    data = path.read_bytes()
    path.write_bytes(data[: data.index(line(4000))] + b"".join(line(n, "z" * 600) for n in range(4000, 8000)))
    assert path.stat().st_size > len(data)
    assert saved_end(opened(path)) == 0


@trap("renamed")
def test_a_file_put_in_its_place_is_scanned(path, tmp_path):
    """Another inode is another file."""
    other = tmp_path / "other.jsonl"
    other.write_bytes(path.read_bytes() + line(7000))
    other.replace(path)
    assert saved_end(opened(path)) == 0


@trap("copied")
def test_the_saved_index_of_another_path_is_not_believed(path, cache, folder):
    """An index copied to another file's name knows whose it is."""
    saved = next((cache / "index").iterdir())
    shutil.rmtree(cache / "index" / "nothing", ignore_errors=True)
    other = folder / "again.jsonl"
    opened(other)
    theirs = next(p for p in (cache / "index").iterdir() if p != saved)
    shutil.copyfile(saved, theirs)
    assert saved_end(opened(other)) == 0


@trap("corrupt")
def test_a_damaged_index_is_not_believed(path, cache):
    """A bit at any place, or a missing end, is noticed by the check sum."""
    saved = next((cache / "index").iterdir())
    sound = saved.read_bytes()
    for at in [*range(0, 300, 7), len(sound) // 2, len(sound) - 1]:
        saved.write_bytes(sound[:at] + bytes([sound[at] ^ 16]) + sound[at + 1 :])
        assert saved_end(SessionManager.open(path, read_only=True)) == 0, at
    for length in (0, 7, 16, 100, len(sound) - 1):
        saved.write_bytes(sound[:length])
        assert saved_end(opened(path)) == 0


@trap("touched")
def test_an_index_saved_too_soon_is_not_made(path, cache):
    """Within two seconds of a change nothing is saved: another change could leave no trace."""
    path.write_bytes(path.read_bytes())
    shutil.rmtree(cache)
    opened(path)
    assert not (cache / "index").exists()


@trap("together")
def test_many_open_and_save_at_once(path, cache):
    """Whoever saves last, what stands there is whole."""
    shutil.rmtree(cache)
    threads = [
        threading.Thread(target=SessionManager.open, args=(path,), kwargs={"read_only": True})
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [p.suffix for p in (cache / "index").iterdir()] == [".index"]
    assert saved_end(opened(path)) == path.stat().st_size


OPENING = """
import sys
from sessiontree import SessionManager
for _ in range(5):
    session = SessionManager.open(sys.argv[1], read_only=True)
    assert session.get_entry_count() == 7000, session.get_entry_count()
print(session.get_leaf_id())
"""


def opened_elsewhere(path, before=""):
    """A process that opens the file and saves its index."""
    command = [sys.executable, "-c", before + OPENING, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@trap("processes")
def test_processes_open_and_save_at_once(path, cache):
    """Each reads a whole index or none, and one stands there in the end."""
    shutil.rmtree(cache)
    processes = [opened_elsewhere(path) for _ in range(3)]
    for process in processes:
        assert process.communicate() == (f"{6999:08x}\n", "")
    assert [p.suffix for p in (cache / "index").iterdir()] == [".index"]
    assert saved_end(opened(path)) == path.stat().st_size


def test_a_cache_that_cannot_be_written_is_nobodys_trouble(folder, cache):
    """The session opens all the same."""
    cache.write_bytes(b"a file in the folder's place")
    assert saved_end(opened(folder / "readonly.jsonl")) == 0
    assert cache.read_bytes() == b"a file in the folder's place"


@pytest.mark.parametrize("kind", ["folder", "system"])
def test_a_read_only_cache_is_nobodys_trouble(folder, cache, monkeypatch, kind):
    """A folder that takes no files, or a file system that takes none, stays as it is."""
    if kind == "system":
        if not os.path.ismount("/proc"):
            pytest.skip("there is no file system at hand that nobody can write")
        monkeypatch.setenv("SESSIONTREE_CACHE_DIR", "/proc/sessiontree")
        assert saved_end(opened(folder / "readonly.jsonl")) == 0
        return
    index = cache / "index"
    index.mkdir(parents=True)
    index.chmod(0o500)
    if os.access(index, os.W_OK):
        pytest.skip("this user may write everywhere")
    assert saved_end(opened(folder / "readonly.jsonl")) == 0
    assert list(index.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of a process")
def test_a_full_disk_leaves_nothing_behind(folder, cache):
    """An index that cannot be written whole is not there at all, and the session is open."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    process = opened_elsewhere(folder / "full.jsonl", limit)
    assert process.communicate() == (f"{6999:08x}\n", "")
    assert list((cache / "index").iterdir()) == []


def edited_and_grown(path, old, new):
    """Change lines in the middle, in place, and append one: both ends of the saved part stay."""
    data = path.read_bytes()
    assert len(old) == len(new)
    with path.open("r+b") as file:
        file.seek(data.index(old))
        file.write(new)
        file.seek(0, os.SEEK_END)
        file.write(line(7000))


@trap("moved")
def test_a_line_that_is_not_where_the_index_says_is_scanned_for(path):
    """All bodies, read alone or together, are those of the file."""
    old = line(3000) + line(3001)
    edited_and_grown(path, old, line(3000, "m" * 480) + line(3001, "n" * 520))
    session = SessionManager.open(path, read_only=True)
    assert saved_end(session) > 0
    assert session.get_entry(f"{3001:08x}")["message"]["content"] == "n" * 520
    assert saved_end(session) == 0
    assert session.get_entry_count() == 7001
    assert facts(session) == facts(SessionManager.open(path, read_only=True, cache=False))


@trap("other")
def test_another_entry_than_the_index_says_is_an_error_once(path):
    """Rows that were given out would mean something else; the next open scans."""
    edited_and_grown(path, line(3000), line(0x7777))
    session = SessionManager.open(path, read_only=True)
    assert saved_end(session) > 0
    with pytest.raises(SessionFileLostError, match="the file changed since it was read"):
        list(session.get_entries())
    again = opened(path)
    assert saved_end(again) == 0
    assert again.get_entry(f"{0x7777:08x}") is not None


@trap("swapped")
def test_a_child_in_the_place_of_its_parent_is_not_taken_for_it(path):
    """The child's line names its parent's id, too; only as an id of its own it would count."""
    edited_and_grown(path, line(3000) + line(3001), line(3001) + line(3000))
    session = SessionManager.open(path, read_only=True)
    assert saved_end(session) > 0
    with pytest.raises(SessionFileLostError, match="the file changed since it was read"):
        session.get_entry(f"{3000:08x}")
    again = opened(path)
    assert facts(again) == facts(SessionManager.open(path, read_only=True, cache=False))


@pytest.mark.parametrize(
    "parent",
    [pytest.param(b'"00000064"', marks=trap("parent")), pytest.param(b"null      ", marks=trap("root"))],
    ids=["another", "none"],
)
def test_an_entry_with_another_parent_than_the_index_says_is_an_error_once(path, parent):
    """Paths that were given out would be none any more; the next open scans."""
    old = line(3000)
    edited_and_grown(path, old, old.replace(b'"%08x"' % 2999, parent))
    session = SessionManager.open(path, read_only=True)
    assert saved_end(session) > 0
    with pytest.raises(SessionFileLostError, match="the file changed since it was read"):
        session.get_entry(f"{3000:08x}")
    again = opened(path)
    assert saved_end(again) == 0
    assert again.get_entry(f"{3000:08x}")["parentId"] == (None if b"null" in parent else "00000064")
    assert facts(again) == facts(SessionManager.open(path, read_only=True, cache=False))


def test_it_can_be_turned_off(folder, cache, monkeypatch):
    """By the option and by the environment."""
    SessionManager.open(folder / "off.jsonl", read_only=True, cache=False)
    monkeypatch.setenv("SESSIONTREE_CACHE", "off")
    SessionManager.open(folder / "off.jsonl", read_only=True)
    assert not cache.exists()


@trap("lenient")
def test_a_lenient_open_has_no_part_in_it(path):
    """What is a header depends on the option, so that one kind of answer is saved."""
    assert saved_end(SessionManager.open(path, read_only=True, lenient_header=True)) == 0
