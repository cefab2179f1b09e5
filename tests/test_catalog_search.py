"""Searching and summing up: what a query means, filters, snippets, and costs counted once."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree import SessionManager
from sessiontree.catalog import Catalog
from sessiontree.compaction import get_usage_cost_breakdown

START = datetime(2024, 1, 1, 12, tzinfo=UTC)


def stamp(hours=0):
    return (START + timedelta(hours=hours)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def message(id, content, role="user", hours=0, **more):
    body = {"role": role, "content": content, **more}
    return {"type": "message", "id": id, "parentId": None, "timestamp": stamp(hours), "message": body}


def usage(cost, input=10, output=1):
    return {"input": input, "output": output, "cacheRead": 5, "cacheWrite": 2, "cost": {"total": cost}}


def answer(id, text, cost=0.5, model="opus", hours=0, **more):
    content = [{"type": "text", "text": text}]
    return message(
        id, content, "assistant", hours, provider="anthropic", model=model, usage=usage(cost), **more
    )


def write(folder, name, *entries, cwd="/code/proj", hours=0):
    head = {"type": "session", "version": 3, "id": name, "timestamp": stamp(hours), "cwd": cwd}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *entries)))
    return path


@pytest.fixture
def catalog(tmp_path):
    with Catalog(tmp_path / "catalog.db") as made:
        yield made


def filled(catalog, folder, *texts):
    write(folder, "s", *(message(str(n), text) for n, text in enumerate(texts)))
    catalog.refresh([folder])
    return catalog


def ids(catalog, query, **how):
    return sorted(hit.entry_id for hit in catalog.search(query, **how))


# ---- queries


TEXTS = (
    "The quick brown fox",
    "a brown quick fox",
    "foo_bar.py was changed",
    "Café au lait",
    "配置文件 error",
    "x -> y",
    "quickly",
)


@pytest.mark.parametrize(
    ("query", "how", "found"),
    [
        ("quick fox", {}, "01"),
        ("QUICK", {}, "01"),
        ('"quick brown"', {}, "0"),
        ('"quick brown', {}, "0"),
        ("quick brown", {"phrase": True}, "0"),
        ("quick*", {}, "016"),
        ("quic", {"prefix": True}, "016"),
        ("brown quic", {"prefix": True}, "01"),
        ("brown -the", {}, "1"),
        ("brown -th*", {}, "1"),
        ('brown -"quick fox"', {}, "0"),
        ("lait OR y", {}, "35"),
        ("fox lait OR the", {}, "0"),
        ("OR quick", {}, "01"),
        ("quick OR", {}, "01"),
        ("foo_bar.py", {}, "2"),
        ("bar.py", {}, "2"),
        ("cafe", {}, "3"),
        ("配置", {}, "4"),
        ("文件 error", {}, "4"),
        ("error -配置", {}, ""),
        ("error -日本", {}, "4"),
        ("->", {}, "5"),
        ("x ->", {}, "5"),
        ("x -> y", {"phrase": True}, "5"),
        ("配置文", {"phrase": True}, "4"),
        (r"qu\w+ly", {"regex": True}, "6"),
        ("QUICK", {"regex": True}, ""),
        ("Quick|^a", {"regex": True}, "1"),
        ("nowhere", {}, ""),
        ('NEAR("a" "b")', {}, ""),
        ("text:quick", {}, ""),
        ("col : {x} ^y", {}, ""),
        ("quick AND fox", {}, ""),
    ],
)
def test_what_a_query_means(catalog, tmp_path, query, how, found):
    """Words, phrases, prefixes, exclusions, alternatives and patterns; FTS5's own language is only words."""
    assert ids(filled(catalog, tmp_path / "s", *TEXTS), query, **how) == list(found)


@pytest.mark.parametrize(
    ("query", "how"),
    [
        ("", {}),
        ("  ", {}),
        ("-a", {}),
        ("-配", {}),
        ('""', {}),
        ("", {"regex": True}),
        ("(", {"regex": True}),
        ("", {"phrase": True}),
        ("*", {}),
    ],
)
def test_a_query_without_anything_to_look_for_is_an_error(catalog, query, how):
    """It is said instead of showing nothing, or everything."""
    with pytest.raises(ValueError, match=r"nothing to search for|not a regular expression"):
        catalog.search(query, **how)


@given(st.text(), st.booleans(), st.booleans())
def test_no_query_makes_the_database_fail(query, phrase, prefix):
    """Whatever somebody types is a search or a ValueError."""
    with Catalog(":memory:") as catalog:
        try:
            found = catalog.search(query, phrase=phrase, prefix=prefix)
        except ValueError as error:
            found = [] if "nothing to search for" in str(error) else None
        assert found == []


def test_wrong_options_are_named(catalog):
    """A misspelt option is an error that says what there is."""
    with pytest.raises(ValueError, match="role must be one of 'user'"):
        catalog.search("x", role="usr")
    with pytest.raises(ValueError, match="sort must be one of"):
        catalog.search("x", sort="size")
    with pytest.raises(ValueError, match="sort must be one of"):
        catalog.sessions(sort="relevance")
    with pytest.raises(ValueError, match="by must be one of"):
        catalog.totals("hour")
    with pytest.raises(TypeError, match="no filter 'projekt'"):
        catalog.sessions(projekt="x")


# ---- texts, hits, filters


def test_texts_of_all_kinds_are_found_under_their_roles(catalog, tmp_path):
    """Messages, calls, results, summaries, names and labels are searched; thinking and images are not."""
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "/tea/x", "lines": [1, 2]}}
    thinking = {"type": "thinking", "thinking": "tea thought"}
    write(
        tmp_path / "s",
        "s",
        message("u", "tea asked"),
        message("a", [thinking, {"type": "text", "text": "tea said"}, call], "assistant"),
        message("t", [{"type": "text", "text": "tea given"}, {"type": "image", "data": "tea"}], "toolResult"),
        {
            "type": "message",
            "id": "b",
            "message": {"role": "bashExecution", "command": "make tea", "output": "ok"},
        },
        message("y", "", "system", sections={"a": "tea system"}),
        {"type": "custom_message", "id": "m", "customType": "x", "content": "tea custom"},
        {"type": "compaction", "id": "k", "summary": "tea summed"},
        {"type": "branch_summary", "id": "r", "summary": "tea branch"},
        {"type": "session_info", "id": "n", "name": "tea name"},
        {"type": "label", "id": "l", "targetId": "u", "label": "tea label"},
        {"type": "custom", "id": "d", "data": {"tea": 1}},
        message("e", [], "assistant", errorMessage="tea failed"),
    )
    catalog.refresh([tmp_path / "s"])
    roles = {hit.entry_id + ":" + hit.role for hit in catalog.search("tea", limit=None)}
    assert roles == {
        "u:user", "a:assistant", "a:call", "t:tool", "b:bash", "y:system", "m:custom", "k:summary", "r:summary",
        "n:name", "l:label", "e:assistant",
    }  # fmt: skip
    assert ids(catalog, "tea", role="toolCall") == ["a"]
    assert ids(catalog, "tea", role=["tool", "bash"]) == ["b", "t"]
    assert ids(catalog, '"lines [1,2]"') == ["a"]


def test_a_hit_says_where_it_is(catalog, tmp_path):
    """A hit has the session, the entry, the time, the model in force, and marked words around."""
    text = f"{'before ' * 50}green\n  tea {'after ' * 50}"
    path = write(
        tmp_path / "s",
        "s",
        {"type": "model_change", "id": "m", "provider": "openai", "modelId": "gpt"},
        message("u", text, hours=3),
        answer("a", "done"),
        {"type": "session_info", "id": "i", "name": "My session"},
    )
    catalog.refresh([tmp_path / "s"])
    for how in ({"phrase": True}, {"regex": True}):
        query = r"green\s+tea" if "regex" in how else "green tea"
        (hit,) = catalog.search(query, **how)
        assert (hit.path, hit.session_id, hit.session_name, hit.cwd) == (
            str(path),
            "s",
            "My session",
            "/code/proj",
        )
        assert (hit.entry_id, hit.role, hit.time) == ("u", "user", START + timedelta(hours=3))
        assert hit.model == "openai/gpt"
        assert " ".join(hit.snippet[a:b] for a, b in hit.marks) == "green tea"
        assert "before" in hit.snippet
        assert "after" in hit.snippet
        assert len(hit.snippet) < 450
        assert "\n" not in hit.snippet


def test_snippets_of_endless_words_are_short(catalog, tmp_path):
    """A word of a million letters does not fill the screen."""
    filled(catalog, tmp_path / "s", f"{'a' * 90_000} tea {'b' * 90_000}")
    (hit,) = catalog.search("tea")
    assert len(hit.snippet) < 450
    assert [hit.snippet[a:b] for a, b in hit.marks] == ["tea"]


def test_filters(catalog, tmp_path):
    """Project, time, model and cost choose sessions, and hits in them."""
    write(tmp_path / "s", "a", message("a1", "tea"), answer("a2", "tea", 1.0), cwd="/code/proj")
    write(
        tmp_path / "s",
        "b",
        message("b1", "tea", hours=48),
        answer("b2", "tea", 3.0, "haiku", 48),
        cwd="/code/proj/sub",
    )
    write(tmp_path / "s", "c", message("c1", "tea", hours=96), cwd="/code/project")
    catalog.refresh([tmp_path / "s"])

    def both(**filters):
        sessions = sorted(s.info.id for s in catalog.sessions(**filters))
        return "".join(sessions), "".join(
            sorted({hit.entry_id[0] for hit in catalog.search("tea", **filters)})
        )

    day = START + timedelta(days=1)
    assert both() == ("abc", "abc")
    assert both(project="/code/proj") == ("ab", "ab")
    assert both(project="/code/proj/") == ("ab", "ab")
    assert both(project="proj") == ("a", "a")
    assert both(project="/code") == ("abc", "abc")
    assert both(project="/") == ("abc", "abc")
    assert both(project="nowhere") == ("", "")
    assert both(since=day) == ("bc", "bc")
    assert both(until=day) == ("a", "a")
    assert both(since=day, until=START + timedelta(days=3)) == ("b", "b")
    assert both(model="opus") == both(model="anthropic/opus") == both(model="anthropic/op*") == ("a", "a")
    assert both(model="anthropic/*") == ("ab", "ab")
    assert both(model="o?us") == both(model="[o]pus") == ("", "")
    assert both(min_cost=2) == ("b", "b")
    assert both(max_cost=1.5) == ("ac", "ac")
    assert both(session=tmp_path / "s" / "c.jsonl") == ("c", "c")
    assert both(roots=[]) == ("", "")


def test_sorting_sessions_and_hits(catalog, tmp_path):
    """Each order is what its name says; hits come by time if so wanted."""
    write(tmp_path / "s", "a", message("a1", "tea", hours=1), answer("a2", "x", 5.0, hours=2), hours=1)
    write(
        tmp_path / "s",
        "b",
        message("b1", "tea tea tea", hours=9),
        {"type": "session_info", "name": "Zoo"},
        hours=3,
    )
    write(
        tmp_path / "s",
        "c",
        message("c1", "tea " + "word " * 90, hours=5),
        {"type": "session_info", "name": "ant"},
        hours=2,
    )
    for n, name in enumerate("cba"):
        os.utime(tmp_path / "s" / f"{name}.jsonl", (1000 + n, 1000 + n))
    catalog.refresh([tmp_path / "s"])

    def order(**how):
        return "".join(s.info.id for s in catalog.sessions(**how))

    assert order() == order(sort="modified") == "bca"
    assert order(sort="created") == "bca"
    assert order(sort="mtime") == "abc"
    assert order(sort="cost")[0] == order(sort="tokens")[0] == order(sort="messages")[0] == "a"
    assert order(sort="size")[0] == "c"
    assert order(sort="name") == "cba"
    assert order(reverse=True, limit=2) == "ac"
    assert [h.entry_id for h in catalog.search("tea", sort="time")] == ["b1", "c1", "a1"]
    assert [h.entry_id for h in catalog.search("tea", limit=1)] == ["b1"]


# ---- totals


def test_what_forks_share_counts_once(catalog, tmp_path):
    """Tokens and cost of copied entries count for the first session alone, and are found once."""
    source = write(
        tmp_path / "s", "a", message("1", "tea"), answer("2", "green tea", 1.0), answer("3", "more", 2.0)
    )
    before = os.environ.get("HOME")
    with SessionManager.fork_from(str(source), "/code/other", str(tmp_path / "s")) as fork:
        fork.append_message(answer("x", "new tea", 4.0)["message"])
    assert before == os.environ.get("HOME")
    with SessionManager.open(str(source)) as session:
        session.branch("2")
        branched = session.create_branched_session("2")
    assert branched
    catalog.refresh([tmp_path / "s"])
    (total,) = catalog.totals()
    assert (total.used.cost, total.used.output, total.calls) == (7.0, 3, 3)
    assert [(t.key, t.used.cost, t.sessions) for t in catalog.totals("project")] == [
        ("/code/other", 4.0, 1),
        ("/code/proj", 3.0, 1),
    ]
    assert {t.key: t.used.cost for t in catalog.totals("session")}[str(source)] == 3.0
    assert sorted(s.used.cost for s in catalog.sessions()) == [1.0, 3.0, 7.0]
    assert len(catalog.search("green")) == 1
    assert len(catalog.search("green", every_copy=True)) == 3
    os.remove(source)
    catalog.refresh([tmp_path / "s"])
    (total,) = catalog.totals()
    assert total.used.cost == 7.0


def test_totals_by_model_and_day(catalog, tmp_path):
    """Models come by cost, days in their order; filters choose entries."""
    write(
        tmp_path / "s",
        "a",
        answer("1", "x", 1.0, "haiku"),
        answer("2", "x", 2.0, hours=240),
        answer("3", "x", 4.0, responseModel="opus-5", hours=240),
        {
            "type": "usage",
            "id": "4",
            "timestamp": stamp(),
            "provider": "p",
            "model": "m",
            "usage": usage(0.25),
        },
        {"type": "compaction", "id": "5", "timestamp": stamp(), "summary": "s", "usage": usage(0.125)},
        message("6", "r", "toolResult", usage=usage(0.5)),
        answer("7", "x", 0.0, usage_="none"),
    )
    catalog.refresh([tmp_path / "s"])
    assert [(t.key, t.used.cost) for t in catalog.totals("model")] == [
        ("anthropic/opus-5", 4.0), ("anthropic/opus", 2.0), ("anthropic/haiku", 1.0), ("Tools/summaries", 0.625),
        ("p/m", 0.25),
    ]  # fmt: skip
    days = catalog.totals("day")
    assert [t.used.cost for t in days] == [1.875, 6.0]
    assert [t.key for t in days] == [
        (START + timedelta(hours=h)).astimezone().date().isoformat() for h in (0, 240)
    ]
    assert [t.used.cost for t in catalog.totals(model="opus*")] == [6.0]
    assert [t.used.cost for t in catalog.totals(until=START + timedelta(days=1))] == [1.875]
    assert [t.calls for t in catalog.totals()] == [7]


odd = st.one_of(
    st.none(), st.integers(-5, 10**20), st.floats(), st.text(max_size=3), st.just({}), st.booleans()
)
usages = st.one_of(odd, st.fixed_dictionaries({}, optional={
    "input": odd, "output": odd, "cacheRead": odd, "cost": st.one_of(odd, st.fixed_dictionaries({"total": odd})),
}))  # fmt: skip
spending = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "usage", "compaction"]), "usage": usages},
    optional={
        "provider": st.sampled_from(["p", None, 5]),
        "model": st.sampled_from(["m", "n"]),
        "message": st.fixed_dictionaries(
            {
                "role": st.sampled_from(["assistant", "toolResult", "user"]),
                "usage": usages,
                "provider": st.just("q"),
            },
            optional={"model": st.just("x"), "responseModel": st.sampled_from(["y", None])},
        ),
    },
)


@given(st.lists(spending, max_size=6))
def test_costs_by_model_are_those_of_the_breakdown(tmp_path_factory, entries):
    """A session's costs by model are what `get_usage_cost_breakdown` gives, where both count."""
    folder = tmp_path_factory.mktemp("spend")
    entries = [{**e, "id": str(n), "timestamp": stamp(n)} for n, e in enumerate(entries)]
    path = write(folder, "s", *entries)
    read = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    with Catalog(":memory:") as catalog:
        catalog.refresh([folder])
        ours = {
            t.key: t.used.cost for t in catalog.totals("model") if t.used.cost > 0 and t.used.cost < 1e300
        }
    theirs = {
        i.key.replace("null", "undefined"): i.cost
        for i in get_usage_cost_breakdown(read)
        if 0 < i.cost < 1e300
    }
    assert {k: v for k, v in ours.items() if k in theirs} == pytest.approx(theirs)
