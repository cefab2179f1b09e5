"""The commands that read: tree, show, path."""

import json
import time

import pytest
from cli_sessions import sample, user
from sessiontree import SessionManager


def digest(path):
    return path.read_bytes(), path.stat().st_mtime_ns


def test_tree_marks_what_matters(run, branches):
    """Branches stand further in, labels, the compaction and the leaf are marked, long stretches folded."""
    done = run("tree", branches)
    assert done.code == 0
    assert "50 entries, 2 branches, 1 compaction, 3 labels" in done.lines
    assert sum(line.startswith("├─○") for line in done.lines) == 1
    assert next(line for line in done.lines if line.startswith("◉")).endswith("◀ leaf")
    assert any("[last row fixed]" in line for line in done.lines)
    assert any("compaction" in line and "11,278 tokens before" in line for line in done.lines)
    assert "⋮ 4 more entries" in done.lines


def test_tree_all_folds_nothing(run, branches):
    """With --all each entry has its line."""
    assert sum(line.lstrip("│├─ ")[:1] in "●○◉" for line in run("tree", branches, "--all").lines[3:]) == 50


def test_tree_json_has_every_entry(run, branches):
    """The JSON of a tree has the entries in file order, labels, the leaf and the way to it."""
    tree = run("tree", branches, "--json").json
    session = SessionManager.open(branches, read_only=True)
    assert [e["id"] for e in tree["entries"]] == [e["id"] for e in session.get_entries()]
    assert tree["leaf"] == session.get_leaf_id()
    assert [e["id"] for e in tree["entries"] if e["onPath"]] == list(session.path_ids())
    assert sorted(e["label"] for e in tree["entries"] if "label" in e) == [
        "both line ends",
        "last row fixed",
        "two ways from here",
    ]


def test_path_is_the_branch(run, branches):
    """The path lists the entries from the root to the leaf, or to another entry."""
    session = SessionManager.open(branches, read_only=True)
    assert run("path", branches, "--json").json == list(session.get_branch())
    ids = [line.split()[0] for line in run("path", branches).lines]
    assert ids == list(session.path_ids())
    middle = ids[7]
    assert [line.split()[0] for line in run("path", branches, "--to", middle).lines] == ids[:8]


def test_show_is_the_context(run, branches):
    """The context has the messages the model would get, the newest compaction first."""
    session = SessionManager.open(branches, read_only=True)
    context = session.build_session_context()
    shown = run("show", branches, "--json").json
    assert shown["messages"] == context.messages
    assert shown["model"] == context.model
    assert shown["thinkingLevel"] == context.thinking_level == "medium"
    text = run("show", branches).out
    head, first, *_ = text.splitlines()
    assert (head.startswith("── summary  "), first) == (True, "## Goal")
    assert f"{len(context.messages)} messages, about " in text


def test_show_at_another_entry(run, branches):
    """--at shows the context as it was there, by the beginning of an id too."""
    session = SessionManager.open(branches, read_only=True)
    session.branch("902a174f")
    assert run("show", branches, "--at", "902a", "--json").json["messages"] == (
        session.build_session_context().messages
    )


def test_show_one_entry(run, branches):
    """--entry gives the entry as it is stored."""
    lines = branches.read_text("utf-8").splitlines()
    shown = run("show", branches, "--entry", "a13ffe79")
    assert shown.out.strip() in lines


@pytest.mark.parametrize("command", ["tree", "show", "path"])
def test_reading_never_writes(run, command, tmp_path):
    """The file is byte for byte and in its time as before, a torn one and an old one too."""
    for name in ("thumbs-torn.jsonl", "notes-version1.jsonl", "csvtail-branches.jsonl"):
        copy = tmp_path / f"copy-{name}"
        copy.write_bytes(sample(name))
        before = digest(copy)
        assert run(command, copy).code == 0
        assert run(command, copy, "--json").code == 0
        assert digest(copy) == before


@pytest.mark.parametrize("command", ["tree", "show", "path"])
def test_control_characters_never_reach_the_terminal(run, write, command):
    """Escape sequences, C1 controls, reversing marks and DEL are shown, not sent."""
    bad = "\x1b]0;owned\x07\x9b2J\u202egnp.exe\x7f\u2028"
    path = write(
        user("aaaaaaaa", None, f"text {bad}"),
        {"type": "label", "id": "bbbbbbbb", "parentId": "aaaaaaaa", "targetId": "aaaaaaaa", "label": bad},
        {"type": "session_info", "id": f"c{bad}", "parentId": "bbbbbbbb", "name": f"name {bad}"},
        {"type": f"odd{bad}", "id": "dddddddd", "parentId": f"c{bad}", "timestamp": bad},
        cwd=f"/code{bad}",
    )
    for arguments in ([], ["--json"]):
        done = run(command, path, *arguments)
        assert done.code == 0
        assert not set(done.out) & set("\x1b\x07\x9b\u202e\x7f\u2028")
    if command == "path":
        assert run("path", path, "--json").json[0]["message"]["content"] == f"text {bad}"


def test_a_lone_surrogate_is_shown(run, write):
    """What UTF-8 cannot hold is shown as an escape."""
    path = write(
        '{"type":"message","id":"aaaaaaaa","parentId":null,"message":{"role":"user","content":"a \\ud83d b"}}'
    )
    assert "a \\ud83d b" in run("show", path).out
    assert json.loads(run("show", path, "--json").out)["messages"][0]["content"] == "a \ud83d b"


ODD = [
    "7",
    '"text"',
    "[1,2]",
    '{"type":"message","id":"m1","parentId":null}',
    '{"type":"message","id":"m2","parentId":"m1","message":null}',
    '{"type":"message","id":"m3","parentId":"m2","message":"text"}',
    '{"type":"message","id":"m4","parentId":"m3","message":{"role":7,"content":8}}',
    '{"type":"message","id":"m5","parentId":"m4","message":{"role":"user","content":[null,3,"x",{"type":9}]}}',
    '{"type":"message","id":"m6","parentId":"m5","message":{"role":"assistant","content":[{"type":"toolCall"}]}}',
    '{"type":"message","id":"m7","parentId":"m6","message":{"role":"toolResult","content":{"a":1}}}',
    '{"type":"message","id":"m8","parentId":"m7","message":{"role":"user","content":[{"type":"image"}]}}',
    '{"type":"compaction","id":"k1","parentId":"m8","summary":5,"tokensBefore":"many"}',
    '{"type":"label","id":"l1","parentId":"k1","targetId":{"a":1},"label":["x"]}',
    '{"type":"label","id":"l2","parentId":"l1","targetId":"m1","label":["x"]}',
    '{"type":"context_edit","id":"e1","parentId":"l2","targetId":4,"replacement":5}',
    '{"type":"session_info","id":"s1","parentId":"e1","name":12}',
    '{"type":"thinking_level_change","id":"t1","parentId":"s1","thinkingLevel":{}}',
    '{"type":"custom_message","id":"c1","parentId":"t1","content":1e400}',
    '{"type":5,"id":"x1","parentId":"c1"}',
    '{"id":9,"parentId":"x1"}',
]


@pytest.mark.parametrize("command", ["tree", "show", "path"])
def test_odd_entries_are_shown(run, write, command):
    """Entries that no writer should have written break nothing."""
    path = write(*ODD)
    for arguments in ([], ["--json"]):
        done = run(command, path, *arguments)
        assert (done.code, done.err.count("fault of the program")) == (0, 0), done.err
        assert done.out


def test_tree_shows_cycles_and_orphans(run, write):
    """No entry is lost: a cycle is cut at its first entry, an orphan is a root."""
    path = write(
        user("aaaaaaaa", "bbbbbbbb", "cycle one", 1),
        user("bbbbbbbb", "aaaaaaaa", "cycle two", 2),
        user("cccccccc", "cccccccc", "own parent", 3),
        user("dddddddd", "missing0", "orphan", 4),
        user("eeeeeeee", None, "root", 5),
    )
    done = run("tree", path)
    assert done.code == 0
    for text in ("cycle one", "cycle two", "own parent", "orphan", "root"):
        assert sum(text in line for line in done.lines) == 1
    assert "1 entry whose parent is missing" in done.lines


def test_path_into_a_cycle_fails_in_one_line(run, write):
    """Where one path was asked for, a cycle is an error that names it."""
    path = write(user("aaaaaaaa", "bbbbbbbb", "one", 1), user("bbbbbbbb", "aaaaaaaa", "two", 2))
    done = run("path", path)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "cycle" in done.err


def test_tree_of_a_long_session_is_quick(run, write):
    """100,000 entries, one chain with 100 branches: drawn in less than two seconds on any machine."""
    entries = [user(f"{n:08x}", f"{n - 1:08x}" if n else None, f"text {n}", n) for n in range(100_000)]
    entries += [user(f"b{n:07x}", f"{n * 990:08x}", "branch", n) for n in range(1, 101)]
    entries.append(user("ffffffff", f"{99_999:08x}", "end", 5))
    path = write(*entries)
    start = time.process_time()
    done = run("tree", path)
    took = time.process_time() - start
    assert "100,101 entries, 101 branches, 0 compactions, 0 labels" in done.lines
    assert len(done.lines) < 800
    assert took < 2


def test_tree_nests_no_deeper_than_it_must(run, write):
    """A tree whose every entry branches stays narrow, however deep it is."""
    entries = []
    for n in range(3000):
        entries.append(user(f"{n:08x}", f"{n - 1:08x}" if n else None, "main", 2 * n))
        entries.append(user(f"b{n:07x}", f"{n:08x}", "side", 2 * n + 1))
    done = run("tree", write(*entries), "--all")
    assert max(len(line) for line in done.lines) <= 121
    assert max(line.count("│") for line in done.lines) <= 2


def test_tree_of_many_children_is_folded(run, write):
    """Of 5,000 branches of one entry a dozen are drawn, the others counted."""
    entries = [user("aaaaaaaa", None, "root")]
    entries += [user(f"{n:08x}", "aaaaaaaa", "child", n) for n in range(5000)]
    done = run("tree", write(*entries))
    assert "│ ⋮ 4,987 more branches" in done.lines
    assert len(done.lines) < 20


def test_a_torn_tail_is_told(run, tmp_path):
    """The tree says that the last line is torn, and which lines are no JSON."""
    path = tmp_path / "torn.jsonl"
    path.write_bytes(sample("thumbs-torn.jsonl"))
    assert "the last line is torn: its writer died, or is writing still" in run("tree", path).lines
    path.write_bytes(sample("thumbs-torn.jsonl") + b"\n")
    assert any(
        line.startswith("no JSON: ") and "(line 10, byte 3" in line for line in run("tree", path).lines
    )
