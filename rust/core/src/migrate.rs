//! An old file as a file of the current version, part by part.
//!
//! Version 1 has no tree: each entry gets an `id` and, as `parentId`, that of the entry before it;
//! a compaction's `firstKeptEntryIndex` (which counts kept lines, the header is 0) becomes
//! `firstKeptEntryId`. Up to version 2 a message's role `custom` was called `hookMessage`. Headers
//! get `version` 3.
//!
//! Only these members change ([`splice`](crate::splice)); all other bytes are copied, blank lines,
//! lines that are no JSON and a torn tail among them. The file is read once more in blocks that end
//! with a line, and nothing of it is kept but four bytes an entry for its new id.
//!
//! - An id that is a string and belongs to the entry alone stays, so that labels and edits still
//!   find it; of an id that stands twice the last line keeps it, which is the one that look-ups give.
//! - New ids are eight hex digits of a hash of line number and line ([`derived_id`]), hashed anew
//!   while another entry has them: every program that migrates the file, or only reads it, arrives at
//!   the same ids. A caller may bring ids instead.
//! - Lines that hold no object (`5`, `[1]`) have no place for an id and stay outside of the chain.
//! - Where an index names no entry up to the compaction, everything from the previous compaction's
//!   boundary on is kept: rather too long a context than a lost one.

use crate::Row;
use crate::envelope::{self, Key, Kind, Role};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::json::{self, Shape, Visitor};
use crate::splice::{self, Edit, Member};
use crate::store::Store;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Bytes of the old file that are read for one part.
const BLOCK: u64 = 1 << 20;

const CURRENT: &[u8] = b"3";

/// Where the ids of a version 1 file come from.
#[derive(Debug)]
pub enum Ids {
    /// The file has ids: it is of version 2.
    Present,
    /// From line number and content.
    Derived,
    /// The JSON text of one a row; those of rows that keep theirs are not used.
    Given(Vec<Vec<u8>>),
}

/// A migration on its way: ask for [`next_part`](Self::next_part) until there is nothing more.
#[derive(Debug)]
pub struct Migration {
    ids: Ids,
    block: u64,
    end: u64,
    epoch: u64,
    /// Where the next block begins, and the number of its first line.
    offset: u64,
    line: u64,
    row: Row,
    /// The kept lines that are headers, by their place among all kept lines.
    headers: Vec<u64>,
    /// New ids by row; of rows that keep theirs or can have none it is not used.
    derived: Vec<u32>,
    taken: FxHashSet<u32>,
    /// The text of the id of the entry before, for `parentId`.
    previous: Vec<u8>,
    /// The first row that the newest compaction keeps, or the first entry.
    boundary: Option<Row>,
    /// The old text and the new one of a part; they are used again for the next.
    old: Vec<u8>,
    new: Vec<u8>,
}

/// Members that matter, as the last of their name has it.
#[derive(Debug, Default)]
struct Outline {
    any: bool,
    id: Option<Range<usize>>,
    parent: Option<Range<usize>>,
    index: Option<Range<usize>>,
    kept: Option<Range<usize>>,
    role: Option<Range<usize>>,
    inner: Option<Range<usize>>,
}

impl Visitor for Outline {
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        if depth > 1 {
            if json::key_is(key, "role") {
                self.inner = Some(value);
            }
            return;
        }
        self.any = true;
        let role = self.inner.take();
        match NAMES.iter().position(|name| json::key_is(key, name)) {
            Some(0) => self.id = Some(value),
            Some(1) => self.parent = Some(value),
            Some(2) => self.index = Some(value),
            Some(3) => self.kept = Some(value),
            Some(4) => self.role = role,
            _ => {}
        }
    }
}

const NAMES: [&str; 5] = [
    "id",
    "parentId",
    "firstKeptEntryIndex",
    "firstKeptEntryId",
    "message",
];

impl Migration {
    /// Begins with the first byte of a store's file.
    pub fn new(store: &Store, ids: Ids) -> Self {
        Self {
            ids,
            block: BLOCK,
            end: store.end(),
            epoch: store.index().epoch(),
            offset: 0,
            line: 1,
            row: 0,
            headers: Vec::new(),
            derived: Vec::new(),
            taken: FxHashSet::default(),
            previous: b"null".to_vec(),
            boundary: None,
            old: Vec::new(),
            new: Vec::new(),
        }
    }

    /// The next part of the new file; None at its end. The store must be the one it began with.
    pub fn next_part(&mut self, store: &Store) -> Result<Option<&[u8]>> {
        if store.index().epoch() != self.epoch {
            return Err(self.changed(store, "the file changed while it was migrated"));
        }
        if self.offset == self.end {
            return Ok(None);
        }
        let mut old = std::mem::take(&mut self.old);
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        let done = self
            .read_block(store, &mut old)
            .and_then(|()| self.take_block(store, &old, &mut new));
        (self.old, self.new) = (old, new);
        done.map(|()| Some(self.new.as_slice()))
    }

    fn take_block(&mut self, store: &Store, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut rest = block;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let next = rest.len().min(end + 1);
            self.take(store, &rest[..end], out)?;
            out.extend_from_slice(&rest[end..next]);
            self.offset += next as u64;
            self.line += 1;
            rest = &rest[next..];
        }
        Ok(())
    }

    fn changed(&self, store: &Store, reason: &'static str) -> Error {
        Error::lost(store.path(), self.offset, reason)
    }

    /// Whole lines, about a block of them; the last one may have no LF at the end of the file.
    fn read_block(&self, store: &Store, block: &mut Vec<u8>) -> Result<()> {
        let left = self.end - self.offset;
        let mut size = self.block.min(left);
        loop {
            store.read_into(self.offset, size, block)?;
            if size == left {
                return Ok(());
            }
            if let Some(last) = memchr::memrchr(b'\n', block) {
                block.truncate(last + 1);
                return Ok(());
            }
            size = (size * 2).min(left);
        }
    }

    fn take(&mut self, store: &Store, line: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let index = store.index();
        let is_row = (self.row as usize) < index.len()
            && index.span(self.row) == (self.offset, line.len() as u64);
        if is_row {
            self.take_row(store, line, out)?;
            self.row += 1;
        } else {
            self.take_other(store, line, out);
        }
        Ok(())
    }

    /// A header, or a line that is no entry.
    fn take_other(&mut self, store: &Store, line: &[u8], out: &mut Vec<u8>) {
        const BOM: &[u8] = b"\xEF\xBB\xBF";
        let first = self.headers.is_empty();
        let text = line.strip_prefix(BOM).filter(|_| first).unwrap_or(line);
        let is_header = if first {
            self.offset + (line.len() - text.len()) as u64 == store.header_offset()
        } else {
            envelope::read(text).is_ok_and(|e| e.kind == Kind::Header)
        };
        if !is_header {
            out.extend_from_slice(line);
            return;
        }
        self.headers
            .push(self.headers.len() as u64 + u64::from(self.row));
        out.extend_from_slice(&line[..line.len() - text.len()]);
        out.extend(splice::splice(text, &[("version", CURRENT)], &[]));
    }

    fn take_row(&mut self, store: &Store, line: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let index = store.index();
        let hook =
            index.kind(self.row) == Kind::Message && index.role(self.row) == Role::HookMessage;
        if matches!(self.ids, Ids::Present) && !hook {
            out.extend_from_slice(line);
            return Ok(());
        }
        let mut outline = Outline::default();
        let shape = json::walk(line, &mut outline)
            .map_err(|_| self.changed(store, "the file changed since it was read"))?;
        let role = outline.role.clone().filter(|_| hook);
        let renamed = role.map(|role| (role, &b"\"custom\""[..]));
        if matches!(self.ids, Ids::Present) {
            splice::apply(line, renamed.as_slice(), &[], false, out);
            return Ok(());
        }
        if shape != Shape::Object {
            self.derived.push(0);
            out.extend_from_slice(line);
            return Ok(());
        }
        self.take_entry(store, line, &outline, renamed, out)
    }

    /// An entry of version 1: gives it its id and parent.
    fn take_entry(
        &mut self,
        store: &Store,
        line: &[u8],
        outline: &Outline,
        renamed: Option<Edit<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let index = store.index();
        let id = self.draw(index, line, outline);
        let parent = std::mem::replace(&mut self.previous, id);
        if index.kind(self.row) == Kind::Compaction {
            return self.take_compaction(store, line, outline, &parent, out);
        }
        self.boundary.get_or_insert(self.row);
        let mut edits: Vec<Edit<'_>> = renamed.into_iter().collect();
        let mut added: Vec<Member<'_>> = Vec::new();
        let members = [
            ("id", &outline.id, &self.previous),
            ("parentId", &outline.parent, &parent),
        ];
        for (key, place, value) in members {
            match place {
                Some(place) => edits.push((place.clone(), value)),
                None => added.push((key, value)),
            }
        }
        edits.sort_by_key(|(range, _)| range.start);
        splice::apply(line, &edits, &added, !outline.any, out);
        Ok(())
    }

    /// The text of the entry's id: its own, or a new one.
    fn draw(&mut self, index: &Index, line: &[u8], outline: &Outline) -> Vec<u8> {
        let own = outline.id.clone().filter(|_| keeps_id(index, self.row));
        if let Some(own) = own {
            self.derived.push(0);
            return line[own].to_vec();
        }
        if let Ids::Given(_) = self.ids {
            return self.new_id(self.row);
        }
        let mut attempt = 0;
        let mut id = derived_id(self.line, line, attempt);
        while self.taken.contains(&id) || is_taken(index, id) {
            attempt += 1;
            id = derived_id(self.line, line, attempt);
        }
        self.taken.insert(id);
        self.derived.push(id);
        self.new_id(self.row)
    }

    /// The text of the new id of a row that has been taken.
    fn new_id(&self, row: Row) -> Vec<u8> {
        match &self.ids {
            Ids::Given(texts) => texts.get(row as usize).cloned(),
            _ => self.derived.get(row as usize).map(|&id| quoted(id)),
        }
        .unwrap_or_default()
    }

    fn take_compaction(
        &mut self,
        store: &Store,
        line: &[u8],
        outline: &Outline,
        parent: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let index = store.index();
        let named = outline.kept.clone().map(|range| &line[range]);
        let named = named.and_then(|text| earlier(index, text, self.row));
        let number = outline.index.clone().map(|range| &line[range]);
        let wanted = number.and_then(|text| self.row_numbered(store, text));
        // An index that cannot be used, and no id either: nothing more than before is given up.
        let rescued = self
            .boundary
            .filter(|_| number.is_some() && named.is_none());
        let kept = wanted.or(rescued);
        self.boundary = kept.or(named).or(Some(self.row));
        let kept_id = match kept {
            // All before it was summarised: it keeps itself, and nothing before.
            Some(row) if row == self.row => Some(self.previous.clone()),
            _ => kept.map(|row| self.id_text(store, row)).transpose()?,
        };
        let mut set: Vec<Member<'_>> = vec![("id", &self.previous), ("parentId", parent)];
        set.extend(kept_id.iter().map(|id| ("firstKeptEntryId", id.as_slice())));
        let is_number = number.is_some_and(|text| matches!(text.first(), Some(b'-' | b'0'..=b'9')));
        let gone: &[&str] = if is_number {
            &["firstKeptEntryIndex"]
        } else {
            &[]
        };
        out.extend(splice::splice(line, &set, gone));
        Ok(())
    }

    /// The entry up to the compaction that an index means: that kept line, or if it can have no
    /// id the next one that has. The compaction's own index is what a session had whose last
    /// message was summarised too.
    fn row_numbered(&self, store: &Store, text: &[u8]) -> Option<Row> {
        let number = Some(json::number(text)).filter(|n| n.fract() == 0.0 && *n >= 1.0)?;
        let number = number as u64;
        if self.headers.contains(&number) {
            return None;
        }
        let before = self.headers.iter().filter(|&&h| h < number).count() as u64;
        let row = number - before;
        let row = Row::try_from(row).ok()?;
        if row == self.row {
            return Some(row);
        }
        (row..self.row).find(|&row| has_id(store, row))
    }

    /// The text of the id that a row before this one has in the new file.
    fn id_text(&self, store: &Store, row: Row) -> Result<Vec<u8>> {
        if !keeps_id(store.index(), row) {
            return Ok(self.new_id(row));
        }
        let line = store.line(row)?;
        let mut outline = Outline::default();
        let _ = json::walk(&line, &mut outline);
        Ok(outline.id.map_or_else(Vec::new, |id| line[id].to_vec()))
    }
}

/// Whether a row's id stays: a string that look-ups of it give this row for.
fn keeps_id(index: &Index, row: Row) -> bool {
    index.owner(row) == row && matches!(index.id(row), Key::Text(id) if !id.is_empty())
}

/// Whether a row's line has a place for an id.
fn has_id(store: &Store, row: Row) -> bool {
    let object = |line: Vec<u8>| line.trim_ascii_start().first() == Some(&b'{');
    store.line(row).is_ok_and(object)
}

/// The row that an id's text names, if it comes before `row` and keeps this id.
fn earlier(index: &Index, text: &[u8], row: Row) -> Option<Row> {
    let text = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let found = index.find(&Key::Text((&*json::decode_string(text)).into()))?;
    (found < row && keeps_id(index, found)).then_some(found)
}

fn is_taken(index: &Index, id: u32) -> bool {
    let text = format!("{id:08x}");
    index.find(&Key::Text(text.as_bytes().into())).is_some()
}

fn quoted(id: u32) -> Vec<u8> {
    format!("\"{id:08x}\"").into_bytes()
}

/// The new id of an entry of a version 1 file, as a number: it is written in eight hex digits.
///
/// The line (without its LF) is taken in words of eight bytes, little-endian, the last one filled up
/// with zeros. From `h`, the line's length, and `n = line number + 2^40 * attempt` on, each of `n` and
/// the words does `h = (h ^ word) * 0x9E3779B97F4A7C15`, `h = h ^ (h >> 32)`, modulo 2^64. The id is
/// the upper half of `h * 0x9E3779B97F4A7C15`.
///
/// ```
/// use sessiontree_core::migrate::derived_id;
/// assert_eq!(format!("{:08x}", derived_id(2, br#"{"type":"custom"}"#, 0)), "58f1ab5a");
/// ```
pub fn derived_id(line: u64, text: &[u8], attempt: u64) -> u32 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(FACTOR);
        hash ^ (hash >> 32)
    };
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut hash = mix(text.len() as u64, line.wrapping_add(attempt << 40));
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        hash = mix(hash, u64::from_le_bytes(last));
    }
    (hash.wrapping_mul(FACTOR) >> 32) as u32
}

#[cfg(test)]
mod tests;
