//! The classes `SessionInfo` and `SessionFiles`: what a listing shows, and reading it in batches.

use crate::access::detached;
use crate::errors::raise;
use crate::keys::{text_bytes, text_of};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use sessiontree_core::listing::kept::Mark;
use sessiontree_core::listing::{Depth, Files, Options, Order, Shown, Trouble};
use sessiontree_core::summary::{Reader, Summary};
use sessiontree_core::{Error, ErrorKind, dates, header};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What pi shows for a session without a text of the user.
const NO_MESSAGES: &str = "(no messages)";

/// One session of a listing.
#[pyclass(frozen, eq, hash, module = "sessiontree.listing")]
#[derive(Clone)]
pub struct SessionInfo {
    path: PathBuf,
    shown: Summary,
    /// Only where it may be kept.
    mark: Option<Mark>,
}

impl PartialEq for SessionInfo {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, &self.shown) == (&other.path, &other.shown)
    }
}

impl std::hash::Hash for SessionInfo {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.path.hash(state);
        self.shown.mtime.hash(state);
        self.shown.size.hash(state);
    }
}

fn bytes_of(text: Option<&Bound<'_, PyString>>) -> PyResult<Option<Vec<u8>>> {
    text.map(text_bytes).transpose()
}

fn optional<'py>(py: Python<'py>, text: Option<&Vec<u8>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    text.map(|text| text_of(py, text)).transpose()
}

/// An aware datetime in UTC; None where Python has none.
fn datetime(py: Python<'_>, ms: Option<i64>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(ms) = ms else {
        return Ok(None);
    };
    let module = py.import("datetime")?;
    let utc = module.getattr("UTC")?;
    let start = module
        .getattr("datetime")?
        .call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let (days, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let after = module.getattr("timedelta")?.call1((days, 0, 0, rest))?;
    match start.add(after) {
        Ok(time) => Ok(Some(time)),
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyOverflowError>(py) => Ok(None),
        Err(e) => Err(e),
    }
}

#[pymethods]
impl SessionInfo {
    #[new]
    #[pyo3(signature = (path, id, *, cwd = None, name = None, parent_session_path = None,
        created_ms = None, modified_ms = 0, message_count = 0, first_message = None,
        last_role = None, stop_reason = None, version = Some(1.0), skipped_lines = 0, size = 0,
        mtime_ns = 0, cost = 0.0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        path: PathBuf,
        id: &Bound<'_, PyString>,
        cwd: Option<&Bound<'_, PyString>>,
        name: Option<&Bound<'_, PyString>>,
        parent_session_path: Option<&Bound<'_, PyString>>,
        created_ms: Option<i64>,
        modified_ms: i64,
        message_count: u64,
        first_message: Option<&Bound<'_, PyString>>,
        last_role: Option<&Bound<'_, PyString>>,
        stop_reason: Option<&Bound<'_, PyString>>,
        version: Option<f64>,
        skipped_lines: u64,
        size: u64,
        mtime_ns: i64,
        cost: f64,
    ) -> PyResult<Self> {
        let shown = Summary {
            id: text_bytes(id)?,
            cwd: bytes_of(cwd)?.unwrap_or_default(),
            parent: bytes_of(parent_session_path)?,
            version,
            created: created_ms,
            name: bytes_of(name)?,
            messages: message_count,
            first_message: bytes_of(first_message)?.unwrap_or_default(),
            modified: modified_ms,
            last_role: bytes_of(last_role)?,
            stop_reason: bytes_of(stop_reason)?,
            cost,
            skipped: skipped_lines,
            size,
            mtime: mtime_ns,
        };
        Ok(Self::of(path, shown, None))
    }

    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.path.as_os_str().into_pyobject(py)?.into_any())
    }

    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        text_of(py, &self.shown.id)
    }

    #[getter]
    fn cwd<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        text_of(py, &self.shown.cwd)
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional(py, self.shown.name.as_ref())
    }

    #[getter]
    fn parent_session_path<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional(py, self.shown.parent.as_ref())
    }

    #[getter]
    fn created<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, self.shown.created)
    }

    #[getter]
    fn modified<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        datetime(py, Some(self.shown.modified))
    }

    #[getter]
    fn created_ms(&self) -> Option<i64> {
        self.shown.created
    }

    #[getter]
    fn modified_ms(&self) -> i64 {
        self.shown.modified
    }

    #[getter]
    fn message_count(&self) -> u64 {
        self.shown.messages
    }

    #[getter]
    fn first_message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.shown.first_message.as_slice() {
            b"" => Ok(PyString::new(py, NO_MESSAGES).into_any()),
            text => text_of(py, text),
        }
    }

    #[getter]
    fn all_messages_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = detached(py, |go_on| {
            let go_on = std::cell::RefCell::new(go_on);
            // It was listed, so it has a header; what is before it does not matter any more.
            Reader::new(true).text(&self.path, &|| (go_on.borrow_mut())())
        })?;
        text_of(py, &text)
    }

    #[getter]
    fn last_role<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional(py, self.shown.last_role.as_ref())
    }

    #[getter]
    fn stop_reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional(py, self.shown.stop_reason.as_ref())
    }

    #[getter]
    fn version<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let version = match self.shown.version {
            None => return Ok(None),
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => {
                (whole as i64).into_bound_py_any(py)
            }
            Some(other) => other.into_bound_py_any(py),
        };
        version.map(Some)
    }

    #[getter]
    fn skipped_lines(&self) -> u64 {
        self.shown.skipped
    }

    #[getter]
    fn cost(&self) -> f64 {
        self.shown.cost
    }

    #[getter]
    fn size(&self) -> u64 {
        self.shown.size
    }

    #[getter]
    fn mtime_ns(&self) -> i64 {
        self.shown.mtime
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let part = |value: PyResult<Bound<'_, PyAny>>| Ok::<_, PyErr>(value?.repr()?.to_string());
        Ok(format!(
            "SessionInfo(path={}, id={}, name={}, message_count={})",
            part(self.path(py))?,
            part(self.id(py))?,
            part(self.name(py)?.into_bound_py_any(py))?,
            self.shown.messages,
        ))
    }

    /// What pickling and copying call the class with.
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let shown = &self.shown;
        let more = PyDict::new(py);
        more.set_item("cwd", self.cwd(py)?)?;
        more.set_item("name", self.name(py)?)?;
        more.set_item("parent_session_path", self.parent_session_path(py)?)?;
        more.set_item("created_ms", shown.created)?;
        more.set_item("modified_ms", shown.modified)?;
        more.set_item("message_count", shown.messages)?;
        more.set_item("first_message", text_of(py, &shown.first_message)?)?;
        more.set_item("last_role", self.last_role(py)?)?;
        more.set_item("stop_reason", self.stop_reason(py)?)?;
        more.set_item("version", self.version(py)?)?;
        more.set_item("skipped_lines", shown.skipped)?;
        more.set_item("size", shown.size)?;
        more.set_item("mtime_ns", shown.mtime)?;
        more.set_item("cost", shown.cost)?;
        Ok((PyTuple::new(py, [self.path(py)?, self.id(py)?])?, more))
    }
}

impl SessionInfo {
    pub(crate) fn of(path: PathBuf, shown: Summary, mark: Option<Mark>) -> Self {
        Self { path, shown, mark }
    }

    /// What is kept of it, if it may be.
    pub(crate) fn to_keep(&self) -> Option<(&Path, &Summary, Mark)> {
        self.mark.map(|mark| (&*self.path, &self.shown, mark))
    }

    pub(crate) fn parts(&self) -> (&Path, &Summary) {
        (&self.path, &self.shown)
    }

    fn order(&self, other: &Self, by: By) -> Ordering {
        let modified = || other.shown.modified.cmp(&self.shown.modified);
        let mtime = || other.shown.mtime.cmp(&self.shown.mtime);
        // Taking a path apart costs more than a look at a time.
        let name = || {
            let names = other.path.file_name().cmp(&self.path.file_name());
            names.then_with(|| other.path.cmp(&self.path))
        };
        match by {
            By::Modified => modified().then_with(name),
            By::ModifiedThenMtime => modified().then_with(mtime).then_with(name),
            By::Mtime => mtime().then_with(name),
        }
    }
}

#[derive(Clone, Copy)]
enum By {
    Modified,
    ModifiedThenMtime,
    Mtime,
}

impl std::str::FromStr for By {
    type Err = PyErr;

    fn from_str(name: &str) -> PyResult<Self> {
        match name {
            "modified" => Ok(Self::Modified),
            "modified, mtime" => Ok(Self::ModifiedThenMtime),
            "mtime" => Ok(Self::Mtime),
            _ => Err(PyValueError::new_err(format!("no such order: {name:?}"))),
        }
    }
}

/// Infos in their order. They are large, so times and numbers are sorted in their place.
fn sorted(infos: Vec<SessionInfo>, by: By) -> impl Iterator<Item = SessionInfo> {
    let time = |info: &SessionInfo| match by {
        By::Mtime => info.shown.mtime,
        By::Modified | By::ModifiedThenMtime => info.shown.modified,
    };
    let mut order: Vec<_> = infos.iter().map(time).zip(0..).collect();
    order.sort_unstable_by(|&(a, at_a), &(b, at_b)| {
        let others = || infos[at_a].order(&infos[at_b], by).then(at_a.cmp(&at_b));
        b.cmp(&a).then_with(others)
    });
    let mut infos: Vec<_> = infos.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(move |(_, at)| infos[at].take())
}

/// A list of sessions, newest first.
#[pyfunction]
pub fn newest_first<'py>(
    py: Python<'py>,
    infos: Vec<Bound<'py, SessionInfo>>,
    by: &str,
) -> PyResult<Bound<'py, PyList>> {
    let by: By = by.parse()?;
    let mut infos = infos;
    infos.sort_by(|a, b| a.get().order(b.get(), by));
    PyList::new(py, infos)
}

type InfosAndTroubles<'py> = (Bound<'py, PyList>, Vec<Bound<'py, PyTuple>>);

fn is_wanted(
    known: &mut HashMap<Vec<u8>, bool>,
    belongs: &Bound<'_, PyAny>,
    cwd: &[u8],
) -> PyResult<bool> {
    if let Some(&wanted) = known.get(cwd) {
        return Ok(wanted);
    }
    let wanted = belongs.call1((text_of(belongs.py(), cwd)?,))?.is_truthy()?;
    known.insert(cwd.to_vec(), wanted);
    Ok(wanted)
}

/// Session files in an order, read in batches.
#[pyclass(frozen, module = "sessiontree._native")]
pub struct SessionFiles {
    files: Mutex<Files>,
}

pub(crate) fn depth_of(name: &str) -> PyResult<Depth> {
    match name {
        "own" => Ok(Depth::Own),
        "below" => Ok(Depth::Below),
        "both" => Ok(Depth::Both),
        _ => Err(PyValueError::new_err(format!("no such depth: {name:?}"))),
    }
}

/// An event that says whether to stop, asked between pieces of work.
fn is_set(cancel: Option<&Py<PyAny>>) -> PyResult<bool> {
    let Some(cancel) = cancel else {
        return Ok(false);
    };
    Python::attach(|py| cancel.call_method0(py, "is_set")?.is_truthy(py))
}

/// Runs `work` without the GIL until it is done, Ctrl-C is pressed, or `cancel` is set: then the
/// answer is None.
fn cancellable<R: Send>(
    py: Python<'_>,
    cancel: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<R, Error> + Send,
) -> PyResult<Option<R>> {
    let mut asked = Ok(false);
    let result = detached(py, |signals| {
        let result = work(&mut || {
            asked = is_set(cancel);
            signals() && matches!(asked, Ok(false))
        });
        match result {
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled) && !matches!(asked, Ok(false)) => {
                Ok(None)
            }
            other => other.map(Some),
        }
    })?;
    asked?;
    Ok(result)
}

pub(crate) fn named_trouble<'py>(
    py: Python<'py>,
    path: &Path,
    error: &Error,
) -> PyResult<Bound<'py, PyTuple>> {
    let error = raise(py, error).into_value(py);
    (path.as_os_str(), error).into_pyobject(py)
}

pub(crate) fn named_troubles<'py>(
    py: Python<'py>,
    troubles: &[Trouble],
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let named = |(path, error): &Trouble| named_trouble(py, path, error);
    troubles.iter().map(named).collect()
}

/// Infos, and for files that could not be read a path and an error.
fn items(py: Python<'_>, batch: Vec<Shown>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let items = batch.into_iter().map(|(path, result)| match result {
        Ok(shown) => Ok(Bound::new(py, SessionInfo::of(path, shown, None))?.into_any()),
        Err(error) => Ok(named_trouble(py, &path, &error)?.into_any()),
    });
    items.collect()
}

#[pymethods]
impl SessionFiles {
    #[staticmethod]
    #[pyo3(signature = (folder, *, order, depth = "own", lenient_header = false, threads = 0, cancel = None))]
    fn find(
        py: Python<'_>,
        folder: PathBuf,
        order: &str,
        depth: &str,
        lenient_header: bool,
        threads: usize,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<Option<Self>> {
        let order = match order {
            "name" => Order::Name,
            "recent" => Order::Recent,
            "listed" => Order::Listed,
            _ => return Err(PyValueError::new_err(format!("no such order: {order:?}"))),
        };
        let options = Options {
            order,
            depth: depth_of(depth)?,
            lenient: lenient_header,
            threads,
        };
        let files = cancellable(py, cancel.as_ref(), |go_on| {
            Files::find(&folder, options, go_on)
        })?;
        Ok(files.map(|files| Self {
            files: Mutex::new(files),
        }))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().len())
    }

    fn prefer(&self, py: Python<'_>, id: &Bound<'_, PyString>) -> PyResult<()> {
        let id = text_bytes(id)?;
        py.detach(|| self.lock().prefer(&id));
        Ok(())
    }

    fn troubles<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        named_troubles(py, &py.detach(|| self.lock().troubles()))
    }

    #[pyo3(signature = (count, size, *, cancel = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        size: u64,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let batch = cancellable(py, cancel.as_ref(), |go_on| {
            self.lock().summaries(count, size, go_on)
        })?;
        let Some(batch) = batch else {
            return Ok(None);
        };
        items(py, batch).map(Some)
    }

    #[pyo3(signature = (by, belongs, *, cancel = None))]
    fn read_all<'py>(
        &self,
        py: Python<'py>,
        by: &str,
        belongs: &Bound<'py, PyAny>,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<Option<InfosAndTroubles<'py>>> {
        let by: By = by.parse()?;
        let all = cancellable(py, cancel.as_ref(), |go_on| {
            self.lock().summaries(usize::MAX, u64::MAX, go_on)
        })?;
        let Some(all) = all else {
            return Ok(None);
        };
        let (mut infos, mut troubles) = (Vec::with_capacity(all.len()), Vec::new());
        // Most sessions of a folder have the same directory.
        let mut known = HashMap::new();
        for (path, result) in all {
            match result {
                Ok(shown) => {
                    if is_wanted(&mut known, belongs, &shown.cwd)? {
                        infos.push(SessionInfo::of(path, shown, None));
                    }
                }
                Err(error) => troubles.push(named_trouble(py, &path, &error)?),
            }
        }
        let infos = sorted(infos, by).map(|info| Bound::new(py, info));
        let infos = PyList::new(py, infos.collect::<PyResult<Vec<_>>>()?)?;
        Ok(Some((infos, troubles)))
    }

    /// The lists are handed to `take` on the calling thread, while other threads read on.
    #[pyo3(signature = (take, *, cancel = None))]
    fn read_each(
        &self,
        py: Python<'_>,
        take: &Bound<'_, PyAny>,
        cancel: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        let take = take.clone().unbind();
        let mut raised = None;
        let mut hand_out = |batch: Vec<Shown>| {
            let called = Python::attach(|py| take.call1(py, (items(py, batch)?,)).map(drop));
            raised = called.err();
            raised.is_none()
        };
        let done = cancellable(py, cancel.as_ref(), |go_on| {
            match self.lock().each(go_on, &mut hand_out) {
                Err(e) if matches!(e.kind(), ErrorKind::Cancelled) => Ok(false),
                other => other.map(|()| true),
            }
        });
        raised.map_or(done.map(|done| done == Some(true)), Err)
    }

    #[pyo3(signature = (id = None))]
    fn next_header<'py>(
        &self,
        py: Python<'py>,
        id: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let id = bytes_of(id)?;
        let found = detached(py, |go_on| self.lock().next_header(id.as_deref(), go_on))?;
        let Some((path, header)) = found else {
            return Ok(None);
        };
        let path = path.as_os_str().into_pyobject(py)?.into_any();
        Ok(Some((path, text_of(py, &header.cwd)?)))
    }
}

impl SessionFiles {
    fn lock(&self) -> std::sync::MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time that `new Date(text)` has, in milliseconds since 1970; None if it is none.
#[pyfunction]
pub fn parse_date(text: &Bound<'_, PyString>) -> PyResult<Option<i64>> {
    Ok(dates::parse(&text_bytes(text)?))
}

/// The header's line of a session file, without byte order mark and LF; nothing behind it is read.
#[pyfunction]
pub fn header_line(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let line = detached(py, |_| header::of_file(&path))?;
    Ok(PyBytes::new(py, &line))
}
