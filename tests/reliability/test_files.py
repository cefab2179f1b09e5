"""What happens to a session's file when others change, move, cut or delete it while it is open."""

import errno
import os
import shutil
import socket

import pytest
from sessiontree import SessionManager
from sessiontree.exceptions import (
    ConcurrentWriterWarning,
    EntryNotFoundError,
    InvalidSessionError,
    ReadOnlySessionError,
    SessionClosedError,
    SessionConflictError,
    SessionFileLostError,
    SessionReplacedWarning,
    TornWriteWarning,
    UnsupportedVersionError,
)

from .sessions import (
    check_agrees,
    entry,
    header,
    ids,
    ids_on_disk,
    left_over,
    line,
    make,
    make_version_1,
    mode,
    reply,
    state,
    text_of,
    user,
)


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "s.jsonl")


def append_raw(path, data):
    """Append as a program without locks does."""
    with open(path, "ab") as file:
        file.write(data)


# ---- growth


def test_foreign_entries_are_taken_in_before_an_append(path):
    """An append behind another writer's entries keeps them, keeps the own leaf, and says so once."""
    session = SessionManager.open(path)
    append_raw(path, line(entry("f1", "e2")))
    with pytest.warns(ConcurrentWriterWarning, match="another writer appended 1 entries") as warned:
        new = session.append_message(user("mine"))
    assert warned[0].filename == __file__
    assert ids(session) == ["e0", "e1", "e2", "f1", new]
    assert session.get_entry(new)["parentId"] == "e2"
    append_raw(path, line(entry("f2", "e2")))
    session.append_message(user("again"))
    check_agrees(session, path)


def test_strict_refuses_until_the_session_is_refreshed(path):
    """With strict=True a foreign entry is an error each time, until refresh() has taken it in."""
    session = SessionManager.open(path, strict=True)
    append_raw(path, line(entry("f1", "e2")))
    before, data = state(session), path.read_bytes()
    for _ in range(2):
        with pytest.raises(SessionConflictError, match="another writer"):
            session.append_message(user("mine"))
        assert state(session) == before
    assert path.read_bytes() == data
    assert session.refresh() == 1
    new = session.append_message(user("mine"))
    assert ids(session) == ["e0", "e1", "e2", "f1", new]


def test_strict_refuses_a_file_in_the_place_of_this_one(path):
    """With strict=True a file that was put in its place is not written to before refresh()."""
    session = SessionManager.open(path, strict=True)
    other = path.with_name("other")
    other.write_bytes(path.read_bytes() + line(entry("f1", "e2")))
    other.replace(path)
    with pytest.raises(SessionConflictError):
        session.append_message(user("mine"))
    assert ids_on_disk(path) == ["e0", "e1", "e2", "f1"]
    with pytest.warns(SessionReplacedWarning):
        session.refresh()
    session.append_message(user("mine"))
    check_agrees(session, path)


def test_two_managers_of_one_process_exclude_each_other(path):
    """Two managers on one file see each other's entries and lose none."""
    one, two = SessionManager.open(path), SessionManager.open(path)
    one.append_message(user("one"))
    with pytest.warns(ConcurrentWriterWarning):
        two.append_message(user("two"))
    with pytest.warns(ConcurrentWriterWarning):
        one.append_message(user("one"))
    for n in range(19):
        two.append_message(user(f"two {n}"))
        one.append_message(user(f"one {n}"))
    two.refresh()
    assert ids(one) == ids(two)
    assert len(ids(one)) == 44
    check_agrees(two, path)


def test_an_id_that_another_writer_took_is_drawn_again(path):
    """Where another writer has the id that was just drawn, the entry is built anew with another one."""
    from sessiontree.host import Host

    drawn = iter(["aaaaaaaa", "bbbbbbbb"])
    session = SessionManager.open(path, host=Host(uuid4=lambda: next(drawn)))
    append_raw(path, line(entry("aaaaaaaa", "e2")))
    with pytest.warns(ConcurrentWriterWarning):
        assert session.append_message(user("mine")) == "bbbbbbbb"
    assert ids(session)[-2:] == ["aaaaaaaa", "bbbbbbbb"]


def test_the_time_of_a_file_does_not_matter(path):
    """Growth is told by size and identity: a file time that goes back changes nothing."""
    session = SessionManager.open(path)
    append_raw(path, line(entry("f1", "e2")))
    os.utime(path, (0, 0))
    with pytest.warns(ConcurrentWriterWarning):
        session.append_message(user("mine"))
    os.utime(path, (0, 0))
    session.append_message(user("more"))
    assert len(ids(session)) == 6


# ---- tails


@pytest.mark.parametrize("tail", [b'{"type":"mess', b"\x00\x00\x00", b'{"a":"\xf0\x9f'])
def test_a_torn_tail_is_sealed_by_the_first_append_alone(path, tail):
    """Opening leaves a torn tail as it is; the first append closes it and is a line of its own."""
    append_raw(path, tail)
    data = path.read_bytes()
    session = SessionManager.open(path)
    assert session.open_report.torn_tail
    assert path.read_bytes() == data
    new = session.append_message(user("mine"))
    assert path.read_bytes().startswith(data + b"\n")
    assert ids(session)[-1] == ids_on_disk(path)[-1] == new
    assert session.open_report.skipped == 1


def test_a_tail_that_was_torn_behind_our_back_is_sealed_too(path):
    """A line that another writer left half written since the last look is not glued to."""
    session = SessionManager.open(path)
    session.append_message(user("mine"))
    append_raw(path, line(entry("f1", "e2")) + b'{"type":"mes')
    with pytest.warns((ConcurrentWriterWarning, TornWriteWarning)):
        new = session.append_message(user("more"))
    assert ids_on_disk(path)[-2:] == ["f1", new]
    check_agrees(session, path)


def test_a_whole_last_line_without_newline_is_kept(path):
    """A last line that lacks only its LF is an entry, and the next append gives it the LF."""
    path.write_bytes(path.read_bytes()[:-1])
    session = SessionManager.open(path)
    assert session.open_report.unterminated
    assert session.get_leaf_id() == "e2"
    session.append_message(user("mine"))
    check_agrees(session, path)
    assert len(ids(session)) == 4


def test_a_last_line_that_gets_its_newline_is_one_entry(path):
    """A last line that was taken without its LF is not taken twice once the LF is there."""
    path.write_bytes(path.read_bytes()[:-1])
    session = SessionManager.open(path)
    append_raw(path, b"\n")
    assert session.refresh() == 0
    append_raw(path, line(entry("f1", "e2")))
    assert session.refresh() == 1
    assert ids(session) == ["e0", "e1", "e2", "f1"]


def test_a_last_line_that_grows_is_read_anew(tmp_path):
    """A last line that parsed without its LF and then grew into something else is what it grew into."""
    path = make(tmp_path / "s.jsonl")
    append_raw(path, b"12")
    session = SessionManager.open(path)
    assert session.get_entry_count() == 4
    append_raw(path, b'" nonsense\n' + line(entry("f1", "e2")))
    with pytest.warns(SessionReplacedWarning):
        session.refresh()
    assert ids(session) == ["e0", "e1", "e2", "f1"]


def test_refresh_takes_whole_lines_only(path):
    """A line without its LF may still be growing: refresh() leaves it alone until the LF is there."""
    session = SessionManager.open(path, read_only=True)
    text = line(entry("f1", "e2"))
    for cut in range(1, len(text)):
        path.write_bytes(text_of(3) + text[:cut])
        assert session.refresh() == 0, cut
    path.write_bytes(text_of(3) + text)
    assert session.refresh() == 1
    assert session.get_leaf_id() == "f1"


def test_what_refresh_left_alone_is_looked_at_by_an_append(path):
    """An append takes in the whole last line that refresh() passed over, and loses nothing."""
    session = SessionManager.open(path)
    append_raw(path, line(entry("f1", "e2"))[:-1])
    assert session.refresh() == 0
    with pytest.warns(ConcurrentWriterWarning):
        new = session.append_message(user("mine"))
    assert ids(session) == ["e0", "e1", "e2", "f1", new]
    check_agrees(session, path)


def test_a_torn_line_that_its_writer_took_back_is_no_news(path):
    """Half a line that was seen and is gone again is neither a replaced file nor an entry."""
    session = SessionManager.open(path)
    append_raw(path, b'{"half')
    assert session.refresh() == 0
    os.truncate(path, len(text_of(3)))
    assert session.refresh() == 0
    session.append_message(user("mine"))
    check_agrees(session, path)


# ---- other files in the place of this one


def test_a_file_that_was_replaced_is_scanned_again(path):
    """A file renamed into the place is read whole; the leaf stays as its id is still there."""
    session = SessionManager.open(path)
    session.branch("e1")
    entries = session.get_entries()
    other = path.with_name("other")
    other.write_bytes(line(header()) + line(entry("n0", None)) + text_of(3).partition(b"\n")[2])
    other.replace(path)
    with pytest.warns(SessionReplacedWarning) as warned:
        new = session.append_message(user("mine"))
    assert warned[0].filename == __file__
    assert ids(session) == ["n0", "e0", "e1", "e2", new]
    assert session.get_entry(new)["parentId"] == "e1"
    with pytest.raises(SessionFileLostError, match="ask for the entries anew"):
        entries[0]
    check_agrees(session, path)


def test_a_target_that_went_with_the_old_file_is_not_referred_to(path):
    """A label for an entry that the new file lacks is refused, and nothing is written."""
    session = SessionManager.open(path)
    path.with_name("other").write_bytes(text_of(1))
    path.with_name("other").replace(path)
    with pytest.warns(SessionReplacedWarning), pytest.raises(EntryNotFoundError):
        session.append_label_change("e2", "x")
    assert path.read_bytes() == text_of(1)
    assert session.get_leaf_id() == "e0"


def test_another_session_in_the_place_is_not_written_to(path):
    """A file of another session is an error, for an append and a refresh, and stays as it is."""
    session = SessionManager.open(path)
    before = state(session)
    make(path.with_name("other"), 4, session_id="s2").replace(path)
    for act in (lambda: session.append_message(user("mine")), session.refresh):
        with pytest.raises(SessionFileLostError, match="another session has taken the place"):
            act()
    assert state(session) == before
    assert path.read_bytes() == text_of(4, "s2")


def test_a_file_rewritten_in_place_is_scanned_again(path):
    """A file that another program rewrote in place (pi migrates so) is not taken for growth."""
    session = SessionManager.open(path)
    lines = [{**header(), "more": "x" * 100}, entry("e0", None, "longer than before"), entry("e2", "e0")]
    path.write_bytes(b"".join(line(value) for value in lines) + text_of(9).partition(b"e4")[2])
    with pytest.warns(SessionReplacedWarning):
        session.append_message(user("mine"))
    check_agrees(session, path)


@pytest.mark.parametrize("rest", [0, 1, 80])
def test_a_file_cut_to_no_session_is_lost_until_it_is_one_again(path, rest):
    """A file cut down to less than a header is an error that says so; restored, all works again."""
    session = SessionManager.open(path)
    data = path.read_bytes()
    os.truncate(path, rest)
    for act in (lambda: session.append_message(user("mine")), session.refresh):
        with pytest.raises(SessionFileLostError, match=r"no session any more \(.*s.jsonl, byte 0\)"):
            act()
    assert path.stat().st_size == rest
    path.write_bytes(data)
    session.append_message(user("mine"))
    check_agrees(session, path)


def test_a_file_that_shrank_to_fewer_entries_is_scanned_again(path):
    """A file cut at a line's end is a shorter session; the leaf that is gone becomes the last entry."""
    session = SessionManager.open(path)
    os.truncate(path, len(text_of(2)))
    with pytest.warns(SessionReplacedWarning):
        new = session.append_message(user("mine"))
    assert session.get_entry(new)["parentId"] == "e1"
    check_agrees(session, path)


def test_a_read_behind_the_end_of_a_cut_file_names_path_and_byte(path):
    """An entry whose bytes are gone is SessionFileLostError with path and byte, never garbage."""
    session = SessionManager.open(path, read_only=True)
    os.truncate(path, len(text_of(2)) + 5)
    with pytest.raises(SessionFileLostError, match=rf"s\.jsonl, byte {len(text_of(2))}\)"):
        session.get_entry("e2")
    assert session.get_entry("e1")["id"] == "e1"


def test_a_line_of_another_entry_at_the_same_place_is_no_answer(path):
    """Where the bytes of an entry were changed under the session, reading it is an error."""
    session = SessionManager.open(path, read_only=True)
    path.write_bytes(path.read_bytes().replace(b'"id":"e1"', b'"id":"q1"'))
    for act in (lambda: session.get_entry("e1"), lambda: list(session.get_entries())):
        with pytest.raises(SessionFileLostError, match=r"changed since it was read \(.*byte \d+\)"):
            act()


def test_ids_written_with_escapes_are_read_all_the_same(tmp_path):
    """An id that stands in the line with escapes, or that is no string, is known again."""
    path = tmp_path / "s.jsonl"
    odd = [
        b'{"id":"\\u0061b","parentId":null}',
        b'{"id":7,"parentId":"ab"}',
        b"[1]",
        b'{"id":{}}',
        b'{"x":1}',
    ]
    path.write_bytes(line(header()) + b"".join(text + b"\n" for text in odd))
    session = SessionManager.open(path, read_only=True)
    assert list(session.get_entries()) == [
        {"id": "ab", "parentId": None},
        {"id": 7, "parentId": "ab"},
        [1],
        {"id": {}},
        {"x": 1},
    ]


# ---- files that vanish


@pytest.mark.parametrize("folder", [False, True])
def test_a_vanished_file_is_written_anew_from_what_is_open(tmp_path, folder):
    """An append to a deleted file restores it whole, header first, with its mode; also its folder."""
    (tmp_path / "sub").mkdir()
    path = make(tmp_path / "sub" / "s.jsonl")
    path.chmod(0o640)
    session = SessionManager.open(path)
    first = session.append_message(user("one"))
    path.unlink()
    if folder:
        shutil.rmtree(path.parent)
    with pytest.warns(SessionReplacedWarning, match="vanished; written anew"):
        second = session.append_message(user("two"))
    assert path.read_bytes().startswith(text_of(3))
    assert ids_on_disk(path) == ["e0", "e1", "e2", first, second]
    assert mode(path) == 0o640
    if folder:
        assert mode(path.parent) == 0o700
    assert not left_over(path.parent)
    check_agrees(session, path)


def test_a_vanished_file_keeps_what_others_had_appended(path):
    """What other writers appended before the file was deleted is restored with it."""
    session = SessionManager.open(path)
    append_raw(path, line(entry("f1", "e2")) + b'{"torn')
    path.unlink()
    with pytest.warns((SessionReplacedWarning, ConcurrentWriterWarning, TornWriteWarning)):
        new = session.append_message(user("mine"))
    assert ids_on_disk(path) == ["e0", "e1", "e2", "f1", new]
    check_agrees(session, path)


def test_two_sessions_restore_a_vanished_file_once(path):
    """Of two managers of a deleted file one restores it, the other joins in: both entries are there."""
    one, two = SessionManager.open(path), SessionManager.open(path)
    path.unlink()
    with pytest.warns(SessionReplacedWarning, match="vanished"):
        first = one.append_message(user("one"))
    with pytest.warns(SessionReplacedWarning, match="was replaced"):
        second = two.append_message(user("two"))
    assert ids_on_disk(path) == ["e0", "e1", "e2", first, second]


def test_a_vanished_file_that_cannot_be_restored_changes_nothing(path, tmp_path):
    """Where neither path nor folder can be made, the append fails and memory is as it was."""
    folder = tmp_path / "gone"
    folder.mkdir()
    there = make(folder / "s.jsonl")
    session = SessionManager.open(there)
    before = state(session)
    shutil.rmtree(folder)
    folder.write_text("a file in the way")
    with pytest.raises(NotADirectoryError):
        session.append_message(user("mine"))
    assert state(session) == before
    folder.unlink()
    with pytest.warns(SessionReplacedWarning):
        session.append_message(user("mine"))
    check_agrees(session, there)


def test_a_file_cut_and_then_deleted_is_lost(path):
    """A file whose open rest is shorter than what was read cannot be restored: nothing is written."""
    session = SessionManager.open(path)
    os.truncate(path, 30)
    path.unlink()
    with pytest.raises(SessionFileLostError, match="vanished, and what is still open of it was cut"):
        session.append_message(user("mine"))
    assert not path.exists()


def test_a_reader_goes_on_when_the_file_vanishes(path):
    """A read-only session of a deleted file reads on from the open descriptor and writes nothing."""
    session = SessionManager.open(path, read_only=True)
    append_raw(path, line(entry("f1", "e2")))
    path.unlink()
    assert session.refresh() == 1
    assert ids(session) == ["e0", "e1", "e2", "f1"]
    assert not path.exists()


# ---- new files


def test_nothing_is_on_disk_before_there_is_conversation(tmp_path):
    """Setup entries leave no file; the first message writes all, privately; close() writes nothing."""
    folder = tmp_path / "a" / "b"
    session = SessionManager.create("/code", str(folder))
    session.append_model_change("p", "m")
    session.flush()
    assert os.listdir(folder) == []
    session.append_message(user("hello"))
    assert os.listdir(folder) == [os.path.basename(session.get_session_file())]
    assert mode(session.get_session_file()) == 0o600
    assert [mode(folder), mode(folder.parent)] == [0o700, 0o700]
    other = SessionManager.create("/code", str(folder))
    other.append_model_change("p", "m")
    other.close()
    assert len(os.listdir(folder)) == 1


def test_the_mask_of_the_process_takes_rights_away_only(tmp_path):
    """A wide umask makes no file readable for others; a narrow one is honoured."""
    for mask, want in ((0, 0o600), (0o277, 0o400)):
        old = os.umask(mask)
        try:
            session = SessionManager.create("/code", str(tmp_path / oct(mask)))
            session.append_message(user("hello"))
        finally:
            os.umask(old)
        assert mode(session.get_session_file()) == want


def test_a_file_that_appeared_meanwhile_is_not_touched(tmp_path):
    """FileExistsError, nothing changed on disk or in memory; once the name is free it works."""
    path = tmp_path / "s.jsonl"
    session = SessionManager.open(path, cwd_override="/code")
    first = session.append_model_change("p", "m")
    path.write_bytes(b"notes of somebody\n")
    for _ in range(2):
        with pytest.raises(FileExistsError) as caught:
            session.append_message(user("hello"))
        assert caught.value.errno == errno.EEXIST
        assert caught.value.filename == str(path)
        assert ids(session) == [first]
    assert path.read_bytes() == b"notes of somebody\n"
    assert not left_over(tmp_path)
    path.unlink()
    session.append_message(user("hello"))
    check_agrees(session, path)


def test_a_dangling_link_is_followed_and_its_target_made_exclusively(tmp_path):
    """The target of a dangling link becomes the file; a target that appears first is not touched."""
    link, target = tmp_path / "link.jsonl", tmp_path / "far" / "target.jsonl"
    link.symlink_to("far/target.jsonl")
    session = SessionManager.open(link, cwd_override="/code")
    target.parent.mkdir()
    target.write_bytes(b"mine\n")
    with pytest.raises(FileExistsError):
        session.append_message(user("hello"))
    assert target.read_bytes() == b"mine\n"
    target.unlink()
    session.append_message(user("hello"))
    assert link.is_symlink()
    check_agrees(session, target)
    with pytest.raises(FileNotFoundError):
        SessionManager.open(tmp_path / "none.jsonl", read_only=True)


def test_a_circle_of_links_is_an_error(tmp_path):
    """Links that lead to each other give OSError, at the open already."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="links") as caught:
        SessionManager.open(tmp_path / "a")
    assert caught.value.errno == errno.ELOOP


def test_an_empty_file_is_adopted_with_the_first_entry(tmp_path):
    """An empty file gets its header with the first entry of any kind, keeps its mode; not before."""
    path = tmp_path / "s.jsonl"
    path.touch(0o644)
    path.chmod(0o644)
    session = SessionManager.open(path, cwd_override="/code")
    assert path.read_bytes() == b""
    session.append_model_change("p", "m")
    assert mode(path) == 0o644
    check_agrees(session, path)
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(InvalidSessionError, match="empty"):
        SessionManager.open(empty, read_only=True)


def test_an_empty_file_that_was_filled_meanwhile_is_not_touched(tmp_path):
    """An empty file that somebody else fills first stays theirs."""
    path = tmp_path / "s.jsonl"
    path.touch()
    session = SessionManager.open(path, cwd_override="/code")
    path.write_bytes(text_of(1))
    with pytest.raises(FileExistsError):
        session.append_message(user("hello"))
    assert path.read_bytes() == text_of(1)


def test_an_empty_file_in_a_closed_folder_is_filled_in_place(tmp_path, monkeypatch):
    """Where no file can be put beside it, an empty file is filled in place, all or nothing."""
    if os.geteuid() == 0:
        pytest.skip("root may write to every folder")
    path = tmp_path / "s.jsonl"
    path.touch()
    tmp_path.chmod(0o500)
    try:
        session = SessionManager.open(path, cwd_override="/code")
        session.append_message(user("hello"))
        check_agrees(session, path)
    finally:
        tmp_path.chmod(0o700)


def test_file_systems_without_hard_links_get_new_files_too(tmp_path, fat):
    """On FAT, which has neither links nor modes, sessions are created exclusively, too."""
    session = SessionManager.create("/code", str(fat))
    session.append_message(user("hello"))
    path = fat / os.path.basename(session.get_session_file())
    check_agrees(session, path)
    other = SessionManager.open(fat / "x.jsonl", cwd_override="/code")
    make(fat / "x.jsonl")
    with pytest.raises(FileExistsError):
        other.append_message(user("hello"))
    assert not left_over(fat)


@pytest.fixture
def fat(tmp_path):
    import subprocess

    tool = shutil.which("mkfs.vfat")
    if os.geteuid() or tool is None:
        pytest.skip("a FAT file system takes root and mkfs.vfat")
    image, folder = tmp_path / "image", tmp_path / "fat"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(1 << 20)
    subprocess.run([tool, str(image)], check=True, capture_output=True)
    if subprocess.run(
        ["mount", "-o", "loop", str(image), str(folder)], capture_output=True, check=False
    ).returncode:
        pytest.skip("no loop mounts here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_folders_pipes_and_devices_are_refused_at_once(tmp_path):
    """What is no regular file is an OSError, and never waited for."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.jsonl"))
        for name in ("pipe.jsonl", "socket.jsonl", "."):
            for read_only in (False, True):
                with pytest.raises(OSError) as caught:
                    SessionManager.open(tmp_path / name, read_only=read_only)
                assert caught.value.filename is not None


def test_a_pipe_in_the_place_of_an_open_file_is_not_waited_for(path):
    """An append to a path that has become a pipe fails and changes nothing."""
    session = SessionManager.open(path)
    before = state(session)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError):
        session.append_message(user("mine"))
    assert state(session) == before


# ---- what must not be written


def test_newer_versions_are_read_and_never_written(tmp_path):
    """Version 4 and up: every reading works, every write raises, no byte changes."""
    path = tmp_path / "s.jsonl"
    data = line(header(version=4)) + text_of(3).partition(b"\n")[2]
    path.write_bytes(data)
    session = SessionManager.open(path)
    assert len(list(session.get_entries())) == 3
    writes = [
        lambda: session.append_message(user("x")),
        lambda: session.append_many([user("x")]),
        lambda: session.append_label_change("e0", "x"),
        lambda: session.branch_with_summary("e0", "x"),
        lambda: session.create_branched_session("e1"),
        lambda: SessionManager.fork_from(path, "/code", str(tmp_path / "new")),
    ]
    for write in writes:
        with pytest.raises(UnsupportedVersionError, match="version 4 is newer than 3"):
            write()
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["s.jsonl"]
    session.branch("e0")
    assert session.get_leaf_id() == "e0"


def test_read_only_sessions_write_nothing(path, tmp_path):
    """Every write of a read-only session raises, and nothing is created anywhere."""
    append_raw(path, b'{"torn')
    data = path.read_bytes()
    session = SessionManager.open(path, read_only=True)
    writes = [
        lambda: session.append_message(user("x")),
        lambda: session.append_many([user("x")]),
        lambda: session.append_session_info("x"),
        lambda: session.branch_with_summary("e0", "x"),
        lambda: session.create_branched_session("e1"),
    ]
    for write in writes:
        with pytest.raises(ReadOnlySessionError):
            write()
    session.close()
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["s.jsonl"]


def test_version_1_is_migrated_in_memory_for_readers_and_follows_the_file(tmp_path):
    """A read-only session of an old version shows the current one, writes nothing, and refreshes."""
    path = make_version_1(tmp_path / "s.jsonl")
    data = path.read_bytes()
    session = SessionManager.open(path, read_only=True)
    first = ids(session)
    assert len(set(first)) == 5
    more = {"type": "message", "timestamp": "2026-01-01T00:00:01.000Z", "message": user("more")}
    append_raw(path, line(more))
    assert session.refresh() == 1
    assert ids(session)[:5] == first
    assert session.get_leaf_entry()["message"]["content"] == "more"
    assert path.read_bytes() == data + line(more)


def test_migration_happens_once_and_keeps_owner_and_mode(tmp_path):
    """A writable open of an old version replaces the file at once, with its mode and through its link."""
    path, link = make_version_1(tmp_path / "s.jsonl"), tmp_path / "link.jsonl"
    link.symlink_to(path)
    path.chmod(0o640)
    with SessionManager.open(link) as session:
        assert session.get_header()["version"] == 3
        first = ids(session)
    assert link.is_symlink()
    assert mode(path) == 0o640
    data = path.read_bytes()
    with SessionManager.open(path) as session:
        assert ids(session) == first
    assert path.read_bytes() == data
    assert sorted(os.listdir(tmp_path)) == ["link.jsonl", "s.jsonl"]


# ---- left-overs


def test_temporary_files_of_the_dead_are_swept_and_others_left(path, tmp_path):
    """The next writable open removes temporary files that nobody has locked, and nothing else."""
    import fcntl

    dead, alive = tmp_path / ".0.sessiontree-tmp", tmp_path / ".3.sessiontree-tmp"
    for name in (dead, alive):
        name.write_bytes(b"half a session")
    (tmp_path / "x.sessiontree-tmp").touch()
    with open(alive, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        SessionManager.open(path, read_only=True)
        assert dead.exists()
        SessionManager.open(path)
        assert not dead.exists()
        assert alive.exists()
    link = tmp_path / "deeper"
    link.mkdir()
    (link / "l.jsonl").symlink_to(path)
    SessionManager.open(link / "l.jsonl")
    assert sorted(left_over(tmp_path)) == ["x.sessiontree-tmp"]


def test_a_temporary_name_that_leads_elsewhere_is_not_followed(path, tmp_path):
    """A link in the place of a temporary file neither loses its target nor is written through."""
    target = tmp_path / "precious"
    target.write_bytes(b"keep")
    for n in range(16):
        (tmp_path / f".{n}.sessiontree-tmp").symlink_to(target)
    (tmp_path / ".5.sessiontree-tmp").unlink()
    session = SessionManager.open(path)
    copy = session.create_branched_session("e1")
    assert ids_on_disk(tmp_path / os.path.basename(copy)) == ["e0", "e1"]
    assert target.read_bytes() == b"keep"


# ---- all or nothing


def bad():
    return {"role": "user", "content": object(), "timestamp": 1}


def test_values_that_json_lacks_change_nothing(path, tmp_path):
    """TypeError from any append: leaf, entries, labels, name, file and folder are as before."""
    session = SessionManager.open(path)
    session.append_label_change("e0", "first")
    before, data = state(session), path.read_bytes()
    acts = [
        lambda: session.append_message(bad()),
        lambda: session.append_many([user("fine"), bad()]),
        lambda: session.append_custom_entry("x", {"deep": [b"bytes"]}),
        lambda: session.append_compaction("s", "e0", 1, details={1: 2}),
        lambda: session.branch_with_summary("e0", "s", details=object()),
        lambda: session.append_label_change("e1", object()),
    ]
    for act in acts:
        with pytest.raises(TypeError):
            act()
        assert state(session) == before
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["s.jsonl"]


def test_a_first_message_that_json_lacks_leaves_no_file(tmp_path):
    """TypeError at the first flush leaves no file, and the session goes on from where it was."""
    session = SessionManager.create("/code", str(tmp_path))
    setup = session.append_model_change("p", "m")
    with pytest.raises(TypeError):
        session.append_message(bad())
    assert os.listdir(tmp_path) == []
    assert session.get_leaf_id() == setup
    session.append_message(user("fine"))
    assert len(os.listdir(tmp_path)) == 1


def test_a_session_file_that_cannot_be_opened_changes_nothing(path, tmp_path):
    """set_session_file on what is no session leaves the manager on its file, and the other file alone."""
    session = SessionManager.open(path)
    before = state(session)
    notes = tmp_path / "notes.txt"
    notes.write_bytes(b"my notes\n")
    for target, error in ((notes, InvalidSessionError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error):
            session.set_session_file(target)
        assert state(session) == before
    session.append_message(user("mine"))
    assert notes.read_bytes() == b"my notes\n"
    check_agrees(session, path)


def test_a_branched_session_that_cannot_be_written_changes_nothing(path, tmp_path):
    """create_branched_session into a folder that cannot be made leaves the manager on its file."""
    (tmp_path / "blocked").write_text("a file")
    session = SessionManager.open(path, str(tmp_path / "blocked" / "sub"))
    session.append_label_change("e0", "first")
    before = state(session)
    with pytest.raises(NotADirectoryError):
        session.create_branched_session("e1")
    assert state(session) == before
    assert sorted(os.listdir(tmp_path)) == ["blocked", "s.jsonl"]


def test_a_branch_with_summary_that_cannot_be_written_leaves_the_leaf(path):
    """Where the summary cannot be written, the leaf has not moved."""
    session = SessionManager.open(path)
    before = state(session)
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        session.branch_with_summary("e0", "summary")
    assert state(session) == before


def test_a_fork_of_a_source_that_is_cut_meanwhile_leaves_nothing(path, tmp_path, monkeypatch):
    """A source that shrinks after it was scanned is an error, and there is no copy."""
    from sessiontree import forks

    # With a byte order mark it is scanned first and copied afterwards.
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    plain = forks.fork_header

    def cut_first(*args):
        os.truncate(path, 100)
        return plain(*args)

    monkeypatch.setattr(forks, "fork_header", cut_first)
    with pytest.raises(SessionFileLostError):
        SessionManager.fork_from(path, "/code", str(tmp_path / "new"))
    assert os.listdir(tmp_path / "new") == []


def test_a_warning_that_is_an_error_comes_after_the_deed(path):
    """Where warnings are errors, the entry is written and the leaf has moved all the same."""
    session = SessionManager.open(path)
    append_raw(path, line(entry("f1", "e2")))
    with pytest.raises(ConcurrentWriterWarning):
        session.append_message(user("mine"))
    assert session.get_leaf_id() == ids_on_disk(path)[-1]
    session.append_message(user("more"))
    check_agrees(session, path)


# ---- the end


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_close_gives_the_descriptors_back_at_once(path):
    """close() ends all use of the file, whatever still refers to the session; then all raises."""
    before = open_files()
    session = SessionManager.open(path)
    session.append_message(user("mine"))
    entries, tree = session.get_entries(), session.get_tree()
    assert open_files() > before
    session.close()
    session.close()
    assert open_files() == before
    acts = [
        lambda: session.append_message(user("x")),
        session.get_leaf_id,
        session.refresh,
        session.flush,
        session.get_tree,
        session.get_entry_count,
        lambda: entries[0],
        lambda: list(entries),
        lambda: list(session.path_ids()),
        lambda: tree[0].entry,
        lambda: tree[0].children,
        lambda: tree[0].label,
    ]
    for act in acts:
        with pytest.raises(SessionClosedError):
            act()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_descriptors_are_not_inherited_by_programs(path):
    """All descriptors of a session are closed when another program is executed."""
    session = SessionManager.open(path)
    before = set(os.listdir("/proc/self/fd"))
    session.append_message(user("mine"))
    mine = [fd for fd in os.listdir("/proc/self/fd") if str(path) in read_link(fd)]
    assert len(mine) == 2
    assert not before & {fd for fd in mine if os.get_inheritable(int(fd))}
    assert not any(os.get_inheritable(int(fd)) for fd in mine)


def read_link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        return ""


def test_leaving_a_session_gives_its_descriptors_back(path, tmp_path):
    """Branching off or changing files does not pile up open files."""
    session = SessionManager.open(path)
    session.append_message(user("mine"))
    before = open_files()
    for _ in range(5):
        session.create_branched_session("e1")
        session.append_message(reply("x"))
        session.set_session_file(path)
        session.append_message(user("x"))
    assert open_files() == before
