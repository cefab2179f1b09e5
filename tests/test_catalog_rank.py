"""The order of what is found, and the words that are shown: as computed one text after the other."""

import json
import math
import re
import sqlite3
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sessiontree.catalog import Catalog, _query

words = st.sampled_from(["tea", "cup", "pot", "milk", "Tea", "teas"])
texts = st.lists(words, min_size=1, max_size=40).map(" ".join)


def filled(catalog, folder, given):
    head = {"type": "session", "version": 3, "id": "s", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/w"}
    lines = [head] + [
        {
            "type": "message",
            "id": f"{n:04}",
            "parentId": None,
            "timestamp": head["timestamp"],
            "message": {"role": "user", "content": text},
        }
        for n, text in enumerate(given)
    ]
    folder.mkdir(exist_ok=True)
    (folder / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    catalog.refresh([folder])
    return catalog


def bm25(given, asked):
    """The score of each text that has all words; lengths are as coarse as in the catalog."""
    counts = [[text.lower().split().count(word) for word in asked] for text in given]
    score = dict.fromkeys((n for n, row in enumerate(counts) if all(row)), 0.0)
    for column in range(len(asked)):
        having = sum(row[column] > 0 for row in counts)
        idf = max(1e-6, math.log((len(given) - having + 0.5) / (having + 0.5)))
        for n in score:
            weight = max(1, round(255 / (1 + 3 * len(given[n]) / 1000)))
            often = counts[n][column]
            score[n] += idf * often * 2.2 / (often + 0.3 * 255 / weight)
    return score


@given(
    st.lists(texts, min_size=1, max_size=30),
    st.lists(words.map(str.lower), min_size=1, max_size=3, unique=True),
)
@example(["tea"] * 3 + ["tea " * 30, "cup"], ["tea"])
def test_hits_come_by_bm25_and_equal_ones_as_they_were_read(tmp_path_factory, given, asked):
    """The order is that of a computation by hand; texts that count alike come as they were read."""
    assume(sum(len(text.split()) for text in given) != 3 * len(given))
    score = bm25(given, asked)
    with filled(Catalog(":memory:"), tmp_path_factory.mktemp("rank"), given) as catalog:
        found = [int(hit.entry_id) for hit in catalog.search(" ".join(asked), limit=None, every_copy=True)]
        assert sorted(found) == sorted(score)
        for before, after in pairwise(found):
            near = math.isclose(score[before], score[after], rel_tol=1e-9)
            assert near or score[before] > score[after]
            if sorted(given[before].lower().split()) == sorted(given[after].lower().split()):
                assert before < after
        for limit in (0, 1, 2, len(found)):
            some = catalog.search(" ".join(asked), limit=limit, every_copy=True)
            assert [int(hit.entry_id) for hit in some] == found[:limit]


def test_texts_of_three_words_are_found_in_their_order(tmp_path):
    """Where FTS5 cannot tell how often words occur, hits come as they were read."""
    with filled(Catalog(":memory:"), tmp_path / "s", ["tea x y", "tea tea tea", "cup x y"]) as catalog:
        assert [hit.entry_id for hit in catalog.search("tea")] == ["0000", "0001"]
        assert [hit.entry_id for hit in catalog.search("tea OR cup")] == ["0000", "0001", "0002"]


def test_copies_do_not_use_up_the_limit(tmp_path):
    """As many different entries as are wanted are found behind hundreds of copies of a better one."""
    folder = tmp_path / "s"
    head = {"type": "session", "version": 3, "id": "s", "timestamp": "2024-01-01T00:00:00.000Z", "cwd": "/w"}
    entry = {"type": "message", "id": "1", "parentId": None, "timestamp": head["timestamp"]}
    best = {**entry, "message": {"role": "user", "content": "tea tea tea"}}
    folder.mkdir()
    for n in range(200):
        other = {**entry, "id": f"x{n}", "message": {"role": "user", "content": f"tea and {n}"}}
        lines = [head, best, *([other] if n >= 195 else [])]
        (folder / f"{n}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Catalog(":memory:") as catalog:
        catalog.refresh([folder])
        hits = catalog.search("tea", limit=4)
        assert [hit.entry_id[0] for hit in hits] == ["1", "x", "x", "x"]
        assert [hit.entry_id for hit in hits] == [
            hit.entry_id for hit in catalog.search("tea", limit=None)[:4]
        ]
        assert len(catalog.search("tea", limit=None, every_copy=True)) == 205


letters = st.text("ab AB_.-\u00e9e\u0301\u2014\u0130\u4e2d1", min_size=1, max_size=25)
queries = st.sampled_from(["a", "b", "ab", "a*", "a b", '"a b"', "a_b", "a OR b", "a -b", "1 a*"])


@given(st.lists(letters, min_size=1, max_size=5), queries)
@example(["xa a a"], '"a a"')
@example(["éa a", "a—b a", "İa a"], "a")
def test_marks_are_words_that_the_index_finds(tmp_path_factory, given, query):
    """Every mark is one that FTS5 sets in the same text, and there is at least one."""
    with filled(Catalog(":memory:"), tmp_path_factory.mktemp("marks"), given) as catalog:
        hits = catalog.search(query, limit=None, every_copy=True)
        match = _query.compile_query(query, phrase=False, prefix=False, regex=False).match
        for hit in hits:
            assert hit.marks
            theirs = marked_by_fts5(hit.snippet, match)
            for start, end in hit.marks:
                assert any(a <= start and end <= b for a, b in theirs)


def marked_by_fts5(text, match):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize='unicode61 remove_diacritics 2')")
    connection.execute("INSERT INTO t VALUES (?)", (text,))
    rows = connection.execute(
        "SELECT highlight(t, 0, '\x02', '\x03') FROM t WHERE t MATCH ?", (match,)
    ).fetchall()
    connection.close()
    spans, at = [], 0
    for number, piece in enumerate(re.split("[\x02\x03]", rows[0][0] if rows else "")):
        if number % 2:
            spans.append((at, at + len(piece)))
        at += len(piece)
    return spans


def test_an_excerpt_shows_where_most_words_are_near(tmp_path):
    """Of many places the one is shown that has all words, and every hit in it is marked."""
    text = "tea " * 5 + "x " * 300 + "the cup of tea " + "y " * 300
    with filled(Catalog(":memory:"), tmp_path / "s", [text]) as catalog:
        (hit,) = catalog.search("tea cup")
    assert [hit.snippet[a:b] for a, b in hit.marks] == ["cup", "tea"]


def test_an_index_that_lacks_texts_is_told(tmp_path):
    """A check compares how many texts the index has with how many there are."""
    with filled(Catalog(tmp_path / "c.db"), tmp_path / "s", ["tea", "cup"]) as catalog:
        assert catalog.check() == []
        connection = sqlite3.connect(catalog.path)
        with connection:
            connection.execute("DELETE FROM passages WHERE text = 'cup'")
        connection.close()
        assert catalog.check() == ["the index has 2 texts of 1"]


@pytest.mark.parametrize("character", ["\u00e9", "e\u0301"])
def test_words_with_accents_are_marked_whole(tmp_path, character):
    """Where letters are not ASCII's, FTS5 itself says where the words are."""
    with filled(Catalog(":memory:"), tmp_path / "s", [f"un caf{character} noir"]) as catalog:
        (hit,) = catalog.search("cafe")
    assert hit.snippet == f"un caf{character} noir"
    assert [hit.snippet[a:b].startswith("caf") for a, b in hit.marks] == [True]
