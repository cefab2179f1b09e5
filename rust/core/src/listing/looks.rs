//! What the session files of a folder look like, for whoever remembers folders: nothing is read.

use super::{Depth, Files, Options, Order, Trouble, look_into};
use crate::error::{Error, ErrorKind, Result};
use crate::parallel;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Files of a folder that are worth another thread.
const WORTH_A_THREAD: usize = 500;

/// A file's size, time in nanoseconds since 1970, and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stat {
    pub size: u64,
    pub mtime: i64,
    /// 0 where the system has none.
    pub inode: u64,
}

/// What a folder looks like.
#[derive(Debug)]
pub struct Look {
    /// Those that could not be looked at come last, with a stat of zeros.
    pub files: Vec<(OsString, Stat)>,
    /// Its folders, and links in it, which may lead to folders.
    pub folders: Vec<PathBuf>,
    pub troubles: Vec<Trouble>,
}

/// Looks at a folder. Files that are removed meanwhile, and links to nothing, are not in it.
///
/// # Errors
/// What the system says of the folder itself, or [`ErrorKind::Cancelled`].
pub fn look_at(folder: &Path, go_on: &mut dyn FnMut() -> bool) -> Result<Look> {
    let (names, folders) = look_into(folder, Depth::Both).map_err(|e| Error::io(e, folder))?;
    let mut all = Files::of(Options {
        order: Order::Name,
        depth: Depth::Own,
        lenient: false,
        threads: parallel::available().min(names.len() / WORTH_A_THREAD),
    });
    all.folders.push(folder.to_owned());
    all.add(0, names);
    all.take_times(go_on)?;
    let stat = |mtime, size, inode| Stat { size, mtime, inode };
    let looked = std::mem::take(&mut all.found).into_iter();
    let mut files: Vec<_> = looked
        .map(|file| (file.name, stat(file.mtime, file.size, file.mark.inode())))
        .collect();
    let mut troubles = all.troubles();
    troubles.retain(|(_, error)| !is_gone(error));
    let doubtful = troubles.iter().filter_map(|(path, _)| path.file_name());
    files.extend(doubtful.map(|name| (name.to_owned(), Stat::default())));
    Ok(Look {
        files,
        folders,
        troubles,
    })
}

fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
