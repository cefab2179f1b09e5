//! The JSON text of Python values, as `JSON.stringify` writes it.
//!
//! What is usual is written here, in one walk that also makes sure of the types. Everything else (a
//! subclass, a lone surrogate, an integer beyond 64 bits, deep nesting, what has no JSON form) is left
//! to `sessiontree.jsontext`, which knows all of it and words the errors.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use sessiontree_core::json::{write_integer, write_number};
use sessiontree_core::splice::quote;

/// So many containers may lie in each other.
const DEPTH: u8 = 100;

/// So many keys are remembered; the messages of one program have few.
const KEYS: usize = 32;

/// Writes values.
#[derive(Default)]
pub struct Writer<'py> {
    keys: Vec<(Bound<'py, PyAny>, Vec<u8>)>,
    /// How many keys to remember.
    most: usize,
}

impl<'py> Writer<'py> {
    /// A writer of many values, which remembers the texts of the keys it has met.
    pub fn of_many() -> Self {
        Self {
            keys: Vec::with_capacity(KEYS),
            most: KEYS,
        }
    }

    /// Adds the text of a value to `out`; None if that has to be done elsewhere.
    ///
    /// No Python code runs meanwhile, so that nothing changes under the walk: nor is an exception made,
    /// but as the last thing of all, since the collector may run then.
    pub fn write(&mut self, value: &Bound<'py, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        self.value(value, out, DEPTH)
    }

    fn value(&mut self, value: &Bound<'py, PyAny>, out: &mut Vec<u8>, depth: u8) -> Option<()> {
        if let Ok(text) = value.cast_exact::<PyString>() {
            write_text(text, out)
        } else if let Ok(object) = value.cast_exact::<PyDict>() {
            self.object(object, out, depth.checked_sub(1)?)
        } else if let Ok(array) = value.cast_exact::<PyList>() {
            self.array(array.iter(), out, depth.checked_sub(1)?)
        } else if let Ok(array) = value.cast_exact::<PyTuple>() {
            self.array(array.iter(), out, depth.checked_sub(1)?)
        } else {
            write_scalar(value, out)
        }
    }

    fn object(&mut self, object: &Bound<'py, PyDict>, out: &mut Vec<u8>, depth: u8) -> Option<()> {
        out.push(b'{');
        for (n, (key, value)) in object.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            self.key(key, out)?;
            self.value(&value, out, depth)?;
        }
        out.push(b'}');
        Some(())
    }

    /// Keys that stand in a program's text are one object each, wherever they are used.
    fn key(&mut self, key: Bound<'py, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        if let Some((_, text)) = self.keys.iter().find(|(known, _)| known.is(&key)) {
            out.extend_from_slice(text);
            return Some(());
        }
        let start = out.len();
        write_text(key.cast_exact::<PyString>().ok()?, out)?;
        out.push(b':');
        if self.keys.len() < self.most {
            self.keys.push((key, out[start..].to_vec()));
        }
        Some(())
    }

    fn array(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        out: &mut Vec<u8>,
        depth: u8,
    ) -> Option<()> {
        out.push(b'[');
        for (n, item) in items.enumerate() {
            if n > 0 {
                out.push(b',');
            }
            self.value(&item, out, depth)?;
        }
        out.push(b']');
        Some(())
    }
}

fn write_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> Option<()> {
    quote(text.to_str().ok()?.as_bytes(), out);
    Some(())
}

fn write_scalar(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        out.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
    } else if value.is_exact_instance_of::<PyInt>() {
        write_integer(value.extract().ok()?, out);
    } else {
        write_number(value.cast_exact::<PyFloat>().ok()?.value(), out);
    }
    Some(())
}
