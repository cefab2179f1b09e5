//! Files that are left beside the one that is replaced: what it was, and what has no place in the new
//! one. They get names that nobody has; a link that stands there is such a name, and is not followed.

use super::{Draft, Held, folder_of, sync_folder};
use crate::error::{Error, ErrorKind, Result};
use crate::place::Identity;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// `<path>.<ending>`, and with a number from 1 behind it.
fn name(path: &Path, ending: &str, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(ending);
    if number > 0 {
        name.push(number.to_string());
    }
    name.into()
}

fn in_the_way() -> io::Error {
    io::ErrorKind::AlreadyExists.into()
}

/// Files that are removed again unless they are kept.
#[derive(Debug, Default)]
pub(crate) struct Aside(Vec<PathBuf>);

impl Aside {
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        for path in &self.0 {
            // Nothing more can be done; what is left is a copy too many.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Draft {
    /// Begins a file beside another one, without a name as yet.
    pub(crate) fn aside(path: &Path) -> Result<Self> {
        Self::beside(path.to_owned()).map_err(|e| Error::io(e, path))
    }

    /// Gives the file, synced, the first name with this ending that nobody has; with owner and mode of
    /// the one that is held.
    pub(crate) fn publish_aside(
        mut self,
        held: &Held,
        path: &Path,
        ending: &str,
        aside: &mut Aside,
    ) -> Result<PathBuf> {
        let error = |e| Error::io(e, path);
        let meta = held.file.metadata().map_err(error)?;
        self.look_like(&meta).map_err(error)?;
        for number in 0..=u32::MAX {
            self.target = name(path, ending, number);
            match self.try_publish(true) {
                Ok(()) => {
                    aside.0.push(self.target.clone());
                    return Ok(self.target);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(error(e)),
            }
        }
        Err(error(in_the_way()))
    }
}

impl Held {
    /// Gives the held file, which `path` names, a second name with this ending; where that cannot be, a
    /// copy of it.
    pub(crate) fn keep_aside(
        &self,
        path: &Path,
        ending: &str,
        aside: &mut Aside,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<PathBuf> {
        let error = |e| Error::io(e, path);
        let own = Identity::of(&self.file.metadata().map_err(error)?);
        for number in 0..=u32::MAX {
            let name = name(path, ending, number);
            let linked = std::fs::hard_link(path, &name);
            let named = std::fs::symlink_metadata(&name);
            let same = named.is_ok_and(|meta| Identity::of(&meta) == own);
            match linked {
                Ok(()) => {
                    aside.0.push(name.clone());
                    if !same {
                        return Err(error(io::ErrorKind::ResourceBusy.into()));
                    }
                    sync_folder(folder_of(path)).map_err(error)?;
                    return Ok(name);
                }
                // A repair that was killed has left it: it is the same file already.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && same => return Ok(name),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => return self.copy_aside(path, ending, aside, go_on),
            }
        }
        Err(error(in_the_way()))
    }

    fn copy_aside(
        &self,
        path: &Path,
        ending: &str,
        aside: &mut Aside,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<PathBuf> {
        let mut draft = Draft::aside(path)?;
        if !draft.copy(&self.file, 0..self.size, go_on)? {
            return Err(ErrorKind::Lost {
                path: path.to_owned(),
                byte: self.size,
                reason: "the file is shorter than when it was read",
            }
            .into());
        }
        draft.publish_aside(self, path, ending, aside)
    }
}
