//! Bytes that were indexed, read again: never fewer than were asked for, and never those of another
//! line.

use super::Store;
use crate::Row;
use crate::envelope::{self, Key};
use crate::error::{Error, ErrorKind, Result};
use crate::index::{MISSING, ROOT};
use crate::lines;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// A line of this size may be more than there is room for; that must not abort the process.
const HUGE: u64 = 16 << 20;

impl Store {
    /// Whether the header stands in the file as it was read: what is appended to another header is no
    /// growth of this session.
    pub(crate) fn header_stands(&self) -> Result<bool> {
        let (offset, length) = self.header.unwrap_or_default();
        match self.read(offset, length) {
            Ok(now) => Ok(now == self.header_text),
            Err(e) if matches!(e.kind(), ErrorKind::Lost { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Reads a part of the file; too few bytes are an error, never a shorter answer.
    pub fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        // Before the buffer is made: a length that no file has would abort the process.
        if offset.checked_add(length).is_none_or(|end| end > self.end) {
            return Err(Error::lost(
                &self.path,
                offset,
                "nothing was read there before",
            ));
        }
        let mut buffer = Vec::new();
        self.read_into(offset, length, &mut buffer)?;
        Ok(buffer)
    }

    /// Reads into a buffer, which will hold just these bytes.
    pub(crate) fn read_into(&self, offset: u64, length: u64, buffer: &mut Vec<u8>) -> Result<()> {
        // What is in the buffer already is read over: zeroing it first would cost as much as copying.
        let more = (length as usize).saturating_sub(buffer.len());
        if buffer.capacity() == 0 && length < HUGE {
            // Zeroed by the system, where that is for nothing.
            *buffer = vec![0; length as usize];
        } else if buffer.try_reserve_exact(more).is_err() {
            return Err(ErrorKind::NoMemory {
                path: self.path.clone(),
                bytes: length,
            }
            .into());
        }
        buffer.resize(length as usize, 0);
        match lines::read_exact_at(&self.backing, buffer, offset) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::lost(
                &self.path,
                offset,
                "the file is shorter than when it was read",
            )),
            Err(e) => Err(Error::io(e, &self.path)),
        }
    }

    /// The bytes of a row's line, without its LF.
    pub fn line(&self, row: Row) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        let ranges = self.read_group(&[row], &mut buffer)?;
        let range = ranges.into_iter().next().unwrap_or_default();
        buffer.truncate(range.end);
        buffer.drain(..range.start);
        Ok(buffer)
    }

    /// Reads the lines of the first of these rows into `buffer`: as many as lie close together in the
    /// file, at least one. Gives where each lies in the buffer.
    pub fn read_group(&self, rows: &[Row], buffer: &mut Vec<u8>) -> Result<Vec<Range<usize>>> {
        let spans: Vec<(u64, u64)> = rows.iter().map(|&row| self.index.span(row)).collect();
        let count = neighbours(&spans);
        let Some(&(start, _)) = spans.first() else {
            return Ok(Vec::new());
        };
        // The LFs around them tell whether they are lines still.
        let start = start.saturating_sub(1);
        let (last, length) = spans[count - 1];
        let end = (last + length + 1).min(self.end).max(start);
        let read = self.read_into(start, end - start, buffer);
        read.map_err(|error| match error.kind() {
            // What is missing is the line, not the LF before it.
            ErrorKind::Lost { reason, .. } => Error::lost(&self.path, spans[0].0, reason),
            _ => error,
        })?;
        let place = |&(at, len): &(u64, u64)| (at - start) as usize..(at - start + len) as usize;
        let ranges: Vec<Range<usize>> = spans[..count].iter().map(place).collect();
        for (&row, range) in rows.iter().zip(&ranges) {
            self.check_line(row, buffer, range.clone())?;
        }
        Ok(ranges)
    }

    /// Makes sure that bytes that were read again are the row's line still, all of it.
    fn check_line(&self, row: Row, buffer: &[u8], range: Range<usize>) -> Result<()> {
        let starts = range.start == 0 || buffer[range.start - 1] == b'\n';
        let ends = buffer.get(range.end).is_none_or(|&byte| byte == b'\n');
        let line = buffer.get(range).unwrap_or_default();
        if starts && ends && is_line(line) && self.is_of(row, line) {
            return Ok(());
        }
        Err(Error::lost(
            &self.path,
            self.index.span(row).0,
            "the file changed since it was read",
        ))
    }

    /// Whether a line is the row's, by its id and its parent. Nearly always both stand in it as they
    /// are, close to its start; escaped ones, or such as are no strings, take a whole look.
    fn is_of(&self, row: Row, line: &[u8]) -> bool {
        let (id, parent) = (self.index.id(row), self.index.parent(row));
        if has_text(line, &ID, &id) && self.has_parent(line, parent) {
            return true;
        }
        let Ok(found) = envelope::read(line) else {
            return false;
        };
        found.id == id
            && match parent {
                ROOT => found.parent.is_falsy(),
                MISSING => !found.parent.is_falsy() && self.index.find(&found.parent).is_none(),
                parent => found.parent == self.index.id(parent),
            }
    }

    /// Whether a line says plainly that its parent is that of a row.
    fn has_parent(&self, line: &[u8], parent: u32) -> bool {
        match parent {
            ROOT => values(line, &PARENT).any(|value| value.starts_with(b"null")),
            MISSING => false,
            parent => has_text(line, &PARENT, &self.index.id(parent)),
        }
    }
}

static ID: LazyLock<Finder> = LazyLock::new(|| Finder::new(b"\"id\":"));
static PARENT: LazyLock<Finder> = LazyLock::new(|| Finder::new(b"\"parentId\":"));

/// What follows the occurrences of a member's name, its blanks left out.
fn values<'l>(line: &'l [u8], name: &'l Finder) -> impl Iterator<Item = &'l [u8]> {
    let behind = name.find_iter(line).map(|at| at + name.needle().len());
    behind.map(|at| line[at..].trim_ascii_start())
}

/// Whether a member with this name has this string as its value, written without escapes.
fn has_text(line: &[u8], name: &Finder, key: &Key) -> bool {
    let Key::Text(text) = key else {
        return false;
    };
    let is_text = |value: &[u8]| {
        let inner = value.strip_prefix(b"\"");
        inner.and_then(|inner| inner.strip_prefix(&text[..])?.first()) == Some(&b'"')
    };
    values(line, name).any(is_text)
}

/// Whether bytes that were a line are still one line.
fn is_line(bytes: &[u8]) -> bool {
    !bytes.is_empty() && memchr::memchr(b'\n', bytes).is_none()
}

/// How many of the first spans are worth one read: each begins near the end of the one before.
fn neighbours(spans: &[(u64, u64)]) -> usize {
    const GAP: u64 = 4096;
    const GROUP: u64 = 1 << 20;
    let near = |pair: &[(u64, u64)]| {
        let end = pair[0].0 + pair[0].1;
        (end..=end + GAP).contains(&pair[1].0) && pair[1].0 + pair[1].1 <= spans[0].0 + GROUP
    };
    1 + spans.windows(2).take_while(|pair| near(pair)).count()
}
