"""sessiontree's errors as the messages that pi gives for the same trouble.

The library speaks for itself; only the comparison needs pi's words.
"""

import math
import re

from _names import jsontext
from normalise import UNDEFINED, JsError

SESSION_ID = (
    "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', "
    "and start and end with an alphanumeric character"
)


TOO_LONG = "generation hit the token cap and the summary is incomplete"
NOT_EDITABLE = "Entry {} does not contribute editable model content"
NOT_ON_BRANCH = "Entry {} is not on the active branch"
BAD_EDIT = "Context edit replacement must be null or contain string/array content"
NO_FIRST_KEPT = "First kept entry has no UUID - session may need migration"


def js_text(value):
    """String(value) for the values that stand in messages."""
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join("" if v is None else js_text(v) for v in value)
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, float):
        return (
            jsontext().number_text(value) if math.isfinite(value) else str(value).replace("inf", "Infinity")
        )
    return str(value)


def translate(error, path=None, target=UNDEFINED, fork=False):
    """The same error in pi's words, or as it is where pi's error was the engine's or the system's."""
    message = OWN_WORDS.get(type(error).__name__, lambda *_: None)(error, path, target, fork)
    return error if message is None else JsError(message)


def invalid_session(_error, path, _target, fork):
    if fork:
        return f"Cannot fork: source session file is empty or invalid: {path}"
    return f"Session file is not a valid pi session: {path}"


def missing_file(_error, path, _target, fork):
    """pi calls a source that is not there an empty one."""
    return f"Cannot fork: source session file is empty or invalid: {path}" if fork else None


def missing_argument(error, _path, _target, _fork):
    """pi takes undefined where Python refuses a call that lacks an argument."""
    if "missing 1 required positional argument: 'entry_id'" in str(error):
        return "Entry undefined not found"
    return BAD_EDIT if "missing 1 required positional argument: 'replacement'" in str(error) else None


def summarization(error, _path, _target, _fork):
    label = "Turn prefix summarization" if error.kind == "turn_prefix" else "Summarization"
    if error.reason == "tool_call":
        return f"{label} attempted to call a tool"
    if error.reason == "length":
        return f"{label} failed: {TOO_LONG}"
    return f"{label} failed: {error.detail or 'Unknown error'}"


def branch_error(text):
    """The error that a branch summary's result tells, in pi's words."""
    detail = re.search(r'the model failed with "(.*)"$', text, re.DOTALL)
    if "called a tool" in text:
        return "Branch summarization attempted to call a tool"
    if "output limit" in text:
        return f"Branch summarization failed: {TOO_LONG}"
    told = "Unknown error" if detail is None or detail[1] == "unknown error" else detail[1]
    return f"Branch summarization failed: {told}"


def settings(error, _path, _target, _fork):
    """Tokens must be whole numbers; an entry of modelOverrides must be an object."""
    wanted = "a non-negative safe integer" if error.key.endswith("Tokens") else "an object"
    return f"Invalid {error.key} setting: {js_text(error.value)}. Expected {wanted}."


def value_error(error, _path, target, _fork):
    """Refusals of values that have no type of their own."""
    for pattern, message in VALUE_ERRORS:
        if re.search(pattern, str(error)):
            return message.format(js_text(target))
    return None


VALUE_ERRORS = [
    (r"names no first entry to keep", NO_FIRST_KEPT),
    (r"not on the current branch", NOT_ON_BRANCH),
    (r"can be edited", NOT_EDITABLE),
    (r"replacement must", BAD_EDIT),
]
OWN_WORDS = {
    "InvalidSessionError": invalid_session,
    "InvalidSessionIdError": lambda *_: SESSION_ID,
    "EntryNotFoundError": lambda _error, _path, target, _fork: f"Entry {js_text(target)} not found",
    "SummarizationError": summarization,
    "SettingsError": settings,
    "ValueError": value_error,
    "FileNotFoundError": missing_file,
    "TypeError": missing_argument,
}
