//! The saved index of a big file: opening it again costs only what was appended since.
//!
//! One file for each session file, named by a hash of its path. It is a guess, never the authority:
//! it can be deleted at any time, and is believed only if
//!
//! - its own check sum holds and it was written by this version of the format,
//! - it was made for this path, device and inode,
//! - size, mtime and ctime (in ns) are those of the file now, and it was saved at least two seconds
//!   after the ctime (a change within the clock's step would not be seen otherwise); or the file has
//!   grown since, and
//! - the first and the last 4 KiB of what was indexed are what they were.
//!
//! What lies behind the saved end is scanned as ever. Trouble with the cache (a folder that cannot be
//! written, a full disk) is nobody's trouble: the session is scanned.

use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::index::saved::{In, Out};
use crate::lines::{self, Line, Source};
use crate::place as files;
use crate::store::{Backing, Options, Report, Skipped, Store, Tail};
use crate::{Row, draft};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

/// Changes with every change of what is written here or in the index's columns.
const MAGIC: &[u8; 8] = b"STINDEX1";
/// Smaller files are scanned in the time that a look into the cache would take.
pub const SMALLEST: u64 = 4 << 20;
/// All saved indexes together; the oldest are removed beyond it.
const ROOM: u64 = 512 << 20;
/// How much is compared at the seams.
const SEAM: u64 = 4096;
/// A change this soon before the saving could leave no trace in the file's times.
const RACY: u64 = 2_000_000_000;
const ENDING: &str = "index";

/// What a scan has found out, as far as it is saved.
#[derive(Debug)]
pub(crate) struct Saved {
    pub index: Index,
    pub report: Report,
    pub sealed_end: u64,
    pub lines: u64,
    pub header: (u64, u64),
}

/// The times and the place of a file, as far as they tell whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: u64,
    ctime: u64,
}

#[cfg(unix)]
fn stamp(meta: &Metadata) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let ns = |s: i64, ns: i64| u64::try_from(i128::from(s) * 1_000_000_000 + i128::from(ns)).ok();
    Some(Stamp {
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.len(),
        mtime: ns(meta.mtime(), meta.mtime_nsec())?,
        ctime: ns(meta.ctime(), meta.ctime_nsec())?,
    })
}

/// Without inode and ctime nothing is believed, so nothing is saved.
#[cfg(not(unix))]
fn stamp(_meta: &Metadata) -> Option<Stamp> {
    None
}

fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

fn place(folder: &Path, path: &Path) -> PathBuf {
    let hash = xxh3_128(path.as_os_str().as_encoded_bytes());
    folder.join(format!("{hash:032x}.{ENDING}"))
}

/// Hashes of the first and the last bytes before `end`.
fn seams<S: Source + ?Sized>(source: &S, end: u64) -> io::Result<Option<(u64, u64)>> {
    let length = SEAM.min(end);
    let mut bytes = vec![0; length as usize];
    let mut hash = |at| {
        Ok::<_, io::Error>(lines::read_exact_at(source, &mut bytes, at)?.then(|| xxh3_64(&bytes)))
    };
    Ok(hash(0)?.zip(hash(end - length)?))
}

/// The saved index of a file, if there is one and it can be believed.
pub(crate) fn load(folder: &Path, path: &Path, file: &File, meta: &Metadata) -> Option<Saved> {
    let stamp = stamp(meta).filter(|stamp| stamp.size >= SMALLEST)?;
    let (saved, length) = open_saved(&place(folder, path))?;
    read(saved, length, path, stamp, file)
}

/// What a saved index of `length` bytes says, if it can be believed of this file.
fn read<R: Read, S: Source + ?Sized>(
    mut saved: R,
    length: u64,
    path: &Path,
    now: Stamp,
    file: &S,
) -> Option<Saved> {
    let (magic, sum) = (eight(&mut saved)?, eight(&mut saved)?);
    let mut input = In::new(saved, length.checked_sub(16)?);
    if magic != *MAGIC || input.bytes()? != path.as_os_str().as_encoded_bytes() {
        return None;
    }
    let then = Stamp {
        dev: input.number()?,
        ino: input.number()?,
        size: input.number()?,
        mtime: input.number()?,
        ctime: input.number()?,
    };
    let saved_at = input.number()?;
    let sealed_end = input.number()?;
    if !is_believed(then, saved_at, now) || sealed_end > now.size {
        return None;
    }
    let known = (input.number()?, input.number()?);
    if seams(file, sealed_end).ok()?? != known {
        return None;
    }
    let lines = input.number()?;
    let header = (input.number()?, input.number()?);
    let report = read_report(&mut input)?;
    let index = Index::restore(&mut input, sealed_end)?;
    let inside = header
        .0
        .checked_add(header.1)
        .is_some_and(|end| end <= sealed_end);
    let sound = input.finish()? == u64::from_le_bytes(sum) && inside;
    sound.then_some(Saved {
        index,
        report,
        sealed_end,
        lines,
        header,
    })
}

fn open_saved(place: &Path) -> Option<(File, u64)> {
    let (file, meta) = files::open_to_read(place).ok()?;
    Some((file, meta.len()))
}

fn eight(file: &mut impl Read) -> Option<[u8; 8]> {
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn is_believed(then: Stamp, saved_at: u64, now: Stamp) -> bool {
    if (then.dev, then.ino) != (now.dev, now.ino) {
        return false;
    }
    let unchanged = then == now
        && saved_at
            .checked_sub(now.ctime)
            .is_some_and(|age| age >= RACY);
    unchanged || now.size > then.size
}

fn read_report<R: Read>(input: &mut In<R>) -> Option<Report> {
    let mut report = Report {
        skipped: input.number()?,
        blank: input.number()?,
        headers: input.number()?,
        ..Report::default()
    };
    for _ in 0..input.number()?.min(crate::store::REPORT_ROWS as u64) {
        report.skipped_lines.push(Skipped {
            line: input.number()?,
            byte: input.number()?,
            reason: String::from_utf8(input.bytes()?).ok()?.into(),
        });
    }
    Some(report)
}

fn write_report(out: &mut Out, report: &Report) {
    out.number(report.skipped);
    out.number(report.blank);
    out.number(report.headers);
    out.number(report.skipped_lines.len() as u64);
    for skipped in &report.skipped_lines {
        out.number(skipped.line);
        out.number(skipped.byte);
        out.bytes(skipped.reason.as_bytes());
    }
}

/// What is to be saved: a [`Saved`] that still belongs to its store.
struct ToSave<'a> {
    index: &'a Index,
    report: &'a Report,
    sealed_end: u64,
    lines: u64,
    header: (u64, u64),
}

/// Saves an index, if the file is worth it and has been quiet long enough to be believed later; `at`
/// is what the clock says.
fn save(folder: &Path, path: &Path, file: &File, what: &ToSave<'_>, at: u64) -> io::Result<()> {
    let Some(stamp) = stamp(&file.metadata()?) else {
        return Ok(());
    };
    let quiet = at.checked_sub(stamp.ctime).is_some_and(|age| age >= RACY);
    if !quiet || stamp.size < SMALLEST || stamp.size < what.sealed_end {
        return Ok(());
    }
    let Some(seams) = seams(file, what.sealed_end)? else {
        return Ok(());
    };
    make_folder(folder)?;
    replace(&place(folder, path), &written(path, stamp, at, seams, what))?;
    tidy(folder)
}

/// The bytes of a saved index, but for its beginning: the check sum is that of these.
fn written(path: &Path, stamp: Stamp, at: u64, seams: (u64, u64), what: &ToSave<'_>) -> Vec<u8> {
    let mut out = Out::default();
    out.bytes(path.as_os_str().as_encoded_bytes());
    for number in [
        stamp.dev,
        stamp.ino,
        stamp.size,
        stamp.mtime,
        stamp.ctime,
        at,
        what.sealed_end,
    ] {
        out.number(number);
    }
    for number in [seams.0, seams.1, what.lines, what.header.0, what.header.1] {
        out.number(number);
    }
    write_report(&mut out, what.report);
    what.index.save(&mut out);
    out.0
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Puts the bytes in the place of what stands there, at once.
fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = target.with_extension(format!("{}-{n}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let result = options.open(&temporary).and_then(|mut file| {
        // For as long as it is written: what nobody has locked is removed by whoever tidies up.
        files::claim(&file)?;
        file.write_all(MAGIC)?;
        file.write_all(&xxh3_64(bytes).to_le_bytes())?;
        file.write_all(bytes)?;
        fs::rename(&temporary, target)
    });
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Removes the oldest saved indexes until all have room, and what dead writers have left behind.
fn tidy(folder: &Path) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, meta) = (entry.path(), entry.metadata()?);
        let age = meta.modified()?.elapsed().unwrap_or_default();
        match path.extension().and_then(|e| e.to_str()) {
            Some(ENDING) => kept.push((age, meta.len(), path)),
            Some("tmp") => drop(draft::remove_if_dead(&path)),
            _ => {}
        }
    }
    kept.sort_unstable();
    let mut total = 0;
    for (_, size, path) in kept {
        total += size;
        if total > ROOM {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A saved index is made, or made anew, once so many bytes were scanned.
const SAVE_AFTER: u64 = SMALLEST;

impl Store {
    /// Opens a session file by its saved index, if `cache` has one that can be believed, and scans the
    /// rest; a scan that was worth it is saved there.
    pub fn open_cached(
        path: &Path,
        options: Options,
        cache: &Path,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let (file, meta) = files::open_to_read(path).map_err(|e| Error::io(e, path))?;
        // What stands before the header is judged by this option: one kind of answer is saved.
        if options.lenient_header {
            return Self::open_with(path, file, &meta, options, None, go_on);
        }
        let saved = load(cache, path, &file, &meta);
        let mut store = Self::open_with(path, file, &meta, options, saved, go_on)?;
        store.saved_in = (store.saved_end > 0).then(|| place(cache, path));
        if store.sealed_end - store.saved_end >= SAVE_AFTER {
            store.save_index(cache, now());
        }
        Ok(store)
    }

    /// Takes over what a saved index says. The header is read and judged anew.
    pub(crate) fn believe(&mut self, saved: Saved) -> Result<()> {
        let (offset, length) = saved.header;
        let mut text = vec![0; length as usize];
        lines::read_exact_at(&self.backing, &mut text, offset)
            .map_err(|e| Error::io(e, &self.path))?;
        let line = Line {
            offset,
            number: 1,
            length,
            bytes: &text,
            terminated: true,
        };
        self.take(&line)?;
        if self.header != Some(saved.header) {
            let backing = std::mem::replace(&mut self.backing, Backing::Memory(Vec::new()));
            let held = self.held;
            *self = Self::empty(std::mem::take(&mut self.path), backing, self.options);
            self.held = held;
            return Ok(());
        }
        self.index = saved.index;
        self.report = saved.report;
        (self.sealed_end, self.end, self.lines) = (saved.sealed_end, saved.sealed_end, saved.lines);
        self.saved_end = saved.sealed_end;
        Ok(())
    }

    /// Reads lines that are checked as they are read. Where one is not what the saved index says, that
    /// is given up for a scan, and the lines are read again.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if the scan finds other entries than the saved index told: rows that were
    /// given out before would mean something else.
    pub fn read_checked<R>(
        &mut self,
        mut read: impl FnMut(&Self) -> Result<R>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<R> {
        match read(self) {
            Err(error) if matches!(error.kind(), ErrorKind::Lost { .. }) => {
                if self.scan_anew(go_on)? {
                    read(self)
                } else {
                    Err(error)
                }
            }
            result => result,
        }
    }

    /// Scans what a saved index was believed for, and takes over what is found where the entries are
    /// the same. The saved index is removed.
    fn scan_anew(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
        let (Some(saved), Backing::File(file)) = (self.saved_in.take(), &self.backing) else {
            return Ok(false);
        };
        let _ = fs::remove_file(saved);
        let source = Backing::File(file.try_clone().map_err(|e| Error::io(e, &self.path))?);
        let mut fresh = Self::empty(self.path.clone(), Backing::Memory(Vec::new()), self.options);
        fresh.scan_lines(&source, false, true, go_on)?;
        fresh.scan_blocks(&source, self.sealed_end, go_on)?;
        if self.tail == Tail::Whole {
            let text = self.read(self.sealed_end, self.end - self.sealed_end)?;
            fresh.take(&Line {
                offset: self.sealed_end,
                number: fresh.lines + 1,
                length: text.len() as u64,
                bytes: &text,
                terminated: false,
            })?;
        }
        let rows = 0..self.index.len() as Row;
        let same = fresh.sealed_end == self.sealed_end
            && fresh.index.len() == self.index.len()
            && rows.into_iter().all(|row| {
                // A path that was given out must be one still.
                fresh.index.id(row) == self.index.id(row)
                    && fresh.index.parent(row) == self.index.parent(row)
            });
        if same {
            (self.index, self.report, self.lines) = (fresh.index, fresh.report, fresh.lines);
            self.saved_end = 0;
        }
        Ok(same)
    }

    fn save_index(&self, cache: &Path, at: u64) {
        if let (Backing::File(file), Some(header)) = (&self.backing, self.header) {
            let what = ToSave {
                index: &self.index,
                report: &self.report,
                sealed_end: self.sealed_end,
                lines: self.lines,
                header,
            };
            // Nobody's trouble, see above.
            let _ = save(cache, &self.path, file, &what, at);
        }
    }
}
