"""Images move out of session files and back, and nothing is lost on the way."""

import base64
import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessiontree import SessionManager, doctor
from sessiontree.exceptions import InvalidSessionError, UnsupportedVersionError

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}


def image(data, **more):
    return {"type": "image", "data": data, "mimeType": "image/png", **more}


def entry(id, parent, *blocks):
    message = {"role": "user", "content": list(blocks)}
    return {"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": message}


@pytest.fixture
def write(tmp_path):
    def write(*values, header=HEADER):
        path = tmp_path / "s.jsonl"
        texts = (
            value if isinstance(value, bytes) else json.dumps(value).encode() for value in (header, *values)
        )
        path.write_bytes(b"\n".join(texts) + b"\n")
        path.chmod(0o600)
        return path

    return write


def big(size=90_000):
    return base64.b64encode(os.urandom(size)).decode()


def test_images_move_out_and_back(write):
    """Large images move into files by their content, and come back byte for byte."""
    one = big()
    path = write(entry("a", None, image(one), image("QUJD"), image(one)), entry("b", "a"))
    before = path.read_bytes()
    assert doctor.shrink(path) == 2
    assert len(path.read_bytes()) < 2000
    assert doctor.shrink(path) == 0
    assert len(os.listdir(f"{path}.images")) == 1
    with SessionManager.open(str(path), read_only=True) as session:
        assert [e["id"] for e in session.get_branch()] == ["a", "b"]
    assert doctor.restore(path) == 2
    assert path.read_bytes() == before
    assert doctor.restore(path) == 0


def test_only_images_move(write):
    """Long texts, arguments of tools and damaged lines stay where they are."""
    text = "QUJD" * 30_000
    call = {"type": "toolCall", "id": "t", "name": "x", "arguments": {"data": text}}
    quoted = {"type": "text", "text": json.dumps(image(text))}
    torn = json.dumps(entry("x", None, image(text))).encode()[:-1]
    path = write(
        entry("a", None, call, quoted), torn, torn + json.dumps(entry("y", None, image(text))).encode()
    )
    assert doctor.shrink(path) == 0
    assert not os.path.exists(f"{path}.images")


def test_lost_images_leave_the_file_as_it_is(write):
    """Where an image is missing or damaged nothing is brought back."""
    path = write(entry("a", None, image("QUJD" * 30_000)))
    doctor.shrink(path)
    (name,) = os.listdir(f"{path}.images")
    shrunk = path.read_bytes()
    with open(os.path.join(f"{path}.images", name), "r+b") as file:
        file.write(b"XXXX")
    with pytest.raises(OSError, match="the image is damaged"):
        doctor.restore(path)
    os.remove(os.path.join(f"{path}.images", name))
    with pytest.raises(FileNotFoundError, match=name):
        doctor.restore(path)
    assert path.read_bytes() == shrunk


def test_a_damaged_copy_is_written_anew(write):
    """What a killed writer left under an image's name is not taken for it."""
    path = write(entry("a", None, image(big())))
    before = path.read_bytes()
    doctor.shrink(path)
    (name,) = os.listdir(f"{path}.images")
    doctor.restore(path)
    kept = os.path.join(f"{path}.images", name)
    os.truncate(kept, 10)
    with open(f"{kept}.sessiontree-tmp", "w"):
        pass
    assert doctor.shrink(path) == 1
    assert os.listdir(f"{path}.images") == [name]
    assert doctor.restore(path) == 1
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_links_are_not_followed(write, tmp_path):
    """A link in the place of the folder, or of an image, leads nowhere; one to the session does."""
    path = write(entry("a", None, image(big())))
    before = path.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "s.jsonl.images"
    folder.symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"s\.jsonl\.images"):
        doctor.shrink(path)
    assert (path.read_bytes(), os.listdir(elsewhere)) == (before, [])
    folder.unlink()
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    assert doctor.shrink(link) == 1
    (name,) = os.listdir(folder)
    (folder / name).rename(elsewhere / name)
    (folder / name).symlink_to(elsewhere / name)
    with pytest.raises(OSError, match=name):
        doctor.restore(link)
    assert link.is_symlink()


def test_what_is_no_session_or_too_new_is_refused(write, tmp_path):
    """Other files are left alone."""
    path = write(entry("a", None, image(big())), header={**HEADER, "version": 4})
    with pytest.raises(UnsupportedVersionError):
        doctor.shrink(path)
    path.write_bytes(json.dumps(entry("a", None, image(big()))).encode())
    with pytest.raises(InvalidSessionError):
        doctor.shrink(path)
    assert os.listdir(tmp_path) == ["s.jsonl"]


blocks = st.one_of(
    st.builds(
        image, st.sampled_from(["", "QQ==", "QUJD" * 9, "ab" * 50, "no base64", "sessiontree-image:x"])
    ),
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=9)),
    st.builds(lambda d: {"media_type": "image/gif", "data": d}, st.text("Ab=/", max_size=30)),
    st.recursive(
        st.just(image("QUJDRA==")), lambda inner: st.builds(lambda i: {"x": [i], "data": "AA"}, inner)
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(
            st.builds(entry, st.just("a"), st.none(), blocks, blocks),
            st.sampled_from([b"", b"5", b"x", b'{"type":"image","data":"QUJDRA=="', b"\0\0"]),
        ),
        max_size=5,
    ),
    st.integers(1, 40),
)
def test_any_session_comes_back_byte_for_byte(write, values, at_least):
    """Whatever is in the file, restoring it after shrinking it gives the very bytes."""
    path = write(*values)
    before = path.read_bytes()
    moved = doctor.shrink(path, at_least=at_least)
    assert (path.read_bytes() == before) == (moved == 0)
    assert doctor.restore(path) == moved
    assert path.read_bytes() == before


KILLED = """
import os, sys
from sessiontree import doctor, _images
calls, limit = 0, int(sys.argv[3])
def counted(real):
    def call(*a, **k):
        global calls
        calls += 1
        if calls > limit:
            os._exit(9)
        return real(*a, **k)
    return call
for name in ("open", "replace", "fsync", "mkdir", "close"):
    setattr(_images.os, name, counted(getattr(os, name)))
getattr(doctor, sys.argv[2])(sys.argv[1])
"""


@pytest.mark.parametrize("first", ["shrink", "restore"])
def test_a_kill_on_the_way_loses_nothing(write, first):
    """Wherever the program is killed, the file is whole, and everything can be brought back."""
    path = write(entry("a", None, image(big()), image(big())), entry("b", "a", image(big())))
    before = path.read_bytes()
    if first == "restore":
        doctor.shrink(path)
    for limit in range(99):
        arguments = [sys.executable, "-c", KILLED, str(path), first, str(limit)]
        killed = subprocess.run(arguments, check=False).returncode
        if first == "shrink":
            assert path.read_bytes() == before or killed == 0
        if killed == 0:
            break
        assert killed == 9
    doctor.restore(path)
    assert limit > 2
    assert path.read_bytes() == before
    assert not [name for name in os.listdir(f"{path}.images") if "tmp" in name]


def kinds(path, **options):
    return [
        (found.kind, found.line, found.byte, found.entry_id)
        for found in doctor.check(path, **options).findings
    ]


def kept(path):
    """The one image that was moved out of a session."""
    (name,) = os.listdir(f"{path}.images")
    return os.path.join(f"{path}.images", name)


@pytest.fixture
def shrunk(write):
    """A session with two images that stand for one file, on lines 2 and 4."""
    one = big()
    path = write(entry("a", None, image(one)), entry("b", "a"), entry("c", "b", image(one)))
    assert doctor.shrink(path) == 2
    return path


def both(path, kind):
    """The findings for both places of the image."""
    lines = path.read_bytes().split(b"\n")
    third = len(b"\n".join(lines[:3])) + 1
    return [(kind, 2, len(lines[0]) + 1, "a"), (kind, 4, third, "c")]


@pytest.mark.parametrize("read_images", [False, True])
def test_images_that_are_where_they_should_be_are_no_findings(shrunk, read_images):
    """A session whose images are there and right has nothing to report."""
    diagnosis = doctor.check(shrunk, read_images=read_images)
    assert (diagnosis.findings, bool(diagnosis), diagnosis.image_bytes) == ((), False, 0)


def test_lost_images_are_found(shrunk):
    """Each place of an image whose file is gone is an error there, and no repair touches it."""
    os.remove(kept(shrunk))
    assert kinds(shrunk) == both(shrunk, "lost-image")
    os.rmdir(f"{shrunk}.images")
    assert kinds(shrunk) == both(shrunk, "lost-image")
    before = shrunk.read_bytes()
    diagnosis = doctor.fix(shrunk)
    assert {(found.severity, found.fixable, found.action) for found in diagnosis.findings} == {
        ("error", False, "")
    }
    assert (shrunk.read_bytes(), diagnosis.backup, diagnosis.plan) == (before, None, [])
    assert diagnosis.counts == {"lost-image": 2}


@pytest.mark.parametrize("size", [0, 10, 119_999, 120_001])
def test_images_of_another_length_are_found(shrunk, size):
    """A file that was cut or has grown is found without being read."""
    os.truncate(kept(shrunk), size)
    assert kinds(shrunk) == both(shrunk, "damaged-image")
    (text, _) = [found.text for found in doctor.check(shrunk).findings]
    assert f"{size:,} bytes, not 120,000: '{kept(shrunk)}'" in text


def test_images_with_other_contents_are_found_by_reading_them(shrunk):
    """A change that leaves the length is found only where images are read; then the text says so."""
    with open(kept(shrunk), "r+b") as file:
        file.write(b"XXXX")
    assert kinds(shrunk) == []
    assert kinds(shrunk, read_images=True) == both(shrunk, "damaged-image")


@pytest.mark.skipif(os.name == "nt", reason="links and pipes are others there")
@pytest.mark.parametrize("read_images", [False, True])
def test_what_is_no_file_is_no_image(shrunk, tmp_path, read_images):
    """A link, a folder or a pipe in the place of an image, and a link in that of the folder, are found."""
    place, wanted = kept(shrunk), both(shrunk, "damaged-image")
    elsewhere = tmp_path / "elsewhere"
    os.rename(place, elsewhere)
    for put, take in ((lambda: os.symlink(elsewhere, place), os.remove), (lambda: os.mkdir(place), os.rmdir),
                      (lambda: os.mkfifo(place), os.remove)):  # fmt: skip
        put()
        assert kinds(shrunk, read_images=read_images) == wanted
        take(place)
    os.rename(elsewhere, place)
    os.rename(f"{shrunk}.images", elsewhere)
    os.symlink(elsewhere, f"{shrunk}.images")
    assert kinds(shrunk, read_images=read_images) == wanted


def test_sessions_have_their_own_copies(shrunk, tmp_path):
    """Of two sessions with the same image, that one is reported whose own file is lost."""
    other = tmp_path / "other.jsonl"
    other.write_bytes(shrunk.read_bytes())
    other.chmod(0o600)
    assert (kinds(shrunk), kinds(other)) == ([], both(shrunk, "lost-image"))
    os.mkdir(f"{other}.images")
    os.link(kept(shrunk), os.path.join(f"{other}.images", os.path.basename(kept(shrunk))))
    assert (kinds(shrunk), kinds(other)) == ([], [])


@pytest.mark.parametrize(
    "text", ["sessiontree-image:", "sessiontree-image:" + "a" * 64, "sessiontree-image:" + "a" * 64 + ":0"]
)
def test_what_only_looks_like_a_mark_is_none(write, text):
    """A text that does not name hash and length stands for no image, here and for a restore."""
    path = write(entry("a", None, image(text)))
    assert kinds(path) == []
    assert doctor.restore(path) == 0


def test_a_mark_of_any_length_is_looked_for(write):
    """The largest length there is makes no trouble, and a larger one is none."""
    marks = [f"sessiontree-image:{'a' * 64}:{length}" for length in (2**64 - 1, 2**64)]
    path = write(entry("a", None, *map(image, marks)))
    os.mkdir(f"{path}.images")
    with open(os.path.join(f"{path}.images", "a" * 64), "w"):
        pass
    assert [kind for kind, *_ in kinds(path, read_images=True)] == ["damaged-image"]
    with pytest.raises(OSError, match="the image is damaged"):
        doctor.restore(path)


def test_images_in_damaged_lines_are_looked_for_too(write):
    """An entry that stands in a damaged line is reported where it begins."""
    mark = image(f"sessiontree-image:{'a' * 64}:7")
    path = write(json.dumps(entry("z", None)).encode() + json.dumps(entry("a", None, mark)).encode() + b"x")
    second = path.read_bytes().index(b"\n") + 1
    third = path.read_bytes().rindex(b'{"type": "message"')
    assert kinds(path) == [("glued", 2, second, None), ("lost-image", 2, third, "a")]
