//! Changes in an object's text that leave every other byte as it is.
//!
//! A rewrite must not lose what a decoder would: digits beyond a double, escapes, white space, the
//! order of keys, duplicate keys. So values are replaced where they stand, new members are written
//! behind the last one, and removed members go with one comma. Of duplicate keys the last one
//! counts, so its value is the one that is replaced; a removal takes them all.

use crate::json::{self, Members};
use std::ops::Range;

/// New text for a place in an old one.
pub(crate) type Edit<'a> = (Range<usize>, &'a [u8]);

/// A new member: its key, which must need no escapes, and its value's text.
pub type Member<'a> = (&'a str, &'a [u8]);

/// Gives the text of `object` with the members of `set` replaced or added, and without those of
/// `remove`. The text must be that of an object.
///
/// ```
/// use sessiontree_core::splice::splice;
/// let text = splice(br#"{"a": 1, "b": 1e400}"#, &[("a", b"2"), ("c", b"[]")], &["b"]);
/// assert_eq!(text, br#"{"a": 2,"c":[]}"#);
/// ```
pub fn splice(object: &[u8], set: &[Member<'_>], remove: &[&str]) -> Vec<u8> {
    let mut edits = Vec::new();
    let mut added = Vec::new();
    for &(key, value) in set {
        match spans(object).filter(|m| json::key_is(m.raw, key)).last() {
            Some(member) => edits.push((member.value, value)),
            None => added.push((key, value)),
        }
    }
    let removed = removals(object, remove);
    let bare = spans(object).count() == removed.len();
    edits.extend(removed.into_iter().map(|range| (range, &b""[..])));
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = Vec::with_capacity(object.len() + 64 * set.len());
    apply(object, &edits, &added, bare, &mut out);
    out
}

/// Writes `object` with edits in ascending order and members added at its end to `out`. `bare` says
/// that no other member is left.
pub(crate) fn apply(
    object: &[u8],
    edits: &[Edit<'_>],
    added: &[Member<'_>],
    bare: bool,
    out: &mut Vec<u8>,
) {
    let close = object.iter().rposition(|&b| b == b'}');
    let close = close.unwrap_or(object.len());
    let mut done = 0;
    for (range, text) in edits {
        out.extend_from_slice(&object[done..range.start]);
        out.extend_from_slice(text);
        done = range.end;
    }
    // White space before the brace stays before it.
    let last = object[done..close].trim_ascii_end().len() + done;
    out.extend_from_slice(&object[done..last]);
    for (n, (key, value)) in added.iter().enumerate() {
        let comma: &[u8] = if bare && n == 0 { b"\"" } else { b",\"" };
        for part in [comma, key.as_bytes(), b"\":", value] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(&object[last..]);
}

/// The JSON text of a string in WTF-8, as JSON.stringify writes it: lone surrogates are escaped.
///
/// ```
/// use sessiontree_core::splice::quoted;
/// assert_eq!(quoted(b"a\"\x1b\xed\xa0\x80"), br#""a\"\u001b\ud800""#);
/// ```
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote(text, &mut out);
    out
}

/// Writes the same to a buffer.
pub fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, behind) = rest.split_at(plain_bytes(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = behind.split_first() else {
            break;
        };
        rest = escape(byte, after, out);
    }
    out.push(b'"');
}

/// How many bytes at the beginning stand for themselves; perhaps fewer, before a byte 0xed.
fn plain_bytes(text: &[u8]) -> usize {
    let (words, _) = text.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let found = unusual(u64::from_le_bytes(*word));
        if found != 0 {
            return 8 * n + found.trailing_zeros() as usize / 8;
        }
    }
    let rest = &text[8 * words.len()..];
    let found = rest.iter().position(|&byte| UNUSUAL[usize::from(byte)]);
    8 * words.len() + found.unwrap_or(rest.len())
}

/// The bytes that may need an escape.
static UNUSUAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = unusual(byte as u64 | 0x2020_2020_2020_2000) != 0;
        byte += 1;
    }
    table
};

/// The highest bit of the first byte that may need an escape, and of some behind it.
const fn unusual(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    /// A byte that is zero; a borrow can only mark bytes behind one.
    const fn zero(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    let control = word.wrapping_sub(32 * ONES) & !word;
    let quotes = zero(word ^ (b'"' as u64 * ONES)) | zero(word ^ (b'\\' as u64 * ONES));
    (control | quotes | zero(word ^ (0xed * ONES))) & (0x80 * ONES)
}

/// Writes one byte that is not plain, or the surrogate that begins with it; gives what is left.
fn escape<'a>(byte: u8, after: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    match byte {
        b'"' | b'\\' => out.extend([b'\\', byte]),
        8 => out.extend(b"\\b"),
        b'\t' => out.extend(b"\\t"),
        b'\n' => out.extend(b"\\n"),
        12 => out.extend(b"\\f"),
        b'\r' => out.extend(b"\\r"),
        0..32 => out.extend(format!("\\u{byte:04x}").bytes()),
        0xed if let [middle @ 0xa0..0xc0, last, behind @ ..] = after => {
            let unit = 0xd000 | u32::from(middle & 0x3f) << 6 | u32::from(last & 0x3f);
            out.extend(format!("\\u{unit:04x}").bytes());
            return behind;
        }
        _ => out.push(byte),
    }
    after
}

/// A member and where it stands.
struct Span<'a> {
    raw: &'a [u8],
    key: usize,
    value: Range<usize>,
}

fn spans(object: &[u8]) -> impl Iterator<Item = Span<'_>> {
    let place = |part: &[u8]| part.as_ptr() as usize - object.as_ptr() as usize;
    let members: Members<'_> = json::members(object);
    members.map(move |(raw, value)| {
        let start = place(value);
        Span {
            raw,
            key: place(raw) - 1,
            value: start..start + value.len(),
        }
    })
}

/// The places to cut out so that these keys are gone: with the comma before them, or for the first
/// members with the one behind.
fn removals(object: &[u8], keys: &[&str]) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    if keys.is_empty() {
        return cuts;
    }
    let mut kept_before = None;
    let mut members = spans(object).peekable();
    while let Some(member) = members.next() {
        let wanted = keys.iter().any(|key| json::key_is(member.raw, key));
        let next = members.peek().map_or(member.value.end, |next| next.key);
        match kept_before {
            Some(end) if wanted => cuts.push(end..member.value.end),
            None if wanted => cuts.push(member.key..next),
            _ => {}
        }
        if kept_before.is_some() || !wanted {
            kept_before = Some(member.value.end);
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    #[test]
    fn places_by_hand() {
        let all = |text: &str, set: &[Member<'_>], remove: &[&str]| {
            String::from_utf8(splice(text.as_bytes(), set, remove)).unwrap()
        };
        assert_eq!(
            all("{}", &[("a", b"1"), ("b", b"2")], &[]),
            r#"{"a":1,"b":2}"#
        );
        assert_eq!(all(" { } \r", &[("a", b"1")], &[]), " {\"a\":1 } \r");
        assert_eq!(all(r#"{"a":1 }"#, &[("b", b"2")], &[]), r#"{"a":1,"b":2 }"#);
        assert_eq!(
            all(r#"{ "a" : 1 , "b" : 2 }"#, &[], &["a"]),
            r#"{ "b" : 2 }"#
        );
        assert_eq!(
            all(r#"{ "a" : 1 , "b" : 2 }"#, &[], &["b"]),
            r#"{ "a" : 1 }"#
        );
        assert_eq!(all(r#"{"a":1}"#, &[("b", b"2")], &["a"]), r#"{"b":2}"#);
        assert_eq!(all(r#"{"a":1,"a":2,"b":3}"#, &[], &["a"]), r#"{"b":3}"#);
        assert_eq!(all(r#"{"b":3,"a":1,"a":2}"#, &[], &["a"]), r#"{"b":3}"#);
        assert_eq!(
            all(r#"{"a":1,"a":2}"#, &[("a", b"3")], &[]),
            r#"{"a":1,"a":3}"#
        );
        assert_eq!(
            all(r#"{"\u0061":"}"}"#, &[("a", b"{}")], &[]),
            r#"{"\u0061":{}}"#
        );
    }

    /// Members as text, in their order; white space between all parts.
    fn object_text(members: &[(String, i32)], blanks: &[&str]) -> String {
        let blank = |n: usize| blanks[n % blanks.len()];
        let texts = members.iter().enumerate().map(|(n, (key, value))| {
            let key = Value::from(key.as_str());
            format!(
                "{}{key}{}:{}{value}{}",
                blank(n),
                blank(n + 1),
                blank(n + 2),
                blank(n + 3)
            )
        });
        format!("{{{}}}", texts.collect::<Vec<_>>().join(","))
    }

    proptest! {
        /// Strings are written as serde_json writes them, and read back as they were.
        #[test]
        fn strings_are_written_to_be_read(text: String) {
            let quoted = quoted(text.as_bytes());
            prop_assert_eq!(String::from_utf8_lossy(&quoted), serde_json::to_string(&text).unwrap());
        }

        /// Surrogates that stand alone are written as escapes that are read as them.
        #[test]
        fn lone_surrogates_read_back(units in prop::collection::vec(any::<u16>(), 0..9)) {
            let escapes: Vec<String> = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let escapes = escapes.concat();
            let text = json::decode_string(escapes.as_bytes());
            let quoted = quoted(&text);
            prop_assert!(std::str::from_utf8(&quoted).is_ok());
            prop_assert_eq!(json::decode_string(&quoted[1..quoted.len() - 1]), text);
        }

        /// The result reads as the object does after the same changes in memory.
        #[test]
        fn reads_as_changed(
            members in prop::collection::vec(("[abc\\\\\"]{1,2}", 0..9_i32), 0..6),
            blanks in prop::collection::vec(prop_oneof![Just(""), Just(" "), Just("\t\r")], 1..5),
            set in prop::collection::vec("[abcd]", 0..4),
            remove in prop::collection::vec("[abc]", 0..3),
        ) {
            let text = object_text(&members, &blanks);
            let mut set = set;
            set.sort();
            set.dedup();
            set.retain(|key| !remove.contains(key));
            let new: Vec<Member<'_>> = set.iter().map(|key| (key.as_str(), &b"\"new\""[..])).collect();
            let gone: Vec<&str> = remove.iter().map(String::as_str).collect();
            let spliced = splice(text.as_bytes(), &new, &gone);
            let mut expected: Map<String, Value> = serde_json::from_str(&text).unwrap();
            expected.retain(|key, _| !remove.contains(key));
            expected.extend(set.iter().map(|key| (key.clone(), Value::from("new"))));
            prop_assert!(json::validate(&spliced).is_ok(), "{}", String::from_utf8_lossy(&spliced));
            prop_assert_eq!(serde_json::from_slice::<Value>(&spliced).unwrap(), Value::Object(expected));
        }
    }
}
