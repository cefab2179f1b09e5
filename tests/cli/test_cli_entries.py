"""How an argument names an entry, and what happens where nobody listens."""

import subprocess
import sys

import click
import pytest
from sessiontree import SessionManager
from sessiontree.cli import _place


@pytest.fixture
def session():
    session = SessionManager.in_memory("/code")
    for text in ("one", "two", "three"):
        session.append_message({"role": "user", "content": text, "timestamp": 0})
    return session


def test_an_entry_is_named_by_id_prefix_or_label(session):
    """All three lead to the same entry."""
    first = session.get_entries()[0]["id"]
    session.append_label_change(first, "start")
    assert {_place.entry_id(session, given) for given in (first, first[:7], "start")} == {first}


def test_a_label_of_two_entries_names_neither(session):
    """Both are shown, so that one can be chosen."""
    ids = [entry["id"] for entry in session.get_entries()][:2]
    for id in ids:
        session.append_label_change(id, "same")
    with pytest.raises(click.UsageError, match="label of several entries") as raised:
        _place.entry_id(session, "same")
    assert all(id in raised.value.message for id in ids)


def test_an_unknown_name_is_said(session):
    """Neither id nor label."""
    with pytest.raises(_place.NotFoundError, match="no entry has the id or the label 'nothing'"):
        _place.entry_id(session, "nothing")


def test_a_closed_standard_output_is_no_fault(tmp_path):
    """The command does its work; there is nobody to tell."""
    command = f"{sys.executable} -m sessiontree list --json --session-dir {tmp_path} >&-"
    done = subprocess.run(command, shell=True, check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_settings_file_that_cannot_be_read_is_said(tmp_path, monkeypatch, capsys):
    """The file is named, the defaults count, and the exit code is 1."""
    from sessiontree.cli import main

    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path))
    (tmp_path / "settings.json").write_text("{bad")
    assert main(["settings", "compaction.enabled", "--cwd", str(tmp_path)]) == 1
    out = capsys.readouterr()
    assert out.out == "true\n"
    assert "settings.json" in out.err
    assert "defaults" in out.err
