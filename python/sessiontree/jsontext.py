"""JSON text, strings and dates with JavaScript's meaning.

Session files are written and read by JavaScript programs, so this module accepts what
``JSON.parse`` accepts and writes what ``JSON.stringify`` writes. Python's libraries do neither:
they refuse lone surrogates, numbers beyond a double or deep nesting, or accept ``NaN``; and they
write ``1.0`` and ``1e-06`` where JavaScript writes ``1`` and ``0.000001``.

How values map:

- An integer from -2^63 up to 2^64 is a Python ``int``, exact on both ways, although JavaScript
  rounds it beyond 2^53. All other numbers are doubles: ``float``, infinite where they are too
  large. ``-0`` is ``-0.0``.
- A string is a ``str``; a lone half of a surrogate pair stays one code point (U+D800 to U+DFFF)
  in it. Lengths, slices and sorting in JavaScript count UTF-16 units: `js_length`, `js_slice`,
  `utf16_sort_key`.
- An object is a ``dict`` in the order of the text, which JavaScript would change for keys such as
  ``"7"``: it puts them first. `dumps` keeps the dict's order, `js_stringify` gives JavaScript's.

orjson does the work where it agrees, which is nearly always; what it refuses or would change goes
to a reader and a writer of our own, which have no limit of depth. orjson and ``re`` are imported
at the first use.
"""

from __future__ import annotations

from sessiontree._jsdate import parse_date, to_iso
from sessiontree.exceptions import InvalidJSONError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

__all__ = [
    "InvalidJSONError",
    "dumps",
    "js_length",
    "js_slice",
    "js_stringify",
    "loads",
    "number_text",
    "parse_date",
    "to_iso",
    "trim",
    "utf16_sort_key",
]

_WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""White space and line ends of ECMAScript: not those of `str.strip` (which takes U+0085, U+001C)."""

_codec: ModuleType | None = None


def _load_codec() -> ModuleType:
    """Import the module with orjson in it; that costs more than all the rest of this library."""
    global _codec  # noqa: PLW0603 - the cache of this very import
    from sessiontree import _jsoncodec

    _codec = _jsoncodec
    return _jsoncodec


def loads(data: bytes | bytearray | memoryview | str) -> Any:
    r"""Read one JSON value, accepting exactly what ``JSON.parse`` accepts.

    Bytes are UTF-8; each maximal part that is not becomes U+FFFD, as in JavaScript's decoders. A
    byte order mark is no white space and is refused.

    Args:
        data: the whole text.

    Raises:
        InvalidJSONError: the text is no JSON value; has ``reason`` and ``position``, which counts
            bytes where bytes were given, else characters.
        TypeError: ``data`` is neither bytes nor a string.

    Example:
        >>> loads(b'{"half": "\\ud83d", "huge": 1e400}')
        {'half': '\ud83d', 'huge': inf}
    """
    return (_codec or _load_codec()).loads(data)


def fast_loads() -> Callable[[bytes], Any]:
    """Give orjson's own reader. It reads ``-0`` as 0, and raises ValueError for some texts that `loads` reads."""
    reader: Callable[[bytes], Any] = (_codec or _load_codec()).orjson.loads
    return reader


def dumps(value: Any) -> bytes:
    r"""Write a value as ``JSON.stringify`` does, as UTF-8 without a newline.

    Keys keep the dict's order. Lone surrogates become escapes, infinities and NaN ``null``,
    integers outside of 64 bits the text of their double. Tuples are arrays; subclasses of str,
    int, float, dict, list and tuple count as these, unless they are numpy's.

    Args:
        value: dicts with string keys, lists, tuples, strings, numbers, booleans, None.

    Raises:
        TypeError: something in the value has no JSON form (a datetime, an enum that is no str or
            int, bytes, a key that is no string, a circular reference, ...); the message ends in
            its path, such as ``message.content[2].when``.

    Example:
        >>> dumps({"cost": 0.000001, "n": 5.0, "half": "\ud83d"})
        b'{"cost":0.000001,"n":5,"half":"\\ud83d"}'
    """
    text: bytes = (_codec or _load_codec()).dumps(value)
    return text


def js_stringify(value: Any) -> str:
    """Give the very text of ``JSON.stringify`` for a value that JavaScript has read from a file.

    Unlike `dumps`, integers are rounded to doubles and integer-like keys come first, since that is
    what JavaScript holds after reading. This is the text for prompts and for token estimates.

    Raises:
        TypeError: as in `dumps`.

    Example:
        >>> js_stringify({"b": 9007199254740993, "1": None})
        '{"1":null,"b":9007199254740992}'
    """
    text: str = (_codec or _load_codec()).js_stringify(value)
    return text


def number_text(value: float) -> str:
    """Give a number as JavaScript's ``String(value)`` does.

    Example:
        >>> [number_text(n) for n in (1.0, 1e21, 1e-7, 2**64, float("inf"))]
        ['1', '1e+21', '1e-7', '18446744073709552000', 'Infinity']
    """
    from sessiontree import _jsonwrite

    return _jsonwrite.number_text(value)


def js_length(text: str) -> int:
    r"""Count the UTF-16 units of a string, which is JavaScript's ``text.length``.

    Example:
        >>> js_length("a\N{GRINNING FACE}")
        3
    """
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def js_slice(text: str, start: int = 0, end: int | None = None) -> str:
    r"""Cut a string by UTF-16 units, as JavaScript's ``text.slice(start, end)`` does.

    Negative positions count from the end. A cut inside a surrogate pair leaves a lone half.

    Example:
        >>> js_slice("a\N{GRINNING FACE}b", 0, 2)
        'a\ud83d'
    """
    if text.isascii():
        return text[start:end]
    if start >= 0 and end is not None and end >= 0:
        text = text[:end]  # no code point is less than a unit: what follows cannot matter
    units = text.encode("utf-16-le", "surrogatepass")
    length = len(units) // 2
    first, last, _ = slice(start, end).indices(length)
    return units[2 * first : 2 * max(first, last)].decode("utf-16-le", "surrogatepass")


def utf16_sort_key(text: str) -> bytes:
    r"""Give a key that sorts strings by UTF-16 units, as JavaScript's ``sort()`` does.

    Example:
        >>> sorted(["\uff5e", "\N{GRINNING FACE}"], key=utf16_sort_key)[0]
        '😀'
    """
    return text.encode("utf-16-be", "surrogatepass")


def trim(text: str) -> str:
    r"""Strip what JavaScript's ``text.trim()`` strips.

    Example:
        >>> trim("\ufeff name\u00a0")
        'name'
    """
    return text.strip(_WHITE_SPACE)
