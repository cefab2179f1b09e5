//! The places of the values of a line that a check looks at.

use crate::envelope::Key;
use crate::json::{self, Visitor};
use std::ops::Range;

/// Where the values lie in the line; nothing that is there is empty. Of duplicate keys the last one
/// counts.
#[derive(Debug, Default, Clone)]
pub(super) struct Parts {
    pub(super) kind: Range<usize>,
    pub(super) id: Range<usize>,
    pub(super) parent: Range<usize>,
    pub(super) time: Range<usize>,
    /// `targetId`, `firstKeptEntryId` and `fromId`, as in [`TARGETS`].
    pub(super) targets: [Range<usize>; 3],
    pub(super) kept_index: Range<usize>,
    pub(super) name: Range<usize>,
    pub(super) replacement: Range<usize>,
    pub(super) message: Range<usize>,
    pub(super) inner: Message,
    /// Members of the object that is being walked; they count if it turns out to be the message.
    walked: Message,
}

/// Members that name another entry.
pub(super) const TARGETS: [&str; 3] = ["targetId", "firstKeptEntryId", "fromId"];

/// Where the values of the message lie in the line.
#[derive(Debug, Default, Clone)]
pub(super) struct Message {
    pub(super) role: Range<usize>,
    pub(super) content: Range<usize>,
    pub(super) call: Range<usize>,
}

const NAMES: [&str; 14] = [
    "type",
    "id",
    "parentId",
    "timestamp",
    "targetId",
    "firstKeptEntryId",
    "fromId",
    "firstKeptEntryIndex",
    "name",
    "replacement",
    "message",
    "role",
    "content",
    "toolCallId",
];

/// The key itself, or the name among ours that it spells with escapes.
#[inline]
fn plain(key: &[u8]) -> &[u8] {
    // A letter becomes six when it is escaped.
    if key.len() < 7 || !key.contains(&b'\\') {
        return key;
    }
    let spelt = NAMES.iter().find(|name| json::key_is(key, name));
    spelt.map_or(key, |name| name.as_bytes())
}

impl Visitor for Parts {
    #[inline]
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        let key = plain(key);
        if depth == 2 {
            match key {
                b"role" => self.walked.role = value,
                b"content" => self.walked.content = value,
                b"toolCallId" => self.walked.call = value,
                _ => {}
            }
            return;
        }
        let walked = std::mem::take(&mut self.walked);
        match key {
            b"type" => self.kind = value,
            b"id" => self.id = value,
            b"parentId" => self.parent = value,
            b"timestamp" => self.time = value,
            b"targetId" => self.targets[0] = value,
            b"firstKeptEntryId" => self.targets[1] = value,
            b"fromId" => self.targets[2] = value,
            b"firstKeptEntryIndex" => self.kept_index = value,
            b"name" => self.name = value,
            b"replacement" => self.replacement = value,
            b"message" => {
                self.message = value;
                self.inner = walked;
            }
            _ => {}
        }
    }

    #[inline]
    fn wants(&self, depth: u8, key: &[u8]) -> bool {
        depth == 1 || matches!(key, b"role" | b"content" | b"toolCallId") || key.contains(&b'\\')
    }
}

/// What stands between the quotes of a string; None of another value.
pub(super) fn inside(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Whether a value is this string.
pub(super) fn is_text(value: &[u8], wanted: &str) -> bool {
    inside(value).is_some_and(|raw| json::key_is(raw, wanted))
}

/// A value as ids are compared.
pub(super) fn key(value: &[u8]) -> Key {
    Key::of(value)
}
