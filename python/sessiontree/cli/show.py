"""``sessiontree show``: what the model would be sent, a part of it, or one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from sessiontree import context as rules
from sessiontree.cli import _entry, _place
from sessiontree.cli._output import Screen, json_text, say, say_json, write
from sessiontree.cli._report import tell_report
from sessiontree.cli._text import count, one_line, safe
from sessiontree.cli._window import Window, window_options
from sessiontree.exceptions import CorruptSessionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessiontree import SessionContext, SessionManager
    from sessiontree.cli._window import Rows

    Piece = tuple[Any, list[Any]]

# Kinds of entries that can contribute messages: messages, compactions, branch summaries, custom messages.
_SPEAKING = (1, 5, 6, 8)
_EDIT, _MODEL, _THINKING, _ASSISTANT = 9, 2, 3, 2


@click.command("show", short_help="Show the model's context, a part of it, or one entry.")
@_place.session_argument
@click.option("--entry", metavar="ID", help="Show this entry as it is stored.")
@click.option("--at", metavar="ID", help="Show the context at this entry instead of the leaf.")
@click.option(
    "--path", "whole_path", is_flag=True, help="All entries from the root on, also what was compacted."
)
@window_options
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    entry: str | None,
    at: str | None,
    whole_path: bool,
    window: Window,
    as_json: bool,
) -> None:
    r"""Show the context of SESSION: the messages the model would be sent next.

    Of a long one show a part: so many from either end, page by page; between two entries; or of a time.

    \b
    Examples:
      sessiontree show
      sessiontree show 0198 --last 5
      sessiontree show 0198 --last 5 --skip 5           # the page before
      sessiontree show 0198 --from a1b2c3d4 --path      # also what a compaction has replaced
      sessiontree show 0198 --since 2h --json
      sessiontree show 0198 --entry a1b2c3d4

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    if entry is not None and (at is not None or whole_path or window != Window()):
        raise click.UsageError("--entry shows one stored entry, all else shows a context: give one of them")
    with _place.Place(cwd, session_dir).open(session) as opened:
        if entry is not None:
            say_json(opened.get_entry(_place.entry_id(opened, entry)))
            return
        if at is not None:
            opened.branch(_place.entry_id(opened, at))
        show = (_ShowPath if whole_path else _ShowContext)(opened, window, as_json=as_json)
        tell_report(opened)
        show.run()


def _path_of(session: SessionManager) -> Rows:
    """The path to the leaf; where it runs into a cycle, what a context takes of it."""
    try:
        return session.path_rows()
    except CorruptSessionError:
        return np.asarray(session.build_context_entries().rows, dtype=np.int64)


class _ShowContext:
    """The messages of a context, read as they are shown."""

    noun, plural = "message", "messages"

    def __init__(self, session: SessionManager, window: Window, *, as_json: bool) -> None:
        self.session = session
        self.as_json = as_json
        self.columns = session.columns()
        self.path = _path_of(session)
        self.rows = self.listed()
        self.cut = window.cut(session, self.rows)

    def listed(self) -> Rows:
        """The rows that there are to be shown."""
        rows = np.asarray(self.session.build_context_entries().rows, dtype=np.int64)
        return rows[np.isin(self.columns["kind"][rows], _SPEAKING)]

    def run(self) -> None:
        """Print them."""
        if self.as_json:
            self.print_json()
            return
        screen = Screen.of_stdout()
        tail: list[Any] = []
        for entry, messages in self.pieces():
            for message in messages:
                show_message(screen, message, entry)
                if _has_usage(message):
                    # Tokens are counted from here on; what is before need not be kept.
                    tail.clear()
                tail.append(message)
        say(screen.paint(self.facts(tail), "dim"))

    def pieces(self) -> Iterator[Piece]:
        """Give the entries of the window with what they contribute."""
        edits = self.edits()
        first = int(self.rows[0]) if len(self.rows) else -1
        entries = self.session.get_entries()
        for row in self.cut.rows.tolist():
            entry = entries[row]
            is_old = self.columns["kind"][row] == 5 and row != first
            yield entry, [] if is_old else _contribution(entry, edits)

    def edits(self) -> dict[Any, Any]:
        """Give the edits of the path by what they edit; there are never many."""
        rows = self.path[self.columns["kind"][self.path] == _EDIT]
        entries = self.session.get_entries()
        found = [entries[row] for row in rows.tolist()]
        return rules.newest_edits(e for e in found if rules.is_replacement(_entry.field(e, "replacement")))

    def print_json(self) -> None:
        """Print one object, message by message."""
        before = '{"messages":['
        for _, messages in self.pieces():
            for message in messages:
                write(before + json_text(message))
                before = ","
        write(before if before != "," else "")
        model, level = self.settings()
        rest = {"thinkingLevel": level, "model": model}
        if self.cut.is_part:
            rest |= {"first": self.cut.before, "total": self.cut.total}
        say("]," + json_text(rest)[1:])

    def settings(self) -> tuple[Any, Any]:
        """Give the model and the thinking level that count at the end of the path."""
        kinds, roles = self.columns["kind"][self.path], self.columns["role"][self.path]
        models = self.path[(kinds == _MODEL) | ((kinds == 1) & (roles == _ASSISTANT))]
        levels = self.path[kinds == _THINKING]
        entries = self.session.get_entries()
        level: Any = rules.DEFAULT_THINKING_LEVEL
        if len(levels):
            level = _entry.field(entries[int(levels[-1])], "thinkingLevel")
        model = rules.model_of(entries[int(models[-1])]) if len(models) else None
        return model, level

    def facts(self, tail: list[Any]) -> str:
        """Say how much there is, and which model it goes to."""
        model, level = self.settings()
        provider, id = _entry.field(model, "provider"), _entry.field(model, "modelId")
        named = f"model {_entry.as_text(provider)}/{_entry.as_text(id)}" if model else "no model yet"
        parts = [self.size(tail), named, f"thinking {_entry.as_text(level)}"]
        return safe(", ".join(parts), keep="")

    def size(self, tail: list[Any]) -> str:
        """Say which part is shown, or how much all of it is."""
        if self.cut.is_part:
            return self.cut.text(self.noun, self.plural)
        return count(self.cut.total, self.noun, self.plural) + tokens_text(tail)


class _ShowPath(_ShowContext):
    """All entries of the path, whatever a model sees of them."""

    noun, plural = "entry", "entries"

    def listed(self) -> Rows:
        """The rows of the path."""
        return self.path

    def run(self) -> None:
        """Print them; as JSON one a line."""
        screen = Screen.of_stdout()
        entries = self.session.get_entries()
        for row in self.cut.rows.tolist():
            if self.as_json:
                say_json(entries[row])
            else:
                show_entry(screen, entries[row])
        if not self.as_json:
            say(screen.paint(self.facts([]), "dim"))


def _contribution(entry: Any, edits: dict[Any, Any]) -> list[Any]:
    """The messages of an entry; one that makes no sense contributes nothing, as in the manager."""
    if not isinstance(entry, dict) or (entry.get("type") == "message" and entry.get("message") is None):
        return []
    edit = edits.get(rules.id_key(entry["id"])) if edits and "id" in entry else None
    return rules.project_context_entry(entry, edit)


def show_entry(screen: Screen, entry: Any) -> None:
    """Print an entry whole."""
    message = _entry.field(entry, "message") if _entry.field(entry, "type") == "message" else None
    if isinstance(message, dict):
        show_message(screen, message, entry)
    else:
        kind, text = _entry.describe(entry)
        _print(screen, kind, "", text, entry)


def show_message(screen: Screen, message: Any, entry: Any) -> None:
    """Print a message whole."""
    role, text = _entry.describe_message(message)
    _print(screen, role, _thinking(_entry.field(message, "content")), text, entry)


def _print(screen: Screen, role: str, thinking: str, text: str, entry: Any) -> None:
    id = one_line(_entry.as_text(_entry.field(entry, "id")), 40)
    stamp = one_line(_entry.as_text(_entry.field(entry, "timestamp"))[:19].replace("T", " "), 19)
    about = "  ".join(part for part in (id, stamp) if part)
    head = screen.paint(f"── {safe(role, keep='')}", role)
    say(f"{head}  {screen.paint(about, 'dim')}" if about else head)
    if thinking:
        say(screen.paint(safe(thinking), "dim"))
    if text:
        say(safe(text))
    say()


def _thinking(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    thoughts = [_entry.field(b, "thinking") for b in blocks if _entry.field(b, "type") == "thinking"]
    return "\n".join(map(_entry.as_text, thoughts))


def _has_usage(message: Any) -> bool:
    """Whether the tokens of a context can be counted from this message on."""
    from sessiontree.compaction.usage import get_assistant_usage

    try:
        return isinstance(message, dict) and get_assistant_usage(message) is not None
    except (TypeError, ValueError, AttributeError, KeyError):
        return False


def tokens_text(messages: Iterable[Any]) -> str:
    """Say about how many tokens messages have, unless one of them is malformed."""
    from sessiontree import estimate_context_tokens

    try:
        tokens = estimate_context_tokens(list(messages)).tokens
    except (TypeError, ValueError, AttributeError, KeyError):
        return ""
    return f", about {count(tokens, 'token')}"


def size_of(context: SessionContext) -> str:
    """Say how many messages a context has, and about how many tokens."""
    return count(len(context.messages), "message") + tokens_text(context.messages)
