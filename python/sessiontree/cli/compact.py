"""``sessiontree compact``: replace the older part of a session's context by a summary."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from sessiontree import SessionManager
from sessiontree.cli import _model, _place
from sessiontree.cli._output import say, say_json
from sessiontree.cli._text import count, safe
from sessiontree.compaction import Compactor, estimate_tokens

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
            preparation = Compactor(opened, about, _nobody, settings=settings).prepare()
            plan = None if preparation is None else _plan(opened, preparation)
        _say_plan(plan, as_json=as_json)
        return 0
    about = _model.described(place, model, context_window)
    summarizer = _model.summarizer(about, base_url)
    with SessionManager.open(_existing(place, session), place.session_dir, remember_leaf=True) as opened:
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
    os.stat(path)  # to open a pipe could wait for ever
    return path


def _nobody(request: Any) -> Any:
    raise AssertionError(request)


def _plan(session: SessionManager, preparation: CompactionPreparation) -> dict[str, Any]:
    """What a compaction would do, with estimates of the tokens on either side of the cut."""
    kept = _kept_messages(session, preparation.first_kept_entry_id)
    history, prefix = preparation.messages_to_summarize, preparation.turn_prefix_messages
    return {
        "tokensBefore": preparation.tokens_before,
        "firstKeptEntryId": preparation.first_kept_entry_id,
        "messagesToSummarize": len(history),
        "turnPrefixMessages": len(prefix),
        "tokensToSummarize": sum(map(estimate_tokens, [*history, *prefix])),
        "messagesKept": len(kept),
        "tokensKept": sum(map(estimate_tokens, kept)),
        "isSplitTurn": preparation.is_split_turn,
        "updatesSummary": bool(preparation.previous_summary),
    }


def _kept_messages(session: SessionManager, first_kept_id: str) -> list[Any]:
    entries = session.build_session_projection().entries
    ids = [entry.source_entry.get("id") for entry in entries]
    start = ids.index(first_kept_id) if first_kept_id in ids else len(ids)
    return [message for entry in entries[start:] for message in entry.messages]


def _say_plan(plan: dict[str, Any] | None, *, as_json: bool) -> None:
    if as_json:
        say_json(plan)
        return
    if plan is None:
        say("nothing to do: all of the context is recent, or it was compacted just now")
        return
    say(f"context: {plan['tokensBefore']:,} tokens")
    summarised = count(plan["messagesToSummarize"], "message")
    if plan["isSplitTurn"]:
        summarised += f" and, apart, the first {plan['turnPrefixMessages']} of the turn that is cut in two"
    say(f"to be summarised: {summarised}, about {plan['tokensToSummarize']:,} tokens")
    if plan["updatesSummary"]:
        say("the summary before is brought up to date")
    kept = count(plan["messagesKept"], "message")
    say(f"kept: {kept}, about {plan['tokensKept']:,} tokens, from {safe(plan['firstKeptEntryId'], keep='')}")
