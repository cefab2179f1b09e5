//! Ids between Python and the core: by type and value, lone surrogates included.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};
use sessiontree_core::envelope::Key;

/// The core's key for a Python value.
pub fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Key> {
    if value.is_none() {
        Ok(Key::Null)
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(Key::Text(text_bytes(text)?.as_slice().into()))
    } else if let Ok(flag) = value.cast::<PyBool>() {
        Ok(Key::Bool(flag.is_true()))
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        Ok(Key::Number(value.extract().unwrap_or(f64::INFINITY)))
    } else {
        Ok(Key::Opaque)
    }
}

/// The core's key for a string.
pub fn key_of(text: &str) -> Key {
    Key::Text(text.as_bytes().into())
}

pub fn text_bytes(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    match text.to_cow() {
        Ok(text) => Ok(text.as_bytes().to_vec()),
        Err(_) => text
            .call_method1("encode", ("utf-8", "surrogatepass"))?
            .extract(),
    }
}

/// The Python value of a key; a missing id is None, as is null.
pub fn to_python<'py>(py: Python<'py>, key: &Key) -> PyResult<Bound<'py, PyAny>> {
    Ok(match key {
        Key::Missing | Key::Null | Key::Opaque => py.None().into_bound(py),
        Key::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Key::Number(n) => PyFloat::new(py, *n).into_any(),
        Key::Text(text) => text_of(py, text)?,
    })
}

/// A Python string from WTF-8.
pub fn text_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, text).call_method1("decode", ("utf-8", "surrogatepass")),
    }
}
