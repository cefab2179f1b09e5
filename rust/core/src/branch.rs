//! The path to one entry as a session of its own.
//!
//! Label entries are left out, and what hung on one hangs on the entry before it; a compaction whose
//! first kept entry was a label keeps from the next entry on. These members are spliced, every other
//! byte stays as it is. Most of a path lies in the file in one piece or a few: long runs of lines
//! that do not change are copied by the kernel from file to file, the others go through one buffer.
//! The index of the new session is made from the columns of the old one, so nothing is scanned.
//!
//! Lines that pass through the buffer are checked to be those that were indexed; of a run that the
//! kernel copies the first and the last one are. What is read of the new file later is checked line
//! by line, as it always is.

use crate::Row;
use crate::append::How;
use crate::draft::Draft;
use crate::envelope::{self, Key, Kind, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Index, ROOT};
use crate::json;
use crate::splice;
use crate::store::{Backing, Options, Store};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Runs of unchanged lines with so many bytes are left to the kernel.
const LONG: u64 = 1 << 19;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 18;

/// Lines that are planned to go through the buffer at once.
const BATCH: usize = 1024;

/// What the new session consists of.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The header's line, with its LF.
    pub header: &'a [u8],
    /// The rows of the path, from the root on.
    pub path: &'a [Row],
    /// Whole lines that come last.
    pub more: &'a [u8],
}

type GoOn<'a> = &'a mut dyn FnMut() -> bool;

impl Store {
    /// Makes a session of a path. With a conversation on it the session is written to `target`, all
    /// or nothing; otherwise, and without a target, it lies in memory.
    pub fn branch(
        &self,
        parts: Parts<'_>,
        target: Option<&Path>,
        sync: bool,
        go_on: GoOn<'_>,
    ) -> Result<Self> {
        self.branch_by(LONG, parts, target, sync, go_on)
    }

    fn branch_by(
        &self,
        long: u64,
        parts: Parts<'_>,
        target: Option<&Path>,
        sync: bool,
        go_on: GoOn<'_>,
    ) -> Result<Self> {
        let plan = Plan::new(&self.index, parts.path, long);
        let target = target.filter(|_| plan.talks);
        // A file that is there may be an empty one, which is given its content.
        let is_free = |path: &&Path| std::fs::symlink_metadata(path).is_err();
        let draft = target.filter(is_free).map(Draft::begin).transpose()?;
        let mut copy = Copying::begin(self, parts.header, draft)?;
        copy.take_all(&plan, go_on)?;
        copy.take_own(parts.more)?;
        match (copy.draft.is_some(), target) {
            (true, Some(path)) => copy.published(path, sync),
            (false, Some(path)) => {
                let mut store = copy.in_memory();
                let strict = false;
                store.persist(path, b"", How { strict, sync })?;
                Ok(store)
            }
            _ => Ok(copy.in_memory()),
        }
    }
}

/// What is to be copied.
struct Plan {
    /// The rows without the labels.
    kept: Vec<Row>,
    /// Labels that are left out, with the entry that comes next.
    moved: FxHashMap<Row, Row>,
    /// Whether there is a conversation, so that the session has a file.
    talks: bool,
    /// Runs of so many bytes are left to the kernel.
    long: u64,
}

impl Plan {
    fn new(index: &Index, path: &[Row], long: u64) -> Self {
        let mut plan = Self {
            kept: Vec::with_capacity(path.len()),
            moved: FxHashMap::default(),
            talks: false,
            long,
        };
        let mut waiting = Vec::new();
        for &row in path {
            if index.kind(row) == Kind::Label {
                waiting.push(row);
                continue;
            }
            plan.kept.push(row);
            plan.talks |= index.kind(row) == Kind::Message
                && matches!(index.role(row), Role::User | Role::Assistant);
            if !waiting.is_empty() && index.has_text_id(row) {
                plan.moved
                    .extend(waiting.drain(..).map(|label| (label, row)));
            }
        }
        plan
    }

    fn before(&self, at: usize) -> Option<Row> {
        at.checked_sub(1).map(|before| self.kept[before])
    }

    /// Whether the line at this place stays as it is, as far as the index tells.
    fn stays(&self, index: &Index, at: usize) -> bool {
        let row = self.kept[at];
        let edited = index.kind(row) == Kind::Compaction && !self.moved.is_empty();
        !edited && self.before(at) == Some(index.parent(row))
    }

    /// How many places from `at` on lie in the file in one piece and stay as they are, and the bytes
    /// of that piece, without the last LF.
    fn run(&self, index: &Index, at: usize) -> (usize, Range<u64>) {
        let (start, _) = index.span(self.kept[at]);
        let mut end = start;
        let mut count = 0;
        while at + count < self.kept.len() {
            let (offset, length) = index.span(self.kept[at + count]);
            let adjoins = count == 0 || offset == end + 1;
            if !adjoins || !self.stays(index, at + count) {
                break;
            }
            end = offset + length;
            count += 1;
        }
        (count, start..end)
    }
}

/// A session that is being made of another one.
struct Copying<'s> {
    source: &'s Store,
    draft: Option<Draft>,
    /// Bytes that are not in the draft yet.
    out: Vec<u8>,
    /// What is known of the new session.
    new: Store,
}

impl<'s> Copying<'s> {
    fn begin(source: &'s Store, header: &[u8], draft: Option<Draft>) -> Result<Self> {
        let new = Store::memory(header.to_vec(), Options::default())?;
        Ok(Self {
            source,
            draft,
            out: header.to_vec(),
            new,
        })
    }

    fn take_all(&mut self, plan: &Plan, go_on: GoOn<'_>) -> Result<()> {
        let index = &self.source.index;
        let from_file = matches!(self.source.backing, Backing::File(_)) && self.draft.is_some();
        let mut at = 0;
        let mut buffer = Vec::new();
        while at < plan.kept.len() {
            let mut end = at;
            let run = loop {
                let (count, bytes) = plan.run(index, end);
                if from_file && bytes.end - bytes.start >= plan.long {
                    break Some((end..end + count, bytes));
                }
                end += count.max(1);
                if end == plan.kept.len() || end - at >= BATCH {
                    break None;
                }
            };
            while at < end {
                at += self.take_lines(plan, at..end, &mut buffer)?;
            }
            if let Some((places, bytes)) = run {
                at = places.end;
                self.take_run(plan, places, bytes, go_on)?;
            }
            if !go_on() {
                return Err(ErrorKind::Cancelled.into());
            }
        }
        Ok(())
    }

    /// Takes lines that stay as they are and lie in one piece.
    fn take_run(
        &mut self,
        plan: &Plan,
        places: Range<usize>,
        bytes: Range<u64>,
        go_on: GoOn<'_>,
    ) -> Result<()> {
        for row in [plan.kept[places.start], plan.kept[places.end - 1]] {
            // A longer line would take memory; it fills the run alone, or nearly.
            if self.source.index.span(row).1 < LONG {
                self.source.line(row)?;
            }
        }
        let lost = Error::lost(
            &self.source.path,
            bytes.end,
            "the file is shorter than when it was read",
        );
        self.flush()?;
        if let (Some(draft), Backing::File(file)) = (&mut self.draft, &self.source.backing)
            && !draft.copy(file, bytes, go_on)?
        {
            return Err(lost);
        }
        self.out.push(b'\n');
        for at in places {
            let row = plan.kept[at];
            let length = self.source.index.span(row).1;
            self.note(row, length, plan.before(at));
        }
        Ok(())
    }

    /// Takes the first of some lines through the buffer; how many.
    fn take_lines(
        &mut self,
        plan: &Plan,
        places: Range<usize>,
        buffer: &mut Vec<u8>,
    ) -> Result<usize> {
        let ranges = self.source.read_group(&plan.kept[places.clone()], buffer)?;
        for (at, range) in places.zip(&ranges) {
            self.take_line(plan, at, &buffer[range.clone()]);
        }
        if self.out.len() >= BUFFER {
            self.flush()?;
        }
        Ok(ranges.len())
    }

    fn take_line(&mut self, plan: &Plan, at: usize, line: &[u8]) {
        let index = &self.source.index;
        let (row, before) = (plan.kept[at], plan.before(at));
        let is_child = match before {
            Some(before) => index.parent(row) == before,
            None => index.parent(row) == ROOT && has_null_parent(line),
        };
        let parent = before.filter(|&row| is_child || index.has_text_id(row));
        let mut set = Vec::new();
        if !is_child {
            let text = parent.map_or_else(|| b"null".to_vec(), |row| id_text(index, row));
            set.push(("parentId", text));
        }
        if let Some(first) = first_kept(index, plan, row, line) {
            set.push(("firstKeptEntryId", id_text(index, first)));
        }
        let length = if set.is_empty() {
            self.out.extend_from_slice(line);
            line.len()
        } else {
            let members: Vec<_> = set.iter().map(|(key, text)| (*key, &text[..])).collect();
            let spliced = splice::splice(line, &members, &[]);
            self.out.extend_from_slice(&spliced);
            spliced.len()
        };
        self.out.push(b'\n');
        self.note(row, length as u64, parent);
    }

    /// Takes a line that has been copied into the index.
    fn note(&mut self, row: Row, length: u64, parent: Option<Row>) {
        let (new, old) = (&mut self.new, &self.source.index);
        new.index.push_copy(old, row, (new.end, length), parent);
        new.end += length + 1;
        new.sealed_end = new.end;
        new.lines += 1;
    }

    /// Takes lines that are no copies.
    fn take_own(&mut self, lines: &[u8]) -> Result<()> {
        self.out.extend_from_slice(lines);
        self.new.index_own(0, lines.into())
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(draft) = &mut self.draft {
            draft.write(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn published(mut self, path: &Path, sync: bool) -> Result<Store> {
        self.flush()?;
        if let Some(draft) = self.draft {
            self.new.go_on_in(path, draft.publish(sync)?);
        }
        Ok(self.new)
    }

    fn in_memory(mut self) -> Store {
        self.new.path = PathBuf::new();
        self.new.backing = Backing::Memory(self.out);
        self.new
    }
}

/// Whether the parent is null as it should be, and not false, 0, an empty text or left out.
fn has_null_parent(line: &[u8]) -> bool {
    envelope::read(line).is_ok_and(|envelope| envelope.parent == Key::Null)
}

/// The entry that a compaction keeps first now, if the one that it names is a label that goes.
fn first_kept(index: &Index, plan: &Plan, row: Row, line: &[u8]) -> Option<Row> {
    if index.kind(row) != Kind::Compaction || plan.moved.is_empty() {
        return None;
    }
    let members = json::members(line).filter(|(key, _)| json::key_is(key, "firstKeptEntryId"));
    let text = members.last()?.1.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let named = index.find(&Key::Text((&*json::decode_string(text)).into()))?;
    plan.moved.get(&named).copied().filter(|_| named != row)
}

/// The JSON text of a row's id, which is a string.
fn id_text(index: &Index, row: Row) -> Vec<u8> {
    match index.id(row) {
        Key::Text(id) => splice::quoted(&id),
        _ => b"null".to_vec(),
    }
}

#[cfg(test)]
mod tests;
