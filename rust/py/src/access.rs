//! How the methods of `Store` get at the core: its lock, the GIL, Ctrl-C, and rows that may not exist.

use crate::errors::raise;
use crate::rows::Rows;
use crate::store::Store;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyRange, PyRangeMethods};
use sessiontree_core::migrate::{Ids, Migration};
use sessiontree_core::store::Store as Core;
use sessiontree_core::{Result, Row};
use std::sync::PoisonError;

/// Runs `work` without the GIL; it is given a question that says whether to go on, and that
/// notices Ctrl-C.
pub fn detached<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<R> + Send,
) -> PyResult<R> {
    let mut interrupt = None;
    let result = py.detach(|| {
        work(&mut || {
            interrupt = Python::attach(|py| py.check_signals().err());
            interrupt.is_none()
        })
    });
    if let Some(error) = interrupt {
        return Err(error);
    }
    result.map_err(|e| raise(py, &e))
}

impl Store {
    /// A quick look or change. The lock is never waited for with the GIL held.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Core) -> R + Send,
    ) -> R {
        if let Ok(mut core) = self.core.try_lock() {
            return work(&mut core);
        }
        py.detach(|| work(&mut self.core.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Work that reads files or many rows.
    pub(crate) fn long<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Core, &mut dyn FnMut() -> bool) -> Result<R> + Send,
    ) -> PyResult<R> {
        detached(py, |go_on| {
            work(
                &mut self.core.lock().unwrap_or_else(PoisonError::into_inner),
                go_on,
            )
        })
    }

    /// A migration of the file as it is known now.
    pub(crate) fn begin_migration(&self, py: Python<'_>, ids: Ids) -> Migration {
        self.with(py, |core| Migration::new(core, ids))
    }

    /// A look at one row that must exist.
    pub(crate) fn at<R: Send>(
        &self,
        py: Python<'_>,
        row: Row,
        look: impl FnOnce(&mut Core) -> R + Send,
    ) -> PyResult<R> {
        self.with(py, |core| {
            ((row as usize) < core.index().len()).then(|| look(core))
        })
        .ok_or_else(no_row)
    }

    /// Reads the lines of rows, in groups that lie close together.
    pub(crate) fn each_line(
        &self,
        py: Python<'_>,
        rows: &[Row],
        mut take: impl FnMut(Row, &[u8]) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut buffer = Vec::new();
        let mut rest = rows;
        while !rest.is_empty() {
            let ranges = self.long(py, |core, go_on| {
                let last = core.index().len() as Row;
                let known = rest.iter().take_while(|&&row| row < last);
                let known = known.take(1024).count();
                core.read_checked(|core| core.read_group(&rest[..known], &mut buffer), go_on)
            })?;
            if ranges.is_empty() {
                return Err(no_row());
            }
            for (&row, range) in rest.iter().zip(&ranges) {
                take(row, &buffer[range.clone()])?;
            }
            rest = &rest[ranges.len()..];
            py.check_signals()?;
        }
        Ok(())
    }

    /// A look at rows that must exist, all in one moment.
    pub(crate) fn each<R: Send>(
        &self,
        py: Python<'_>,
        rows: &[Row],
        look: impl Fn(&Core, Row) -> R + Sync,
    ) -> PyResult<Vec<R>> {
        self.with(py, |core| {
            let count = core.index().len();
            let known = rows.iter().all(|&row| (row as usize) < count);
            known.then(|| rows.iter().map(|&row| look(core, row)).collect())
        })
        .ok_or_else(no_row)
    }
}

pub fn no_row() -> PyErr {
    PyIndexError::new_err("no such row")
}

pub fn list_of_rows(rows: &Bound<'_, PyAny>) -> PyResult<Vec<Row>> {
    if let Ok(rows) = rows.cast::<Rows>() {
        return Ok(rows.get().rows.clone());
    }
    if let Ok(array) = PyBuffer::<Row>::get(rows) {
        return array.to_vec(rows.py());
    }
    if let Ok(range) = rows.cast::<PyRange>()
        && range.step()? == 1
    {
        let row = |at: isize| Row::try_from(at).map_err(|_| no_row());
        return Ok((row(range.start()?)?..row(range.stop()?.max(range.start()?))?).collect());
    }
    rows.try_iter()?.map(|row| row?.extract()).collect()
}
