//! Lines of new message entries, and what the index needs of them.
//!
//! What a scan would find in these lines is known while they are made: so an append need not read
//! them again, which for a short message is half of the work.

use crate::dates;
use crate::envelope::{self, Envelope, Key, Kind, Role};
use crate::index::Index;
use crate::json;
use crate::splice::quote;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::iter;
use std::ops::Range;

/// A time, and its text in an entry.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    text: [u8; 24],
    ms: i64,
}

impl Time {
    /// A time in ms since 1970; None outside of the years 0 to 9999.
    pub fn at(ms: i64) -> Option<Self> {
        let text = dates::to_written(ms)?;
        Some(Self { text, ms })
    }

    /// The time of a text that is written as entries write it.
    pub fn of(text: &[u8]) -> Option<Self> {
        let (text, ms) = (text.try_into().ok()?, dates::written(text)?);
        Some(Self { text, ms })
    }
}

/// Lines of message entries, each of which hangs on the one before.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    parent: Key,
    /// The text of the id above, if it is that of a line here.
    above_at: Option<Range<usize>>,
}

/// What is known of one line, apart from the id above it.
#[derive(Debug)]
struct Row {
    /// Bytes of the line, its LF among them.
    length: usize,
    time: i64,
    id: Key,
    role: Role,
}

/// No more room is made ahead than for so many bytes.
const AHEAD: usize = 1 << 20;

impl Lines {
    /// No lines yet; the first one hangs on the entry with the id `parent`. Only a string can be
    /// named as a parent, as pi does it.
    pub fn below(parent: Key) -> Self {
        Self {
            bytes: Vec::with_capacity(512),
            rows: Vec::with_capacity(1),
            above_at: None,
            parent: match parent {
                Key::Text(_) => parent,
                _ => Key::Null,
            },
        }
    }

    /// Adds the entry of a message, whose JSON text `write` appends to a buffer; no object in it may
    /// have a key twice. The id is in WTF-8.
    ///
    /// If `write` gives nothing, all lines are of no use any more.
    pub fn message(
        &mut self,
        id: &[u8],
        time: Time,
        write: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    ) -> Option<()> {
        let out = &mut self.bytes;
        let start = out.len();
        let above = match (&self.above_at, &self.parent) {
            (Some(at), _) => Above::Here(at.clone()),
            (None, Key::Text(parent)) => Above::Text(parent),
            (None, _) => Above::Nothing,
        };
        self.above_at = Some(begin(out, id, above, &time.text));
        let body = out.len();
        write(out)?;
        let end = out.len();
        out.extend_from_slice(b"}\n");
        let role = role_of(&out[body..end]).unwrap_or_else(|| read_role(&out[start..=end]));
        self.rows.push(Row {
            length: out.len() - start,
            time: time.ms,
            id: Key::Text(id.into()),
            role,
        });
        Some(())
    }

    /// The lines, each with its LF.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes room for more messages like those that are there: memory that is moved is touched twice.
    pub fn expect(&mut self, more: usize) {
        let each = self.bytes.len().checked_div(self.rows.len());
        let ahead = each.unwrap_or_default().saturating_mul(more);
        self.bytes.reserve(ahead.min(AHEAD));
        self.rows.reserve(more);
    }

    /// The length of each line, its LF among it, and what reading the line would give.
    pub(crate) fn envelopes(&self) -> impl Iterator<Item = (usize, Envelope)> {
        let ids = self.rows.iter().map(|row| &row.id);
        let above = iter::once(&self.parent).chain(ids);
        self.rows.iter().zip(above).map(|(row, parent)| {
            let envelope = Envelope {
                kind: Kind::Message,
                role: row.role,
                id: row.id.clone(),
                parent: parent.clone(),
                time: row.time,
                dropped: false,
            };
            (row.length, envelope)
        })
    }
}

/// What a line hangs on.
enum Above<'a> {
    /// The entry whose id stands there in the same buffer.
    Here(Range<usize>),
    Text(&'a [u8]),
    Nothing,
}

/// Writes the line of a message entry up to the message; where its id stands.
fn begin(out: &mut Vec<u8>, id: &[u8], above: Above<'_>, time: &[u8]) -> Range<usize> {
    out.extend_from_slice(b"{\"type\":\"message\",\"id\":");
    let start = out.len();
    quote(id, out);
    let id_at = start..out.len();
    out.extend_from_slice(b",\"parentId\":");
    match above {
        Above::Here(at) => out.extend_from_within(at),
        Above::Text(parent) => quote(parent, out),
        Above::Nothing => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"timestamp\":");
    quote(time, out);
    out.extend_from_slice(b",\"message\":");
    id_at
}

/// The lines of the entries of some messages, an array's text, each of which hangs on the one before;
/// none if there is not an id and a time for each. All texts are in WTF-8.
pub fn message_lines(
    messages: &[u8],
    ids: &[Vec<u8>],
    parent: Option<&[u8]>,
    times: &[Vec<u8>],
) -> Option<Vec<u8>> {
    let mut lines = Vec::with_capacity(messages.len() + 136 * ids.len());
    let mut messages = json::elements(messages);
    let mut above = parent.map_or(Above::Nothing, Above::Text);
    for (id, time) in ids.iter().zip(times) {
        let message = messages.next()?;
        above = Above::Here(begin(&mut lines, id, above, time));
        lines.extend_from_slice(message);
        lines.extend_from_slice(b"}\n");
    }
    (messages.next().is_none() && ids.len() == times.len()).then_some(lines)
}

/// Ids of eight hex digits, from four bytes each, that no entry has and that differ.
pub fn free_ids(index: &Index, random: &[u8]) -> Vec<[u8; 8]> {
    let random = random.as_chunks::<4>().0;
    let mut given = FxHashSet::with_capacity_and_hasher(random.len(), FxBuildHasher);
    let drawn = random.iter().map(|bytes| u32::from_be_bytes(*bytes));
    let texts = drawn.filter(|number| given.insert(*number)).map(hex);
    let is_free = |id: &[u8; 8]| index.find(&Key::Text(id[..].into())).is_none();
    texts.filter(is_free).collect()
}

fn hex(number: u32) -> [u8; 8] {
    let digit = |n: usize| b"0123456789abcdef"[(number >> (28 - 4 * n)) as usize & 15];
    std::array::from_fn(digit)
}

/// The role of a message, if that is its first member, as it nearly always is.
fn role_of(message: &[u8]) -> Option<Role> {
    let text = message.strip_prefix(b"{\"role\":")?;
    let end = memchr::memchr(b'"', text.get(1..)?)? + 2;
    let value = &text[..end];
    let whole = value[0] == b'"' && !value.contains(&b'\\');
    whole.then(|| envelope::role_of(value))
}

/// The role of an entry's message, by the rules of a scan.
fn read_role(line: &[u8]) -> Role {
    envelope::read(line).map_or(Role::None, |envelope| envelope.role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const TIME: &[u8] = b"2026-01-01T00:00:40.360Z";

    fn lines_of(parent: Key, messages: &[(&str, String)]) -> Lines {
        let mut lines = Lines::below(parent);
        for (id, message) in messages {
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(message.as_bytes());
                Some(())
            };
            lines
                .message(id.as_bytes(), Time::of(TIME).unwrap(), write)
                .unwrap();
        }
        lines
    }

    fn check(parent: Key, messages: &[(&str, String)]) {
        let lines = lines_of(parent, messages);
        let mut rest = lines.bytes();
        for (length, known) in lines.envelopes() {
            let (line, behind) = rest.split_at(length);
            rest = behind;
            let line = line.strip_suffix(b"\n").unwrap();
            assert_eq!(envelope::read(line).ok().as_ref(), Some(&known));
        }
        assert_eq!((rest, lines.rows.len()), (&b""[..], messages.len()));
    }

    /// A message that cannot be written gives no line.
    #[test]
    fn nothing_comes_of_nothing() {
        let mut lines = Lines::below(Key::Null);
        assert_eq!(lines.message(b"a", Time::of(TIME).unwrap(), |_| None), None);
        assert!(lines.rows.is_empty());
    }

    /// Parents that are no strings are null.
    #[test]
    fn only_strings_are_parents() {
        for parent in [Key::Missing, Key::Null, Key::Number(1.0), Key::Opaque] {
            check(parent, &[("12345678", "{}".to_owned())]);
        }
    }

    /// A time has the text that it is read from.
    #[test]
    fn times_are_their_texts() {
        let time = Time::of(TIME).unwrap();
        assert_eq!(Time::at(time.ms).unwrap().text, TIME);
        assert!(Time::of(b"2026-01-01").is_none() && Time::at(i64::MAX).is_none());
    }

    proptest! {
        /// Ids are the hex digits of the bytes.
        #[test]
        fn ids_are_hex(number: u32) {
            let ids = free_ids(&Index::default(), &[number.to_be_bytes(); 2].concat());
            let text: &[u8] = &format!("{number:08x}").into_bytes();
            prop_assert_eq!(ids, [text]);
        }

        /// What is known of a line is what reading it gives.
        #[test]
        fn lines_are_known_as_read(
            parent in ".{0,9}",
            ids in prop::collection::vec(prop_oneof!["[0-9a-f]{8}", ".{0,9}"], 1..4),
            role in prop_oneof![Just("user".to_owned()), Just("toolResult".to_owned()), ".{0,4}"],
            place in 0..3_usize,
            other in prop_oneof![Just(Value::Null), Just(Value::from(1)), any::<String>().prop_map(Value::from)],
        ) {
            let role = format!("\"role\":{}", Value::from(role));
            let mut members = vec![format!("\"a\":{other}"), "\"b\":{\"role\":\"system\"}".to_owned()];
            members.insert(place, role);
            let objects = [format!("{{{}}}", members.join(",")), format!("{{\"role\":{other}}}"), other.to_string()];
            let messages: Vec<_> = ids.iter().zip(&objects).map(|(id, m)| (id.as_str(), m.clone())).collect();
            check(Key::Text(parent.as_bytes().into()), &messages);
        }
    }
}
