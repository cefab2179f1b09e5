//! Times as `new Date(value)` gives them in V8, the JavaScript engine of Node.
//!
//! A time is a whole number of milliseconds since 1970 in UTC, in the proleptic Gregorian calendar,
//! at most 100,000,000 days from 1970; what is no time is `None`. Nearly every date of a session is
//! written as `2026-08-31T10:30:00.000Z`, which is read by [`written`] alone. Then comes the format
//! of ECMA-262,
//!
//! ```text
//! YYYY[-MM[-DD]][Thh:mm[:ss[.fraction]][Z | ±hh:mm | ±hhmm]]        (or ±YYYYYY for the year)
//! ```
//!
//! in which a date alone is UTC and a date with a time but without a zone is local; everything else
//! goes to [`loose`]. A NUL ends the text.

mod loose;
#[cfg(test)]
mod tests;

use crate::json;
use chrono::{DateTime, Days, FixedOffset, Local, MappedLocalTime, NaiveDateTime, TimeZone};

const DAY: i64 = 86_400_000;

/// The last time there is, in milliseconds since 1970; the first one is its negative.
pub const LIMIT: i64 = 100_000_000 * DAY;

/// The time of a date text in WTF-8, if it is one.
///
/// ```
/// use sessiontree_core::dates::parse;
/// assert_eq!(parse(b"2024-01-01"), Some(1_704_067_200_000));
/// assert_eq!(parse(b"Mon, 01 Jan 2024 00:00:00 GMT"), Some(1_704_067_200_000));
/// assert_eq!(parse(b"20240101"), None);
/// ```
pub fn parse(text: &[u8]) -> Option<i64> {
    if let Some(ms) = written(text) {
        return Some(ms);
    }
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    let text = &text[..end];
    standard(text).or_else(|| loose::parse(&String::from_utf8_lossy(text)))
}

/// The time that `new Date(value)` has for a JSON text that was validated before; `None` for an
/// empty text (the member is missing) and for containers.
///
/// ```
/// use sessiontree_core::dates::of_json;
/// assert_eq!(of_json(b"1704067200000.9"), Some(1_704_067_200_000));
/// assert_eq!(of_json(b"null"), Some(0));
/// assert_eq!(of_json(b""), None);
/// ```
pub fn of_json(value: &[u8]) -> Option<i64> {
    match value {
        [b'"', text @ .., b'"'] => written(text).or_else(|| parse(&json::decode_string(text))),
        [b'n' | b'f', ..] => Some(0),
        [b't', ..] => Some(1),
        [] | [b'{' | b'[', ..] => None,
        // Nearly every number is whole; 15 digits cannot be out of range.
        number if number.len() < 16 => digits(number).or_else(|| clip(json::number(number))),
        number => clip(json::number(number)),
    }
}

/// Cuts the fraction off a time; `None` where no time is.
///
/// ```
/// use sessiontree_core::dates::clip;
/// assert_eq!(clip(-1.5), Some(-1));
/// assert_eq!(clip(f64::INFINITY), None);
/// ```
pub fn clip(ms: f64) -> Option<i64> {
    (ms.abs() <= LIMIT as f64).then_some(ms as i64)
}

fn clip_whole(ms: i64) -> Option<i64> {
    (ms.abs() <= LIMIT).then_some(ms)
}

/// `YYYY-MM-DDTHH:MM:SS.sssZ`, the only form that pi writes.
pub(crate) fn written(text: &[u8]) -> Option<i64> {
    const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let text: &[u8; 24] = text.try_into().ok()?;
    let mut digits = [0; 24];
    let mut sound = true;
    for ((digit, &byte), &form) in digits.iter_mut().zip(text).zip(FORM) {
        // Where the form has a digit its value is left, elsewhere nothing.
        *digit = byte ^ form;
        sound &= *digit <= if form == b'0' { 9 } else { 0 };
    }
    let two = |at: usize| i64::from(digits[at]) * 10 + i64::from(digits[at + 1]);
    let date = (two(0) * 100 + two(2), two(5), two(8));
    let (hour, minute, second) = (two(11), two(14), two(17));
    let milli = i64::from(digits[20]) * 100 + two(21);
    sound &= is_day(date.1, date.2) && hour < 24 && minute < 60 && second < 60;
    sound.then(|| midnight(date) + clock_ms([hour, minute, second, milli]))
}

/// The written form of a time; None outside of the years 0 to 9999, which have another one.
///
/// ```
/// use sessiontree_core::dates::to_written;
/// assert_eq!(&to_written(951_782_400_007).unwrap(), b"2000-02-29T00:00:00.007Z");
/// ```
pub fn to_written(ms: i64) -> Option<[u8; 24]> {
    let (days, rest) = (ms.div_euclid(DAY), ms.rem_euclid(DAY));
    // The reverse of `midnight`: eras of 400 years from a first of March on.
    let from_march = days + 719_468;
    let (era, of_era) = (
        from_march.div_euclid(146_097),
        from_march.rem_euclid(146_097),
    );
    let of_year = |year: i64| of_era - (365 * year + year / 4 - year / 100);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let month = (5 * of_year(year) + 2) / 153;
    let day = of_year(year) - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    if !(0..10_000).contains(&year) {
        return None;
    }
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let (second, milli) = (rest / 1000, rest % 1000);
    let parts = [
        (0..4, year),
        (5..7, month),
        (8..10, day),
        (11..13, second / 3600),
        (14..16, second / 60 % 60),
        (17..19, second % 60),
        (20..23, milli),
    ];
    for (places, mut value) in parts {
        for at in places.rev() {
            text[at] += (value % 10) as u8;
            value /= 10;
        }
    }
    Some(text)
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit()
            .then(|| value * 10 + i64::from(byte - b'0'))
    })
}

fn is_day(month: i64, day: i64) -> bool {
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// Milliseconds from 1970 to the start of (year, month, day); a day behind the month's end runs on
/// into the next month.
fn midnight((year, month, day): (i64, i64, i64)) -> i64 {
    // Years begin in March here, so that the leap day is a year's last.
    let year = if month > 2 { year } else { year - 1 };
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    (year * 365 + leap_days + of_year - 719_468) * DAY
}

type Clock = [i64; 4];

/// Whether a time of day exists; 24:00 does, as the end of the day.
fn is_clock(clock: Clock) -> bool {
    let [hour, minute, second, milli] = clock;
    clock == [24, 0, 0, 0] || (hour < 24 && minute < 60 && second < 60 && milli < 1000)
}

fn clock_ms([hour, minute, second, milli]: Clock) -> i64 {
    ((hour * 60 + minute) * 60 + second) * 1000 + milli
}

/// Text being read from the front.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        wanted.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    /// Exactly `count` digits.
    fn number(&mut self, count: usize) -> Option<i64> {
        let (head, rest) = self.0.split_at_checked(count)?;
        let value = digits(head)?;
        self.0 = rest;
        Some(value)
    }

    /// A mark and two digits; 0 if the mark is not there.
    fn optional(&mut self, mark: u8, missing: i64) -> Option<i64> {
        if self.take(&[mark]).is_some() {
            self.number(2)
        } else {
            Some(missing)
        }
    }

    /// One digit or more.
    fn digits(&mut self) -> Option<&[u8]> {
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit());
        let (head, rest) = self.0.split_at(digits.count());
        self.0 = rest;
        (!head.is_empty()).then_some(head)
    }
}

/// The format of ECMA-262; what it does not hold (a time out of range, too) may go to [`loose`].
fn standard(text: &[u8]) -> Option<i64> {
    let mut at = Cursor(text);
    let date = standard_date(&mut at)?;
    if at.0.is_empty() {
        return clip_whole(midnight(date));
    }
    at.take(b"tT")?;
    let clock = standard_clock(&mut at)?;
    let local = midnight(date) + clock_ms(clock);
    if at.0.is_empty() {
        return from_local(local);
    }
    let offset = standard_zone(&mut at)?;
    at.0.is_empty()
        .then(|| clip_whole(local - offset * 60_000))
        .flatten()
}

fn standard_date(at: &mut Cursor<'_>) -> Option<(i64, i64, i64)> {
    let year = match at.take(b"+-") {
        None => at.number(4)?,
        Some(sign) => match (sign, at.number(6)?) {
            (b'-', 0) => return None,
            (b'-', year) => -year,
            (_, year) => year,
        },
    };
    let month = at.optional(b'-', 1)?;
    let day = at.optional(b'-', 1)?;
    is_day(month, day).then_some((year, month, day))
}

fn standard_clock(at: &mut Cursor<'_>) -> Option<Clock> {
    let hour = at.number(2)?;
    at.take(b":")?;
    let minute = at.number(2)?;
    let mut clock = [hour, minute, 0, 0];
    if at.take(b":").is_some() {
        clock[2] = at.number(2)?;
        if at.take(b".").is_some() {
            let fraction = at.digits()?;
            if hour == 24 && fraction.iter().any(|&digit| digit != b'0') {
                return None; // behind the end of the day, be it by less than a millisecond
            }
            clock[3] = loose::milliseconds(fraction);
        }
    }
    is_clock(clock).then_some(clock)
}

/// Minutes ahead of UTC.
fn standard_zone(at: &mut Cursor<'_>) -> Option<i64> {
    let sign = match at.take(b"zZ+-")? {
        b'+' => 1,
        b'-' => -1,
        _ => return Some(0),
    };
    let hour = at.number(2)?;
    at.take(b":");
    let minute = at.number(2)?;
    (hour < 24 && minute < 60).then_some(sign * (hour * 60 + minute))
}

/// Turns a local wall-clock time into UTC.
///
/// A time that the clock skips counts as if it had not been put forward yet; of a time that comes
/// twice the first is meant.
fn from_local(ms: i64) -> Option<i64> {
    // The calendar repeats after 400 years, and a zone's last rule goes on for ever; that spares
    // chrono the years that it does not count.
    const CYCLE: i64 = 146_097 * DAY;
    let cycles = (ms / CYCLE - 1).max(0);
    let near = (ms - cycles * CYCLE).max(-LIMIT / 2);
    let naive = DateTime::from_timestamp_millis(near)?.naive_utc();
    clip_whole(ms - offset_of(&naive) * 1000)
}

/// Seconds by which local clocks that show `naive` are ahead of UTC.
fn offset_of(naive: &NaiveDateTime) -> i64 {
    let seconds = |offset: FixedOffset| i64::from(offset.local_minus_utc());
    match Local.offset_from_local_datetime(naive) {
        MappedLocalTime::Single(offset) => seconds(offset),
        MappedLocalTime::Ambiguous(one, other) => seconds(one).max(seconds(other)),
        MappedLocalTime::None => naive
            .checked_sub_days(Days::new(1))
            .and_then(|before| Local.offset_from_local_datetime(&before).earliest())
            .map_or(0, seconds),
    }
}
