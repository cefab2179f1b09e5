//! What the index needs of one line: type, id, parent, time, role.
//!
//! Everything is taken by JavaScript's rules (the last of duplicate keys counts, keys may be
//! escaped), in the same pass that checks the line.

use crate::dates;
use crate::json::{self, Fault, Shape, Visitor};
use std::borrow::Cow;
use std::ops::Range;

#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// An object whose `type` is a string that is not listed here.
    Unknown = 0,
    Message = 1,
    ModelChange = 2,
    ThinkingLevelChange = 3,
    Usage = 4,
    Compaction = 5,
    BranchSummary = 6,
    Custom = 7,
    CustomMessage = 8,
    ContextEdit = 9,
    Label = 10,
    SessionInfo = 11,
    /// A scalar, an array, or an object whose `type` is no string.
    Untyped = 12,
    /// A session header; never a row of the index.
    Header = 13,
}

impl Kind {
    /// The kind with this number, if there is one.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [Kind; 14] = [
            Kind::Unknown,
            Kind::Message,
            Kind::ModelChange,
            Kind::ThinkingLevelChange,
            Kind::Usage,
            Kind::Compaction,
            Kind::BranchSummary,
            Kind::Custom,
            Kind::CustomMessage,
            Kind::ContextEdit,
            Kind::Label,
            Kind::SessionInfo,
            Kind::Untyped,
            Kind::Header,
        ];
        ALL.get(usize::from(byte)).copied()
    }
}

/// The role of a message entry's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// No message entry, or a message without a string role.
    None = 0,
    User = 1,
    Assistant = 2,
    ToolResult = 3,
    System = 4,
    BashExecution = 5,
    Custom = 6,
    BranchSummary = 7,
    CompactionSummary = 8,
    HookMessage = 9,
    Other = 10,
}

impl Role {
    /// The role with this number, if there is one.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [Role; 11] = [
            Role::None,
            Role::User,
            Role::Assistant,
            Role::ToolResult,
            Role::System,
            Role::BashExecution,
            Role::Custom,
            Role::BranchSummary,
            Role::CompactionSummary,
            Role::HookMessage,
            Role::Other,
        ];
        ALL.get(usize::from(byte)).copied()
    }
}

/// An id or parent id as JavaScript's Map compares it: by type and value.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    Missing,
    Null,
    Bool(bool),
    Number(f64),
    Text(Text),
    /// An object or array: equal to nothing.
    Opaque,
}

/// A string in WTF-8. Ids as pi makes them, eight ASCII characters, need no memory of their own:
/// a scan makes two of them for every line.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Held);

#[derive(Clone, PartialEq, Eq)]
enum Held {
    /// Eight ASCII characters; always, if it is that.
    Short([u8; 8]),
    Long(Box<[u8]>),
}

impl Text {
    /// The string of a raw text.
    fn decode(raw: &[u8]) -> Self {
        match raw.try_into() {
            Ok(short) if raw.is_ascii() && !raw.contains(&b'\\') => Self(Held::Short(short)),
            _ => json::decode_string(raw)[..].into(),
        }
    }

    /// The characters as a number, if it is eight ASCII ones.
    pub(crate) fn packed(&self) -> Option<u64> {
        match self.0 {
            Held::Short(bytes) => Some(u64::from_le_bytes(bytes)),
            Held::Long(_) => None,
        }
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(match bytes.try_into() {
            Ok(short) if bytes.is_ascii() => Held::Short(short),
            _ => Held::Long(bytes.into()),
        })
    }
}

impl std::ops::Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Short(bytes) => bytes,
            Held::Long(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        String::from_utf8_lossy(self).fmt(f)
    }
}

impl Key {
    /// Whether JavaScript calls the value falsy: as a parent it means "none".
    pub fn is_falsy(&self) -> bool {
        match self {
            Self::Missing | Self::Null | Self::Bool(false) => true,
            Self::Number(n) => *n == 0.0 || n.is_nan(),
            Self::Text(t) => t.is_empty(),
            Self::Bool(true) | Self::Opaque => false,
        }
    }

    /// The key of a value's text, which was validated before; missing if that is empty.
    pub(crate) fn of(text: &[u8]) -> Self {
        match text.first() {
            None => Self::Missing,
            Some(b'"') => Self::Text(Text::decode(&text[1..text.len() - 1])),
            Some(b'{' | b'[') => Self::Opaque,
            Some(b'n') => Self::Null,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            _ => Self::Number(json::number(text)),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("(no id)"),
            Self::Null => f.write_str("null"),
            Self::Bool(b) => b.fmt(f),
            Self::Number(n) => n.fmt(f),
            Self::Text(t) => std::fmt::Debug::fmt(t, f),
            Self::Opaque => f.write_str("(an object)"),
        }
    }
}

/// The time of an entry whose timestamp is no date for JavaScript.
pub const TIME_UNKNOWN: i64 = i64::MIN;

/// What one line tells the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub kind: Kind,
    pub role: Role,
    pub id: Key,
    pub parent: Key,
    /// Milliseconds since 1970 UTC, or [`TIME_UNKNOWN`].
    pub time: i64,
    /// A value that JavaScript calls falsy (`null`, `false`, `0`, `""`): such lines are dropped.
    pub dropped: bool,
}

/// Where the members lie that make the envelope, in the line that is being walked. Nothing that
/// is there is empty.
#[derive(Debug, Default)]
pub(crate) struct Members {
    kind: Range<usize>,
    id: Range<usize>,
    parent: Range<usize>,
    time: Range<usize>,
    role: Range<usize>,
    /// The role in the object that is being walked; it counts if that turns out to be the message.
    inner_role: Range<usize>,
}

impl Visitor for Members {
    #[inline]
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        if depth == 2 {
            self.inner_role = value;
            return;
        }
        let role = std::mem::take(&mut self.inner_role);
        match key {
            b"type" => self.kind = value,
            b"id" => self.id = value,
            b"parentId" => self.parent = value,
            b"timestamp" => self.time = value,
            b"message" => self.role = role,
            _ if key.contains(&b'\\') => {
                self.inner_role = role;
                self.escaped_member(&json::decode_string(key), value);
            }
            _ => {}
        }
    }

    #[inline]
    fn wants(&self, depth: u8, key: &[u8]) -> bool {
        // A key of up to eight bytes has no escape in it that could stand for a letter of "role".
        depth == 1 || key == b"role" || key.len() > 8 && json::key_is(key, "role")
    }
}

impl Members {
    #[cold]
    fn escaped_member(&mut self, name: &[u8], value: Range<usize>) {
        if !name.contains(&b'\\') {
            self.member(1, name, value);
        }
    }

    /// The envelope of a valid line of this shape.
    pub(crate) fn envelope(&self, line: &[u8], shape: Shape) -> Envelope {
        let text = |range: &Range<usize>| &line[range.clone()];
        let kind = kind_of(text(&self.kind));
        let role = match kind {
            Kind::Message => role_of(text(&self.role)),
            _ => Role::None,
        };
        Envelope {
            kind,
            role,
            id: Key::of(text(&self.id)),
            parent: Key::of(text(&self.parent)),
            time: dates::of_json(text(&self.time)).unwrap_or(TIME_UNKNOWN),
            dropped: json::is_dropped(line, shape),
        }
    }
}

/// Checks a line and reads its envelope.
pub fn read(line: &[u8]) -> Result<Envelope, Fault> {
    let mut members = Members::default();
    let shape = json::walk(line, &mut members)?;
    Ok(members.envelope(line, shape))
}

/// The string of a raw text, for comparing with ASCII names: decoded only where an escape stands.
fn plain(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.contains(&b'\\') {
        return json::decode_string(raw);
    }
    Cow::Borrowed(raw)
}

/// The same of a value's text; None if that is no string.
fn string_of(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    Some(plain(text.strip_prefix(b"\"")?.strip_suffix(b"\"")?))
}

fn kind_of(text: &[u8]) -> Kind {
    match string_of(text).as_deref() {
        None => Kind::Untyped,
        Some(b"message") => Kind::Message,
        Some(b"model_change") => Kind::ModelChange,
        Some(b"thinking_level_change") => Kind::ThinkingLevelChange,
        Some(b"usage") => Kind::Usage,
        Some(b"compaction") => Kind::Compaction,
        Some(b"branch_summary") => Kind::BranchSummary,
        Some(b"custom") => Kind::Custom,
        Some(b"custom_message") => Kind::CustomMessage,
        Some(b"context_edit") => Kind::ContextEdit,
        Some(b"label") => Kind::Label,
        Some(b"session_info") => Kind::SessionInfo,
        Some(b"session") => Kind::Header,
        Some(_) => Kind::Unknown,
    }
}

pub(crate) fn role_of(text: &[u8]) -> Role {
    match string_of(text).as_deref() {
        None => Role::None,
        Some(b"user") => Role::User,
        Some(b"assistant") => Role::Assistant,
        Some(b"toolResult") => Role::ToolResult,
        Some(b"system") => Role::System,
        Some(b"bashExecution") => Role::BashExecution,
        Some(b"custom") => Role::Custom,
        Some(b"branchSummary") => Role::BranchSummary,
        Some(b"compactionSummary") => Role::CompactionSummary,
        Some(b"hookMessage") => Role::HookMessage,
        Some(_) => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(line: &str) -> Option<Envelope> {
        read(line.as_bytes()).ok()
    }

    fn text(text: &str) -> Key {
        Key::Text(text.as_bytes().into())
    }

    /// An entry as pi writes it gives all of its envelope.
    #[test]
    fn reads_what_pi_writes() {
        let line = r#"{"type":"message","id":"0a1b2c3d","parentId":"00000001","timestamp":"2026-01-01T00:00:40.360Z","message":{"role":"toolResult","content":[]}}"#;
        let expected = Envelope {
            kind: Kind::Message,
            role: Role::ToolResult,
            id: text("0a1b2c3d"),
            parent: text("00000001"),
            time: 1_767_225_640_360,
            dropped: false,
        };
        assert_eq!(envelope(line), Some(expected));
    }

    /// The last of duplicate keys counts, and keys and values may be escaped.
    #[test]
    fn follows_javascript_in_keys() {
        let line = r#"{"id":"a","type":"x","i\u0064":"\u00e9\ud800","type":"me\u0073sage","parentId":null,"message":{"role":"user"},"message":{"r\u006fle":"ass\u0069stant","role2":"user"}}"#;
        let found = envelope(line).map(|e| (e.kind, e.role, e.id, e.parent));
        let id = Key::Text(b"\xc3\xa9\xed\xa0\x80"[..].into());
        assert_eq!(found, Some((Kind::Message, Role::Assistant, id, Key::Null)));
    }

    /// Only the message's own role counts.
    #[test]
    fn takes_the_role_of_the_message_alone() {
        for (line, role) in [
            (
                r#"{"type":"message","message":{"role":"user"},"x":{"role":"system"}}"#,
                Role::User,
            ),
            (
                r#"{"type":"message","x":{"role":"user"},"message":{}}"#,
                Role::None,
            ),
            (
                r#"{"type":"message","message":{"role":"user"},"message":1}"#,
                Role::None,
            ),
            (
                r#"{"type":"message","message":[{"role":"user"}]}"#,
                Role::None,
            ),
            (
                r#"{"type":"message","message":{"a":{"role":"user"}}}"#,
                Role::None,
            ),
            (
                r#"{"type":"message","message":{"role":"nobody"}}"#,
                Role::Other,
            ),
            (r#"{"type":"custom","message":{"role":"user"}}"#, Role::None),
        ] {
            assert_eq!(envelope(line).map(|e| e.role), Some(role), "{line}");
        }
    }

    /// Ids keep their type; equality is that of JavaScript's Map, but for objects.
    #[test]
    fn ids_keep_their_type() {
        for (value, key) in [
            ("1", Key::Number(1.0)),
            ("\"1\"", text("1")),
            ("\"\\u0061bcdefgh\"", text("abcdefgh")),
            ("\"\\\\bcdefgh\"", text("\\bcdefgh")),
            ("true", Key::Bool(true)),
            ("false", Key::Bool(false)),
            ("{}", Key::Opaque),
            ("[1]", Key::Opaque),
            ("null", Key::Null),
        ] {
            let line = format!(r#"{{"id":{value}}}"#);
            assert_eq!(envelope(&line).map(|e| e.id), Some(key), "{value}");
        }
        assert_eq!(envelope("{}").map(|e| e.id), Some(Key::Missing));
    }

    /// Values that are no objects are entries without a type, unless they are falsy.
    #[test]
    fn scalars_are_untyped_or_dropped() {
        for (line, dropped) in [
            ("[]", false),
            ("1", false),
            ("\"a\"", false),
            ("0", true),
            ("null", true),
        ] {
            let found = envelope(line).map(|e| (e.kind, e.dropped));
            assert_eq!(found, Some((Kind::Untyped, dropped)), "{line}");
        }
    }

    /// A time is what JavaScript makes of the timestamp; none of a missing one.
    #[test]
    fn times_are_those_of_javascript() {
        for (value, wanted) in [
            ("\"2026-01-01T00:00:00.000Z\"", 1_767_225_600_000),
            ("\"2026-01-01\"", 1_767_225_600_000),
            ("1.9", 1),
            ("null", 0),
            ("\"tomorrow\"", TIME_UNKNOWN),
            ("{}", TIME_UNKNOWN),
        ] {
            let line = format!(r#"{{"timestamp":{value}}}"#);
            assert_eq!(envelope(&line).map(|e| e.time), Some(wanted), "{value}");
        }
        assert_eq!(envelope("{}").map(|e| e.time), Some(TIME_UNKNOWN));
    }
}
