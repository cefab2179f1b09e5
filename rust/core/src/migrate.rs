//! An old file as a file of the current version, part by part.
//!
//! Version 1 has no tree: each entry gets an `id` and, as `parentId`, that of the entry before it;
//! a compaction's `firstKeptEntryIndex` (which counts kept lines, the header is 0) becomes
//! `firstKeptEntryId`. Up to version 2 a message's role `custom` was called `hookMessage`. Headers
//! get `version` 3.
//!
//! Only these members change ([`splice`](crate::splice)); all other bytes are copied, blank lines,
//! lines that are no JSON and a torn tail among them. The file is read once more in [`blocks`] that
//! end with a line, and nothing of it is kept but four bytes an entry for its new id. What an entry
//! lacks is known from the index, so most lines need not be looked at again.
//!
//! - An id that is a string and belongs to the entry alone stays, so that labels and edits still
//!   find it; of an id that stands twice the last line keeps it, which is the one that look-ups give.
//! - New ids are eight hex digits of a hash of line number and line ([`derived_id`]), hashed anew
//!   while another entry has them: every program that migrates the file, or only reads it, arrives at
//!   the same ids. A caller may bring ids instead.
//! - Lines that hold no object (`5`, `[1]`) have no place for an id and stay outside of the chain.
//! - Where an index names no entry up to the compaction, everything from the previous compaction's
//!   boundary on is kept: rather too long a context than a lost one.

mod blocks;

use crate::Row;
use crate::draft::{Draft, Made};
use crate::envelope::{self, Key, Kind, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::json::{self, Shape, Visitor};
use crate::splice::{self, Edit, Member};
use crate::store::{Backing, Store};
use blocks::{Block, Blocks};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::{Builder, scope};

const CURRENT: &[u8] = b"3";

/// Blocks that may wait to be taken.
const AHEAD: usize = 2;

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

/// A migration on its way: ask for [`next_part`](Self::next_part) until there is nothing more, or
/// have all of it written.
#[derive(Debug)]
pub struct Migration {
    blocks: Blocks,
    writer: Writer,
    /// What a part is made of, and its text; they are used again for the next.
    block: Block,
    new: Vec<u8>,
}

/// Makes new lines of old ones.
#[derive(Debug)]
struct Writer {
    ids: Ids,
    row: Row,
    /// Lines that were taken.
    lines: u64,
    /// The kept lines that are headers, by their place among all kept lines.
    headers: Vec<u64>,
    /// New ids by row; of rows that keep theirs or can have none it is not used.
    derived: Vec<u32>,
    taken: FxHashSet<u32>,
    /// The text of the id of the entry before, for `parentId`, and the id.
    previous: Vec<u8>,
    previous_key: Key,
    /// The first row that the newest compaction keeps, or the first entry.
    boundary: Option<Row>,
    /// What is known of the new file.
    known: Store,
    /// The next of the skipped lines.
    skipped: usize,
}

/// A line of the old file.
#[derive(Clone, Copy)]
struct Old<'a> {
    text: &'a [u8],
    offset: u64,
    /// The new id, as a number, if the entry needs one and nobody has it.
    fresh: u32,
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
            blocks: Blocks::new(store, matches!(ids, Ids::Derived)),
            writer: Writer::new(store, ids),
            block: Block::default(),
            new: Vec::new(),
        }
    }

    /// The next part of the new file; None at its end. The store must be the one it began with.
    pub fn next_part(&mut self, store: &Store) -> Result<Option<&[u8]>> {
        if !self.blocks.next(store, &mut self.block)? {
            return Ok(None);
        }
        self.new.clear();
        self.writer
            .take_block(store, &self.block, &mut self.new)
            .map(|()| Some(self.new.as_slice()))
    }

    /// Writes the whole new file; one thread reads while another one writes.
    pub fn write_to(
        &mut self,
        store: &Store,
        draft: &mut Draft,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let (blocks, writer, new) = (&mut self.blocks, &mut self.writer, &mut self.new);
        let done = scope(|scope| {
            let (full, filled) = sync_channel(AHEAD);
            let (used, empty) = channel();
            let read = move || blocks.send_all(store, &empty, &full);
            Builder::new().spawn_scoped(scope, read).ok()?;
            let take = |block: &Block| {
                new.clear();
                writer.take_block(store, block, new)?;
                draft.write(new)?;
                if go_on() {
                    Ok(())
                } else {
                    Err(ErrorKind::Cancelled.into())
                }
            };
            // Once this has ended nobody waits to send.
            Some(take_all(filled, take, |block| drop(used.send(block))))
        });
        if let Some(done) = done {
            return done;
        }
        // No thread is to be had.
        while let Some(part) = self.next_part(store)? {
            draft.write(part)?;
        }
        Ok(())
    }

    /// The new file as a session, without a scan; None if that is not known of this version, or has
    /// been given already.
    pub fn finish(&mut self, store: &Store, path: &Path, made: Made) -> Option<Store> {
        if matches!(self.writer.ids, Ids::Present) || self.blocks.is_left() {
            return None;
        }
        let nothing = Store::empty(PathBuf::new(), Backing::Memory(Vec::new()), store.options);
        let mut new = std::mem::replace(&mut self.writer.known, nothing);
        new.header?;
        new.tail = store.tail;
        new.lines = store.lines;
        new.go_on_in(path, made);
        Some(new)
    }
}

fn take_all(
    filled: Receiver<Result<Block>>,
    mut take: impl FnMut(&Block) -> Result<()>,
    give_back: impl Fn(Block),
) -> Result<()> {
    for block in filled {
        let block = block?;
        take(&block)?;
        give_back(block);
    }
    Ok(())
}

impl Writer {
    fn new(store: &Store, ids: Ids) -> Self {
        let mut known = Store::empty(PathBuf::new(), Backing::Memory(Vec::new()), store.options);
        known.report = store.report.clone();
        Self {
            ids,
            row: 0,
            lines: 0,
            headers: Vec::new(),
            derived: Vec::new(),
            taken: FxHashSet::default(),
            previous: b"null".to_vec(),
            previous_key: Key::Null,
            boundary: None,
            known,
            skipped: 0,
        }
    }

    /// Writes the lines of a block to `out`, which is empty.
    fn take_block(&mut self, store: &Store, block: &Block, out: &mut Vec<u8>) -> Result<()> {
        let base = self.known.end;
        for line in &block.lines {
            let old = Old {
                text: &block.bytes[line.place.clone()],
                offset: block.offset + line.place.start as u64,
                fresh: line.fresh,
            };
            self.lines += 1;
            if line.is_row {
                self.take_row(store, old, out)?;
                self.row += 1;
            } else {
                self.take_other(store, old, out)?;
            }
            let behind = line.place.end;
            let lf = &block.bytes[behind..block.bytes.len().min(behind + 1)];
            out.extend_from_slice(lf);
            self.known.end = base + out.len() as u64;
            if !lf.is_empty() {
                self.known.sealed_end = self.known.end;
            }
        }
        Ok(())
    }

    /// A header, or a line that is no entry.
    fn take_other(&mut self, store: &Store, old: Old<'_>, out: &mut Vec<u8>) -> Result<()> {
        const BOM: &[u8] = b"\xEF\xBB\xBF";
        let (line, start) = (old.text, self.known.end);
        let skipped = store.report.skipped_lines.get(self.skipped);
        if let Some(skipped) = skipped.filter(|skipped| skipped.line == self.lines) {
            self.known.report.skipped_lines[self.skipped].byte = skipped.byte - old.offset + start;
            self.skipped += 1;
        }
        let first = self.headers.is_empty();
        let text = line.strip_prefix(BOM).filter(|_| first).unwrap_or(line);
        let mark = line.len() - text.len();
        let is_header = if first {
            old.offset + mark as u64 == store.header_offset()
        } else {
            envelope::read(text).is_ok_and(|e| e.kind == Kind::Header)
        };
        if !is_header {
            out.extend_from_slice(line);
            return Ok(());
        }
        self.headers
            .push(self.headers.len() as u64 + u64::from(self.row));
        let header = splice::splice(text, &[("version", CURRENT)], &[]);
        out.extend_from_slice(&line[..mark]);
        out.extend_from_slice(&header);
        if first {
            let place = (start + mark as u64, header.len() as u64);
            let head = Store::memory(header, store.options).map_err(|_| lost(store, old.offset))?;
            self.known.take_header_of(head);
            self.known.header = Some(place);
        }
        Ok(())
    }

    fn take_row(&mut self, store: &Store, old: Old<'_>, out: &mut Vec<u8>) -> Result<()> {
        let (index, line) = (store.index(), old.text);
        let hook =
            index.kind(self.row) == Kind::Message && index.role(self.row) == Role::HookMessage;
        if matches!(self.ids, Ids::Present) && !hook {
            out.extend_from_slice(line);
            return Ok(());
        }
        if !hook && is_bare(index, self.row) {
            let text = line.trim_ascii();
            if text.first() != Some(&b'{') || text.last() != Some(&b'}') {
                return Err(lost(store, old.offset));
            }
            let outline = Outline {
                any: true,
                ..Outline::default()
            };
            return self.take_entry(store, old, &outline, None, out);
        }
        let mut outline = Outline::default();
        let shape = json::walk(line, &mut outline).map_err(|_| lost(store, old.offset))?;
        let role = outline.role.clone().filter(|_| hook);
        let renamed = role.map(|role| (role, &b"\"custom\""[..]));
        if matches!(self.ids, Ids::Present) {
            splice::apply(line, renamed.as_slice(), &[], false, out);
            return Ok(());
        }
        if shape != Shape::Object {
            self.derived.push(0);
            out.extend_from_slice(line);
            self.note(index, line.len(), Key::Missing, Key::Missing);
            return Ok(());
        }
        self.take_entry(store, old, &outline, renamed, out)
    }

    /// Takes the row into the index of the new file.
    fn note(&mut self, index: &Index, length: usize, id: Key, parent: Key) {
        let span = (self.known.end, length as u64);
        self.known
            .index
            .push_renamed(index, self.row, span, id, parent);
    }

    /// An entry of version 1: gives it its id and parent.
    fn take_entry(
        &mut self,
        store: &Store,
        old: Old<'_>,
        outline: &Outline,
        renamed: Option<Edit<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (index, line, start) = (store.index(), old.text, out.len());
        let id = self.draw(index, old, outline);
        let key = key_of(&id);
        let parent = std::mem::replace(&mut self.previous, id);
        let parent_key = std::mem::replace(&mut self.previous_key, key.clone());
        if index.kind(self.row) == Kind::Compaction {
            self.take_compaction(store, line, outline, &parent, out)?;
            self.note(index, out.len() - start, key, parent_key);
            return Ok(());
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
        self.note(index, out.len() - start, key, parent_key);
        Ok(())
    }

    /// The text of the entry's id: its own, or a new one.
    fn draw(&mut self, index: &Index, old: Old<'_>, outline: &Outline) -> Vec<u8> {
        let own = outline.id.clone().filter(|_| keeps_id(index, self.row));
        if let Some(own) = own {
            self.derived.push(0);
            return old.text[own].to_vec();
        }
        if let Ids::Given(_) = self.ids {
            return self.new_id(self.row);
        }
        let mut attempt = 0;
        let mut id = old.fresh;
        while self.taken.contains(&id) || is_taken(index, id) {
            attempt += 1;
            id = derived_id(self.lines, old.text, attempt);
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

fn lost(store: &Store, offset: u64) -> Error {
    Error::lost(store.path(), offset, "the file changed since it was read")
}

/// Whether a row is an object with members, but without id and parent, that is no compaction: then all
/// that it needs comes at its end.
fn is_bare(index: &Index, row: Row) -> bool {
    !matches!(index.kind(row), Kind::Untyped | Kind::Compaction)
        && index.has_no_id(row)
        && index.has_no_parent(row)
}

/// The id that a JSON string names.
fn key_of(text: &[u8]) -> Key {
    let inner = text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\""));
    Key::Text((&*json::decode_string(inner.unwrap_or_default())).into())
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
