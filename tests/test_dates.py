"""Dates are read and written as V8 does."""

import json
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessiontree.entries import UNSET
from sessiontree.jsontext import parse_date, to_iso

HERE = Path(__file__).parent
FACTS = json.loads((HERE / "data" / "js_dates.json").read_text("utf-8"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LIMIT = 8_640_000_000_000_000


@pytest.fixture
def zone():
    """A function that sets the local time zone; afterwards it is what it was."""
    before = os.environ.get("TZ")

    def set_zone(name):
        if name is None:
            os.environ.pop("TZ", None)
        else:
            os.environ["TZ"] = name
        time.tzset()

    yield set_zone
    set_zone(before)


def on_new_thread(function):
    """The result of a call on a thread that has not looked at the time zone yet."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def none_for_nan(ms):
    return None if isinstance(ms, float) and math.isnan(ms) else ms


@pytest.mark.parametrize("column", range(len(FACTS["zones"])), ids=FACTS["zones"])
def test_dates_are_read_as_v8_reads_them(zone, column):
    """Every recorded value gives V8's time, in each zone for which it was recorded."""
    zone(FACTS["zones"][column])
    read = on_new_thread(lambda: [none_for_nan(parse_date(value)) for value, *_ in FACTS["rows"]])
    different = {
        json.dumps(value): (ms, times[column])
        for ms, (value, *times) in zip(read, FACTS["rows"], strict=True)
        if ms != times[column]
    }
    assert not different


def test_the_record_is_worth_comparing():
    """The recorded values hold many dates and many texts that are none."""
    dates = sum(row[1] is not None for row in FACTS["rows"])
    assert dates > 250
    assert len(FACTS["rows"]) - dates > 250


def test_the_dates_of_the_recorded_scenario(zone):
    """What pi's own scenario of dates gives."""
    zone("UTC")
    expected = json.loads((HERE / "conformance" / "expected" / "dates.json").read_text("utf-8"))
    special = {'{"$undefined": true}': UNSET, '{"$num": "NaN"}': math.nan}
    rows = expected["results"][0]["results"]
    values = [special.get(json.dumps(row["text"]), row["text"]) for row in rows]
    read = on_new_thread(lambda: [none_for_nan(parse_date(value)) for value in values])
    assert read == [None if isinstance(row["ms"], dict) else row["ms"] for row in rows]


@pytest.mark.parametrize("value", [UNSET, b"2024-01-01", datetime(2024, 1, 1, tzinfo=UTC), {}, object()])
def test_what_is_no_json_is_no_date(value):
    """Values that no JSON text gives have no time."""
    assert math.isnan(parse_date(value))


def test_times_are_ints():
    """A time is a whole number, of type int, whatever it was made from."""
    for value in (None, True, -0.5, 1.5, "2024", "Jan 1 2024", [2024]):
        assert type(parse_date(value)) is int


@given(st.integers(-LIMIT, LIMIT))
def test_written_times_are_read_back(ms):
    """Each time that exists is written in a form that is read as the same time."""
    assert parse_date(to_iso(ms)) == ms


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - hypothesis wants them naive
def test_times_are_written_as_datetime_writes_them(moment):
    """Within the years that datetime knows, it gives the same text."""
    ms = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
    text = moment.isoformat(timespec="milliseconds") + "Z"
    assert to_iso(ms) == text
    assert parse_date(text) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (0.9, "1970-01-01T00:00:00.000Z"),
        (-0.9, "1970-01-01T00:00:00.000Z"),
        (LIMIT, "+275760-09-13T00:00:00.000Z"),
        (-LIMIT, "-271821-04-20T00:00:00.000Z"),
        (-62198755200000, "-000001-01-01T00:00:00.000Z"),
        (-62167219200000, "0000-01-01T00:00:00.000Z"),
        (253402300800000, "+010000-01-01T00:00:00.000Z"),
    ],
)
def test_years_outside_of_four_digits_have_six_and_a_sign(ms, text):
    """Fractions are cut off, and years before 0 and after 9999 are written long."""
    assert to_iso(ms) == text


@pytest.mark.parametrize("ms", [math.nan, math.inf, -math.inf, LIMIT + 1, -LIMIT - 1])
def test_times_that_do_not_exist_cannot_be_written(ms):
    """A time beyond the range of dates is refused and shown."""
    with pytest.raises(ValueError, match="no date has the time"):
        to_iso(ms)


@given(st.text(st.sampled_from("0123456789:-+.TZ /,()aAmpJnGEST\0\u00a0é"), max_size=30))
def test_any_text_is_a_time_or_none(text):
    """No text is an error, and a time is always within the range of dates."""
    ms = parse_date(text)
    assert math.isnan(ms) or (type(ms) is int and abs(ms) <= LIMIT)


def test_long_texts_are_read_in_linear_time():
    """Texts of a megabyte, nested parentheses and lists of a million levels come to an end."""
    nested = []
    for _ in range(1_000_000):
        nested = [nested]
    for value in ("(" * 500_000 + ")" * 500_000, "9" * 1_000_000, "x " * 500_000, "1:" * 500_000, nested):
        assert math.isnan(parse_date(value))
