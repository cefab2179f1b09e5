//! What the index needs of one line: type, id, parent, time, role.
//!
//! Everything is taken by JavaScript's rules (the last of duplicate keys counts, keys may be
//! escaped), in the same pass that checks the line.

use crate::json::{self, Fault, Shape, Visitor};
use std::borrow::Cow;
use std::ops::Range;

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

    fn of(text: &[u8]) -> Self {
        match text.first() {
            None => Self::Missing,
            Some(b'"') => Self::Text((&*json::decode_string(&text[1..text.len() - 1])).into()),
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

/// The time of an entry that has none, or none that is written as `YYYY-MM-DDTHH:MM:SS.sssZ`.
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
            if json::key_is(key, "role") {
                self.inner_role = value;
            }
            return;
        }
        let role = std::mem::take(&mut self.inner_role);
        let name = plain(key);
        match &*name {
            b"type" => self.kind = value,
            b"id" => self.id = value,
            b"parentId" => self.parent = value,
            b"timestamp" => self.time = value,
            b"message" => self.role = role,
            _ => {}
        }
    }
}

impl Members {
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
            time: time_of(text(&self.time)),
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

fn role_of(text: &[u8]) -> Role {
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

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |n, c| {
        c.is_ascii_digit().then(|| n * 10 + i64::from(c - b'0'))
    })
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Milliseconds of `"YYYY-MM-DDTHH:MM:SS.sssZ"` (with its quotes), the only form that pi writes.
fn time_of(text: &[u8]) -> i64 {
    iso(text).unwrap_or(TIME_UNKNOWN)
}

fn iso(text: &[u8]) -> Option<i64> {
    let t: &[u8; 26] = text.try_into().ok()?;
    let marks = [
        (0, b'"'),
        (5, b'-'),
        (8, b'-'),
        (11, b'T'),
        (14, b':'),
        (17, b':'),
        (20, b'.'),
        (24, b'Z'),
    ];
    if marks.iter().any(|&(at, mark)| t[at] != mark) {
        return None;
    }
    let part = |from: usize, to: usize| digits(&t[from..to]);
    let (year, month, day) = (part(1, 5)?, part(6, 8)?, part(9, 11)?);
    let (hour, minute, second, milli) =
        (part(12, 14)?, part(15, 17)?, part(18, 20)?, part(21, 24)?);
    let fits = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    fits.then(|| {
        ((days(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milli
    })
}
