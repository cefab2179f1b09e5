//! One session: its bytes (a file, or memory), its index, and what the scan met.
//!
//! The bytes up to `end` were looked at. A last line without LF is taken as an entry when it parses
//! and an entry is wanted (`Tail::Whole`), and left alone otherwise (`Tail::Torn`); either way an
//! append starts with an LF.

#[cfg(test)]
pub(crate) mod known;
mod reading;
mod report;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

use crate::append::Writer;
use crate::cache::Saved;
use crate::envelope::{self, Key, Kind};
use crate::error::{Error, ErrorKind, Result};
use crate::header::{self, Verdict};
use crate::index::Index;
use crate::json;
use crate::lines::{CHUNK, Line, LineReader, Source};
use crate::place::{self, Identity};
use crate::scan::{self, Block, Plan};
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::available_parallelism;

pub use report::{REPORT_ROWS, Report, Skipped};

/// Bytes read at once where line by line is enough: for the header and the tail.
const SMALL_CHUNK: usize = 1 << 16;

/// What lies behind the last LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tail {
    /// Nothing.
    #[default]
    Clean,
    /// A whole entry (or blank space) without its LF; it was taken in.
    Whole,
    /// Something that was not taken in: its writer died, or is still writing.
    Torn,
}

/// Where the bytes are.
#[derive(Debug)]
pub enum Backing {
    File(File),
    Memory(Vec<u8>),
}

impl Source for Backing {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(f) => f.read_at(buf, offset),
            Self::Memory(m) => m.as_slice().read_at(buf, offset),
        }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(f) => f.size(),
            Self::Memory(m) => m.as_slice().size(),
        }
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Pass over objects of another type before the header.
    pub lenient_header: bool,
    /// Bytes read at once.
    pub chunk: usize,
    /// How many threads scan a file of many chunks.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lenient_header: false,
            chunk: CHUNK,
            threads: usual_threads(),
        }
    }
}

/// As many threads as there are processors, up to four: then reading is the limit.
fn usual_threads() -> usize {
    // Asking the system reads several files under Linux.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| available_parallelism().map_or(1, NonZero::get).min(4))
}

/// The bytes of a session and their index.
#[derive(Debug)]
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) backing: Backing,
    pub(crate) options: Options,
    pub(crate) index: Index,
    pub(crate) report: Report,
    pub(crate) tail: Tail,
    /// Offset behind the last LF.
    pub(crate) sealed_end: u64,
    /// Offset behind the last byte that was looked at.
    pub(crate) end: u64,
    /// Physical lines that end before `sealed_end`.
    pub(crate) lines: u64,
    /// Up to here a saved index was believed; 0 without one.
    pub(crate) saved_end: u64,
    /// The saved index that was believed.
    pub(crate) saved_in: Option<PathBuf>,
    pub(crate) header: Option<(u64, u64)>,
    /// The header's line.
    header_text: Vec<u8>,
    /// The session's id.
    pub(crate) session: Vec<u8>,
    /// Which file is open for reading; only meaningful for one.
    pub(crate) held: Identity,
    /// The write handle, opened by the first append.
    pub(crate) writer: Option<Writer>,
    /// The process that opened the handles: a lock on an inherited one excludes nobody.
    pub(crate) pid: u32,
}

impl Store {
    pub(crate) fn empty(path: PathBuf, backing: Backing, options: Options) -> Self {
        Self {
            path,
            backing,
            options,
            index: Index::default(),
            report: Report::default(),
            tail: Tail::Clean,
            sealed_end: 0,
            end: 0,
            lines: 0,
            saved_end: 0,
            saved_in: None,
            header: None,
            header_text: Vec::new(),
            session: Vec::new(),
            held: Identity::NONE,
            writer: None,
            pid: std::process::id(),
        }
    }

    /// Opens a session file and scans it. The file is only read.
    pub fn open(path: &Path, options: Options, go_on: &mut dyn FnMut() -> bool) -> Result<Self> {
        let (file, meta) = place::open_to_read(path).map_err(|e| Error::io(e, path))?;
        Self::open_with(path, file, &meta, options, None, go_on)
    }

    pub(crate) fn open_with(
        path: &Path,
        file: File,
        meta: &Metadata,
        options: Options,
        saved: Option<Saved>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self> {
        let mut store = Self::empty(path.to_owned(), Backing::File(file), options);
        store.held = Identity::of(meta);
        if let Some(saved) = saved {
            store.believe(saved)?;
        }
        store.scan(true, go_on)?;
        store.require_header()?;
        Ok(store)
    }

    /// Takes the text of a session file that lies in memory.
    pub fn memory(data: Vec<u8>, options: Options) -> Result<Self> {
        let mut store = Self::empty(PathBuf::new(), Backing::Memory(data), options);
        store.scan(true, &mut || true)?;
        store.require_header()?;
        Ok(store)
    }

    fn require_header(&self) -> Result<()> {
        if self.header.is_some() {
            return Ok(());
        }
        let reason = if self.end == 0 {
            "the file is empty"
        } else {
            "no session header"
        };
        Err(self.no_session(1, 0, reason))
    }

    fn no_session(&self, line: u64, byte: u64, reason: &'static str) -> Error {
        header::not_a_session(&self.path, line, byte, reason)
    }

    /// Indexes what lies behind `sealed_end`. With `whole_tail` a last line without LF counts.
    pub(crate) fn scan(&mut self, whole_tail: bool, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let backing = std::mem::replace(&mut self.backing, Backing::Memory(Vec::new()));
        let result = self.scan_source(&backing, whole_tail, go_on);
        self.backing = backing;
        result
    }

    fn scan_source(
        &mut self,
        source: &Backing,
        whole_tail: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        self.tail = Tail::Clean;
        self.end = self.sealed_end;
        if self.header.is_none() {
            self.scan_lines(source, whole_tail, true, go_on)?;
            if self.header.is_none() || self.end > self.sealed_end {
                return Ok(());
            }
        }
        let size = source.size().map_err(|e| Error::io(e, &self.path))?;
        self.scan_blocks(source, size, go_on)?;
        self.index.trim();
        self.scan_lines(source, whole_tail, false, go_on)
    }

    /// Takes line by line what lies behind `sealed_end`; with `to_header` only up to the header.
    pub(crate) fn scan_lines(
        &mut self,
        source: &Backing,
        whole_tail: bool,
        to_header: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let chunk = self.options.chunk.min(SMALL_CHUNK);
        let mut reader = LineReader::new(source, self.sealed_end, self.lines + 1, chunk);
        let mut since = 0;
        while let Some(line) = reader.next_line().map_err(|e| Error::io(e, &self.path))? {
            self.end = line.offset + line.length + u64::from(line.terminated);
            if line.terminated {
                self.take(&line)?;
                self.sealed_end = self.end;
                self.lines = line.number;
            } else {
                self.take_tail(&line, whole_tail)?;
            }
            if to_header && self.header.is_some() {
                break;
            }
            since += line.bytes.len() + 1;
            if since > 1 << 22 {
                since = 0;
                if !go_on() {
                    return Err(ErrorKind::Cancelled.into());
                }
            }
        }
        Ok(())
    }

    /// Takes all whole lines between `sealed_end` and `size`.
    pub(crate) fn scan_blocks<S: Source + Sync + ?Sized>(
        &mut self,
        source: &S,
        size: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let range = self.sealed_end..size.max(self.sealed_end);
        let plan = Plan {
            block: self.options.chunk,
            threads: self.options.threads,
        };
        let mut take = |block: Block| {
            self.index.extend(block.rows);
            self.report.add(block.report, self.lines);
            self.lines += block.lines;
            self.sealed_end = block.end;
            self.end = block.end;
        };
        match scan::scan(source, range, plan, &mut take, go_on) {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(())) => Err(ErrorKind::Cancelled.into()),
            Err(error) => Err(Error::io(error, &self.path)),
        }
    }

    fn take_tail(&mut self, line: &Line<'_>, whole_tail: bool) -> Result<()> {
        let sound = json::is_blank(line.bytes) || json::validate(line.bytes).is_ok();
        if sound && whole_tail {
            self.tail = Tail::Whole;
            return self.take(line);
        }
        self.tail = Tail::Torn;
        if self.header.is_none() && whole_tail {
            return self.take(line);
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, line: &Line<'_>) -> Result<()> {
        let text = match self.header {
            None => header::without_bom(line.bytes),
            Some(_) => line.bytes,
        };
        let offset = line.offset + (line.bytes.len() - text.len()) as u64;
        if json::is_blank(text) {
            self.report.blank += 1;
            return Ok(());
        }
        let envelope = match envelope::read(text) {
            Ok(envelope) => envelope,
            Err(fault) => {
                self.report
                    .skip(line.number, offset + fault.at as u64, fault.reason);
                return Ok(());
            }
        };
        if envelope.dropped {
            self.report.blank += 1;
            return Ok(());
        }
        if self.header.is_none() {
            return self.take_header(line, text, offset, &envelope);
        }
        if envelope.kind == Kind::Header {
            self.report.headers += 1;
        } else {
            self.index.push(offset, text.len() as u64, envelope);
        }
        Ok(())
    }

    fn take_header(
        &mut self,
        line: &Line<'_>,
        text: &[u8],
        offset: u64,
        envelope: &envelope::Envelope,
    ) -> Result<()> {
        match header::judge(text, envelope, self.options.lenient_header) {
            Verdict::Header => {
                if let Key::Text(id) = &envelope.id {
                    self.session = id.to_vec();
                }
                self.header_text = text.to_vec();
                self.report.headers += 1;
                self.header = Some((offset, text.len() as u64));
                Ok(())
            }
            Verdict::Pass => Ok(()),
            Verdict::NoSession(reason) => Err(self.no_session(line.number, offset, reason)),
        }
    }

    /// Takes over the header of a store that holds nothing else.
    pub(crate) fn take_header_of(&mut self, head: Self) {
        self.header = head.header;
        self.header_text = head.header_text;
        self.session = head.session;
    }

    /// The torn tail has become a line of its own, closed by our LF.
    pub(crate) fn note_torn(&mut self) {
        self.report
            .skip(self.lines + 1, self.sealed_end, "torn line");
    }

    /// The path it was opened with; empty in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the bytes are.
    pub fn backing(&self) -> &Backing {
        &self.backing
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The index, for questions that build look-up structures when first asked.
    pub fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    /// What the scan met.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What lies behind the last LF.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Up to which byte a saved index was believed instead of a scan; 0 without one.
    pub fn saved_end(&self) -> u64 {
        self.saved_end
    }

    /// Bytes that are indexed or known to be torn.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// From behind the header's line to the end of the last whole line.
    pub fn body(&self) -> (u64, u64) {
        let (offset, length) = self.header.unwrap_or_default();
        let end = if self.tail == Tail::Whole {
            self.end
        } else {
            self.sealed_end
        };
        ((offset + length + 1).min(end), end)
    }

    /// Where the header stands, behind a byte order mark.
    pub fn header_offset(&self) -> u64 {
        self.header.unwrap_or_default().0
    }

    /// The header's line, as it was read.
    pub fn header(&self) -> &[u8] {
        &self.header_text
    }

    /// Waits until everything is on the device.
    pub fn sync(&self) -> Result<()> {
        match &self.backing {
            Backing::File(file) => file.sync_data().map_err(|e| Error::io(e, &self.path)),
            Backing::Memory(_) => Ok(()),
        }
    }
}
