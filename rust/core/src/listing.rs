//! The session files of a folder, or of the folders in a folder, and what they show.
//!
//! Looking at a folder costs its names and, where the order asks for times, one `stat` a file, which
//! threads share. Summaries are read in batches in the chosen order, by threads that live as long as
//! the batch. At any time each thread holds one open file or folder, whatever the number of files.
//! Each file stands alone: what cannot be read is told with its error, and the rest goes on.

use crate::error::{Error, ErrorKind, Result};
use crate::header;
use crate::parallel::{self, Ready};
use crate::place;
use crate::summary::{self, Reader, Summary};
use kept::Mark;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

pub mod kept;
pub mod looks;
#[cfg(test)]
mod tests;

/// In what order files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By name, bytewise; no times are asked for.
    Name,
    /// The newest file first, equal times by name.
    Recent,
    /// The newest file first, equal times by name backwards.
    Listed,
}

/// Where files are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// In the folder itself.
    Own,
    /// In the folders of the folder.
    Below,
    /// In both.
    Both,
}

/// How folders and files are read.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub order: Order,
    pub depth: Depth,
    /// Pass over objects of another type before the header.
    pub lenient: bool,
    /// 0: as many as the machine runs at once.
    pub threads: usize,
}

/// How many files one thread asks for their times before it looks whether to go on.
const STATS: usize = 64;

#[derive(Debug)]
struct Candidate {
    folder: usize,
    name: OsString,
    /// Nanoseconds since 1970; 0 where nobody asked.
    mtime: i64,
    /// 0 where nobody asked.
    size: u64,
    mark: Mark,
}

/// A path and why it could not be read.
pub type Trouble = (PathBuf, Error);

/// A path and what its file shows.
pub type Shown = (PathBuf, Result<Summary>);

/// Session files in an order, with a place from which reading goes on.
#[derive(Debug)]
pub struct Files {
    options: Options,
    folders: Vec<PathBuf>,
    found: Vec<Candidate>,
    troubles: Vec<Trouble>,
    next: usize,
    /// Up to here files stand where the order wants them; behind it they are sorted when their turn
    /// comes, since who looks for one session seldom needs the others.
    settled: usize,
}

impl Files {
    /// Finds the files whose names end in `.jsonl`.
    ///
    /// # Errors
    /// What the system says of the folder itself, or [`ErrorKind::Cancelled`]. What it says of
    /// folders and files in it is told by [`Files::troubles`].
    pub fn find(root: &Path, options: Options, go_on: &mut dyn FnMut() -> bool) -> Result<Self> {
        let threads = match options.threads {
            0 => parallel::available(),
            given => given,
        };
        let options = Options { threads, ..options };
        let mut files = Self::of(options);
        let (names, folders) = look_into(root, options.depth).map_err(|e| Error::io(e, root))?;
        files.folders.push(root.to_owned());
        files.add(0, names);
        files.take_names(folders, go_on)?;
        if options.order != Order::Name {
            files.take_times(go_on)?;
        }
        Ok(files)
    }

    /// No files yet.
    fn of(options: Options) -> Self {
        Self {
            options,
            folders: Vec::new(),
            found: Vec::new(),
            troubles: Vec::new(),
            next: 0,
            settled: 0,
        }
    }

    fn add(&mut self, folder: usize, names: Vec<OsString>) {
        self.found.extend(names.into_iter().map(|name| Candidate {
            folder,
            name,
            mtime: 0,
            size: 0,
            mark: Mark::default(),
        }));
    }

    fn take_names(&mut self, folders: Vec<PathBuf>, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let stop = AtomicBool::new(false);
        let list = |(): &mut (), at: usize| look_into(&folders[at], Depth::Own);
        let threads = self.options.threads;
        let all = parallel::map(folders.len(), threads, &stop, go_on, || (), list)?;
        for (folder, names) in folders.into_iter().zip(all) {
            match names {
                Ok((names, _)) => {
                    self.add(self.folders.len(), names);
                    self.folders.push(folder);
                }
                // A link to something that is no folder.
                Err(e) if e.kind() == io::ErrorKind::NotADirectory => {}
                Err(e) => {
                    let error = Error::io(e, &folder);
                    self.troubles.push((folder, error));
                }
            }
        }
        Ok(())
    }

    fn take_times(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let files = std::mem::take(&mut self.found);
        let parts: Vec<&[Candidate]> = files.chunks(STATS).collect();
        let stop = AtomicBool::new(false);
        let look = |path: &mut PathBuf, at: usize| -> Vec<io::Result<Metadata>> {
            let times = parts[at].iter().map(|file| self.times_of(file, path));
            times.collect()
        };
        let threads = self.options.threads;
        let times = parallel::map(parts.len(), threads, &stop, go_on, PathBuf::new, look)?;
        for (mut file, times) in files.into_iter().zip(times.into_iter().flatten()) {
            match times {
                Ok(meta) => {
                    (file.mtime, file.size) = (summary::mtime_of(&meta), meta.len());
                    file.mark = Mark::of(&meta);
                    self.found.push(file);
                }
                Err(e) => {
                    let path = self.folders[file.folder].join(&file.name);
                    let error = Error::io(e, &path);
                    self.troubles.push((path, error));
                }
            }
        }
        Ok(())
    }

    fn times_of(&self, file: &Candidate, path: &mut PathBuf) -> io::Result<Metadata> {
        self.write_path(file, path);
        fs::metadata(&*path)
    }

    /// Writes a file's path into a buffer that is used again and again.
    fn write_path(&self, file: &Candidate, path: &mut PathBuf) {
        path.as_mut_os_string().clear();
        path.push(&self.folders[file.folder]);
        path.push(&file.name);
    }

    /// Brings the files before `end` that are not settled yet into their order.
    fn settle(&mut self, end: usize) {
        let (folders, order) = (&self.folders, self.options.order);
        let place = |file: &Candidate| folders[file.folder].as_os_str();
        self.found[self.settled..end].sort_unstable_by(|a, b| {
            let by_name = || (&a.name, place(a)).cmp(&(&b.name, place(b)));
            match order {
                Order::Name => by_name(),
                Order::Recent => b.mtime.cmp(&a.mtime).then_with(by_name),
                Order::Listed => b.mtime.cmp(&a.mtime).then_with(|| by_name().reverse()),
            }
        });
        self.settled = end;
    }

    fn settle_all(&mut self) {
        if self.settled < self.found.len() {
            self.settle(self.found.len());
        }
    }

    /// Puts the files first whose names say that they hold the session with this id.
    pub fn prefer(&mut self, id: &[u8]) {
        let mut end = self.next;
        for at in self.next..self.found.len() {
            if names_id(&self.found[at].name, id) {
                self.found.swap(end, at);
                end += 1;
            }
        }
        self.settled = self.next;
        self.settle(end);
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What could not be looked at so far; told once.
    pub fn troubles(&mut self) -> Vec<Trouble> {
        std::mem::take(&mut self.troubles)
    }

    /// Reads the next files, at most `count` of them, and at most one beyond `bytes` where sizes are
    /// known. The result is empty at the end.
    pub fn summaries(
        &mut self,
        count: usize,
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Shown>> {
        self.settle_all();
        let end = self.batch_end(count, bytes);
        let mut all = Vec::with_capacity(end - self.next);
        self.read(end, go_on, &mut |ready| {
            all.extend(ready);
            true
        })?;
        self.next = end;
        Ok(all)
    }

    /// Reads all further files, and hands out what they show while others are being read; after a
    /// false from `take` no more is.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], also after a false from `take`.
    pub fn each(
        &mut self,
        go_on: &mut dyn FnMut() -> bool,
        take: &mut dyn FnMut(Vec<Shown>) -> bool,
    ) -> Result<()> {
        self.settle_all();
        let mut read = 0;
        let result = self.read(self.found.len(), go_on, &mut |ready| {
            let ready: Vec<_> = ready.collect();
            read += ready.len();
            take(ready)
        });
        self.next += read;
        result
    }

    fn read(
        &self,
        end: usize,
        go_on: &mut dyn FnMut() -> bool,
        take: &mut dyn FnMut(Ready<'_, Shown>) -> bool,
    ) -> Result<()> {
        let batch = &self.found[self.next..end];
        let stop = AtomicBool::new(false);
        let lenient = self.options.lenient;
        let state = || (Reader::new(lenient), PathBuf::new());
        let read = |(reader, path): &mut (Reader, PathBuf), at: usize| {
            self.write_path(&batch[at], path);
            let shown = reader.summary(path, &|| !stop.load(Ordering::Relaxed));
            (path.clone(), shown)
        };
        let threads = self.options.threads;
        parallel::each(batch.len(), threads, &stop, go_on, state, read, take)
    }

    fn batch_end(&self, count: usize, bytes: u64) -> usize {
        let rest = &self.found[self.next..];
        let mut sum = 0;
        let fits = |file: &&Candidate| {
            let before = sum;
            sum += file.size;
            before <= bytes
        };
        self.next + rest.iter().take(count).take_while(fits).count()
    }

    /// Reads headers from the next file on, up to one that is a session (with this id, if one is
    /// asked for), and gives what the header says. Files that are no sessions are passed over; what
    /// the system says is kept as trouble.
    pub fn next_header(
        &mut self,
        id: Option<&[u8]>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(PathBuf, Summary)>> {
        while self.next < self.found.len() {
            if self.next == self.settled {
                self.settle_all();
            }
            let file = &self.found[self.next];
            if self.next.is_multiple_of(STATS) && !go_on() {
                return Err(ErrorKind::Cancelled.into());
            }
            let path = self.folders[file.folder].join(&file.name);
            self.next += 1;
            let found = place::open_to_read(&path)
                .map_err(|e| Error::io(e, &path))
                .and_then(|(file, _)| header::find(&file, &path, self.options.lenient));
            match found.map(|text| summary::of_header(&text)) {
                Ok(header) if id.is_none_or(|id| header.id == id) => {
                    return Ok(Some((path, header)));
                }
                Err(error) if matches!(error.kind(), ErrorKind::Io { .. }) => {
                    self.troubles.push((path, error));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Whether a file's name is `<id>.jsonl` or ends in `_<id>.jsonl`.
fn names_id(name: &OsStr, id: &[u8]) -> bool {
    let name = name.as_encoded_bytes();
    let rest = name
        .strip_suffix(b".jsonl")
        .and_then(|stem| stem.strip_suffix(id));
    rest.is_some_and(|rest| matches!(rest.last(), None | Some(b'_')))
}

/// The names of a folder's session files; its folders, and links in it, which may lead to folders.
fn look_into(folder: &Path, depth: Depth) -> io::Result<(Vec<OsString>, Vec<PathBuf>)> {
    let (mut names, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if depth != Depth::Below && name.as_encoded_bytes().ends_with(b".jsonl") {
            names.push(name);
        } else if depth != Depth::Own {
            let kind = entry.file_type()?;
            if kind.is_dir() || kind.is_symlink() {
                folders.push(entry.path());
            }
        }
    }
    Ok((names, folders))
}
