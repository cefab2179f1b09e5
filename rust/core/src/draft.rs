//! Files that come into being, or change, all at once.
//!
//! A draft is a temporary file beside its target. It is either linked to a name that nobody has yet,
//! or renamed over the file it replaces; until then the target does not change, and a draft that is
//! dropped leaves nothing behind.
//!
//! A writer that is killed leaves its temporary file. These have one of a few names, the same ones in
//! every folder (`.0.sessiontree-tmp`, ...), and are locked as long as somebody works with them. So
//! the next writer finds what is left over by asking for those names, not by reading a folder of ten
//! thousand sessions, and tells the living from the dead by their locks.

mod aside;

use crate::error::{Error, ErrorKind, Result};
use crate::place::{self, Claim, Identity};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub(crate) use aside::Aside;

/// The ending of temporary files.
pub const TEMPORARY: &str = ".sessiontree-tmp";

/// How many drafts can be on their way in one folder at once.
const SLOTS: usize = 16;

/// Bytes that are copied between two looks at whether to go on.
const PIECE: u64 = 16 << 20;

/// How long to wait for one of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the file system has no locks: a temporary file of this age is nobody's.
const OLD: Duration = Duration::from_secs(3600);

/// A temporary file's name; the file is removed when this is dropped, unless it was moved away.
#[derive(Debug)]
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    fn moved(&mut self) {
        self.0 = None;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing more can be done about a file that cannot be removed; a sweep takes it later.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A file that has come into being.
#[derive(Debug)]
pub struct Made {
    pub(crate) file: File,
    pub(crate) id: Identity,
}

/// A file on its way.
#[derive(Debug)]
pub struct Draft {
    // Before the file: its name goes while its lock is still held.
    temporary: Temporary,
    file: File,
    /// The same file, open as the kernel wants it for copying: not for appending.
    copy: Option<File>,
    /// Known before there is anything that a failure would have to undo.
    id: Identity,
    target: PathBuf,
    /// Folders that were made for it, outermost first.
    made: Vec<PathBuf>,
}

impl Draft {
    /// Begins a file that will stand at `path`. Links are followed, also where they dangle; missing
    /// folders are made.
    pub fn begin(path: &Path) -> Result<Self> {
        let target = resolve_links(path).map_err(|e| Error::io(e, path))?;
        Self::beside(target).map_err(|e| Error::io(e, path))
    }

    fn beside(target: PathBuf) -> io::Result<Self> {
        let folder = folder_of(&target);
        let mut made = Vec::new();
        let (file, id, temporary) = match take_slot(folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                make_folders(folder, &mut made)?;
                take_slot(folder)?
            }
            other => other?,
        };
        Ok(Self {
            temporary,
            file,
            copy: None,
            id,
            target,
            made,
        })
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        write_counted(&self.file, bytes)
            .1
            .map_err(|e| Error::io(e, &self.target))
    }

    /// Adds a part of another file, copied by the kernel where it can; false if that file ends before.
    pub(crate) fn copy(
        &mut self,
        source: &File,
        range: Range<u64>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let mut out = match self.copy.take() {
            Some(out) => out,
            None => self.to_copy().map_err(|e| Error::io(e, &self.target))?,
        };
        let error = |e| Error::io(e, &self.target);
        out.seek(SeekFrom::End(0)).map_err(error)?;
        let mut from = source;
        from.seek(SeekFrom::Start(range.start)).map_err(error)?;
        let mut left = range.end - range.start;
        while left > 0 {
            if !go_on() {
                return Err(ErrorKind::Cancelled.into());
            }
            match io::copy(&mut from.take(left.min(PIECE)), &mut out).map_err(error)? {
                0 => return Ok(false),
                copied => left -= copied,
            }
        }
        self.copy = Some(out);
        Ok(true)
    }

    /// Takes off what lies behind the first `length` bytes.
    pub(crate) fn cut(&mut self, length: u64) -> Result<()> {
        let done = self.file.set_len(length);
        done.map_err(|e| Error::io(e, &self.target))
    }

    fn to_copy(&self) -> io::Result<File> {
        let out = OpenOptions::new().write(true).open(self.temporary.path())?;
        if Identity::of(&out.metadata()?) != self.id {
            // Somebody has put another file, or a link, under the temporary name.
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        Ok(out)
    }

    /// Gives the file its name, which nobody may have yet; the open file.
    pub fn publish(mut self, sync: bool) -> Result<Made> {
        match self.try_publish(sync) {
            Ok(()) => self.released(),
            Err(e) => Err(Error::io(e, &self.target)),
        }
    }

    /// The file, which others may lock from now on.
    fn released(self) -> Result<Made> {
        let Self {
            target, file, id, ..
        } = self;
        if place::unlock(&file) {
            return Ok(Made { file, id });
        }
        drop(file);
        opened(&target).map_err(|e| Error::io(e, &target))
    }

    fn try_publish(&mut self, sync: bool) -> io::Result<()> {
        if sync {
            self.file.sync_all()?;
        }
        if link(self.temporary.path(), &self.target)? {
            self.temporary.moved();
        } else {
            // A name that cannot be removed now is taken by a sweep.
            drop(std::mem::replace(&mut self.temporary, Temporary(None)));
        }
        if sync && let Err(error) = self.sync_folders() {
            std::fs::remove_file(&self.target)?;
            return Err(error);
        }
        Ok(())
    }

    fn sync_folders(&self) -> io::Result<()> {
        sync_folder(folder_of(&self.target))?;
        self.made.iter().try_for_each(|f| sync_folder(folder_of(f)))
    }

    /// Puts the file in the place of one that is held; owner and mode are kept, and it is always
    /// synced. None, with nothing done, if that one has been written to or lost its name since.
    fn replace(mut self, old: &Held) -> Result<Option<Made>> {
        match self.try_replace(old) {
            Ok(true) => self.released().map(Some),
            Ok(false) => Ok(None),
            Err(e) => Err(Error::io(e, &self.target)),
        }
    }

    fn try_replace(&mut self, old: &Held) -> io::Result<bool> {
        self.look_like(&old.file.metadata()?)?;
        self.file.sync_all()?;
        let meta = old.file.metadata()?;
        let same = Identity::named(&self.target)? == Some((Identity::of(&meta), old.size));
        if !same || meta.modified().ok() != old.written {
            return Ok(false);
        }
        std::fs::rename(self.temporary.path(), &self.target)?;
        self.temporary.moved();
        // Whether the old or the new name survives a crash now, the session is whole.
        let _ = sync_folder(folder_of(&self.target));
        Ok(true)
    }

    /// Takes over mode and owner of a file.
    pub(crate) fn look_like(&self, meta: &Metadata) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let own = self.file.metadata()?;
            if (own.uid(), own.gid()) != (meta.uid(), meta.gid()) {
                // Only root may give files away; the group is the next best.
                let _ = fchown(&self.file, Some(meta.uid()), Some(meta.gid()))
                    .or_else(|_| fchown(&self.file, None, Some(meta.gid())));
            }
        }
        self.file.set_permissions(meta.permissions())
    }
}

fn opened(path: &Path) -> io::Result<Made> {
    let (file, meta) = place::open_to_read(path)?;
    let id = Identity::of(&meta);
    Ok(Made { file, id })
}

/// A file that is locked for its replacement.
#[derive(Debug)]
pub struct Held {
    file: File,
    size: u64,
    /// When it was last written to.
    written: Option<SystemTime>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = place::unlock(&self.file);
    }
}

impl Held {
    /// Locks the file that a path names.
    pub fn lock(path: &Path, go_on: &mut dyn FnMut() -> bool) -> Result<Self> {
        let file = place::lock_in_place(path, go_on)?;
        let meta = file.metadata().map_err(|e| Error::io(e, path))?;
        Ok(Self {
            file,
            size: meta.len(),
            written: meta.modified().ok(),
        })
    }

    /// The file, and how long it was when it was locked.
    pub(crate) fn content(&self) -> (&File, u64) {
        (&self.file, self.size)
    }

    /// Puts a draft in its place; false, with nothing done, if it has changed since it was locked.
    pub fn replaced_by(&self, draft: Draft) -> Result<bool> {
        self.replacement(draft).map(|made| made.is_some())
    }

    /// The same; gives the file that stands in its place now.
    pub fn replacement(&self, draft: Draft) -> Result<Option<Made>> {
        draft.replace(self)
    }
}

/// Gives a file a second name that nobody has yet; true if the first name is gone by that.
fn link(from: &Path, to: &Path) -> io::Result<bool> {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(false),
        // File systems without links (FAT, some network and user-space ones).
        Err(e)
            if [PermissionDenied, Unsupported, TooManyLinks, CrossesDevices]
                .contains(&e.kind()) =>
        {
            rename_to_new(from, to).map(|()| true)
        }
        Err(e) => Err(e),
    }
}

/// Renames a file to a name that nobody has yet, by taking the name with an empty file first.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let taken = private(OpenOptions::new().write(true).create_new(true)).open(to)?;
    let renamed = match Identity::named(to)? {
        Some(now) if now == (Identity::of(&taken.metadata()?), 0) => std::fs::rename(from, to),
        _ => return Err(io::ErrorKind::AlreadyExists.into()),
    };
    if renamed.is_err() {
        let _ = std::fs::remove_file(to);
    }
    renamed
}

/// Creates a session file with this content, all or nothing. An empty file is given its content, any
/// other one is an error. The open file.
pub fn create(path: &Path, parts: &[&[u8]], sync: bool) -> Result<Made> {
    let target = resolve_links(path).map_err(|e| Error::io(e, path))?;
    match std::fs::metadata(&target) {
        Ok(meta) if meta.is_file() && meta.len() == 0 => fill_empty(&target, parts, sync),
        Ok(_) => Err(Error::io(io::ErrorKind::AlreadyExists.into(), path)),
        Err(_) => filled(path, target, parts)?.publish(sync),
    }
}

fn filled(path: &Path, target: PathBuf, parts: &[&[u8]]) -> Result<Draft> {
    let mut draft = Draft::beside(target).map_err(|e| Error::io(e, path))?;
    for part in parts {
        draft.write(part)?;
    }
    Ok(draft)
}

/// Gives an empty file its content, all at once where it may be replaced.
fn fill_empty(target: &Path, parts: &[&[u8]], sync: bool) -> Result<Made> {
    let old = Held::lock(target, &mut || true)?;
    if old.size > 0 {
        return Err(Error::io(io::ErrorKind::AlreadyExists.into(), target));
    }
    let replaced = filled(target, target.to_owned(), parts).and_then(|d| d.replace(&old));
    match replaced {
        Ok(Some(made)) => Ok(made),
        Ok(None) => Err(Error::io(io::ErrorKind::AlreadyExists.into(), target)),
        // The folder may be closed to us, or the file a mount point of its own.
        Err(_) => opened(target)
            .and_then(|made| fill_in_place(&old.file, parts, sync).map(|()| made))
            .map_err(|e| Error::io(e, target)),
    }
}

fn fill_in_place(file: &File, parts: &[&[u8]], sync: bool) -> io::Result<()> {
    if file.metadata()?.len() > 0 {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let (done, result) = write_counted(file, &parts.concat());
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

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|f| !f.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Makes a folder and what is missing above it, readable by nobody else; notes what was made.
fn make_folders(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|f| !f.as_os_str().is_empty() && !f.is_dir())
        .collect();
    for folder in missing.into_iter().rev() {
        match builder.create(folder) {
            Ok(()) => made.push(folder.to_owned()),
            // Somebody else was faster; a file in the way is an error.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Makes the entries of a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // A folder cannot be opened as a file under Windows, and its entries need no sync there.
    if cfg!(windows) {
        return Ok(());
    }
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
    Err(too_many_links())
}

#[cfg(unix)]
fn too_many_links() -> io::Error {
    io::Error::from_raw_os_error(libc::ELOOP)
}

#[cfg(not(unix))]
fn too_many_links() -> io::Error {
    io::Error::other("too many levels of symbolic links")
}

// ---- temporary files

fn slot(folder: &Path, n: usize) -> PathBuf {
    folder.join(format!(".{n}{TEMPORARY}"))
}

/// Creates a temporary file under the first free name, locked.
fn take_slot(folder: &Path) -> io::Result<(File, Identity, Temporary)> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        for n in 0..SLOTS {
            let path = slot(folder, n);
            let created =
                private(OpenOptions::new().read(true).append(true).create_new(true)).open(&path);
            match created {
                Ok(file) => {
                    let mut temporary = Temporary(Some(path));
                    if let Some(id) = still_ours(&file, temporary.path())? {
                        return Ok((file, id, temporary));
                    }
                    temporary.moved();
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    remove_if_dead(&path);
                }
                Err(e) => return Err(e),
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Locks a new temporary file; None if a sweep took it between its creation and its lock.
fn still_ours(file: &File, path: &Path) -> io::Result<Option<Identity>> {
    if place::claim(file)? == Claim::Taken {
        return Ok(None);
    }
    let own = Identity::of(&file.metadata()?);
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok(Some(own).filter(|&own| Identity::of(&named) == own)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Removes temporary files of dead writers from the folder where a path's file lies; how many.
pub fn sweep(path: &Path) -> usize {
    let Ok(target) = resolve_links(path) else {
        return 0;
    };
    (0..SLOTS)
        .filter(|&n| remove_if_dead(&slot(folder_of(&target), n)))
        .count()
}

/// Removes a temporary file that nobody works with.
pub(crate) fn remove_if_dead(path: &Path) -> bool {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    let Ok(file) = options.open(path) else {
        return false;
    };
    let dead = match place::claim(&file) {
        Ok(Claim::Free) => true,
        Ok(Claim::Unknown) => is_old(&file),
        Ok(Claim::Taken) | Err(_) => false,
    };
    // The name may belong to a newer file by now.
    let named = std::fs::symlink_metadata(path).ok();
    let same = file
        .metadata()
        .is_ok_and(|own| named.is_some_and(|named| Identity::of(&named) == Identity::of(&own)));
    let removed = dead && same && std::fs::remove_file(path).is_ok();
    let _ = place::unlock(&file);
    removed
}

fn is_old(file: &File) -> bool {
    let changed = file.metadata().and_then(|meta| meta.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > OLD))
}
