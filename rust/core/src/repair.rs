//! What is wrong with a session file, and its repair.
//!
//! [`examine`] reads a file once and tells what it finds, with line and byte. It keeps what it needs
//! of ids and parents, some 60 bytes an entry, and the longest line. Of each [`Kind`] of finding the
//! first [`KEPT`] are kept; all are counted.
//!
//! [`repair`] examines the file under the lock that all writers take, and reads it a second time to
//! write the new one beside it. It sets ids and parents, puts each entry on a line of its own, and
//! ends the last line. No text changes, and every other byte is copied as it is.
//!
//! What is done is safe at every moment, in this order:
//! 1. the new file is written beside the old one and synced;
//! 2. bytes without a place in it are written to `<path>.rejected` and synced;
//! 3. the old file gets a second name, `<path>.bak` (where the file system has no hard links it is
//!    copied): from now on nothing can be lost, not even what a writer without locks appends to it;
//! 4. the new file is renamed to the old name, if that still names the file that was examined and
//!    nobody has written to it. Else what was made is taken away, and all begins anew.
//!
//! A second repair finds nothing to do. Files of version 1 have no tree: there only lines are looked
//! at. Files of a version to come are never written.

mod checks;
mod lines;
mod parts;
mod rewrite;
mod salvage;
mod tree;

pub use rewrite::{Outcome, exchange_images, repair};

use crate::error::{Error, Result};
use crate::place;
use checks::Examiner;
use lines::Bounded;
use std::path::Path;

/// How many findings of each kind are kept.
pub const KEPT: usize = 1000;

/// The newest version of files that are written.
const NEWEST: f64 = 3.0;

/// What a finding is about. `shown`, `to`, `a` and `b` are members of [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// No JSON, and no entry in it. `shown`: how it begins; `a`: its length.
    Malformed,
    /// No JSON, but `a` entries are in it, and `b` bytes that are none.
    Glued,
    /// `b` bytes of zeros, around `a` entries.
    Nul,
    /// As malformed; the last line, without an LF: its writer died, or still writes.
    Torn,
    /// The last line has no LF.
    Unterminated,
    /// No entry but another value: `shown`.
    Foreign,
    /// An object whose type is no text (`a` = 0), or whose id is none (`a` = 1).
    Nameless,
    /// An entry of the type `shown`, which this version does not know.
    UnknownType,
    /// Another session header.
    Header,
    /// An entry that cannot be used: no message (`a` = 0), a name that is none (1), a replacement that
    /// is none (2).
    Unusable,
    /// The id is taken; a repair makes it `to`.
    Duplicate,
    /// Among its own ancestors, in a circle of `a` entries; a repair makes its parent `to`.
    Cycle,
    /// The parent `shown` is not in the file; a repair makes it `to`.
    MissingParent,
    /// It and others, `a` in all, hang on line `b` and on no root.
    Unreachable,
    /// The target `shown` is not in the file.
    LabelTarget,
    /// The first kept entry `shown` is not in the file (`a` = 0) or not above it (`a` = 1), or the index
    /// of version 1 names no entry before it (`a` = 2).
    CompactionTarget,
    /// The target `shown` is not in the file.
    EditTarget,
    /// The tool call `shown` does not stand before its result.
    ResultWithoutCall,
    /// A line of `a` bytes, `b` of them images.
    Large,
    /// The time goes back by `a` ms.
    Clock,
    /// An image that was moved out is not where it should be; `shown`: what is known of it.
    LostImage,
    /// The same of one that is there, but is not what it was.
    DamagedImage,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = Self::DamagedImage as usize + 1;

    /// Whether a repair makes an end of it.
    pub fn is_fixable(self) -> bool {
        matches!(
            self,
            Self::Malformed
                | Self::Glued
                | Self::Nul
                | Self::Torn
                | Self::Unterminated
                | Self::Duplicate
                | Self::Cycle
                | Self::MissingParent
                | Self::Unreachable
        )
    }
}

/// Something that is wrong, or odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: Kind,
    /// Physical line, from 1.
    pub line: u64,
    /// Where the line, or the entry in it, begins in the file.
    pub byte: u64,
    /// The entry's id in WTF-8, or its beginning, if it is a text.
    pub id: Option<Vec<u8>>,
    /// What the file says, or the beginning of it; see [`Kind`].
    pub shown: Vec<u8>,
    /// What a repair makes of it, as JSON.
    pub to: Vec<u8>,
    pub a: u64,
    pub b: u64,
}

impl Finding {
    fn at(kind: Kind, line: u64, byte: u64) -> Self {
        Self {
            kind,
            line,
            byte,
            id: None,
            shown: Vec::new(),
            to: Vec::new(),
            a: 0,
            b: 0,
        }
    }
}

/// What was found.
#[derive(Debug, Default, Clone)]
pub struct Findings {
    /// The first of each kind, in file order.
    pub kept: Vec<Finding>,
    /// How many there are of each kind, by its number.
    pub counts: [u64; Kind::COUNT],
}

impl Findings {
    fn add(&mut self, finding: Finding) {
        let count = &mut self.counts[finding.kind as usize];
        *count += 1;
        if *count <= KEPT as u64 {
            self.kept.push(finding);
        }
    }

    /// Whether a repair has anything to do.
    pub fn fixable(&self) -> bool {
        self.kept.iter().any(|finding| finding.kind.is_fixable())
    }
}

/// What an examination says of a file.
#[derive(Debug, Clone)]
pub struct Examined {
    pub findings: Findings,
    /// Number of entries, those in damaged lines among them.
    pub entries: u64,
    /// Bytes of the file.
    pub size: u64,
    /// How many of these are images.
    pub image_bytes: u64,
    /// The file's permissions; 0 where there are none.
    pub mode: u32,
}

/// What is wrong with an image that was moved out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTrouble {
    /// Whether nothing of it is there.
    pub lost: bool,
    /// In words.
    pub text: Vec<u8>,
}

/// Looks for an image that was moved out, by its mark; says what is wrong with it.
pub type LookFor<'a> = dyn FnMut(&[u8]) -> Result<Option<ImageTrouble>> + 'a;

/// Examines a file, which is only read. `look_for` is asked for each image that was moved out of it;
/// `go_on` is told how many bytes of how many have been read.
///
/// # Errors
/// What the system says, [`NotASession`](crate::ErrorKind::NotASession),
/// [`Cancelled`](crate::ErrorKind::Cancelled), or those of `look_for`.
pub fn examine(
    path: &Path,
    look_for: &mut LookFor<'_>,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Examined> {
    let (file, meta) = place::open_to_read(path).map_err(|e| Error::io(e, path))?;
    let size = meta.len();
    let source = Bounded { file: &file, size };
    let mut examiner = Examiner::that_looks(look_for);
    lines::read(&source, path, &mut examiner, &mut |done| go_on(done, size))?;
    let mode = mode_of(&meta);
    Ok(examiner.finish(size, mode).0)
}

#[cfg(unix)]
fn mode_of(meta: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(meta) & 0o7777
}

#[cfg(not(unix))]
fn mode_of(_: &std::fs::Metadata) -> u32 {
    0
}
