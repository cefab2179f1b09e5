"""``sessiontree append``: add a message to a session."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from sessiontree import SessionManager, jsontext
from sessiontree.cli import _place
from sessiontree.cli._output import say, say_json


@click.command("append", short_help="Append a message.")
@_place.session_argument
@click.option("-m", "--text", help="Text of a user message; read from standard input if left out.")
@click.option("--message", metavar="JSON", help="A whole message, as session files store it.")
@click.option("--at", metavar="ID", help="Hang it on this entry instead of the leaf.")
@click.option("--new", is_flag=True, help="Begin a new session for it.")
@_place.json_option
def command(
    session: str | None,
    cwd: str | None,
    session_dir: str | None,
    text: str | None,
    message: str | None,
    at: str | None,
    new: bool,
    as_json: bool,
) -> None:
    r"""Append a message to SESSION and print the new entry's id.

    \b
    Examples:
      sessiontree append -m "And now?"
      git diff | sessiontree append 0198
      sessiontree append 0198 --at a1b2c3d4 -m "Another way"
      sessiontree append --new -m "Hello" --json

    Exit codes: 0 fine, 1 failed or not found, 2 wrong usage.
    """
    if text is not None and message is not None:
        raise click.UsageError("--text and --message are two ways to say the same: give one of them")
    if new and (session is not None or at is not None):
        raise click.UsageError("--new begins a session: it goes with no SESSION and no --at")
    place = _place.Place(cwd, session_dir)
    stored = _whole_message(message) if message is not None else _user_message(text)
    with _new_session(place) if new else place.open_to_write(session) as opened:
        if at is not None:
            opened.branch(_place.entry_id(opened, at))
        id = opened.append_message(stored)
        if as_json:
            say_json({"id": id, "session": opened.get_session_id(), "path": opened.get_session_file()})
        else:
            say(id)


def _new_session(place: _place.Place) -> SessionManager:
    return SessionManager.create(place.cwd, place.session_dir)


def _user_message(text: str | None) -> Any:
    given = _standard_input() if text is None else text
    if any("\udc80" <= letter <= "\udcff" for letter in given):
        raise click.UsageError("the message is not UTF-8; nothing was appended")
    if not given.strip():
        raise click.UsageError("the message is empty")
    content = [{"type": "text", "text": given}]
    return {"role": "user", "content": content, "timestamp": time.time_ns() // 1_000_000}


def _standard_input() -> str:
    if sys.stdin.isatty():
        print("message (end with Ctrl-D):", file=sys.stderr)
    data = sys.stdin.buffer.read()
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        at = error.start
        raise click.ClickException(
            f"standard input is not UTF-8: byte 0x{data[at]:02x} at byte {at} (line {data.count(10, 0, at) + 1}); "
            "nothing was appended"
        ) from None


def _whole_message(text: str) -> Any:
    try:
        message = jsontext.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--message is no JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise click.UsageError("--message must be a JSON object with a 'role'")
    if message["role"] in ("user", "assistant") and "content" not in message:
        raise click.UsageError(f"--message with the role {message['role']!r} needs 'content'")
    return message
