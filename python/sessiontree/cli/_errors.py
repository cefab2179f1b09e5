"""Errors as lines on stderr."""

from __future__ import annotations

import errno
import os
import sys

import click

from sessiontree.cli._text import safe
from sessiontree.exceptions import SessionTreeError

# What is said of pipes and devices in the place of session files helps nobody.
_REASONS = {errno.ESPIPE: "not a regular file"}


def explain(error: Exception) -> tuple[str, int]:
    """Give the line that explains an error, and the exit code."""
    if isinstance(error, click.UsageError):
        return f"{error.format_message()}{_see_help(error)}", error.exit_code
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, OSError):
        return os_error(error), 1
    if isinstance(error, ImportError) and "pip install" in str(error):
        # An extra that is not installed: the text says which.
        return str(error), 1
    if isinstance(error, (SessionTreeError, ValueError)):
        return str(error), 1
    return f"a fault of the program, please report it: {type(error).__name__}: {error}", 1


def _see_help(error: click.UsageError) -> str:
    return f" (see '{error.ctx.command_path} --help')" if error.ctx else ""


def os_error(error: OSError) -> str:
    """Say what the system said, and of which path."""
    reason = _REASONS.get(error.errno or 0) or (error.strerror or str(error) or type(error).__name__).lower()
    paths = [repr(os.fspath(path)) for path in (error.filename, error.filename2) if path is not None]
    return f"{reason}: {', '.join(paths)}" if paths else reason


def complain(text: str) -> None:
    """Print a line on stderr."""
    print(f"sessiontree: {safe(text, keep='')}", file=sys.stderr)
