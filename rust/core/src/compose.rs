//! Lines of new message entries, and what the index needs of them.
//!
//! What a scan would find in these lines is known while they are made: so an append need not read
//! them again, which for a short message is half of the work.

use crate::dates;
use crate::envelope::{self, Envelope, Key, Kind, Role};
use crate::splice::quote;

/// Lines of message entries, each of which hangs on the one before.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    above: Key,
}

/// What is known of one line.
#[derive(Debug)]
pub(crate) struct Row {
    /// Bytes of the line, its LF among them.
    pub(crate) length: usize,
    pub(crate) envelope: Envelope,
}

impl Lines {
    /// No lines yet; the first one hangs on the entry with the id `parent`. Only a string can be
    /// named as a parent, as pi does it.
    pub fn below(parent: Key) -> Self {
        Self {
            bytes: Vec::new(),
            rows: Vec::new(),
            above: match parent {
                Key::Text(_) => parent,
                _ => Key::Null,
            },
        }
    }

    /// Adds the entry of a message, whose JSON text `write` appends to a buffer; no object in it may
    /// have a key twice. The id is in WTF-8, the time one that [`dates::to_written`] gives.
    ///
    /// If `write` gives nothing, all lines are of no use any more.
    pub fn message(
        &mut self,
        id: &[u8],
        time: &[u8; 24],
        write: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    ) -> Option<()> {
        let out = &mut self.bytes;
        let start = out.len();
        out.extend_from_slice(b"{\"type\":\"message\",\"id\":");
        quote(id, out);
        out.extend_from_slice(b",\"parentId\":");
        match &self.above {
            Key::Text(parent) => quote(parent, out),
            _ => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"timestamp\":\"");
        out.extend_from_slice(time);
        out.extend_from_slice(b"\",\"message\":");
        let body = out.len();
        write(out)?;
        let end = out.len();
        out.extend_from_slice(b"}\n");
        let role = role_of(&out[body..end]).unwrap_or_else(|| read_role(&out[start..=end]));
        let id = Key::Text(id.into());
        self.rows.push(Row {
            length: out.len() - start,
            envelope: Envelope {
                kind: Kind::Message,
                role,
                id: id.clone(),
                parent: std::mem::replace(&mut self.above, id),
                time: dates::written(time)?,
                dropped: false,
            },
        });
        Some(())
    }

    /// The lines, each with its LF.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }
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

    const TIME: &[u8; 24] = b"2026-01-01T00:00:40.360Z";

    fn lines_of(parent: Key, messages: &[(&str, String)]) -> Lines {
        let mut lines = Lines::below(parent);
        for (id, message) in messages {
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(message.as_bytes());
                Some(())
            };
            lines.message(id.as_bytes(), TIME, write).unwrap();
        }
        lines
    }

    fn check(parent: Key, messages: &[(&str, String)]) {
        let lines = lines_of(parent, messages);
        let mut rest = lines.bytes();
        for row in lines.rows() {
            let (line, behind) = rest.split_at(row.length);
            rest = behind;
            let line = line.strip_suffix(b"\n").unwrap();
            assert_eq!(envelope::read(line).ok().as_ref(), Some(&row.envelope));
        }
        assert_eq!((rest, lines.rows().len()), (&b""[..], messages.len()));
    }

    /// A message that cannot be written gives no line.
    #[test]
    fn nothing_comes_of_nothing() {
        let mut lines = Lines::below(Key::Null);
        assert_eq!(lines.message(b"a", TIME, |_| None), None);
        assert!(lines.rows().is_empty());
    }

    /// Parents that are no strings are null.
    #[test]
    fn only_strings_are_parents() {
        for parent in [Key::Missing, Key::Null, Key::Number(1.0), Key::Opaque] {
            check(parent, &[("12345678", "{}".to_owned())]);
        }
    }

    proptest! {
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
