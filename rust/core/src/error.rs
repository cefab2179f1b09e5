//! One error type: what happened, to which file, at which physical line and byte.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong; boxed, so that results stay small.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<ErrorKind>);

/// The kinds of trouble.
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// The operating system refused.
    #[error("{source}: {}", path.display())]
    Io { source: io::Error, path: PathBuf },
    /// The operating system refused in the middle of an append, and then to take back what was written
    /// before: these entries are in the file, and in the index.
    #[error("{source}; {} ({})", stays(*entries), path.display())]
    Stays {
        source: io::Error,
        path: PathBuf,
        entries: u64,
    },
    /// The file has bytes, but no session header before anything else.
    #[error("{reason} ({}, line {line}, byte {byte})", path.display())]
    NotASession {
        path: PathBuf,
        line: u64,
        byte: u64,
        reason: &'static str,
    },
    /// The file shrank, vanished or changed between the scan and now.
    #[error("{reason} ({}, byte {byte})", path.display())]
    Lost {
        path: PathBuf,
        byte: u64,
        reason: &'static str,
    },
    /// A path to the root does not exist: these rows are each other's parents.
    #[error("the parents of {} entries form a cycle", rows.len())]
    Cycle { rows: Vec<crate::Row> },
    /// Another writer changed the file and the caller wants no company.
    #[error("another writer changed the session; refresh() takes its entries in ({})", path.display())]
    Conflict { path: PathBuf },
    /// A version that is only read.
    #[error("files of version {version} are only read ({})", path.display())]
    TooNew { path: PathBuf, version: f64 },
    /// Not even room for what is to be read.
    #[error("no memory for {bytes} bytes ({})", path.display())]
    NoMemory { path: PathBuf, bytes: u64 },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// What an error says of entries that could not be taken back.
pub fn stays(entries: u64) -> String {
    format!("the first {entries} of the new entries could not be taken back and are in the file")
}

impl Error {
    /// The kind, for matching.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// Whether the operating system refused for this reason.
    pub(crate) fn is(&self, kind: io::ErrorKind) -> bool {
        matches!(self.kind(), ErrorKind::Io { source, .. } if source.kind() == kind)
    }

    /// Trouble with a file, with its path.
    pub fn io(source: io::Error, path: &Path) -> Self {
        ErrorKind::Io {
            source,
            path: path.to_owned(),
        }
        .into()
    }

    pub(crate) fn lost(path: &Path, byte: u64, reason: &'static str) -> Self {
        ErrorKind::Lost {
            path: path.to_owned(),
            byte,
            reason,
        }
        .into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }
}
