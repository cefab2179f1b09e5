//! Lines of new entries, put together from texts.

use crate::keys::{text_bytes, text_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use sessiontree_core::dates;
use sessiontree_core::splice::quoted;

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
    messages: Vec<Bound<'py, PyBytes>>,
    ids: Vec<Bound<'py, PyString>>,
    parent: Option<&Bound<'py, PyString>>,
    timestamps: Vec<Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyBytes>> {
    if messages.len() != ids.len() || messages.len() != timestamps.len() {
        return Err(PyValueError::new_err(
            "each message needs an id and a timestamp",
        ));
    }
    let mut parent = match parent {
        Some(parent) => quoted(&text_bytes(parent)?),
        None => b"null".to_vec(),
    };
    let size: usize = messages
        .iter()
        .map(|message| message.as_bytes().len() + 128)
        .sum();
    let mut lines = Vec::with_capacity(size);
    for ((message, id), timestamp) in messages.iter().zip(&ids).zip(&timestamps) {
        let id = quoted(&text_bytes(id)?);
        let timestamp = quoted(&text_bytes(timestamp)?);
        let parts: [&[u8]; 9] = [
            b"{\"type\":\"message\",\"id\":",
            &id,
            b",\"parentId\":",
            &parent,
            b",\"timestamp\":",
            &timestamp,
            b",\"message\":",
            message.as_bytes(),
            b"}\n",
        ];
        for part in parts {
            lines.extend_from_slice(part);
        }
        parent = id;
    }
    Ok(PyBytes::new(py, &lines))
}
