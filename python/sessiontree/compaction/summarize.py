"""Summaries of a history: asked from a model, joined, and given the form that is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from sessiontree.compaction._asking import asked, checked
from sessiontree.compaction._effects import Limits, Steps, arun, run
from sessiontree.compaction._folding import portions
from sessiontree.compaction.files import compute_file_lists, format_file_operations
from sessiontree.compaction.prompts import ADDITIONAL_FOCUS, NO_PRIOR_HISTORY, SPLIT_TURN_HEADING
from sessiontree.compaction.requests import Options, Summarizer, SummaryKind, SummaryOptions
from sessiontree.compaction.usage import Number, combine_usage
from sessiontree.jsontext import trim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sessiontree.compaction.prepare import CompactionPreparation


@dataclass(frozen=True, slots=True)
class GeneratedSummary:
    """A summary's text and what it cost.

    Attributes:
        text: as the model wrote it.
        usage: with the names of a session file; None if the summarizer tells none.
    """

    text: str
    usage: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What `SessionManager.append_compaction` is to be given.

    Attributes:
        summary: the text, with the lists of files at its end.
        first_kept_entry_id: the entry from which on everything is kept.
        tokens_before: size of the context before.
        usage: of all requests together; None if the summarizer tells none.
        details: ``readFiles`` and ``modifiedFiles``, as the entry stores them.
        estimated_tokens_after: size of the context after, known once it is appended.
    """

    summary: str
    first_kept_entry_id: str
    tokens_before: Number
    usage: Mapping[str, Any] | None
    details: Any
    estimated_tokens_after: Number | None = None


def generate_summary(
    messages: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    previous_summary: str | None = None,
    **options: Unpack[SummaryOptions],
) -> str:
    """Like `generate_summary_with_usage`, but gives only the text."""
    generated = generate_summary_with_usage(
        messages,
        model,
        summarizer,
        custom_instructions=custom_instructions,
        previous_summary=previous_summary,
        **options,
    )
    return generated.text


async def agenerate_summary(
    messages: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    previous_summary: str | None = None,
    **options: Unpack[SummaryOptions],
) -> str:
    """`generate_summary` for asyncio."""
    generated = await agenerate_summary_with_usage(
        messages,
        model,
        summarizer,
        custom_instructions=custom_instructions,
        previous_summary=previous_summary,
        **options,
    )
    return generated.text


def generate_summary_with_usage(
    messages: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    previous_summary: str | None = None,
    **options: Unpack[SummaryOptions],
) -> GeneratedSummary:
    """Have a conversation summarised, or an earlier summary brought up to date.

    Args:
        messages: the conversation.
        model: the model's description; handed to the summarizer.
        summarizer: asks the model.
        custom_instructions: what the summary is to dwell on.
        previous_summary: of what went before; if it holds text, the update prompt is used.
        **options: see `SummaryOptions`.

    Raises:
        SummarizationError: there is no usable summary; nothing of it may be stored.

    Example:
        >>> from sessiontree.compaction import SummaryResponse, generate_summary_with_usage
        >>> def shouting(request):
        ...     return SummaryResponse("HELLO WAS SAID", usage={"totalTokens": 7})
        >>> messages = [{"role": "user", "content": "Hello"}]
        >>> generate_summary_with_usage(messages, {"id": "m"}, shouting)
        GeneratedSummary(text='HELLO WAS SAID', usage={'totalTokens': 7})
    """
    chosen = Options(**options)
    steps = history_steps(messages, model, summarizer, custom_instructions, previous_summary, chosen)
    return run(steps, Limits(chosen.cancel, chosen.time_limit))


async def agenerate_summary_with_usage(
    messages: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    previous_summary: str | None = None,
    **options: Unpack[SummaryOptions],
) -> GeneratedSummary:
    """`generate_summary_with_usage` for asyncio."""
    chosen = Options(**options)
    steps = history_steps(messages, model, summarizer, custom_instructions, previous_summary, chosen)
    return await arun(steps, Limits(chosen.cancel, chosen.time_limit))


def compact(
    preparation: CompactionPreparation,
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    **options: Unpack[SummaryOptions],
) -> CompactionResult:
    """Make the summary that a preparation asks for; the session is not touched.

    A turn that is cut in two takes two requests: one for the history, if there is any, and one for the
    beginning of the turn.

    Args:
        preparation: of `prepare_compaction`.
        model: the model's description; handed to the summarizer.
        summarizer: asks the model.
        custom_instructions: what the summary is to dwell on.
        **options: see `SummaryOptions`.

    Raises:
        SummarizationError: there is no usable summary.
        ValueError: the preparation names no entry that is kept.
    """
    chosen = Options(**options)
    steps = compact_steps(preparation, model, summarizer, custom_instructions, chosen)
    return run(steps, Limits(chosen.cancel, chosen.time_limit))


async def acompact(
    preparation: CompactionPreparation,
    model: Mapping[str, Any],
    summarizer: Summarizer,
    *,
    custom_instructions: str | None = None,
    **options: Unpack[SummaryOptions],
) -> CompactionResult:
    """`compact` for asyncio."""
    chosen = Options(**options)
    steps = compact_steps(preparation, model, summarizer, custom_instructions, chosen)
    return await arun(steps, Limits(chosen.cancel, chosen.time_limit))


def compact_steps(
    preparation: CompactionPreparation,
    model: Mapping[str, Any],
    summarizer: Summarizer,
    custom_instructions: str | None,
    options: Options,
) -> Steps[CompactionResult]:
    """The steps of `compact`."""
    history = preparation.messages_to_summarize
    prefix = preparation.turn_prefix_messages if preparation.is_split_turn else []
    previous = preparation.previous_summary
    made: list[GeneratedSummary] = []
    if history or not prefix:
        made.append(
            (yield from history_steps(history, model, summarizer, custom_instructions, previous, options))
        )
    text = made[0].text if made else _text_or(previous, NO_PRIOR_HISTORY)
    if prefix:
        begun = yield from _prefix_steps(prefix, model, summarizer, custom_instructions, options)
        made.append(begun)
        text += f"\n\n---\n\n{SPLIT_TURN_HEADING}\n\n{begun.text}"
    files = compute_file_lists(preparation.file_ops)
    if not preparation.first_kept_entry_id:
        raise ValueError("the preparation names no first entry to keep; does the session need migration?")
    return CompactionResult(
        summary=text + format_file_operations(files.read_files, files.modified_files),
        first_kept_entry_id=preparation.first_kept_entry_id,
        tokens_before=preparation.tokens_before,
        usage=total_usage(made),
        details={"readFiles": files.read_files, "modifiedFiles": files.modified_files},
    )


def _text_or(text: str | None, default: str) -> str:
    return text if text is not None and trim(text) else default


def total_usage(made: Iterable[GeneratedSummary]) -> Mapping[str, Any] | None:
    """The usage of several requests together, None if none tells it."""
    total: Mapping[str, Any] | None = None
    for usage in (summary.usage for summary in made):
        if total is None:
            total = usage
        elif usage is not None:
            total = combine_usage({"cost": {}, **total}, {"cost": {}, **usage})
    return total


def history_steps(
    messages: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    custom_instructions: str | None,
    previous_summary: str | None,
    options: Options,
) -> Steps[GeneratedSummary]:
    """The steps of `generate_summary_with_usage`."""
    texts = portions(messages, options.max_input_tokens, options.count_tokens)
    previous = _text_or(previous_summary, "")
    first = history_prompt(texts[0], previous, custom_instructions, options)
    made = yield from generated("history", model, summarizer, first, options)
    return (
        yield from _continued("history", made, texts[1:], model, summarizer, custom_instructions, options)
    )


def _prefix_steps(
    messages: Sequence[Any],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    custom_instructions: str | None,
    options: Options,
) -> Steps[GeneratedSummary]:
    texts = portions(messages, options.max_input_tokens, options.count_tokens)
    instructions = focused(options.prompts.turn_prefix, custom_instructions)
    first = f"# Conversation\n{texts[0]}\n\n# Instructions\n{instructions}"
    made = yield from generated("turn_prefix", model, summarizer, first, options)
    return (
        yield from _continued("turn_prefix", made, texts[1:], model, summarizer, custom_instructions, options)
    )


def _continued(
    kind: SummaryKind,
    made: GeneratedSummary,
    texts: Sequence[str],
    model: Mapping[str, Any],
    summarizer: Summarizer,
    custom_instructions: str | None,
    options: Options,
) -> Steps[GeneratedSummary]:
    """Bring a summary up to date with the portions that did not fit into the first request."""
    for text in texts:
        prompt = history_prompt(text, made.text, custom_instructions, options)
        longer = yield from generated(kind, model, summarizer, prompt, options)
        made = GeneratedSummary(longer.text, total_usage((made, longer)))
    return made


def history_prompt(text: str, previous: str, custom_instructions: str | None, options: Options) -> str:
    """The prompt for a first summary, or for an update if there is an earlier one."""
    prompt = f"<conversation>\n{text}\n</conversation>\n\n"
    if previous:
        prompt += f"<previous-summary>\n{previous}\n</previous-summary>\n\n"
    base = options.prompts.update if previous else options.prompts.initial
    return prompt + focused(base, custom_instructions)


def focused(instructions: str, custom_instructions: str | None) -> str:
    """Instructions with what the user wants the summary to dwell on."""
    if not custom_instructions:
        return instructions
    return f"{instructions}\n\n{ADDITIONAL_FOCUS}{custom_instructions}"


def generated(
    kind: SummaryKind, model: Mapping[str, Any], summarizer: Summarizer, prompt: str, options: Options
) -> Steps[GeneratedSummary]:
    """Ask for one summary and refuse what is none."""
    request = options.request(kind, model, prompt)
    response = checked((yield from asked(summarizer, request, options.callbacks)), kind)
    return GeneratedSummary(response.text, response.usage)
