//! Writing to a session file: one locked, checked, all-or-nothing append.
//!
//! An append takes the kernel lock of the file for the write alone (it dies with the process),
//! makes sure that the path still names the file that is open, takes in what others appended, and
//! then adds its lines with one `O_APPEND` write. A write that stops half way is cut back if nobody
//! else wrote meanwhile, and closed with an LF otherwise: the file never ends in half a line that
//! the next append would be glued to. The index changes only after the bytes are in the file.
//!
//! Some writers take no lock (pi is one). Where such a writer gets in between the look at the file's
//! size and the write, the position behind the write tells it: then the index is brought up from the
//! file, and lines that were glued to half a line of the other one are written once more.

use crate::compose::Lines;
use crate::draft::{self, Draft, Made, write_counted};
use crate::envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::lines::{Line, Source};
use crate::place::{self, Identity};
use crate::store::{Backing, Store, Tail};
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;

/// How often something that others keep undoing is tried.
const TRIES: usize = 100;

/// Lines of so many bytes are worth the start of a scan, which walks them faster than one by one.
const MANY: usize = 4096;

/// Bytes that lie at an offset of a file.
struct Behind<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Source for Behind<'_> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.bytes.read_at(buf, offset - self.start)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.start + self.bytes.len() as u64)
    }
}

/// Lines to append.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    /// Each with its LF.
    bytes: &'a [u8],
    /// The same lines, if they need not be read.
    known: Option<&'a Lines>,
}

impl<'a> From<&'a [u8]> for Own<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, known: None }
    }
}

impl<'a> From<&'a Lines> for Own<'a> {
    fn from(lines: &'a Lines) -> Self {
        Self {
            bytes: lines.bytes(),
            known: Some(lines),
        }
    }
}

/// What an append or a refresh met besides its own work.
// Five independent facts, each of which a caller may tell its user.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Rows of other writers that were taken in.
    pub foreign: u64,
    /// The file had shrunk or was another one: everything was scanned again.
    pub replaced: bool,
    /// The file had vanished and was written anew from the open descriptor.
    pub rebuilt: bool,
    /// A torn line was closed with an LF before the append.
    pub sealed: bool,
    /// The lines are in the file. False, with nothing written, where the caller has to build them
    /// anew: the file was another one, or another writer has taken one of the new ids.
    pub written: bool,
}

/// How to append.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Refuse if another writer was there.
    pub strict: bool,
    /// Wait until the bytes are on the device.
    pub sync: bool,
}

/// The write handle.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    id: Identity,
}

type GoOn<'a> = &'a mut dyn FnMut() -> bool;

impl Store {
    /// Takes in whole lines that others appended; only reads.
    pub fn refresh(&mut self, go_on: GoOn<'_>) -> Result<Change> {
        let Backing::File(reader) = &self.backing else {
            return Ok(Change::default());
        };
        let named = Identity::named(&self.path).map_err(|e| Error::io(e, &self.path))?;
        let mut change = Change::default();
        match named {
            Some((id, size)) if id == self.held => {
                self.take_in(size, false, &mut change, go_on)?;
            }
            Some(_) => self.scan_again(&mut change, go_on)?,
            None => {
                let held = reader.metadata().map_err(|e| Error::io(e, &self.path))?;
                self.take_in(held.len(), false, &mut change, go_on)?;
            }
        }
        Ok(change)
    }

    /// Brings the index up to a file of `size` bytes. With `whole_tail` a last line without LF
    /// counts as well.
    fn take_in(
        &mut self,
        size: u64,
        whole_tail: bool,
        change: &mut Change,
        go_on: GoOn<'_>,
    ) -> Result<()> {
        if size == self.end && !(whole_tail && self.tail == Tail::Torn) {
            return Ok(());
        }
        // A torn line may have been taken back by its writer.
        let cut = size < self.end && !(self.tail == Tail::Torn && size >= self.sealed_end);
        if cut || size != self.end && !self.seam_holds()? {
            return self.scan_again(change, go_on);
        }
        let before = self.index.len();
        let result = self.scan(whole_tail, go_on);
        change.foreign += (self.index.len() - before) as u64;
        result
    }

    /// Whether the bytes behind the index go on where it ends: the header is the one that was read,
    /// the last line still ends there. A last line without LF that was taken as an entry must have
    /// got its LF, else it has grown into something else.
    fn seam_holds(&mut self) -> Result<bool> {
        let at = match self.tail {
            Tail::Whole => self.end,
            Tail::Clean | Tail::Torn => self.sealed_end.saturating_sub(1),
        };
        let mut seam = [0];
        let got = self
            .backing
            .read_at(&mut seam, at)
            .map_err(|e| Error::io(e, &self.path))?;
        if got == 0 || seam[0] != b'\n' || !self.header_stands()? {
            return Ok(false);
        }
        if self.tail == Tail::Whole {
            self.close_tail(1);
        }
        Ok(true)
    }

    /// The tail's line has got its LF: it is a line like any other now.
    fn close_tail(&mut self, lf: u64) {
        self.end += lf;
        self.sealed_end = self.end;
        self.lines += 1;
        self.tail = Tail::Clean;
    }

    /// The file is another one, or was cut: starts over, if it is the same session still.
    fn scan_again(&mut self, change: &mut Change, go_on: GoOn<'_>) -> Result<()> {
        let mut fresh = match Self::open(&self.path, self.options, go_on) {
            Ok(fresh) => fresh,
            Err(e) => return Err(self.gone(e)),
        };
        if fresh.session != self.session {
            return Err(Error::lost(
                &self.path,
                0,
                "another session has taken the place of this one",
            ));
        }
        fresh.writer = self.writer.take().filter(|w| w.id == fresh.held);
        *self = fresh;
        change.replaced = true;
        Ok(())
    }

    /// What it means that an open session's file is no session.
    fn gone(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NotASession { byte, .. } => {
                Error::lost(&self.path, *byte, "the file is no session any more")
            }
            ErrorKind::Io { .. } if error.is(io::ErrorKind::NotFound) => {
                let reason = "the file has vanished, and what is still open of it was cut";
                Error::lost(&self.path, 0, reason)
            }
            _ => error,
        }
    }

    /// Appends whole lines (each with its LF), all or nothing. Unless something is changed by
    /// others, their rows are the last ones then.
    pub fn append(&mut self, lines: &[u8], how: How, go_on: GoOn<'_>) -> Result<Change> {
        self.append_own(lines.into(), how, go_on)
    }

    /// The same with lines that were composed, of which more is known.
    pub fn append_composed(&mut self, lines: &Lines, how: How, go_on: GoOn<'_>) -> Result<Change> {
        self.append_own(lines.into(), how, go_on)
    }

    fn append_own(&mut self, lines: Own<'_>, how: How, go_on: GoOn<'_>) -> Result<Change> {
        let mut change = Change::default();
        if let Backing::Memory(_) = self.backing {
            self.push_memory(lines)?;
            change.written = true;
            return Ok(change);
        }
        if self.pid != std::process::id() {
            // Inherited from the parent: its lock is the parent's as well.
            self.writer = None;
            self.pid = std::process::id();
        }
        let result = self.append_locked(lines, how, &mut change, go_on);
        self.writer.take_if(|writer| !place::unlock(&writer.file));
        // A session that was scanned again is told even if nothing could be written to it.
        match result {
            Err(_) if change.replaced => Ok(Change {
                written: false,
                ..change
            }),
            other => other.map(|()| change),
        }
    }

    fn push_memory(&mut self, lines: Own<'_>) -> Result<()> {
        let Backing::Memory(memory) = &mut self.backing else {
            return Ok(());
        };
        let lead: &[u8] = if self.tail == Tail::Clean { b"" } else { b"\n" };
        memory.extend_from_slice(lead);
        memory.extend_from_slice(lines.bytes);
        self.index_own(lead.len() as u64, lines)
    }

    fn append_locked(
        &mut self,
        lines: Own<'_>,
        how: How,
        change: &mut Change,
        go_on: GoOn<'_>,
    ) -> Result<()> {
        let (id, size) = self.lock_writer(change, go_on)?;
        if how.strict && (id != self.held || size != self.end) {
            return Err(ErrorKind::Conflict {
                path: self.path.clone(),
            }
            .into());
        }
        if id == self.held {
            self.take_in(size, true, change, go_on)?;
        } else {
            self.scan_again(change, go_on)?;
        }
        if change.replaced || change.foreign > 0 && self.takes_a_new_id(lines.bytes) {
            return Ok(());
        }
        change.written = self.write_lines(lines, how.sync, change, go_on)?;
        Ok(())
    }

    /// Opens and locks the file that the path names now; which one it is, and its size.
    fn lock_writer(&mut self, change: &mut Change, go_on: GoOn<'_>) -> Result<(Identity, u64)> {
        for _ in 0..TRIES {
            if self.writer.is_none() {
                self.writer = self.open_writer()?;
            }
            let Some(writer) = &self.writer else {
                change.rebuilt |= self.rebuild(change, go_on)?;
                continue;
            };
            place::lock(&writer.file, &self.path, go_on)?;
            match Identity::named(&self.path).map_err(|e| Error::io(e, &self.path))? {
                Some((id, size)) if id == writer.id => return Ok((id, size)),
                _ => {
                    let _ = place::unlock(&writer.file);
                    self.writer = None;
                }
            }
        }
        Err(Error::lost(
            &self.path,
            0,
            "the file is replaced again and again",
        ))
    }

    /// Opens the write handle; None if the file has vanished.
    fn open_writer(&self) -> Result<Option<Writer>> {
        match place::open_to_append(&self.path) {
            Ok((file, meta)) => Ok(Some(Writer {
                file,
                id: Identity::of(&meta),
            })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(e, &self.path)),
        }
    }

    /// Writes a vanished file anew from the descriptor that is still open, with all that it has;
    /// false if another process was faster.
    fn rebuild(&mut self, change: &mut Change, go_on: GoOn<'_>) -> Result<bool> {
        let Backing::File(held) = &self.backing else {
            return Ok(false);
        };
        let meta = held.metadata().map_err(|e| Error::io(e, &self.path))?;
        self.take_in(meta.len(), false, change, go_on)?;
        if change.replaced {
            return Ok(false);
        }
        let mut draft = Draft::begin(&self.path)?;
        let mut at = 0;
        while at < self.end {
            let part = self.read(at, (self.end - at).min(1 << 20))?;
            draft.write(&part)?;
            at += part.len() as u64;
        }
        draft
            .look_like(&meta)
            .map_err(|e| Error::io(e, &self.path))?;
        match draft.publish(true) {
            Ok(made) => {
                self.hold(made);
                Ok(true)
            }
            Err(e) if e.is(io::ErrorKind::AlreadyExists) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Reads from this file from now on.
    fn hold(&mut self, made: Made) {
        self.held = made.id;
        self.backing = Backing::File(made.file);
    }

    /// Goes on with a file that was just made.
    pub(crate) fn go_on_in(&mut self, path: &Path, made: Made) {
        path.clone_into(&mut self.path);
        self.pid = std::process::id();
        self.writer = None;
        self.hold(made);
    }

    /// Whether an entry that was just taken in has the id of one that is to be written.
    fn takes_a_new_id(&self, lines: &[u8]) -> bool {
        lines
            .split(|&b| b == b'\n')
            .any(|line| self.place_of(line).is_some())
    }

    /// Where the entry with this line's id lies, if it has a string id.
    fn place_of(&self, line: &[u8]) -> Option<u64> {
        let envelope = envelope::read(line).ok()?;
        let text = matches!(envelope.id, envelope::Key::Text(_));
        let row = self.index.find(&envelope.id).filter(|_| text)?;
        Some(self.index.span(row).0)
    }

    /// Writes under the lock, and takes the lines into the index; false if the file was emptied under
    /// the write.
    fn write_lines(
        &mut self,
        own: Own<'_>,
        sync: bool,
        change: &mut Change,
        go_on: GoOn<'_>,
    ) -> Result<bool> {
        let lines = own.bytes;
        for _ in 0..TRIES {
            let lead: &[u8] = if self.tail == Tail::Clean { b"" } else { b"\n" };
            let end = self.write(lead, lines, sync, go_on)?;
            if end == self.end + (lead.len() + lines.len()) as u64 {
                change.sealed |= self.tail == Tail::Torn;
                return self.index_own(lead.len() as u64, own).map(|()| true);
            }
            let from = self.sealed_end;
            self.take_in(end, true, change, go_on)?;
            let found = self.has_lines(lines, if change.replaced { 0 } else { from });
            if found {
                let own = memchr::memchr_iter(b'\n', lines).count() as u64;
                change.foreign = change.foreign.saturating_sub(own);
            }
            if found || change.replaced {
                return Ok(found);
            }
        }
        Err(Error::lost(
            &self.path,
            self.end,
            "other writers get in between again and again",
        ))
    }

    /// Whether the first of these lines lies in the file from `from` on. The others follow an LF of
    /// our own and cannot be glued to anything.
    fn has_lines(&self, lines: &[u8], from: u64) -> bool {
        let first = lines.split(|&b| b == b'\n').next().unwrap_or_default();
        self.place_of(first).is_some_and(|at| at >= from)
    }

    /// Writes at the end of the file; the offset behind the written bytes.
    fn write(&mut self, lead: &[u8], lines: &[u8], sync: bool, go_on: GoOn<'_>) -> Result<u64> {
        let Some(writer) = &self.writer else {
            return Err(Error::io(io::ErrorKind::NotFound.into(), &self.path));
        };
        let joined;
        let bytes = if lead.is_empty() {
            lines
        } else {
            joined = [lead, lines].concat();
            &joined
        };
        let (done, result) = write_counted(&writer.file, bytes);
        let result = result
            .and_then(|()| {
                if sync {
                    writer.file.sync_data()
                } else {
                    Ok(())
                }
            })
            .and_then(|()| (&writer.file).stream_position());
        match result {
            Ok(end) => Ok(end),
            Err(error) if self.roll_back(writer, done as u64) => Err(Error::io(error, &self.path)),
            Err(error) => Err(self.take_in_rest(error, lines, go_on)),
        }
    }

    /// Takes back the `done` bytes of a failed write, or closes them off if others wrote as well; whether
    /// the file is as it was.
    fn roll_back(&self, writer: &Writer, done: u64) -> bool {
        let size = writer.file.metadata().map(|m| m.len()).ok();
        let ours = size == Some(self.end + done);
        if done == 0 || ours && writer.file.set_len(self.end).is_ok() {
            return true;
        }
        // Where this fails too, the next append sees that the file has grown, and seals it.
        drop(write_counted(&writer.file, b"\n"));
        false
    }

    /// Takes in what a failed write has left in the file for good, so that memory and file agree; says
    /// so in the error. What cannot be read now is taken in by the next append, as another writer's.
    fn take_in_rest(&mut self, source: io::Error, lines: &[u8], go_on: GoOn<'_>) -> Error {
        let from = self.sealed_end;
        if self.seam_holds().unwrap_or(false) {
            drop(self.scan(false, go_on));
        }
        let path = self.path.clone();
        let stays = |line: &[u8]| self.place_of(line).is_some_and(|at| at >= from);
        match lines
            .split(|&b| b == b'\n')
            .filter(|line| stays(line))
            .count() as u64
        {
            0 => Error::io(source, &path),
            entries => ErrorKind::Stays {
                source,
                path,
                entries,
            }
            .into(),
        }
    }

    /// Indexes own lines that are in the file now, behind `lead` bytes that close the tail.
    pub(crate) fn index_own(&mut self, lead: u64, own: Own<'_>) -> Result<()> {
        if lead > 0 {
            if self.tail == Tail::Torn {
                self.note_torn();
            }
            self.close_tail(lead);
        }
        let lines = own.bytes;
        if let Some(known) = own.known {
            self.index_known(known);
            return Ok(());
        }
        if lines.len() >= MANY {
            let behind = Behind {
                start: self.end,
                bytes: lines,
            };
            return self.scan_blocks(&behind, self.end + lines.len() as u64, &mut || true);
        }
        for text in lines.split_inclusive(|&b| b == b'\n') {
            let bytes = text.strip_suffix(b"\n").unwrap_or(text);
            let line = Line {
                offset: self.end,
                number: self.lines + 1,
                bytes,
                length: bytes.len() as u64,
                terminated: true,
            };
            self.take(&line)?;
            self.lines += 1;
            self.end += text.len() as u64;
            self.sealed_end = self.end;
        }
        Ok(())
    }

    fn index_known(&mut self, lines: &Lines) {
        for (length, envelope) in lines.envelopes() {
            let length = length as u64;
            self.index.push(self.end, length - 1, envelope);
            self.lines += 1;
            self.end += length;
            self.sealed_end = self.end;
        }
    }

    /// Turns a session that lies in memory into a file, with `lines` at its end; all or nothing.
    ///
    /// The file must not exist, or be empty.
    pub fn persist(&mut self, path: &Path, lines: &[u8], how: How) -> Result<()> {
        let Backing::Memory(memory) = &self.backing else {
            return Ok(());
        };
        let lead: &[u8] = if self.tail == Tail::Clean { b"" } else { b"\n" };
        let made = draft::create(path, &[memory, lead, lines], how.sync)?;
        self.go_on_in(path, made);
        self.index_own(lead.len() as u64, lines.into())
    }

    /// Lets go of the file and the index.
    pub fn close(&mut self) {
        *self = Self::empty(
            std::mem::take(&mut self.path),
            Backing::Memory(Vec::new()),
            self.options,
        );
    }
}
