"""The doctor finds what is wrong, repairs it without losing a byte, and changes nothing the second time."""

import base64
import json
import os
import stat

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
    assert kinds(doctor.check(path)) == [("missing-parent", 2), ("missing-parent", 4)]
    doctor.fix(path)
    assert chain(path) == ["a", "b", "c", "d"]
    sound(path)


def test_cycles(write):
    """A cycle is broken at its first entry; everything can be reached from a root again."""
    path = write(entry("r", None), entry("a", "c"), entry("b", "a"), entry("c", "b"), entry("z", "z"))
    assert kinds(doctor.check(path)) == [("cycle", 3), ("cycle", 6)]
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


def test_what_is_only_told(write):
    """Odd lines, references to nothing, results without calls, clock jumps and giants are told and left alone."""
    stamp = HEADER["timestamp"]
    image = {"type": "image", "mimeType": "image/png", "data": "QUJD" * 300_000}
    path = write(
        b"5",
        {"type": "strange", "id": "a", "parentId": None, "timestamp": stamp},
        {"type": "label", "id": "b", "parentId": "a", "timestamp": stamp, "targetId": "q", "label": "x"},
        {
            "type": "compaction",
            "id": "c",
            "parentId": "b",
            "timestamp": stamp,
            "firstKeptEntryId": "q",
            "summary": "",
        },
        {
            "type": "context_edit",
            "id": "d",
            "parentId": "c",
            "timestamp": stamp,
            "targetId": None,
            "replacement": None,
        },
        entry("e", "d", "r", "toolResult", toolCallId="t1"),
        entry("f", "e", [{"type": "toolCall", "id": "t2", "name": "x", "arguments": {}}], "assistant"),
        entry("g", "f", "r", "toolResult", toolCallId="t2"),
        {**entry("h", "g"), "timestamp": "2025-12-31T00:00:00.000Z"},
        entry("i", "h", [image]),
        HEADER,
    )
    before = path.read_bytes()
    diagnosis = doctor.check(path)
    assert kinds(diagnosis) == [
        ("foreign", 2), ("foreign", 3), ("label-target", 4), ("compaction-target", 5), ("edit-target", 6),
        ("result-without-call", 7), ("clock", 10), ("large", 11), ("header", 12),
    ]  # fmt: skip
    assert diagnosis.image_bytes == 1_200_000
    assert "99 % of it images" in diagnosis.findings[7].text
    for finding in diagnosis.findings:
        assert (
            before.splitlines(keepends=True)[finding.line - 1]
            == before[finding.byte :].splitlines(keepends=True)[0]
        )
    assert not diagnosis.fixable
    sound(path)


@pytest.mark.skipif(os.name == "nt", reason="modes are Unix's")
def test_modes(write):
    """A file that others may read is told, and made private."""
    path = write(A)
    path.chmod(0o644)
    assert kinds(doctor.check(path)) == [("mode", 0)]
    doctor.fix(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    sound(path)


def test_old_and_new_versions(write):
    """Old files have no tree to be looked at; newer ones are looked at and never written."""
    path = write(
        {"type": "message", "message": {"role": "user", "content": "x"}}, header={**HEADER, "version": 1}
    )
    assert not doctor.check(path)
    path = write(A, b"no json", header={**HEADER, "version": 4})
    before = path.read_bytes()
    with pytest.raises(UnsupportedVersionError):
        doctor.fix(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["s.jsonl"]


def test_what_is_no_session(tmp_path):
    """A file without a header is refused."""
    path = tmp_path / "s.jsonl"
    for data in (b"", b"nope\n", b'{"type":"message"}\n'):
        path.write_bytes(data)
        with pytest.raises(InvalidSessionError, match="no session header"):
            doctor.check(path)
        with pytest.raises(InvalidSessionError):
            doctor.fix(path)
        assert path.read_bytes() == data


def test_what_is_appended_during_a_repair_is_kept(write, monkeypatch):
    """A line that another program appends while the repair is being made is in the repaired file."""
    path = write(A, b"no json")
    real, times = doctor._beside, []

    def slow(*arguments):
        if not times:
            with open(path, "ab") as file:
                file.write(line(B) + b"\n")
        times.append(1)
        return real(*arguments)

    monkeypatch.setattr(doctor, "_beside", slow)
    doctor.fix(path)
    assert chain(path) == ["a", "b"]
    assert (path.parent / "s.jsonl.bak").read_bytes().endswith(line(B) + b"\n")
    assert sorted(os.listdir(path.parent)) == ["s.jsonl", "s.jsonl.bak", "s.jsonl.rejected"]
    sound(path)


def test_a_repair_that_fails_changes_nothing(write, monkeypatch):
    """Where the file cannot be replaced it is as it was, with its copy beside it."""
    path = write(A, b"no json")
    before = path.read_bytes()

    def full(*arguments, **how):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(doctor._native, "create_file", full, raising=True)
    with pytest.raises(OSError, match="No space left"):
        doctor.fix(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["s.jsonl"]


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


def test_images_move_out_and_back(write):
    """Large images move into files by their content, and come back byte for byte."""
    big, small = base64.b64encode(os.urandom(90_000)).decode(), "QUJD"
    blocks = [{"type": "image", "data": data, "mimeType": "image/png"} for data in (big, small, big)]
    path = write(entry("a", None, blocks), entry("b", "a", "text"))
    before = path.read_bytes()
    assert doctor.shrink(path) == 2
    assert len(path.read_bytes()) < 2000
    assert doctor.shrink(path) == 0
    assert len(os.listdir(f"{path}.images")) == 1
    assert chain(path) == ["a", "b"]
    assert doctor.restore(path) == 2
    assert path.read_bytes() == before
    assert doctor.restore(path) == 0


def test_lost_images_leave_the_file_as_it_is(write):
    """Where an image is missing or damaged nothing is brought back."""
    path = write(entry("a", None, [{"type": "image", "data": "QUJD" * 30_000, "mimeType": "image/png"}]))
    doctor.shrink(path)
    (name,) = os.listdir(f"{path}.images")
    shrunk = path.read_bytes()
    with open(os.path.join(f"{path}.images", name), "r+b") as file:
        file.write(b"XXXX")
    with pytest.raises(OSError, match="the image is damaged"):
        doctor.restore(path)
    os.remove(os.path.join(f"{path}.images", name))
    with pytest.raises(FileNotFoundError):
        doctor.restore(path)
    assert path.read_bytes() == shrunk
