"""orjson where it agrees with JavaScript, our own reader and writer where it does not.

What orjson 3.10 and later do differently, found by comparing it with V8:

- It refuses lone surrogates, invalid UTF-8, numbers beyond a double and deep nesting, all of which
  ``JSON.parse`` reads: every refusal is put to our own reader, which also words the error.
- It reads ``-0`` as ``0``: texts in which that number may stand go to our reader.
- It writes ``1.0``, ``-0.0``, ``1e+16``, ``1e-6`` where ``JSON.stringify`` writes ``1``, ``0``,
  ``10000000000000000``, ``0.000001``: values with such floats are copied with the numbers that
  make it write the right text.
- It writes UUIDs, enums and its own fragments, which JSON does not know and which no option turns
  off: one look at the types of all values (about 30 ns each) finds them.

Our reader and writer, and `re`, are imported when they are needed: few programs ever do.
"""

from __future__ import annotations

from sessiontree._native import may_hold_minus_zero, survey
from sessiontree._orjson import orjson
from sessiontree.exceptions import InvalidJSONError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, Final

_STRICT: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_MAX_EXACT: Final = 1 << 53

_SAME, _NUMBERS_DIFFER = 0, 1
"""What `survey` gives of a value that orjson has written; 2 is a type that JSON does not know."""


def loads(data: bytes | bytearray | memoryview | str) -> Any:
    """See `sessiontree.jsontext.loads`."""
    try:
        value = orjson.loads(data)
    except ValueError:
        return _read(data)
    if isinstance(data, bytes):
        return _read(data) if may_hold_minus_zero(data) else value
    doubtful = _minus_zero().search(data if isinstance(data, str) else str(data, "utf-8"))
    return value if doubtful is None else _read(data)


def _minus_zero() -> re.Pattern[str]:
    import re

    # What stands before is looked at last: a pattern that begins with a literal is searched ten times
    # faster. `re` keeps what it has compiled.
    return re.compile(r"-0(?=[,\]} \t\r\n]|\Z)(?<![^\[:, \t\r\n]-0)")


def _read(data: bytes | bytearray | memoryview | str) -> Any:
    from sessiontree import _jsonread

    if isinstance(data, str):
        return _jsonread.read(data)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"JSON text is bytes or a string, not {type(data).__qualname__}")
    raw = bytes(data)
    text = raw.decode("utf-8", "replace")
    try:
        return _jsonread.read(text)
    except InvalidJSONError as error:
        raise InvalidJSONError(error.reason, _byte_offset(raw, text, error.position), "byte") from None


def _byte_offset(raw: bytes, text: str, position: int) -> int:
    """Find the byte at which the character at ``position`` begins."""
    before = text[:position]
    if "\ufffd" not in before:
        return len(before.encode())
    # The longest beginning with no more characters: a part of a character counts as one, too.
    low, high = 0, len(raw)
    while low < high:
        middle = (low + high + 1) // 2
        if len(raw[:middle].decode("utf-8", "replace")) <= position:
            low = middle
        else:
            high = middle - 1
    return low


def dumps(value: Any) -> bytes:
    """See `sessiontree.jsontext.dumps`."""
    try:
        text = orjson.dumps(value, option=_STRICT)
    except TypeError:
        return _written(value).encode()
    found = survey(value)
    if found == _SAME:
        return text
    if found == _NUMBERS_DIFFER:
        return orjson.dumps(_with_javascript_numbers(value), option=_STRICT)
    return _written(value).encode()


def _written(value: Any, *, javascript: bool = False) -> str:
    from sessiontree import _jsonwrite

    return _jsonwrite.write(value, javascript=javascript)


def js_stringify(value: Any) -> str:
    """See `sessiontree.jsontext.js_stringify`."""
    text = dumps(value)
    if _javascript_may_differ(value):
        return _written(value, javascript=True)
    return text.decode()


def _javascript_may_differ(value: Any) -> bool:
    """Whether a value may hold integers that JavaScript rounds, or keys that it puts first."""
    containers: list[Any] = [(value,)]
    for container in containers:
        is_object = isinstance(container, dict)
        if is_object:
            for key in container:
                if "0" <= key < ":":  # begins with a digit
                    return True
        for item in container.values() if is_object else container:
            kind = item.__class__
            if kind is dict or kind is list or kind is tuple:
                containers.append(item)
            elif kind is int:
                if not -_MAX_EXACT <= item <= _MAX_EXACT:
                    return True
            elif kind is not str and kind is not float and kind is not bool and item is not None:
                return True
    return False


def _with_javascript_numbers(value: Any) -> Any:
    """Copy the containers, and put in place of each float what orjson writes as JavaScript would."""
    root = [value]
    copies: list[Any] = [root]
    for container in copies:
        for key, item in container.items() if container.__class__ is dict else enumerate(container):
            kind = item.__class__
            if kind is float:
                container[key] = _javascript_number(item)
            elif kind is dict or kind is list or kind is tuple:
                container[key] = copy = item.copy() if kind is dict else [*item]
                copies.append(copy)
    return root[0]


def _javascript_number(value: float) -> Any:
    """What orjson must be given so that it writes a double as JavaScript does."""
    is_whole = value.is_integer()
    if is_whole and -_MAX_EXACT <= value <= _MAX_EXACT:
        return int(value)
    if 1e-5 <= value < 1e16 and not is_whole:
        return value
    from sessiontree import _jsonwrite

    return orjson.Fragment(_jsonwrite.json_number(value))
