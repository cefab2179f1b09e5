//! What a listing shows of a session, in one pass over its file and without an index.
//!
//! Every line is checked as an open checks it, and the header is judged by the same rule, so a
//! listing shows exactly the files that open. Of the lines only a few values are decoded; an entry
//! with odd values contributes nothing, and the rest of its file is shown.

mod content;
pub mod packed;
mod parts;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

use crate::error::{Error, ErrorKind, Result};
use crate::header::{self, Verdict};
use crate::json::{self, Fault, LineVisitor, Shape, Visitor, Walker};
use crate::lines::{CHUNK, Source};
use crate::{dates, envelope, place};
use content::Slot;
use parts::{Message, Parts};
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// How much is read before the question whether to go on.
const STEP: usize = 16 << 20;

/// Entries whose own `usage` counts.
const SPENDING: [&str; 3] = ["usage", "compaction", "branch_summary"];

/// Roles of the messages whose `usage` counts.
const SPENDERS: [&str; 2] = ["assistant", "toolResult"];

/// What a listing shows of one session. Texts are WTF-8.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// The header's id.
    pub id: Vec<u8>,
    /// The header's directory; empty if it has none.
    pub cwd: Vec<u8>,
    /// The header's `parentSession`.
    pub parent: Option<Vec<u8>>,
    /// JavaScript's number of the header's version; 1 if it has none, `None` if it is no number.
    pub version: Option<f64>,
    /// The header's time in milliseconds since 1970.
    pub created: Option<i64>,
    /// The latest name.
    pub name: Option<Vec<u8>>,
    /// How many entries are messages.
    pub messages: u64,
    /// The first text of the user; empty if there is none.
    pub first_message: Vec<u8>,
    /// Newest time of a user's or assistant's message, else the header's, else the file's.
    pub modified: i64,
    /// The role of the last message that has one.
    pub last_role: Option<Vec<u8>>,
    /// That message's `stopReason`.
    pub stop_reason: Option<Vec<u8>>,
    /// What answers, tool results and summaries say they have cost, in US dollars.
    pub cost: f64,
    /// Lines that are no JSON.
    pub skipped: u64,
    /// Bytes of the file.
    pub size: u64,
    /// The file's time in nanoseconds since 1970.
    pub mtime: i64,
}

/// What a header alone says; the rest is empty.
pub fn of_header(text: &[u8]) -> Summary {
    let mut builder = Builder::new(false, None);
    builder.set_header(text);
    builder.summary
}

/// Reads one file after the other into one buffer.
pub struct Reader {
    lenient: bool,
    chunk: usize,
    walker: Walker,
    buffer: Vec<u8>,
}

impl Reader {
    /// With `lenient`, objects of another type before the header are passed over.
    pub fn new(lenient: bool) -> Self {
        Self::with_chunk(lenient, CHUNK)
    }

    /// Reads `chunk` bytes at once; the buffer grows only for a line that is longer.
    fn with_chunk(lenient: bool, chunk: usize) -> Self {
        Self {
            lenient,
            chunk,
            walker: Walker::new(),
            buffer: Vec::new(),
        }
    }

    /// The summary of a file. `go_on` is asked after every chunk.
    ///
    /// # Errors
    /// What the system says, [`ErrorKind::NotASession`], or [`ErrorKind::Cancelled`].
    pub fn summary(&mut self, path: &Path, go_on: &dyn Fn() -> bool) -> Result<Summary> {
        let mut builder = Builder::new(self.lenient, None);
        self.read(path, &mut builder, go_on)?;
        Ok(builder.summary)
    }

    /// All texts of user and assistant, joined by spaces.
    pub fn text(&mut self, path: &Path, go_on: &dyn Fn() -> bool) -> Result<Vec<u8>> {
        let mut builder = Builder::new(self.lenient, Some(Vec::new()));
        self.read(path, &mut builder, go_on)?;
        Ok(builder.text.unwrap_or_default())
    }

    fn read(&mut self, path: &Path, to: &mut Builder, go_on: &dyn Fn() -> bool) -> Result<()> {
        let named = |e| Error::io(e, path);
        let (file, meta) = place::open_to_read(path).map_err(named)?;
        let all = self.feed(&file, meta.len(), to, go_on).map_err(named)?;
        if !all {
            return Err(ErrorKind::Cancelled.into());
        }
        let refusal = to
            .refusal
            .or_else(|| to.finish(meta.len(), mtime_of(&meta)));
        refusal.map_or(Ok(()), |(line, byte, reason)| {
            Err(header::not_a_session(path, line, byte, reason))
        })
    }

    /// Gives the builder whole lines, and then what follows the last LF; false if it was to stop.
    fn feed<S: Source + ?Sized>(
        &mut self,
        source: &S,
        size: u64,
        to: &mut Builder,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<bool> {
        let (mut filled, mut offset) = (0, 0);
        // Filling a whole chunk with zeros takes longer than reading most files.
        let first =
            usize::try_from(size).map_or(self.chunk, |size| self.chunk.min(size.saturating_add(1)));
        self.buffer.resize(self.buffer.len().max(first), 0);
        while to.refusal.is_none() {
            if !go_on() {
                return Ok(false);
            }
            if filled == self.buffer.len() {
                self.grow(filled, size.saturating_sub(offset));
            }
            let end = self.buffer.len().min(filled + STEP);
            let got = source.read_at(&mut self.buffer[filled..end], offset + filled as u64)?;
            let new = filled..filled + got;
            filled = new.end;
            if let Some(last) = memchr::memrchr(b'\n', &self.buffer[new.clone()]) {
                let end = new.start + last + 1;
                to.offset = offset;
                self.walker.lines(&self.buffer[..end], to);
                self.buffer.copy_within(end..filled, 0);
                offset += end as u64;
                filled -= end;
            }
            // A file that ends where it was said to end needs no read that finds nothing.
            let all = offset + filled as u64 == size && new.end < end;
            if got == 0 || all {
                to.offset = offset;
                to.is_tail = true;
                self.walker.lines(&self.buffer[..filled], to);
                break;
            }
        }
        Ok(true)
    }

    /// Makes room behind what is in the buffer, of which `rest` bytes and more are to be there: twice
    /// as much, so that the copying stays linear, but no more than the file needs.
    fn grow(&mut self, filled: usize, rest: u64) {
        let needed = usize::try_from(rest)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let doubled = (2 * filled).min(needed.max(filled + self.chunk));
        self.buffer.resize(self.chunk.max(doubled), 0);
    }
}

/// A file's time in nanoseconds since 1970.
pub(crate) fn mtime_of(meta: &Metadata) -> i64 {
    let Ok(time) = meta.modified() else {
        return 0;
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i64,
        Err(before) => -(before.duration().as_nanos() as i64),
    }
}

/// Why a file is no session: line, byte, reason.
type Refusal = (u64, u64, &'static str);

/// A summary being put together from lines.
struct Builder {
    lenient: bool,
    has_header: bool,
    refusal: Option<Refusal>,
    /// Where the text that is walked begins in the file.
    offset: u64,
    /// The text that is walked is behind the last LF.
    is_tail: bool,
    lines: u64,
    /// The values of the line that is being walked.
    parts: Parts,
    /// The header's time, if it is a text.
    header_time: Option<i64>,
    /// The newest time of a message; 0 counts as none.
    activity: Option<i64>,
    role: Slot,
    stop: Slot,
    summary: Summary,
    /// Where all texts go, if they are wanted.
    text: Option<Vec<u8>>,
}

impl Visitor for Builder {
    #[inline]
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        self.parts.member(depth, key, value);
    }

    #[inline]
    fn wants(&self, depth: u8, key: &[u8]) -> bool {
        Parts::wants(depth, key)
    }
}

impl LineVisitor for Builder {
    fn line(
        &mut self,
        line: &[u8],
        start: usize,
        answer: std::result::Result<Option<Shape>, Fault>,
    ) {
        self.lines += 1;
        let parts = std::mem::take(&mut self.parts);
        if !self.has_header {
            return self.take_header(line, start);
        }
        match answer {
            Ok(_) => self.take_entry(line, &parts),
            // A torn tail may be a line that is being written just now.
            Err(_) => self.summary.skipped += u64::from(!self.is_tail),
        }
    }
}

impl Builder {
    fn new(lenient: bool, text: Option<Vec<u8>>) -> Self {
        Self {
            lenient,
            has_header: false,
            refusal: None,
            offset: 0,
            is_tail: false,
            lines: 0,
            parts: Parts::default(),
            header_time: None,
            activity: None,
            role: Slot::default(),
            stop: Slot::default(),
            summary: Summary::default(),
            text,
        }
    }

    fn take_header(&mut self, line: &[u8], start: usize) {
        let text = header::without_bom(line);
        if self.refusal.is_some() || json::is_blank(text) {
            return;
        }
        let Ok(envelope) = envelope::read(text) else {
            self.summary.skipped += 1;
            return;
        };
        match header::judge(text, &envelope, self.lenient) {
            Verdict::Header => self.set_header(text),
            Verdict::Pass => self.take_title(text),
            Verdict::NoSession(reason) => {
                self.refusal = Some((self.lines, self.offset + start as u64, reason));
            }
        }
    }

    /// oh-my-pi keeps a session's name in an object of type `title` before the header; it counts as
    /// long as no `session_info` follows.
    fn take_title(&mut self, text: &[u8]) {
        let (mut is_title, mut title) = (false, None);
        for (key, value) in json::members(text) {
            if json::key_is(key, "type") {
                is_title = content::is_text(value, "title");
            } else if json::key_is(key, "title") {
                title = Some(value);
            }
        }
        if let (true, Some(title)) = (is_title, title) {
            self.take_name(title);
        }
    }

    fn set_header(&mut self, text: &[u8]) {
        self.has_header = true;
        self.summary.version = Some(1.0);
        for (key, value) in json::members(text) {
            let is = |name| json::key_is(key, name);
            if is("id") {
                self.summary.id = content::string(value).unwrap_or_default();
            } else if is("cwd") {
                self.summary.cwd = content::string(value).unwrap_or_default();
            } else if is("parentSession") {
                self.summary.parent = content::string(value);
            } else if is("version") {
                self.summary.version = content::version(value);
            } else if is("timestamp") {
                self.summary.created = dates::of_json(value);
                let text = value.first() == Some(&b'"');
                self.header_time = self.summary.created.filter(|_| text);
            }
        }
    }

    fn take_entry(&mut self, line: &[u8], parts: &Parts) {
        let kind = &line[parts.kind.clone()];
        if content::is_text(kind, "message") {
            self.summary.messages += 1;
            let entry_time = &line[parts.time.clone()];
            self.take_message(line, &parts.message, entry_time);
        } else if content::is_text(kind, "session_info") {
            self.take_name(&line[parts.name.clone()]);
        } else if !parts.usage.is_empty()
            && SPENDING.iter().any(|wanted| content::is_text(kind, wanted))
        {
            self.summary.cost += content::cost(&line[parts.usage.clone()]);
        }
    }

    /// A name that is null or missing, or blank, clears it; one that is no text is passed over.
    fn take_name(&mut self, name: &[u8]) {
        if matches!(name, [] | [b'n', ..]) {
            self.summary.name = None;
        } else if let Some(name) = content::string(name) {
            let name = content::trim(&name);
            self.summary.name = (!name.is_empty()).then(|| name.to_vec());
        }
    }

    fn take_message(&mut self, line: &[u8], places: &Message, entry_time: &[u8]) {
        let text = |place: &Range<usize>| &line[place.clone()];
        let (role, body) = (text(&places.role), text(&places.content));
        if role.first() != Some(&b'"') {
            return;
        }
        self.role.set(role);
        self.stop.set(text(&places.stop));
        let user = content::is_text(role, "user");
        if !places.usage.is_empty()
            && !user
            && SPENDERS.iter().any(|wanted| content::is_text(role, wanted))
        {
            self.summary.cost += content::cost(text(&places.usage));
        }
        if body.is_empty() || !(user || content::is_text(role, "assistant")) {
            return;
        }
        self.take_time(text(&places.time), entry_time);
        if let Some(all) = &mut self.text {
            content::push_apart(all, body);
        } else if user && self.summary.first_message.is_empty() {
            content::push_text(&mut self.summary.first_message, body);
        }
    }

    /// A message's own time is a number; else, and where there is no such time, the entry's counts.
    fn take_time(&mut self, own: &[u8], entry: &[u8]) {
        let own = match own.first() {
            Some(b'-' | b'0'..=b'9') => dates::of_json(own),
            _ => None,
        };
        let time = own.or_else(|| dates::of_json(entry));
        self.activity = self.activity.max(time);
    }

    fn finish(&mut self, size: u64, mtime: i64) -> Option<Refusal> {
        if !self.has_header {
            let reason = if size == 0 {
                "the file is empty"
            } else {
                "no session header"
            };
            return Some((1, 0, reason));
        }
        let summary = &mut self.summary;
        summary.size = size;
        summary.mtime = mtime;
        summary.last_role = self.role.text();
        summary.stop_reason = self.stop.text();
        summary.modified = self
            .activity
            .filter(|&time| time > 0)
            .or(self.header_time)
            .unwrap_or_else(|| (summary.mtime + 500_000).div_euclid(1_000_000));
        None
    }
}
