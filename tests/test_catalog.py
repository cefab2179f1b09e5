"""The catalog keeps up with the files: new, grown, replaced, torn, gone, unreadable; and is never lost."""

import json
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessiontree import SessionManager, paths
from sessiontree.catalog import Catalog, _scan, catalog_path
from sessiontree.listing import list_all_sessions
from strategies import damaged, doubles, strings, values

STAMP = "2024-01-01T00:00:00.000Z"
START = 1_704_067_200_000


def header(id="s", **more):
    return {"type": "session", "version": 3, "id": id, "timestamp": STAMP, "cwd": "/w", **more}


def entry(id, text, role="user", **more):
    message = {"role": role, "content": [{"type": "text", "text": text}], **more}
    return {"type": "message", "id": id, "parentId": None, "timestamp": STAMP, "message": message}


def lines(*entries):
    return "".join(f"{json.dumps(e) if not isinstance(e, str) else e}\n" for e in entries).encode()


def write(path, *entries, tail=b"", age=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*entries) + tail)
    if age is not None:
        then = time.time() - age
        os.utime(path, (then, then))
    return path


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def ids(catalog, query, **how):
    return sorted(hit.entry_id for hit in catalog.search(query, **how))


def counts(refreshed):
    return (refreshed.added, refreshed.grown, refreshed.replaced, refreshed.removed)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "sessions").mkdir()
    return tmp_path / "sessions"


@pytest.fixture
def catalog(tmp_path):
    with Catalog(tmp_path / "cache" / "catalog.db") as made:
        yield made


# ---- what the catalog has


def test_sessions_are_those_of_the_listing(root, catalog):
    """A session shows in the catalog what it shows in a listing, field by field."""
    write(
        root / "a.jsonl",
        header("A", parentSession="/p.jsonl"),
        entry("1", "first", timestamp=START + 1),
        "no json",
        entry("2", "answer", "assistant", timestamp=START + 5000, stopReason="stop"),
        {"type": "session_info", "id": "3", "name": " named "},
    )
    write(root / "--w--" / "b.jsonl", header("B"))
    write(root / "--w--" / "no session.jsonl", {"type": "other"})
    write(root / "--w--" / "deeper" / "c.jsonl", header("C"))
    catalog.refresh([root])
    listed = list_all_sessions(root) + list_all_sessions(root / "--w--")
    assert {s.info.path: s.info for s in catalog.sessions()} == {info.path: info for info in listed}
    assert len(listed) == 2


odd = st.one_of(
    values(max_leaves=3), st.sampled_from(["user", "assistant", "toolResult", "text", STAMP, "2", 0])
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "role": odd,
        "content": st.one_of(
            odd, st.lists(st.fixed_dictionaries({"type": st.just("text")}, optional={"text": odd}))
        ),
        "timestamp": st.one_of(odd, doubles()),
        "stopReason": odd,
        "model": odd,
        "usage": st.one_of(odd, st.dictionaries(st.sampled_from(["input", "output", "cost"]), odd)),
    },
)
entries = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "message", "session_info", "usage", "compaction", "label", "x"])},
    optional={
        "id": odd,
        "timestamp": odd,
        "message": st.one_of(messages, odd),
        "name": odd,
        "summary": odd,
        "usage": odd,
        "label": odd,
    },
)
headers = st.fixed_dictionaries(
    {"type": st.just("session"), "id": st.one_of(st.just("s"), strings())},
    optional={
        "version": odd.filter(lambda v: not isinstance(v, str) or v == "2"),
        "timestamp": odd,
        "cwd": odd,
        "parentSession": odd,
    },
)


def text_of(value):
    from sessiontree import jsontext

    return value if isinstance(value, bytes) else jsontext.dumps(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    before=st.lists(st.sampled_from([b"", b"nope", b"0", b"null", b" \r"]), max_size=2),
    head=headers,
    rest=st.lists(st.one_of(entries, damaged().map(lambda b: b.replace(b"\n", b" "))), max_size=8),
    cuts=st.lists(st.floats(0, 1), max_size=3),
)
def test_odd_files_show_what_the_listing_shows_however_they_grew(tmp_path_factory, before, head, rest, cuts):
    """Whatever lines a file has, and in whatever pieces it was seen growing, the facts are the listing's."""
    folder = tmp_path_factory.mktemp("odd")
    path = folder / "a.jsonl"
    data = b"\n".join([*before, *map(text_of, [head, *rest])]) + b"\n"
    with Catalog(":memory:") as catalog:
        for cut in [*sorted(int(c * len(data)) for c in cuts), len(data)]:
            path.write_bytes(data[:cut])
            os.utime(path, ns=(0, 0) if cut < len(data) else (5, 10**18))
            catalog.refresh([folder])
        found = [s.info for s in catalog.sessions()]
        listed = list_all_sessions(folder)
        assert [shown(info) for info in found] == [shown(info) for info in listed]
        grown = [(h.entry_id, h.role, h.snippet) for h in catalog.search("^", regex=True, limit=None)]
    with Catalog(":memory:") as fresh:
        fresh.refresh([folder])
        anew = [(h.entry_id, h.role, h.snippet) for h in fresh.search("^", regex=True, limit=None)]
        assert [s.used for s in fresh.sessions()] == [s.used for s in fresh.sessions()]
    assert sorted(grown) == sorted(anew)


def shown(info):
    """What a catalog can keep of a listing's values: lone surrogates and marks become others."""
    texts = [info.id, info.cwd, info.name, info.parent_session_path, info.last_role, info.stop_reason]
    kept = [None if t is None else kept_text(t) for t in [*texts, info.first_message[:4096]]]
    numbers = (info.created_ms, info.modified_ms, info.message_count, info.skipped_lines, info.size)
    return (*kept, *numbers, info.version, info.mtime_ns)


def kept_text(text):
    for mark in "\0\x02\x03":
        text = text.replace(mark, " ")
    return text.encode("utf-8", "replace").decode()


def test_the_catalog_is_private(root, catalog):
    """Nobody else can read the file, nor list its folder."""
    write(root / "a.jsonl", header(), entry("1", "secret"))
    catalog.refresh([root])
    for name in os.listdir(os.path.dirname(catalog.path)):
        mode = os.stat(os.path.join(os.path.dirname(catalog.path), name)).st_mode
        assert stat.S_IMODE(mode) == 0o600, name
    assert stat.S_IMODE(os.stat(os.path.dirname(catalog.path)).st_mode) == 0o700


def test_the_default_place_is_the_cache_folder(tmp_path, monkeypatch):
    """SESSIONTREE_CACHE_DIR says where the catalog lies, and pi's folders are what is looked at."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv(paths.AGENT_DIR_VARIABLE, str(tmp_path / "agent"))
    write(tmp_path / "agent" / "sessions" / "--w--" / "a.jsonl", header(), entry("1", "tea"))
    with Catalog() as catalog:
        catalog.refresh()
        assert ids(catalog, "tea") == ["1"]
        assert catalog.path == catalog_path() == str(tmp_path / "mine" / os.path.basename(catalog_path()))


# ---- keeping up


def test_only_what_changed_is_read(root, catalog):
    """An unchanged file costs nothing, a grown one only its new bytes."""
    a, b = write(root / "a.jsonl", header("A"), entry("1", "one")), write(root / "b.jsonl", header("B"))
    first = catalog.refresh([root])
    assert counts(first) == (2, 0, 0, 0)
    assert first.bytes_read == a.stat().st_size + b.stat().st_size
    again = catalog.refresh([root])
    assert (counts(again), again.bytes_read, again.files) == ((0, 0, 0, 0), 0, 2)
    append(a, lines(entry("2", "two")))
    grown = catalog.refresh([root])
    assert (counts(grown), grown.bytes_read) == ((0, 1, 0, 0), len(lines(entry("2", "two"))))
    assert ids(catalog, "one OR two") == ["1", "2"]


def test_a_torn_tail_is_read_when_it_is_whole(root, catalog):
    """A half-written line hides nothing that was there before, and is not taken for an entry."""
    path = write(root / "a.jsonl", header(), entry("1", "one"))
    catalog.refresh([root])
    whole = lines(entry("2", "two"))
    for cut in (1, len(whole) // 2, len(whole) - 2):
        path.write_bytes(lines(header(), entry("1", "one")) + whole[:cut])
        catalog.refresh([root])
        assert ids(catalog, "one OR two") == ["1"]
        (session,) = catalog.sessions()
        assert (session.info.message_count, session.info.skipped_lines) == (1, 0)
    path.write_bytes(lines(header(), entry("1", "one")) + whole)
    catalog.refresh([root])
    assert ids(catalog, "one OR two") == ["1", "2"]


def test_an_entry_without_newline_counts_once(root, catalog):
    """A last line that is whole but for its LF is shown, and not again once the LF has come."""
    path = write(root / "a.jsonl", header(), tail=lines(entry("1", "one"))[:-1])
    catalog.refresh([root])
    assert ids(catalog, "one") == ["1"]
    append(path, b"\n" + lines(entry("2", "two")))
    catalog.refresh([root])
    assert ids(catalog, "one OR two") == ["1", "2"]
    assert catalog.sessions()[0].info.message_count == 2


def test_a_file_being_rewritten_stays_until_it_is_whole(root, catalog):
    """A writer that cuts the file and writes it anew does not make the session disappear meanwhile."""
    path = write(root / "a.jsonl", header(), entry("1", "one"), entry("2", "two"))
    catalog.refresh([root])
    for half in (b"", lines(header())[:30], lines(header()) + b'{"type":"mess'):
        path.write_bytes(half)
        catalog.refresh([root])
        assert ids(catalog, "one OR two") == ["1", "2"]
    path.write_bytes(lines(header(), entry("1", "three"), entry("2", "four")))
    assert counts(catalog.refresh([root])) == (0, 0, 1, 0)
    assert ids(catalog, "one OR two") == []
    assert ids(catalog, "three OR four") == ["1", "2"]


def test_a_torn_file_that_nobody_writes_any_more_is_taken_as_it_is(root, catalog):
    """After a minute a torn file is what it is."""
    path = write(root / "a.jsonl", header(), entry("1", "one"), entry("2", "two"))
    catalog.refresh([root])
    write(path, header(), entry("2", "two"), tail=b'{"type"')
    catalog.refresh([root])
    assert ids(catalog, "one OR two") == ["1", "2"]
    then = time.time() - 120
    os.utime(path, (then, then))
    catalog.refresh([root])
    assert ids(catalog, "one OR two") == ["2"]


@pytest.mark.parametrize("longer", [False, True])
def test_a_replaced_file_is_read_anew(root, catalog, longer):
    """Another file under the name, or other bytes in it, are noticed even if it only seems to have grown."""
    path = write(root / "a.jsonl", header(), entry("1", "one"))
    catalog.refresh([root])
    new = lines(header(), entry("1", "two"), *([entry("2", "three")] if longer else []))
    path.write_bytes(new)
    os.utime(path, ns=(0, 10**18))
    assert counts(catalog.refresh([root])) == (0, 0, 1, 0)
    assert ids(catalog, "one") == []
    assert ids(catalog, "two") == ["1"]


def test_gone_sessions_disappear(root, catalog):
    """A removed file and a removed folder take their sessions with them, moved ones are found again."""
    write(root / "--x--" / "a.jsonl", header("A"), entry("1", "tea"))
    write(root / "--y--" / "b.jsonl", header("B"), entry("2", "tea"))
    write(root / "--y--" / "c.jsonl", header("C"), entry("3", "tea"))
    catalog.refresh([root])
    os.remove(root / "--y--" / "c.jsonl")
    os.rename(root / "--x--", root / "--z--")
    report = catalog.refresh([root])
    assert counts(report) == (1, 0, 0, 2)
    assert ids(catalog, "tea") == ["1", "2"]
    os.remove(root / "--y--" / "b.jsonl")
    catalog.refresh([root])
    assert ids(catalog, "tea") == ["1"]
    assert catalog.totals() == []
    os.rename(root, root.parent / "elsewhere")
    catalog.refresh([root])
    assert catalog.sessions() == []


def test_a_file_that_is_no_session_any_more_disappears(root, catalog):
    """Whole lines without a header are no session."""
    path = write(root / "a.jsonl", header(), entry("1", "tea"))
    catalog.refresh([root])
    write(path, {"type": "other"})
    assert counts(catalog.refresh([root])) == (0, 0, 0, 1)
    assert catalog.search("tea") == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user without all rights")
def test_what_cannot_be_read_is_not_gone_by_permission(root, catalog):
    """A folder that may not be read keeps its sessions."""
    write(root / "--x--" / "a.jsonl", header(), entry("1", "tea"))
    catalog.refresh([root])
    (root / "--x--").chmod(0)
    try:
        report = catalog.refresh([root])
    finally:
        (root / "--x--").chmod(0o700)
    assert (report.complete, report.failed) == (False, 1)
    assert ids(catalog, "tea") == ["1"]


def test_what_cannot_be_read_is_not_gone(root, catalog, monkeypatch):
    """A folder or file that gives an error keeps its sessions, is reported, and is looked at again."""
    path = write(root / "--x--" / "a.jsonl", header(), entry("1", "tea"))
    catalog.refresh([root])
    look_at, troubles = _scan.look_at, []

    def failing(folder):
        if str(folder).endswith("--x--"):
            raise PermissionError(13, "Permission denied", folder)
        return look_at(folder)

    monkeypatch.setattr(_scan, "look_at", failing)
    report = catalog.refresh([root], on_error=lambda *what: troubles.append(what[0]))
    assert (report.complete, report.failed, troubles) == (False, 1, [str(root / "--x--")])
    monkeypatch.undo()
    assert ids(catalog, "tea") == ["1"]
    os.remove(path)
    os.mkdir(path)
    report = catalog.refresh([root], on_error=lambda *what: troubles.append(what[0]))
    assert report.failed == 1
    assert troubles[1:] == [str(path)]
    assert ids(catalog, "tea") == ["1"]


def test_other_roots_are_left_alone(tmp_path, catalog):
    """A refresh of one folder says nothing about sessions elsewhere."""
    write(tmp_path / "one" / "a.jsonl", header("A"), entry("1", "tea"))
    write(tmp_path / "two" / "b.jsonl", header("B"), entry("2", "tea"))
    catalog.refresh([tmp_path / "one", tmp_path / "two"])
    os.remove(tmp_path / "two" / "b.jsonl")
    catalog.refresh([tmp_path / "one"])
    assert ids(catalog, "tea") == ["1", "2"]
    assert ids(catalog, "tea", roots=[tmp_path / "one"]) == ["1"]


def test_names_need_not_be_text(root, catalog):
    """A file whose name is no UTF-8 is a session like all others."""
    name = b"caf\xe9.jsonl"
    try:
        (root / os.fsdecode(name)).write_bytes(lines(header(), entry("1", "tea")))
    except OSError:
        pytest.skip("this file system wants text")
    catalog.refresh([root])
    assert counts(catalog.refresh([root])) == (0, 0, 0, 0)
    (hit,) = catalog.search("tea")
    assert os.fsencode(hit.path) == os.fsencode(root) + b"/" + name


def test_old_files_give_the_ids_that_an_open_gives(root, catalog):
    """Entries of version 1 have no ids; a hit names the one that opening the session shows."""
    old = [{"type": "session", "id": "s", "timestamp": STAMP, "cwd": "/w"}]
    old += [
        {"type": "message", "timestamp": STAMP, "message": {"role": "user", "content": f"tea {n}"}}
        for n in range(3)
    ]
    path = write(root / "a.jsonl", *old)
    catalog.refresh([root])
    with SessionManager.open(str(path), read_only=True) as session:
        assert ids(catalog, "tea") == sorted(e["id"] for e in session.get_entries())


# ---- interrupted, damaged, shared, full


def test_a_refresh_can_be_cancelled_and_goes_on_later(root, catalog, monkeypatch):
    """What was read before the end is kept, and the next refresh does the rest."""
    monkeypatch.setattr("sessiontree.catalog._update._BATCH_FILES", 2)
    for n in range(10):
        write(root / f"{n}.jsonl", header(str(n)), entry(str(n), "tea"))
    stop = threading.Event()
    with pytest.raises(CancelledError):
        catalog.refresh([root], on_progress=lambda *now: stop.set(), cancel=stop)
    assert len(catalog.search("tea")) == 2
    progress = []
    report = catalog.refresh([root], on_progress=lambda *now: progress.append(now))
    assert report.added == 8
    assert len(catalog.search("tea")) == 10
    assert progress == sorted(progress)
    assert progress[-1][0] <= progress[-1][1] == sum(f.stat().st_size for f in root.iterdir())


def test_a_big_file_is_taken_in_piece_by_piece(root, catalog, monkeypatch):
    """Interrupted in the middle of a file, a refresh goes on there."""
    monkeypatch.setattr("sessiontree.catalog._update._BATCH_CHARS", 500)
    write(root / "a.jsonl", header(), *(entry(str(n), f"tea {n}") for n in range(50)))
    stop = threading.Event()
    with pytest.raises(CancelledError):
        catalog.refresh([root], on_progress=lambda *now: stop.set(), cancel=stop)
    some = len(catalog.search("tea"))
    assert 0 < some < 50
    assert catalog.refresh([root]).grown == 1
    assert ids(catalog, "tea", limit=None) == sorted(map(str, range(50)))
    assert catalog.sessions()[0].info == list_all_sessions(root)[0]


@pytest.mark.parametrize("damage", ["head", "middle", "empty", "text", "tables"])
def test_a_damaged_catalog_is_begun_anew(root, tmp_path, damage):
    """Whatever happens to the file, a search gives what the sessions hold, without being told to."""
    for n in range(50):
        write(root / f"{n}.jsonl", header(str(n)), entry(str(n), f"tea {n} " + "word " * 300))
    path = tmp_path / "catalog.db"
    with Catalog(path) as catalog:
        catalog.refresh([root])
        catalog.compact()
    ruin(path, damage)
    with Catalog(path) as catalog:
        catalog.refresh([root])
        assert len(catalog.search("tea", limit=None)) == 50
        assert catalog.check() == []
        catalog.refresh([root])
    with Catalog(path) as again:
        assert again.refresh([root]).bytes_read == 0
        assert len(again.search("tea", limit=None)) == 50


def ruin(path, damage):
    size = path.stat().st_size
    if damage == "tables":
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE spend")
        connection.close()
        return
    with open(path, "r+b") as file:
        if damage == "head":
            file.write(b"\xff" * 4096)
        elif damage == "middle":
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        elif damage == "empty":
            file.truncate(0)
        else:
            file.truncate(0)
            file.write(b"this is no database, but it is long enough to be taken for one" * 100)


def test_damage_that_is_met_while_searching_is_mended_at_once(root, catalog):
    """A search in a catalog that is damaged under it refreshes the folders it had, and answers."""
    for n in range(30):
        write(root / f"{n}.jsonl", header(str(n)), entry(str(n), "tea " + "word " * 300))
    catalog.refresh([root])
    catalog.compact()
    before = catalog.path
    catalog.close()
    with open(before, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(before) - 4096))
    assert len(catalog.search("tea")) == 30
    assert catalog.path != before
    assert not os.path.exists(before)


REFRESH = """
import sys
from sessiontree.catalog import Catalog
for _ in range(3):
    with Catalog(sys.argv[1]) as catalog:
        catalog.refresh([sys.argv[2]])
"""


def test_two_processes_at_once(root, tmp_path, monkeypatch):
    """Processes that refresh one catalog at once take in every entry once."""
    for n in range(60):
        write(root / f"{n}.jsonl", header(str(n)), *(entry(f"{n}-{m}", "tea") for m in range(20)))
    command = [sys.executable, "-c", REFRESH, str(tmp_path / "catalog.db"), str(root)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    results = [process.communicate(timeout=120)[1] for process in processes]
    assert [p.returncode for p in processes] == [0, 0, 0], results
    with Catalog(tmp_path / "catalog.db") as catalog:
        assert catalog.refresh([root]).bytes_read == 0
        assert len(catalog.search("tea", limit=None)) == 1200
        assert catalog.check() == []


def test_threads_may_share_a_catalog(root, catalog):
    """Searching in one thread while another refreshes is fine."""
    for n in range(40):
        write(root / f"{n}.jsonl", header(str(n)), entry(str(n), "tea"))
    found, done = [], threading.Event()

    def search():
        while not done.is_set():
            found.append(len(catalog.search("tea")))

    thread = threading.Thread(target=search)
    thread.start()
    try:
        catalog.refresh([root])
    finally:
        done.set()
        thread.join()
    assert set(found) <= set(range(41))
    assert len(catalog.search("tea")) == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_connection_of_its_own(root, catalog):
    """After a fork both processes can go on."""
    write(root / "a.jsonl", header(), entry("1", "tea"))
    catalog.refresh([root])
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=lambda: answer.put((ids(catalog, "tea"), counts(catalog.refresh([root])))))
    child.start()
    assert answer.get(timeout=60) == (["1"], (0, 0, 0, 0))
    child.join()
    assert ids(catalog, "tea") == ["1"]


def test_the_size_is_bounded(root, tmp_path):
    """Texts of the oldest sessions go first; what a listing shows of them stays, and they are not read again."""
    for n in range(40):
        words = " ".join(f"w{n}x{m}" for m in range(2000))
        write(
            root / f"{n:02}.jsonl",
            header(f"{n:02}"),
            entry(str(n), f"tea {words}", timestamp=START + n * 1000),
        )
    limit = 600_000
    with Catalog(tmp_path / "c.db", max_bytes=limit) as catalog:
        catalog.refresh([root])
        assert catalog.size() <= limit
        sessions = catalog.sessions()
        assert len(sessions) == 40
        kept = [s.info.id for s in sessions if s.has_text]
        assert 0 < len(kept) < 40
        assert kept == [s.info.id for s in sessions][: len(kept)]
        assert len(catalog.search("tea", limit=None)) == len(kept)
        assert catalog.refresh([root]).bytes_read == 0
        assert catalog.check() == []


def test_clear_and_compact(root, catalog):
    """A cleared catalog is empty and can be filled again."""
    write(root / "a.jsonl", header(), entry("1", "tea"))
    catalog.refresh([root])
    catalog.compact()
    assert ids(catalog, "tea") == ["1"]
    catalog.clear()
    assert not os.path.exists(catalog.path)
    assert catalog.sessions() == []
    catalog.refresh([root])
    assert ids(catalog, "tea") == ["1"]


def test_a_catalog_that_cannot_be_made_is_an_os_error(tmp_path):
    """Trouble with the catalog's own file names the file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), Catalog(tmp_path / "file" / "c.db") as catalog:
        catalog.refresh([tmp_path])
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(OSError, match="folder"), Catalog(tmp_path / "folder.db") as catalog:
        catalog.refresh([tmp_path])


def test_a_look_shows_what_stat_shows(root):
    """Names, sizes, times and inodes are those of `os.stat`, through links, on several threads too."""
    for n in range(1200):
        (root / f"{n}.jsonl").write_bytes(b"x" * n)
    os.utime(root / "0.jsonl", ns=(-5_000_000_001, -5_000_000_001))
    (root / "notes.txt").write_text("")
    (root / "folder").mkdir()
    (root / "folder.jsonl").mkdir()
    if os.name != "nt":
        (root / "link.jsonl").symlink_to(root / "7.jsonl")
        (root / "nothing.jsonl").symlink_to(root / "none")
        (root / "loop.jsonl").symlink_to(root / "loop.jsonl")
        (root / "linked").symlink_to(root / "folder")
    names, stats, count, folders, failed = _scan.look_at(str(root))
    files = _scan.Look(names, stats).files()
    links = {"link.jsonl": "7.jsonl", "loop.jsonl": ""}
    for name, found in files.items():
        if name == "loop.jsonl":
            assert found == (0, 0, 0)
            continue
        stat = os.stat(root / links.get(name, name))
        assert found == (stat.st_size, stat.st_mtime_ns % 2**64, stat.st_ino if os.name != "nt" else 0)
    wanted = {path.name for path in root.glob("*.jsonl")} - {"nothing.jsonl"}
    assert set(files) == wanted
    assert count == len(wanted)
    assert sorted(folders) == sorted(
        str(root / name) for name in ("folder", "linked") if (root / name).is_dir()
    )
    assert [path for path, _ in failed] == [str(root / name) for name in files if name == "loop.jsonl"]
    assert all(isinstance(error, OSError) and error.filename == path for path, error in failed)
    with pytest.raises(FileNotFoundError):
        _scan.look_at(str(root / "none"))
    with pytest.raises(NotADirectoryError):
        _scan.look_at(str(root / "notes.txt"))
