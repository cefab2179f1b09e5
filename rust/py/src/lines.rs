//! Lines of new entries, put together from texts.

use crate::keys::{text_bytes, text_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use sessiontree_core::compose;
use sessiontree_core::dates;

/// A time as entries write it; None outside of the years 0 to 9999.
#[pyfunction]
pub fn written_time(py: Python<'_>, ms: i64) -> PyResult<Option<Bound<'_, PyAny>>> {
    dates::to_written(ms)
        .map(|text| text_of(py, &text))
        .transpose()
}

/// The lines of message entries, each of which hangs on the one before.
#[pyfunction]
pub fn message_lines<'py>(
    py: Python<'py>,
    messages: &[u8],
    ids: Vec<Bound<'py, PyString>>,
    parent: Option<&Bound<'py, PyString>>,
    timestamps: Vec<Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let parent = parent.map(text_bytes).transpose()?;
    let lines = compose::message_lines(
        messages,
        &all_bytes(&ids)?,
        parent.as_deref(),
        &all_bytes(&timestamps)?,
    );
    lines
        .map(|lines| PyBytes::new(py, &lines))
        .ok_or_else(|| PyValueError::new_err("each message needs an id and a timestamp"))
}

fn all_bytes(texts: &[Bound<'_, PyString>]) -> PyResult<Vec<Vec<u8>>> {
    texts.iter().map(text_bytes).collect()
}
