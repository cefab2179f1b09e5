//! Files that come into being, or change, all at once.
//!
//! A draft is a temporary file beside its target. It is either linked to a name that nobody has yet,
//! or renamed over the file it replaces; until then the target does not change, and a draft that is
//! dropped leaves nothing behind. The temporary file is locked while it is written, so that a sweep
//! of left-overs can tell the living from the dead.

use crate::append::same_file;
use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The ending of temporary files.
pub const TEMPORARY: &str = ".sessiontree-tmp";

/// A file on its way.
#[derive(Debug)]
pub struct Draft {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    done: bool,
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.done {
            // Nothing more can be done about a file that cannot be removed; a sweep takes it later.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

impl Draft {
    /// Begins a file that will stand at `path`. Links are followed, also where they dangle; missing
    /// folders are made.
    pub fn begin(path: &Path) -> Result<Self> {
        Self::try_begin(path).map_err(|e| Error::io(e, path))
    }

    fn try_begin(path: &Path) -> io::Result<Self> {
        let target = resolve_links(path)?;
        if let Some(folder) = target.parent().filter(|f| !f.as_os_str().is_empty()) {
            make_folder(folder)?;
        }
        let temporary = temporary_beside(&target);
        let file = private(OpenOptions::new().write(true).create_new(true)).open(&temporary)?;
        let draft = Self {
            file,
            temporary,
            target,
            done: false,
        };
        draft.file.lock()?;
        Ok(draft)
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        write_counted(&self.file, bytes)
            .1
            .map_err(|e| Error::io(e, &self.target))
    }

    /// The open temporary file, for copies that need no buffer.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, which nobody may have yet.
    pub fn publish(mut self, sync: bool) -> Result<()> {
        self.try_publish(sync)
            .map_err(|e| Error::io(e, &self.target))
    }

    fn try_publish(&mut self, sync: bool) -> io::Result<()> {
        if sync {
            self.file.sync_all()?;
        }
        std::fs::hard_link(&self.temporary, &self.target)?;
        std::fs::remove_file(&self.temporary)?;
        self.done = true;
        if sync {
            sync_folder(&self.target)
        } else {
            Ok(())
        }
    }

    /// Puts the file in the place of the one that `old` holds locked; mode kept, always synced.
    pub fn replace(mut self, old: &File) -> Result<()> {
        self.try_replace(old)
            .map_err(|e| Error::io(e, &self.target))
    }

    fn try_replace(&mut self, old: &File) -> io::Result<()> {
        self.file.set_permissions(old.metadata()?.permissions())?;
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, &self.target)?;
        self.done = true;
        sync_folder(&self.target)
    }
}

/// Opens a file for writing and locks it, making sure that the path still names it then.
pub fn lock_in_place(path: &Path) -> Result<File> {
    let io_error = |e| Error::io(e, path);
    for _ in 0..100 {
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(io_error)?;
        file.lock().map_err(io_error)?;
        let named = std::fs::metadata(path).map_err(io_error)?;
        if same_file(&named, &file.metadata().map_err(io_error)?) {
            return Ok(file);
        }
    }
    Err(Error::lost(path, 0, "the file is replaced again and again"))
}

/// Creates a session file with this content, all or nothing. An empty file is filled in place.
pub fn create(path: &Path, parts: &[&[u8]], sync: bool) -> Result<File> {
    let io_error = |e| Error::io(e, path);
    let target = resolve_links(path).map_err(io_error)?;
    match std::fs::metadata(&target) {
        Ok(meta) if meta.is_file() && meta.len() == 0 => {
            fill_empty(&target, parts, sync).map_err(io_error)?;
        }
        Ok(_) => return Err(io_error(io::ErrorKind::AlreadyExists.into())),
        Err(_) => {
            let mut draft = Draft::begin(path)?;
            for part in parts {
                draft.write(part)?;
            }
            draft.publish(sync)?;
        }
    }
    File::open(&target).map_err(io_error)
}

fn fill_empty(target: &Path, parts: &[&[u8]], sync: bool) -> io::Result<()> {
    let file = OpenOptions::new().append(true).open(target)?;
    file.lock()?;
    if file.metadata()?.len() > 0 {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let (done, result) = write_counted(&file, &parts.concat());
    let result = result.and_then(|()| if sync { file.sync_all() } else { Ok(()) });
    if result.is_err() && file.metadata()?.len() == done as u64 {
        file.set_len(0)?;
    }
    result
}

/// Writes everything; how many bytes went out, and the error that stopped it.
pub(crate) fn write_counted(mut file: &File, mut bytes: &[u8]) -> (usize, io::Result<()>) {
    let all = bytes.len();
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return (all - bytes.len(), Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return (all - bytes.len(), Err(e)),
        }
    }
    (all, Ok(()))
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes a folder and its parents, readable by nobody else.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Makes the entries of a file's folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|f| !f.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// The file that a path will name once it exists: links are followed even where they dangle.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// A name beside `target` that is no session's and that nobody else uses.
fn temporary_beside(target: &Path) -> PathBuf {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let short: String = name.chars().take(50).collect();
    target.with_file_name(format!(".{short}.{}-{n}{TEMPORARY}", std::process::id()))
}

/// Removes temporary files of dead writers from a folder; how many.
pub fn sweep(folder: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let ours = name.starts_with(b".") && name.ends_with(TEMPORARY.as_bytes());
        if ours && entry.file_type()?.is_file() && is_free(&entry.path()) {
            removed += usize::from(std::fs::remove_file(entry.path()).is_ok());
        }
    }
    Ok(removed)
}

fn is_free(path: &Path) -> bool {
    OpenOptions::new()
        .append(true)
        .open(path)
        .is_ok_and(|file| file.try_lock().is_ok())
}
