//! The classes `KeptFiles` and `Looking`: listings that read only what has changed.

use crate::access::detached;
use crate::listing::{SessionInfo, depth_of, named_trouble, named_troubles};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use sessiontree_core::ErrorKind;
use sessiontree_core::listing::kept::{self, KeptFiles as Core};
use sessiontree_core::listing::{Options, Order};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a waiting thread sleeps between two looks at whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(20);

fn options(depth: &str) -> PyResult<Options> {
    Ok(Options {
        order: Order::Listed,
        depth: depth_of(depth)?,
        lenient: false,
        threads: 0,
    })
}

/// Session files, and what is kept of those that are as they were.
#[pyclass(frozen, module = "sessiontree._native")]
pub struct KeptFiles {
    files: Mutex<Core>,
}

#[pymethods]
impl KeptFiles {
    #[staticmethod]
    #[pyo3(signature = (folder, *, depth, kept, settled))]
    fn find(
        py: Python<'_>,
        folder: PathBuf,
        depth: &str,
        kept: Option<PathBuf>,
        settled: i64,
    ) -> PyResult<Self> {
        let options = options(depth)?;
        let found = detached(py, move |go_on| {
            Core::find(&folder, options, kept.as_deref(), settled, go_on)
        });
        found.map(Self::of)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().len())
    }

    #[getter]
    fn is_stale(&self, py: Python<'_>) -> bool {
        py.detach(|| self.lock().is_stale())
    }

    fn known<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = py.detach(|| self.lock().known());
        let infos = rows
            .into_iter()
            .map(|row| Bound::new(py, SessionInfo::of(row.path, row.shown, row.mark)));
        PyList::new(py, infos.collect::<PyResult<Vec<_>>>()?)
    }

    fn troubles<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        named_troubles(py, &py.detach(|| self.lock().troubles()))
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        size: u64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let batch = detached(py, |go_on| self.lock().read(count, size, go_on))?;
        let items = batch.into_iter().map(|(path, result)| match result {
            Ok((shown, mark)) => Ok(Bound::new(py, SessionInfo::of(path, shown, mark))?.into_any()),
            Err(error) => Ok(named_trouble(py, &path, &error)?.into_any()),
        });
        items.collect()
    }
}

impl KeptFiles {
    fn of(files: Core) -> Self {
        Self {
            files: Mutex::new(files),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look at files on a thread of its own. It has no part in Python, so that a process may end meanwhile.
#[pyclass(frozen, module = "sessiontree._native")]
pub struct Looking {
    stop: Arc<AtomicBool>,
    found: Mutex<Option<Receiver<Option<Core>>>>,
}

#[pymethods]
impl Looking {
    #[new]
    #[pyo3(signature = (folder, *, depth, kept, settled))]
    fn new(folder: PathBuf, depth: &str, kept: Option<PathBuf>, settled: i64) -> PyResult<Self> {
        let options = options(depth)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, found) = channel();
        let stopped = stop.clone();
        let look = move || {
            let mut go_on = || !stopped.load(Ordering::Relaxed);
            let found = Core::find(&folder, options, kept.as_deref(), settled, &mut go_on);
            // Whoever asked may be gone.
            let _ = sender.send(found.ok());
        };
        // Without a thread the sender is gone, and nothing was found.
        let _ = thread::Builder::new().spawn(look);
        Ok(Self {
            stop,
            found: Mutex::new(Some(found)),
        })
    }

    fn found(&self, py: Python<'_>) -> PyResult<Option<KeptFiles>> {
        let waiting = self
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(waiting) = waiting else {
            return Ok(None);
        };
        let found = detached(py, move |go_on| {
            loop {
                match waiting.recv_timeout(LOOK) {
                    Ok(found) => return Ok(found),
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                    Err(RecvTimeoutError::Timeout) if go_on() => {}
                    Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::Cancelled.into()),
                }
            }
        })?;
        Ok(found.map(KeptFiles::of))
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The file that keeps those sessions of `KeptFiles` that may be kept.
#[pyfunction]
pub fn rows_to_keep<'py>(
    py: Python<'py>,
    infos: Vec<Bound<'py, SessionInfo>>,
) -> Bound<'py, PyBytes> {
    let infos: Vec<_> = infos.iter().map(Bound::get).collect();
    let text = py.detach(|| {
        let kept: Vec<_> = infos.iter().filter_map(|info| info.to_keep()).collect();
        kept::written(kept.into_iter())
    });
    PyBytes::new(py, &text)
}
