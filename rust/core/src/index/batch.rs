//! Rows on their way from a scan into the index.
//!
//! They lie in the index's own columns: what one thread writes and another one reads should be
//! small, and most of it is only copied.

use super::{INTERNED, IdKey, packed};
use crate::envelope::{Envelope, Key, Kind, Role};

/// Rows that are to be added to an index.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(super) offset: Vec<u64>,
    pub(super) length: Vec<u64>,
    pub(super) id: Vec<IdKey>,
    pub(super) parent: Vec<IdKey>,
    pub(super) time: Vec<i64>,
    pub(super) kind: Vec<Kind>,
    pub(super) role: Vec<Role>,
    /// Ids that are not eight ASCII characters, as they come; equal ones are not joined.
    keys: Vec<Key>,
}

impl Batch {
    /// An empty batch with room for so many rows.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            offset: Vec::with_capacity(rows),
            length: Vec::with_capacity(rows),
            id: Vec::with_capacity(rows),
            parent: Vec::with_capacity(rows),
            time: Vec::with_capacity(rows),
            kind: Vec::with_capacity(rows),
            role: Vec::with_capacity(rows),
            keys: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.offset.len()
    }

    /// Adds a row: the line at `offset` of `length` bytes (without its LF).
    pub(crate) fn push(&mut self, offset: u64, length: u64, envelope: Envelope) {
        self.offset.push(offset);
        self.length.push(length);
        let id = self.keep(envelope.id);
        self.id.push(id);
        let parent = self.keep(envelope.parent);
        self.parent.push(parent);
        self.time.push(envelope.time);
        self.kind.push(envelope.kind);
        self.role.push(envelope.role);
    }

    fn keep(&mut self, key: Key) -> IdKey {
        packed(&key).unwrap_or_else(|| {
            self.keys.push(key);
            IdKey(INTERNED | (self.keys.len() as u64 - 1))
        })
    }

    /// The key that was kept, if it was; each is taken once.
    pub(super) fn take(&mut self, id: IdKey) -> Option<Key> {
        let kept = (id.0 & INTERNED != 0).then(|| &mut self.keys[(id.0 & !INTERNED) as usize]);
        kept.map(|key| std::mem::replace(key, Key::Missing))
    }
}
