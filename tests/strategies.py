"""Hypothesis strategies for what session files can hold: JSON as JavaScript reads and writes it.

`values` are what `sessiontree.jsontext.loads` can give; `texts` are JSON texts with their value, in
all the ways they can be written; `damaged` are bytes that may or may not be JSON.
"""

import json
import random
import struct

from hypothesis import strategies as st

MAX_INT = (1 << 64) - 1
MIN_INT = -(1 << 63)

# Where an escape, a length in UTF-16 or a blank can go wrong.
ODD_CHARACTERS = (
    '\x00\x1f\x7f\x80\x85\xa0"\\/\u2028\u2029\ufeff\ufffd\uffff\ud800\udbff\udc00\udfff😀\U0010ffff'
)
# Texts that look like numbers a writer would touch.
ODD_TEXTS = ["1.0,", "[1.0]", ":-0,", "-0", "1e+16]", "e-6", '"1":', "12345678901234567890", "\\u0041"]
ODD_KEYS = ["", "0", "1", "10", "01", "-1", "1.0", "4294967294", "4294967295", "__proto__", "constructor"]
ODD_NUMBERS = [
    *[-0.0, 0.0, 1.0, -1.0, 1e15, 1e16, 1e17, 1e20, 1e21, 1.5e300, 1e-5, 1e-6, 1.5e-6, 1e-7, 5e-324],
    *[2**53, 2**53 + 1, 2.0**53, 2**63, 2.0**63, MAX_INT, 2.0**64, MIN_INT, -(2.0**63), -1e17, -1e-6],
    *[float("inf"), float("-inf"), 1.7976931348623157e308, 123456789.123456789, 0.1, 0.30000000000000004],
]


def js_joined(text):
    """The text as JavaScript has it: halves of a pair that stand side by side are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def strings():
    """Strings, often with odd characters and lone surrogates."""
    character = st.one_of(st.characters(exclude_categories=()), st.sampled_from(ODD_CHARACTERS))
    return st.one_of(st.text(character, max_size=20).map(js_joined), st.sampled_from(ODD_TEXTS), st.text())


def doubles():
    """Doubles of all magnitudes, infinities too, but no NaN: no JSON text reads as that."""
    bits = st.integers(0, MAX_INT).map(lambda n: struct.unpack(">d", n.to_bytes(8, "big"))[0])
    return st.one_of(st.floats(allow_nan=False), bits.filter(lambda x: x == x), st.integers().map(float))


def numbers():
    """Numbers as they are read: ints within 64 bits, doubles otherwise."""
    return st.one_of(
        st.integers(-1000, 1000), st.integers(MIN_INT, MAX_INT), doubles(), st.sampled_from(ODD_NUMBERS)
    )


def keys():
    """Keys of objects, often such as JavaScript orders or treats in a way of its own."""
    return st.one_of(st.sampled_from(ODD_KEYS), strings(), st.sampled_from(["a", "b", "id", "type"]))


def scalars():
    """All that is neither array nor object."""
    return st.one_of(st.none(), st.booleans(), numbers(), strings())


def values(max_leaves=20):
    """Any value that `loads` can give; one in four lies deeper than orjson writes (254 levels)."""
    shallow = st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys(), inner, max_size=5),
        max_leaves=max_leaves,
    )
    return st.builds(nest, st.sampled_from([0, 0, 0, 260]), shallow)


def nest(levels, value):
    """Put the value into so many arrays and objects, in turn."""
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def texts():
    """A JSON text and the value it must be read as: any way to write it, with escapes and white space."""
    seeds = st.integers(0, 1 << 32).map(random.Random)
    return st.tuples(values(max_leaves=8), seeds).map(lambda pair: (text_of(*pair), pair[0]))


def text_of(value, choose):
    """Write a value as JSON, each free choice made by the given source of randomness."""
    if isinstance(value, str):
        body = string_text(value, choose)
    elif isinstance(value, list):
        body = "[" + ",".join(text_of(item, choose) for item in value) + space(choose) + "]"
    elif isinstance(value, dict):
        members = [f"{text_of(k, choose)}:{text_of(v, choose)}" for k, v in value.items()]
        body = "{" + ",".join(members) + space(choose) + "}"
    elif value in (float("inf"), float("-inf")):
        body = ("" if value > 0 else "-") + choose.choice(["1e309", "1" * 400, "17.9e999"])
    else:
        body = json.dumps(value)
    return space(choose) + body + space(choose)


def space(choose):
    """White space that may stand between the parts of a text."""
    return choose.choice(["", "", "", " ", "\t", "\r\n", "  "])


def string_text(text, choose):
    """One of the many JSON texts of a string."""
    return '"' + "".join(choose.choice(character_texts(character)) for character in text) + '"'


def character_texts(character):
    """All the ways to write a character in a string; the plain one, if there is one, three times."""
    units = character.encode("utf-16-be", "surrogatepass")
    ways = ["".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))]
    if character in '"\\/\b\f\n\r\t':
        ways.append("\\" + dict(zip("\b\f\n\r\t", "bfnrt", strict=True)).get(character, character))
    if character >= " " and character not in '"\\' and not "\ud800" <= character <= "\udfff":
        ways += [character] * 3
    return ways


@st.composite
def damaged(draw):
    """The bytes of a JSON text in which a few bytes were changed, dropped or put in."""
    data = bytearray(draw(texts())[0].encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        byte = draw(
            st.one_of(st.sampled_from(b'"\\{}[],:0-1.eE \x00\x1f\xff\xc0\xed\xa0\xf0'), st.integers(0, 255))
        )
        data[at : at + draw(st.integers(0, 2))] = bytes([byte] * draw(st.integers(0, 1)))
    return bytes(data)
