"""A reader of JSON text that has no limits: the one that decides where orjson will not.

It keeps its own stack of open arrays and objects, so that a million levels are as good as one.
The grammar is that of ECMA-404, which is what ``JSON.parse`` accepts; the values are those that
`sessiontree.jsontext` describes.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sessiontree.exceptions import InvalidJSONError

_BLANKS: Final = frozenset(" \t\n\r")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_PLAIN_STRING: Final = re.compile(r'"([ !#-\[\]-\x7e]*)"')
_PLAIN_KEY: Final = re.compile(rf"{_PLAIN_STRING.pattern}:(?![ \t\n\r])")
_STRING_BODY: Final = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_ESCAPE: Final = re.compile(r"\\(?:u(....)|(.))")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_OPENED: Final = object()
"""In place of a value: an array or object was begun, and its first value comes next."""


def join_pairs(text: str) -> str:
    """Join high and low surrogates that stand side by side: to JavaScript they are one character."""
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


def read(text: str) -> Any:
    """Read one JSON value; positions in errors count characters."""
    return _Reader(text).document()


def _number(text: str, *, is_integer: bool) -> int | float:
    """An int where 64 bits hold it, else the double next to it."""
    if is_integer and text != "-0" and len(text) <= 20:
        value = int(text)
        if -(1 << 63) <= value < 1 << 64:
            return value
    return float(text)


def _unescape(escape: re.Match[str]) -> str:
    code, short = escape.groups()
    return chr(int(code, 16)) if code else _SHORT.get(short, short)


class _Reader:
    """One text being read, and how far.

    ``containers`` holds the arrays and objects that are open, ``keys`` the key that waits for its
    value in each open object.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.containers: list[list[Any] | dict[str, Any]] = []
        self.keys: list[str] = []

    def document(self) -> Any:
        self.skip_space()
        value = self.begin()
        while self.containers:
            value = self.begin() if value is _OPENED else self.attach(value)
        self.skip_space()
        if self.at < len(self.text):
            raise self.unexpected("the end")
        return value

    def unexpected(self, wanted: str) -> InvalidJSONError:
        found = f"found {self.text[self.at]!r}" if self.at < len(self.text) else "the text ends"
        return InvalidJSONError(f"expected {wanted}, but {found}", self.at)

    def skip_space(self) -> None:
        if self.text[self.at : self.at + 1] in _BLANKS:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space is not None else self.at

    def take(self, character: str) -> bool:
        """Step over the character if it comes next, and over white space after it."""
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        self.skip_space()
        return True

    def begin(self) -> Any:
        """Read a scalar or an empty container whole; of another container only the start."""
        character = self.text[self.at : self.at + 1]
        if character == '"':
            return self.string()
        if character == "{":
            return self.begin_object()
        if character == "[":
            return self.begin_array()
        if character in _WORDS:
            return self.word(*_WORDS[character])
        return self.number()

    def begin_array(self) -> Any:
        self.take("[")
        if self.take("]"):
            return []
        self.containers.append([])
        return _OPENED

    def begin_object(self) -> Any:
        self.take("{")
        if self.take("}"):
            return {}
        self.containers.append({})
        self.key()
        return _OPENED

    def key(self) -> None:
        plain = _PLAIN_KEY.match(self.text, self.at)
        if plain is not None:
            self.at = plain.end()
            self.keys.append(plain[1])
            return
        if not self.text.startswith('"', self.at):
            raise self.unexpected("a key in double quotes")
        self.keys.append(self.string())
        self.skip_space()
        if not self.take(":"):
            raise self.unexpected('":"')

    def attach(self, value: Any) -> Any:
        """Put a finished value where it belongs; give the container if that is finished by it."""
        self.skip_space()
        container = self.containers[-1]
        if isinstance(container, list):
            container.append(value)
            return self.next_or_close("]")
        container[self.keys.pop()] = value
        following = self.next_or_close("}")
        if following is _OPENED:
            self.key()
        return following

    def next_or_close(self, bracket: str) -> Any:
        if self.take(","):
            return _OPENED
        if self.text.startswith(bracket, self.at):
            self.at += 1
            return self.containers.pop()
        raise self.unexpected(f'"," or "{bracket}"')

    def word(self, word: str, value: bool | None) -> bool | None:
        if not self.text.startswith(word, self.at):
            raise self.unexpected("a value")
        self.at += len(word)
        return value

    def number(self) -> int | float:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            raise self.unexpected("a value")
        self.at = found.end()
        return _number(found[0], is_integer=found.lastindex is None)

    def string(self) -> str:
        plain = _PLAIN_STRING.match(self.text, self.at)
        if plain is not None:
            self.at = plain.end()
            return plain[1]
        start = self.at + 1
        body = _STRING_BODY.match(self.text, start)
        end = body.end() if body is not None else start
        if not self.text.startswith('"', end):
            raise self.bad_string(end)
        self.at = end + 1
        raw = self.text[start:end]
        if "\\" in raw:
            raw = _ESCAPE.sub(_unescape, raw)
        return raw if raw.isascii() else join_pairs(raw)

    def bad_string(self, at: int) -> InvalidJSONError:
        if at >= len(self.text):
            return InvalidJSONError("the text ends within a string", at)
        if self.text[at] == "\\":
            return InvalidJSONError(f"unknown escape {self.text[at : at + 6]!r}", at)
        return InvalidJSONError(f"control character {self.text[at]!r} in a string: write it as an escape", at)
