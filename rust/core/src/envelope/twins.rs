//! The envelope of a line beside one that is put together from all members that the slow walker of
//! JSON tells.

use super::{Envelope, Key, Kind, Role, TIME_UNKNOWN, read};
use crate::json::naive;
use crate::{dates, json};

const KINDS: [&str; 11] = [
    "message",
    "model_change",
    "thinking_level_change",
    "usage",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "context_edit",
    "label",
    "session_info",
];
const ROLES: [&str; 9] = [
    "user",
    "assistant",
    "toolResult",
    "system",
    "bashExecution",
    "custom",
    "branchSummary",
    "compactionSummary",
    "hookMessage",
];

/// The slow walker calls itself for every level.
const DEEPEST: usize = 300;

/// The last value of a key in the object at `depth`, of those that are told.
type Value<'a> = Option<&'a [u8]>;

/// The text of a JSON string, as another library reads it, where that accepts it.
fn string(value: &[u8]) -> Option<Vec<u8>> {
    let raw = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let other = serde_json::from_slice::<String>(value).ok();
    Some(other.map_or_else(|| json::decode_string(raw).into_owned(), String::into_bytes))
}

fn name(key: &[u8]) -> Vec<u8> {
    string(&[b"\"", key, b"\""].concat()).unwrap_or_default()
}

fn key(value: Value<'_>) -> Key {
    let Some(value) = value else {
        return Key::Missing;
    };
    match value[0] {
        b'n' => Key::Null,
        b't' | b'f' => Key::Bool(value[0] == b't'),
        b'{' | b'[' => Key::Opaque,
        b'"' => Key::Text(string(value).unwrap_or_default()[..].into()),
        _ => Key::Number(
            std::str::from_utf8(value)
                .unwrap_or("")
                .parse()
                .unwrap_or(0.0),
        ),
    }
}

fn kind(value: Value<'_>) -> Kind {
    let Some(text) = value.and_then(string) else {
        return Kind::Untyped;
    };
    if text == b"session" {
        return Kind::Header;
    }
    let place = KINDS.iter().position(|kind| kind.as_bytes() == text);
    let byte = place.map_or(0, |place| place + 1) as u8;
    Kind::from_byte(byte).unwrap_or(Kind::Unknown)
}

fn role(value: Value<'_>) -> Role {
    let Some(text) = value.and_then(string) else {
        return Role::None;
    };
    let place = ROLES.iter().position(|role| role.as_bytes() == text);
    let byte = place.map_or(10, |place| place + 1) as u8;
    Role::from_byte(byte).unwrap_or(Role::Other)
}

/// Whether JavaScript calls the whole line's value falsy.
fn falsy(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    match text[0] {
        b'{' | b'[' | b't' => false,
        b'"' => text == b"\"\"",
        b'n' | b'f' => true,
        _ => std::str::from_utf8(text).unwrap_or("").parse() == Ok(0.0_f64),
    }
}

/// The slow twin.
fn naive_envelope(line: &[u8]) -> Option<Envelope> {
    let (_, told) = naive::walk(line)?;
    let [mut own, mut parent, mut time, mut id, mut own_role] = [None; 5];
    let mut inner = None;
    for (depth, raw, place) in told {
        let value = Some(&line[place]);
        match (depth, &name(&raw)[..]) {
            (2, b"role") => inner = value,
            (2, _) => {}
            (_, named) => {
                let role = inner.take();
                match named {
                    b"type" => own = value,
                    b"id" => id = value,
                    b"parentId" => parent = value,
                    b"timestamp" => time = value,
                    b"message" => own_role = role,
                    _ => {}
                }
            }
        }
    }
    let kind = kind(own);
    Some(Envelope {
        kind,
        role: match kind {
            Kind::Message => role(own_role),
            _ => Role::None,
        },
        id: key(id),
        parent: key(parent),
        time: time.and_then(dates::of_json).unwrap_or(TIME_UNKNOWN),
        dropped: falsy(line),
    })
}

/// A line's envelope is the one that a look at all of its members gives.
pub(crate) fn check(line: &[u8]) {
    if line.iter().filter(|byte| b"[{".contains(byte)).count() < DEEPEST {
        let found = read(line).ok();
        assert_eq!(found, naive_envelope(line), "{}", line.escape_ascii());
    }
}
