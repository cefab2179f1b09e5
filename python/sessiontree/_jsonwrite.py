"""A writer of JSON text that has no limits, and the texts of JavaScript's numbers.

It is used where orjson refuses a value or would write something else than ``JSON.stringify``, and
it is what names the place of a value that has no JSON form.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

from sessiontree._jsonread import join_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONE: Final = re.compile("[\ud800-\udfff]")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SHOWN: Final = 12
"""Steps of a long path that an error shows at either end."""


def number_text(value: float) -> str:
    """Give the text of JavaScript's ``String(value)``.

    Both languages use the shortest digits that read back as the same double; they differ in where
    the exponent form begins (ECMA-262, Number::toString).
    """
    double = _double(value)
    if double - double != 0:
        return "NaN" if double != double else "Infinity" if double > 0 else "-Infinity"  # noqa: PLR0124
    if double == 0:
        return "0"
    mantissa, _, exponent = repr(abs(double)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    return ("-" if double < 0 else "") + _place_point(digits.rstrip("0"), point)


def _place_point(digits: str, point: int) -> str:
    """Write digits whose decimal point stands after ``point`` of them (before them if negative)."""
    if 0 < point <= 21:
        digits = digits.ljust(point, "0")
        return f"{digits[:point]}.{digits[point:]}".rstrip(".")
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    shown = f"{digits[0]}.{digits[1:]}".rstrip(".")
    return f"{shown}e{point - 1:+d}"


def _double(value: float) -> float:
    """The double next to a number, infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def json_number(value: float) -> str:
    """Give the text of a number in JSON: what is not finite is null."""
    text = number_text(value)
    return "null" if text[-1] in "Ny" else text


def quote(text: str) -> str:
    """Write a string as JSON, lone surrogates as escapes."""
    if text.isascii():
        return encode_basestring(text)
    quoted = encode_basestring(join_pairs(text))
    return _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", quoted)


def write(value: Any, *, javascript: bool = False) -> str:
    """Write a value of any depth.

    Args:
        value: what to write.
        javascript: write what JavaScript would hold after reading: integers are rounded to doubles
            and integer-like keys come first.

    Raises:
        TypeError: something in it has no JSON form.
    """
    return _Writer(javascript=javascript).document(value)


def _by_index(members: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The members in JavaScript's order: those with an array index as key come first."""
    first = {key for key in members if _INDEX.fullmatch(key) and int(key) < 0xFFFFFFFF}
    if not first:
        return iter(members.items())
    ordered = [*sorted(first, key=int), *(key for key in members if key not in first)]
    return ((key, members[key]) for key in ordered)


def _is_foreign(value: object) -> bool:
    """Whether the value is one of numpy's scalars, some of which pass for Python's own."""
    return type(value).__module__.partition(".")[0] == "numpy"


class _Frame:
    """An open array or object: what is left of it, and the step of the path that is being written."""

    __slots__ = ("container", "is_object", "items", "separator", "step")

    def __init__(self, container: Any, items: Iterator[tuple[Any, Any]], *, is_object: bool) -> None:
        self.container = container
        self.items = items
        self.is_object = is_object
        self.separator = ""
        self.step: Any = None


class _Writer:
    """One text being written; ``frames`` are the arrays and objects that are open."""

    def __init__(self, *, javascript: bool) -> None:
        self.javascript = javascript
        self.parts: list[str] = []
        self.frames: list[_Frame] = []
        self.open: set[int] = set()

    def document(self, value: Any) -> str:
        self.value(value)
        while self.frames:
            self.step(self.frames[-1])
        return "".join(self.parts)

    def step(self, frame: _Frame) -> None:
        """Write the next member of the innermost container, or close it."""
        for key, value in frame.items:
            frame.step = key
            self.parts.append(frame.separator)
            frame.separator = ","
            if frame.is_object:
                self.key(key)
            self.value(value)
            return
        self.parts.append("}" if frame.is_object else "]")
        self.open.discard(id(frame.container))
        self.frames.pop()

    def key(self, key: Any) -> None:
        if not isinstance(key, str) or _is_foreign(key):
            self.frames[-1].step = None
            raise self.refusal(f"key {key!r} of type {type(key).__qualname__} is no string")
        self.parts.append(quote(str.__str__(key)) + ":")

    def value(self, value: Any) -> None:
        if isinstance(value, dict):
            items = _by_index(value) if self.javascript else iter(value.items())
            self.begin(_Frame(value, items, is_object=True))
        elif isinstance(value, list | tuple):
            self.begin(_Frame(value, iter(enumerate(value)), is_object=False))
        else:
            self.parts.append(self.scalar(value))

    def begin(self, frame: _Frame) -> None:
        if id(frame.container) in self.open:
            raise self.refusal("circular reference: the value contains itself")
        self.open.add(id(frame.container))
        self.frames.append(frame)
        self.parts.append("{" if frame.is_object else "[")

    def scalar(self, value: Any) -> str:
        if value is None or value is True or value is False:
            return "null" if value is None else "true" if value else "false"
        if _is_foreign(value) or not isinstance(value, str | int | float):
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
            raise self.refusal(f"a value of type {kind} has no JSON form: convert it first")
        if isinstance(value, str):
            return quote(str.__str__(value))
        if isinstance(value, int) and not self.javascript and -(1 << 63) <= value < 1 << 64:
            return int.__repr__(value)
        return json_number(value)

    def refusal(self, reason: str) -> TypeError:
        steps = [frame for frame in self.frames if frame.step is not None]
        shown = [_path_step(frame) for frame in steps]
        if len(shown) > 2 * _SHOWN:
            shown[_SHOWN:-_SHOWN] = [f" ... {len(shown) - 2 * _SHOWN} levels ... "]
        path = "".join(shown).removeprefix(".") or "the top"
        return TypeError(f"{reason}, at {path}")


def _path_step(frame: _Frame) -> str:
    if not frame.is_object:
        return f"[{frame.step}]"
    return f".{frame.step}" if _NAME.fullmatch(frame.step) else f"[{quote(frame.step)}]"
