"""What goes to stdout: coloured lines for a terminal, plain ones for a pipe, JSON for programs."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sessiontree.cli._text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What JSON may hold raw and a terminal must not get: DEL, C1 controls, marks that reorder, line separators.
_RAW = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_PIPE_WIDTH = 120

COLOURS: dict[str, dict[str, Any]] = {
    "user": {"fg": "cyan", "bold": True},
    "assistant": {"fg": "green"},
    "tool": {"fg": "blue"},
    "bash": {"fg": "blue"},
    "compaction": {"fg": "magenta", "bold": True},
    "summary": {"fg": "magenta"},
    "branch": {"fg": "magenta"},
    "label": {"fg": "yellow"},
    "error": {"fg": "red"},
    "dim": {"dim": True},
    "bold": {"bold": True},
}


class Screen(NamedTuple):
    """Where lines go: how wide it is, and whether it takes colours."""

    width: int
    colour: bool
    terminal: bool

    @classmethod
    def of_stdout(cls) -> Screen:
        """Ask stdout; NO_COLOR and TERM=dumb are honoured."""
        terminal = sys.stdout.isatty()
        colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(terminal_size().columns if terminal else _PIPE_WIDTH, colour, terminal)

    @property
    def dumb(self) -> bool:
        """Whether the terminal knows nothing but letters."""
        return os.environ.get("TERM") == "dumb"

    def paint(self, text: str, style: str) -> str:
        """Colour a text that is already safe."""
        how = COLOURS.get(style)
        return click.style(text, **how) if how and self.colour else text

    def heading(self, text: str) -> str:
        """Set a heading off; what a session says in it is made safe."""
        return self.paint(safe(text, keep=""), "bold")


def terminal_size() -> os.terminal_size:
    """Give the size of the terminal; COLUMNS and LINES are honoured."""
    import shutil

    return shutil.get_terminal_size()


class OutputError(click.ClickException):
    """Standard output takes no more; exit code 1."""


def say(line: str = "") -> None:
    """Print a line."""
    write(f"{line}\n")


def write(text: str) -> None:
    """Print a part of a line.

    Raises:
        OutputError: it cannot be written, because a disk is full for example.
    """
    with told():
        sys.stdout.write(text)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn trouble with standard output into an error that names it; a reader that is gone is none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{(error.strerror or str(error)).lower()}: 'standard output'") from None


def flush() -> None:
    """Let everything that was printed go out.

    Raises:
        OutputError: as for `write`.
    """
    with told():
        sys.stdout.flush()


def reader_is_gone() -> bool:
    """Whether nobody reads our output any more: a pipe tells at the next write only, if it is not asked."""
    import select

    if not hasattr(select, "poll"):
        return False
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def say_path(path: str) -> None:
    """Print a path: as it is for a program, harmless for a terminal."""
    say(safe(path, keep="") if sys.stdout.isatty() else path)


def json_text(value: Any) -> str:
    r"""Give a value as one line of JSON that a terminal can take: JavaScript's numbers, escapes where needed.

    Example:
        >>> json_text({"text": "\x9b2J", "size": 1.0})
        '{"text":"\\u009b2J","size":1}'
    """
    # It brings orjson along, which tables do without.
    from sessiontree import jsontext

    text = jsontext.dumps(value).decode("utf-8", "surrogatepass")
    return re.sub(_RAW, lambda match: f"\\u{ord(match[0]):04x}", text)


def say_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    say(json_text(value))


def say_json_array(values: Iterable[Any]) -> None:
    """Print values as a JSON array, one a line, as they come."""
    before = "["
    for value in values:
        write(f"{before}{json_text(value)}")
        if before == "[":
            # A reader has something to do while the rest is made.
            flush()
        before = ",\n "
    say("]" if before != "[" else "[]")
