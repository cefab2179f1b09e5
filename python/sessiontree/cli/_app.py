"""The group of commands, each imported when it is used, and the one place where errors become lines."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import warnings
from importlib import import_module
from typing import TextIO

import click

from sessiontree._native import VERSION
from sessiontree.cli._errors import complain, explain
from sessiontree.cli._output import OutputError, flush
from sessiontree.cli._text import escape
from sessiontree.exceptions import SessionWarning

INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EIO, errno.EFBIG)
# In the order of the help: each command and the module that holds it. A module `list` would hide the built-in
# one from the package.
COMMANDS = {
    "list": "listing",
    "search": "search",
    "stats": "stats",
    "tree": "tree",
    "show": "show",
    "path": "path",
    "follow": "follow",
    "append": "append",
    "label": "label",
    "name": "name",
    "fork": "fork",
    "branch": "branch",
    "move": "move",
    "compact": "compact",
    "navigate": "navigate",
    "settings": "settings",
    "doctor": "doctor",
    "shrink": "shrink",
    "catalog": "catalog",
    "cache": "cache",
    "export": "export",
    "serve": "serve",
    "completion": "completion",
    "demo": "demo",
}
# What drawings become where an encoding has only letters.
_PLAIN = {"│": "|", "├": "+", "─": "-", "●": "*", "○": "o", "◉": "@", "⋮": ":", "…": "~", "◀": "<"}


class _NeverError(click.UsageError):
    """What is never raised."""


# Older versions of click end by themselves where nothing is asked for.
_HELP: type[click.UsageError] = getattr(click.exceptions, "NoArgsIsHelpError", _NeverError)


class _ReaderGoneError(Exception):
    """Whoever read our output has closed the pipe."""


class Commands(click.Group):
    """Commands that are imported when they are used: `--help` and `list` pay for nothing else."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; that nobody reads its output any more is told apart from other trouble."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Click would take it for a failure.
            raise _ReaderGoneError from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Give the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(f"sessiontree.cli.{module}").command
        _keep_lines(command)
        return command


def _keep_lines(command: click.Command) -> None:
    r"""Let help texts keep their lines after ``\b``, which raw docstrings hold as two characters."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    for inner in getattr(command, "commands", {}).values():
        _keep_lines(inner)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="%(prog)s %(version)s")
def sessiontree() -> None:
    """Look at and write the conversation histories of AI agents.

    SESSION is the path of a session file, a session's id or the beginning of one; left out, it is the
    newest session of the working directory. PI_CODING_AGENT_DIR and PI_CODING_AGENT_SESSION_DIR are
    honoured as pi does.
    """


def run(arguments: list[str]) -> int:
    """Run a command and give its exit code; whatever goes wrong becomes one line on stderr."""
    _keep_to_encodings()
    with warnings.catch_warnings():
        warnings.simplefilter("always", SessionWarning)
        warnings.showwarning = _show_warning
        try:
            code = _invoke(arguments)
            flush()
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except (BrokenPipeError, _ReaderGoneError):
            _drop_output()
            return 0
        except _HELP as error:
            print(error.format_message(), file=sys.stderr)
            return error.exit_code
        except OutputError as error:
            _drop_output()
            complain(error.format_message())
            return error.exit_code
        except Exception as error:
            if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
                # Help texts are printed by click. Whatever else can be full has a name.
                _drop_output()
                error.filename = "standard output"
            if os.environ.get("SESSIONTREE_TRACEBACK"):
                raise
            text, code = explain(error)
            complain(text)
    return code


def _invoke(arguments: list[str]) -> int:
    try:
        code = sessiontree.main(arguments, prog_name="sessiontree", standalone_mode=False)
    except SystemExit as wanted:
        # The completion of a shell ends like this.
        code = wanted.code
    return code if isinstance(code, int) else 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning of the library as one line; the place in the program means nothing to a user."""
    del category, filename, lineno, file, line
    complain(f"warning: {message}")


def _keep_to_encodings() -> None:
    """Show what a terminal's encoding lacks as plainer signs or as escapes; an error would help nobody."""
    codecs.register_error("sessiontree.plain", _plainer)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="sessiontree.plain")


def _plainer(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c) or escape(c) for c in lacking), error.end


def _drop_output() -> None:
    """Send what is still buffered nowhere: whoever read our output has seen enough."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
