"""Damaged files: cut at every byte, every line spoilt in every way, limits of writing and of disks.

A damaged file opens or is refused with a clear error, never hangs, and keeps every line that is whole.
"""

import errno
import os
import resource
import shutil
import subprocess

import pytest
from sessiontree import SessionManager
from sessiontree.exceptions import InvalidSessionError

from .sessions import check_agrees, counted, ids, ids_on_disk, left_over, make, state, text_of, user

LONG = "x" * 100


def opened(path, data):
    """Open damaged bytes; None if they are refused. Nothing is written, but where a version was spoilt."""
    path.write_bytes(data)
    refusal = ""
    try:
        session = SessionManager.open(path, cwd_override="/code")
    except InvalidSessionError as error:
        session, refusal = None, str(error)
    if session is None:
        assert str(path) in refusal
        assert "line " in refusal
    if b'"version":3' in data.partition(b"\n")[0]:
        assert path.read_bytes() == data
    return session


def check_goes_on(session, path):
    """The next append is whole, and what was there before it as well."""
    before = ids_on_disk(path)
    new = session.append_message(user("next"))
    assert ids_on_disk(path) == [*before, new]
    session.close()


def test_a_session_cut_at_every_byte(tmp_path):
    """Cut anywhere, a session keeps all whole lines, and goes on; cut in its header it is refused."""
    path, data = tmp_path / "s.jsonl", text_of(4)
    header = data.index(b"\n")
    for cut in range(len(data) + 1):
        session = opened(path, data[:cut])
        if cut < header:
            assert (session is None) == (cut > 0), cut
            continue
        whole = [f"e{n}" for n, text in enumerate(text_of(4).split(b"\n")[1:5]) if data[:cut].count(text)]
        assert ids(session) == whole, cut
        check_goes_on(session, path)
    counted("a session cut at each byte", len(data) + 1)


def spoilt(lines, n):
    """Each way to spoil one line of a file."""
    text = lines[n]
    for bit in range(0, len(text) * 8, 7):
        flipped = bytearray(text)
        flipped[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit}", [*lines[:n], bytes(flipped), *lines[n + 1 :]]
    for at in range(0, len(text), 3):
        yield f"NUL from {at}", [*lines[:n], text[:at] + bytes(len(text) - at), *lines[n + 1 :]]
        yield f"cut out at {at}", [*lines[:n], text[:at], *lines[n + 1 :]]
    if n + 1 < len(lines):
        yield "glued to the next", [*lines[:n], text + lines[n + 1], *lines[n + 2 :]]
        yield "swapped with the next", [*lines[:n], lines[n + 1], text, *lines[n + 2 :]]
    yield "doubled", [*lines[:n], text, text, *lines[n + 1 :]]
    yield "doubled on the line", [*lines[:n], text + text, *lines[n + 1 :]]
    yield "lost", [*lines[:n], *lines[n + 1 :]]


@pytest.mark.filterwarnings("ignore::sessiontree.exceptions.BrokenTreeWarning")
def test_every_line_spoilt_in_every_way(tmp_path):
    """Whatever happens to one line, all other whole lines are there, and the session goes on."""
    path, lines = tmp_path / "s.jsonl", text_of(3).split(b"\n")[:-1]
    tried = 0
    for n in range(len(lines)):
        for what, now in spoilt(lines, n):
            session = opened(path, b"\n".join(now) + b"\n")
            tried += 1
            if session is None:
                assert n == 0, what
                continue
            untouched = [f"e{k}" for k in range(3) if k + 1 != n and lines[k + 1] in now]
            found = ids(session)
            assert set(untouched) <= set(found), (n, what)
            session.build_session_context()
            list(session.get_tree())
            check_goes_on(session, path)
    assert tried > 900
    counted("a line spoilt: flipped bits, NULs, cut, glued, swapped, doubled, lost", tried)


def limited(size, act):
    """Do something while no file may grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        act()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_limit_at_every_byte_of_an_append(tmp_path):
    """Where a file may not grow further, at whatever byte, the append fails whole; later it works."""
    path = make(tmp_path / "s.jsonl")
    session = SessionManager.open(path)
    before, data = state(session), path.read_bytes()
    with SessionManager.open(make(tmp_path / "other.jsonl")) as other:
        other.append_message(user(LONG))
    length = (tmp_path / "other.jsonl").stat().st_size - len(data)
    assert length > 200
    for extra in range(length):
        with pytest.raises(OSError) as caught:
            limited(len(data) + extra, lambda: session.append_message(user(LONG)))
        assert caught.value.errno == errno.EFBIG
        assert caught.value.filename == str(path)
        assert path.read_bytes() == data
    assert state(session) == before
    counted("a size limit (RLIMIT_FSIZE) at each byte of an append", length)
    session.append_message(user(LONG))
    check_agrees(session, path)


def test_a_limit_at_every_byte_of_a_first_file(tmp_path):
    """A new file that cannot be written whole is not there at all; later it is."""
    session = SessionManager.create("/code", str(tmp_path))
    for limit in range(0, 300, 3):
        with pytest.raises(OSError):
            limited(limit, lambda: session.append_message(user(LONG)))
        assert os.listdir(tmp_path) == []
    session.append_message(user(LONG))
    assert len(os.listdir(tmp_path)) == 1
    counted("a size limit while a new file is made", 100)


def test_a_device_that_is_full_is_no_session():
    """/dev/full is no regular file: refused at once, nothing is written."""
    with pytest.raises(OSError) as caught:
        SessionManager.open("/dev/full", cwd_override="/code")
    assert caught.value.errno == errno.ESPIPE


def mounted(folder, *options):
    """Mount a file system of one's own, or skip."""
    folder.mkdir()
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True, check=False)
    if os.geteuid() or done.returncode:
        pytest.skip(f"a file system of one's own cannot be mounted: {done.stderr.strip()}")
    return folder


@pytest.fixture(params=["tmpfs", "ext4"])
def small_disk(tmp_path, request):
    """A file system with little room: in memory, or on a loop device."""
    if request.param == "tmpfs":
        folder = mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=256k", "none")
    else:
        image, make_fs = tmp_path / "image", shutil.which("mkfs.ext4")
        if make_fs is None:
            pytest.skip("mkfs.ext4 is not installed")
        image.write_bytes(bytes(1 << 20))
        made = [make_fs, "-q", "-m", "0", "-O", "^has_journal", "-b", "1024", str(image)]
        subprocess.run(made, check=True)
        folder = mounted(tmp_path / "disk", "-o", "loop", str(image))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk(small_disk, request):
    """On a full disk appends fail whole, memory and file agree, and all works once there is room."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    path = make(small_disk / "s.jsonl")
    session = SessionManager.open(path)
    kept, failed = [], 0
    for n in range(2000):
        try:
            kept.append(session.append_message(user("x" * (n * 37 % 9000))))
        except OSError as error:
            failed += error.errno == errno.ENOSPC
            assert ids(session)[3:] == kept
            if failed == 50:
                break
    assert failed == 50
    check_full(small_disk, session, path, kept)
    ballast.unlink()
    kept.append(session.append_message(user("x" * 9000)))
    assert ids_on_disk(path)[3:] == kept
    check_agrees(session, path)
    counted(f"appends to a full disk ({request.node.callspec.params['small_disk']})", failed)


def check_full(folder, session, path, kept):
    assert ids_on_disk(path)[3:] == kept
    with pytest.raises(OSError):
        SessionManager.fork_from(path, "/other", str(folder / "fork"))
    assert not list((folder / "fork").glob("*")) if (folder / "fork").exists() else True
    before = state(session)
    with pytest.raises(OSError):
        session.create_branched_session(kept[-1])
    assert state(session) == before
    assert not left_over(folder)


def test_a_disk_that_becomes_read_only(small_disk):
    """On a file system remounted read-only reading goes on, writing fails and changes nothing."""
    path = make(small_disk / "s.jsonl")
    session = SessionManager.open(path)
    before = state(session)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OSError) as caught:
        session.append_message(user("x"))
    assert caught.value.errno == errno.EROFS
    assert state(session) == before
    with SessionManager.open(path, read_only=True) as reader:
        assert ids(reader) == ids(session)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    session.append_message(user("x"))
    check_agrees(session, path)
