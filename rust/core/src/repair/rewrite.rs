//! The second reading: a new file from an old one, under its lock, all or nothing.

use super::NEWEST;
use super::checks::Examiner;
use super::lines::{self, Bounded, Place, Role, Sound, Taker};
use super::salvage::Piece;
use super::tree::Tree;
use crate::draft::{self, Aside, Draft, Held};
use crate::error::{Error, ErrorKind, Result};
use crate::splice::{self, Member};
use crate::{images, summary};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How often all is begun anew because others write to the file meanwhile.
const TRIES: usize = 20;

/// Bytes that are gathered before they are written; longer parts are left to the kernel.
const GATHERED: usize = 1 << 20;

/// What a repair has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Where the old file is.
    pub backup: PathBuf,
    /// Where the bytes are that have no place in the new one, if there are any.
    pub rejected: Option<PathBuf>,
}

/// Asks whether to go on; told how many bytes have been read.
type Ask<'a> = dyn Fn(u64) -> bool + 'a;

/// Gives another text for that of an image, or None.
pub type Exchange<'a> = dyn FnMut(&[u8]) -> Result<Option<Vec<u8>>> + 'a;

/// Repairs a session file. None if there is nothing to do.
///
/// # Errors
/// What the system says, [`NotASession`](ErrorKind::NotASession), [`TooNew`](ErrorKind::TooNew) or
/// [`Cancelled`](ErrorKind::Cancelled); then the file is as it was, and nothing is left beside it.
pub fn repair(path: &Path, go_on: &mut dyn FnMut(u64, u64) -> bool) -> Result<Option<Outcome>> {
    let target = target_of(path)?;
    for _ in 0..TRIES {
        let held = Held::lock(&target, &mut || go_on(0, 0))?;
        let (file, size) = held.content();
        let source = Bounded { file, size };
        let mut examiner = Examiner::default();
        lines::read(&source, &target, &mut examiner, &mut |done| {
            go_on(done, 2 * size)
        })?;
        let version = examiner.version;
        let (found, tree) = examiner.finish(size, 0);
        if !found.findings.fixable() {
            return Ok(None);
        }
        refuse_newer(&target, version)?;
        let go_on = RefCell::new(&mut *go_on);
        let ask = |done| (go_on.borrow_mut())(done, 2 * size);
        if let Some(outcome) = rewrite(&held, &target, &tree, &ask)? {
            return Ok(Some(outcome));
        }
    }
    Err(Error::io(io::ErrorKind::ResourceBusy.into(), path))
}

/// The file that a path names, with what dead writers left beside it removed.
fn target_of(path: &Path) -> Result<PathBuf> {
    let target = draft::resolve_links(path).map_err(|e| Error::io(e, path))?;
    draft::sweep(&target);
    Ok(target)
}

fn refuse_newer(path: &Path, version: Option<f64>) -> Result<()> {
    match version {
        Some(version) if version > NEWEST => Err(ErrorKind::TooNew {
            path: path.to_owned(),
            version,
        }
        .into()),
        _ => Ok(()),
    }
}

/// Writes the repaired file and puts it in the place of the old one; None if that has changed.
fn rewrite(held: &Held, path: &Path, tree: &Tree, ask: &Ask<'_>) -> Result<Option<Outcome>> {
    let (file, size) = held.content();
    let source = Bounded { file, size };
    let mut repairer = Repairer {
        tree,
        new: Rewriter::begin(held, path, ask, size)?,
        rejected: None,
        pieces: 0,
    };
    lines::read(&source, path, &mut repairer, &mut |done| ask(size + done))?;
    let Repairer { new, rejected, .. } = repairer;
    let draft = new.finish()?;
    let mut aside = Aside::default();
    let rejected = match rejected {
        Some(out) => Some(
            out.finish()?
                .publish_aside(held, path, "rejected", &mut aside)?,
        ),
        None => None,
    };
    let backup = held.keep_aside(path, "bak", &mut aside, &mut || ask(2 * size))?;
    if !held.replaced_by(draft)? {
        return Ok(None);
    }
    aside.keep();
    Ok(Some(Outcome { backup, rejected }))
}

/// A file being written, in large parts.
struct Out {
    draft: Draft,
    gathered: Vec<u8>,
}

impl Out {
    fn begin(path: &Path) -> Result<Self> {
        Ok(Self {
            draft: Draft::aside(path)?,
            gathered: Vec::with_capacity(GATHERED),
        })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.gathered.len() + bytes.len() > GATHERED {
            self.flush()?;
        }
        if bytes.len() > GATHERED {
            return self.draft.write(bytes);
        }
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.draft.write(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }

    /// Puts a part of another file.
    fn copy(&mut self, file: &File, range: Range<u64>, path: &Path, ask: &Ask<'_>) -> Result<()> {
        let length = range.end - range.start;
        let whole = if length > GATHERED as u64 {
            self.flush()?;
            self.draft.copy(file, range, &mut || ask(0))?
        } else {
            if self.gathered.len() as u64 + length > GATHERED as u64 {
                self.flush()?;
            }
            let before = self.gathered.len();
            self.gathered.resize(before + length as usize, 0);
            crate::lines::read_exact_at(file, &mut self.gathered[before..], range.start)
                .map_err(|e| Error::io(e, path))?
        };
        if whole {
            return Ok(());
        }
        let reason = "the file is shorter than when it was read";
        Err(Error::lost(path, self.gathered.len() as u64, reason))
    }

    fn finish(mut self) -> Result<Draft> {
        self.flush()?;
        Ok(self.draft)
    }
}

/// A new file that is the old one but for some parts, which come in order.
struct Rewriter<'h> {
    held: &'h Held,
    path: &'h Path,
    ask: &'h Ask<'h>,
    size: u64,
    out: Out,
    /// What lies before in the old file has been dealt with.
    done: u64,
}

impl<'h> Rewriter<'h> {
    fn begin(held: &'h Held, path: &'h Path, ask: &'h Ask<'h>, size: u64) -> Result<Self> {
        Ok(Self {
            held,
            path,
            ask,
            size,
            out: Out::begin(path)?,
            done: 0,
        })
    }

    /// Puts a text in the place of a part.
    fn replace(&mut self, range: Range<u64>, text: &[u8]) -> Result<()> {
        self.copy_to(range.start)?;
        self.done = range.end;
        self.out.put(text)
    }

    fn copy_to(&mut self, offset: u64) -> Result<()> {
        let (file, _) = self.held.content();
        let range = self.done..offset;
        self.done = offset;
        self.out.copy(file, range, self.path, self.ask)
    }

    fn finish(mut self) -> Result<Draft> {
        self.copy_to(self.size)?;
        self.out.finish()
    }
}

/// The part of the file that a line is, with its LF.
fn whole(place: Place) -> Range<u64> {
    let end = place.offset + place.length;
    place.offset..end + u64::from(place.ended)
}

/// Writes the repaired file.
struct Repairer<'h> {
    tree: &'h Tree,
    new: Rewriter<'h>,
    /// Bytes without a place in it.
    rejected: Option<Out>,
    /// So many entries of a damaged line are still to come.
    pieces: usize,
}

impl Repairer<'_> {
    fn end_line(&mut self, place: Place) -> Result<()> {
        let end = place.offset + place.length;
        if place.ended {
            return Ok(());
        }
        self.new.replace(end..end, b"\n")
    }

    fn rejected(&mut self) -> Result<&mut Out> {
        match &mut self.rejected {
            Some(out) => Ok(out),
            none => Ok(none.insert(Out::begin(self.new.path)?)),
        }
    }
}

impl Taker for Repairer<'_> {
    fn blank(&mut self, place: Place) -> Result<()> {
        self.end_line(place)
    }

    fn sound(&mut self, place: Place, sound: &Sound<'_>) -> Result<()> {
        let changes = match sound.role {
            Role::Entry(row) => self.tree.changes(row),
            _ => Vec::new(),
        };
        let set: Vec<Member<'_>> = changes
            .iter()
            .map(|(key, text)| (*key, &text[..]))
            .collect();
        let spliced = (!set.is_empty()).then(|| splice::splice(sound.text, &set, &[]));
        if self.pieces > 0 {
            self.pieces -= 1;
            self.new.out.put(spliced.as_deref().unwrap_or(sound.text))?;
            return self.new.out.put(b"\n");
        }
        if let Some(text) = spliced {
            self.new
                .replace(place.offset..place.offset + place.length, &text)?;
        }
        self.end_line(place)
    }

    fn zeros(&mut self, place: Place) -> Result<()> {
        let Rewriter {
            held, path, ask, ..
        } = self.new;
        let (file, _) = held.content();
        let zeros = place.offset..place.offset + place.length;
        let out = self.rejected()?;
        out.copy(file, zeros, path, ask)?;
        out.put(b"\n")?;
        self.new.replace(whole(place), b"")
    }

    fn damaged(&mut self, place: Place, text: &[u8], pieces: &[Piece]) -> Result<()> {
        for piece in pieces.iter().filter(|piece| !piece.sound) {
            let out = self.rejected()?;
            out.put(&text[piece.place.clone()])?;
            out.put(b"\n")?;
        }
        self.pieces = pieces.iter().filter(|piece| piece.sound).count();
        self.new.replace(whole(place), b"")
    }
}

/// Puts other texts in the place of images ([`images::find`]), under the file's lock; how many.
///
/// `exchange` gives the new text of an image, or None to leave it alone. It is asked again if the file
/// changes before it is replaced. What it gives must need no escapes in JSON.
///
/// # Errors
/// As [`repair`], and those of `exchange`.
pub fn exchange_images(
    path: &Path,
    exchange: &mut Exchange<'_>,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<u64> {
    let target = target_of(path)?;
    for _ in 0..TRIES {
        let held = Held::lock(&target, &mut || go_on(0, 0))?;
        let (file, size) = held.content();
        let go_on = RefCell::new(&mut *go_on);
        let ask = |done| (go_on.borrow_mut())(done, size);
        let mut exchanger = Exchanger {
            held: &held,
            path: &target,
            ask: &ask,
            size,
            exchange,
            new: None,
            pieces: 0,
            count: 0,
        };
        let source = Bounded { file, size };
        lines::read(&source, &target, &mut exchanger, &mut |done| ask(done))?;
        let Exchanger { new, count, .. } = exchanger;
        let Some(new) = new else {
            return Ok(0);
        };
        if held.replaced_by(new.finish()?)? {
            return Ok(count);
        }
    }
    Err(Error::io(io::ErrorKind::ResourceBusy.into(), path))
}

/// Writes a file with other texts in the place of images.
struct Exchanger<'h, 'e> {
    held: &'h Held,
    path: &'h Path,
    ask: &'h Ask<'h>,
    size: u64,
    exchange: &'e mut Exchange<'e>,
    /// Begun with the first text that changes.
    new: Option<Rewriter<'h>>,
    /// So many entries of a damaged line are still to come: damaged lines are left alone.
    pieces: usize,
    count: u64,
}

impl Taker for Exchanger<'_, '_> {
    fn blank(&mut self, _: Place) -> Result<()> {
        Ok(())
    }

    fn zeros(&mut self, _: Place) -> Result<()> {
        Ok(())
    }

    fn damaged(&mut self, _: Place, _: &[u8], pieces: &[Piece]) -> Result<()> {
        self.pieces = pieces.iter().filter(|piece| piece.sound).count();
        Ok(())
    }

    fn sound(&mut self, place: Place, sound: &Sound<'_>) -> Result<()> {
        if self.pieces > 0 {
            self.pieces -= 1;
            return Ok(());
        }
        if sound.role == Role::Header {
            return refuse_newer(self.path, summary::of_header(sound.text).version);
        }
        for image in images::find(sound.text) {
            let Some(text) = (self.exchange)(&sound.text[image.clone()])? else {
                continue;
            };
            let new = match &mut self.new {
                Some(new) => new,
                none => none.insert(Rewriter::begin(self.held, self.path, self.ask, self.size)?),
            };
            let at = |byte: usize| place.offset + byte as u64;
            new.replace(at(image.start)..at(image.end), &text)?;
            self.count += 1;
        }
        Ok(())
    }
}
