//! Date texts outside the standard's format, by V8's own rules.
//!
//! - A beginning in the standard's format is taken first.
//! - Words before the first number are ignored; after it only names of months, halves of a day (am,
//!   pm) and zones may come. Months count by their first three letters. Text in parentheses is
//!   ignored.
//! - A number before `:` belongs to the time, and so does the number after the last `:` of a time,
//!   which must then end in white space, a sign, `Z` or the end. `.` after seconds begins a fraction.
//! - After a time or a zone of zero offset a sign begins an offset: `+h`, `+hh`, `+hmm`, `+hhmm`,
//!   `+h:mm`. Elsewhere signs separate.
//! - All other numbers belong to the date, three at most: month, day, year; or year, month, day if
//!   the first cannot be a day; with a named month the first of two is the day if it can be. Missing
//!   parts are 1. Years below 50 count from 2000, those below 100 from 1900.
//! - Without a zone the time is local.

use super::{Clock, clip_whole, clock_ms, from_local, is_clock, is_day, midnight};
use std::iter::Peekable;
use std::str::Chars;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const ZONES: [(&str, i64); 12] = [
    ("ut", 0),
    ("utc", 0),
    ("z", 0),
    ("gmt", 0),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
];

/// No year behind it has a time; so nothing overflows.
const LAST_YEAR: i64 = 275_760;

/// A number counts by its first nine digits after the zeros in front.
const SIGNIFICANT: usize = 9;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number {
        value: i64,
        digits: Vec<u8>,
    },
    /// One of `: - + . )`.
    Symbol(char),
    /// In lower case.
    Word(String),
    Space,
    Other,
    End,
}

/// The time of a text, if it is one.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut date = LooseDate::begin(text);
    while date.ahead != Token::End {
        match date.take() {
            Token::Number { value, .. } => date.number(value)?,
            Token::Word(word) => date.word(&word)?,
            Token::Symbol(sign @ ('+' | '-')) if date.expects_offset() => {
                date.offset(if sign == '+' { 1 } else { -1 })?;
            }
            Token::Symbol('+' | '-' | ')') if date.has_number => return None,
            _ => {}
        }
    }
    date.time()
}

/// The value of a fraction's digits in milliseconds; of more than nine digits, zeros in front count
/// among the nine.
pub(super) fn milliseconds(digits: &[u8]) -> i64 {
    value_of(digits) * 1000 / 10_i64.pow(digits.len().min(SIGNIFICANT) as u32)
}

fn value_of(digits: &[u8]) -> i64 {
    let significant = digits.iter().skip_while(|&&byte| byte == b'0');
    significant
        .take(SIGNIFICANT)
        .fold(0, |value, byte| value * 10 + i64::from(byte - b'0'))
}

/// V8's white space, in which U+2028 and U+2029 are parts of words.
fn is_space(char: char) -> bool {
    matches!(char, '\t'..='\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

struct Tokens<'a>(Peekable<Chars<'a>>);

impl Tokens<'_> {
    fn next(&mut self) -> Token {
        let Some(&char) = self.0.peek() else {
            return Token::End;
        };
        if char.is_ascii_digit() {
            return self.number();
        }
        if char >= 'A' && !is_space(char) {
            return Token::Word(self.word());
        }
        self.0.next();
        match char {
            ':' | '-' | '+' | '.' | ')' => Token::Symbol(char),
            '(' => {
                self.skip_parentheses();
                Token::Other
            }
            _ if is_space(char) => Token::Space,
            _ => Token::Other,
        }
    }

    fn number(&mut self) -> Token {
        let mut digits = Vec::new();
        while let Some(char) = self.0.next_if(char::is_ascii_digit) {
            digits.push(char as u8);
        }
        Token::Number {
            value: value_of(&digits),
            digits,
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(char) = self.0.next_if(|&char| char >= 'A' && !is_space(char)) {
            word.push(char.to_ascii_lowercase());
        }
        word
    }

    /// Passes over the rest of a parenthesis; one that stays open has all the rest.
    fn skip_parentheses(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.0.next() {
                Some('(') => depth += 1,
                Some(')') => depth -= 1,
                Some(_) => {}
                None => return,
            }
        }
    }
}

/// A date being put together from tokens; `ahead` is the token that comes next.
struct LooseDate<'a> {
    tokens: Tokens<'a>,
    ahead: Token,
    has_number: bool,
    date: Vec<i64>,
    month: Option<i64>,
    clock: Vec<i64>,
    half: Option<i64>,
    /// 0 without a zone.
    sign: i64,
    zone_hour: Option<i64>,
    zone_minute: Option<i64>,
}

impl<'a> LooseDate<'a> {
    fn begin(text: &'a str) -> Self {
        let (date, rest) = standard_beginning(text);
        let mut tokens = Tokens(rest.chars().peekable());
        Self {
            ahead: tokens.next(),
            tokens,
            has_number: !date.is_empty(),
            date,
            month: None,
            clock: Vec::new(),
            half: None,
            sign: 0,
            zone_hour: None,
            zone_minute: None,
        }
    }

    fn take(&mut self) -> Token {
        std::mem::replace(&mut self.ahead, self.tokens.next())
    }

    fn take_symbol(&mut self, symbol: char) -> bool {
        let found = self.ahead == Token::Symbol(symbol);
        if found {
            self.take();
        }
        found
    }

    fn expects_offset(&self) -> bool {
        !self.clock.is_empty() || (self.zone_hour, self.zone_minute) == (Some(0), Some(0))
    }

    fn number(&mut self, value: i64) -> Option<()> {
        self.has_number = true;
        if self.take_symbol(':') {
            return self.before_colon(value);
        }
        if self.take_symbol('.') && self.clock_expects(value) {
            self.clock.push(value);
            return self.fraction();
        }
        if self.zone_hour.is_some() && self.zone_minute.is_none() && value < 60 {
            self.zone_minute = Some(value);
        } else if self.clock_expects(value) {
            self.end_clock(value);
            return self.may_end_clock().then_some(());
        } else {
            return self.date_part(value);
        }
        Some(())
    }

    fn clock_expects(&self, value: i64) -> bool {
        const LIMITS: [i64; 4] = [24, 60, 60, 1000];
        let at = self.clock.len();
        at > 0 && LIMITS.get(at).is_some_and(|&limit| value < limit)
    }

    fn before_colon(&mut self, value: i64) -> Option<()> {
        let minutes_missing = self.ahead == Token::Symbol(':');
        if self.clock.len() == 4 || (minutes_missing && !self.clock.is_empty()) {
            return None;
        }
        self.clock.push(value);
        if minutes_missing {
            self.take();
            self.clock.push(0);
        } else {
            self.take_symbol('.');
        }
        Some(())
    }

    fn fraction(&mut self) -> Option<()> {
        let Token::Number { digits, .. } = self.take() else {
            return None;
        };
        self.end_clock(milliseconds(&digits));
        Some(())
    }

    /// Adds the last part of the time; what is missing is zero.
    fn end_clock(&mut self, value: i64) {
        self.clock.push(value);
        self.clock.resize(4, 0);
    }

    fn may_end_clock(&self) -> bool {
        match &self.ahead {
            Token::End | Token::Space | Token::Symbol('+' | '-') => true,
            Token::Word(word) => word == "z",
            _ => false,
        }
    }

    fn date_part(&mut self, value: i64) -> Option<()> {
        if self.date.len() == 3 {
            return None;
        }
        self.date.push(value);
        self.take_symbol('-');
        Some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let half = match word {
            "am" => Some(0),
            "pm" => Some(12),
            _ => None,
        };
        let zone = ZONES.iter().find(|(name, _)| *name == word);
        if half.is_some() && !self.clock.is_empty() {
            self.half = half;
        } else if let Some(at) = MONTHS.iter().position(|name| word.starts_with(name)) {
            self.month = Some(at as i64 + 1);
            self.take_symbol('-');
        } else if let (Some((_, hours)), true) = (zone, self.has_number) {
            self.sign = if *hours < 0 { -1 } else { 1 };
            (self.zone_hour, self.zone_minute) = (Some(hours.abs()), Some(0));
        } else if self.has_number || matches!(self.ahead, Token::Number { .. }) {
            return None;
        }
        Some(())
    }

    /// Reads an offset from UTC after its sign; it may stop before its minutes.
    fn offset(&mut self, sign: i64) -> Option<()> {
        self.sign = sign;
        self.has_number = true;
        let (mut value, mut length) = (0, 0);
        if let Token::Number {
            value: number,
            digits,
        } = &self.ahead
        {
            (value, length) = (*number, digits.len());
            self.take();
        }
        (self.zone_hour, self.zone_minute) = match length {
            _ if self.ahead == Token::Symbol(':') => (Some(value), None),
            1 | 2 => (Some(value), Some(0)),
            3 | 4 => (Some(value / 100), Some(value % 100)),
            _ => return None,
        };
        Some(())
    }

    fn time(&self) -> Option<i64> {
        let local = midnight(self.day()?) + clock_ms(self.time_of_day()?);
        if self.sign == 0 {
            return from_local(local);
        }
        let hours = self.zone_hour.unwrap_or(0);
        let seconds = hours * 3600 + self.zone_minute.unwrap_or(0) * 60;
        // V8 counts the seconds in 32 bits without a sign, and refuses what would be negative.
        let seconds = seconds.rem_euclid(1 << 32);
        let offset = self.sign * seconds * 1000;
        (seconds < 1 << 31)
            .then(|| clip_whole(local - offset))
            .flatten()
    }

    fn time_of_day(&self) -> Option<Clock> {
        let mut clock = [0; 4];
        for (part, value) in clock.iter_mut().zip(&self.clock) {
            *part = *value;
        }
        if let Some(half) = self.half {
            if clock[0] > 12 {
                return None;
            }
            clock[0] = clock[0] % 12 + half;
        }
        is_clock(clock).then_some(clock)
    }

    fn day(&self) -> Option<(i64, i64, i64)> {
        let part = |at: usize| self.date.get(at).copied().unwrap_or(1);
        let (first, second, third) = (*self.date.first()?, part(1), part(2));
        let first_is_day = (1..=31).contains(&first);
        let (year, month, day) = match self.month {
            None if first_is_day => (third, first, second),
            None => (first, second, third),
            Some(month) if first_is_day => (second, month, first),
            Some(month) => (first, month, second),
        };
        let year = match year {
            0..50 => year + 2000,
            50..100 => year + 1900,
            _ => year,
        };
        let exists = is_day(month, day) && year.abs() <= LAST_YEAR;
        exists.then_some((year, month, day))
    }
}

/// Takes the parts that a date in the standard's format has at the text's start, and gives the rest.
fn standard_beginning(text: &str) -> (Vec<i64>, &str) {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let width = if unsigned.len() < text.len() { 6 } else { 4 };
    let Some((year, mut rest)) = number_of(unsigned, width) else {
        return (Vec::new(), text);
    };
    if negative && year == 0 {
        return (Vec::new(), rest); // no such year: its digits are dropped
    }
    let mut date = vec![if negative { -year } else { year }];
    for limit in [12, 31] {
        let Some(behind) = rest.strip_prefix('-') else {
            break;
        };
        rest = behind;
        match number_of(rest, 2) {
            Some((value, behind)) if (1..=limit).contains(&value) => {
                date.push(value);
                rest = behind;
            }
            _ => break,
        }
    }
    (date, rest)
}

/// A number of exactly `width` digits at the start of a text, and what follows.
fn number_of(text: &str, width: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (head, rest) = text.split_at(length);
    (length == width).then(|| (value_of(head.as_bytes()), rest))
}
