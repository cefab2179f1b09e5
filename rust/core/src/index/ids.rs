//! Ids in eight bytes each, and which row owns one.

use crate::Row;
use crate::envelope::Key;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{LazyLock, OnceLock};

pub(super) const INTERNED: u64 = 1 << 63;

/// An id in eight bytes: eight ASCII characters as they are, everything else interned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdKey(pub(super) u64);

/// Two numbers that only this process knows.
static SECRET: LazyLock<(u64, u64)> = LazyLock::new(|| {
    (
        RandomState::new().hash_one(0),
        RandomState::new().hash_one(1) | 1,
    )
});

impl Hash for IdKey {
    /// Whoever writes a session chooses its ids. A plain multiplication would let them put all ids into
    /// one place of a table: a file with 100,000 of them took 17 s to open.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (mask, factor) = *SECRET;
        let product = u128::from(self.0 ^ mask) * u128::from(factor);
        state.write_u64(product as u64 ^ (product >> 64) as u64);
    }
}

/// Ids that are not eight ASCII characters.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    pub(super) keys: Vec<Key>,
    pub(super) lookup: HashMap<Box<[u8]>, u32>,
}

/// Bytes that are equal exactly if the keys are; None for keys that equal nothing.
pub(super) fn canonical(key: &Key) -> Option<Box<[u8]>> {
    let mut out = Vec::new();
    match key {
        Key::Missing => out.push(b'-'),
        Key::Null => out.push(b'n'),
        Key::Bool(b) => out.push(if *b { b't' } else { b'f' }),
        Key::Number(n) => {
            // -0 and 0 are one key.
            out.push(b'#');
            out.extend((n + 0.0).to_bits().to_le_bytes());
        }
        Key::Text(t) => {
            out.push(b's');
            out.extend_from_slice(t);
        }
        Key::Opaque => return None,
    }
    Some(out.into())
}

pub(super) fn packed(key: &Key) -> Option<IdKey> {
    match key {
        Key::Text(text) => text.packed().map(IdKey),
        _ => None,
    }
}

impl Interner {
    pub(crate) fn find(&self, key: &Key) -> Option<IdKey> {
        packed(key).or_else(|| {
            Some(IdKey(
                INTERNED | u64::from(*self.lookup.get(&canonical(key)?)?),
            ))
        })
    }

    pub(crate) fn intern(&mut self, key: Key) -> IdKey {
        if let Some(id) = self.find(&key) {
            return id;
        }
        let n = self.keys.len() as u32;
        if let Some(bytes) = canonical(&key) {
            self.lookup.insert(bytes, n);
        }
        self.keys.push(key);
        IdKey(INTERNED | u64::from(n))
    }

    pub(crate) fn key(&self, id: IdKey) -> Key {
        if id.0 & INTERNED == 0 {
            Key::Text(id.0.to_le_bytes()[..].into())
        } else {
            self.keys[(id.0 & !INTERNED) as usize].clone()
        }
    }

    pub(crate) fn is_text(&self, id: IdKey) -> bool {
        id.0 & INTERNED == 0 || matches!(self.keys[(id.0 & !INTERNED) as usize], Key::Text(_))
    }

    /// Whether there is no key at all.
    pub(super) fn is_missing(&self, id: IdKey) -> bool {
        id.0 & INTERNED != 0 && self.keys[(id.0 & !INTERNED) as usize] == Key::Missing
    }

    /// Whether the key names an entry at all: what is missing or null names none.
    pub(super) fn is_name(&self, id: IdKey) -> bool {
        id.0 & INTERNED == 0
            || !matches!(
                self.keys[(id.0 & !INTERNED) as usize],
                Key::Missing | Key::Null
            )
    }
}

/// id -> last row with it. For an index whose columns were restored it is made when first asked for:
/// who only walks over rows needs none.
#[derive(Debug, Default)]
pub(super) struct Owners(OnceLock<HashTable<Row>>);

fn hash(id: IdKey) -> u64 {
    FxBuildHasher.hash_one(id)
}

/// Gives the last one of the rows to its id; whether another one had it.
fn put(rows: &mut HashTable<Row>, ids: &[IdKey], row: Row) -> bool {
    let id = ids[row as usize];
    let entry = rows.entry(
        hash(id),
        |&r| ids[r as usize] == id,
        |&r| hash(ids[r as usize]),
    );
    match entry {
        Entry::Occupied(mut entry) => {
            *entry.get_mut() = row;
            true
        }
        Entry::Vacant(entry) => {
            entry.insert(row);
            false
        }
    }
}

fn table_of(ids: &[IdKey]) -> HashTable<Row> {
    let mut rows = HashTable::with_capacity(ids.len());
    for row in 0..ids.len() as Row {
        put(&mut rows, ids, row);
    }
    rows
}

impl Owners {
    fn rows(&self, ids: &[IdKey]) -> &HashTable<Row> {
        self.0.get_or_init(|| table_of(ids))
    }

    /// The last row with an id.
    pub(super) fn find(&self, ids: &[IdKey], id: IdKey) -> Option<Row> {
        let same = |&row: &Row| ids[row as usize] == id;
        self.rows(ids).find(hash(id), same).copied()
    }

    /// Takes in a new last row; whether its id had an owner before.
    pub(super) fn push(&mut self, ids: &[IdKey]) -> bool {
        let before = ids.len() - 1;
        if self.0.get().is_none() {
            // Nobody else can have made it meanwhile.
            let _ = self.0.set(table_of(&ids[..before]));
        }
        self.0
            .get_mut()
            .is_some_and(|rows| put(rows, ids, before as Row))
    }

    /// How many ids there are.
    pub(super) fn count(&self, ids: &[IdKey]) -> usize {
        self.rows(ids).len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.get().map_or(0, HashTable::allocation_size)
    }
}
