"""Searching and statistics: what they find, say and give to other programs."""

import json
import os
import sys

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of our own."""
    monkeypatch.setenv("SESSIONTREE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def message(id, role, text, second=1, **more):
    stamp = f"2026-01-0{second}T00:00:00.000Z"
    return {
        "type": "message",
        "id": id,
        "parentId": None,
        "timestamp": stamp,
        "message": {"role": role, "content": text, **more},
    }


def answer(id, text, cost, second=1):
    usage = {
        "input": 100,
        "output": 10,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": 110,
        "cost": {"total": cost},
    }
    return message(
        id, "assistant", [{"type": "text", "text": text}], second, provider="p", model="m", usage=usage
    )


@pytest.fixture
def sessions(home, write):
    """Two sessions of two projects."""
    folder = home.parent / "agent" / "sessions"
    for name, cwd, cost in (("one", "/code/one", 1.5), ("two", "/code/two", 0.25)):
        path = write(
            message("a", "user", f"green tea, {name}"),
            answer("b", f"black \x1b[2J tea of {name}", cost, 2),
            cwd=cwd,
            id=name,
        )
        (folder / f"--{name}--").mkdir(parents=True)
        os.rename(path, folder / f"--{name}--" / f"{name}.jsonl")
    return folder


@pytest.mark.parametrize("arguments", [["search", "tea"], ["stats"], ["catalog", "refresh"]])
def test_a_cache_that_cannot_be_used_is_named(run, sessions, cache, arguments):
    """Where the cache folder is no folder the line says that it is the cache, and how to name another one."""
    cache.write_text("a file")
    done = run(*arguments)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "the cache cannot be used: " in done.err
    assert "SESSIONTREE_CACHE_DIR" in done.err
    assert run("list", "--all").code == 0


def test_search_says_that_it_found_nothing(run, sessions):
    """Nothing found is said on stderr."""
    done = run("search", "nothing-like-it")
    assert (done.code, done.out, "nothing was found" in done.err) == (1, "", True)


@pytest.mark.parametrize("value", ["nan", "much"])
def test_an_amount_is_a_number(run, sessions, value):
    """What cannot be compared with is wrong usage."""
    done = run("stats", "--min-cost", value)
    assert (done.code, "not an amount" in done.err) == (2, True)


def test_search_shows_sessions_and_entries(run, sessions):
    """Hits stand below their sessions, controls in them as escapes."""
    done = run("search", "tea", "one")
    assert done.code == 0
    assert str(sessions / "--one--" / "one.jsonl") in done.out
    assert "two.jsonl" not in done.out
    assert "\\x1b[2J" in done.out
    assert "\x1b" not in done.out
    assert done.err == ""


def test_search_gives_json_lines(run, sessions):
    """Each hit is an object on a line."""
    done = run("search", "green", "--json", "--role", "user", "--sort", "time")
    hits = [json.loads(line) for line in done.lines]
    assert {hit["cwd"] for hit in hits} == {"/code/one", "/code/two"}
    assert {hit["entryId"] for hit in hits} == {"a"}
    assert [hit["snippet"][slice(*hit["marks"][0])] for hit in hits] == ["green", "green"]
    assert hits[0]["time"] == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("arguments", "hits"),
    [
        (["tea"], 4),
        (["tea", "--limit", "1"], 1),
        (["tea", "--project", "two"], 2),
        (["tea", "--since", "2026-01-02"], 2),
        (["tea", "--until", "2026-01-01T12:00Z"], 2),
        (["tea", "--min-cost", "1"], 2),
        (["-e", "gr[e]+n"], 2),
        (["--phrase", "green", "tea"], 2),
        (["--prefix", "gre"], 2),
        (["--", "tea", "-green"], 2),
        (["nothing-like-it"], 0),
    ],
)
def test_search_options(run, sessions, arguments, hits):
    """Options choose; finding nothing is exit code 1."""
    done = run("search", "--json", *arguments)
    assert (len(done.lines), done.code) == (hits, 0 if hits else 1)


def test_new_sessions_are_found_at_once(run, sessions):
    """A search sees what was written just now, and what was removed."""
    (sessions / "--two--" / "two.jsonl").unlink()
    with open(sessions / "--one--" / "one.jsonl", "a") as file:
        file.write(json.dumps(message("c", "user", "white tea")) + "\n")
    assert run("search", "white").code == 0
    assert run("search", "two").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["search"],
        ["search", ""],
        ["search", "-e", "("],
        ["search", "x", "--since", "soon"],
        ["search", "x", "--role", "nobody"],
        ["stats", "--by", "hour"],
        ["catalog", "burn"],
    ],
)
def test_wrong_usage(run, sessions, arguments):
    """What cannot be meant is exit code 2, in one line."""
    done = run(*arguments)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


def test_stats_tables(run, sessions):
    """Left out, sums come by model, project and day; the dearest has the longest bar."""
    done = run("stats")
    assert done.code == 0
    assert "p/m" in done.out
    lines = [line for line in done.lines if line.startswith("/code/")]
    assert [line.split()[1] for line in lines] == ["$1.50", "$0.25"]
    assert lines[0].count("█") > lines[1].count("█") > 0


def test_stats_json(run, sessions):
    """Each sum is an object on a line."""
    rows = [json.loads(line) for line in run("stats", "--by", "session", "--json").lines]
    assert [row["cost"] for row in rows] == [1.5, 0.25]
    assert rows[0]["key"] == str(sessions / "--one--" / "one.jsonl")
    assert (rows[0]["input"], rows[0]["calls"], rows[0]["by"]) == (100, 1, "session")
    done = run("stats", "--project", "nowhere")
    assert (done.code, "nothing to sum up" in done.err) == (1, True)


def test_stats_of_one_context(run, sessions):
    """The growth of a context has a bar, or an object, for each answer."""
    path = sessions / "--one--" / "one.jsonl"
    assert "110" in run("stats", "--context", path).out
    row = json.loads(run("stats", "--context", path, "--json").out)
    assert row == {"time": "2026-01-02T00:00:00.000Z", "contextTokens": 110}


def test_charts_as_images_say_what_they_need(run, sessions, tmp_path, monkeypatch):
    """Without matplotlib the line says how to get it; with it there is a picture."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("stats", "--png", tmp_path / "chart.png")
    assert (done.code, "sessiontree[charts]" in done.err) == (1, True)


def test_charts_as_images(run, sessions, tmp_path, write):
    """With matplotlib there is a picture, of sums and of one context, whatever projects are called."""
    pytest.importorskip("matplotlib")
    odd = write(answer("a", "x", 1.0), cwd="/code/$\\frac{日本", id="odd")
    os.rename(odd, sessions / "--two--" / "odd.jsonl")
    for name, start in (("chart.png", b"\x89PNG"), ("chart", b"\x89PNG"), ("chart.svg", b"<?xml")):
        done = run("stats", "--png", tmp_path / name)
        assert (done.code, done.err) == (0, "")
        assert (tmp_path / name).read_bytes().startswith(start)
    path = sessions / "--one--" / "one.jsonl"
    assert run("stats", "--context", path, "--png", tmp_path / "growth.png").code == 0
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    for name in ("chart.nonsense", "nope/chart.png"):
        done = run("stats", "--png", tmp_path / name)
        assert (done.code, len(done.err.splitlines()), name.split("/")[0] in done.err) == (1, 1, True)
        assert not (tmp_path / name).exists()


def test_looking_after_the_catalog(run, sessions, cache):
    """It says what it did, where it is, and can be removed."""
    assert "2 new" in run("catalog", "refresh").out
    assert "0 new" in run("catalog", "refresh").out
    assert run("catalog", "info", "--json").json["sessions"] == 2
    assert "sound" in run("catalog", "check").out
    assert run("catalog", "compact").code == 0
    assert run("catalog", "clear").code == 0
    assert list(cache.iterdir()) == []


def test_what_cannot_be_read_is_told(run, sessions):
    """A file that cannot be read is a line on stderr, and the rest is found."""
    (sessions / "--one--" / "folder.jsonl").mkdir()
    done = run("search", "green")
    assert done.code == 0
    assert "folder.jsonl" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 100, 200])
def test_tables_fit_the_terminal(run, sessions, monkeypatch, columns):
    """No line is wider than the terminal; names have room before bars and the last columns."""
    from sessiontree.cli._output import Screen

    screen = Screen(columns, colour=False, terminal=True)
    monkeypatch.setattr(Screen, "of_stdout", classmethod(lambda cls: screen))
    done = run("stats")
    assert max(map(len, done.lines)) <= columns
    if columns >= 40:
        assert "/code/one" in done.out
    if columns >= 100:
        assert done.out.count("█" * 10) >= 3
