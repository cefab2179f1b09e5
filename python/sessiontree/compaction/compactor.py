"""Keeps the context of a session within the window of its model.

`Compactor.after_response` is called when the model has answered, and decides by the last answer:

1. It failed because the context is too long: the attempt is omitted from the context (context edits), the
   session is compacted, and the outcome says that the turn is to be tried again. Once a turn.
2. It succeeded, but in a context that exceeds the window: compacted, nothing to repeat.
3. The context has grown beyond the threshold: compacted.

`Compactor.compact` compacts because somebody wants it. In all cases the session changes only once the
summary is there: one entry is appended. What fails before that, and a cancellation at any time, leaves the
session as it was, except for the omissions of case 1, which hold whether or not the compaction works out.
Messages that arrive in the meantime stay behind the kept part; if the session has gone to another branch,
or was compacted by somebody else, the summary is thrown away.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack

from sessiontree._jsvalues import member
from sessiontree.compaction._answers import LastAnswer, orphaned_results
from sessiontree.compaction._effects import Call, Limits, Steps, arun, run
from sessiontree.compaction._folding import input_limit
from sessiontree.compaction.overflow import is_context_overflow, is_recoverable_length
from sessiontree.compaction.prepare import (
    DEFAULT_COMPACTION_SETTINGS,
    CompactionPreparation,
    prepare_projection,
)
from sessiontree.compaction.requests import Options, RetryPolicy, Summarizer, SummaryOptions
from sessiontree.compaction.summarize import CompactionResult, compact_steps
from sessiontree.compaction.tokens import (
    ContextUsageEstimate,
    TokenCounter,
    estimate_projected_context_tokens,
    estimate_tokens,
    should_compact,
)
from sessiontree.exceptions import SessionConflictError, SummarizationAbortedError, SummarizationError

if TYPE_CHECKING:
    from sessiontree.compaction.usage import Number
    from sessiontree.context import SessionProjection
    from sessiontree.settings import SettingsManager

Reason = Literal["manual", "threshold", "overflow"]
Status = Literal["compacted", "nothing", "cancelled", "failed"]


class CompactionSession(Protocol):
    """The part of a SessionManager that a Compactor needs."""

    def get_branch(self, from_id: str | None = None) -> Sequence[Any]:
        """The path from the root to an entry, by default to the leaf."""

    def build_session_projection(self) -> SessionProjection:
        """The context, entry by entry."""

    def append_compaction(
        self,
        summary: str,
        first_kept_entry_id: str | None,
        tokens_before: Any,
        details: Any = None,
        from_hook: bool | None = None,
        usage: Any = None,
    ) -> str:
        """Append a compaction; gives its id."""

    def append_context_edit(self, target_id: str, replacement: Any) -> str:
        """Append an edit; gives its id."""


@dataclass(frozen=True, slots=True)
class BeforeCompaction:
    """What a hook is told before a summary is made.

    Attributes:
        preparation: what would be summarised and kept.
        branch_entries: the path to the leaf.
        reason: ``manual``, ``threshold`` or ``overflow``.
        will_retry: the turn is going to be repeated afterwards.
        custom_instructions: of the user.
        cancel: set when the caller cancels.
    """

    preparation: CompactionPreparation
    branch_entries: Sequence[Any]
    reason: Reason
    will_retry: bool
    custom_instructions: str | None
    cancel: threading.Event | None


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    """What a hook wants: call it off, or have its own summary stored, without a model being asked."""

    cancel: bool = False
    result: CompactionResult | None = None


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """What a compaction has changed.

    Attributes:
        status: ``compacted``, ``nothing`` (there was nothing to do), ``cancelled`` or ``failed``.
        reason: why it was tried.
        entry_id: of the new compaction entry.
        result: what it holds.
        omitted_entry_ids: entries that no longer contribute to the context: the failed attempt with its
            tool results, and tool results whose call is nowhere in the context.
        retry: the caller should repeat the turn.
        message: why nothing was done, or what failed.
        error: the exception behind it.
    """

    status: Status
    reason: Reason
    entry_id: str | None = None
    result: CompactionResult | None = None
    omitted_entry_ids: tuple[str, ...] = ()
    retry: bool = False
    message: str | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class CompactorHooks:
    """Functions that are called around a compaction, plain ones or async.

    Attributes:
        before: may cancel, or give its own summary.
        after: is told what was done.
        failed: is told of a failure or a cancellation.
    """

    before: Callable[[BeforeCompaction], Any] | None = None
    after: Callable[[CompactionOutcome], Any] | None = None
    failed: Callable[[CompactionOutcome], Any] | None = None


def fitted_settings(settings: Mapping[str, Any], context_window: float) -> Mapping[str, Any]:
    """Settings that can work in a window: reserve and kept part together fill at most half of it.

    The defaults are made for windows of 100,000 tokens and more. In one of 8,192 they would ask for a
    compaction at every turn, and none would help.

    Example:
        >>> from sessiontree.compaction import DEFAULT_COMPACTION_SETTINGS, fitted_settings
        >>> small = fitted_settings(DEFAULT_COMPACTION_SETTINGS, 8192)
        >>> small["reserveTokens"], small["keepRecentTokens"]
        (2048, 2048)
    """
    most = int(context_window // 4)
    wanted = {name: settings[name] for name in ("reserveTokens", "keepRecentTokens")}
    if sum(wanted.values()) < context_window:
        return settings
    return {**settings, **{name: min(value, most) for name, value in wanted.items()}}


class Compactor:
    """Compacts one session when it is time, or when it is told to.

    Args:
        session: a SessionManager.
        model: the model's description: ``provider``, ``id``, ``contextWindow``, ``maxTokens``.
        summarizer: asks the model.
        settings: a SettingsManager, or a dict like `DEFAULT_COMPACTION_SETTINGS`.
        hooks: called before and after.
        **options: see `SummaryOptions`; retries follow the settings if left out here.

    Example:
        >>> from sessiontree import SessionManager
        >>> from sessiontree.compaction import Compactor, SummaryResponse
        >>> session = SessionManager.in_memory()
        >>> for number in range(6):
        ...     id = session.append_message({"role": "user", "content": f"{number}: " + "word " * 99})
        >>> model = {"provider": "local", "id": "small", "contextWindow": 800}
        >>> compactor = Compactor(session, model, lambda request: SummaryResponse("## Goal"))
        >>> compactor.compact().status
        'compacted'
    """

    def __init__(
        self,
        session: CompactionSession,
        model: Mapping[str, Any],
        summarizer: Summarizer,
        *,
        settings: SettingsManager | Mapping[str, Any] | None = None,
        hooks: CompactorHooks | None = None,
        **options: Unpack[SummaryOptions],
    ) -> None:
        self.session = session
        self.model = model
        self.summarizer = summarizer
        self._settings = settings
        self._hooks = hooks or CompactorHooks()
        self._options = options
        self._busy, self._process = threading.Lock(), os.getpid()

    # ---- what is

    def settings(self) -> Mapping[str, Any]:
        """The settings for the model, fitted to its window."""
        given = self._settings
        if given is None or isinstance(given, Mapping):
            chosen: Mapping[str, Any] = {**DEFAULT_COMPACTION_SETTINGS, **(given or {})}
        else:
            chosen = given.get_compaction_settings(self.model)
        window = self._window()
        return fitted_settings(chosen, window) if window else chosen

    def context_usage(self) -> ContextUsageEstimate:
        """How full the context is, without believing a usage from before the last compaction or edit."""
        return self._usage(self._chosen({}))

    def needs_compaction(self) -> bool:
        """Has the context grown beyond the threshold?"""
        return should_compact(self.context_usage().tokens, self._window() or float("inf"), self.settings())

    def _usage(self, options: Options) -> ContextUsageEstimate:
        return estimate_projected_context_tokens(
            self.session.build_session_projection(),
            self.session.get_branch(),
            count_tokens=options.count_tokens,
        )

    def _window(self) -> float:
        window = self.model.get("contextWindow")
        return window if isinstance(window, (int, float)) else 0

    def _chosen(self, overrides: SummaryOptions) -> Options:
        """The options of one run: given to it, given to the Compactor, or following from the settings."""
        given: SummaryOptions = {**self._options, **overrides}
        if "retry" not in given:
            settings = self._settings
            with_retry = settings is not None and not isinstance(settings, Mapping)
            given["retry"] = settings.get_retry_settings() if with_retry else RetryPolicy()  # type: ignore[union-attr]
        if "max_input_tokens" not in given and self._window():
            given["max_input_tokens"] = input_limit(self._window(), self.model.get("maxTokens") or 0)
        given["count_tokens"] = _forgiving(given.get("count_tokens", estimate_tokens))
        return Options(**given)

    def prepare(self, *, keep_recent_tokens: float | None = None) -> CompactionPreparation | None:
        """What a compaction would do now, without doing it; None if there is nothing to do.

        Args:
            keep_recent_tokens: instead of the setting.
        """
        settings = self.settings()
        if keep_recent_tokens is not None:
            settings = {**settings, "keepRecentTokens": keep_recent_tokens}
        return self._prepared(settings, self._chosen({}))

    def _prepared(
        self, settings: Mapping[str, Any], options: Options, *, too_long: bool = False
    ) -> CompactionPreparation | None:
        """The preparation; where the kept part alone is too much, less and less is kept.

        ``too_long``: that it is too much is known, whatever the estimate says.
        """
        projection = self.session.build_session_projection()
        branch = self.session.get_branch()
        keep = settings["keepRecentTokens"]
        if not (branch and member(branch[-1], "type") == "compaction"):
            prepared = self._prepare_keeping(projection, branch, settings, keep, options)
            if prepared is not None:
                return prepared
        window = self._window()
        tokens = estimate_projected_context_tokens(
            projection, branch, count_tokens=options.count_tokens
        ).tokens
        too_long = too_long or bool(window and tokens > window - settings["reserveTokens"])
        while too_long and keep > 1:
            keep //= 2
            prepared = self._prepare_keeping(projection, branch, settings, keep, options)
            if prepared is not None:
                return prepared
        return None

    def _prepare_keeping(
        self,
        projection: SessionProjection,
        branch: Sequence[Any],
        settings: Mapping[str, Any],
        keep: float,
        options: Options,
    ) -> CompactionPreparation | None:
        return prepare_projection(
            projection,
            branch,
            {**settings, "keepRecentTokens": keep},
            count_tokens=options.count_tokens,
            pair_tool_results=True,
        )

    # ---- compacting because it is wanted

    def compact(
        self, *, custom_instructions: str | None = None, **options: Unpack[SummaryOptions]
    ) -> CompactionOutcome:
        """Compact now.

        Args:
            custom_instructions: what the summary is to dwell on.
            **options: see `SummaryOptions`; they go before those of the Compactor.

        Returns:
            An outcome with the status ``compacted``, ``nothing``, or ``cancelled`` by a hook or the caller.

        Raises:
            SummarizationError: the model gave no usable summary; the session is as it was.
            SessionConflictError: the session has gone elsewhere in the meantime; nothing was appended.
        """
        chosen = self._chosen(options)
        return run(self._manual(custom_instructions, chosen), Limits(chosen.cancel, chosen.time_limit))

    async def acompact(
        self, *, custom_instructions: str | None = None, **options: Unpack[SummaryOptions]
    ) -> CompactionOutcome:
        """`compact` for asyncio."""
        chosen = self._chosen(options)
        steps = self._manual(custom_instructions, chosen)
        return await arun(steps, Limits(chosen.cancel, chosen.time_limit))

    def _manual(self, custom_instructions: str | None, options: Options) -> Steps[CompactionOutcome]:
        outcome = yield from self._alone(
            self._settled("manual", options, custom_instructions=custom_instructions)
        )
        if outcome.status == "failed" and outcome.error is not None:
            raise outcome.error
        return outcome

    # ---- compacting because the model has answered

    def after_response(self, **options: Unpack[SummaryOptions]) -> CompactionOutcome:
        """Look at the last answer on the branch and compact if it is time.

        Call it after every answer, and before a prompt is sent. Failures of the model are told in the
        outcome, not raised, so that an agent that runs unattended goes on.

        Args:
            **options: see `SummaryOptions`; they go before those of the Compactor.

        Returns:
            The outcome; ``retry`` says that the turn is to be repeated.
        """
        chosen = self._chosen(options)
        return run(self._alone(self._automatic(chosen)), Limits(chosen.cancel, chosen.time_limit))

    async def aafter_response(self, **options: Unpack[SummaryOptions]) -> CompactionOutcome:
        """`after_response` for asyncio."""
        chosen = self._chosen(options)
        return await arun(self._alone(self._automatic(chosen)), Limits(chosen.cancel, chosen.time_limit))

    def _automatic(self, options: Options) -> Steps[CompactionOutcome]:
        settings = self.settings()
        if not settings.get("enabled"):
            return CompactionOutcome("nothing", "threshold", message="compaction is switched off")
        answer = LastAnswer.of(self.session.get_branch())
        if answer is not None and self._ran_over(answer):
            return (yield from self._recovered(answer, options))
        tokens = self._usage(options).tokens
        if should_compact(tokens, self._window() or float("inf"), settings):
            return (yield from self._settled("threshold", options))
        return CompactionOutcome("nothing", "threshold", message="the context is below the threshold")

    def _ran_over(self, answer: LastAnswer) -> bool:
        """Did the context not fit into the window of this model?"""
        message = answer.message
        ids = (("provider", "provider"), ("model", "id"))
        pairs = ((message.get(told), self.model.get(own)) for told, own in ids)
        other = any(told != own for told, own in pairs if told is not None and own is not None)
        if other or answer.is_omitted:
            return False
        window = None if answer.is_outdated else self._window()
        short = not answer.is_outdated and is_recoverable_length(message, self.model.get("maxTokens"))
        return is_context_overflow(message, window) or short

    def _recovered(self, answer: LastAnswer, options: Options) -> Steps[CompactionOutcome]:
        if member(answer.message, "stopReason") == "stop":
            return (yield from self._settled("overflow", options))
        if answer.follows_recovery:
            text = "the context is too long again, and a turn is omitted and compacted once at most"
            outcome = CompactionOutcome("failed", "overflow", message=text)
            yield from _told(self._hooks.failed, outcome)
            return outcome
        omitted = answer.entry_ids
        for entry_id in omitted:
            self.session.append_context_edit(entry_id, None)
        outcome = yield from self._settled("overflow", options, will_retry=True)
        return replace(
            outcome,
            omitted_entry_ids=(*omitted, *outcome.omitted_entry_ids),
            retry=outcome.status == "compacted",
        )

    # ---- the work

    def _alone(self, steps: Steps[CompactionOutcome]) -> Steps[CompactionOutcome]:
        """Refuse a second compaction while one is running."""
        if self._process != os.getpid():
            # A thread that was compacting when the process forked is not in the child.
            self._busy, self._process = threading.Lock(), os.getpid()
        if not self._busy.acquire(blocking=False):
            raise SessionConflictError("a compaction of this session is already running")
        try:
            return (yield from steps)
        finally:
            self._busy.release()

    def _settled(
        self,
        reason: Reason,
        options: Options,
        *,
        will_retry: bool = False,
        custom_instructions: str | None = None,
    ) -> Steps[CompactionOutcome]:
        """Compact, and turn what the model or the session may do wrong into an outcome."""
        try:
            outcome = yield from self._compacted(reason, options, will_retry, custom_instructions)
        except SummarizationAbortedError as error:
            outcome = CompactionOutcome("cancelled", reason, message=str(error), error=error)
        except (SummarizationError, SessionConflictError) as error:
            outcome = CompactionOutcome("failed", reason, message=str(error), error=error)
        if outcome.status == "compacted":
            yield from _told(self._hooks.after, outcome)
        elif outcome.status != "nothing":
            yield from _told(self._hooks.failed, outcome)
        return outcome

    def _compacted(
        self, reason: Reason, options: Options, will_retry: bool, custom_instructions: str | None
    ) -> Steps[CompactionOutcome]:
        branch = self.session.get_branch()
        prepared = self._prepared(self.settings(), options, too_long=reason == "overflow")
        if prepared is None:
            return CompactionOutcome("nothing", reason, message=_nothing_to_do(branch))
        event = BeforeCompaction(prepared, branch, reason, will_retry, custom_instructions, options.cancel)
        decision = yield from self._decision(event)
        if decision.cancel:
            return CompactionOutcome("cancelled", reason, message="a hook called the compaction off")
        result = decision.result
        if result is None:
            result = yield from compact_steps(
                prepared, self.model, self.summarizer, custom_instructions, options
            )
        if options.cancel is not None and options.cancel.is_set():
            raise SummarizationAbortedError("the compaction was cancelled", reason="aborted")
        self._check_branch(branch, result)
        return self._appended(reason, result, decision.result is not None, options)

    def _decision(self, event: BeforeCompaction) -> Steps[CompactionDecision]:
        decision = yield from _told(self._hooks.before, event)
        if decision is None:
            return CompactionDecision()
        if not isinstance(decision, CompactionDecision):
            text = f"a hook before compactions must give a CompactionDecision or None, not {decision!r}"
            raise TypeError(text)
        made = decision.result
        if made is not None and not (isinstance(made.summary, str) and made.summary.strip()):
            raise SummarizationError("the summary of the hook before compactions is empty", reason="empty")
        return decision

    def _check_branch(self, prepared: Sequence[Any], result: CompactionResult) -> None:
        """Refuse a summary of a path that the session is no longer on."""
        branch = self.session.get_branch()
        length = len(prepared)
        kept_on_path = length <= len(branch) and _same_id(branch[length - 1], prepared[length - 1])
        if not kept_on_path:
            raise SessionConflictError("the session went to another branch while it was being summarised")
        if any(member(entry, "type") == "compaction" for entry in branch[length:]):
            raise SessionConflictError("the session was compacted by somebody else in the meantime")
        kept = result.first_kept_entry_id
        if not any(member(entry, "id") == kept for entry in branch):
            raise SessionConflictError(f'the first entry to keep, "{kept}", is not on the branch')

    def _appended(
        self, reason: Reason, result: CompactionResult, from_hook: bool, options: Options
    ) -> CompactionOutcome:
        entry_id = self.session.append_compaction(
            result.summary,
            result.first_kept_entry_id,
            result.tokens_before,
            result.details,
            from_hook,
            result.usage,
        )
        projection = self.session.build_session_projection()
        orphans = tuple(orphaned_results(projection))
        for orphan in orphans:
            self.session.append_context_edit(orphan, None)
        if orphans:
            projection = self.session.build_session_projection()
        messages = projection.messages
        after: Number = sum(map(options.count_tokens, messages))
        return CompactionOutcome(
            "compacted",
            reason,
            entry_id=entry_id,
            result=replace(result, estimated_tokens_after=after),
            omitted_entry_ids=orphans,
        )


def _forgiving(count_tokens: TokenCounter) -> TokenCounter:
    """A counter for which a message that cannot be measured takes no tokens: one odd entry stops nothing."""

    def count(message: Any) -> int:
        try:
            return count_tokens(message)
        except TypeError:
            return 0

    return count


def _told(hook: Callable[..., Any] | None, argument: Any) -> Steps[Any]:
    return (yield Call(hook, (argument,))) if hook is not None else None


def _same_id(first: Any, second: Any) -> bool:
    return bool(member(first, "id") == member(second, "id"))


def _nothing_to_do(branch: Sequence[Any]) -> str:
    if branch and member(branch[-1], "type") == "compaction":
        return "the session was just compacted"
    return "the session is too small: all of it is to be kept"
