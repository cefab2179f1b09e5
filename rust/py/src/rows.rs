//! A frozen sequence of row numbers: four bytes a row, and no numpy until an array is asked for.

use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};
use sessiontree_core::Row;

/// Row numbers.
#[pyclass(frozen, sequence, module = "sessiontree._native")]
pub struct Rows {
    pub rows: Vec<Row>,
}

impl From<Vec<Row>> for Rows {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows }
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let at = slice.indices(self.rows.len() as isize)?;
            let picked =
                (0..at.slicelength as isize).map(|i| self.rows[(at.start + i * at.step) as usize]);
            return Ok(Bound::new(py, Self::from(picked.collect::<Vec<_>>()))?.into_any());
        }
        let index: isize = key.extract()?;
        let at = if index < 0 {
            index + self.rows.len() as isize
        } else {
            index
        };
        match usize::try_from(at).ok().and_then(|at| self.rows.get(at)) {
            Some(row) => Ok(row.into_pyobject(py)?.into_any()),
            None => Err(PyIndexError::new_err("row index out of range")),
        }
    }

    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.rows)
    }

    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        array(py, self.rows.iter().map(|&r| i64::from(r)).collect())
    }
}

/// Moves a column into numpy.
///
/// numpy is imported here, before the crate of the same name looks for its functions: where it is
/// missing, or Ctrl-C comes while it is imported, that is an error and no panic.
pub fn array<T: Element>(py: Python<'_>, column: Vec<T>) -> PyResult<Bound<'_, PyArray1<T>>> {
    py.import("numpy")?;
    Ok(column.into_pyarray(py))
}
