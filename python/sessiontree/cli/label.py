"""``sessiontree label``: names for entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessiontree.cli import _entry, _place
from sessiontree.cli._output import Screen, say, say_json, say_json_array
from sessiontree.cli._text import one_line, pad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessiontree import SessionManager


@click.command("label", short_help="Label entries, and list labels.")
@click.argument("session", shell_complete=_place.complete_session)
@click.argument("entry", required=False)
@click.argument("text", required=False)
@click.option("--remove", is_flag=True, help="Take the entry's label off.")
@_place.place_options
@_place.json_option
def command(
    session: str,
    entry: str | None,
    text: str | None,
    remove: bool,
    cwd: str | None,
    session_dir: str | None,
    as_json: bool,
) -> int:
    r"""Label ENTRY of SESSION with TEXT; without ENTRY, list the labels.

    ENTRY is an id, the beginning of one, or a label. A label is one more entry of the session, as in pi; the
    tree shows it, and every command that takes an entry takes its label as well.

    \b
    Examples:
      sessiontree label 0198
      sessiontree label 0198 a1b2c3d4 before-refactor
      sessiontree label 0198 before-refactor --remove

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    place = _place.Place(cwd, session_dir)
    if entry is None:
        if remove:
            raise click.UsageError("--remove takes the label of an ENTRY off: say of which")
        with place.open(session) as opened:
            _list(opened, as_json=as_json)
        return 0
    if (text is None) != remove:
        raise click.UsageError("give the label's TEXT, or --remove")
    if text is not None and not text.strip():
        raise click.UsageError("the label is empty; --remove takes one off")
    with place.open_to_write(session) as opened:
        target = _place.entry_id(opened, entry)
        if remove and opened.get_label(target) is None:
            raise _place.NotFoundError(f"the entry {target!r} has no label ({opened.get_session_file()})")
        id = opened.append_label_change(target, text)
    if as_json:
        say_json({"id": id, "targetId": target, "label": text})
    else:
        say(id)
    return 0


def _list(session: SessionManager, *, as_json: bool) -> None:
    if as_json:
        say_json_array(_rows(session))
        return
    screen = Screen.of_stdout()
    rows = list(_rows(session))
    width = max((len(one_line(row["label"], 40)) for row in rows), default=0)
    for row in rows:
        label = pad(one_line(row["label"], 40), width)
        head = f"{pad(one_line(row['entryId'], 36), 8)}  {screen.paint(label, 'label')}"
        taken = len(pad(one_line(row["entryId"], 36), 8)) + width + 4
        say(f"{head}  {one_line(row['text'], max(8, screen.width - taken))}".rstrip())


def _rows(session: SessionManager) -> Iterator[dict[str, Any]]:
    """Give the labels that stand, with what they stand at; a target that is not there has no text."""
    for target, label in session.get_labels():
        entry = session.get_entry(target)
        kind, text = ("missing", "") if entry is None else _entry.describe(entry)
        about = f"{kind}: {one_line(text, 200)}" if text else kind
        yield {"entryId": target, "label": _entry.as_text(label), "text": about}
