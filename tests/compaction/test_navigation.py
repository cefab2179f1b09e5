"""Going to another place of the tree: where one ends up, what is taken along, and all or nothing."""

import asyncio
import errno
import resource
import threading
from pathlib import Path

import pytest
from sessiontree.compaction import (
    BranchSummaryResult,
    NavigationDecision,
    SummaryResponse,
    anavigate,
    navigate,
)
from sessiontree.exceptions import EntryNotFoundError, SessionConflictError, SummarizationError
from sessiontree.manager import SessionManager

MODEL = {"provider": "p", "id": "m", "contextWindow": 100_000}


def user(text):
    return {"role": "user", "content": text, "timestamp": 1}


def reply(text, *paths):
    content = [{"type": "text", "text": text}]
    content += [
        {"type": "toolCall", "id": path, "name": "read", "arguments": {"path": path}} for path in paths
    ]
    return {"role": "assistant", "content": content, "stopReason": "stop", "timestamp": 2}


class Tree:
    """A question with two lines of conversation; the session is at the end of the second."""

    def __init__(self, session=None):
        self.session = session or SessionManager.in_memory("/c")
        self.root = self.session.append_message(user("root"))
        self.hub = self.session.append_message(reply("hub"))
        self.left = self.session.append_message(user("left"))
        self.left_end = self.session.append_message(reply("left end"))
        self.session.branch(self.hub)
        self.right = self.session.append_message(user("right"))
        self.leaf = self.session.append_message(reply("right end", "f.py"))
        self.before = list(self.session.get_entries())

    def unchanged(self):
        return list(self.session.get_entries()) == self.before and self.session.get_leaf_id() == self.leaf


def says(text, asked=None):
    def summarizer(request):
        if asked is not None:
            asked.append(request)
        return SummaryResponse(text, usage={"totalTokens": 5})

    return summarizer


@pytest.fixture
def tree():
    return Tree()


def test_to_an_answer(tree):
    """The session is there, and nothing is appended."""
    result = navigate(tree.session, tree.left_end)
    assert (result.cancelled, result.editor_text, result.summary_entry) == (False, None, None)
    assert (result.old_leaf_id, result.new_leaf_id) == (tree.leaf, tree.left_end)
    assert tree.session.get_leaf_id() == tree.left_end
    assert list(tree.session.get_entries()) == tree.before


def test_to_a_message_of_the_user(tree):
    """The session goes before it, and the text comes back to be edited."""
    result = navigate(tree.session, tree.left)
    assert (result.editor_text, tree.session.get_leaf_id()) == ("left", tree.hub)


def test_to_the_first_message(tree):
    """Before it there is nothing."""
    result = navigate(tree.session, tree.root)
    assert (result.editor_text, result.new_leaf_id) == ("root", None)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "ab"),
        ("plain", "plain"),
        ([], ""),
        (None, ""),
        (5, ""),
    ],
)
def test_the_text_of_any_content(tree, content, text):
    """Texts are joined, and odd content gives none."""
    target = tree.session.append_message({"role": "user", "content": content, "timestamp": 1})
    tree.session.append_message(reply("x"))
    assert navigate(tree.session, target).editor_text == text


def test_to_a_custom_message(tree):
    """It is one of the user's own doing, too."""
    target = tree.session.append_custom_message_entry("note", "remember", display=True)
    tree.session.append_message(reply("x"))
    result = navigate(tree.session, target)
    assert (result.editor_text, result.new_leaf_id) == ("remember", tree.leaf)


def test_to_where_the_session_is(tree):
    """Nothing happens, and no hook is asked."""
    result = navigate(tree.session, tree.leaf, before=lambda _plan: NavigationDecision(cancel=True))
    assert not result.cancelled
    assert tree.unchanged()


def test_to_nowhere(tree):
    """An unknown entry is an error."""
    with pytest.raises(EntryNotFoundError, match='"nowhere"'):
        navigate(tree.session, "nowhere")
    assert tree.unchanged()


def test_with_a_summary(tree):
    """What is left is summarised from the common ancestor on, and the summary stands at the new place."""
    asked = []
    result = navigate(
        tree.session,
        tree.left_end,
        summarize=True,
        model=MODEL,
        summarizer=says("SUMMARY", asked),
        label="back",
    )
    entry = result.summary_entry
    assert (entry["type"], entry["parentId"], entry["fromId"]) == ("branch_summary", tree.left_end, tree.leaf)
    assert entry["summary"].endswith("SUMMARY\n\n<read-files>\nf.py\n</read-files>")
    assert entry["details"] == {"readFiles": ["f.py"], "modifiedFiles": []}
    assert entry["usage"] == {"totalTokens": 5}
    assert not entry["fromHook"]
    assert tree.session.get_label(entry["id"]) == "back"
    assert "[User]: right\n\n[Assistant]: right end" in asked[0].prompt
    assert "hub" not in asked[0].prompt
    assert [m["role"] for m in tree.session.build_session_context().messages][-1] == "branchSummary"


def test_with_a_summary_before_the_first_message(tree):
    """The summary becomes a new root."""
    result = navigate(tree.session, tree.root, summarize=True, model=MODEL, summarizer=says("S"))
    assert result.summary_entry["parentId"] is None
    assert result.editor_text == "root"


@pytest.mark.parametrize(("window", "taken"), [(400, False), (4000, True), (None, True)])
def test_a_small_window_takes_what_fits(tree, window, taken):
    """The default reserve is no larger than a quarter of it; a given one is kept to."""
    tree.session.append_message(reply("x" * 2000))
    tree.session.append_message(user("last"))
    asked = []
    model = {"id": "m"} if window is None else {"id": "m", "contextWindow": window}
    options = {"summarize": True, "model": model, "summarizer": says("S", asked)}
    navigate(tree.session, tree.left_end, **options)
    assert ("x" * 2000 in asked[0].prompt) is taken
    assert "[User]: last" in asked[0].prompt
    with pytest.raises(ValueError, match="leave nothing"):
        navigate(tree.session, tree.leaf, reserve_tokens=200_000, **options)


def test_with_nothing_left_behind(tree):
    """Going further down the same path asks no model."""
    tree.session.branch(tree.hub)
    result = navigate(tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=says("S"))
    assert result.summary_entry is None
    assert tree.session.get_leaf_id() == tree.left_end


def test_a_label_without_a_summary(tree):
    """It is set on the target."""
    navigate(tree.session, tree.left_end, label="here")
    assert tree.session.get_label(tree.left_end) == "here"


@pytest.mark.parametrize("missing", [{"model": None}, {"summarizer": None}])
def test_a_summary_needs_somebody_to_write_it(tree, missing):
    """And says so before anything happens."""
    options = {"model": MODEL, "summarizer": says("S"), **missing}
    with pytest.raises(ValueError, match="needs a model and a summarizer"):
        navigate(tree.session, tree.left_end, summarize=True, **options)
    assert tree.unchanged()


@pytest.mark.parametrize(
    "response",
    [
        SummaryResponse("", stop_reason="error", error_message="broken"),
        SummaryResponse("half", stop_reason="length"),
        SummaryResponse("x", called_tool=True),
        SummaryResponse(""),
    ],
)
def test_a_summary_that_fails_leaves_the_session_where_it_was(tree, response):
    """The user stays where he is rather than losing a branch unsummarised."""
    with pytest.raises(SummarizationError):
        navigate(
            tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=lambda _request: response
        )
    assert tree.unchanged()


def test_a_summary_that_is_aborted(tree):
    """Nothing has changed, and the result says so."""
    for options in (
        {"summarizer": lambda _request: SummaryResponse("", stop_reason="aborted")},
        {"summarizer": says("S"), "cancel": _set_event()},
    ):
        result = navigate(tree.session, tree.left_end, summarize=True, model=MODEL, **options)
        assert (result.cancelled, result.aborted) == (True, True)
        assert tree.unchanged()


def _set_event():
    event = threading.Event()
    event.set()
    return event


def test_a_message_that_arrives_meanwhile(tree):
    """The summary would not tell of it, so it is thrown away and the session stays."""

    def summarizer(_request):
        tree.session.append_message(user("news"))
        return SummaryResponse("S")

    with pytest.raises(SessionConflictError, match="moved"):
        navigate(tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=summarizer)
    assert tree.session.get_leaf_entry()["message"]["content"] == "news"


def test_a_label_for_the_place_where_the_session_is(tree):
    """There is nothing to leave, but the label is set."""
    result = navigate(
        tree.session, tree.leaf, label="here", summarize=True, model=MODEL, summarizer=says("S")
    )
    assert (result.cancelled, result.summary_entry) == (False, None)
    assert tree.session.get_label(tree.leaf) == "here"


@pytest.fixture
def file_limit():
    """Sets the size that no file of this process may exceed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (soft if size is None else size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("summarize", [False, True])
def test_a_disk_that_fills_up(tmp_path, file_limit, summarize):
    """All or nothing, at every byte of summary and label: memory and file are as they were."""
    tree = Tree(SessionManager.create("/c", tmp_path))
    path = Path(tree.session.get_session_file())
    size, tries = path.stat().st_size, 0
    while (failed := _limited(tree, file_limit, size + tries, summarize)) is not None:
        file_limit(None)
        assert failed.errno == errno.EFBIG
        assert tree.unchanged()
        assert path.stat().st_size == size
        tries += 1
    file_limit(None)
    assert path.stat().st_size == size + tries
    assert tries > 100


def _limited(tree, file_limit, size, summarize):
    """What going to the other branch fails with, where files can have so many bytes."""
    file_limit(size)
    try:
        navigate(
            tree.session, tree.left_end, label="x", summarize=summarize, model=MODEL, summarizer=says("S")
        )
    except OSError as error:
        return error
    return None


def test_a_hook_sees_the_plan_and_may_cancel(tree):
    """It is told where from, where to, and what would be summarised."""
    plans = []

    def before(plan):
        plans.append(plan)
        return NavigationDecision(cancel=True)

    result = navigate(tree.session, tree.left_end, before=before, custom_instructions="c", label="l")
    assert result.cancelled
    assert tree.unchanged()
    (plan,) = plans
    assert (plan.target_id, plan.old_leaf_id, plan.common_ancestor_id) == (tree.left_end, tree.leaf, tree.hub)
    assert [entry["id"] for entry in plan.entries_to_summarize] == [tree.right, tree.leaf]
    assert (plan.wants_summary, plan.custom_instructions, plan.label) == (False, "c", "l")


def test_a_hook_may_give_summary_instructions_and_label(tree):
    """Its own words go before those of the caller."""
    asked, done = [], []
    decision = NavigationDecision(custom_instructions="ONLY THIS", replace_instructions=True, label="hook's")
    result = navigate(
        tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=says("S", asked),
        custom_instructions="c", label="mine", before=lambda _plan: decision, after=done.append,
    )  # fmt: skip
    assert asked[0].prompt.endswith("</conversation>\n\nONLY THIS")
    assert tree.session.get_label(result.summary_entry["id"]) == "hook's"
    assert done == [result]


def test_a_hook_may_give_the_summary(tree):
    """No model is asked, and the entry says that a hook made it; without a wish for a summary there is none."""
    own = NavigationDecision(summary=BranchSummaryResult("MINE", None, ["r"], []))
    result = navigate(tree.session, tree.left_end, before=lambda _plan: own)
    assert result.summary_entry is None
    tree.session.branch(tree.leaf)
    result = navigate(
        tree.session,
        tree.left_end,
        summarize=True,
        model=MODEL,
        summarizer=says("S"),
        before=lambda _plan: own,
    )
    assert (result.summary_entry["summary"], result.summary_entry["fromHook"], result.from_hook) == (
        "MINE",
        True,
        True,
    )


def test_a_hook_that_answers_nonsense_is_a_type_error(tree):
    """Neither a decision nor None."""
    with pytest.raises(TypeError, match="NavigationDecision"):
        navigate(tree.session, tree.left_end, before=lambda _plan: "stay")
    assert tree.unchanged()


def test_from_asyncio(tree):
    """The same, with async summarizer and hooks."""

    async def summarizer(_request):
        await asyncio.sleep(0)
        return SummaryResponse("S")

    async def before(_plan):
        await asyncio.sleep(0)
        return NavigationDecision(label="async")

    result = asyncio.run(
        anavigate(
            tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=summarizer, before=before
        )
    )
    assert tree.session.get_label(result.summary_entry["id"]) == "async"


def test_a_second_visit_keeps_both_summaries(tree):
    """Coming back, the summary of the first trip is part of what is summarised."""
    asked = []
    navigate(tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=says("TRIP"))
    tree.session.append_message(user("more"))
    navigate(tree.session, tree.leaf, summarize=True, model=MODEL, summarizer=says("S", asked))
    assert "TRIP" in asked[0].prompt
    assert "[User]: more" in asked[0].prompt
    assert "f.py" in tree.session.get_leaf_entry()["summary"]


def test_on_disk(tmp_path):
    """What navigation appended is there after opening again."""
    tree = Tree(SessionManager.create(str(tmp_path), session_dir=str(tmp_path)))
    result = navigate(tree.session, tree.left_end, summarize=True, model=MODEL, summarizer=says("S"))
    path = tree.session.get_session_file()
    tree.session.close()
    with SessionManager.open(path) as again:
        assert again.get_leaf_entry() == result.summary_entry
