//! The index as bytes, for the saved index, and back.
//!
//! Only what cannot be told from the columns is written besides them. Reading checks every number
//! that is used as a place: bytes that were damaged, or made up, give None, never a panic.

use super::{INTERNED, IdKey, Index, Interner, MISSING, canonical};
use crate::Row;
use crate::envelope::{Key, Kind, Role};
use rustc_hash::FxHashMap;

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

/// Bytes that are being read.
#[derive(Debug)]
pub(crate) struct In<'a>(pub(crate) &'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn wide<T>(&mut self, count: usize, of: impl Fn([u8; 8]) -> T) -> Option<Vec<T>> {
        let (items, _) = self.take(count.checked_mul(8)?)?.as_chunks::<8>();
        Some(items.iter().map(|&item| of(item)).collect())
    }

    fn narrow(&mut self, count: usize) -> Option<Vec<u32>> {
        let (items, _) = self.take(count.checked_mul(4)?)?.as_chunks::<4>();
        Some(items.iter().map(|&item| u32::from_le_bytes(item)).collect())
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

fn read_key(input: &mut In<'_>) -> Option<Key> {
    Some(match input.number()? {
        0 => Key::Missing,
        1 => Key::Null,
        2 => Key::Bool(false),
        3 => Key::Bool(true),
        4 => Key::Number(f64::from_bits(input.number()?)),
        5 => Key::Text(input.bytes()?.into()),
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

fn read_groups(input: &mut In<'_>, keys: usize, rows: usize) -> Option<FxHashMap<IdKey, Vec<Row>>> {
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

fn read_interner(input: &mut In<'_>) -> Option<Interner> {
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
    pub(crate) fn restore(input: &mut In<'_>, end: u64) -> Option<Self> {
        let rows = input.length()?;
        let mut index = Self {
            offset: input.wide(rows, u64::from_le_bytes)?,
            length: input.narrow(rows)?,
            id: input.wide(rows, |bytes| IdKey(u64::from_le_bytes(bytes)))?,
            parent: input.narrow(rows)?,
            time: input.wide(rows, i64::from_le_bytes)?,
            kind: input
                .take(rows)?
                .iter()
                .map(|&byte| Kind::from_byte(byte))
                .collect::<Option<_>>()?,
            role: input
                .take(rows)?
                .iter()
                .map(|&byte| Role::from_byte(byte))
                .collect::<Option<_>>()?,
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
        self.parent
            .iter()
            .all(|&parent| parent >= MISSING || (parent as usize) < rows)
            && self.id.iter().all(|&id| is_id(id, keys))
            && (0..rows).all(|row| {
                let length = match self.length[row] {
                    u32::MAX => self.long.get(&(row as Row)).copied(),
                    length => Some(u64::from(length)),
                };
                length
                    .and_then(|length| self.offset[row].checked_add(length))
                    .is_some_and(|at| at <= end)
            })
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
