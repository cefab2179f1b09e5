"""What sessiontree gives where pi loses data or fails on files (the recorded scenarios of deviations.json)."""

import base64
import json

import pytest
from _asking import ask, errors, ids, nested, oks, rows, source, text_of

FORK = "<nowfile>_<sid-1>.jsonl"


def test_b01_a_migration_never_destroys_the_file():
    """A body that is nested 20,000 levels deep is migrated like any other."""
    result = ask("migrate-crash-truncates")
    assert result["opened"]["entryCount"] == 3
    assert result["opened"]["leafId"] == "u2"
    assert result["files"]["session.jsonl"]["size"] > 40000


def test_b03_a_deleted_file_is_rebuilt_whole():
    """An append after the file was deleted writes header and history again, and the file opens."""
    result = ask("io-deleted-file")
    assert [row["type"] for row in rows(result)] == ["session"] + ["message"] * 5
    assert [row.get("id") for row in rows(result)][-1] == "new-1"
    assert not any(errors(result))


def test_b04_a_branched_session_makes_its_folder_again():
    """Without the folder the branched session is written all the same, and memory and disk agree."""
    result = ask("io-fork-failure")
    assert oks(result)[3] == f"<dir>/{FORK}"
    assert ids(rows(result, FORK)[1:]) == ids(oks(result)[2]) == ["u1", "a1"]


@pytest.mark.parametrize("number", [1, 2])
def test_b04_b06_b39_deep_bodies_are_copied(number):
    """A body of 5,000 levels goes into a branched session and a fork whole."""
    result = ask("load-nesting-5000", number)
    lines = result["files"][FORK]
    assert "openError" not in result
    assert lines["text"].count("[" * 5000 + "]" * 5000) == 1


def test_b05_a_refused_file_changes_nothing():
    """After setSessionFile on a foreign file the session goes on in its own, the other is as it was."""
    result = ask("io-set-session-file-invalid")
    assert oks(result)[2] == "<dir>/session.jsonl"
    assert text_of(result, "notes.txt") == "my notes\n"
    assert rows(result)[-1]["id"] == "new-1"


def test_b06_b39_a_deep_first_message_is_written():
    """A first message that is nested 20,000 levels deep starts the session; the next one follows it."""
    result = ask("io-stringify-failure-first")
    assert not any(errors(result))
    assert oks(result)[0] == "new-1"
    assert oks(result)[4] == 2


def test_b06_a_foreign_file_is_not_taken_over():
    """A file that appeared meanwhile is left alone, and once it is gone the session is written."""
    result = ask("io-exists")
    assert [bool(error) for error in errors(result)][2:6] == [True, False, False, True]
    assert oks(result)[7]["text"].startswith("other process\n")
    assert rows(result)[-1]["message"]["content"] == "ok now"


def test_b06_a_dangling_link_gets_its_target():
    """Through a dangling link the target is created; the link stays a link."""
    result = ask("open-dangling-symlink")
    assert not any(errors(result))
    assert result["files"]["link.jsonl"] == {"symlink": "gone.jsonl"}
    assert [row["type"] for row in rows(result, "gone.jsonl")] == ["session", "message", "message"]


def test_b08_a_migration_keeps_lines_it_cannot_read():
    """Garbage and blank lines stand where they stood; only the header's version has changed."""
    result = ask("migrate-loses-malformed")
    before, after = source("migrate-loses-malformed"), text_of(result).encode().split(b"\n")
    assert after[1 : len(before)] == before[1:]
    assert json.loads(after[0])["version"] == 3


def test_b08_a_migration_keeps_numbers_escapes_and_key_order():
    """1e400, big integers, escapes, invalid bytes and duplicate keys stay byte for byte."""
    result = ask("migrate-renormalises")
    after = base64.b64decode(result["files"]["session.jsonl"]["b64"]).split(b"\n")
    assert json.loads(after[0])["version"] == 3
    assert after[1:3] == source("migrate-renormalises")[1:3]


@pytest.mark.parametrize(("name", "number"), [("load-numbers", 1), ("load-integer-keys", 1)])
def test_b08_a_fork_copies_the_text_of_every_line(name, number):
    """Numbers and integer-like keys are in the fork as they were written."""
    lines = text_of(ask(name, number), FORK).encode().removesuffix(b"\n").split(b"\n")
    assert lines[1:] == source(name)[1:]


def test_b09_existing_ids_stay_so_that_labels_hold():
    """Entries of a version 1 file that have ids keep them."""
    entries, tree, label = oks(ask("migrate-v1-has-ids"))
    assert ids(entries) == ["u1", "a1", "l1"]
    assert nested(tree) == [("u1", [("a1", [("l1", [])])])]
    assert label == "L"


def test_b09_an_index_of_a_later_entry_drops_nothing():
    """A later entry that the kept index names keeps its id; the compaction keeps what came before it."""
    entries, _, _ = oks(ask("migrate-v1-later-with-old-id"))
    assert ids(entries)[2] == "old"
    assert entries[1]["firstKeptEntryId"] == entries[0]["id"]


@pytest.mark.parametrize("kind", ["out-of-range", "negative", "string", "null", "later"])
def test_b09_an_unusable_index_drops_nothing(kind):
    """A kept index that names no earlier entry keeps everything from the previous boundary on."""
    entries, _, context = oks(ask(f"migrate-v1-compaction-{kind}"))
    assert [m["role"] for m in context["messages"]] == ["compactionSummary", "user", "assistant", "user"]
    assert entries[2]["firstKeptEntryId"] == entries[0]["id"]


@pytest.mark.parametrize("name", ["version-0", "version-negative", "version-null", "version-string-1"])
def test_b09_versions_below_2_keep_their_ids(name):
    """However version 1 is written: the entries' own ids stay, the header says 3."""
    result = ask(name, 1)
    assert rows(result)[0]["version"] == 3
    assert ids(rows(result)[1:]) == [json.loads(line)["id"] for line in source(name)[1:]]


def test_b10_a_failed_branch_summary_leaves_the_leaf():
    """Where nothing can be written, leaf, label and name stay as they were."""
    result = ask("io-branch-rollback")
    assert {step["leaf"] for step in result["steps"] if "leaf" in step} == {"a2"}
    assert oks(result)[7] is None or oks(result)[7] == {"$undefined": True}
    assert sum(error is not None for error in errors(result)) == 4


def test_b11_a_fork_source_is_not_touched():
    """Forking a file with a torn tail leaves it byte for byte."""
    result = ask("fork-from-torn")
    assert text_of(result).encode().removesuffix(b"\n").split(b"\n") == source("fork-from-torn")
    assert ids(rows(result, FORK)[1:]) == ["u1", "a1", "u2", "a2"]


def test_b11_opening_does_not_cut_a_line_that_is_being_written():
    """A second open between two halves of another writer's line does not part them."""
    result = ask("io-two-writers-torn")
    assert [row.get("id") for row in rows(result)][-1] == "half"
    assert oks(result)[5] == 5


@pytest.mark.parametrize("name", ["bighead-file-ends-at-limit", "load-cr-only-header-lf", "load-mixed-eol"])
def test_b11_an_open_that_only_reads_writes_nothing(name):
    """A file without a last line feed is as it was after an open."""
    described = ask(name, 1)["files"]["session.jsonl"]
    if name == "bighead-file-ends-at-limit":
        assert described["size"] == 1048576
    else:
        assert not described["text"].endswith("\n")


def test_b12_two_writers_take_in_each_others_entries():
    """Each append takes in what the other wrote; both branches and all entries are there."""
    result = ask("io-two-writers")
    first, second = oks(result)[4], oks(result)[5]
    assert [e["message"]["content"] for e in first][-2] == "from a"
    assert [e["message"]["content"] for e in second][-1] == "from b"
    assert result["closed"]["entryCount"] == len(rows(result)) - 1


@pytest.mark.parametrize("number", [1, 2])
def test_b38_unknown_header_fields_are_in_the_fork(number):
    """A branched session and a fork keep header fields that sessiontree does not know."""
    header = rows(ask("load-header-extra-fields", number), FORK)[0]
    assert header["custom"] == {"a": 1}
    assert header["id"] == "<sid-1>"
