//! Which file a path names, how files are opened, and the kernel's lock on them.
//!
//! A path can be given to another file at any time: by a rename, by a link that is turned, by a
//! deletion. So a file is known by its [`Identity`], taken from an open descriptor, and a path is
//! believed only once it is seen to name the file whose lock is held.
//!
//! Locks are advisory, belong to the open file, and end with the process. They are taken off by name
//! before a descriptor is closed: a child that was forked in between holds the descriptor as well, and
//! would keep the lock.

use crate::error::{Error, ErrorKind, Result};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// What tells two open files apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// No file.
    pub(crate) const NONE: Self = Self(0, 0);

    #[cfg(unix)]
    pub(crate) fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(meta.dev(), meta.ino())
    }

    /// The standard library gives no file index here; the time of creation has steps of 100 ns.
    #[cfg(not(unix))]
    pub(crate) fn of(meta: &Metadata) -> Self {
        let created = meta.created().ok();
        let since = created.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        since.map_or(Self(0, 0), |d| {
            Self(d.as_secs(), u64::from(d.subsec_nanos()))
        })
    }

    /// The file that a path names now; None if there is none.
    pub(crate) fn named(path: &Path) -> io::Result<Option<(Self, u64)>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some((Self::of(&meta), meta.len()))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// A pipe or a device in the place of a file must not make `open` wait.
fn patient(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK);
    options
}

/// Opens a file to read it. Folders, pipes and devices are refused.
pub(crate) fn open_to_read(path: &Path) -> io::Result<(File, Metadata)> {
    regular(patient(OpenOptions::new().read(true)).open(path)?)
}

/// Opens a file to append to it.
pub(crate) fn open_to_append(path: &Path) -> io::Result<(File, Metadata)> {
    regular(patient(OpenOptions::new().read(true).append(true)).open(path)?)
}

fn regular(file: File) -> io::Result<(File, Metadata)> {
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok((file, meta))
    } else if meta.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        Err(not_seekable())
    }
}

#[cfg(unix)]
fn not_seekable() -> io::Error {
    io::Error::from_raw_os_error(libc::ESPIPE)
}

#[cfg(not(unix))]
fn not_seekable() -> io::Error {
    io::ErrorKind::NotSeekable.into()
}

/// Whether the file system has no locks: then one works without, as pi does everywhere.
fn no_locks_here(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOLCK) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Takes the lock of an open file, waiting for it; a signal asks whether to wait on.
pub(crate) fn lock(file: &File, path: &Path, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
    loop {
        match file.lock() {
            Ok(()) => return Ok(()),
            Err(e) if no_locks_here(&e) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                if !go_on() {
                    return Err(ErrorKind::Cancelled.into());
                }
            }
            Err(e) => return Err(Error::io(e, path)),
        }
    }
}

/// Whose a file is, as far as its lock tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody had the lock; the caller has it now.
    Free,
    /// Somebody works with it.
    Taken,
    /// There are no locks here.
    Unknown,
}

/// Tries to take the lock of an open file.
pub(crate) fn claim(file: &File) -> io::Result<Claim> {
    match file.try_lock() {
        Ok(()) => Ok(Claim::Free),
        Err(TryLockError::WouldBlock) => Ok(Claim::Taken),
        Err(TryLockError::Error(e)) if no_locks_here(&e) => Ok(Claim::Unknown),
        Err(TryLockError::Error(e)) if e.kind() == io::ErrorKind::Interrupted => claim(file),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Gives a lock back. Closing the file does so as well, unless a forked child holds it too.
/// False if that failed: then the file must be closed.
pub(crate) fn unlock(file: &File) -> bool {
    file.unlock().is_ok()
}

/// As [`open_to_append`], but the path itself must be no link: it was resolved before.
fn open_resolved(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOFOLLOW,
    );
    regular(options.open(path)?)
}

/// Opens a file for appending and locks it, making sure that the path, in which links have been
/// resolved, still names it then.
pub(crate) fn lock_in_place(path: &Path, go_on: &mut dyn FnMut() -> bool) -> Result<File> {
    let io_error = |e| Error::io(e, path);
    for _ in 0..100 {
        let (file, meta) = open_resolved(path).map_err(io_error)?;
        lock(&file, path, go_on)?;
        match Identity::named(path).map_err(io_error)? {
            Some((named, _)) if named == Identity::of(&meta) => return Ok(file),
            _ => drop(unlock(&file)),
        }
    }
    Err(Error::lost(path, 0, "the file is replaced again and again"))
}
