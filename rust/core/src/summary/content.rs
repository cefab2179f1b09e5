//! The values a listing shows, from JSON texts that were validated before.

use crate::json;
use memchr::{memchr, memchr2, memmem, memrchr};

/// A string in WTF-8; `None` of another value.
pub(super) fn string(value: &[u8]) -> Option<Vec<u8>> {
    inside(value).map(|raw| json::decode_string(raw).into_owned())
}

/// What stands between the quotes of a string.
fn inside(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Whether a value is this string.
pub(super) fn is_text(value: &[u8], wanted: &str) -> bool {
    inside(value).is_some_and(|raw| json::key_is(raw, wanted))
}

/// A string that is overwritten often, and decoded once.
#[derive(Debug, Default)]
pub(super) struct Slot {
    filled: bool,
    raw: Vec<u8>,
}

impl Slot {
    /// Takes the place of what was there; another value than a string empties it.
    pub(super) fn set(&mut self, value: &[u8]) {
        let raw = inside(value);
        self.filled = raw.is_some();
        self.raw.clear();
        self.raw.extend_from_slice(raw.unwrap_or_default());
    }

    pub(super) fn text(&self) -> Option<Vec<u8>> {
        self.filled
            .then(|| json::decode_string(&self.raw).into_owned())
    }
}

/// Appends the text of a message's content, and a space before it where text stands already.
pub(super) fn push_apart(out: &mut Vec<u8>, content: &[u8]) {
    let before = out.len();
    if before > 0 {
        out.push(b' ');
    }
    let start = out.len();
    push_text(out, content);
    if out.len() == start {
        out.truncate(before);
    }
}

/// Appends the text of a message's content: a string, or the text blocks joined by spaces.
pub(super) fn push_text(out: &mut Vec<u8>, content: &[u8]) {
    if let Some(raw) = inside(content) {
        out.extend_from_slice(&json::decode_string(raw));
    }
    if content.first() != Some(&b'[') {
        return;
    }
    let mut first = true;
    for block in json::elements(content) {
        let Some(text) = block_text(block) else {
            continue;
        };
        if !first {
            out.push(b' ');
        }
        first = false;
        push_joined(out, text);
    }
}

/// The `text` of a text block (null if it has none); `None` of other blocks.
fn block_text(block: &[u8]) -> Option<&[u8]> {
    let (mut is_text_block, mut text) = (false, &b"null"[..]);
    if block.first() != Some(&b'{') {
        return None;
    }
    for (key, value) in json::members(block) {
        if json::key_is(key, "type") {
            is_text_block = is_text(value, "text");
        } else if json::key_is(key, "text") {
            text = value;
        }
    }
    is_text_block.then_some(text)
}

/// Appends a value as JavaScript joins it with others: null is empty; what is no scalar is left out.
fn push_joined(out: &mut Vec<u8>, value: &[u8]) {
    match value.first() {
        Some(b'"') => {
            out.extend_from_slice(&json::decode_string(inside(value).unwrap_or_default()));
        }
        Some(b't' | b'f') => out.extend_from_slice(value),
        Some(b'-' | b'0'..=b'9') => push_number(out, json::number(value)),
        _ => {}
    }
}

/// JavaScript's text of a number.
fn push_number(out: &mut Vec<u8>, value: f64) {
    let size = value.abs();
    let text = if size.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else if size == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e21).contains(&size) {
        value.to_string()
    } else {
        let text = format!("{value:e}");
        if size < 1.0 {
            text
        } else {
            text.replace('e', "e+")
        }
    };
    out.extend_from_slice(text.as_bytes());
}

/// JavaScript's `Number(version ?? 1)`; `None` for NaN and for containers.
pub(super) fn version(value: &[u8]) -> Option<f64> {
    let number = match value.first() {
        Some(b'n' | b't') => 1.0,
        Some(b'f') => 0.0,
        Some(b'{' | b'[') => return None,
        Some(b'"') => number_of_text(trim(&string(value)?)),
        _ => json::number(value),
    };
    (!number.is_nan()).then_some(number)
}

/// JavaScript's `Number(text)` of a trimmed text, but for numbers in other bases.
fn number_of_text(text: &[u8]) -> f64 {
    match text {
        b"" => 0.0,
        text if text.iter().all(|b| b"+-.0123456789eE".contains(b)) => json::number(text),
        _ => f64::NAN,
    }
}

/// What a `usage` says it has cost; 0 where it says no finite number.
pub(super) fn cost(usage: &[u8]) -> f64 {
    match plain_total(usage).or_else(|| total(usage)) {
        Some(value @ [b'-' | b'0'..=b'9', ..]) => {
            Some(json::number(value)).filter(|cost| cost.is_finite())
        }
        _ => None,
    }
    .unwrap_or(0.0)
}

fn total(usage: &[u8]) -> Option<&[u8]> {
    member(usage, "cost").and_then(|cost| member(cost, "total"))
}

/// The same where it takes no search through all members: `{..., "cost": {...}}` without escapes and
/// without containers in the cost, which is what pi writes. None says nothing.
///
/// Without escapes every quote begins or ends a string, so what looks like a key here is one. The last
/// two brackets are those of the cost and of the usage, so no member comes behind.
fn plain_total(usage: &[u8]) -> Option<&[u8]> {
    let inside = usage.strip_prefix(b"{")?.strip_suffix(b"}}")?;
    let open = memrchr(b'{', inside)?;
    let before = inside[..open].strip_suffix(b"\"cost\":")?;
    let cost = &inside[open + 1..];
    if !matches!(before.last(), None | Some(b','))
        || memchr2(b'}', b'[', cost).is_some()
        || memchr(b'\\', usage).is_some()
    {
        return None;
    }
    let at = memmem::rfind(cost, b"\"total\"")?;
    let value = cost[at..].strip_prefix(b"\"total\":")?;
    let end = memchr(b',', value).unwrap_or(value.len());
    Some(value[..end].trim_ascii())
}

/// A member of an object; of duplicate keys the last one.
fn member<'a>(value: &'a [u8], name: &str) -> Option<&'a [u8]> {
    if value.first() != Some(&b'{') {
        return None;
    }
    let wanted = json::members(value).filter(|(key, _)| json::key_is(key, name));
    wanted.last().map(|(_, value)| value)
}

/// JavaScript's white space and ends of lines, in UTF-8.
const BLANKS: [&str; 25] = [
    "\t", "\n", "\u{b}", "\u{c}", "\r", " ", "\u{a0}", "\u{1680}", "\u{2000}", "\u{2001}",
    "\u{2002}", "\u{2003}", "\u{2004}", "\u{2005}", "\u{2006}", "\u{2007}", "\u{2008}", "\u{2009}",
    "\u{200a}", "\u{2028}", "\u{2029}", "\u{202f}", "\u{205f}", "\u{3000}", "\u{feff}",
];

/// `String.trim` of a WTF-8 text.
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = BLANKS.iter().find_map(|b| text.strip_prefix(b.as_bytes())) {
        text = rest;
    }
    while let Some(rest) = BLANKS.iter().find_map(|b| text.strip_suffix(b.as_bytes())) {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Objects with the keys that count and with others, nested, spaced, escaped, repeated.
    fn object(values: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
        let key = prop::sample::select(
            &[
                "cost",
                "cost",
                "total",
                "total",
                "input",
                "\\u0063ost",
                "tot\\u0061l",
                "a,\\\"total",
            ][..],
        );
        let blank = prop::sample::select(&["", "", "", " "][..]);
        let member = (key, blank.clone(), values, blank)
            .prop_map(|(key, a, value, b)| format!("\"{key}\"{a}:{b}{value}{a}"));
        let members = proptest::collection::vec(member, 0..4);
        members.prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    fn plain() -> impl Strategy<Value = String> + Clone {
        let values = [
            "1",
            "-2.5e3",
            "0.25",
            "1e999",
            "null",
            "\"a,b\"",
            "\"}}\"",
            "\"{\"",
            "\"\\\"\"",
            "[1,2]",
            "[{\"cost\":{\"total\":3}}]",
            "{}",
            "true",
        ];
        proptest::sample::select(values.to_vec()).prop_map(str::to_owned)
    }

    fn usage() -> impl Strategy<Value = String> {
        let inner = object(plain().boxed()).boxed();
        let cost = object(prop_oneof![3 => plain(), 1 => inner].boxed()).boxed();
        object(prop_oneof![plain(), cost].boxed())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Where the short way says something, it is what the search through all members says.
        #[test]
        fn the_short_way_to_the_cost_is_the_long_one(usage in usage()) {
            let usage = usage.as_bytes();
            prop_assert!(json::validate(usage).is_ok());
            if let Some(found) = plain_total(usage) {
                prop_assert_eq!(Some(found), total(usage).map(cut_at_comma));
            }
        }
    }

    /// A string is no number, wherever it ends.
    fn cut_at_comma(value: &[u8]) -> &[u8] {
        let end = memchr(b',', value).unwrap_or(value.len());
        &value[..end]
    }

    #[test]
    fn what_pi_writes_takes_the_short_way() {
        let usage =
            br#"{"input":1,"totalTokens":2,"cost":{"input":0.5,"output":0.25,"total":0.75}}"#;
        assert_eq!(plain_total(usage), Some(&b"0.75"[..]));
    }
}
