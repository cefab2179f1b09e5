//! Writing to a session file: one locked, checked, all-or-nothing append.
//!
//! An append takes the kernel lock of the file for the write alone (it dies with the process),
//! makes sure that the path still names the file that is open, takes in what others appended, and
//! then adds its lines with one `O_APPEND` write. A write that stops half way is cut back if nobody
//! else wrote meanwhile, and closed with an LF otherwise: the file never ends in half a line that
//! the next append would be glued to. The index changes only after the bytes are in the file.

use crate::draft::{self, write_counted};
use crate::envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::lines::{Line, Source};
use crate::store::{Backing, Store, Tail};
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::path::Path;

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

#[cfg(unix)]
pub(crate) fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
pub(crate) fn same_file(a: &Metadata, b: &Metadata) -> bool {
    a.created().ok() == b.created().ok()
}

impl Store {
    /// Takes in whole lines that others appended; only reads.
    pub fn refresh(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Change> {
        let Backing::File(reader) = &self.backing else {
            return Ok(Change::default());
        };
        let held = reader.metadata().map_err(|e| Error::io(e, &self.path))?;
        match std::fs::metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.take_in(held.len(), false, go_on),
            Err(e) => Err(Error::io(e, &self.path)),
            Ok(named) if same_file(&named, &held) => self.take_in(named.len(), false, go_on),
            Ok(_) => self.scan_again(go_on),
        }
    }

    /// Brings the index up to a file of `size` bytes.
    fn take_in(
        &mut self,
        size: u64,
        whole_tail: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Change> {
        if size == self.end {
            return Ok(Change::default());
        }
        if size < self.end || !self.seam_holds()? {
            return self.scan_again(go_on);
        }
        let before = self.index.len();
        self.scan(whole_tail, go_on)?;
        Ok(Change {
            foreign: (self.index.len() - before) as u64,
            ..Change::default()
        })
    }

    /// Whether the bytes behind the index go on where it ends. A last line without LF that was
    /// taken as an entry must have got its LF, else it has grown into something else.
    fn seam_holds(&mut self) -> Result<bool> {
        if self.tail != Tail::Whole {
            return Ok(true);
        }
        let mut next = [0];
        let got = self
            .backing
            .read_at(&mut next, self.end)
            .map_err(|e| Error::io(e, &self.path))?;
        if got == 1 && next[0] != b'\n' {
            return Ok(false);
        }
        self.close_tail(1);
        Ok(true)
    }

    /// The tail's line has got its LF: it is a line like any other now.
    fn close_tail(&mut self, lf: u64) {
        self.end += lf;
        self.sealed_end = self.end;
        self.lines += 1;
        self.tail = Tail::Clean;
    }

    /// The file is another one, or was cut: starts over.
    fn scan_again(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Change> {
        let fresh = Self::open(&self.path, self.options, go_on)?;
        *self = fresh;
        Ok(Change {
            replaced: true,
            ..Change::default()
        })
    }

    /// Appends whole lines (each with its LF), all or nothing. Their rows are the last ones then.
    pub fn append(&mut self, lines: &[u8], how: How) -> Result<Change> {
        if let Backing::Memory(_) = self.backing {
            self.push_memory(lines)?;
            return Ok(Change {
                written: true,
                ..Change::default()
            });
        }
        let mut change = self.writer_ready()?;
        let result = self.append_locked(lines, how, &mut change);
        if let Some(writer) = &self.writer {
            // Closing the descriptor would free the lock as well; an error here changes nothing.
            let _ = writer.unlock();
        }
        result.map(|()| change)
    }

    fn push_memory(&mut self, lines: &[u8]) -> Result<()> {
        let Backing::Memory(memory) = &mut self.backing else {
            return Ok(());
        };
        let lead: &[u8] = if self.tail == Tail::Clean { b"" } else { b"\n" };
        memory.extend_from_slice(lead);
        memory.extend_from_slice(lines);
        self.index_own(lead.len() as u64, lines)
    }

    /// Opens and locks a handle on the file that the path names now.
    fn writer_ready(&mut self) -> Result<Change> {
        if self.pid != std::process::id() {
            self.writer = None;
            self.pid = std::process::id();
        }
        let mut change = Change::default();
        for _ in 0..100 {
            if self.writer.is_none() {
                change.rebuilt |= self.open_writer()?;
            }
            let Some(writer) = &self.writer else { continue };
            writer.lock().map_err(|e| Error::io(e, &self.path))?;
            let held = writer.metadata().map_err(|e| Error::io(e, &self.path))?;
            match std::fs::metadata(&self.path) {
                Ok(named) if same_file(&named, &held) => {
                    let read_from = match &self.backing {
                        Backing::File(f) => f.metadata().map_err(|e| Error::io(e, &self.path))?,
                        Backing::Memory(_) => return Ok(change),
                    };
                    if !same_file(&read_from, &held) {
                        let writer = self.writer.take();
                        let fresh = self.scan_again(&mut || true);
                        self.writer = writer;
                        change.replaced |= fresh?.replaced;
                    }
                    return Ok(change);
                }
                Ok(_) => self.writer = None,
                Err(e) if e.kind() == io::ErrorKind::NotFound => self.writer = None,
                Err(e) => return Err(Error::io(e, &self.path)),
            }
        }
        Err(Error::lost(
            &self.path,
            0,
            "the file is replaced again and again",
        ))
    }

    /// Opens the write handle; true if the file had vanished and was written anew.
    fn open_writer(&mut self) -> Result<bool> {
        match OpenOptions::new().append(true).open(&self.path) {
            Ok(file) => {
                self.writer = Some(file);
                Ok(false)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.rebuild()?;
                Ok(true)
            }
            Err(e) => Err(Error::io(e, &self.path)),
        }
    }

    /// Writes a vanished file anew from the descriptor that is still open.
    fn rebuild(&mut self) -> Result<()> {
        let all = self.read(0, self.end)?;
        let file = draft::create(&self.path, &[&all], true)?;
        self.backing = Backing::File(file);
        Ok(())
    }

    fn append_locked(&mut self, lines: &[u8], how: How, change: &mut Change) -> Result<()> {
        let size = self.writer_size()?;
        let met = self.take_in(size, true, &mut || true)?;
        change.foreign += met.foreign;
        change.replaced |= met.replaced;
        if how.strict && (change.foreign > 0 || change.replaced) {
            return Err(ErrorKind::Conflict {
                path: self.path.clone(),
                foreign: change.foreign,
            }
            .into());
        }
        if change.replaced || change.foreign > 0 && self.takes_a_new_id(lines) {
            return Ok(());
        }
        let lead: &[u8] = if self.tail == Tail::Clean { b"" } else { b"\n" };
        change.sealed = self.tail == Tail::Torn;
        self.write(&[lead, lines].concat(), how.sync)?;
        change.written = true;
        self.index_own(lead.len() as u64, lines)
    }

    fn writer_size(&self) -> Result<u64> {
        let size = self
            .writer
            .as_ref()
            .map_or(Ok(0), |w| w.metadata().map(|m| m.len()));
        size.map_err(|e| Error::io(e, &self.path))
    }

    /// Whether an entry that was just taken in has the id of one that is to be written.
    fn takes_a_new_id(&self, lines: &[u8]) -> bool {
        lines.split(|&b| b == b'\n').any(|line| {
            envelope::read(line).is_ok_and(|e| {
                matches!(e.id, envelope::Key::Text(_)) && self.index.find(&e.id).is_some()
            })
        })
    }

    fn write(&mut self, bytes: &[u8], sync: bool) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let (done, result) = write_counted(writer, bytes);
        let result = result.and_then(|()| if sync { writer.sync_data() } else { Ok(()) });
        let Err(error) = result else { return Ok(()) };
        self.roll_back(done as u64);
        Err(Error::io(error, &self.path))
    }

    /// Takes back the `done` bytes of a failed write, or closes them off if others wrote as well.
    fn roll_back(&self, done: u64) {
        let Some(writer) = &self.writer else { return };
        match writer.metadata().map(|m| m.len()) {
            Ok(size) if size == self.end + done => drop(writer.set_len(self.end)),
            Ok(_) => drop(write_counted(writer, b"\n")),
            Err(_) => {}
        }
    }

    /// Indexes own lines that are in the file now, behind `lead` bytes that close the tail.
    fn index_own(&mut self, lead: u64, lines: &[u8]) -> Result<()> {
        if lead > 0 {
            if self.tail == Tail::Torn {
                self.note_torn();
            }
            self.close_tail(lead);
        }
        for text in lines.split_inclusive(|&b| b == b'\n') {
            let bytes = text.strip_suffix(b"\n").unwrap_or(text);
            let line = Line {
                offset: self.end,
                number: self.lines + 1,
                bytes,
                terminated: true,
            };
            self.take(&line)?;
            self.lines += 1;
            self.end += text.len() as u64;
            self.sealed_end = self.end;
        }
        Ok(())
    }

    /// Turns a session that lies in memory into a file, with `lines` at its end; all or nothing.
    ///
    /// The file must not exist, or be empty.
    pub fn persist(&mut self, path: &Path, lines: &[u8], how: How) -> Result<()> {
        let Backing::Memory(memory) = &self.backing else {
            return Ok(());
        };
        let file = draft::create(path, &[memory, lines], how.sync)?;
        self.backing = Backing::File(file);
        path.clone_into(&mut self.path);
        self.pid = std::process::id();
        self.index_own(0, lines)
    }
}
