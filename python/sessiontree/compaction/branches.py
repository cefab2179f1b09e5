"""Summaries of a branch that is left: what is on it, how much of it fits, what the model makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

from sessiontree._jsvalues import member, truthy
from sessiontree.compaction._effects import Limits, Steps, arun, run
from sessiontree.compaction._folding import portions
from sessiontree.compaction.files import (
    FileOperations,
    add_summary_details,
    compute_file_lists,
    create_file_ops,
    extract_file_ops_from_message,
    format_file_operations,
)
from sessiontree.compaction.prompts import BRANCH_SUMMARY_PREAMBLE, NO_CONTENT_TO_SUMMARIZE
from sessiontree.compaction.requests import Options, Summarizer, SummaryOptions
from sessiontree.compaction.summarize import focused, generated
from sessiontree.compaction.tokens import TokenCounter, estimate_tokens
from sessiontree.context import (
    branch_summary_message,
    compaction_summary_message,
    custom_message,
    is_replacement,
    project_context_entry,
)
from sessiontree.entries import UNSET
from sessiontree.exceptions import SummarizationAbortedError, SummarizationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT_CONTEXT_WINDOW: Final = 128_000
"""Tokens of context assumed for a model that does not tell."""
DEFAULT_RESERVE_TOKENS: Final = 16_384


class BranchSource(Protocol):
    """The part of a SessionManager that is needed to collect a branch."""

    def get_branch(self, from_id: str | None = None) -> Sequence[Any]:
        """The path from the root to an entry; empty for an unknown one."""


@dataclass(frozen=True, slots=True)
class CollectedEntries:
    """What lies between two places of a tree.

    Attributes:
        entries: from the common ancestor, without it, to the old leaf.
        common_ancestor_id: the deepest entry on both paths, None if they have no entry in common.
    """

    entries: list[Any]
    common_ancestor_id: str | None


@dataclass(frozen=True, slots=True)
class BranchPreparation:
    """What of a branch is to be summarised.

    Attributes:
        messages: oldest first.
        file_ops: files that these messages and earlier branch summaries name.
        total_tokens: of the messages.
    """

    messages: list[Any]
    file_ops: FileOperations
    total_tokens: int


@dataclass(frozen=True, slots=True)
class BranchSummaryResult:
    """A branch summary, or why there is none.

    Attributes:
        summary: the text, introduced and with the lists of files; None if it was aborted or failed.
        usage: of the request, if the summarizer tells it.
        read_files: files only read; None where no model was asked.
        modified_files: files changed; None where no model was asked.
        aborted: the caller or the provider stopped it.
        error: what went wrong.
    """

    summary: str | None = None
    usage: Mapping[str, Any] | None = None
    read_files: list[str] | None = None
    modified_files: list[str] | None = None
    aborted: bool = False
    error: str | None = None


def collect_entries_for_branch_summary(
    session: BranchSource, old_leaf_id: str | None, target_id: str | None
) -> CollectedEntries:
    """Collect the entries that are left behind when a session goes from one entry to another.

    Compactions on the way do not end the collection: their summaries are part of what is left.

    Args:
        session: a SessionManager.
        old_leaf_id: where the session is; None or an unknown id gives nothing.
        target_id: where it goes; None is its current leaf.

    Raises:
        CorruptSessionError: the parents of one of the two run in a circle.
    """
    if not old_leaf_id:
        return CollectedEntries([], None)
    old = session.get_branch(old_leaf_id)
    shared = _shared_length(old, session.get_branch(target_id))
    ancestor = member(old[shared - 1], "id") if shared else None
    return CollectedEntries(list(old[shared:]), ancestor if isinstance(ancestor, str) else None)


def _shared_length(first: Sequence[Any], second: Sequence[Any]) -> int:
    """How many entries two paths of one tree have in common; found by halving, as paths never meet again."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if member(first[middle - 1], "id") == member(second[middle - 1], "id"):
            low = middle
        else:
            high = middle - 1
    return low


def prepare_branch_entries(
    entries: Sequence[Any], token_budget: float = 0, *, count_tokens: TokenCounter = estimate_tokens
) -> BranchPreparation:
    """Choose what of a branch is summarised: the newest messages that fit.

    Tool results are left out, as the calls tell enough. Context edits on the branch apply. A compaction or
    branch summary that does not fit is taken all the same while less than 90 % of the budget is used,
    because it stands for much; with it, or with any other message that does not fit, the choice ends.
    Entries that cannot be read as a message contribute nothing.

    Args:
        entries: oldest first.
        token_budget: tokens at most; 0 is no limit.
        count_tokens: measures one message.
    """
    file_ops = create_file_ops()
    for entry in entries:
        if member(entry, "type") == "branch_summary":
            add_summary_details(entry, file_ops)
    edits = {entry["targetId"]: entry for entry in entries if _is_edit(entry)}
    chosen: list[Any] = []
    total = 0
    for entry in reversed(entries):
        edit = edits.get(entry_id) if isinstance(entry_id := member(entry, "id"), str) else None
        message, tokens = _measured(entry, edit, count_tokens)
        if message is None:
            continue
        extract_file_ops_from_message(message, file_ops)
        fits = not token_budget > 0 or total + tokens <= token_budget
        is_summary = member(entry, "type") in ("compaction", "branch_summary")
        if fits or (is_summary and total < token_budget * 0.9):
            chosen.append(message)
            total += tokens
        if not fits:
            break
    return BranchPreparation(chosen[::-1], file_ops, total)


def _is_edit(entry: Any) -> bool:
    """Is it a context edit that makes sense? Others change nothing."""
    return (
        member(entry, "type") == "context_edit"
        and isinstance(entry.get("targetId"), str)
        and "replacement" in entry
        and is_replacement(entry["replacement"])
    )


def _measured(entry: Any, edit: Any, count_tokens: TokenCounter) -> tuple[Any, int]:
    try:
        message = _message_of(entry, edit)
        return message, 0 if message is None else count_tokens(message)
    except (TypeError, KeyError, AttributeError):
        return None, 0


def _message_of(entry: Any, edit: Any) -> Any:
    """The message of an entry, None if it has none; unlike in the context, summaries always count."""
    kind = member(entry, "type")
    if kind == "message" and member(entry["message"], "role") == "toolResult":
        return None
    if kind in ("message", "custom_message") and edit is not None:
        return next(iter(project_context_entry(entry, edit)), None)
    if kind == "message":
        return entry["message"]
    build, names = _BUILDERS.get(kind, (None, ()))
    return build(*(entry.get(name, UNSET) for name in names)) if build is not None else None


_BUILDERS: Final[Mapping[Any, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "custom_message": (custom_message, ("customType", "content", "display", "details", "timestamp")),
    "branch_summary": (branch_summary_message, ("summary", "fromId", "timestamp")),
    "compaction": (compaction_summary_message, ("summary", "tokensBefore", "timestamp")),
}


def generate_branch_summary(
    entries: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    replace_instructions: bool = False,
    reserve_tokens: int = DEFAULT_RESERVE_TOKENS,
    **options: Unpack[SummaryOptions],
) -> BranchSummaryResult:
    """Have a branch summarised; the session is not touched.

    Args:
        entries: what is left, oldest first.
        model: the model's description; ``contextWindow`` says how much fits (128,000 if left out).
        summarizer: asks the model.
        custom_instructions: what the summary is to dwell on.
        replace_instructions: they stand in place of the prompt instead of after it.
        reserve_tokens: left free for prompt and answer.
        **options: see `SummaryOptions`.

    Returns:
        The summary; failures of the model are told in ``aborted`` and ``error``, not raised.

    Raises:
        ValueError: ``reserve_tokens`` leaves nothing of the context window.
    """
    chosen = Options(**options)
    steps = branch_steps(
        entries, model, summarizer, custom_instructions, replace_instructions, reserve_tokens, chosen
    )
    return run(steps, Limits(chosen.cancel, chosen.time_limit))


async def agenerate_branch_summary(
    entries: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    replace_instructions: bool = False,
    reserve_tokens: int = DEFAULT_RESERVE_TOKENS,
    **options: Unpack[SummaryOptions],
) -> BranchSummaryResult:
    """`generate_branch_summary` for asyncio."""
    chosen = Options(**options)
    steps = branch_steps(
        entries, model, summarizer, custom_instructions, replace_instructions, reserve_tokens, chosen
    )
    return await arun(steps, Limits(chosen.cancel, chosen.time_limit))


def branch_steps(
    entries: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    custom_instructions: str | None,
    replace_instructions: bool,
    reserve_tokens: int,
    options: Options,
) -> Steps[BranchSummaryResult]:
    """The steps of `generate_branch_summary`."""
    steps = raising_branch_steps(
        entries, model, summarizer, custom_instructions, replace_instructions, reserve_tokens, options
    )
    try:
        return (yield from steps)
    except SummarizationAbortedError:
        return BranchSummaryResult(aborted=True)
    except SummarizationError as error:
        return BranchSummaryResult(error=str(error))


def raising_branch_steps(
    entries: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    custom_instructions: str | None,
    replace_instructions: bool,
    reserve_tokens: int,
    options: Options,
) -> Steps[BranchSummaryResult]:
    """Like `branch_steps`, but failures are raised."""
    prepared = prepare_branch_entries(
        entries, _budget(model, reserve_tokens), count_tokens=options.count_tokens
    )
    if not prepared.messages:
        return BranchSummaryResult(summary=NO_CONTENT_TO_SUMMARIZE)
    instructions = focused(options.prompts.branch, custom_instructions)
    if replace_instructions and custom_instructions:
        instructions = custom_instructions
    (text,) = portions(prepared.messages, None, options.count_tokens)
    prompt = f"<conversation>\n{text}\n</conversation>\n\n{instructions}"
    made = yield from generated("branch", model, summarizer, prompt, options)
    files = compute_file_lists(prepared.file_ops)
    lists = format_file_operations(files.read_files, files.modified_files)
    return BranchSummaryResult(
        summary=BRANCH_SUMMARY_PREAMBLE + made.text + lists,
        usage=made.usage,
        read_files=files.read_files,
        modified_files=files.modified_files,
    )


def _budget(model: Mapping[str, Any], reserve_tokens: int) -> int:
    told = model.get("contextWindow")
    window = int(told) if isinstance(told, (int, float)) and truthy(told) else DEFAULT_CONTEXT_WINDOW
    if reserve_tokens >= window:
        text = (
            f"reserve_tokens {reserve_tokens} leave nothing of the model's context window of {window} tokens"
        )
        raise ValueError(text)
    return window - reserve_tokens
