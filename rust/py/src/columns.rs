//! The index and the report of a store, copied out whole.

use crate::rows::array;
use crate::store::Store;
use numpy::{Element, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sessiontree_core::index::{MISSING, ROOT};

pub fn parent_number(parent: u32) -> i64 {
    match parent {
        ROOT => -1,
        MISSING => -2,
        row => i64::from(row),
    }
}

impl Store {
    pub(crate) fn scan_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.with(py, |core| core.report().clone());
        let dict = PyDict::new(py);
        dict.set_item("skipped", report.skipped)?;
        let rows: Vec<(u64, u64, &str)> = report
            .skipped_lines
            .iter()
            .map(|s| (s.line, s.byte, &*s.reason))
            .collect();
        dict.set_item("skipped_lines", rows)?;
        dict.set_item("blank", report.blank)?;
        dict.set_item("headers", report.headers)?;
        Ok(dict)
    }

    pub(crate) fn all_columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = self.long(py, |core, _| {
            let c = core.index().columns();
            let kinds = c.kind.iter().map(|&k| k as u8).collect::<Vec<_>>();
            let roles = c.role.iter().map(|&r| r as u8).collect::<Vec<_>>();
            let parents = c.parent().map(parent_number).collect::<Vec<_>>();
            Ok((
                c.offset.to_vec(),
                c.length().collect::<Vec<_>>(),
                parents,
                kinds,
                roles,
                c.time.to_vec(),
            ))
        })?;
        let dict = PyDict::new(py);
        let (offset, length, parent, kind, role, time) = columns;
        dict.set_item("offset", frozen(py, offset)?)?;
        dict.set_item("length", frozen(py, length)?)?;
        dict.set_item("parent", frozen(py, parent)?)?;
        dict.set_item("kind", frozen(py, kind)?)?;
        dict.set_item("role", frozen(py, role)?)?;
        dict.set_item("timestamp", frozen(py, time)?)?;
        Ok(dict)
    }
}

fn frozen<T: Element>(py: Python<'_>, column: Vec<T>) -> PyResult<Bound<'_, PyArray1<T>>> {
    let array = array(py, column)?;
    array.readwrite().make_nonwriteable();
    Ok(array)
}
