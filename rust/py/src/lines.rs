//! Lines of new entries, put together from texts.

use crate::keys::{text_bytes, text_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use sessiontree_core::dates;
use sessiontree_core::json;
use sessiontree_core::splice::{quote, quoted};

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
    let mut above = match parent {
        Some(parent) => quoted(&text_bytes(parent)?),
        None => b"null".to_vec(),
    };
    let mut lines = Vec::with_capacity(messages.len() + 136 * ids.len());
    let mut messages = json::elements(messages);
    for (id, timestamp) in ids.iter().zip(&timestamps) {
        let message = messages.next().ok_or_else(uneven)?;
        lines.extend_from_slice(b"{\"type\":\"message\",\"id\":");
        let start = lines.len();
        quote_text(id, &mut lines)?;
        let own = lines.len();
        lines.extend_from_slice(b",\"parentId\":");
        lines.extend_from_slice(&above);
        above.clear();
        above.extend_from_slice(&lines[start..own]);
        lines.extend_from_slice(b",\"timestamp\":");
        quote_text(timestamp, &mut lines)?;
        lines.extend_from_slice(b",\"message\":");
        lines.extend_from_slice(message);
        lines.extend_from_slice(b"}\n");
    }
    if messages.next().is_some() || ids.len() != timestamps.len() {
        return Err(uneven());
    }
    Ok(PyBytes::new(py, &lines))
}

fn uneven() -> PyErr {
    PyValueError::new_err("each message needs an id and a timestamp")
}

fn quote_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> PyResult<()> {
    match text.to_cow() {
        Ok(text) => quote(text.as_bytes(), out),
        // Lone surrogates are no UTF-8.
        Err(_) => quote(&text_bytes(text)?, out),
    }
    Ok(())
}
