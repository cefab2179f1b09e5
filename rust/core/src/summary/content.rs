//! The values a listing shows, from JSON texts that were validated before.

use crate::json;

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
    let total = member(usage, "cost").and_then(|cost| member(cost, "total"));
    match total {
        Some(value @ [b'-' | b'0'..=b'9', ..]) => {
            Some(json::number(value)).filter(|cost| cost.is_finite())
        }
        _ => None,
    }
    .unwrap_or(0.0)
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
