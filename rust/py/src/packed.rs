//! What a listing shows as a few bytes, so that thousands of sessions come out of a catalog at once.

use crate::listing::SessionInfo;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sessiontree_core::summary::packed;

/// The bytes that `unpack_infos` takes.
#[pyfunction]
pub fn pack_info<'py>(
    py: Python<'py>,
    info: &Bound<'py, SessionInfo>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (path, shown) = info.get().parts();
    let mut out = Vec::with_capacity(256);
    if packed::put(&mut out, path.as_os_str().as_encoded_bytes(), shown) {
        return Ok(PyBytes::new(py, &out));
    }
    Err(PyOverflowError::new_err("a text of 4 GB cannot be packed"))
}

/// What was packed; a `ValueError` for bytes that are damaged.
#[pyfunction]
pub fn unpack_infos(packed: Vec<Bound<'_, PyBytes>>) -> PyResult<Vec<SessionInfo>> {
    let unpack = |bytes: &Bound<'_, PyBytes>| unpacked(bytes.as_bytes());
    let infos: Option<Vec<_>> = packed.iter().map(unpack).collect();
    infos.ok_or_else(|| PyValueError::new_err("packed sessions are damaged"))
}

fn unpacked(mut bytes: &[u8]) -> Option<SessionInfo> {
    let (path, shown) = packed::take(&mut bytes)?;
    bytes
        .is_empty()
        .then(|| SessionInfo::of(packed::path_of(path), shown, None))
}
