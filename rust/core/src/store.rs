//! One session: its bytes (a file, or memory), its index, and what the scan met.
//!
//! The bytes up to `end` were looked at. A last line without LF is taken as an entry when it parses
//! and an entry is wanted (`Tail::Whole`), and left alone otherwise (`Tail::Torn`); either way an
//! append starts with an LF.

use crate::append::Writer;
use crate::cache::Saved;
use crate::envelope::{self, Key, Kind};
use crate::error::{Error, ErrorKind, Result};
use crate::header::{self, Verdict};
use crate::index::Index;
use crate::lines::{self, CHUNK, Line, LineReader, Source};
use crate::place::{self, Identity};
use crate::scan::{self, Block, Plan};
use crate::{Row, json};
use memchr::memmem;
use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// How many skipped lines are kept with place and reason; all are counted.
pub const REPORT_ROWS: usize = 1000;

/// A line of this size may be more than there is room for; that must not abort the process.
const HUGE: u64 = 16 << 20;

/// Bytes read at once where line by line is enough: for the header and the tail.
const SMALL_CHUNK: usize = 1 << 16;

/// A line that is no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Physical line, from 1.
    pub line: u64,
    /// Byte offset in the file where it stops being JSON.
    pub byte: u64,
    pub reason: Cow<'static, str>,
}

/// What a scan met besides entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that are no JSON, exactly counted.
    pub skipped: u64,
    /// The first of them.
    pub skipped_lines: Vec<Skipped>,
    /// Blank lines, and lines that hold null, false, 0 or "".
    pub blank: u64,
    /// Header lines; 1 in a sound file.
    pub headers: u64,
}

impl Report {
    /// Counts a line that is no JSON from `byte` on, and keeps it if there is room.
    pub(crate) fn skip(&mut self, line: u64, byte: u64, reason: &'static str) {
        self.skipped += 1;
        if self.skipped_lines.len() < REPORT_ROWS {
            self.skipped_lines.push(Skipped {
                line,
                byte,
                reason: Cow::Borrowed(reason),
            });
        }
    }

    /// The lines that began at `from` begin at `to` now.
    pub(crate) fn move_lines(&mut self, from: u64, to: u64) {
        for skipped in &mut self.skipped_lines {
            skipped.byte = skipped.byte - from + to;
        }
    }

    /// Adds what was met behind the first `lines` lines; there they were counted from 1 again.
    pub(crate) fn add(&mut self, more: Self, lines: u64) {
        self.skipped += more.skipped;
        self.blank += more.blank;
        self.headers += more.headers;
        let room = REPORT_ROWS - self.skipped_lines.len();
        let placed = more.skipped_lines.into_iter().take(room);
        self.skipped_lines.extend(placed.map(|skipped| Skipped {
            line: skipped.line + lines,
            ..skipped
        }));
    }
}

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
        self.scan_blocks(source, go_on)?;
        self.scan_lines(source, whole_tail, false, go_on)
    }

    /// Takes line by line what lies behind `sealed_end`; with `to_header` only up to the header.
    fn scan_lines(
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

    /// Takes all whole lines behind `sealed_end`.
    fn scan_blocks(&mut self, source: &Backing, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let size = source.size().map_err(|e| Error::io(e, &self.path))?;
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
        let sound = line.bytes.trim_ascii().is_empty() || json::validate(line.bytes).is_ok();
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
        if text.trim_ascii().is_empty() {
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
        buffer.clear();
        if buffer.capacity() == 0 && length < HUGE {
            // Zeroed by the system, where that is for nothing.
            *buffer = vec![0; length as usize];
        } else if buffer.try_reserve_exact(length as usize).is_err() {
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
        let (offset, length) = self.index.span(row);
        let line = self.read(offset, length)?;
        self.check_line(row, &line)?;
        Ok(line)
    }

    /// Reads the lines of the first of these rows into `buffer`: as many as lie close together in the
    /// file, at least one. Gives where each lies in the buffer.
    pub fn read_group(&self, rows: &[Row], buffer: &mut Vec<u8>) -> Result<Vec<Range<usize>>> {
        let spans: Vec<(u64, u64)> = rows.iter().map(|&row| self.index.span(row)).collect();
        let count = neighbours(&spans);
        let Some(&(start, _)) = spans.first() else {
            return Ok(Vec::new());
        };
        let (last, length) = spans[count - 1];
        self.read_into(start, last + length - start, buffer)?;
        let place = |&(at, len): &(u64, u64)| (at - start) as usize..(at - start + len) as usize;
        let ranges: Vec<Range<usize>> = spans[..count].iter().map(place).collect();
        for (&row, range) in rows.iter().zip(&ranges) {
            self.check_line(row, &buffer[range.clone()])?;
        }
        Ok(ranges)
    }

    /// Makes sure that bytes that were read again are the row's line still.
    fn check_line(&self, row: Row, line: &[u8]) -> Result<()> {
        if is_line(line) && self.has_id_of(row, line) {
            return Ok(());
        }
        Err(Error::lost(
            &self.path,
            self.index.span(row).0,
            "the file changed since it was read",
        ))
    }

    /// Whether a line is the row's by its id. Nearly always the id stands in it as it is, close to its
    /// start; an escaped one, or one that is no string, takes a whole look.
    fn has_id_of(&self, row: Row, line: &[u8]) -> bool {
        let id = self.index.id(row);
        if let Key::Text(text) = &id
            && memmem::find(line, text).is_some()
        {
            return true;
        }
        envelope::read(line).is_ok_and(|e| e.id == id)
    }

    /// Waits until everything is on the device.
    pub fn sync(&self) -> Result<()> {
        match &self.backing {
            Backing::File(file) => file.sync_data().map_err(|e| Error::io(e, &self.path)),
            Backing::Memory(_) => Ok(()),
        }
    }
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
