"""The doctor on the command line: reports, plans, repairs; images out and back."""

import json

import pytest


@pytest.fixture
def broken(write):
    """A session with a damaged line and a lost parent."""
    first = {"type": "message", "id": "a", "parentId": None, "timestamp": "2026-01-01T00:00:00.000Z",
             "message": {"role": "user", "content": "x"}}  # fmt: skip
    path = write(first, "no \x1b[2J json", {**first, "id": "b", "parentId": "lost"})
    path.chmod(0o600)
    return path


@pytest.fixture
def sound(write):
    """A session without faults."""
    path = write(name="sound.jsonl")
    path.chmod(0o600)
    return path


def test_nothing_to_report(run, sound):
    """A sound file is exit code 0."""
    done = run("doctor", sound)
    assert (done.code, done.err) == (0, "")
    assert "nothing to report" in done.out


def test_a_name_that_is_none_stops_nothing(run, broken):
    """The sessions behind it are looked at all the same."""
    done = run("doctor", "nowhere", broken)
    assert (done.code, "malformed" in done.out) == (1, True)
    assert "nowhere" in done.err


def test_a_report(run, broken, sound):
    """Each finding has its line and byte; controls are shown as escapes; nothing is written."""
    before = broken.read_bytes()
    done = run("doctor", sound, broken)
    assert done.code == 1
    assert done.out.count("\n") == 3
    assert f"line 3, byte {before.index(b'no ')}: malformed: not JSON" in done.out
    assert "missing-parent b: the parent" in done.out
    assert "\x1b" not in done.out
    assert broken.read_bytes() == before


def test_many_sound_files_are_one_line(run, sound, broken):
    """Where no file has anything to report, a line says so; for programs there is an object each."""
    assert run("doctor", sound, sound).out == "2 sessions, nothing to report\n"
    assert len(run("doctor", sound, sound, "--json").lines) == 2
    assert "nothing to report" not in run("doctor", sound, broken).out


def test_a_report_for_programs(run, broken, sound):
    """Each file is an object on a line."""
    reports = [json.loads(text) for text in run("doctor", sound, broken, "--json").lines]
    assert [len(report["findings"]) for report in reports] == [0, 2]
    assert reports[1]["findings"][1]["entryId"] == "b"
    assert reports[1]["findings"][1]["fixable"] is True


def test_a_repair(run, broken):
    """The plan is shown, the file repaired, and the second time there is nothing to do."""
    done = run("doctor", broken, "--fix")
    assert done.code == 2
    assert "--yes" in done.err
    done = run("doctor", broken, "--fix", "--yes")
    assert done.code == 0
    assert "line 3: move it to the .rejected file" in done.out
    assert "nothing to report" in done.out
    assert sorted(p.name for p in broken.parent.glob("session.jsonl*")) == [
        "session.jsonl", "session.jsonl.bak", "session.jsonl.rejected",
    ]  # fmt: skip
    after = broken.read_bytes()
    assert run("doctor", broken, "--fix", "--yes").code == 0
    assert broken.read_bytes() == after


def test_what_cannot_be_looked_at(run, tmp_path, sound):
    """A file that is no session is a line, and the others are looked at."""
    other = tmp_path / "other.jsonl"
    other.write_text("nope\n")
    done = run("doctor", other, tmp_path / "none.jsonl", sound, "--json")
    assert (done.code, len(done.err.splitlines()), len(done.lines)) == (1, 2, 1)


def test_shrink_and_restore(run, write):
    """Images go out and come back byte for byte."""
    image = {"type": "image", "data": "QUJD" * 50_000, "mimeType": "image/png"}
    path = write(
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": [image]}}
    )
    before = path.read_bytes()
    assert "1 image moved out" in run("shrink", path).out
    assert run("shrink", path, "--json").json["images"] == 0
    assert "1 image brought back" in run("shrink", path, "--restore").out
    assert path.read_bytes() == before


def test_lost_and_changed_images(run, write):
    """Images that are gone make exit code 1; changed ones too, where they are read."""
    image = {"type": "image", "data": "QUJD" * 50_000, "mimeType": "image/png"}
    path = write(
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": [image]}}
    )
    path.chmod(0o600)
    run("shrink", path)
    assert run("doctor", path, "--read-images").code == 0
    (kept,) = (path.parent / f"{path.name}.images").iterdir()
    kept.write_text("X" * 200_000)
    assert run("doctor", path).code == 0
    done = run("doctor", path, "--read-images")
    assert (done.code, "damaged-image a: " in done.out, "(--fix" in done.out) == (1, True, False)
    kept.unlink()
    (report,) = [json.loads(text) for text in run("doctor", path, "--json").lines]
    (finding,) = report["findings"]
    assert report["counts"] == {"lost-image": 1}
    assert (finding["kind"], finding["severity"], finding["line"], finding["entryId"], finding["fixable"]) == (
        "lost-image", "error", 2, "a", False,
    )  # fmt: skip
    before = path.read_bytes()
    done = run("doctor", path, "--fix", "--yes")
    assert (done.code, path.read_bytes() == before) == (1, True)
