"""The free functions: where they differ from pi on purpose, and that the fast ways equal the plain ones.

That they give pi's results is shown by the recorded scenarios (tests/conformance).
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree.compaction import (
    DEFAULT_COMPACTION_SETTINGS,
    SummaryPrompts,
    SummaryResponse,
    agenerate_branch_summary,
    calculate_context_tokens,
    collect_entries_for_branch_summary,
    combine_usage,
    compact,
    compute_file_lists,
    convert_to_llm,
    create_file_ops,
    estimate_context_tokens,
    estimate_tokens,
    estimate_tokens_by_script,
    extract_file_ops_from_message,
    find_cut_point,
    format_file_operations,
    generate_branch_summary,
    generate_summary,
    get_last_assistant_usage,
    get_usage_cost_breakdown,
    is_context_overflow,
    prepare_branch_entries,
    prepare_compaction,
    serialize_conversation,
    serialize_session_branch,
    should_compact,
)
from sessiontree.compaction.cut import cut_outside_tool_calls, part_of, tool_call_ids
from sessiontree.compaction.prompts import (
    BRANCH_SUMMARY_PROMPT,
    INITIAL_SUMMARY_PROMPT,
    UPDATE_SUMMARY_PROMPT,
)
from sessiontree.exceptions import SummarizationError
from sessiontree.manager import SessionManager

MODEL = {"id": "m", "contextWindow": 1000}
SECTIONS = [
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
]


def entry(id, parent=None, **message):
    return {
        "type": "message",
        "id": id,
        "parentId": parent,
        "timestamp": "2024-01-01T00:00:01.000Z",
        "message": message,
    }


def chain(*messages):
    """Message entries in one path."""
    made = []
    for number, message in enumerate(messages):
        made.append(entry(f"e{number}", made[-1]["id"] if made else None, **message))
    return made


def user(text):
    return {"role": "user", "content": text}


def calling(*ids):
    return {
        "role": "assistant",
        "content": [{"type": "toolCall", "id": id, "name": "bash", "arguments": {}} for id in ids],
    }


def answering(id):
    return {"role": "toolResult", "toolCallId": id, "content": [{"type": "text", "text": "r" * 40}]}


# ---- usage


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"totalTokens": "9", "input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}, 10),
        ({"totalTokens": 0, "input": "1", "output": 1, "cacheRead": 1, "cacheWrite": 1}, 3),
        ({"totalTokens": None, "input": None, "output": True, "cacheRead": [], "cacheWrite": 7}, 7),
        ({"totalTokens": 5.5}, 5.5),
    ],
)
def test_only_numbers_count_as_usage(usage, tokens):
    """A text is never glued to a sum (B40)."""
    assert calculate_context_tokens(usage) == tokens


def test_a_usage_that_lacks_a_field_is_unknown():
    """Not a number, and therefore never a reason to compact."""
    assert math.isnan(calculate_context_tokens({"input": 1}))
    assert not should_compact(math.nan, 10, DEFAULT_COMPACTION_SETTINGS)
    reply = {"role": "assistant", "content": [], "usage": {"input": 1}}
    assert estimate_context_tokens([reply]).last_usage_index is None


def test_usage_that_is_text_is_not_trusted():
    """The message is estimated instead."""
    reply = {"role": "assistant", "content": [{"type": "text", "text": "x"}], "usage": {"totalTokens": "9"}}
    estimate = estimate_context_tokens([reply])
    assert (estimate.tokens, estimate.usage_tokens, estimate.last_usage_index) == (1, 0, None)


def test_sums_pass_over_what_is_no_number():
    """Neither texts nor nulls spoil a sum, and no usage is changed by it."""
    first = {
        "input": "3",
        "output": 1,
        "totalTokens": None,
        "reasoning": 2,
        "cost": {"total": "x", "input": 1},
    }
    second = {"input": 2, "cacheWrite1h": "4", "totalTokens": 4, "cost": {"total": 0.5}}
    total = combine_usage(first, second)
    assert (total["input"], total["output"], total["totalTokens"]) == (2, 1, 4)
    assert (total["reasoning"], total["cacheWrite1h"]) == (2, 0)
    assert (total["cost"]["total"], total["cost"]["input"]) == (0.5, 1)
    assert first["input"] == "3"


def test_a_usage_without_cost_cannot_be_summed():
    """A missing cost is not a cost of nothing."""
    with pytest.raises(TypeError, match='"cost"'):
        combine_usage({"cost": {}}, {})


def test_null_usage_and_null_messages_are_errors():
    """The free functions refuse what is no usage and no message."""
    with pytest.raises(TypeError, match="not null"):
        calculate_context_tokens(None)
    with pytest.raises(TypeError, match="not null"):
        get_last_assistant_usage([{"type": "message", "message": None}])
    with pytest.raises(TypeError, match="not null"):
        estimate_tokens(None)
    with pytest.raises(TypeError, match="not null"):
        convert_to_llm([None])


def test_costs_by_model_pass_over_odd_entries():
    """Null messages, missing models and text for numbers give no error."""
    usage = {"input": 5, "output": "x", "cost": {"total": 0.25}}
    entries = [
        None,
        5,
        {"type": "message", "message": None},
        {"type": "message", "message": {"role": "assistant", "usage": usage}},
        {"type": "message", "message": {"role": "assistant", "provider": "p", "model": "a", "responseModel": "b",
                                        "usage": usage}},
        {"type": "compaction", "usage": usage},
        {"type": "branch_summary", "usage": None},
        {"type": "message", "message": {"role": "toolResult", "usage": {**usage, "cost": {"total": 9}}}},
        {"type": "usage", "provider": "p", "model": "free", "usage": {"input": 0}},
    ]  # fmt: skip
    rows = [(row.key, row.cost, row.tokens) for row in get_usage_cost_breakdown(entries)]
    assert rows == [("Tools/summaries", 9.25, 10), ("undefined/undefined", 0.25, 5), ("p/b", 0.25, 5)]


# ---- estimates

MESSAGES = [
    {"role": "user", "content": "Hello, wörld \U0001f600"},
    {"role": "user", "content": [{"type": "text", "text": "abc"}, {"type": "image", "data": "A"}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, *calling("c1")["content"]]},
    {"role": "system", "content": "s", "sections": {"a": "text", "b": None}, "toolsAdded": [{"name": "x"}]},
    {"role": "bashExecution", "command": "ls", "output": "a b"},
    {"role": "branchSummary", "summary": "long ago"},
    {"role": "unknown", "content": "xxxx"},
]


@pytest.mark.parametrize("message", MESSAGES)
def test_latin_text_is_estimated_alike_by_script(message):
    """Only scripts with more tokens a character make a difference; an emoji is two UTF-16 units."""
    assert estimate_tokens_by_script(message) in (estimate_tokens(message), estimate_tokens(message) + 1)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("漢字", 2),
        ("かな", 2),
        ("한글", 2),
        ("abcd漢", 2),
        ("привет", 3),
        ("שלום", 2),
        ("नमस्ते", 3),
        ("😀😀", 1),
    ],
)
def test_dense_scripts_take_more_tokens(text, tokens):
    """A Chinese character is about a token, not a quarter of one."""
    assert estimate_tokens_by_script(user(text)) == tokens


def test_an_image_is_never_nothing():
    """A message of images alone takes 1,200 tokens each."""
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    assert estimate_tokens({"role": "user", "content": [image, image]}) == 2400


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "user", "content": [None]},
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": [{"type": "text"}]},
        {"role": "assistant", "content": [{"type": "toolCall", "name": "x"}]},
        {"role": "bashExecution", "command": "ls"},
        {"role": "compactionSummary"},
    ],
)
def test_what_cannot_be_measured_is_a_type_error(message):
    """It says what is missing instead of failing somewhere inside."""
    with pytest.raises(TypeError, match=r"lacks|null|content of a message"):
        estimate_tokens(message)


# ---- texts


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"role": "assistant", "content": "text"}, 'list of blocks, not "text"'),
        ({"role": "user"}, "not nothing"),
        ({"role": "user", "content": 5}, "not 5"),
        ({"role": "toolResult", "content": [None]}, "block 0 of a message is null"),
        ({"role": "assistant", "content": [{"type": "toolCall", "name": "x"}]}, "no arguments"),
    ],
)
def test_what_cannot_be_written_out_is_a_type_error(message, error):
    """The error shows what was found."""
    with pytest.raises(TypeError, match=error):
        serialize_conversation([message])


def test_one_odd_message_does_not_spoil_a_summary():
    """It is left out of the text; an answer that is plain text instead of blocks is read all the same."""
    asked = []
    odd = [
        user("A"),
        {"role": "user"},
        {"role": "assistant", "content": "B"},
        {"role": "assistant", "content": [None]},
    ]
    generate_summary(odd, MODEL, lambda request: asked.append(request.prompt) or SummaryResponse("S"))
    assert "<conversation>\n[User]: A\n\n[Assistant]: B\n</conversation>" in asked[0]


def test_files_are_sorted_as_javascript_sorts():
    """By UTF-16 units: an emoji, made of surrogates, comes before U+FFFF."""
    ops = create_file_ops()
    ops.read.update(["\uffff", "\U0001f600", "b", "a"])
    ops.edited.add("b")
    lists = compute_file_lists(ops)
    assert lists.read_files == ["a", "\U0001f600", "\uffff"]
    assert lists.modified_files == ["b"]
    assert format_file_operations(lists.read_files[:1], lists.modified_files).count("<") == 4


def test_file_operations_keep_their_order_and_ignore_what_is_no_path():
    """Numbers, empty paths, odd blocks and other tools name no files."""
    ops = create_file_ops()
    content = [
        {"type": "toolCall", "name": name, "arguments": arguments}
        for name, arguments in [("write", {"path": "z"}), ("write", {"path": "a"}), ("write", {"path": 5}),
                                ("write", {"path": ""}), ("write", None), ("bash", {"path": "x"}), ([], {"path": "y"})]
    ]  # fmt: skip
    extract_file_ops_from_message({"role": "assistant", "content": [*content, None, "s"]}, ops)
    extract_file_ops_from_message({"role": "toolResult", "nestedCalls": {"calls": [None, content[0]]}}, ops)
    assert list(ops.written) == ["z", "a"]
    assert "z" in ops.written
    ops.written.discard("z")
    assert repr(ops.written) == "OrderedSet(['a'])"
    assert not ops.read
    assert not ops.edited


# ---- cuts


def naive_cut(entries, start, end, keep):
    """The rule of docs/format.md, written down without thought of speed."""
    roles = [item["message"]["role"] for item in entries]
    points = [i for i in range(start, end) if roles[i] in ("user", "assistant", "custom")]
    if not points:
        return start
    cut = points[0]
    for index in reversed(range(start, end)):
        kept = sum(estimate_tokens(item["message"]) for item in entries[index:end])
        if estimate_tokens(entries[index]["message"]) and kept >= keep:
            later = [point for point in points if point >= index]
            cut = later[0] if later else points[-1]
            break
    return cut


SHAPES = st.lists(
    st.sampled_from([user(""), user("x" * 37), user("x" * 90), calling("c"), answering("c"), answering("d"),
                     {"role": "custom", "content": "x" * 20}]),
    max_size=12,
)  # fmt: skip


@given(SHAPES, st.integers(0, 80), st.data())
def test_the_cut_is_that_of_the_plain_rule(messages, keep, data):
    """Whatever the range and the budget."""
    entries = chain(*messages)
    start = data.draw(st.integers(0, len(entries)))
    end = data.draw(st.integers(start, len(entries)))
    assert find_cut_point(entries, start, end, keep).first_kept_entry_index == naive_cut(
        entries, start, end, keep
    )


@given(
    st.lists(
        st.sampled_from(
            [user("x"), calling("a"), calling("b"), calling("a", "b"), answering("a"), answering("b")]
        ),
        min_size=1,
        max_size=14,
    ),
    st.data(),
)
def test_a_paired_cut_never_tears_a_call_from_its_result(messages, data):
    """No kept result has its newest call before the cut, and no call that still waits is cut off."""
    parts = [part_of(item) for item in chain(*messages)]
    cut = data.draw(st.integers(0, len(parts) - 1))
    moved = cut_outside_tool_calls(parts, 0, cut)
    assert moved <= cut
    calls = {}
    last_answer = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=0)
    waiting = set()
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            calls.update(dict.fromkeys(tool_call_ids(message), index))
            waiting = set(tool_call_ids(message))
        elif message["role"] == "toolResult":
            assert not (index >= moved > calls.get(message["toolCallId"], moved))
            waiting.discard(message["toolCallId"])
    assert not waiting or last_answer >= moved


def test_a_cut_takes_in_what_the_model_does_not_see():
    """A label before the first kept message stays with it."""
    label = {"type": "label", "id": "l", "targetId": "e0", "label": "x"}
    entries = [*chain(user("x" * 400)), label, entry("z", "l", **user("x" * 400))]
    assert find_cut_point(entries, 0, 3, 50).first_kept_entry_index == 1


# ---- preparing


def test_a_blank_previous_summary_is_none():
    """Neither an update prompt nor a joined summary is made from nothing (B35)."""
    first = chain(
        user("x" * 400), *[{"role": "assistant", "content": [{"type": "text", "text": "x" * 400}]}] * 3
    )
    compaction = {
        "type": "compaction", "id": "k", "parentId": "e3", "timestamp": "2024-01-01T00:00:01.000Z",
        "summary": " \n", "firstKeptEntryId": "e0", "tokensBefore": 1,
    }  # fmt: skip
    path = [*first, compaction, entry("z", "k", **user("x" * 400))]
    prepared = prepare_compaction(path, {**DEFAULT_COMPACTION_SETTINGS, "keepRecentTokens": 150})
    assert prepared.previous_summary is None
    assert prepared.is_split_turn
    asked = []

    def model(request):
        asked.append(request)
        return SummaryResponse("S")

    assert compact(prepared, MODEL, model).summary.startswith("No prior history.\n\n---")
    assert [request.kind for request in asked] == ["turn_prefix"]


@pytest.mark.parametrize("previous", [None, "", "  \n"])
def test_without_earlier_text_the_first_prompt_is_used(previous):
    """The same rule everywhere (B35)."""
    asked = []

    def model(request):
        asked.append(request.prompt)
        return SummaryResponse("S")

    generate_summary([user("A")], MODEL, model, previous_summary=previous)
    assert "<previous-summary>" not in asked[0]
    assert asked[0].endswith(INITIAL_SUMMARY_PROMPT)
    generate_summary([user("A")], MODEL, model, previous_summary="P")
    assert asked[1].endswith(UPDATE_SUMMARY_PROMPT)


@pytest.mark.parametrize(
    "response",
    [SummaryResponse("partial", stop_reason="aborted"), SummaryResponse(""), SummaryResponse(" \n")],
)
def test_aborted_and_empty_summaries_are_refused(response):
    """They would stand for a history that is gone (B34)."""
    with pytest.raises(SummarizationError, match=r"aborted|empty"):
        generate_summary([user("A")], MODEL, lambda _request: response)


def test_prompts_name_the_sections_and_can_be_replaced():
    """The layout is that of docs/format.md; the wording is the caller's to choose."""
    for prompt in (INITIAL_SUMMARY_PROMPT, UPDATE_SUMMARY_PROMPT, BRANCH_SUMMARY_PROMPT):
        positions = [prompt.index(f"{section}\n") for section in SECTIONS]
        assert positions == sorted(positions)
    asked = []
    prompts = SummaryPrompts(system="SYS", initial="INIT")
    generate_summary(
        [user("A")], MODEL, lambda request: asked.append(request) or SummaryResponse("S"), prompts=prompts
    )
    assert (asked[0].system, asked[0].prompt[-4:]) == ("SYS", "INIT")


def test_a_summarizer_must_give_a_response():
    """A forgotten return is a program's fault, and said so."""
    with pytest.raises(TypeError, match="must give a SummaryResponse, not str"):
        generate_summary([user("A")], MODEL, lambda _request: "S")


def test_unknown_options_are_refused():
    """A typing error in a keyword does not pass in silence."""
    with pytest.raises(TypeError, match="tiem_limit"):
        generate_summary([user("A")], MODEL, lambda _request: SummaryResponse("S"), tiem_limit=3)


# ---- branches

ODD_ENTRIES = [
    {"type": "message", "id": "m", "message": None},
    {"type": "message", "id": "m"},
    {"type": "custom_message", "id": "c", "content": None},
    entry("u", role="user", content=None),
    entry("a", role="assistant", content=None),
    entry("b", role="assistant", content=[None]),
    {"type": "compaction"},
    {"type": "branch_summary", "id": "b", "details": {"readFiles": 5, "modifiedFiles": [None]}},
    5,
    None,
]


@pytest.mark.parametrize("odd", ODD_ENTRIES)
def test_one_odd_entry_of_a_branch_contributes_nothing(odd):
    """And the rest works (B14)."""
    prepared = prepare_branch_entries([entry("x", **user("A")), odd, entry("y", **user("B"))])
    assert [message["content"] for message in prepared.messages] == ["A", "B"]


@pytest.mark.parametrize(
    "odd", [{"replacement": {}}, {"replacement": {"content": 5}}, {"replacement": "text"}, {}]
)
def test_an_edit_that_makes_no_sense_changes_nothing(odd):
    """It is no reason to fail, nor to lose a message (B15)."""
    entries = [entry("x", **user("A")), {"type": "context_edit", "id": "e", "targetId": "x", **odd}]
    assert [message["content"] for message in prepare_branch_entries(entries).messages] == ["A"]


def test_a_reserve_that_leaves_nothing_is_an_error():
    """It names both numbers instead of dropping the limit (B36)."""
    with pytest.raises(ValueError, match=r"1000 leave nothing .* 1000 tokens"):
        generate_branch_summary([], MODEL, lambda _request: SummaryResponse("S"), reserve_tokens=1000)


def test_the_newest_messages_of_a_branch_that_fit_are_taken():
    """From the end back until the window less the reserve is full."""
    asked = []
    entries = chain(*[user(f"{n} " + "x" * 398) for n in range(9)])
    result = generate_branch_summary(
        entries,
        MODEL,
        lambda request: asked.append(request.prompt) or SummaryResponse("S"),
        reserve_tokens=700,
    )
    assert [f"[User]: {n} " in asked[0] for n in range(9)] == [False] * 6 + [True] * 3
    assert result.summary.endswith("\n\nS")


def test_failures_of_a_branch_summary_are_told():
    """As pi tells them: in the result."""

    def failing(response):
        return generate_branch_summary(chain(user("A")), MODEL, lambda _request: response, reserve_tokens=1)

    assert failing(SummaryResponse("", stop_reason="aborted")).aborted
    assert "output limit" in failing(SummaryResponse("S", stop_reason="length")).error
    assert "empty" in failing(SummaryResponse("")).error
    assert failing(SummaryResponse("S")).error is None


def test_an_empty_branch_asks_nobody():
    """There is nothing to summarise, and the text says so."""
    import asyncio

    def model(_request):
        raise AssertionError

    result = asyncio.run(agenerate_branch_summary([], MODEL, model, reserve_tokens=1))
    assert (result.summary, result.read_files) == ("No content to summarize", None)


def test_instructions_may_be_added_or_stand_alone():
    """After the prompt, or in its place."""
    asked = []

    def model(request):
        asked.append(request.prompt)
        return SummaryResponse("S")

    for replace in (False, True):
        generate_branch_summary(
            chain(user("A")), MODEL, model, custom_instructions="FOCUS", replace_instructions=replace,
            reserve_tokens=1,
        )  # fmt: skip
    assert asked[0].endswith(f"{BRANCH_SUMMARY_PROMPT}\n\nAdditional focus: FOCUS")
    assert asked[1].endswith("</conversation>\n\nFOCUS")


@given(st.lists(st.integers(-1, 30), min_size=1, max_size=30), st.data())
def test_the_common_ancestor_is_that_of_the_plain_rule(parents, data):
    """Found by halving, but the same as by comparing all ids."""
    session = SessionManager.in_memory("/c")
    ids = []
    for number, parent in enumerate(parents):
        if parent < 0 or not ids:
            session.reset_leaf()
        else:
            session.branch(ids[parent % len(ids)])
        ids.append(session.append_message(user(str(number))))
    old, target = (data.draw(st.sampled_from(ids)) for _ in "ab")
    found = collect_entries_for_branch_summary(session, old, target)
    old_path = [item["id"] for item in session.get_branch(old)]
    shared = [id for id in old_path if id in {item["id"] for item in session.get_branch(target)}]
    assert found.common_ancestor_id == (shared[-1] if shared else None)
    assert [item["id"] for item in found.entries] == old_path[len(shared) :]


# ---- the rest


def test_a_branch_as_a_session_file_of_its_own():
    """The path is chained anew, and entries may be added."""
    session = SessionManager.in_memory("/c")
    first = session.append_message(user("A"))
    session.append_message(user("B"))
    session.branch(first)
    last = session.append_message(user("C"))
    import json

    text = serialize_session_branch(
        session, lambda parent, time: [{"id": "t", "parentId": parent, "timestamp": time}]
    )
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["type"] == "session"
    assert [line["parentId"] for line in lines[1:]] == [None, first, last]
    assert lines[3]["timestamp"] == lines[0]["timestamp"]
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000",
        "Please reduce the length of the messages or completion",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        '{"error":{"code":"context_length_exceeded"}}',
        '413 {"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        "Input is too long for requested model.",
        "tokens in request more than max tokens allowed",
    ],
)
def test_overflows_in_the_words_of_providers(text):
    """All of them mean that the context is too long."""
    assert is_context_overflow({"stopReason": "error", "errorMessage": text})


@pytest.mark.parametrize(
    ("message", "window", "overflow"),
    [
        ({"stopReason": "stop", "usage": {"input": 90, "cacheRead": 20, "output": 5}}, 100, True),
        ({"stopReason": "stop", "usage": {"input": 90, "cacheRead": 10, "output": 5}}, 100, False),
        ({"stopReason": "stop", "usage": {"input": 90, "cacheRead": 20}}, None, False),
        ({"stopReason": "length", "usage": {"input": 99, "cacheRead": 0, "output": 0}}, 100, True),
        ({"stopReason": "length", "usage": {"input": 99, "cacheRead": 0, "output": 1}}, 100, False),
        ({"stopReason": "error", "errorMessage": None}, 100, False),
        ({}, 100, False),
    ],
)
def test_overflows_without_words(message, window, overflow):
    """A usage beyond the window, or an answer that had no room at all."""
    assert is_context_overflow(message, window) is overflow
