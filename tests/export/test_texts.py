"""Markdown, lines of a branch, and what is taken out of all of them."""

import pytest
from sessiontree import SessionManager
from sessiontree.export import export_session, format_of, parts
from sessiontree.export.markdown import fenced
from sessiontree.export.redact import Redactor

from .conftest import user


def test_markdown_holds_the_branch_and_nothing_else(talk):
    """One branch, root first, with labels."""
    text = "".join(parts(talk, "markdown"))
    assert text.startswith("# Fix the parser\n")
    assert "## User — start" in text
    assert "another way" in text
    assert "needle-in-the-result" not in text


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


def test_own_patterns_come_on_top():
    """A caller's expression is applied too; one that is none is refused by name."""
    redactor = Redactor([r"s3cret-\d+"])
    assert redactor.text("the word is s3cret-42") == "the word is [redacted: own pattern]"
    with pytest.raises(ValueError, match="no regular expression"):
        Redactor(["("])


def test_nesting_has_no_limit_for_redaction():
    """A value of 100,000 levels is copied without recursion."""
    value = "AKIA" + "IOSFODNN7EXAMPLE"
    for _ in range(100_000):
        value = [value]
    copy = Redactor()({"data": value})["data"]
    while isinstance(copy, list):
        copy = copy[0]
    assert copy.startswith("[redacted: ")
