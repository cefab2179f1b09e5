"""Date texts as V8, the JavaScript engine of Node, reads them.

First comes the format of ECMA-262::

    YYYY[-MM[-DD]][Thh:mm[:ss[.fraction]][Z | ±hh:mm | ±hhmm]]      (or ±YYYYYY for the year)

in which a date alone is UTC, and a date with a time but without a zone is local. Everything else
is read by V8's own rules, found here by asking V8 (tests/data/js_dates.json has its answers):

- Words before the first number are ignored; after it only names of months, days' halves (am, pm)
  and zones may come. Months count by their first three letters. Text in parentheses is ignored.
- A number before ``:`` belongs to the time, and so does the number after the last ``:`` of a time,
  which must then end in white space, a sign, ``Z`` or the end. ``.`` after seconds begins a fraction.
- After a time or a zone of zero offset a sign begins an offset: ``+h``, ``+hh``, ``+hmm``,
  ``+hhmm``, ``+h:mm``. Elsewhere signs separate.
- All other numbers belong to the date, three at most: month, day, year; year, month, day if the
  first cannot be a day; with a named month the first of two is the day if it can be. Missing parts
  are 1. Years below 50 count from 2000, those below 100 from 1900.
- Without a zone the time is local. A NUL ends the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from sessiontree._jsdate import DAY, NAN, clip, days, from_local

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATE: Final = r"([+-][0-9]{6}|[0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?"
_TIME: Final = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
_ZONE: Final = r"[zZ]|([+-])([0-9]{2}):?([0-9]{2})"
_ISO: Final = re.compile(f"{_DATE}(?:[tT]{_TIME}({_ZONE})?)?")
_BEGINS_AS_ISO: Final = re.compile(
    r"([+-][0-9]{6}|[0-9]{4})(?![0-9])"
    r"(?:-(?:(0[1-9]|1[0-2])(?![0-9])(?:-(?:(0[1-9]|[12][0-9]|3[01])(?![0-9]))?)?)?)?"
)
_SPACE: Final = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_TOKEN: Final = re.compile(
    rf"(?P<number>[0-9]+)|(?P<symbol>[-+:.)])|(?P<word>[^\x00-@{_SPACE}]+)|(?P<space>[{_SPACE}]+)"
    r"|(?P<open>\()|(?P<other>[\s\S])"
)
_PARENTHESIS: Final = re.compile(r"[()]")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HALVES: Final = {"am": 0, "pm": 12}
_ZONES: Final = {
    "ut": 0, "utc": 0, "z": 0, "gmt": 0,
    "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
}  # fmt: skip
_TIME_LIMITS: Final = (24, 60, 60, 1000)


class _Token(NamedTuple):
    kind: str
    text: str

    def is_symbol(self, symbols: str) -> bool:
        return self.kind == "symbol" and self.text in symbols


_END: Final = _Token("end", "")


class _NoDateError(Exception):
    """The text is no date."""


def parse(text: str) -> float:
    """Give the time of a date text in ms since 1970, or NaN."""
    text = text.partition("\0")[0]
    iso = _ISO.fullmatch(text)
    found = _read_iso(iso) if iso is not None else None
    if found is not None:
        return found
    try:
        return _LooseDate(text).read()
    except _NoDateError:
        return NAN


def _read_iso(iso: re.Match[str]) -> float | None:
    """The time of a text in the standard's format; None where a part is out of its range."""
    year, month, day, hour, minute, second, fraction, zone, sign, zone_hour, zone_minute = iso.groups()
    if year == "-000000" or not (1 <= int(month or 1) <= 12 and 1 <= int(day or 1) <= 31):
        return None
    midnight = days(int(year), int(month or 1), int(day or 1)) * DAY
    if hour is None:
        return clip(midnight)
    clock = [int(hour), int(minute), int(second or 0), _milliseconds(fraction or "0")]
    if int(zone_hour or 0) > 23 or int(zone_minute or 0) > 59 or not _is_clock(clock):
        return None
    if hour == "24" and (fraction or "").strip("0"):  # too little for the millisecond to show
        return None
    local = midnight + _clock_ms(clock)
    if zone is None:
        return from_local(local)
    offset = (int(zone_hour or 0) * 60 + int(zone_minute or 0)) * 60_000
    return clip(local + offset if sign == "-" else local - offset)


def _is_clock(clock: list[int]) -> bool:
    """Whether a time of day exists; 24:00 does, as the end of the day."""
    return clock == [24, 0, 0, 0] or all(n < limit for n, limit in zip(clock, _TIME_LIMITS, strict=True))


def _clock_ms(clock: list[int]) -> int:
    hour, minute, second, millisecond = clock
    return ((hour * 60 + minute) * 60 + second) * 1000 + millisecond


def _value(digits: str) -> int:
    """V8's value of a number: the first nine digits after the zeros in front."""
    return int(digits.lstrip("0")[:9] or 0)


def _milliseconds(digits: str) -> int:
    """V8's value of a fraction: of more than nine digits, zeros in front count among the nine."""
    scaled: int = _value(digits) * 1000 // 10 ** min(len(digits), 9)
    return scaled


def _tokens(text: str, at: int) -> Iterator[_Token]:
    while (found := _TOKEN.match(text, at)) is not None:
        at = found.end()
        if found.lastgroup == "open":
            at = _after_parentheses(text, at)
        yield _Token(str(found.lastgroup), found[0])


def _after_parentheses(text: str, at: int) -> int:
    """Find the end of a parenthesis whose inside begins at ``at``; one that stays open has the rest."""
    depth = 1
    for found in _PARENTHESIS.finditer(text, at):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    return len(text)


class _LooseDate:
    """A date being put together from tokens; ``ahead`` is the token that comes next."""

    def __init__(self, text: str) -> None:
        self.date: list[int] = []
        self.month: int | None = None
        self.clock: list[int] = []
        self.half: int | None = None
        self.sign = 0
        self.zone_hour: int | None = None
        self.zone_minute: int | None = None
        self.tokens = _tokens(text, self.begin_as_iso(text))
        self.ahead = next(self.tokens, _END)
        self.has_number = bool(self.date)

    def begin_as_iso(self, text: str) -> int:
        """Take the parts that the standard's format has at the text's start; give their end."""
        found = _BEGINS_AS_ISO.match(text)
        if found is None:
            return 0
        if found[1] == "-000000":  # no such year: its digits are dropped
            return found.end(1)
        self.date = [int(part) for part in found.groups() if part is not None]
        return found.end()

    def take(self) -> _Token:
        token = self.ahead
        self.ahead = next(self.tokens, _END)
        return token

    def take_symbol(self, symbol: str) -> bool:
        found = self.ahead.is_symbol(symbol)
        if found:
            self.take()
        return found

    def read(self) -> float:
        while self.ahead is not _END:
            token = self.take()
            if token.kind == "number":
                self.number(token.text)
            elif token.kind == "word":
                self.word(token.text)
            elif token.is_symbol("+-") and (self.clock or self.zone_hour == self.zone_minute == 0):
                self.offset(1 if token.text == "+" else -1)
            elif token.is_symbol("+-)") and self.has_number:
                raise _NoDateError
        return self.time()

    def number(self, digits: str) -> None:
        self.has_number = True
        value = _value(digits)
        if self.take_symbol(":"):
            self.before_colon(value)
        elif self.take_symbol(".") and self.clock_expects(value):
            self.clock.append(value)
            self.fraction()
        elif self.zone_hour is not None and self.zone_minute is None and value < 60:
            self.zone_minute = value
        elif self.clock_expects(value):
            self.end_clock(value)
            if not (
                self.ahead.kind in ("end", "space") or self.ahead.is_symbol("+-") or self.is_z(self.ahead)
            ):
                raise _NoDateError
        else:
            self.date_part(value)

    @staticmethod
    def is_z(token: _Token) -> bool:
        return token.kind == "word" and token.text in ("z", "Z")

    def clock_expects(self, value: int) -> bool:
        return 0 < len(self.clock) < 4 and value < _TIME_LIMITS[len(self.clock)]

    def before_colon(self, value: int) -> None:
        if len(self.clock) == 4 or (self.ahead.is_symbol(":") and self.clock):
            raise _NoDateError
        self.clock.append(value)
        if self.take_symbol(":"):  # "10::" leaves the minutes out
            self.clock.append(0)
        else:
            self.take_symbol(".")

    def fraction(self) -> None:
        if self.ahead.kind != "number":
            raise _NoDateError
        self.end_clock(_milliseconds(self.take().text))

    def end_clock(self, value: int) -> None:
        """Add the last part of the time; what is missing is zero."""
        self.clock = ([*self.clock, value] + [0] * 3)[:4]

    def date_part(self, value: int) -> None:
        if len(self.date) == 3:
            raise _NoDateError
        self.date.append(value)
        self.take_symbol("-")

    def word(self, text: str) -> None:
        word = text.lower()
        if word in _HALVES and self.clock:
            self.half = _HALVES[word]
        elif word[:3] in _MONTHS:
            self.month = _MONTHS.index(word[:3]) + 1
            self.take_symbol("-")
        elif word in _ZONES and self.has_number:
            self.sign = -1 if _ZONES[word] < 0 else 1
            self.zone_hour, self.zone_minute = abs(_ZONES[word]), 0
        elif self.has_number or self.ahead.kind == "number":
            raise _NoDateError

    def offset(self, sign: int) -> None:
        """Read an offset from UTC after its sign; it may stop before its minutes."""
        self.sign = sign
        digits = self.take().text if self.ahead.kind == "number" else ""
        self.has_number = True
        value = _value(digits)
        if self.ahead.is_symbol(":"):
            self.zone_hour, self.zone_minute = value, None
        elif 1 <= len(digits) <= 2:
            self.zone_hour, self.zone_minute = value, 0
        elif 3 <= len(digits) <= 4:
            self.zone_hour, self.zone_minute = divmod(value, 100)
        else:
            raise _NoDateError

    def time(self) -> float:
        local = self.day() * DAY + self.clock_time()
        if not self.sign:
            return from_local(local)
        # V8 counts the seconds in 32 bits without a sign, and refuses what would be negative.
        seconds = ((self.zone_hour or 0) * 3600 + (self.zone_minute or 0) * 60) % (1 << 32)
        if seconds >= 1 << 31:
            raise _NoDateError
        return clip(local - self.sign * seconds * 1000)

    def clock_time(self) -> int:
        clock = (self.clock + [0] * 4)[:4]
        if self.half is not None:
            if clock[0] > 12:
                raise _NoDateError
            clock[0] = clock[0] % 12 + self.half
        if not _is_clock(clock):
            raise _NoDateError
        return _clock_ms(clock)

    def day(self) -> int:
        if not self.date:
            raise _NoDateError
        first, second, third = (self.date + [1] * 2)[:3]
        is_day = 1 <= first <= 31
        if self.month is None:
            year, month, day = (third, first, second) if is_day else (first, second, third)
        else:
            month = self.month
            year, day = (second, first) if is_day else (first, second)
        if 0 <= year < 100:
            year += 2000 if year < 50 else 1900
        if not (1 <= month <= 12 and 1 <= day <= 31):
            raise _NoDateError
        return days(year, month, day)
