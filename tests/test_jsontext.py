"""JSON is read and written with JavaScript's meaning."""

import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import math
import pickle
import struct
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pytest
import strategies
from hypothesis import example, given
from hypothesis import strategies as st
from sessiontree import _jsonread, _jsonwrite, jsontext
from sessiontree.entries import UNSET
from sessiontree.jsontext import InvalidJSONError, dumps, js_stringify, loads

HERE = Path(__file__).parent
FACTS = [
    (base64.b64decode(row[0]), *row[1:])
    for row in json.loads((HERE / "data" / "js_json.json").read_text("utf-8"))["rows"]
]
ACCEPTED = [(data, written[0], written[-1]) for data, *written in FACTS if written[0] is not None]
REFUSED = [data for data, *written in FACTS if written[0] is None]


def exact(value):
    """The value with all that == passes over: types, the sign of zero, the order of keys."""
    if isinstance(value, dict):
        return [(key, exact(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [exact(inner) for inner in value]
    return (type(value), struct.pack(">d", value) if isinstance(value, float) else value)


def shown(value):
    """The value as the record shows it: numbers as JavaScript's String does, but with the sign of zero."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "-0" if value == 0 and math.copysign(1, value) < 0 else jsontext.number_text(value)
    if isinstance(value, list):
        return f"[{','.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{js_stringify(k)}:{shown(v)}" for k, v in in_order(value)) + "}"
    return js_stringify(value)


def in_order(members):
    """The naive twin of JavaScript's order of keys."""
    index = [k for k in members if k.isascii() and k.isdigit() and str(int(k)) == k and int(k) < 2**32 - 1]
    return [(k, members[k]) for k in [*sorted(index, key=int), *(k for k in members if k not in index)]]


def depth_first(value):
    """Peel arrays and objects with one member; give their number and what is inside."""
    levels = 0
    while isinstance(value, list | dict) and value:
        value = value[0] if isinstance(value, list) else next(iter(value.values()))
        levels += 1
    return levels, value


def units(text):
    return text.encode("utf-16-be", "surrogatepass")


# ---- reading


@pytest.mark.parametrize("read", [loads, lambda data: _jsonread.read(data.decode("utf-8", "replace"))])
def test_reading_gives_what_v8_reads(read):
    """Each recorded text that JSON.parse accepts is read as the same value, by both readers."""
    for data, written, other in ACCEPTED:
        if len(data) < 2000:
            assert shown(read(data)) == other, data
        assert units(js_stringify(read(data))) == units(written), data


def test_refused_is_what_v8_refuses():
    """Each recorded text that JSON.parse refuses is refused, as bytes and as a string."""
    assert len(REFUSED) > 100
    for data in REFUSED:
        for text in (data, bytearray(data), memoryview(data), data.decode("utf-8", "replace")):
            with pytest.raises(InvalidJSONError) as caught:
                loads(text)
            assert 0 <= caught.value.position <= len(text)


@given(strategies.texts())
def test_reading_gives_the_value_that_was_written(pair):
    """However a value is written in JSON, it is read as exactly that value."""
    text, value = pair
    assert exact(loads(text.encode())) == exact(value)
    assert exact(loads(text)) == exact(value)
    assert exact(_jsonread.read(text)) == exact(value)


@given(strategies.damaged())
@example(b'"\x80\xc2\x80\\0"')
@example(b'"\x80\xe2\x82\xac')
def test_both_readers_judge_alike(data):
    """The fast reader and the one without limits accept the same texts and give the same values."""
    text = data.decode("utf-8", "replace")
    value, error = outcome(_jsonread.read, text)
    fast, fast_error = outcome(loads, data)
    assert fast == value
    if error is not None:
        assert (fast_error.reason, fast_error.unit) == (error.reason, "byte")
        before = data[: fast_error.position].decode("utf-8", "replace")
        assert before[: error.position] == text[: error.position]


def outcome(read, text):
    """What a reader makes of a text: a value, or an error."""
    try:
        return exact(read(text)), None
    except InvalidJSONError as error:
        return None, error


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"-0", -0.0),
        (b"[-0 ]", [-0.0]),
        (b'{"a":-0}', {"a": -0.0}),
        (b'["-0,"]', ["-0,"]),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", 2.0**64),
        (b"-9223372036854775808", -(2**63)),
        (b"-9223372036854775809", -(2.0**63)),
        (b"9007199254740993", 2**53 + 1),
        (b"9007199254740993.0", 2.0**53),
        (b"1e400", math.inf),
        (b"-" + b"9" * 5000, -math.inf),
        (b'"\\ud83d"', "\ud83d"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'{"\\ude00\\ud83d":1}', {"\ude00\ud83d": 1}),
        (b'"\xed\xa0\x80\xf0\x9f"', "\ufffd\ufffd\ufffd\ufffd"),
        (b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        ("\x7f\x80\u2028".join('""'), "\x7f\x80\u2028"),
        ('"\ud83d\\ude00"', "😀"),
        ('"\\ud83d\ude00"', "😀"),
        ('"\ud83d\ude00"', "😀"),
    ],
)
def test_values_python_reads_otherwise(text, value):
    """What Python's libraries refuse or change is read as JavaScript reads it, integers exact to 64 bits."""
    assert exact(loads(text)) == exact(value)


def test_duplicate_keys_keep_the_place_of_the_first():
    """Of keys that come twice the last value stands at the first one's place, in both readers."""
    text = '{"a":1,"b":2,"a":"\\ud800"}'
    assert list(loads(text).items()) == [("a", "\ud800"), ("b", 2)]
    assert list(loads(text.replace("\\ud800", "x")).items()) == [("a", "x"), ("b", 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "invalid JSON: expected a value, but the text ends at byte 0"),
        (b"\xef\xbb\xbf1", r"invalid JSON: expected a value, but found '\ufeff' at byte 0"),
        (b'["\xff\xff\xc3\xa9" x]', """invalid JSON: expected "," or "]", but found 'x' at byte 8"""),
        ('["é" x]', """invalid JSON: expected "," or "]", but found 'x' at character 5"""),
        (b'{"a":NaN}', "invalid JSON: expected a value, but found 'N' at byte 5"),
        (b"{a:1}", "invalid JSON: expected a key in double quotes, but found 'a' at byte 1"),
        (b'{"a" 1}', """invalid JSON: expected ":", but found '1' at byte 5"""),
        (b"1 2", "invalid JSON: expected the end, but found '2' at byte 2"),
        (b'["a', "invalid JSON: the text ends within a string at byte 3"),
        (b'"\\x"', r"""invalid JSON: unknown escape '\\x"' at byte 1"""),
        (b'"a\nb"', r"invalid JSON: control character '\n' in a string: write it as an escape at byte 2"),
    ],
)
def test_errors_say_what_and_where(text, message):
    """A refusal says what was expected and where, in bytes for bytes and in characters for strings."""
    with pytest.raises(ValueError) as caught:
        loads(text)
    assert str(caught.value) == message
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


@pytest.mark.parametrize("data", [None, 7, ["1"], object()])
def test_only_bytes_and_strings_are_read(data):
    """Anything else is a TypeError that names its type."""
    with pytest.raises(TypeError, match=type(data).__name__):
        loads(data)


@pytest.mark.parametrize("inner", ["1", "1.0", '"\\ud800"', "[]", "-0"])
def test_deep_values_are_read_and_written(inner):
    """Nesting beyond what orjson and the interpreter's stack take changes nothing, on both ways."""
    text = "[" * 10_000 + '{"a":' * 10_000 + inner + "}" * 10_000 + "]" * 10_000
    value = loads(text)
    assert depth_first(value) == (20_000, loads(inner))
    written = dumps(value)
    assert dumps(loads(written)) == written
    assert js_stringify(value).encode() == written


@pytest.mark.slow
def test_a_million_levels_are_read_and_written():
    """Nesting has no limit."""
    text = b"[" * 500_000 + b'{"a":' * 500_000 + b"1" + b"}" * 500_000 + b"]" * 500_000
    value = loads(text)
    assert depth_first(value) == (1_000_000, 1)
    assert dumps(value) == text


def test_unclosed_levels_are_refused():
    """A million brackets that are never closed are an error, not a crash."""
    with pytest.raises(InvalidJSONError, match="the text ends at byte 1000000"):
        loads(b"[" * 1_000_000)


def test_long_strings_are_read_in_linear_time():
    """A string of ten megabytes full of escapes goes through the reader without limits."""
    text = '["' + '\\ud800\\n"'[:-1] * 1_000_000 + '"]'
    assert loads(text) == ["\ud800\n" * 1_000_000]


# ---- writing


@given(strategies.values())
def test_what_is_written_is_read_back(value):
    """Reading what was written gives the value with infinities as null and whole doubles as ints."""
    text = dumps(value)
    assert loads(text) == loads(naive(value))
    assert dumps(loads(text)) == text


@given(strategies.values())
def test_both_writers_write_alike(value):
    """The fast writer gives the text of the one without limits, and that of the naive twin."""
    assert dumps(value).decode() == _jsonwrite.write(value) == naive(value)
    assert js_stringify(value) == _jsonwrite.write(value, javascript=True)


def naive(value):
    """The naive twin of the writers: recursive, one scalar after the other."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{naive(key)}:{naive(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(naive, value)) + "]"
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in quoted)
    if isinstance(value, float):
        return naive_number(value)
    return json.dumps(value)


def naive_number(value):
    """The naive twin of a double's text: all digits by decimal arithmetic."""
    if not math.isfinite(value):
        return "null"
    exact_digits = decimal.Decimal(repr(value)).normalize()
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:
        return f"{exact_digits:f}"
    return f"{exact_digits:e}"


@given(strategies.doubles())
def test_numbers_have_the_text_of_javascript(value):
    """The text of a double is the shortest that reads back, with JavaScript's bounds for exponents."""
    text = jsontext.number_text(value)
    assert text == {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, naive_number(value))
    if math.isfinite(value):
        assert float(text) == value


def test_nan_has_a_text():
    """NaN is written as null in JSON and as NaN elsewhere."""
    assert jsontext.number_text(math.nan) == "NaN"
    assert dumps([math.nan]) == b"[null]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (1e16, b"10000000000000000"),
        (1e20, b"100000000000000000000"),
        (1e21, b"1e+21"),
        (1e-5, b"0.00001"),
        (1e-6, b"0.000001"),
        (1.5e-6, b"0.0000015"),
        (1e-7, b"1e-7"),
        (-1.5e300, b"-1.5e+300"),
        (123456789012345680000.0, b"123456789012345680000"),
        (math.inf, b"null"),
        (2**53 + 1, b"9007199254740993"),
        (2**64 - 1, b"18446744073709551615"),
        (2**64, b"18446744073709552000"),
        (-(2**63), b"-9223372036854775808"),
        (-(2**63) - 1, b"-9223372036854776000"),
        (10**21, b"1e+21"),
        (10**400, b"null"),
        ((-(10**5000),), b"[null]"),
        ("\ud800", b'"\\ud800"'),
        ("\ud83d\ude00", '"😀"'.encode()),
        ({"b": 1, "10": 2, "2": 3}, b'{"b":1,"10":2,"2":3}'),
        ({"\udc00": 1}, b'{"\\udc00":1}'),
        (("a", (1, ())), b'["a",[1,[]]]'),
        ({}, b"{}"),
        ([], b"[]"),
        (
            ["1.0,", 1.0, {"a": "[1.0]", "b": [2.0, (3.0,)], "c": True, "d": None}],
            b'["1.0,",1,{"a":"[1.0]","b":[2,[3]],"c":true,"d":null}]',
        ),
    ],
)
def test_texts_python_writes_otherwise(value, text):
    """What Python's libraries write in another way has the text of JSON.stringify."""
    assert dumps(value) == text


def test_every_character_is_written_as_v8_writes_it():
    """All code points of the basic plane are written as JSON.stringify writes them."""
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    for code in range(0x10000):
        escaped = code < 32 or 0xD800 <= code < 0xE000
        text = short.get(code, "\\u" + f"{code:04x}" if escaped else chr(code))
        assert dumps(chr(code)).decode() == f'"{text}"'
        assert dumps(chr(code) + "\ud800").decode() == f'"{text}\\ud800"'


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Double(float):
    pass


class Color(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Text("x"), b'"x"'),
        ({Text("k"): 1}, b'{"k":1}'),
        (Number(7), b"7"),
        (Double(2.0), b"2"),
        (Color.RED, b'"red"'),
        ({Color.RED: Level.HIGH}, b'{"red":3}'),
        (Point(1, 2.0), b"[1,2]"),
        (collections.OrderedDict(b=1, a=2), b'{"b":1,"a":2}'),
        (collections.defaultdict(int, a=1), b'{"a":1}'),
        ([True, False, None], b"[true,false,null]"),
    ],
)
def test_subclasses_count_as_what_they_are(value, text):
    """A subclass of a JSON type is written as that type, at any place."""
    assert dumps(value) == text
    assert dumps({"a": [value, 1.0]}) == b'{"a":[' + text + b",1]}"
    assert js_stringify(value) == text.decode()


class Plain(enum.Enum):
    A = 1


@dataclasses.dataclass
class Record:
    a: int = 1


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        dt.date(2024, 1, 1),
        dt.time(1),
        uuid.UUID(int=7),
        Plain.A,
        Record(),
        orjson.Fragment(b"{bad"),
        b"bytes",
        bytearray(b"x"),
        {1, 2},
        frozenset(),
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 2),
        1j,
        object(),
        UNSET,
        Record,
        len,
        (n for n in ()),
        np.float64(1.5),
        np.int64(1),
        np.bool_(True),
        np.str_("x"),
        np.arange(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_lacks_is_refused_with_its_place(value):
    """A value without a JSON form is a TypeError that ends in the path to it."""
    with pytest.raises(TypeError, match=r"convert it first, at the top$"):
        dumps(value)
    deep = {"message": {"content": [1.0, "\ud800", {"when": value}]}}
    with pytest.raises(TypeError, match=r"type \S*\w+ has no JSON form.*, at message\.content\[2\]\.when$"):
        dumps(deep)
    with pytest.raises(TypeError, match=r"at message\.content\[2\]\.when$"):
        js_stringify(deep)


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"a", ("a",), Plain.A, np.str_("a")])
def test_keys_that_are_no_strings_are_refused(key):
    """A key that is no string is a TypeError that shows the key and the object it is in."""
    with pytest.raises(TypeError) as caught:
        dumps({"a": [{"ok": 1, key: 2}]})
    assert repr(key) in str(caught.value)
    assert str(caught.value).endswith("is no string, at a[0]")


def test_odd_keys_are_shown_in_quotes():
    """A path is readable whatever the keys are."""
    with pytest.raises(TypeError, match=r'at \["a b"\]\["\\ud800"\]\[""\]\.x\[0\]$'):
        dumps({"a b": {"\ud800": {"": {"x": [b""]}}}})


def test_circular_references_are_refused():
    """A value that contains itself is a TypeError with the place where it comes again."""
    value = {"a": [1, {}]}
    value["a"][1]["back"] = value
    with pytest.raises(TypeError, match=r"circular reference.*, at a\[1\]\.back$"):
        dumps(value)
    with pytest.raises(TypeError, match="circular"):
        js_stringify(value)


def test_a_value_may_stand_at_many_places():
    """The same object twice is no circular reference, also beyond orjson's depth."""
    shared = {"x": 1.0}
    assert dumps([shared, shared]) == b'[{"x":1},{"x":1}]'
    deep = dumps(strategies.nest(400, [shared, shared]))
    assert deep == dumps(strategies.nest(400, [{"x": 1}, {"x": 1}]))
    assert deep.count(b'{"x":1}') == 2


def test_long_paths_are_shortened():
    """The path to a value a hundred thousand levels down is shown by its two ends."""
    value = b""
    for _ in range(100_000):
        value = [value]
    with pytest.raises(TypeError, match=r"at \[0\]\[0\].* \.\.\. 99976 levels \.\.\. .*\[0\]$") as caught:
        dumps(value)
    assert len(str(caught.value)) < 300


@given(strategies.values())
def test_writing_changes_nothing(value):
    """The value that was written is the same afterwards, in all its types."""
    before = exact(value)
    dumps(value)
    js_stringify(value)
    assert exact(value) == before


# ---- JavaScript's view


@given(st.dictionaries(strategies.keys(), st.integers(0, 9), max_size=8))
def test_stringify_puts_index_keys_first(members):
    """js_stringify orders keys as JavaScript does, dumps leaves them as they are."""
    assert list(json.loads(js_stringify(members))) == [key for key, _ in in_order(members)]
    assert list(loads(dumps(members))) == list(members)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**53 + 1, "9007199254740992"),
        (12345678901234567890, "12345678901234567000"),
        (-(2**63), "-9223372036854776000"),
        ({"b": 1, "10": 2, "2": {"1": 1, "0": 0}}, '{"2":{"0":0,"1":1},"10":2,"b":1}'),
        ({"4294967295": 1, "4294967294": 2, "01": 3}, '{"4294967294":2,"4294967295":1,"01":3}'),
        (["1234567890123456789", '"1":'], '["1234567890123456789","\\"1\\":"]'),
        ("\ud800é", '"\\ud800é"'),
    ],
)
def test_stringify_gives_what_javascript_holds(value, text):
    """js_stringify rounds integers to doubles and orders keys, also within."""
    assert js_stringify(value) == text


@given(strategies.strings(), st.integers(-30, 30), st.none() | st.integers(-30, 30))
def test_slices_and_lengths_count_utf16_units(text, start, end):
    """Lengths, slices and sort keys are those of the UTF-16 units."""
    all_units = [units(text)[i : i + 2] for i in range(0, len(units(text)), 2)]
    assert jsontext.js_length(text) == len(all_units)
    assert units(jsontext.js_slice(text, start, end)) == b"".join(all_units[start:end])
    assert jsontext.utf16_sort_key(text) == b"".join(all_units)


def test_sorting_is_by_units_not_by_code_points():
    """An astral character sorts before U+E000 and above, as in JavaScript."""
    assert sorted(["\uff5e", "😀", "z"], key=jsontext.utf16_sort_key) == ["z", "😀", "\uff5e"]


def test_trim_strips_the_recorded_code_points():
    """trim strips exactly the code points recorded from V8, from both ends and not from within."""
    path = HERE / "conformance" / "expected" / "v8-trim.json"
    blank = json.loads(path.read_text("utf-8"))["results"][0]["ok"]
    assert [code for code in range(0x10000) if jsontext.trim(chr(code)) == ""] == blank
    spaces = "".join(map(chr, blank))
    assert jsontext.trim(f"{spaces}a{spaces}b{spaces}") == f"a{spaces}b"
    assert jsontext.trim("\x85a\x1c") == "\x85a\x1c"


def test_the_numbers_of_the_recorded_scenario():
    """What pi's own scenario of numbers says of reading and writing them."""
    folder = HERE / "conformance"
    texts = json.loads((folder / "cases" / "load-numbers.json").read_text("utf-8"))["requests"][2]["texts"]
    facts = json.loads((folder / "expected" / "load-numbers.json").read_text("utf-8"))["results"][2][
        "results"
    ]
    for text, fact in zip(texts, facts, strict=True):
        value = loads(text)
        assert js_stringify(value) == fact["written"]
        special = fact["value"]["$num"] if isinstance(fact["value"], dict) else None
        assert shown(value) == (special or jsontext.number_text(fact["value"]))


def test_importing_costs_no_library():
    """Importing the module brings in neither orjson nor re, typing, datetime or numpy."""
    code = (
        "import sys; before = set(sys.modules); import sessiontree.jsontext\n"
        "new = set(sys.modules) - before\n"
        "assert not new & {'orjson', 're', 'typing', 'datetime', 'json', 'numpy', 'uuid'}, new"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
