//! Whole files from an iterable of parts: new ones, and replacements.

use crate::access::detached;
use crate::errors::{os_error, raise};
use crate::migrate::Migration;
use crate::store::Store;
use pyo3::prelude::*;
use sessiontree_core::draft::{self, Draft, Held};
use std::path::{Path, PathBuf};

fn fill(py: Python<'_>, draft: &mut Draft, parts: &Bound<'_, PyAny>) -> PyResult<()> {
    for part in parts.try_iter()? {
        let part = part?;
        let bytes: &[u8] = part.extract()?;
        py.detach(|| draft.write(bytes))
            .map_err(|e| raise(py, &e))?;
    }
    Ok(())
}

/// Creates a file from the parts, all or nothing; the name must be free.
#[pyfunction]
#[pyo3(signature = (path, parts, *, sync = false))]
pub fn create_file(
    py: Python<'_>,
    path: PathBuf,
    parts: &Bound<'_, PyAny>,
    sync: bool,
) -> PyResult<()> {
    let mut draft = Draft::begin(&path).map_err(|e| raise(py, &e))?;
    fill(py, &mut draft, parts)?;
    py.detach(|| draft.publish(sync))
        .map_err(|e| raise(py, &e))?;
    Ok(())
}

/// How often a replacement is begun anew because others write to the file meanwhile.
const TRIES: usize = 20;

/// Replaces a file by the parts, under its lock, all or nothing; false if there is nothing to do.
///
/// `make_parts` is called once the lock is held, so that it sees the file as it will be replaced;
/// None means that it need not be. It is called again if the file changes before it is replaced.
#[pyfunction]
pub fn replace_file(
    py: Python<'_>,
    path: PathBuf,
    make_parts: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let target = draft::resolve_links(&path).map_err(|e| os_error(py, &e, &path))?;
    for _ in 0..TRIES {
        let old = detached(py, |go_on| Held::lock(&target, go_on))?;
        let parts = make_parts.call0()?;
        if parts.is_none() {
            return Ok(false);
        }
        let mut draft = Draft::begin(&target).map_err(|e| raise(py, &e))?;
        fill(py, &mut draft, &parts)?;
        if detached(py, |_| old.replaced_by(draft))? {
            return Ok(true);
        }
    }
    Err(restless(py, &path))
}

fn restless(py: Python<'_>, path: &Path) -> PyErr {
    os_error(py, &std::io::ErrorKind::ResourceBusy.into(), path)
}

/// Replaces a file by its migration, under its lock, all or nothing; the session in the new file, or
/// None if the file is to be opened again.
///
/// `begin` gives a `Migration` once the lock is held, or None if there is nothing to do; see
/// `replace_file`.
#[pyfunction]
pub fn migrate_file(
    py: Python<'_>,
    path: PathBuf,
    begin: &Bound<'_, PyAny>,
) -> PyResult<Option<Store>> {
    let target = draft::resolve_links(&path).map_err(|e| os_error(py, &e, &path))?;
    for _ in 0..TRIES {
        let old = detached(py, |go_on| Held::lock(&target, go_on))?;
        let answer = begin.call0()?;
        if answer.is_none() {
            return Ok(None);
        }
        let migration = answer.cast::<Migration>()?.get();
        let mut draft = Draft::begin(&target).map_err(|e| raise(py, &e))?;
        migration.write_to(py, &mut draft)?;
        if let Some(made) = detached(py, |_| old.replacement(draft))? {
            return migration.finish(py, &path, made);
        }
    }
    Err(restless(py, &path))
}

/// Removes temporary files of dead writers from the folder of a file; how many.
#[pyfunction]
pub fn sweep(py: Python<'_>, path: PathBuf) -> usize {
    py.detach(|| draft::sweep(&path))
}
