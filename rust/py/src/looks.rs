//! What the session files of a folder look like: names, sizes, times, inodes; nothing is read.

use crate::errors::os_error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsString;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

const SUFFIX: &[u8] = b".jsonl";

/// Files of a folder that are worth another thread.
const WORTH_A_THREAD: usize = 500;

/// Size, time in nanoseconds since 1970 and inode; all 0 for a file that could not be looked at.
type Stat = [u64; 3];

/// Names and stats as bytes, how many there are, folders and links that may be some, what failed.
type Looked<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    usize,
    Vec<OsString>,
    Vec<(OsString, Bound<'py, PyAny>)>,
);

#[derive(Default)]
struct Look {
    names: Vec<u8>,
    stats: Vec<u8>,
    count: usize,
    folders: Vec<OsString>,
    failed: Vec<(PathBuf, io::Error)>,
}

/// Looks at a folder; `OSError` if it cannot be read.
#[pyfunction]
pub fn look_at(py: Python<'_>, folder: PathBuf) -> PyResult<Looked<'_>> {
    let look = py
        .detach(|| look(&folder))
        .map_err(|error| os_error(py, &error, &folder))?;
    let failed = look.failed.into_iter().map(|(path, error)| {
        let error = os_error(py, &error, &path).into_value(py);
        (path.into_os_string(), error.into_bound(py).into_any())
    });
    Ok((
        PyBytes::new(py, &look.names),
        PyBytes::new(py, &look.stats),
        look.count,
        look.folders,
        failed.collect(),
    ))
}

fn look(folder: &Path) -> io::Result<Look> {
    let mut look = Look::default();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().ends_with(SUFFIX) {
            files.push(entry);
        } else if entry
            .file_type()
            .is_ok_and(|t| t.is_dir() || t.is_symlink())
        {
            look.folders.push(entry.path().into());
        }
    }
    for (entry, stat) in files.iter().zip(stats(&files)) {
        match stat {
            Ok(stat) => look.add(entry.file_name(), stat),
            // It was removed meanwhile, or is a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                look.add(entry.file_name(), Stat::default());
                look.failed.push((entry.path(), error));
            }
        }
    }
    Ok(look)
}

impl Look {
    fn add(&mut self, name: OsString, stat: Stat) {
        if self.count > 0 {
            self.names.push(0);
        }
        self.names.extend(name.as_encoded_bytes());
        self.stats.extend(stat.iter().flat_map(|n| n.to_ne_bytes()));
        self.count += 1;
    }
}

/// The files' stats, in their order.
fn stats(files: &[DirEntry]) -> Vec<io::Result<Stat>> {
    let each = |files: &[DirEntry]| files.iter().map(stat_of).collect::<Vec<_>>();
    let most = thread::available_parallelism().map_or(1, usize::from);
    let threads = most.min(files.len() / WORTH_A_THREAD).max(1);
    let (first, others) = files.split_at(files.len().div_ceil(threads));
    thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(first.len().max(1))
            .map(|part| {
                (
                    part,
                    thread::Builder::new().spawn_scoped(scope, || each(part)),
                )
            })
            .collect();
        let mut all = each(first);
        for (part, thread) in others {
            // Where there are no more threads, this one does it.
            let done = thread.ok().and_then(|thread| thread.join().ok());
            all.extend(done.unwrap_or_else(|| each(part)));
        }
        all
    })
}

fn stat_of(entry: &DirEntry) -> io::Result<Stat> {
    let meta = if entry.file_type()?.is_symlink() {
        fs::metadata(entry.path())?
    } else {
        entry.metadata()?
    };
    Ok([meta.len(), time_of(&meta), inode_of(&meta)])
}

#[cfg(unix)]
fn time_of(meta: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let nanos = meta.mtime().saturating_mul(1_000_000_000);
    nanos.saturating_add(meta.mtime_nsec()) as u64
}

#[cfg(unix)]
fn inode_of(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn time_of(meta: &Metadata) -> u64 {
    let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).ok();
    meta.modified()
        .ok()
        .and_then(since)
        .and_then(|time| u64::try_from(time.as_nanos()).ok())
        .unwrap_or_default()
}

#[cfg(not(unix))]
fn inode_of(_: &Metadata) -> u64 {
    0
}
