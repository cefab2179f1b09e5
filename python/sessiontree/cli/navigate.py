"""``sessiontree navigate``: go to another place of the tree, with a summary of what is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from sessiontree import SessionManager
from sessiontree.cli import _model, _place
from sessiontree.cli._output import say, say_json
from sessiontree.cli._progress import progress
from sessiontree.cli._text import safe
from sessiontree.compaction import navigate

if TYPE_CHECKING:
    from sessiontree.compaction.navigation import NavigationResult


@click.command("navigate", short_help="Go to another entry, with a summary of the branch that is left.")
@click.argument("session")
@click.argument("entry")
@_place.place_options
@click.option("--summarize", is_flag=True, help="Have the branch summarised that is left; needs a model.")
@click.option("-m", "--instructions", metavar="TEXT", help="What the summary is to dwell on.")
@click.option("--label", metavar="TEXT", help="Set on the summary, or on the entry if there is none.")
@_model.model_options
@_place.json_option
def command(
    session: str,
    entry: str,
    cwd: str | None,
    session_dir: str | None,
    summarize: bool,
    instructions: str | None,
    label: str | None,
    model: str | None,
    base_url: str | None,
    context_window: int,
    as_json: bool,
) -> int:
    r"""Go to ENTRY of SESSION: an id, the beginning of one, or a label.

    A message of the user is gone back to for writing it anew: the session stands before it, and its text is
    printed. Session files do not say where a session stands; the place is kept in the cache folder, for the
    commands here and for programs that open with remember_leaf, until something is appended. A summary or a label is appended, and
    so is seen by all. Whatever goes wrong, and at Ctrl-C, the session is as it was.

    \b
    Examples:
      sessiontree navigate 0198 a1b2c3d4
      sessiontree navigate 0198 before-refactor --summarize --model openai/gpt-5-mini

    Exit codes: 0 done, 1 failed or not found, 2 wrong usage, 130 interrupted.
    """
    place = _place.Place(cwd, session_dir)
    how: dict[str, Any] = {}
    if summarize:
        about = _model.described(place, model, context_window)
        how = {"model": about, "summarizer": _model.summarizer(about, base_url)}
    path = place.find(session)
    os.stat(
        path
    )  # to open what does not exist would begin a session; to open a pipe here could wait for ever
    with progress("opening"):
        opened = SessionManager.open(path, place.session_dir, remember_leaf=True)
    with opened:
        target = _place.entry_id(opened, entry)
        result = _model.asked(
            lambda tell: navigate(
                opened,
                target,
                summarize=summarize,
                custom_instructions=instructions,
                label=label,
                on_text=tell,
                **how,
            )
        )
    _say(result, as_json=as_json)
    return 1 if result.cancelled else 0


def _say(result: NavigationResult, *, as_json: bool) -> None:
    """Print the summary and the text to write anew, else where the session stands."""
    summary = result.summary_entry
    if as_json:
        say_json(
            {
                "cancelled": result.cancelled,
                "oldLeafId": result.old_leaf_id,
                "newLeafId": result.new_leaf_id,
                "editorText": result.editor_text,
                "summary": summary["summary"] if summary else None,
            }
        )
        return
    texts = [text for text in (summary["summary"] if summary else None, result.editor_text) if text]
    for text in texts:
        say(safe(text))
    if not texts:
        new = result.new_leaf_id
        say(
            "the session stands before its first entry"
            if new is None
            else f"the session stands at {safe(new)}"
        )
