//! The index as bytes, for the saved index, and back.
//!
//! Only what cannot be told from the columns is written besides them. Reading checks every number
//! that is used as a place: bytes that were damaged, or made up, give None, never a panic.

use super::{INTERNED, IdKey, Index, Interner, MISSING, canonical};
use crate::Row;
use crate::envelope::{Key, Kind, Role};
use rustc_hash::FxHashMap;
use std::io::Read;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are being written; numbers are little-endian.
#[derive(Debug, Default)]
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    pub(crate) fn number(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn rows(&mut self, rows: &[Row]) {
        self.number(rows.len() as u64);
        self.0.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
    }
}

/// How much is read at once: little enough to stay in the second-level cache until it is a column.
const CHUNK: usize = 1 << 16;

/// Bytes that are being read, and their check sum so far.
///
/// They are not believed before the sum is known: no count in them makes room for more than there is.
pub(crate) struct In<R> {
    source: R,
    /// Bytes that have not been read from the source.
    left: u64,
    buffer: Vec<u8>,
    at: usize,
    sum: Xxh3,
}

impl<R: Read> In<R> {
    /// Reads the next `length` bytes of a source.
    pub(crate) fn new(source: R, length: u64) -> Self {
        Self {
            source,
            left: length,
            buffer: Vec::with_capacity(CHUNK),
            at: 0,
            sum: Xxh3::new(),
        }
    }

    /// The check sum of all bytes; none if some have not been asked for.
    pub(crate) fn finish(self) -> Option<u64> {
        (self.rest() == 0).then(|| self.sum.digest())
    }

    /// How many bytes have not been asked for.
    fn rest(&self) -> u64 {
        self.left + (self.buffer.len() - self.at) as u64
    }

    /// Sees to it that so many bytes, at most [`CHUNK`], lie in the buffer.
    #[inline]
    fn need(&mut self, length: usize) -> Option<()> {
        if self.buffer.len() - self.at >= length {
            return Some(());
        }
        self.refill(length)
    }

    #[cold]
    fn refill(&mut self, length: usize) -> Option<()> {
        if (length as u64) > self.rest() {
            return None;
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        let more = self.left.min((CHUNK - before) as u64);
        let read = self
            .source
            .by_ref()
            .take(more)
            .read_to_end(&mut self.buffer);
        self.sum.update(&self.buffer[before..]);
        self.left -= more;
        (read.ok()? as u64 == more).then_some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.need(N)?;
        let bytes = self.buffer[self.at..].first_chunk().copied();
        self.at += N;
        bytes
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.length()?;
        self.column(length, |[byte]| byte)
    }

    /// So many items of `N` bytes each.
    fn column<const N: usize, T>(
        &mut self,
        count: usize,
        of: impl Fn([u8; N]) -> T,
    ) -> Option<Vec<T>> {
        if count.checked_mul(N)? as u64 > self.rest() {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            self.need(N)?;
            let (items, _) = self.buffer[self.at..].as_chunks::<N>();
            let items = &items[..items.len().min(count - all.len())];
            all.extend(items.iter().map(|&item| of(item)));
            self.at += items.len() * N;
        }
        Some(all)
    }

    fn narrow(&mut self, count: usize) -> Option<Vec<u32>> {
        self.column(count, u32::from_le_bytes)
    }

    fn rows(&mut self) -> Option<Vec<Row>> {
        let count = self.length()?;
        self.narrow(count)
    }
}

fn write_key(out: &mut Out, key: &Key) {
    match key {
        Key::Missing => out.number(0),
        Key::Null => out.number(1),
        Key::Bool(flag) => out.number(2 + u64::from(*flag)),
        Key::Number(n) => {
            out.number(4);
            out.number(n.to_bits());
        }
        Key::Text(text) => {
            out.number(5);
            out.bytes(text);
        }
        Key::Opaque => out.number(6),
    }
}

fn read_key<R: Read>(input: &mut In<R>) -> Option<Key> {
    Some(match input.number()? {
        0 => Key::Missing,
        1 => Key::Null,
        2 => Key::Bool(false),
        3 => Key::Bool(true),
        4 => Key::Number(f64::from_bits(input.number()?)),
        5 => Key::Text(input.bytes()?.as_slice().into()),
        6 => Key::Opaque,
        _ => return None,
    })
}

fn write_groups(out: &mut Out, groups: &FxHashMap<IdKey, Vec<Row>>) {
    out.number(groups.len() as u64);
    for (id, rows) in groups {
        out.number(id.0);
        out.rows(rows);
    }
}

/// Whether an id can be one of an index with so many interned keys.
fn is_id(id: IdKey, keys: usize) -> bool {
    id.0 & INTERNED == 0 || ((id.0 & !INTERNED) as usize) < keys
}

fn read_groups<R: Read>(
    input: &mut In<R>,
    keys: usize,
    rows: usize,
) -> Option<FxHashMap<IdKey, Vec<Row>>> {
    let mut groups = FxHashMap::default();
    for _ in 0..input.number()? {
        let id = IdKey(input.number()?);
        let members = input.rows()?;
        if !is_id(id, keys) || members.iter().any(|&row| row as usize >= rows) {
            return None;
        }
        groups.insert(id, members);
    }
    Some(groups)
}

fn read_interner<R: Read>(input: &mut In<R>) -> Option<Interner> {
    let mut interner = Interner::default();
    for n in 0..u32::try_from(input.number()?).ok()? {
        let key = read_key(input)?;
        if let Some(bytes) = canonical(&key) {
            interner.lookup.insert(bytes, n);
        }
        interner.keys.push(key);
    }
    Some(interner)
}

/// All of them, if none is missing.
fn all<T>(items: Vec<Option<T>>) -> Option<Vec<T>> {
    items.into_iter().collect()
}

impl Index {
    /// Writes the index.
    pub(crate) fn save(&self, out: &mut Out) {
        out.number(self.len() as u64);
        out.0
            .extend(self.offset.iter().flat_map(|n| n.to_le_bytes()));
        out.0
            .extend(self.length.iter().flat_map(|n| n.to_le_bytes()));
        out.0
            .extend(self.id.iter().flat_map(|id| id.0.to_le_bytes()));
        out.0
            .extend(self.parent.iter().flat_map(|n| n.to_le_bytes()));
        out.0.extend(self.time.iter().flat_map(|n| n.to_le_bytes()));
        out.0.extend(self.kind.iter().map(|&kind| kind as u8));
        out.0.extend(self.role.iter().map(|&role| role as u8));
        out.number(self.long.len() as u64);
        for (&row, &length) in &self.long {
            out.number(u64::from(row));
            out.number(length);
        }
        out.number(self.interner.keys.len() as u64);
        for key in &self.interner.keys {
            write_key(out, key);
        }
        write_groups(out, &self.waiting);
        write_groups(out, &self.falsy);
        out.number(u64::from(self.reused) | u64::from(self.late) << 1);
    }

    /// Reads an index of lines that all end before `end`.
    pub(crate) fn restore<R: Read>(input: &mut In<R>, end: u64) -> Option<Self> {
        let rows = input.length()?;
        let mut index = Self {
            offset: input.column(rows, u64::from_le_bytes)?,
            length: input.narrow(rows)?,
            id: input.column(rows, |bytes| IdKey(u64::from_le_bytes(bytes)))?,
            parent: input.narrow(rows)?,
            time: input.column(rows, i64::from_le_bytes)?,
            kind: all(input.column(rows, |[byte]| Kind::from_byte(byte))?)?,
            role: all(input.column(rows, |[byte]| Role::from_byte(byte))?)?,
            ..Self::default()
        };
        for _ in 0..input.number()? {
            let row = Row::try_from(input.number()?).ok()?;
            index.long.insert(row, input.number()?);
        }
        index.interner = read_interner(input)?;
        index.waiting = read_groups(input, index.interner.keys.len(), rows)?;
        index.falsy = read_groups(input, index.interner.keys.len(), rows)?;
        let flags = input.number()?;
        (index.reused, index.late) = (flags & 1 != 0, flags & 2 != 0);
        index.is_sound(end).then(|| index.connected())
    }

    fn is_sound(&self, end: u64) -> bool {
        let (rows, keys) = (self.len(), self.interner.keys.len());
        let is_row = |&parent: &u32| parent >= MISSING || (parent as usize) < rows;
        let is_inside = |(row, (&offset, &length)): (usize, (&u64, &u32))| {
            let length = match length {
                u32::MAX => self.long.get(&(row as Row)).copied(),
                length => Some(u64::from(length)),
            };
            let behind = length.and_then(|length| offset.checked_add(length));
            behind.is_some_and(|behind| behind <= end)
        };
        let places = self.offset.iter().zip(&self.length);
        self.parent.iter().all(is_row)
            && self.id.iter().all(|&id| is_id(id, keys))
            && places.enumerate().all(is_inside)
    }

    /// Makes anew what follows from the columns, but for the owners of ids.
    fn connected(mut self) -> Self {
        for row in 0..self.len() as Row {
            let id = self.id[row as usize];
            self.note(row, id, self.kind[row as usize], self.role[row as usize]);
        }
        self
    }
}
