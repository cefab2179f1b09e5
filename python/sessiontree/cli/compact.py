"""``sessiontree compact``: replace the older part of a session's context by a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessiontree import SessionManager
from sessiontree.cli import _model, _place
from sessiontree.cli._output import say, say_json
from sessiontree.cli._text import count, safe
from sessiontree.compaction import Compactor

if TYPE_CHECKING:
    from sessiontree.compaction import CompactionPreparation


@click.command("compact", short_help="Replace the older part of a context by a summary.")
@_place.session_argument
@click.option(
    "--dry-run", is_flag=True, help="Only say what would be summarised and kept; no model is asked."
)
@click.option(
    "--keep",
    type=click.IntRange(0),
    metavar="TOKENS",
    help="Keep about so much word for word; pi's setting if left out.",
)
@click.option("-m", "--instructions", metavar="TEXT", help="What the summary is to dwell on.")
@_model.model_options
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    dry_run: bool,
    keep: int | None,
    instructions: str | None,
    model: str | None,
    base_url: str | None,
    context_window: int,
    as_json: bool,
) -> int:
    r"""Replace the older part of SESSION's context by a summary, as one more entry; the file keeps everything.

    The key comes from the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY, or PROVIDER_API_KEY. Whatever goes
    wrong, and at Ctrl-C, the session is as it was.

    \b
    Examples:
      sessiontree compact --dry-run
      sessiontree compact 0198 --model anthropic/claude-haiku-4-5
      sessiontree compact --model local/qwen3 --base-url http://localhost:11434/v1 --context-window 32000

    Exit codes: 0 done, or nothing to do; 1 failed; 2 wrong usage; 130 interrupted.
    """
    place = _place.Place(cwd, session_dir)
    settings: Any = _model.settings_of(place).get_compaction_settings()
    if keep is not None:
        settings = {**settings, "keepRecentTokens": keep}
    if dry_run:
        about = {"provider": "", "id": "", "contextWindow": context_window}
        with place.open(session) as opened:
            _say_plan(Compactor(opened, about, _nobody, settings=settings).prepare(), as_json=as_json)
        return 0
    about = _model.described(place, model, context_window)
    summarizer = _model.summarizer(about, base_url)
    with SessionManager.open(_existing(place, session), place.session_dir) as opened:
        compactor = Compactor(opened, about, summarizer, settings=settings)
        outcome = _model.asked(lambda tell: compactor.compact(custom_instructions=instructions, on_text=tell))
    result = outcome.result
    if as_json:
        say_json(
            {
                "status": outcome.status,
                "entryId": outcome.entry_id,
                "firstKeptEntryId": result.first_kept_entry_id if result else None,
                "tokensBefore": result.tokens_before if result else None,
                "summary": result.summary if result else None,
            }
        )
    elif result is None:
        say(safe(outcome.message or "nothing to do"))
    else:
        say(safe(result.summary))
    return 0 if outcome.status in ("compacted", "nothing") else 1


def _existing(place: _place.Place, session: str | None) -> str:
    path = place.find(session)
    with open(path, "rb"):
        return path


def _nobody(request: Any) -> Any:
    raise AssertionError(request)


def _say_plan(preparation: CompactionPreparation | None, *, as_json: bool) -> None:
    if as_json:
        say_json(None if preparation is None else _plan_json(preparation))
    elif preparation is None:
        say("nothing to do: all of the context is recent, or it was compacted just now")
    else:
        split = len(preparation.turn_prefix_messages)
        say(f"context: {preparation.tokens_before:,} tokens")
        say(f"to be summarised: {count(len(preparation.messages_to_summarize), 'message')}")
        if preparation.is_split_turn:
            say(f"and, apart, the first {count(split, 'message')} of the turn that is cut in two")
        if preparation.previous_summary:
            say("the summary before is brought up to date")
        say(f"kept from: {safe(preparation.first_kept_entry_id, keep='')}")


def _plan_json(preparation: CompactionPreparation) -> dict[str, Any]:
    return {
        "tokensBefore": preparation.tokens_before,
        "firstKeptEntryId": preparation.first_kept_entry_id,
        "messagesToSummarize": len(preparation.messages_to_summarize),
        "turnPrefixMessages": len(preparation.turn_prefix_messages),
        "isSplitTurn": preparation.is_split_turn,
        "updatesSummary": bool(preparation.previous_summary),
    }
