"""``sessiontree show``: what the model would be sent, or one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessiontree.cli import _entry, _place
from sessiontree.cli._output import Screen, say, say_json
from sessiontree.cli._text import count, safe

if TYPE_CHECKING:
    from sessiontree import SessionContext, SessionManager


@click.command("show", short_help="Show the model's context, or one entry.")
@_place.session_argument
@click.option("--entry", metavar="ID", help="Show this entry as it is stored.")
@click.option("--at", metavar="ID", help="Show the context at this entry instead of the leaf.")
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    entry: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Show the context of SESSION: the messages the model would be sent next."""
    if entry is not None and at is not None:
        raise click.UsageError("--entry shows a stored entry, --at a context: give one of them")
    with _place.Place(cwd, session_dir).open(session) as opened:
        if entry is not None:
            say_json(opened.get_entry(_place.entry_id(opened, entry)))
            return
        if at is not None:
            opened.branch(_place.entry_id(opened, at))
        show_context(opened, as_json=as_json)


def show_context(session: SessionManager, *, as_json: bool) -> None:
    """Print the context at the leaf."""
    context = session.build_session_context()
    if as_json:
        say_json(
            {"messages": context.messages, "thinkingLevel": context.thinking_level, "model": context.model}
        )
        return
    screen = Screen.of_stdout()
    for message in context.messages:
        _show_message(screen, message)
    say(screen.paint(_facts(context), "dim"))


def _show_message(screen: Screen, message: Any) -> None:
    role, text = _entry.describe_message(message)
    say(screen.paint(f"── {safe(role, keep='')}", role))
    thinking = _thinking(_entry.field(message, "content"))
    if thinking:
        say(screen.paint(safe(thinking), "dim"))
    if text:
        say(safe(text))
    say()


def _thinking(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    thoughts = [_entry.field(b, "thinking") for b in blocks if _entry.field(b, "type") == "thinking"]
    return "\n".join(map(_entry.as_text, thoughts))


def _facts(context: SessionContext) -> str:
    model = context.model or {}
    provider, id = _entry.as_text(model.get("provider")), _entry.as_text(model.get("modelId"))
    parts = [
        size_of(context),
        f"model {provider}/{id}" if model else "no model yet",
        f"thinking {context.thinking_level}",
    ]
    return safe(", ".join(parts), keep="")


def size_of(context: SessionContext) -> str:
    """Say how many messages a context has and, unless one of them is malformed, about how many tokens."""
    from sessiontree import estimate_context_tokens

    messages = count(len(context.messages), "message")
    try:
        tokens = estimate_context_tokens(context.messages).tokens
    except (TypeError, ValueError, AttributeError, KeyError):
        return messages
    return f"{messages}, about {count(tokens, 'token')}"
