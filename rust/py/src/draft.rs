//! Whole files from an iterable of parts: new ones, and replacements.

use crate::errors::raise;
use pyo3::prelude::*;
use sessiontree_core::draft::{self, Draft};
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
    py.detach(|| draft.publish(sync)).map_err(|e| raise(py, &e))
}

/// Replaces a file by the parts, under its lock, all or nothing.
///
/// `make_parts` is called once the lock is held, so that it sees the file as it will be replaced.
#[pyfunction]
pub fn replace_file(py: Python<'_>, path: PathBuf, make_parts: &Bound<'_, PyAny>) -> PyResult<()> {
    let old = py
        .detach(|| draft::lock_in_place(&path))
        .map_err(|e| raise(py, &e))?;
    let mut draft = Draft::begin(&path).map_err(|e| raise(py, &e))?;
    fill(py, &mut draft, &make_parts.call0()?)?;
    py.detach(|| draft.replace(&old)).map_err(|e| raise(py, &e))
}

/// Removes temporary files of dead writers from a folder; how many.
#[pyfunction]
pub fn sweep(py: Python<'_>, folder: PathBuf) -> usize {
    py.detach(|| draft::sweep(&folder)).unwrap_or(0)
}
