//! What listings have shown, kept in a file, so that only changed files are read again.
//!
//! A line with a version and the check sum of the rest; then the number of rows, and the rows: inode and
//! time of its last change, and what is shown, as [`packed`] writes it. A row counts if size, inode and
//! both times of its file are what they were. So the file is a guess that is checked: where it is
//! missing, damaged, made up, or of another version, everything is read and the answer is the same.
//!
//! Rows of files that changed just before they were looked at are not kept: another change could
//! leave no trace.

use super::{Candidate, Files, Options, Trouble};
use crate::error::Result;
use crate::place;
use crate::summary::{Summary, packed};
use rustc_hash::FxHashMap;
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

/// Characters of the first message that are shown.
pub const FIRST_WORDS: usize = 1000;

/// Bytes of the line with the check sum.
const FIRST_LINE: usize = 39;

fn first_line(sum: u64) -> String {
    format!("sessiontree listing 3 {sum:016x}\n")
}

/// What has to be as it was for a row to count, besides the size and the time of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// 0 where the system has none.
    inode: u64,
    /// When the inode changed last, in nanoseconds since 1970; 0 where the system does not say.
    changed: i64,
}

impl Mark {
    #[cfg(unix)]
    pub(super) fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let nanos = meta.ctime().saturating_mul(1_000_000_000);
        Self {
            inode: meta.ino(),
            changed: nanos.saturating_add(meta.ctime_nsec()),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Self {
        Self::default()
    }

    pub(super) fn inode(self) -> u64 {
        self.inode
    }
}

/// What is shown of a session, and by what it is known again; no mark if it must not be kept.
#[derive(Debug, Clone)]
pub struct Row {
    pub path: PathBuf,
    pub shown: Summary,
    pub mark: Option<Mark>,
}

/// A path and what is shown of its file.
pub type Shown = (PathBuf, Result<(Summary, Option<Mark>)>);

/// Session files, and the rows of those that need not be read.
#[derive(Debug)]
pub struct KeptFiles {
    /// The others.
    files: Files,
    known: Vec<Row>,
    /// Files that changed at this time or later are not kept, in nanoseconds since 1970.
    settled: i64,
    stale: bool,
}

impl KeptFiles {
    /// Finds the files, and what is kept of them in the file `kept`, if there is one.
    ///
    /// # Errors
    /// Those of [`Files::find`].
    pub fn find(
        root: &Path,
        options: Options,
        kept: Option<&Path>,
        settled: i64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let mut all = Self {
            files: Files::find(root, options, go_on)?,
            known: Vec::new(),
            settled,
            stale: false,
        };
        if let Some(rows) = kept.and_then(load) {
            all.take_known(rows);
        }
        Ok(all)
    }

    /// Takes the files out of which there are rows that count.
    fn take_known(&mut self, rows: Vec<Old>) {
        let mut old: FxHashMap<_, _> = rows
            .into_iter()
            .map(|row| (row.path, (row.shown, row.mark)))
            .collect();
        let mut path = PathBuf::new();
        for file in std::mem::take(&mut self.files.found) {
            self.files.write_path(&file, &mut path);
            match old.remove(path.as_os_str().as_encoded_bytes()) {
                Some((shown, mark)) if mark == file.mark && is_of(&shown, &file) => {
                    self.known.push(Row {
                        path: path.clone(),
                        shown,
                        mark: Some(mark),
                    });
                }
                _ => self.files.found.push(file),
            }
        }
        self.stale = !old.is_empty();
    }

    /// The rows of files that need not be read, in no order; given out once.
    pub fn known(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.known)
    }

    /// How many files have to be read, or have been.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What could not be looked at so far; told once.
    pub fn troubles(&mut self) -> Vec<Trouble> {
        self.files.troubles()
    }

    /// Whether there are other rows to keep now than are kept.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Reads some of the files that must be read, as [`Files::summaries`] does.
    pub fn read(
        &mut self,
        count: usize,
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Shown>> {
        let start = self.files.next;
        let all = self.files.summaries(count, bytes, go_on)?;
        let rows = all.into_iter().zip(&self.files.found[start..]);
        let rows: Vec<_> = rows
            .map(|((path, shown), file)| {
                let shown = shown.map(|mut shown| {
                    shorten(&mut shown.first_message);
                    let mark = self.may_keep(&shown, file).then_some(file.mark);
                    (shown, mark)
                });
                (path, shown)
            })
            .collect();
        self.stale |= rows.iter().any(|(_, s)| matches!(s, Ok((_, Some(_)))));
        Ok(rows)
    }

    /// What was looked at must be what was read, and settled.
    fn may_keep(&self, shown: &Summary, file: &Candidate) -> bool {
        is_of(shown, file) && file.mtime.max(file.mark.changed) < self.settled
    }
}

fn is_of(shown: &Summary, file: &Candidate) -> bool {
    (shown.size, shown.mtime) == (file.size, file.mtime)
}

/// Cuts a text behind its first [`FIRST_WORDS`] characters.
fn shorten(text: &mut Vec<u8>) {
    let begins = |&(_, &byte): &(usize, &u8)| byte & 0xC0 != 0x80;
    let next = text.iter().enumerate().filter(begins).nth(FIRST_WORDS);
    if let Some((end, _)) = next {
        text.truncate(end);
        text.shrink_to_fit();
    }
}

/// A row as it was kept. Its path cannot be made of these bytes again on every system, but compared.
struct Old {
    path: Vec<u8>,
    shown: Summary,
    mark: Mark,
}

/// The whole file that keeps these rows; a row with a text of 4 GB is left out.
pub fn written<'a>(rows: impl Iterator<Item = (&'a Path, &'a Summary, Mark)>) -> Vec<u8> {
    let (mut count, mut out) = (0_u64, vec![0; 8]);
    for (path, shown, mark) in rows {
        let start = out.len();
        out.extend(mark.inode.to_le_bytes());
        out.extend(mark.changed.to_le_bytes());
        if packed::put(&mut out, path.as_os_str().as_encoded_bytes(), shown) {
            count += 1;
        } else {
            out.truncate(start);
        }
    }
    out[..8].copy_from_slice(&count.to_le_bytes());
    [first_line(xxh3_64(&out)).as_bytes(), &out].concat()
}

fn load(path: &Path) -> Option<Vec<Old>> {
    let (mut file, meta) = place::open_to_read(path).ok()?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(usize::try_from(meta.len()).ok()?)
        .ok()?;
    file.read_to_end(&mut bytes).ok()?;
    read(&bytes)
}

/// The rows of a file with these bytes; none if it is not as it was written.
fn read(bytes: &[u8]) -> Option<Vec<Old>> {
    let (first, mut rest) = bytes.split_at_checked(FIRST_LINE)?;
    if first != first_line(xxh3_64(rest)).as_bytes() {
        return None;
    }
    let mut rows = Vec::new();
    for _ in 0..u64::from_le_bytes(packed::take_bytes(&mut rest)?) {
        rows.push(read_row(&mut rest)?);
    }
    rest.is_empty().then_some(rows)
}

fn read_row(rest: &mut &[u8]) -> Option<Old> {
    let mark = Mark {
        inode: u64::from_le_bytes(packed::take_bytes(rest)?),
        changed: i64::from_le_bytes(packed::take_bytes(rest)?),
    };
    let (path, shown) = packed::take(rest)?;
    Some(Old { path, shown, mark })
}
