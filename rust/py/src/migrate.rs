//! Older files as new ones, in parts; and members of one line replaced.

use crate::store::Store;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict};
use sessiontree_core::draft::{Draft, Made};
use sessiontree_core::json::{self, Shape};
use sessiontree_core::migrate::{Ids, Migration as Core};
use sessiontree_core::splice;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// An iterator over the parts of a migrated file.
#[pyclass(frozen, module = "sessiontree._native")]
pub struct Migration {
    store: Py<Store>,
    core: Mutex<Core>,
}

#[pymethods]
impl Migration {
    #[new]
    #[pyo3(signature = (store, *, give_ids, ids = None))]
    fn new(
        py: Python<'_>,
        store: Py<Store>,
        give_ids: bool,
        ids: Option<Vec<Bound<'_, PyBytes>>>,
    ) -> Self {
        let bytes =
            |ids: Vec<Bound<'_, PyBytes>>| ids.iter().map(|id| id.as_bytes().into()).collect();
        let ids = match ids.map(bytes) {
            _ if !give_ids => Ids::Present,
            None => Ids::Derived,
            Some(texts) => Ids::Given(texts),
        };
        let core = store.get().begin_migration(py, ids);
        Self {
            store,
            core: Mutex::new(core),
        }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // The part is copied into Python's memory, so nobody may go on meanwhile.
        let mut core = self
            .core
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let migration: &mut Core = &mut core;
        let part = self
            .store
            .get()
            .long(py, |store, _| migration.next_part(store))?;
        Ok(part.map(|part| PyBytes::new(py, part)))
    }
}

impl Migration {
    /// Writes the whole new file.
    pub fn write_to(&self, py: Python<'_>, draft: &mut Draft) -> PyResult<()> {
        let mut core = self
            .core
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let migration: &mut Core = &mut core;
        self.store
            .get()
            .long(py, |store, go_on| migration.write_to(store, draft, go_on))
    }

    /// The session in the new file, if it need not be scanned; only once.
    pub fn finish(&self, py: Python<'_>, path: &Path, made: Made) -> PyResult<Option<Store>> {
        let mut core = self
            .core
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let migration: &mut Core = &mut core;
        let new = self
            .store
            .get()
            .long(py, |store, _| Ok(migration.finish(store, path, made)))?;
        Ok(new.map(Store::from))
    }
}

/// The id that an entry of a version 1 file gets; `attempt` counts collisions.
#[pyfunction]
#[pyo3(signature = (line_number, line, attempt = 0))]
pub fn derived_id(line_number: u64, line: &[u8], attempt: u64) -> String {
    let id = sessiontree_core::migrate::derived_id(line_number, line, attempt);
    format!("{id:08x}")
}

/// The text of an object with members replaced, or added at its end.
#[pyfunction]
pub fn splice_members<'py>(
    py: Python<'py>,
    line: &[u8],
    members: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyBytes>> {
    if json::validate(line) != Ok(Shape::Object) {
        return Err(PyValueError::new_err("the text holds no JSON object"));
    }
    let members: Vec<(String, Bound<'_, PyBytes>)> = members
        .iter()
        .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
        .collect::<PyResult<_>>()?;
    for (key, text) in &members {
        let quoted = format!("\"{key}\"");
        if key.contains('\\') || json::validate(quoted.as_bytes()).is_err() {
            return Err(PyValueError::new_err("a key must need no escapes"));
        }
        if json::validate(text.as_bytes()).is_err() {
            return Err(PyValueError::new_err("a member's text is no JSON value"));
        }
    }
    let set: Vec<splice::Member<'_>> = members
        .iter()
        .map(|(key, text)| (key.as_str(), text.as_bytes()))
        .collect();
    Ok(PyBytes::new(py, &splice::splice(line, &set, &[])))
}
