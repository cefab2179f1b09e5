//! Questions about JSON texts and values that are cheaper to answer here.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sessiontree_core::json;

/// Whether the number `-0` may stand in a JSON text; never no where one does.
#[pyfunction]
pub fn may_hold_minus_zero(text: &[u8]) -> bool {
    json::may_hold_minus_zero(text)
}

/// orjson's text is that of `JSON.stringify`.
const SAME: u8 = 0;
/// Some doubles have another text in JavaScript.
const NUMBERS_DIFFER: u8 = 1;
/// A type is none of JSON's, though orjson writes it.
const ODD_TYPES: u8 = 2;

/// Look at every value that orjson has written: are its text and its type right?
///
/// Keys are not looked at: orjson has taken strings only. It has also made sure that the value ends.
/// Containers are looked at as they are in one moment: another thread may change them meanwhile.
#[pyfunction]
pub fn survey(value: Bound<'_, PyAny>) -> u8 {
    let mut found = SAME;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        found = found.max(if let Ok(object) = value.cast_exact::<PyDict>() {
            look_at(object.values().iter(), &mut waiting)
        } else if let Ok(array) = value.cast_exact::<PyList>() {
            look_at(array.iter(), &mut waiting)
        } else if let Ok(array) = value.cast_exact::<PyTuple>() {
            look_at(array.iter(), &mut waiting)
        } else {
            scalar(&value)
        });
    }
    found
}

/// Judge the scalars among some values; what holds others waits for its turn.
fn look_at<'py>(
    values: impl Iterator<Item = Bound<'py, PyAny>>,
    waiting: &mut Vec<Bound<'py, PyAny>>,
) -> u8 {
    let mut found = SAME;
    for value in values {
        match scalar(&value) {
            ODD_TYPES if is_container(&value) => waiting.push(value),
            judged => found = found.max(judged),
        }
    }
    found
}

fn is_container(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyDict>()
        || value.is_exact_instance_of::<PyList>()
        || value.is_exact_instance_of::<PyTuple>()
}

fn scalar(value: &Bound<'_, PyAny>) -> u8 {
    if value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyInt>() {
        SAME
    } else if let Ok(double) = value.cast_exact::<PyFloat>() {
        let double = double.value();
        // The range in which both write plain decimals; whole numbers get ".0" from orjson.
        if (1e-5..1e16).contains(&double) && double.fract() != 0.0 {
            SAME
        } else {
            NUMBERS_DIFFER
        }
    } else if value.is_none() || value.is_exact_instance_of::<PyBool>() {
        SAME
    } else {
        ODD_TYPES
    }
}
