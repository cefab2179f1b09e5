//! The places of the few values of a line that a listing looks at.

use crate::json;
use std::ops::Range;

/// Where the values lie in the line; nothing that is there is empty. Of duplicate keys the last one
/// counts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) kind: Range<usize>,
    pub(super) name: Range<usize>,
    pub(super) time: Range<usize>,
    pub(super) usage: Range<usize>,
    pub(super) message: Message,
    /// Members of the object that is being walked; they count if it turns out to be the message.
    inner: Message,
}

/// Where the values of the message lie in the line.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) role: Range<usize>,
    pub(super) content: Range<usize>,
    pub(super) time: Range<usize>,
    pub(super) stop: Range<usize>,
    pub(super) usage: Range<usize>,
}

impl Parts {
    /// See [`json::Visitor::wants`]: every member of the line, since it ends what was inside.
    #[inline]
    pub(super) fn wants(depth: u8, key: &[u8]) -> bool {
        let known = matches!(
            key,
            b"role" | b"content" | b"timestamp" | b"stopReason" | b"usage"
        );
        depth == 1 || known || may_be_spelt(key)
    }

    /// See [`json::Visitor::member`].
    #[inline]
    pub(super) fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        let key = plain(key);
        if depth == 1 {
            return self.outer(key, value);
        }
        match key {
            b"role" => self.inner.role = value,
            b"content" => self.inner.content = value,
            b"timestamp" => self.inner.time = value,
            b"stopReason" => self.inner.stop = value,
            b"usage" => self.inner.usage = value,
            _ => {}
        }
    }

    fn outer(&mut self, key: &[u8], value: Range<usize>) {
        let inner = std::mem::take(&mut self.inner);
        match key {
            b"type" => self.kind = value,
            b"name" => self.name = value,
            b"timestamp" => self.time = value,
            b"usage" => self.usage = value,
            b"message" => self.message = inner,
            _ => {}
        }
    }
}

/// The key itself, or the name among ours that it spells with escapes.
#[inline]
fn plain(key: &[u8]) -> &[u8] {
    const NAMES: [&str; 8] = [
        "type",
        "name",
        "timestamp",
        "message",
        "role",
        "content",
        "stopReason",
        "usage",
    ];
    if !may_be_spelt(key) {
        return key;
    }
    let spelt = NAMES.iter().find(|name| json::key_is(key, name));
    spelt.map_or(key, |name| name.as_bytes())
}

/// Whether a key can be a name of ours with escapes: the shortest has four letters, and a letter
/// becomes six when it is escaped.
#[inline]
fn may_be_spelt(key: &[u8]) -> bool {
    // The common long ones are not looked through.
    key.len() >= 9 && key != b"timestamp" && key != b"stopReason" && key.contains(&b'\\')
}
