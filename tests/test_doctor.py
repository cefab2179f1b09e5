"""The doctor finds what is wrong, repairs it without losing a byte, and changes nothing the second time."""

import json
import os
import stat
from threading import Thread
from time import monotonic, sleep

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sessiontree import SessionManager, doctor
from sessiontree.exceptions import InvalidSessionError, UnsupportedVersionError

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}


def entry(id, parent, text="hi", role="user", second=0, **more):
    stamp = f"2026-01-01T00:00:{second:02}.000Z"
    message = {"role": role, "content": text, **more}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": stamp, "message": message}


def line(value):
    return value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()


@pytest.fixture
def write(tmp_path):
    def write(*values, end=b"\n", header=HEADER):
        path = tmp_path / "s.jsonl"
        path.write_bytes(b"\n".join(map(line, [header, *values])) + end)
        path.chmod(0o600)
        return path

    return write


def kinds(diagnosis):
    return [(finding.kind, finding.line) for finding in diagnosis.findings]


def chain(path):
    with SessionManager.open(str(path), read_only=True) as session:
        return [e["id"] for e in session.get_branch()]


def sound(path):
    """Nothing is left to repair, and repairing again changes nothing."""
    before, others = path.read_bytes(), sorted(os.listdir(path.parent))
    left = doctor.fix(path)
    assert not left.fixable
    assert (left.backup, left.rejected) == (None, None)
    assert doctor.plan(path) == []
    assert (path.read_bytes(), sorted(os.listdir(path.parent))) == (before, others)


def test_a_sound_file(write):
    """There is nothing to say about it, and a repair leaves it and its folder alone."""
    path = write(entry("a", None), entry("b", "a"))
    assert not doctor.check(path)
    assert doctor.check(path).entries == 2
    sound(path)
    assert os.listdir(path.parent) == ["s.jsonl"]


A, B, C = entry("a", None), entry("b", "a"), entry("c", "b")


@pytest.mark.parametrize(
    ("lines", "end", "found", "fixed", "rejected"),
    [
        ([A, b"no json", B], b"\n", [("malformed", 3)], [A, B], [b"no json"]),
        ([A, B], b'\n{"type":"mess', [("torn", 4)], [A, B], [b'{"type":"mess']),
        ([A, B], b"", [("unterminated", 3)], [A, B], []),
        ([A, line(B) + line(C)], b"\n", [("glued", 3)], [A, B, C], []),
        ([A, b'{"type":"message","id":"x","mess' + line(B)], b"\n", [("glued", 3)], [A, B],
         [b'{"type":"message","id":"x","mess']),
        ([A, line(B) + b'{"type":"mess'], b"", [("glued", 3)], [A, B], [b'{"type":"mess']),
        ([A, b"\0" * 50, B], b"\n", [("nul", 3)], [A, B], [b"\0" * 50]),
        ([A, b"\0" * 50 + line(B)], b"\n", [("nul", 3)], [A, B], [b"\0" * 50]),
        ([A, b"\xff\xfe{", B], b"\n", [("malformed", 3)], [A, B], [b"\xff\xfe{"]),
    ],
)  # fmt: skip
def test_damaged_lines(write, lines, end, found, fixed, rejected):
    """Damaged lines are found where they are; entries in them get lines of their own, the rest is kept aside."""
    path = write(*lines, end=end)
    before = path.read_bytes()
    assert kinds(doctor.check(path)) == found
    assert len(doctor.plan(path)) == 1
    assert path.read_bytes() == before
    assert not doctor.fix(path)
    assert path.read_bytes() == b"".join(line(value) + b"\n" for value in [HEADER, *fixed])
    assert (path.parent / "s.jsonl.bak").read_bytes() == before
    aside = path.parent / "s.jsonl.rejected"
    assert (aside.read_bytes() if rejected else b"") == b"".join(piece + b"\n" for piece in rejected)
    assert aside.exists() == bool(rejected)
    sound(path)


def test_texts_that_look_like_entries_are_not_taken_out_of_them(write):
    """Only whole entries are taken from a damaged line, not what they talk about."""
    inner = json.dumps(entry("x", None))
    whole = entry("b", "a", f"look: {inner}")
    path = write(A, b"junk" + line(whole))
    doctor.fix(path)
    assert chain(path) == ["a", "b"]
    sound(path)


def test_missing_parents(write):
    """An entry without its parent hangs on the one before it; the first of all on nothing."""
    path = write(entry("a", "lost"), entry("b", "a"), entry("c", "gone"), entry("d", "c"))
    assert kinds(doctor.check(path)) == [
        ("missing-parent", 2), ("unreachable", 3), ("missing-parent", 4), ("unreachable", 5),
    ]  # fmt: skip
    assert doctor.plan(path) == ["line 2: make it a root", "line 4: hang it on 'b', before it in the file"]
    doctor.fix(path)
    assert chain(path) == ["a", "b", "c", "d"]
    sound(path)


def test_cycles(write):
    """A cycle is broken at its first entry; everything can be reached from a root again."""
    path = write(entry("r", None), entry("a", "c"), entry("b", "a"), entry("c", "b"), entry("z", "z"))
    diagnosis = doctor.check(path)
    assert kinds(diagnosis) == [("cycle", 3), ("unreachable", 4), ("cycle", 6)]
    assert [found.text for found in diagnosis.findings] == [
        "among its own ancestors, 3 in a circle",
        "it and 1 other hang on line 3, and no way leads there from a root",
        "it is its own parent",
    ]
    doctor.fix(path)
    assert chain(path) == ["r", "a", "b", "c", "z"]
    sound(path)


def test_duplicate_ids(write):
    """The later entry gets a new id, and who came after it means it."""
    label = {
        "type": "label",
        "id": "l",
        "parentId": "c",
        "timestamp": HEADER["timestamp"],
        "targetId": "a",
        "label": "x",
    }
    path = write(entry("a", None, "one"), entry("b", "a"), entry("a", "b", "two"), entry("c", "a"), label)
    assert kinds(doctor.check(path)) == [("duplicate", 4)]
    doctor.fix(path)
    ids = chain(path)
    assert [ids[0], ids[1], ids[3], ids[4]] == ["a", "b", "c", "l"]
    assert len(set(ids)) == 5
    with SessionManager.open(str(path), read_only=True) as session:
        assert session.get_entry(ids[2])["message"]["content"] == "two"
        assert session.get_label(ids[2]) == "x"
    sound(path)


def test_a_lost_parent_is_never_looked_for_below(write):
    """An entry hangs on the nearest one before it that does not hang on it."""
    path = write(entry("r", None), entry("a", "x"), entry("b", "x"), entry("x", "gone"), entry("y", "x"))
    assert [f.kind for f in doctor.check(path).findings] == ["unreachable", "missing-parent"]
    doctor.fix(path)
    assert chain(path) == ["r", "x", "y"]
    sound(path)


def test_references_mean_what_stood_before_them(write):
    """Labels, compactions and parents go with the entry they meant when they were written."""
    stamp = HEADER["timestamp"]
    first = {"type": "label", "id": "l", "parentId": "a", "timestamp": stamp, "targetId": "a", "label": "1"}
    again = {"type": "label", "id": "m", "parentId": "a", "timestamp": stamp, "targetId": "a", "label": "2"}
    fold = {"type": "compaction", "id": "k", "parentId": "m", "timestamp": stamp, "firstKeptEntryId": "a",
            "summary": "s", "tokensBefore": 1}  # fmt: skip
    path = write(entry("a", None, "one"), first, entry("a", "l", "two"), again, fold)
    assert kinds(doctor.check(path)) == [("duplicate", 4)]
    assert not doctor.fix(path)
    with SessionManager.open(str(path), read_only=True) as session:
        _, label, two, again, fold = session.get_entries()
        assert label["targetId"] == "a"
        assert two["id"] not in {"a", "l", "m", "k"}
        assert (again["targetId"], again["parentId"], fold["firstKeptEntryId"]) == (two["id"],) * 3


def test_what_is_only_told(write):
    """Odd lines, references to nothing, results without calls, clock jumps and giants are told and left alone."""
    stamp = HEADER["timestamp"]
    common = {"parentId": None, "timestamp": stamp}
    image = {"type": "image", "mimeType": "image/png", "data": "QUJD" * 300_000}
    path = write(
        b"5",
        {"type": "strange", "id": "a", **common},
        {"type": "label", "id": "b", **common, "targetId": "q", "label": "x"},
        {"type": "compaction", "id": "c", **common, "firstKeptEntryId": "q", "summary": ""},
        {"type": "context_edit", "id": "d", **common, "targetId": None, "replacement": None},
        entry("e", "d", "r", "toolResult", toolCallId="t1"),
        entry("f", "e", [{"type": "toolCall", "id": "t2", "name": "x", "arguments": {}}], "assistant"),
        entry("g", "f", "r", "toolResult", toolCallId="t2"),
        {**entry("h", "g"), "timestamp": "2025-12-31T00:00:00.000Z"},
        entry("i", "h", [image]),
        HEADER,
        {"id": "j", **common},
        entry(None, "i"),
        {"type": "message", "id": "k", **common, "message": None},
        {"type": "session_info", "id": "l", **common, "name": 5},
        {"type": "context_edit", "id": "m", **common, "targetId": "k", "replacement": "x"},
        {"type": "compaction", "id": "n", **common, "firstKeptEntryId": "k", "summary": ""},
    )
    before = path.read_bytes()
    diagnosis = doctor.check(path)
    assert kinds(diagnosis) == [
        ("foreign", 2), ("unknown-type", 3), ("label-target", 4), ("compaction-target", 5), ("edit-target", 6),
        ("result-without-call", 7), ("clock", 10), ("large", 11), ("header", 12), ("nameless", 13),
        ("nameless", 14), ("unusable", 15), ("unusable", 16), ("unusable", 17), ("compaction-target", 18),
    ]  # fmt: skip
    assert diagnosis.image_bytes == 1_200_000
    assert "99 % of it images" in diagnosis.findings[7].text
    assert [f.text for f in diagnosis.findings][:6] == [
        "not an entry but 5",
        "an entry of the unknown type 'strange'",
        "the target 'q' is not in the file",
        "the first kept entry 'q' is not in the file",
        "the target null is not in the file",
        "a tool's result, but the tool call 't1' does not stand before it",
    ]
    lines = before.splitlines(keepends=True)
    for finding in diagnosis.findings:
        assert before[finding.byte :].startswith(lines[finding.line - 1])
    assert not diagnosis.fixable
    sound(path)


def test_notes_are_no_faults(write):
    """Large lines, unknown types and modes are told, and the diagnosis is still a good one."""
    path = write(entry("a", None, "x" * 2_000_000), {**A, "type": "odd", "id": "b", "parentId": "a"})
    path.chmod(0o644)
    diagnosis = doctor.check(path)
    assert {found.severity for found in diagnosis.findings} == {"note"}
    assert not diagnosis
    assert len(diagnosis.findings) == (3 if os.name != "nt" else 2)


def test_old_labels_of_a_branch_are_no_clock_jumps(write):
    """The labels that a branched session brings along have their old times."""
    label = {"type": "label", "id": "l", "parentId": "a", "timestamp": "2020-01-01T00:00:00.000Z",
             "targetId": "a", "label": "x"}  # fmt: skip
    assert not doctor.check(write(A, label, entry("b", "l")))


@pytest.mark.skipif(os.name == "nt", reason="modes are Unix's")
def test_modes(write):
    """A file that others may open is told, and a repair keeps its mode, in all that it leaves."""
    path = write(A, b"x")
    path.chmod(0o640)
    assert kinds(doctor.check(path)) == [("mode", 0), ("malformed", 3)]
    assert "mode 0640" in doctor.check(path).findings[0].text
    assert kinds(doctor.fix(path)) == [("mode", 0)]
    assert {stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()} == {0o640}
    sound(path)


def test_old_and_new_versions(write):
    """Old files have no tree to be looked at; newer ones are looked at and never written."""
    path = write(
        {"type": "message", "message": {"role": "user", "content": "x"}}, header={**HEADER, "version": 1}
    )
    assert not doctor.check(path)
    fold = {"type": "compaction", "firstKeptEntryIndex": 9, "summary": "s"}
    path = write(A, fold, {**fold, "firstKeptEntryIndex": 1}, header={"type": "session", "id": "s"})
    assert kinds(doctor.check(path)) == [("compaction-target", 3)]
    path = write(A, b"no json", header={**HEADER, "version": 4})
    before = path.read_bytes()
    with pytest.raises(UnsupportedVersionError):
        doctor.fix(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["s.jsonl"]


def test_what_is_no_session(tmp_path):
    """A file without a header is refused."""
    path = tmp_path / "s.jsonl"
    for data, reason in (
        (b"", "the file is empty"),
        (b"nope\n", "no session header"),
        (b'{"type":"message"}\n' + line(HEADER), "the first entry is no session header"),
    ):
        path.write_bytes(data)
        with pytest.raises(InvalidSessionError, match=reason):
            doctor.check(path)
        with pytest.raises(InvalidSessionError):
            doctor.fix(path)
        assert path.read_bytes() == data


def test_a_damaged_first_line_may_hold_the_header(tmp_path):
    """A header behind zeros is put on a line of its own, and the file opens."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\0" * 100 + line(HEADER) + line(A) + b"\n")
    with pytest.raises(InvalidSessionError):
        SessionManager.open(str(path))
    assert not doctor.fix(path).fixable
    assert chain(path) == ["a"]


def test_what_is_appended_during_a_repair_is_kept(write):
    """A line that another program appends while the repair is being made is in the repaired file."""
    path = write(A, b"no json " * 2_000_000)
    times = []

    def slow(done, total):
        if not times:
            with open(path, "ab") as file:
                file.write(line(B) + b"\n")
        times.append((done, total))
        sleep(0.11)

    # Progress is told at most every 0.1 s; a reading of so much asks for it several times.
    doctor.fix(path, progress=slow)
    assert times
    assert chain(path) == ["a", "b"]
    assert (path.parent / "s.jsonl.bak").read_bytes().endswith(line(B) + b"\n")
    assert sorted(os.listdir(path.parent)) == ["s.jsonl", "s.jsonl.bak", "s.jsonl.rejected"]
    sound(path)


def test_a_repair_that_is_given_up_changes_nothing(write):
    """Where the caller raises on the way, the file is as it was, and nothing is left beside it."""
    path = write(A, *[b"no json " * 1_000_000] * 4)
    before = path.read_bytes()

    def stop(done, total):
        if done > total // 2:
            raise RuntimeError("enough")
        sleep(0.11)

    with pytest.raises(RuntimeError, match="enough"):
        doctor.fix(path, progress=stop)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["s.jsonl"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_repair_that_fails_changes_nothing(write):
    """Where the file cannot be replaced it is as it was, and nothing is left beside it."""
    path = write(A, b"no json")
    before = path.read_bytes()
    path.parent.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            doctor.fix(path)
    finally:
        path.parent.chmod(0o700)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["s.jsonl"]


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_links(write, tmp_path):
    """A link to the file stays one; links that stand where a copy would go are not followed."""
    path = write(A, b"no json")
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for ending in ("bak", "rejected"):
        (tmp_path / f"s.jsonl.{ending}").symlink_to(tmp_path / f"elsewhere-{ending}")
    after = doctor.fix(link)
    assert link.is_symlink()
    assert not path.is_symlink()
    assert after.backup == f"{path}.bak1"
    assert after.rejected == f"{path}.rejected1"
    assert not list(tmp_path.glob("elsewhere*"))
    sound(path)


def test_what_a_writer_without_locks_appends_too_late_is_in_the_copy(write):
    """A descriptor that was opened before the repair writes to the old file, which stays."""
    path = write(A, b"no json")
    with open(path, "ab") as file:
        doctor.fix(path)
        file.write(line(B) + b"\n")
    assert (path.parent / "s.jsonl.bak").read_bytes().endswith(line(B) + b"\n")


def test_a_repair_waits_for_the_lock(write):
    """A repair begins when the file is nobody's."""
    fcntl = pytest.importorskip("fcntl")
    path = write(A, b"no json")
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        repair = Thread(target=doctor.fix, args=(path,))
        repair.start()
        sleep(0.2)
        assert repair.is_alive()
        assert os.listdir(path.parent) == ["s.jsonl"]
        fcntl.flock(file, fcntl.LOCK_UN)
        repair.join(30)
    assert not doctor.check(path)


def test_a_flood_of_findings_is_counted(write):
    """Of each kind the first thousand are given, all are counted, and all are repaired."""
    path = write(A, *[b"x"] * 3000, B)
    diagnosis = doctor.check(path)
    assert (len(diagnosis.findings), diagnosis.counts) == (1000, {"malformed": 3000})
    assert diagnosis.plan[-1] == "and 2,000 more of these"
    assert not doctor.fix(path).findings
    assert chain(path) == ["a", "b"]


def test_controls_are_shown_as_escapes(write):
    """Nothing that drives a terminal is in the texts, and no quotes are doubled."""
    evil = "\x1b[2J\x07"
    path = write(
        {**A, "id": evil}, {**A, "id": evil, "type": evil}, entry("c", evil + "'\""),
        {"type": "label", "id": "l", "parentId": None, "timestamp": "", "targetId": evil + "x" * 999, "label": "x"},
        b"\x1b]0;x\x07 '\"" + b"y" * 99, json.dumps("z" * 99).encode(),
    )  # fmt: skip
    diagnosis = doctor.check(path)
    assert {"duplicate", "unknown-type", "missing-parent", "label-target", "malformed", "foreign"} <= set(
        diagnosis.counts
    )
    for found in diagnosis.findings:
        assert (found.text + found.action).isprintable(), found


def test_hostile_trees_take_no_time(write):
    """Cycles, lost parents and forward references by the thousand cost what so many entries cost."""
    n = 30_000
    nested = [entry(f"{i}", f"r{i}") for i in range(n, 0, -1)] + [
        entry(f"r{i}", "lost") for i in range(1, n + 1)
    ]
    chained = [entry(f"{i}", f"{i + 1}") for i in range(n)]
    looped = [entry(f"{i}", f"{(i + 1) % n}") for i in range(n)]
    for entries in (nested, chained, looped):
        path = write(*entries)
        began = monotonic()
        assert doctor.check(path).fixable
        assert not doctor.fix(path).fixable
        assert monotonic() - began < 20


def test_backups_never_replace_each_other(write):
    """Each repair leaves a copy of its own."""
    path = write(A, b"one")
    doctor.fix(path)
    with open(path, "ab") as file:
        file.write(b"two\n")
    doctor.fix(path)
    assert (path.parent / "s.jsonl.rejected").read_bytes() == b"one\n"
    assert (path.parent / "s.jsonl.rejected1").read_bytes() == b"two\n"
    assert (path.parent / "s.jsonl.bak1").read_bytes().endswith(b"two\n")


ids = st.sampled_from(["a", "b", "c", "d", 1, None])
lines = st.one_of(
    st.builds(entry, ids, ids),
    st.builds(entry, ids, ids).map(line).map(lambda b: b[:-5]),
    st.tuples(st.builds(entry, ids, ids), st.builds(entry, ids, ids)).map(
        lambda two: line(two[0]) + line(two[1])
    ),
    st.sampled_from([b"", b"\0\0", b"x", b"5", b"[]", line(HEADER)]),
    st.builds(lambda t: {"type": "label", "id": "l", "parentId": "a", "targetId": t, "timestamp": ""}, ids),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example([entry(1, "a"), entry("a", 1), entry(1, "a")], b"\n")
@given(st.lists(lines, max_size=8), st.sampled_from([b"\n", b"", b'\n{"type"']))
def test_any_damage_is_repaired_and_nothing_lost(write, values, end):
    """After a repair nothing is left to repair, every path ends at a root, and no byte has gone."""
    path = write(*values, end=end)
    for old in path.parent.iterdir():
        if old != path:
            old.unlink()
    before = path.read_bytes()
    doctor.fix(path)
    sound(path)
    aside = path.parent / "s.jsonl.rejected"
    kept = path.read_bytes() + (aside.read_bytes() if aside.exists() else b"")
    for text in (b'"hi"', b"\0\0", b"[]", b'"type":"label"'):
        assert kept.count(text) == before.count(text)
    with SessionManager.open(str(path), read_only=True) as session:
        for e in session.get_entries():
            if isinstance(e, dict) and isinstance(e.get("id"), str):
                assert session.get_branch(e["id"])[0].get("parentId") is None
