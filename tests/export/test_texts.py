"""Markdown, lines of a branch, and what is taken out of all of them."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import SessionManager
from sessiontree.exceptions import SessionWarning
from sessiontree.export import export_session, format_of, parts, patterns, redact
from sessiontree.export.markdown import contained, fenced
from sessiontree.export.redact import Redactor

from .conftest import assistant, user


def test_markdown_holds_the_branch_and_nothing_else(talk):
    """One branch, root first, with labels."""
    text = "".join(parts(talk, "markdown"))
    assert text.startswith("# Fix the parser\n")
    assert "## User — start" in text
    assert "another way" in text
    assert "needle-in-the-result" not in text


def test_markdown_sends_no_control_characters():
    """What a terminal would act on is shown, wherever it stands."""
    bad = "\x1b]0;x\x07\x9b2J\u202e\u2028\r.\x00\ud800"
    session = SessionManager.in_memory(f"/co{bad}de")
    first = session.append_message(user(bad))
    session.append_label_change(first, bad)
    session.append_session_info(bad)
    session.append_message(
        assistant(
            {"type": "toolCall", "id": "c", "name": bad, "arguments": {bad: bad}}, {"type": bad, "text": bad}
        )
    )
    session.append_message({"role": bad, "content": bad, "timestamp": 0})
    text = "".join(parts(session, "markdown"))
    assert [c for c in text if c != "\n" and not c.isprintable()] == []
    assert "\\x1b]0;x\\x07\\x9b2J\\u202e" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a <b>c</b> <!-- d", "a \\<b>c\\</b> \\<!-- d"),
        ("`<b>` and ``a ` <b>`` <i>", "`<b>` and ``a ` <b>`` \\<i>"),
        (
            "1 < 2 <- x <https://example.org> <javascript:x>",
            "1 < 2 <- x <https://example.org> \\<javascript:x>",
        ),
        ("\\<b> `open <b>", "\\<b> `open \\<b>"),
        ("`one\n\ntwo` <b>", "`one\n\ntwo` \\<b>"),
        ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n\\<b>"),
        ("````\n```\n<b>", "````\n```\n<b>\n````"),
        ("- ~~~\n  <b>", "- ~~~\n  <b>\n~~~"),
        ("``` not ` a fence\n<b>", "``` not ` a fence\n\\<b>"),
    ],
)
def test_markdown_of_a_message_stays_in_its_place(text, wanted):
    """No HTML, no open comment, no open code block reaches what follows; code stays as it is."""
    assert contained(text) == wanted


def test_hostile_markdown_has_no_elements(hostile):
    """Drawn by a renderer that lets HTML through, the document has nothing that runs."""
    from markdown_it import MarkdownIt

    drawn = MarkdownIt("commonmark", {"html": True}).render("".join(parts(hostile, "markdown")))
    tags = set(re.findall(r"<([a-z0-9]+)", drawn))
    assert tags <= {"h1", "h2", "p", "sub", "strong", "pre", "code", "a", "br", "img"}
    assert "javascript:" not in "".join(re.findall(r'(?:href|src)="([^"]*)"', drawn))


@pytest.fixture
def pictured(tmp_path):
    """A session's file with two images, and the same with the images moved out."""
    from sessiontree.doctor import shrink

    session = SessionManager.create("/code", session_dir=tmp_path)
    for letter in "AB":
        block = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoA" + letter * 2000}
        session.append_message({"role": "user", "content": [block], "timestamp": 0})
        source = {"type": "x", "source": {"media_type": "image/png", "data": "QUJD" + letter * 2000}}
        session.append_custom_entry("deep", {"content": [source]})
    session.append_message(assistant({"type": "text", "text": "seen"}))
    session.close()
    path = session.get_session_file()
    whole = tmp_path / "before.jsonl"
    whole.write_bytes(Path(path).read_bytes())
    assert shrink(path, at_least=100) == 4
    return whole, Path(path)


def exported(path, output, **options):
    with SessionManager.open(path, read_only=True) as session:
        export_session(session, output, **options)
    return output.read_text("utf-8")


@pytest.mark.parametrize("redact", [None, Redactor()])
@pytest.mark.parametrize("ending", ["html", "md", "jsonl"])
def test_images_that_were_moved_out_are_exported_as_if_they_were_not(pictured, tmp_path, ending, redact):
    """What is exported stands alone: it is the same as before the images were moved out."""
    whole, shrunk = pictured
    wanted = exported(whole, tmp_path / f"whole.{ending}", redact=redact)
    assert wanted.count("A" * 2000) == 2
    before = shrunk.read_bytes()
    assert exported(shrunk, tmp_path / f"shrunk.{ending}", redact=redact) == wanted
    assert shrunk.read_bytes() == before


@pytest.mark.parametrize("redact", [None, Redactor([r"[0-9a-f]{20,}"])])
@pytest.mark.parametrize("ending", ["html", "md", "jsonl"])
@pytest.mark.parametrize("how", ["lost", "changed", "cut"])
def test_images_that_are_lost_say_so(pictured, tmp_path, ending, redact, how):
    """In the place of a lost or damaged image stands a sentence, or what stands in the file; the others are shown."""
    _, shrunk = pictured
    folder = Path(f"{shrunk}.images")
    (one,) = [
        each
        for each in folder.iterdir()
        if each.read_text().endswith("A" * 2000) and each.stat().st_size == 2012
    ]
    if how == "lost":
        one.unlink()
    elif how == "changed":
        one.write_text("B" * 2012)
    else:
        one.write_text("iVBORw0KGgoA")
    with pytest.warns(SessionWarning, match="^an image that had been moved out of the session could not"):
        text = exported(shrunk, tmp_path / f"out.{ending}", redact=redact)
    assert text.count("B" * 2000) == 2
    assert "iVBORw0KGgoAA" not in text
    assert ("doctor --read-images" in text) == (ending != "jsonl")
    assert ("sessiontree-image:" + one.name + ":2012" in text) == (ending == "jsonl")


def test_a_picture_that_could_run_is_redacted_after_it_came_back(pictured, tmp_path):
    """What claims to be an image is looked through as it would have been before it was moved out."""
    from sessiontree.doctor import shrink

    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    session = SessionManager.create("/code", session_dir=tmp_path)
    block = {"type": "image", "mimeType": "image/svg+xml", "data": f"{secret}=" + "A" * 200}
    session.append_message({"role": "user", "content": [block], "timestamp": 0})
    session.append_message(assistant({"type": "text", "text": "seen"}))
    session.close()
    path = session.get_session_file()
    assert shrink(path, at_least=100) == 1
    for ending in ("html", "md", "jsonl"):
        assert secret not in exported(path, tmp_path / f"svg.{ending}", redact=Redactor())


@pytest.mark.parametrize("inner", ["plain", "``` tick", "````\n```\n`````"])
def test_no_text_closes_its_fence(inner):
    """A fence is longer than every run of ticks inside it."""
    lines = fenced(inner, "text").split("\n")
    assert lines[0].removesuffix("text") == lines[-1]
    assert lines[-1] not in inner.split("\n")


def test_the_lines_of_a_branch_are_a_session(talk, tmp_path):
    """The file opens, is one chain, and gives the same context."""
    path = tmp_path / "branch.jsonl"
    export_session(talk, path)
    copy = SessionManager.open(path, read_only=True)
    assert len(copy.get_entries()) == len(talk.get_branch())
    assert copy.build_session_context() == talk.build_session_context()


def test_an_existing_file_is_never_overwritten(talk, tmp_path):
    """The name must be free."""
    path = tmp_path / "talk.md"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        export_session(talk, path)
    assert path.read_text() == "mine"


def test_an_unknown_ending_is_refused():
    """The ending must name a format."""
    with pytest.raises(ValueError, match="names no format"):
        format_of("talk.docx")


SECRETS = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    "gh" + "p_" + "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8",
    "sk-" + "ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
    "https://me:hunter" + "22@example.org/",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
)


@pytest.mark.parametrize("kind", ["html", "markdown", "jsonl"])
@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_in_no_format(kind, secret):
    """A key in a message, a tool call or extension data is replaced before anything is drawn."""
    session = SessionManager.in_memory("/code")
    session.append_message(user(f"key {secret} end"))
    session.append_custom_entry("x", {"deep": [{"value": f"a {secret} b"}]})
    redactor = Redactor()
    text = "".join(parts(session, kind, redact=redactor))
    core = "hunter" + "22" if "@" in secret else secret.split("\n")[1 if "\n" in secret else 0]
    assert core not in text
    assert redactor.count >= 2


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=Sup3rS3cret!x9",
        '"password": "correct-horse-9Q"',
        "password=hunter2x",
        "api_key := 'k-1234'",
        "client-secret: s3cr3t",
        "GITHUB_TOKEN=s3cr3t",
        '{\\"password\\": \\"hunter2x\\"}',
        "mysql --user me --password hunter2x -e",
        "curl --api-key 's3cr3t' x",
        "aws_secret_access_key = s3cr3t/x",
        "refresh_token: k-1234",
    ],
)
def test_what_is_called_a_password_is_taken_out(text):
    """The name stays, the value goes; in texts and where a key has the name."""
    redacted = Redactor().text(f"before {text} after")
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert "[redacted: named secret]" in redacted
    assert not any(word in redacted for word in ("Sup3r", "horse", "hunter2x", "1234", "s3cr3t"))
    assert Redactor()({"data": {"db_password": "abc", "passwordless": "yes"}})["data"] == {
        "db_password": "[redacted: named secret]",
        "passwordless": "yes",
    }


@pytest.mark.parametrize("kind", ["html", "markdown", "jsonl"])
def test_secrets_are_nowhere_around_the_entries(kind):
    """Name, label, directory, header, nested ids, keys of objects and pictures that are none hold nothing."""
    secrets = ["AKIA" + f"{'ABCDEFGH'[n]}OSFODNN7EXAMPLE" for n in range(8)]
    session = SessionManager.in_memory(f"/code/{secrets[0]}", parent_session=f"/sessions/{secrets[1]}.jsonl")
    first = session.append_message(user("hello"))
    session.append_label_change(first, secrets[2])
    session.append_session_info(secrets[3])
    arguments = {
        "id": secrets[4],
        "parentId": secrets[4],
        secrets[5]: 1,
        "token": "abcd",
        secrets[5] + "x": 2,
    }
    session.append_message(assistant({"type": "toolCall", "id": "c", "name": "t", "arguments": arguments}))
    odd = [
        {"type": "image", "mimeType": "image/png", "data": f"<{secrets[6]}>"},
        {"type": "image", "data": secrets[7]},
    ]
    session.append_message({"role": "user", "content": odd, "timestamp": 0})
    whole = "".join(parts(session, kind))
    assert all(secret in whole for secret in secrets[2:4])
    text = "".join(parts(session, kind, redact=Redactor()))
    assert [secret for secret in secrets if secret in text] == []
    assert first in text
    assert "abcd" not in text


def test_a_picture_stays_whole():
    """Base64 looks like a key by chance; what is a picture is left alone."""
    data = "iVBORw0KGgo" + "AKIA" + "IOSFODNN7EXAMPLE"
    block = {"type": "image", "mimeType": "image/png", "data": data}
    assert Redactor()({"id": "x", "content": [block]})["content"] == [block]


@given(st.lists(st.sampled_from(["aKb", "K", "b", "KK", "ab", " ", "aKKKb"]), max_size=60), st.integers(6, 9))
def test_windows_replace_what_the_whole_text_has(pieces, window):
    """Looking through windows finds what looking through all at once finds."""
    pattern, text = re.compile("aK+b|K{2}"), "".join(pieces)
    whole = pattern.subn("-", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redact, "_WINDOW", window)
        patch.setattr(redact, "_OVERLAP", 5)
        assert redact._replace(pattern, "-", text) == whole


@pytest.mark.parametrize(
    "text", ["://" * 30_000, "eyJ" * 30_000, "https://a:" * 9000, "a" * 100_000, '"' * 90_000]
)
def test_no_text_holds_redaction_up(text):
    """Time is in proportion to the text, whatever the rules make of it."""
    began = time.process_time()
    Redactor().text(text)
    assert time.process_time() - began < 15


def test_a_secret_in_a_long_line_is_found():
    """Wherever it stands, also across two windows, and however long it is."""
    key = "gh" + "p_" + "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8"
    text = "".join(f'{{"k{n}":"{"x" * n}{key}"}}' for n in range(300))
    assert key not in Redactor().text(text)
    long = "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "a" * 20_000 + "." + "b" * 43
    assert "bbb" not in Redactor().text("x" * 11_000 + " " + long)


def test_keys_that_become_alike_stay_apart():
    """Two secrets as keys of one object leave two members."""
    keys = ("AKIA" + "IOSFODNN7EXAMPLE", "AKIA" + "JOSFODNN7EXAMPLE")
    copy = Redactor()({"a": {keys[0]: 1, "x": 2, keys[1]: 3}})["a"]
    assert list(copy.values()) == [1, 2, 3]
    assert not set(keys) & set(copy)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096",
        "the password is not shown",
        "git log --oneline --author password",
        "token = lexer.next()",
        "secretary: Miss Moneypenny",
        "--token --verbose",
    ],
)
def test_ordinary_text_stays(text):
    """A word that only sounds like a secret is none."""
    assert Redactor().text(text) == text


def test_own_patterns_come_on_top():
    """A caller's expression is applied too; one that is none is refused by name."""
    redactor = Redactor([r"s3cret-\d+"])
    assert redactor.text("the word is s3cret-42") == "the word is [redacted: own pattern]"
    with pytest.raises(ValueError, match="no regular expression"):
        Redactor(["("])
    with pytest.raises(ValueError, match="matches nothing at all"):
        Redactor(["x*"])


def test_nesting_has_no_limit_for_redaction():
    """A value of 100,000 levels is copied without recursion."""
    value = "AKIA" + "IOSFODNN7EXAMPLE"
    for _ in range(100_000):
        value = [value]
    copy = Redactor()({"data": value})["data"]
    while isinstance(copy, list):
        copy = copy[0]
    assert copy.startswith("[redacted: ")


@pytest.mark.parametrize("own", [[r"[0-9a-f]{4,}"], ["[A-Za-z]+"], [r"[^\W_]"]])
def test_a_pattern_that_matches_everything_leaves_a_session(talk, tmp_path, own):
    """Ids, references to them and the words of the format stay: the branch has its tree and no finding."""
    from sessiontree.doctor import check

    talk.append_context_edit(talk.get_branch()[1]["id"], None)
    talk.branch_with_summary(talk.get_branch()[1]["id"], "left")
    talk.append_message(assistant({"type": "toolCall", "id": "call_abcdef", "name": "t", "arguments": {}}))
    result = {
        "role": "toolResult",
        "toolCallId": "call_abcdef",
        "toolName": "t",
        "content": [],
        "isError": False,
    }
    talk.append_message({**result, "timestamp": 0})
    talk.append_label_change(talk.get_branch()[0]["id"], "kept")
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    export_session(talk, before)
    export_session(talk, after, redact=Redactor(own))
    for path in (before, after):
        path.chmod(0o600)
        assert check(path).findings == ()
    old, new = (SessionManager.open(path, read_only=True).get_entries() for path in (before, after))
    for name in ("id", "parentId", "targetId", "firstKeptEntryId", "fromId", "type"):
        assert [entry.get(name) for entry in new] == [entry.get(name) for entry in old]
    roles = [[entry.get("message", {}).get(name) for name in ("role", "toolCallId")] for entry in old]
    assert [[entry.get("message", {}).get(name) for name in ("role", "toolCallId")] for entry in new] == roles
    assert "[redacted: own pattern]" in after.read_text()


def test_ids_elsewhere_and_odd_ones_are_texts():
    """Only where the format has an id does it stay; an argument of that name, or an id that is none, does not."""
    secret = "s3cret-42"
    block = {
        "type": "toolCall",
        "id": secret,
        "arguments": {"id": secret, "targetId": secret, "type": secret},
    }
    entry = {"type": secret, "id": [secret], "message": {"role": secret, "content": [block, secret, None]}}
    copy = Redactor([r"s3cret-\d+"])(entry)
    assert copy["message"]["content"][0]["id"] == secret
    copy["message"]["content"][0]["id"] = ""
    assert secret not in str(copy)
    for odd in (
        {"message": {"content": {"a": 1}}},
        {"message": None, "content": "x", "replacement": []},
        [],
        None,
    ):
        assert Redactor(["q"])(odd) == odd


def test_a_pattern_that_takes_for_ever_is_named(talk, tmp_path, monkeypatch):
    """The export ends with the pattern in its error, and writes nothing; the redactor goes on with other texts."""
    monkeypatch.setattr(patterns, "SECONDS", 0.5)
    talk.append_message(user("a" * 59 + "!"))
    redactor = Redactor(["another", "(a|aa)+$"])
    path = tmp_path / "out.md"
    with pytest.raises(
        ValueError, match=r"the pattern '\(a\|aa\)\+\$' takes longer than 0.5 seconds for a text of 60 "
    ):
        export_session(talk, path, redact=redactor)
    assert os.listdir(tmp_path) == []
    assert redactor.text("another aaa") == "[redacted: own pattern] [redacted: own pattern]"


def test_own_patterns_say_what_they_need(monkeypatch):
    """Without the package that can stop a match, the error names it; without own patterns nobody needs it."""
    monkeypatch.setitem(sys.modules, "regex", None)
    assert Redactor().text("nothing") == "nothing"
    with pytest.raises(ImportError, match=r"own patterns need the regex package: pip install"):
        Redactor(["x"])
