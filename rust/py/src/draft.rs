//! Whole files from an iterable of parts: new ones, and replacements.

use crate::errors::{os_error, raise};
use crate::store::detached;
use pyo3::prelude::*;
use sessiontree_core::draft::{self, Draft, Held};
use std::path::PathBuf;

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
    let busy = std::io::ErrorKind::ResourceBusy.into();
    Err(os_error(py, &busy, &path))
}

/// Removes temporary files of dead writers from the folder of a file; how many.
#[pyfunction]
pub fn sweep(py: Python<'_>, path: PathBuf) -> usize {
    py.detach(|| draft::sweep(&path))
}
