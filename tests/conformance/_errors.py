"""sessiontree's errors as the messages that pi gives for the same trouble.

The library speaks for itself; only the comparison needs pi's words. A rule is (error type, pattern of our
text, pi's message); ``{path}``, ``{id}`` come from what the request asked for.
"""

import re

from normalise import UNDEFINED, JsError

SESSION_ID = (
    "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', "
    "and start and end with an alphanumeric character"
)


def js_text(value):
    """String(value) for the values that stand in messages."""
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def translate(error, path=None, target=UNDEFINED, fork=False):
    """The same error in pi's words, or as it is where pi's error was the engine's or the system's."""
    name = type(error).__name__
    if name == "InvalidSessionError":
        what = (
            "Cannot fork: source session file is empty or invalid"
            if fork
            else "Session file is not a valid pi session"
        )
        return JsError(f"{what}: {path}")
    if name == "InvalidSessionIdError":
        return JsError(SESSION_ID)
    if name == "EntryNotFoundError":
        return JsError(f"Entry {js_text(target)} not found")
    for kind, pattern, message in RULES:
        if name == kind and re.search(pattern, str(error)):
            return JsError(message.format(target=js_text(target), path=path))
    return error


RULES = []
