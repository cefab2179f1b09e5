"""The few rules of JavaScript that decide what a message contributes: truth, text, members."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from sessiontree.jsontext import js_stringify


class _Absent:
    """The type of `ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()
"""What a key holds that is not there: JavaScript's undefined, as opposed to null."""


def member(value: Any, key: str) -> Any:
    """``value?.key``: the member of an object, `ABSENT` for everything that is no object."""
    # Objects of JSON are dicts; asking for a Mapping costs five times as much, on every entry.
    return value.get(key, ABSENT) if isinstance(value, dict) else ABSENT


def truthy(value: Any) -> bool:
    """Truth as JavaScript has it: empty lists and objects are true, NaN is not."""
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    if isinstance(value, (list, tuple, Mapping)):
        return True
    return bool(value)


def text_of(value: Any) -> str:
    """What a template literal makes of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, _Absent):
        return "undefined"
    if isinstance(value, (list, tuple)):
        return ",".join("" if item is None or item is ABSENT else text_of(item) for item in value)
    if isinstance(value, Mapping):
        return "[object Object]"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return js_stringify(value)


def described(value: Any) -> str:
    """A value as an error shows it: its JSON text, cut short."""
    if isinstance(value, _Absent):
        return "nothing"
    if isinstance(value, float):
        return text_of(value)
    try:
        text = js_stringify(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def role_of(message: Any) -> Any:
    """The role of a message.

    Raises:
        TypeError: the message is null, which no step of a conversation can be.
    """
    if message is None:
        raise TypeError("a message must be an object with a role, not null")
    return member(message, "role")
