//! The values behind the text: strings, numbers, truth.

use memchr::memmem;
use std::borrow::Cow;
use std::sync::LazyLock;

use super::Shape;

/// The bytes of a string in WTF-8, from the raw text between its quotes.
///
/// WTF-8 is UTF-8 that can hold lone surrogates (three bytes each), which
/// `JSON.parse` keeps. Escapes are decoded, an escaped pair of surrogates is
/// joined, and every maximal part that is not UTF-8 becomes U+FFFD, as the
/// WHATWG decoder does it. Text that `validate` would refuse is decoded as far
/// as it makes sense and never panics.
///
/// ```
/// use sessiontree_core::json::decode_string;
/// assert_eq!(&*decode_string(br"a\n\ud83d\ude80"), "a\n🚀".as_bytes());
/// assert_eq!(&*decode_string(br"\ud800"), b"\xed\xa0\x80");
/// assert_eq!(&*decode_string(b"\xff"), "\u{fffd}".as_bytes());
/// ```
pub fn decode_string(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', raw).is_none() && std::str::from_utf8(raw).is_ok() {
        return Cow::Borrowed(raw);
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        push_lossy(&mut out, &rest[..at]);
        rest = push_escape(&mut out, &rest[at + 1..]);
    }
    push_lossy(&mut out, rest);
    Cow::Owned(out)
}

fn push_lossy(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Decodes the escape whose backslash stood before `rest`; returns what follows.
fn push_escape<'a>(out: &mut Vec<u8>, rest: &'a [u8]) -> &'a [u8] {
    let Some((&letter, rest)) = rest.split_first() else {
        return rest;
    };
    match letter {
        b'b' => out.push(8),
        b'f' => out.push(12),
        b'n' => out.push(b'\n'),
        b'r' => out.push(b'\r'),
        b't' => out.push(b'\t'),
        b'u' => return push_unit(out, rest),
        other => out.push(other),
    }
    rest
}

/// Decodes a `\u` escape, and the next one too if both are one character.
fn push_unit<'a>(out: &mut Vec<u8>, rest: &'a [u8]) -> &'a [u8] {
    let Some((high, rest)) = unit(rest) else {
        return rest;
    };
    if (0xd800..0xdc00).contains(&high)
        && let Some((low @ 0xdc00..0xe000, rest)) = rest.strip_prefix(br"\u").and_then(unit)
    {
        push_point(out, 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)));
        return rest;
    }
    push_point(out, high);
    rest
}

/// Four hexadecimal digits and what follows them.
fn unit(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(4)?;
    let add = |value, &digit: &u8| Some(value << 4 | char::from(digit).to_digit(16)?);
    Some((digits.iter().try_fold(0, add)?, rest))
}

/// Appends a code point, surrogates included, as UTF-8 would write it.
fn push_point(out: &mut Vec<u8>, point: u32) {
    if let Some(char) = char::from_u32(point) {
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let low = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
        out.extend_from_slice(&[0xe0 | (point >> 12) as u8, low(6), low(0)]);
    }
}

/// Whether a raw key, between its quotes, is `name`; decodes only where an
/// escape stands.
///
/// ```
/// use sessiontree_core::json::key_is;
/// assert!(key_is(b"id", "id") && key_is(br"\u0069d", "id") && !key_is(b"ID", "id"));
/// ```
#[inline]
pub fn key_is(raw: &[u8], name: &str) -> bool {
    raw == name.as_bytes()
        // An escape is longer than what it stands for.
        || (raw.len() > name.len()
            && raw.contains(&b'\\')
            && *decode_string(raw) == *name.as_bytes())
}

/// The value of a number's text; too large is infinite, as in JavaScript.
///
/// Text that is no number gives NaN.
///
/// ```
/// use sessiontree_core::json::number;
/// assert_eq!(number(b"1e400"), f64::INFINITY);
/// assert_eq!(number(b"9007199254740993"), 9007199254740992.0);
/// ```
pub fn number(text: &[u8]) -> f64 {
    let text = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    text.unwrap_or(f64::NAN)
}

/// Whether the value of a valid line is one that pi drops as falsy: null,
/// false, a number equal to zero, the empty string.
///
/// ```
/// use sessiontree_core::json::{Shape, is_dropped};
/// assert!(is_dropped(b" 1e-400\r", Shape::Number) && is_dropped(b"null", Shape::Null));
/// assert!(!is_dropped(b"[]", Shape::Array));
/// ```
pub fn is_dropped(line: &[u8], shape: Shape) -> bool {
    match shape {
        Shape::Null | Shape::False => true,
        Shape::String => trimmed(line) == br#""""#,
        Shape::Number => number(trimmed(line)) == 0.0,
        Shape::Object | Shape::Array | Shape::True => false,
    }
}

fn trimmed(mut line: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = line {
        line = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = line {
        line = rest;
    }
    line
}

/// Made once: short texts are looked at faster than this is.
static MINUS_ZERO: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(b"-0"));

/// Whether the number `-0` may stand in a JSON text: it never says no where one does, and says yes
/// where a string looks like one.
pub fn may_hold_minus_zero(text: &[u8]) -> bool {
    let before = |at: usize| {
        at == 0
            || matches!(
                text[at - 1],
                b':' | b',' | b'[' | b' ' | b'\t' | b'\r' | b'\n'
            )
    };
    let after = |at: usize| {
        matches!(
            text.get(at),
            None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')
        )
    };
    MINUS_ZERO
        .find_iter(text)
        .any(|at| before(at) && after(at + 2))
}

/// Writes an integer.
///
/// ```
/// use sessiontree_core::json::write_integer;
/// for number in [0, 7, 10, -99, 100, 1_767_225_600_001, i64::MIN, i64::MAX] {
///     let mut out = Vec::new();
///     write_integer(number, &mut out);
///     assert_eq!(out, number.to_string().into_bytes());
/// }
/// ```
pub fn write_integer(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    // Two digits a division, as divisions are what takes time.
    while rest >= 10 {
        let pair = (rest % 100) as u8;
        rest /= 100;
        at -= 2;
        digits[at] = b'0' + pair / 10;
        digits[at + 1] = b'0' + pair % 10;
    }
    if rest > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a double as JSON.stringify does: null if it is not finite.
///
/// Both languages write the shortest digits that read back as the same double (ECMA-262,
/// `Number::toString`).
///
/// ```
/// use sessiontree_core::json::write_number;
/// let mut out = Vec::new();
/// for number in [1.0, -0.0, 0.1, 1e-7, 1e21, f64::NAN] {
///     write_number(number, &mut out);
///     out.push(b' ');
/// }
/// assert_eq!(out, b"1 0 0.1 1e-7 1e+21 null ");
/// ```
pub fn write_number(number: f64, out: &mut Vec<u8>) {
    let size = number.abs();
    let text = if !number.is_finite() {
        "null".to_owned()
    } else if number == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e21).contains(&size) {
        number.to_string()
    } else if size > 1.0 {
        format!("{number:e}").replace('e', "e+")
    } else {
        format!("{number:e}")
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod minus_zero {
    use super::may_hold_minus_zero;

    #[test]
    fn every_place_of_the_number_is_found() {
        for text in [
            "-0",
            " -0 ",
            "[-0]",
            "[1,-0]",
            "{\"a\":-0}",
            "{\"a\": -0\n}",
            "[1,\t-0\r\n,2]",
        ] {
            assert!(may_hold_minus_zero(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_numbers_and_dates_are_not() {
        for text in [
            "0",
            "[-0.5]",
            "[-01]",
            "[1e-0]",
            "\"2026-01-05\"",
            "{\"a\":\"-0\"}",
            "[-0e1]",
        ] {
            assert!(!may_hold_minus_zero(text.as_bytes()), "{text}");
        }
    }
}
