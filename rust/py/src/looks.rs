//! What the session files of a folder look like, as the bytes that a catalog compares.

use crate::access::detached;
use crate::listing::named_troubles;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use sessiontree_core::listing::looks;
use std::ffi::OsString;
use std::path::PathBuf;

/// Names and stats as bytes, how many there are, folders and links that may be some, what failed.
type Looked<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    usize,
    Vec<OsString>,
    Vec<Bound<'py, PyTuple>>,
);

/// Looks at a folder; `OSError` if it cannot be read.
#[pyfunction]
pub fn look_at(py: Python<'_>, folder: PathBuf) -> PyResult<Looked<'_>> {
    let look = detached(py, |go_on| looks::look_at(&folder, go_on))?;
    let (mut names, mut stats) = (Vec::new(), Vec::new());
    for (n, (name, stat)) in look.files.iter().enumerate() {
        if n > 0 {
            names.push(0);
        }
        names.extend(name.as_encoded_bytes());
        let numbers = [stat.size, stat.mtime as u64, stat.inode];
        stats.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    }
    // As text: a `PathBuf` would become a `pathlib.Path`.
    let folders = look.folders.into_iter().map(PathBuf::into_os_string);
    Ok((
        PyBytes::new(py, &names),
        PyBytes::new(py, &stats),
        look.files.len(),
        folders.collect(),
        named_troubles(py, &look.troubles)?,
    ))
}
