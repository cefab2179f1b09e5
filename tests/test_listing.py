"""Finding and listing sessions."""

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import SessionManager, paths
from sessiontree.exceptions import InvalidSessionError
from sessiontree.listing import (
    SessionInfo,
    alist_all_sessions,
    alist_sessions,
    find_most_recent_session,
    find_recent_session,
    find_session_by_id,
    iter_sessions,
    list_all_sessions,
    list_sessions,
)

START = 1_704_067_200_000


def header(id, cwd="/w", **more):
    return {
        "type": "session",
        "version": 3,
        "id": id,
        "timestamp": "2024-01-01T00:00:00.000Z",
        "cwd": cwd,
        **more,
    }


def message(text, role="user", ms=None, **more):
    body = {"role": role, "content": text, **({} if ms is None else {"timestamp": START + ms}), **more}
    return {
        "type": "message",
        "id": "e",
        "parentId": None,
        "timestamp": "2024-01-01T00:00:00.000Z",
        "message": body,
    }


def write(path, *entries, mtime=None):
    """A session file of these entries; texts are lines as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [line if isinstance(line, str) else json.dumps(line) for line in entries]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return str(path)


@pytest.fixture(autouse=True)
def agent(tmp_path, monkeypatch):
    """An agent folder of our own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(paths.AGENT_DIR_VARIABLE, str(tmp_path / "agent"))
    return tmp_path / "agent"


def ids(infos):
    return [info.id for info in infos]


def many(folder, count):
    """Sessions whose messages are the newer the older their files are."""
    for n in range(count):
        write(folder / f"{n:04}.jsonl", header(str(n)), message("x", ms=1000 * (count - n)), mtime=10_000 + n)


# ---- what a listing shows


def test_info_shows_header_name_messages_and_times(tmp_path):
    """Every field comes from the file, of the name the latest counts."""
    path = write(
        tmp_path / "a.jsonl",
        header("A", parentSession="/p.jsonl", version=2),
        message(
            [{"type": "image"}, {"type": "text", "text": "hello"}, {"type": "text", "text": "you"}], ms=1
        ),
        {"type": "session_info", "name": "old"},
        message("hi", "assistant", 5000, stopReason="length"),
        "no json",
        {"type": "session_info", "name": "  new  "},
        message("out", "toolResult", 9000),
        mtime=12.5,
    )
    (info,) = list_all_sessions(tmp_path)
    assert (info.path, info.id, info.cwd, info.name) == (path, "A", "/w", "new")
    assert (info.parent_session_path, info.version) == ("/p.jsonl", 2)
    assert info.created == datetime(2024, 1, 1, tzinfo=UTC)
    assert info.modified == datetime(2024, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert (info.created_ms, info.modified_ms) == (START, START + 5000)
    assert (info.message_count, info.first_message) == (3, "hello you")
    assert info.all_messages_text == "hello you hi"
    assert (info.last_role, info.stop_reason) == ("toolResult", None)
    assert (info.skipped_lines, info.size, info.mtime_ns) == (1, os.path.getsize(path), 12_500_000_000)


def test_the_state_of_a_session_is_its_last_message(tmp_path):
    """Role and stop reason say whether a session waits, is done or failed."""
    write(tmp_path / "a.jsonl", header("A"), message("q"), message("a", "assistant", stopReason="error"))
    (info,) = list_all_sessions(tmp_path)
    assert (info.last_role, info.stop_reason) == ("assistant", "error")


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "message", "id": "x", "message": None},
        {"type": "message", "id": "x"},
        {"type": "message", "id": "x", "message": "text"},
        message(None),
        message([None]),
        message(["x"]),
        message({"a": 1}),
        message("x", role=5),
        {"type": "session_info", "name": 5},
        {"type": "session_info", "name": ["x"]},
        "5",
        "[]",
        "null",
    ],
    ids=json.dumps,
)
def test_an_odd_entry_contributes_nothing_and_the_rest_is_shown(tmp_path, odd):
    """One odd entry neither hides its session nor changes what the others say."""
    named = {"type": "session_info", "name": "kept"}
    write(tmp_path / "a.jsonl", header("A"), message("good", ms=1), named, odd, message("too", ms=9))
    (info,) = list_all_sessions(tmp_path)
    assert (info.first_message, info.all_messages_text, info.name) == ("good", "good too", "kept")
    assert info.modified_ms == START + 9
    assert info.skipped_lines == 0


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["a", None], None),
        (["a", ""], None),
        (["a", " \u00a0\ufeff"], None),
        (["a", 5], "a"),
        ([" a\u2028b "], "a\u2028b"),
        (["\ud800"], "\ud800"),
    ],
)
def test_the_latest_name_counts_and_blank_clears_it(tmp_path, names, shown):
    """Null and blank names clear, names that are no text are passed over, blanks are JavaScript's."""
    write(tmp_path / "a.jsonl", header("A"), *({"type": "session_info", "name": name} for name in names))
    assert list_all_sessions(tmp_path)[0].name == shown


def test_a_session_without_text_of_the_user_says_so(tmp_path):
    """The placeholder is pi's."""
    write(tmp_path / "a.jsonl", header("A"), message("", "user"), message("hi", "assistant"))
    assert list_all_sessions(tmp_path)[0].first_message == "(no messages)"


def test_lines_end_at_lf_only(tmp_path):
    """U+2028, U+2029 and CR inside a line are part of it."""
    (tmp_path / "a.jsonl").write_bytes(
        json.dumps(header("A", "/w\u2028x"), ensure_ascii=False).encode()
        + b"\r\n"
        + json.dumps(message("hello\u2028\u2029world"), ensure_ascii=False).encode()
    )
    (info,) = list_all_sessions(tmp_path)
    assert (info.cwd, info.first_message, info.message_count) == ("/w\u2028x", "hello\u2028\u2029world", 1)


def test_times_that_no_datetime_holds_are_none_and_keep_the_order_total(tmp_path):
    """A time behind the year 9999 sorts first and shows as None; one that JavaScript lacks is unknown."""
    write(tmp_path / "far.jsonl", header("far"), message("x", ms=8e15 - START))
    write(tmp_path / "none.jsonl", header("none", timestamp="bad"), message("x", timestamp=1e300), mtime=2)
    write(tmp_path / "near.jsonl", header("near", timestamp=None), message("x", ms=1))
    infos = list_all_sessions(tmp_path)
    assert ids(infos) == ["far", "near", "none"]
    assert infos[0].modified is None
    assert infos[0].modified_ms == 8_000_000_000_000_000
    assert infos[1].created == datetime(1970, 1, 1, tzinfo=UTC)
    assert infos[2].created is None
    assert infos[2].modified_ms == START  # the entry's own time


@given(st.lists(st.tuples(st.integers(-(10**12), 4 * 10**12), st.integers(0, 3)), max_size=8))
def test_datetimes_are_exact(tmp_path_factory, times):
    """Milliseconds since 1970 become the same aware datetime in UTC, before 1970 too."""
    for ms, _ in times:
        info = SessionInfo("/p", "i", created_ms=ms, modified_ms=ms)
        assert info.modified == info.created
        assert (info.modified - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000 == pytest.approx(
            ms, abs=1e-3
        )
        assert info.modified.utcoffset().total_seconds() == 0


def test_infos_are_values(tmp_path):
    """They are frozen, compare and hash by value, and survive pickling and copying."""
    write(tmp_path / "a.jsonl", header("A\ud800"), message("hello"), {"type": "session_info", "name": "n"})
    (info,) = list_all_sessions(tmp_path)
    for twin in (pickle.loads(pickle.dumps(info)), copy.copy(info), copy.deepcopy(info)):
        assert twin == info
        assert hash(twin) == hash(info)
        assert twin.all_messages_text == "hello"
    assert info != SessionInfo(info.path, "B")
    with pytest.raises(AttributeError):
        info.name = "other"
    assert repr(info).startswith("SessionInfo(path=")


# ---- which files


def test_a_listing_shows_exactly_what_opens(tmp_path):
    """Files that an open refuses are left out of lists, and the others are in."""
    texts = {
        "bom": "\ufeff" + json.dumps(header("bom")),
        "blank": "\n \n" + json.dumps(header("blank")),
        "garbage": "no json\n0\nnull\n" + json.dumps(header("garbage")),
        "number": json.dumps({**header("x"), "id": 5}),
        "without": '{"type":"session"}',
        "second": "{}\n" + json.dumps(header("second")),
        "array": "[]\n" + json.dumps(header("array")),
        "title": '{"type":"title"}\n' + json.dumps(header("title")),
        "empty": "",
        "torn": json.dumps(header("torn"))[:-3],
        "v4": json.dumps(header("v4", version=4)),
        "big": "\n" * (1 << 20) + json.dumps(header("big")),
    }
    for lenient in (False, True):
        opened = []
        for name, text in texts.items():
            path = tmp_path / f"{name}.jsonl"
            path.write_text(text, encoding="utf-8")
            try:
                with SessionManager.open(str(path), read_only=True, lenient_header=lenient):
                    opened.append(name)
            except InvalidSessionError:
                pass
        troubles = {}
        infos = list_all_sessions(tmp_path, lenient_header=lenient, on_error=troubles.__setitem__)
        assert sorted(ids(infos)) == sorted(opened)
        assert len(troubles) == len(texts) - len(opened)
        assert all(isinstance(error, InvalidSessionError) for error in troubles.values())
    assert "title" in opened


def test_a_title_line_before_the_header_is_the_name(tmp_path):
    """With lenient_header, oh-my-pi's title names the session, and its text can be read."""
    title = {"type": "title", "v": 1, "title": "Fix the build", "pad": " " * 40}
    write(tmp_path / "a.jsonl", title, header("A"), message("hello"))
    assert list_all_sessions(tmp_path) == []
    (info,) = list_all_sessions(tmp_path, lenient_header=True)
    assert (info.id, info.name, info.all_messages_text) == ("A", "Fix the build", "hello")
    assert next(iter_sessions(tmp_path, lenient_header=True)) == info


def test_each_file_stands_alone_and_errors_are_told(tmp_path):
    """A dangling link, a folder and a pipe with a session's name hide nothing."""
    good = write(tmp_path / "good.jsonl", header("good"), mtime=1)
    (tmp_path / "dangling.jsonl").symlink_to("gone")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for how in ({}, {"limit": 5}, {"on_progress": lambda *_: None}):
        troubles = {}
        assert ids(list_sessions("/w", tmp_path, on_error=troubles.__setitem__, **how)) == ["good"]
        assert {os.path.basename(path): type(error) for path, error in troubles.items()} == {
            "dangling.jsonl": FileNotFoundError,
            "folder.jsonl": IsADirectoryError,
            "pipe.jsonl": OSError,
        }
        assert all(error.filename == path for path, error in troubles.items())
    troubles = {}
    assert find_most_recent_session(tmp_path, on_error=troubles.__setitem__) == good
    assert "dangling.jsonl" in str(troubles)
    with SessionManager.continue_recent("/w", str(tmp_path)) as session:
        assert session.get_session_id() == "good"


def test_a_folder_that_is_missing_is_empty_and_one_that_cannot_be_read_is_an_error(tmp_path):
    """An error is not an empty list."""
    assert list_sessions("/w") == []
    assert list_all_sessions() == []
    assert list(iter_sessions()) == []
    assert find_session_by_id("/w", "A") is None
    assert find_recent_session("/w") is None
    file = tmp_path / "file"
    file.write_text("")
    for call in (
        lambda: list_sessions("/w", file),
        lambda: list_all_sessions(file),
        lambda: list(iter_sessions(file)),
        lambda: find_session_by_id("/w", "A", file),
        lambda: find_most_recent_session(file),
    ):
        with pytest.raises(NotADirectoryError) as caught:
            call()
        assert caught.value.filename == str(file)


def test_listing_creates_and_changes_nothing(tmp_path, agent):
    """No folder appears, and a torn tail stays as it is."""
    list_sessions("/w")
    list_all_sessions()
    find_recent_session("/w")
    assert not agent.exists()
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(header("A")) + '\n{"type":"mess', encoding="utf-8")
    before = path.read_bytes()
    (info,) = list_all_sessions(tmp_path)
    assert info.skipped_lines == 0
    assert path.read_bytes() == before


# ---- whose sessions


def test_a_given_folder_is_filtered_by_the_header(tmp_path):
    """Only sessions of the directory are listed, however its path is written."""
    for name, cwd in [
        ("a", "/w"),
        ("b", "/w/"),
        ("c", "/x/../w"),
        ("d", "/other"),
        ("e", ""),
        ("f", 5),
        ("g", "w"),
    ]:
        write(tmp_path / f"{name}.jsonl", header(name, cwd))
    write(tmp_path / "h.jsonl", header("h", "file://elsewhere/w"))
    assert sorted(ids(list_sessions("/./w", tmp_path))) == ["a", "b", "c"]
    assert sorted(ids(iter_sessions(tmp_path, cwd="/w"))) == ["a", "b", "c"]
    assert len(list_all_sessions(tmp_path)) == 8


def test_the_default_folder_leaves_out_only_strangers_with_the_same_folder_name(agent):
    """Moved projects and headers without a directory stay; /x/a-b does not see sessions of /x/a/b."""
    folder = agent / "sessions" / "--x-a-b--"
    for n, (name, cwd) in enumerate(
        [
            ("own", "/x/a-b"),
            ("moved", "/old/place"),
            ("none", ""),
            ("odd", 5),
            ("url", "file://h/p"),
            ("stranger", "/x/a/b"),
        ]
    ):
        write(folder / f"{name}.jsonl", header(name, cwd), mtime=n)
    mine = ["moved", "none", "odd", "own", "url"]
    assert sorted(ids(list_sessions("/x/a-b"))) == mine
    assert sorted(ids(list_sessions("/x/a-b", folder))) == mine
    assert sorted(ids(list_sessions("/x/a/b"))) == sorted({*mine, "stranger"} - {"own"})
    assert find_recent_session("/x/a-b").endswith("url.jsonl")
    assert find_recent_session("/x/a/b").endswith("stranger.jsonl")
    assert find_session_by_id("/x/a-b", "stranger") is None
    assert find_session_by_id("/x/a/b", "stranger").endswith("stranger.jsonl")


# ---- order, limit, progress


def test_lists_go_by_messages_or_by_files(tmp_path):
    """Sorted by the newest message, or on request by the file's time."""
    many(tmp_path, 12)
    by_message = [str(n) for n in range(12)]
    assert ids(list_sessions("/w", tmp_path)) == by_message
    assert ids(list_sessions("/w", tmp_path, sort="mtime")) == by_message[::-1]
    assert ids(iter_sessions(tmp_path)) == by_message[::-1]
    with pytest.raises(ValueError, match="sort must be"):
        list_sessions("/w", tmp_path, sort="name")


def test_equal_times_are_ordered_by_name_backwards(tmp_path):
    """The order is total, and the same with and without progress."""
    for name in ["a", "B", "é", "z", "10", "9"]:
        write(tmp_path / f"{name}.jsonl", header(name), mtime=1)
    backwards = ["é", "z", "a", "B", "9", "10"]
    assert ids(list_sessions("/w", tmp_path)) == backwards
    assert ids(list_sessions("/w", tmp_path, on_progress=lambda *_: None)) == backwards
    assert ids(iter_sessions(tmp_path)) == backwards
    assert find_most_recent_session(tmp_path).endswith("10.jsonl")


def test_a_limit_takes_the_newest_files_and_then_sorts(tmp_path):
    """Only the files that are wanted are read, and only those that belong count."""
    many(tmp_path, 30)
    for n in range(5):
        write(tmp_path / f"other{n}.jsonl", header("other", "/other"), mtime=20_000 + n)
    write(tmp_path / "old.jsonl", "{}", mtime=1)
    troubles = []
    how = {"on_error": lambda *trouble: troubles.append(trouble)}
    assert ids(list_sessions("/w", tmp_path, limit=3, **how)) == ["27", "28", "29"]
    assert troubles == []
    assert len(list_sessions("/w", tmp_path, limit=100, **how)) == 30
    assert len(troubles) == 1
    assert list_sessions("/w", tmp_path, limit=0) == []
    with pytest.raises(ValueError, match="-1"):
        list_sessions("/w", tmp_path, limit=-1)


def test_progress_counts_every_file_and_publishes_now_and_then(tmp_path):
    """Sessions come with the first, every tenth and the last call, sorted, and only those that belong."""
    many(tmp_path, 24)
    write(tmp_path / "other.jsonl", header("other", "/other"), mtime=0)
    calls = []
    infos = list_sessions("/w", tmp_path, lambda *call: calls.append(call))
    assert [call[:2] for call in calls] == [(n, 25) for n in range(1, 26)]
    assert [call[0] for call in calls if call[2] is not None] == [1, 10, 20, 25]
    assert [len(call[2]) for call in calls if call[2] is not None] == [1, 10, 20, 24]
    assert ids(calls[9][2]) == [str(n) for n in range(14, 24)]
    assert list(calls[-1][2]) == infos
    assert calls[-1][2][:2] == infos[:2]


def test_all_folders_are_listed_with_progress_by_the_hundred(agent):
    """The default folders of all directories, one level deep, links to folders included."""
    for n in range(3):
        many(agent / "sessions" / f"--{n}--", 35)
    write(agent / "sessions" / "own.jsonl", header("own"))
    write(agent / "sessions" / "--0--" / "deep" / "a.jsonl", header("deep"))
    (agent / "sessions" / "--link--").symlink_to("--0--")
    (agent / "sessions" / "--gone--").symlink_to("nowhere")
    calls, troubles = [], []
    infos = list_all_sessions(None, lambda *call: calls.append(call), on_error=lambda *t: troubles.append(t))
    assert len(infos) == 140
    assert [call[0] for call in calls if call[2] is not None] == [1, 100, 140]
    assert [type(error) for _, error in troubles] == [FileNotFoundError]
    assert sorted(list_all_sessions(), key=repr) == sorted(infos, key=repr)


def test_iterating_reads_no_more_than_it_must(tmp_path):
    """Whoever stops early has not read the rest."""
    many(tmp_path, 50)
    write(tmp_path / "bad.jsonl", "{}", mtime=1)
    troubles = []
    first = next(iter_sessions(tmp_path, on_error=lambda *trouble: troubles.append(trouble)))
    assert first.id == "49"
    assert troubles == []


def test_iterating_takes_files_and_folders(tmp_path):
    """A root may hold files, folders with files, or both."""
    many(tmp_path / "x", 3)
    write(tmp_path / "own.jsonl", header("own"), mtime=1)
    assert ids(iter_sessions(tmp_path)) == ["2", "1", "0", "own"]


# ---- finding


def test_find_by_id_wants_the_whole_id(tmp_path):
    """Prefixes, other cases and ids that are no text find nothing."""
    path = write(tmp_path / "x_Only.jsonl", header("Only"))
    assert find_session_by_id("/w", "Only", tmp_path) == path
    for id in ("only", "On", "", "nly", None, 5):
        assert find_session_by_id("/w", id, tmp_path) is None


def test_find_by_id_believes_the_header_not_the_name(tmp_path):
    """A name tells where to look first; the same id twice is the first by name."""
    write(tmp_path / "0_b.jsonl", header("a"))
    first = write(tmp_path / "1_b.jsonl", header("b"))
    write(tmp_path / "2_b.jsonl", header("b"))
    other = write(tmp_path / "3.jsonl", header("c"))
    assert find_session_by_id("/w", "b", tmp_path) == first
    assert find_session_by_id("/w", "c", tmp_path) == other
    assert find_session_by_id("/other", "b", tmp_path) is None


def test_finding_passes_over_headers_beyond_the_limit(tmp_path):
    """A header that ends behind the first mebibyte is listed and not found."""
    write(tmp_path / "a.jsonl", header("big", pad="x" * (1 << 20)))
    assert ids(list_sessions("/w", tmp_path)) == ["big"]
    assert find_session_by_id("/w", "big", tmp_path) is None
    assert find_most_recent_session(tmp_path) is None


def test_the_most_recent_session_goes_by_file_time(tmp_path):
    """Sub-millisecond times count, and what is no session is passed over."""
    write(tmp_path / "a.jsonl", header("a"), mtime=5)
    newest = write(tmp_path / "b.jsonl", header("b"))
    os.utime(newest, ns=(0, 5_000_000_100))
    write(tmp_path / "c.jsonl", "{}", mtime=9)
    assert find_most_recent_session(tmp_path) == newest
    assert find_most_recent_session(tmp_path, "/other") is None
    assert find_most_recent_session(tmp_path, "/w") == newest


# ---- stopping


def test_a_cancelled_listing_raises(tmp_path):
    """Set before, or by a callback, the event ends the listing at once."""
    many(tmp_path, 30)
    cancel = threading.Event()
    seen = []

    def on_progress(loaded, _total, _partial):
        seen.append(loaded)
        if loaded == 3:
            cancel.set()

    with pytest.raises(CancelledError):
        list_sessions("/w", tmp_path, on_progress, cancel=cancel)
    assert seen == [1, 2, 3]
    with pytest.raises(CancelledError):
        list_all_sessions(tmp_path, cancel=cancel)
    with pytest.raises(CancelledError):
        next(iter_sessions(tmp_path, cancel=cancel))


def test_what_a_callback_raises_comes_out(tmp_path):
    """An error in a callback is the caller's."""
    many(tmp_path, 3)
    with pytest.raises(ZeroDivisionError):
        list_sessions("/w", tmp_path, lambda *_: 1 / 0)

    class Broken:
        def is_set(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list_sessions("/w", tmp_path, cancel=Broken())


def test_ctrl_c_ends_a_listing_soon(tmp_path):
    """The signal is noticed while files are being read."""
    folder = tmp_path / "s"
    folder.mkdir()
    body = (
        json.dumps(header("A"))
        + "\n"
        + "".join(json.dumps(message("x" * 1000)) + "\n" for _ in range(30_000))
    )
    (folder / "0.jsonl").write_text(body)
    for n in range(1, 60):
        os.link(folder / "0.jsonl", folder / f"{n}.jsonl")
    code = f"""
import os, signal, threading, time
from sessiontree.listing import list_all_sessions
list_all_sessions({str(tmp_path)!r})
threading.Timer(0.05, lambda: (sent.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT))).start()
sent = []
try:
    list_all_sessions({str(folder)!r})
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert float(done.stdout) < 1.0


def test_listing_on_a_thread_of_its_own(tmp_path, agent):
    """The awaited result is that of the blocking call, and callbacks run in the loop."""
    many(agent / "sessions" / "--w--", 12)
    threads = set()

    async def run():
        def on_progress(*_):
            threads.add(threading.current_thread())

        return await alist_sessions("/w", on_progress=on_progress), await alist_all_sessions(limit=2)

    async def by_manager():
        return await SessionManager.alist("/w"), await SessionManager.alist_all(limit=2)

    some, two = asyncio.run(run())
    assert asyncio.run(by_manager()) == (some, two)
    assert some == list_sessions("/w")
    assert two == list_all_sessions(limit=2)
    assert threads == {threading.current_thread()}
    with pytest.raises(NotADirectoryError):
        asyncio.run(alist_all_sessions(__file__))


class Unhurried:
    """An event that is never set, and takes its time to say so: a listing with it is under way for seconds."""

    def is_set(self):
        time.sleep(0.01)
        return False


def test_a_cancelled_task_has_ended_its_thread(tmp_path):
    """When the cancellation goes on, no thread of the listing is left."""
    many(tmp_path, 400)
    before = threading.active_count()

    async def run():
        progress = {"on_progress": lambda *_: None}
        task = asyncio.create_task(alist_all_sessions(tmp_path, cancel=Unhurried(), **progress))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert threading.active_count() == before

    asyncio.run(run())


def test_listing_in_a_forked_child(tmp_path):
    """A listing before a fork leaves nothing that hangs the child."""
    many(tmp_path, 20)
    code = f"""
import os
from sessiontree.listing import list_all_sessions
assert len(list_all_sessions({str(tmp_path)!r})) == 20
child = os.fork()
if child == 0:
    os._exit(len(list_all_sessions({str(tmp_path)!r})))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "20"


def test_listing_needs_few_open_files(agent):
    """Hundreds of folders and files are listed under a limit of 64 open files."""
    for n in range(300):
        write(agent / "sessions" / f"--{n}--" / "a.jsonl", header(str(n)))
    code = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from sessiontree.listing import iter_sessions, list_all_sessions
assert len(list(iter_sessions())) == 300
print(len(list_all_sessions(None, lambda *_: None)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "300"
