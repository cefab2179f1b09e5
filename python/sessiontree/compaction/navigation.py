"""Going to another place of a session's tree, with a summary of the branch that is left.

What is wanted is worked out first, the model asked next; only then does the session change, by one entry
(the summary) or none. A target that is a message of the user is a message to be written anew: the session
goes to the entry before it, and its text is handed back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from sessiontree._jsvalues import member
from sessiontree.compaction._effects import Call, Limits, Steps, arun, run
from sessiontree.compaction.branches import (
    DEFAULT_RESERVE_TOKENS,
    BranchSummaryResult,
    collect_entries_for_branch_summary,
    raising_branch_steps,
)
from sessiontree.compaction.convert import content_text
from sessiontree.compaction.requests import Options, Summarizer, SummaryOptions
from sessiontree.compaction.usage import number_of
from sessiontree.exceptions import EntryNotFoundError, SessionConflictError, SummarizationAbortedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class NavigableSession(Protocol):
    """The part of a SessionManager that navigation needs."""

    def get_leaf_id(self) -> str | None:
        """Where the session is."""

    def get_entry(self, id: str) -> Any:
        """An entry, None if it is unknown."""

    def get_branch(self, from_id: str | None = None) -> Sequence[Any]:
        """The path from the root to an entry."""

    def branch(self, entry_id: str) -> None:
        """Go to an entry."""

    def reset_leaf(self) -> None:
        """Go before the first entry."""

    def branch_with_summary(
        self,
        entry_id: str | None,
        summary: str,
        details: Any = None,
        from_hook: bool | None = None,
        usage: Any = None,
        *,
        label: str | None = None,
    ) -> str:
        """Go to an entry and append a branch summary with its label, both or none; gives the summary's id."""

    def append_label_change(self, target_id: str, label: str | None) -> str:
        """Set a label."""


@dataclass(frozen=True, slots=True)
class NavigationPlan:
    """What is about to happen.

    Attributes:
        target_id: where the caller wants to go.
        old_leaf_id: where the session is.
        common_ancestor_id: the deepest entry on both paths.
        entries_to_summarize: what is left, oldest first.
        wants_summary: a summary was asked for.
        custom_instructions: for the summary.
        replace_instructions: they stand in place of the prompt.
        label: for the summary, or for the target if there is none.
    """

    target_id: str
    old_leaf_id: str | None
    common_ancestor_id: str | None
    entries_to_summarize: list[Any]
    wants_summary: bool
    custom_instructions: str | None
    replace_instructions: bool
    label: str | None


@dataclass(frozen=True, slots=True)
class NavigationDecision:
    """What a hook wants instead; None leaves a thing as it is.

    Attributes:
        cancel: stay.
        summary: its own summary; no model is asked. Counts only if a summary was asked for.
        custom_instructions: for the summary.
        replace_instructions: they stand in place of the prompt.
        label: for the summary or the target.
    """

    cancel: bool = False
    summary: BranchSummaryResult | None = None
    custom_instructions: str | None = None
    replace_instructions: bool | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class NavigationResult:
    """Where the session went.

    Attributes:
        cancelled: nothing has changed.
        aborted: because the summary was cancelled.
        editor_text: the text of the user's message that was gone back to, to be edited.
        summary_entry: the branch summary that was appended.
        old_leaf_id: where the session was.
        new_leaf_id: where it is.
        from_hook: a hook gave the summary.
    """

    cancelled: bool
    aborted: bool = False
    editor_text: str | None = None
    summary_entry: Any = None
    old_leaf_id: str | None = None
    new_leaf_id: str | None = None
    from_hook: bool = False


@dataclass(frozen=True, slots=True)
class _Wish:
    """The arguments of `navigate`."""

    target_id: str
    summarize: bool
    model: Mapping[str, Any] | None
    summarizer: Summarizer | None
    custom_instructions: str | None
    replace_instructions: bool
    reserve_tokens: int | None
    label: str | None
    before: Callable[[NavigationPlan], Any] | None
    after: Callable[[NavigationResult], Any] | None


def navigate(
    session: NavigableSession,
    target_id: str,
    *,
    summarize: bool = False,
    model: Mapping[str, Any] | None = None,
    summarizer: Summarizer | None = None,
    custom_instructions: str | None = None,
    replace_instructions: bool = False,
    reserve_tokens: int | None = None,
    label: str | None = None,
    before: Callable[[NavigationPlan], Any] | None = None,
    after: Callable[[NavigationResult], Any] | None = None,
    **options: Unpack[SummaryOptions],
) -> NavigationResult:
    """Go to an entry of the tree, with a summary of what is left if ``summarize`` is true.

    The summary is appended at the new place. Everything happens or nothing does.

    Args:
        session: a SessionManager.
        target_id: an entry. If it is a message of the user or a custom message, the session goes to its
            parent and the text is given back.
        summarize: have the branch summarised that is left.
        model: the model's description, needed for a summary.
        summarizer: asks the model, needed for a summary.
        custom_instructions: what the summary is to dwell on.
        replace_instructions: they stand in place of the prompt.
        reserve_tokens: left free in the model's window; 16,384, or a quarter of a small window, if left out.
        label: set on the summary, or on the target if there is none.
        before: may give a `NavigationDecision`; plain or async.
        after: is told the result; plain or async.
        **options: see `SummaryOptions`.

    Raises:
        EntryNotFoundError: there is no such entry.
        SummarizationError: there is no usable summary; the session is where it was.
        SessionConflictError: the session moved while the model was writing.
        ValueError: a summary is wanted without model or summarizer.

    Example:
        >>> from sessiontree import SessionManager
        >>> from sessiontree.compaction import navigate
        >>> session = SessionManager.in_memory()
        >>> first = session.append_message({"role": "user", "content": "Plan A"})
        >>> answer = session.append_message({"role": "assistant", "content": []})
        >>> navigate(session, first).editor_text
        'Plan A'
    """
    chosen = Options(**options)
    wish = _Wish(
        target_id, summarize, model, summarizer, custom_instructions, replace_instructions,
        reserve_tokens, label, before, after,
    )  # fmt: skip
    return run(_steps(session, wish, chosen), Limits(chosen.cancel, chosen.time_limit))


async def anavigate(
    session: NavigableSession,
    target_id: str,
    *,
    summarize: bool = False,
    model: Mapping[str, Any] | None = None,
    summarizer: Summarizer | None = None,
    custom_instructions: str | None = None,
    replace_instructions: bool = False,
    reserve_tokens: int | None = None,
    label: str | None = None,
    before: Callable[[NavigationPlan], Any] | None = None,
    after: Callable[[NavigationResult], Any] | None = None,
    **options: Unpack[SummaryOptions],
) -> NavigationResult:
    """`navigate` for asyncio."""
    chosen = Options(**options)
    wish = _Wish(
        target_id, summarize, model, summarizer, custom_instructions, replace_instructions,
        reserve_tokens, label, before, after,
    )  # fmt: skip
    return await arun(_steps(session, wish, chosen), Limits(chosen.cancel, chosen.time_limit))


def _steps(session: NavigableSession, wish: _Wish, options: Options) -> Steps[NavigationResult]:
    target = session.get_entry(wish.target_id)
    if target is None:
        raise EntryNotFoundError(f'there is no entry "{wish.target_id}"')
    old_leaf = session.get_leaf_id()
    if wish.target_id == old_leaf:
        if wish.label:
            session.append_label_change(wish.target_id, wish.label)
        return NavigationResult(cancelled=False, old_leaf_id=old_leaf, new_leaf_id=session.get_leaf_id())
    if wish.summarize and (wish.model is None or wish.summarizer is None):
        raise ValueError("a summary needs a model and a summarizer")
    plan = _plan(session, wish, old_leaf)
    decision = yield from _decision(wish.before, plan)
    if decision.cancel:
        return NavigationResult(cancelled=True, old_leaf_id=old_leaf, new_leaf_id=old_leaf)
    plan = _revised(plan, decision)
    try:
        summary = yield from _summary(plan, decision, wish, options)
    except SummarizationAbortedError:
        return NavigationResult(cancelled=True, aborted=True, old_leaf_id=old_leaf, new_leaf_id=old_leaf)
    if session.get_leaf_id() != old_leaf:
        raise SessionConflictError("the session moved while the branch was being summarised")
    result = _gone(session, target, plan, summary, from_hook=decision.summary is not None)
    if wish.after is not None:
        yield Call(wish.after, (result,))
    return result


def _plan(session: NavigableSession, wish: _Wish, old_leaf: str | None) -> NavigationPlan:
    left = collect_entries_for_branch_summary(session, old_leaf, wish.target_id)
    return NavigationPlan(
        target_id=wish.target_id,
        old_leaf_id=old_leaf,
        common_ancestor_id=left.common_ancestor_id,
        entries_to_summarize=left.entries,
        wants_summary=wish.summarize,
        custom_instructions=wish.custom_instructions,
        replace_instructions=wish.replace_instructions,
        label=wish.label,
    )


def _decision(
    before: Callable[[NavigationPlan], Any] | None, plan: NavigationPlan
) -> Steps[NavigationDecision]:
    decision = (yield Call(before, (plan,))) if before is not None else None
    if decision is None:
        return NavigationDecision()
    if not isinstance(decision, NavigationDecision):
        raise TypeError(f"a hook before navigation must give a NavigationDecision or None, not {decision!r}")
    return decision


def _revised(plan: NavigationPlan, decision: NavigationDecision) -> NavigationPlan:
    names = ("custom_instructions", "replace_instructions", "label")
    wanted = {name: getattr(decision, name) for name in names}
    return replace(plan, **{name: value for name, value in wanted.items() if value is not None})


def _summary(
    plan: NavigationPlan, decision: NavigationDecision, wish: _Wish, options: Options
) -> Steps[BranchSummaryResult | None]:
    if not plan.wants_summary:
        return None
    if decision.summary is not None:
        return decision.summary
    if not plan.entries_to_summarize or wish.model is None or wish.summarizer is None:
        return None
    return (
        yield from raising_branch_steps(
            plan.entries_to_summarize,
            wish.model,
            wish.summarizer,
            plan.custom_instructions,
            plan.replace_instructions,
            _reserve(wish),
            options,
        )
    )


def _reserve(wish: _Wish) -> int:
    """What is left free: the default is made for large windows."""
    if wish.reserve_tokens is not None:
        return wish.reserve_tokens
    window = number_of((wish.model or {}).get("contextWindow"))
    small = 0 < window < 2 * DEFAULT_RESERVE_TOKENS
    return int(window) // 4 if small else DEFAULT_RESERVE_TOKENS


def _gone(
    session: NavigableSession,
    target: Any,
    plan: NavigationPlan,
    summary: BranchSummaryResult | None,
    *,
    from_hook: bool,
) -> NavigationResult:
    """Change the session by one write, or go back to where it was."""
    leaf, text = _destination(session, target)
    entry_id = None
    if summary is not None and summary.summary:
        entry_id = _branch_with_summary(session, leaf, summary, plan.label, from_hook=from_hook)
    else:
        _moved(session, leaf, plan)
    return NavigationResult(
        cancelled=False,
        editor_text=text,
        summary_entry=None if entry_id is None else session.get_entry(entry_id),
        old_leaf_id=plan.old_leaf_id,
        new_leaf_id=session.get_leaf_id(),
        from_hook=from_hook and entry_id is not None,
    )


def _moved(session: NavigableSession, leaf: str | None, plan: NavigationPlan) -> None:
    try:
        _go(session, leaf)
        if plan.label:
            session.append_label_change(plan.target_id, plan.label)
    except BaseException:
        _go(session, plan.old_leaf_id)
        raise


def _destination(session: NavigableSession, target: Any) -> tuple[str | None, str | None]:
    """Where a target leads, and the text that is to be edited."""
    kind = member(target, "type")
    if kind == "custom_message":
        content = target.get("content")
    elif kind == "message" and member(target.get("message"), "role") == "user":
        content = target["message"].get("content")
    else:
        return target["id"], None
    parent = target.get("parentId")
    known = isinstance(parent, str) and parent and session.get_entry(parent) is not None
    return parent if known else None, _text(content)


def _text(content: Any) -> str:
    try:
        return content_text(content, "")
    except TypeError:
        return ""


def _go(session: NavigableSession, leaf: str | None) -> None:
    if leaf is None:
        session.reset_leaf()
    else:
        session.branch(leaf)


def _branch_with_summary(
    session: NavigableSession,
    leaf: str | None,
    summary: BranchSummaryResult,
    label: str | None,
    *,
    from_hook: bool,
) -> str:
    details = {"readFiles": summary.read_files or [], "modifiedFiles": summary.modified_files or []}
    text, usage = summary.summary or "", summary.usage
    return session.branch_with_summary(leaf, text, details, from_hook, usage, label=label)
