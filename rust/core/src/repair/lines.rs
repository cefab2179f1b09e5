//! The lines of a session file as a check takes them: whole, cut out of damaged ones, or no lines at
//! all. A check and the repair after it read the file by this one rule, so that both count the same
//! entries.

use super::parts::{self, Parts};
use super::salvage::{self, Piece};
use crate::envelope;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{self, Verdict};
use crate::json::{self, Shape};
use crate::lines::{CHUNK, Line, LineReader, Source, read_most_at};
use std::fs::File;
use std::io;
use std::path::Path;

/// How many bytes are read before the question whether to go on.
const STEP: u64 = 4 << 20;

/// A physical line, or an entry in one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Physical line, from 1.
    pub(super) line: u64,
    /// Where it begins in the file, and its length without LF.
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Whether an LF ends it.
    pub(super) ended: bool,
}

/// What an entry's text is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Header,
    /// Another header behind the first.
    SecondHeader,
    /// No object: it has no place in the tree.
    Value,
    /// An entry, counted from 0.
    Entry(u32),
}

/// A text that is JSON.
pub(super) struct Sound<'a> {
    pub(super) role: Role,
    pub(super) text: &'a [u8],
    pub(super) parts: &'a Parts,
    /// JavaScript takes it for false: then it is passed over.
    pub(super) dropped: bool,
}

/// What takes the lines, one by one.
pub(super) trait Taker {
    /// Only white space.
    fn blank(&mut self, place: Place) -> Result<()>;
    /// A text that is JSON; the line, or a piece of one that is damaged.
    fn sound(&mut self, place: Place, sound: &Sound<'_>) -> Result<()>;
    /// A line of zeros and white space.
    fn zeros(&mut self, place: Place) -> Result<()>;
    /// A line that is no JSON; its sound pieces follow.
    fn damaged(&mut self, place: Place, text: &[u8], pieces: &[Piece]) -> Result<()>;
}

/// A file up to where it ended when it was opened.
pub(super) struct Bounded<'f> {
    pub(super) file: &'f File,
    pub(super) size: u64,
}

impl Source for Bounded<'_> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let room = self.size.saturating_sub(offset).min(buf.len() as u64);
        self.file.read_at(&mut buf[..room as usize], offset)
    }
}

/// Gives all lines to `taker`. `go_on` is told how many bytes have been read.
///
/// # Errors
/// What the system says or the taker, [`ErrorKind::NotASession`], or [`ErrorKind::Cancelled`].
pub(super) fn read<T: Taker>(
    source: &Bounded<'_>,
    path: &Path,
    taker: &mut T,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<()> {
    let mut course = Course {
        source,
        path,
        taker,
        has_header: false,
        entries: 0,
    };
    let mut reader = LineReader::new(source, 0, 1, CHUNK);
    let mut asked = 0;
    while let Some(line) = reader.next_line().map_err(|e| Error::io(e, path))? {
        course.line(&line)?;
        if line.offset + line.length >= asked + STEP {
            asked = line.offset + line.length;
            if !go_on(asked) {
                return Err(ErrorKind::Cancelled.into());
            }
        }
    }
    course.finish()
}

struct Course<'a, T> {
    source: &'a Bounded<'a>,
    path: &'a Path,
    taker: &'a mut T,
    has_header: bool,
    entries: u32,
}

impl<T: Taker> Course<'_, T> {
    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        let place = Place {
            line: line.number,
            offset: line.offset,
            length: line.length,
            ended: line.terminated,
        };
        if (line.bytes.len() as u64) < line.length {
            return self.hopeless(place, line.bytes);
        }
        let text = if self.has_header {
            line.bytes
        } else {
            header::without_bom(line.bytes)
        };
        if text.trim_ascii().is_empty() {
            return self.taker.blank(place);
        }
        let mut parts = Parts::default();
        match json::walk(text, &mut parts) {
            Ok(shape) => self.sound(place, text, &parts, shape),
            Err(_) => self.damaged(place, line.bytes),
        }
    }

    /// A long line of which only the beginning was read, since that is no JSON.
    fn hopeless(&mut self, place: Place, beginning: &[u8]) -> Result<()> {
        if salvage::is_void(beginning) && self.is_void(place)? {
            return self.taker.zeros(place);
        }
        let mut text = Vec::new();
        let room = place.length as usize;
        if text.try_reserve_exact(room).is_err() {
            let (path, bytes) = (self.path.to_owned(), place.length);
            return Err(ErrorKind::NoMemory { path, bytes }.into());
        }
        text.resize(room, 0);
        let got = read_most_at(self.source, &mut text, place.offset);
        text.truncate(got.map_err(|e| Error::io(e, self.path))?);
        self.damaged(place, &text)
    }

    fn is_void(&self, place: Place) -> Result<bool> {
        let mut part = vec![0; CHUNK];
        let mut done = 0;
        while done < place.length {
            let room = (place.length - done).min(CHUNK as u64) as usize;
            let got = read_most_at(self.source, &mut part[..room], place.offset + done);
            let got = got.map_err(|e| Error::io(e, self.path))?;
            if got == 0 || !salvage::is_void(&part[..got]) {
                return Ok(got == 0);
            }
            done += got as u64;
        }
        Ok(true)
    }

    fn damaged(&mut self, place: Place, text: &[u8]) -> Result<()> {
        if salvage::is_void(text) {
            return self.taker.zeros(place);
        }
        let pieces = salvage::pieces(text);
        self.taker.damaged(place, text, &pieces)?;
        for piece in pieces.iter().filter(|piece| piece.sound) {
            let text = &text[piece.place.clone()];
            let mut parts = Parts::default();
            if let Ok(shape) = json::walk(text, &mut parts) {
                let place = Place {
                    offset: place.offset + piece.place.start as u64,
                    length: text.len() as u64,
                    ended: true,
                    ..place
                };
                self.sound(place, text, &parts, shape)?;
            }
        }
        Ok(())
    }

    fn sound(&mut self, place: Place, text: &[u8], parts: &Parts, shape: Shape) -> Result<()> {
        let dropped = json::is_dropped(text, shape);
        let role = self.role(place, text, parts, shape, dropped)?;
        let sound = Sound {
            role,
            text,
            parts,
            dropped,
        };
        self.taker.sound(place, &sound)
    }

    fn role(
        &mut self,
        place: Place,
        text: &[u8],
        parts: &Parts,
        shape: Shape,
        dropped: bool,
    ) -> Result<Role> {
        if !self.has_header && !dropped {
            return self.header(place, text);
        }
        if shape != Shape::Object {
            return Ok(Role::Value);
        }
        if parts::is_text(&text[parts.kind.clone()], "session") {
            return Ok(Role::SecondHeader);
        }
        self.entries += 1;
        Ok(Role::Entry(self.entries - 1))
    }

    fn header(&mut self, place: Place, text: &[u8]) -> Result<Role> {
        let verdict = envelope::read(text).map(|e| header::judge(text, &e, false));
        if let Ok(Verdict::NoSession(reason)) = verdict {
            let (line, byte) = (place.line, place.offset);
            return Err(header::not_a_session(self.path, line, byte, reason));
        }
        self.has_header = true;
        Ok(Role::Header)
    }

    fn finish(self) -> Result<()> {
        if self.has_header {
            return Ok(());
        }
        let reason = match self.source.size {
            0 => "the file is empty",
            _ => "no session header",
        };
        Err(header::not_a_session(self.path, 1, 0, reason))
    }
}
