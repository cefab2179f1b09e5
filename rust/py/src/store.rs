//! The class `Store`: one session's bytes and index.

use crate::access::{detached, list_of_rows};
use crate::appending::Appended;
use crate::columns::parent_number;
use crate::keys::{from_python, text_of, to_python};
use crate::rows::Rows;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use sessiontree_core::append::{Change, How};
use sessiontree_core::branch::Parts;
use sessiontree_core::compose;
use sessiontree_core::fork::Copy;
use sessiontree_core::header;
use sessiontree_core::json;
use sessiontree_core::store::{Backing, Options, Store as Core, Tail};
use sessiontree_core::{Error, ErrorKind, Row, walk};
use std::path::PathBuf;
use std::sync::Mutex;

/// One session: a file or memory, and its index.
#[pyclass(frozen, module = "sessiontree._native")]
pub struct Store {
    pub(crate) core: Mutex<Core>,
}

impl From<Core> for Store {
    fn from(core: Core) -> Self {
        Self {
            core: Mutex::new(core),
        }
    }
}

pub(crate) type Counts = (bool, u64, bool, bool, bool);
type Landmarks = (Option<Row>, Option<Row>, Option<Row>, bool);

pub(crate) fn counts(change: Change) -> Counts {
    (
        change.written,
        change.foreign,
        change.replaced,
        change.rebuilt,
        change.sealed,
    )
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(signature = (path, *, lenient_header = false, chunk_size = None, cache = None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        lenient_header: bool,
        chunk_size: Option<usize>,
        cache: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = options(lenient_header, chunk_size);
        let core = detached(py, |go_on| match &cache {
            Some(folder) => Core::open_cached(&path, options, folder, go_on),
            None => Core::open(&path, options, go_on),
        })?;
        Ok(core.into())
    }

    #[staticmethod]
    #[pyo3(signature = (data, *, lenient_header = false))]
    fn memory(py: Python<'_>, data: Vec<u8>, lenient_header: bool) -> PyResult<Self> {
        let core = detached(py, |_| Core::memory(data, options(lenient_header, None)))?;
        Ok(core.into())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.with(py, |core| core.index().len())
    }

    fn path(&self, py: Python<'_>) -> PathBuf {
        self.with(py, |core| core.path().to_owned())
    }

    fn in_memory(&self, py: Python<'_>) -> bool {
        self.with(py, |core| matches!(core.backing(), Backing::Memory(_)))
    }

    fn header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.with(py, |core| core.header().to_vec()))
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.scan_report(py)
    }

    fn tail(&self, py: Python<'_>) -> &'static str {
        match self.with(py, |core| core.tail()) {
            Tail::Clean => "clean",
            Tail::Whole => "whole",
            Tail::Torn => "torn",
        }
    }

    fn end(&self, py: Python<'_>) -> u64 {
        self.with(py, |core| core.end())
    }

    fn body(&self, py: Python<'_>) -> (u64, u64) {
        self.with(py, |core| core.body())
    }

    fn saved_end(&self, py: Python<'_>) -> u64 {
        self.with(py, |core| core.saved_end())
    }

    fn heap_bytes(&self, py: Python<'_>) -> usize {
        self.with(py, |core| core.index().heap_bytes())
    }

    // ---- one row

    fn find(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<Row>> {
        let key = from_python(id)?;
        Ok(self.with(py, |core| core.index().find(&key)))
    }

    fn free_ids<'py>(&self, py: Python<'py>, random: &[u8]) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let ids = self.with(py, |core| compose::free_ids(core.index(), random));
        ids.iter().map(|id| text_of(py, id)).collect()
    }

    fn owner(&self, py: Python<'_>, row: Row) -> PyResult<Row> {
        self.at(py, row, |core| core.index().owner(row))
    }

    fn id<'py>(&self, py: Python<'py>, row: Row) -> PyResult<Bound<'py, PyAny>> {
        let key = self.at(py, row, |core| core.index().id(row))?;
        to_python(py, &key)
    }

    fn ids<'py>(&self, py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let rows = list_of_rows(rows)?;
        let ids = PyList::empty(py);
        for batch in rows.chunks(1024) {
            for key in self.each(py, batch, |core, row| core.index().id(row))? {
                ids.append(to_python(py, &key)?)?;
            }
        }
        Ok(ids)
    }

    fn roles<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let rows = list_of_rows(rows)?;
        let roles = self.each(py, &rows, |core, row| core.index().role(row) as u8)?;
        Ok(PyBytes::new(py, &roles))
    }

    fn has_text_id(&self, py: Python<'_>, row: Row) -> PyResult<bool> {
        self.at(py, row, |core| core.index().has_text_id(row))
    }

    fn kind(&self, py: Python<'_>, row: Row) -> PyResult<u8> {
        self.at(py, row, |core| core.index().kind(row) as u8)
    }

    fn role(&self, py: Python<'_>, row: Row) -> PyResult<u8> {
        self.at(py, row, |core| core.index().role(row) as u8)
    }

    fn time(&self, py: Python<'_>, row: Row) -> PyResult<Option<i64>> {
        self.at(py, row, |core| core.index().time(row))
    }

    fn parent(&self, py: Python<'_>, row: Row) -> PyResult<i64> {
        self.at(py, row, |core| parent_number(core.index().parent(row)))
    }

    fn span(&self, py: Python<'_>, row: Row) -> PyResult<(u64, u64)> {
        self.at(py, row, |core| core.index().span(row))
    }

    fn line<'py>(&self, py: Python<'py>, row: Row) -> PyResult<Bound<'py, PyBytes>> {
        let mut buffer = Vec::new();
        if let Ok(ranges) = self.at(py, row, |core| core.read_group(&[row], &mut buffer))? {
            let line = ranges.into_iter().next().unwrap_or_default();
            return Ok(PyBytes::new(py, &buffer[line]));
        }
        // Where that fails, a scan may help, which takes its time.
        let mut line = PyBytes::new(py, b"");
        self.each_line(py, &[row], |_, bytes| {
            line = PyBytes::new(py, bytes);
            Ok(())
        })?;
        Ok(line)
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.long(py, |core, _| core.read(offset, length))
            .map(|bytes| PyBytes::new(py, &bytes))
    }

    fn lines<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let lines = PyList::empty(py);
        self.each_line(py, &list_of_rows(rows)?, |_, line| {
            lines.append(PyBytes::new(py, line))
        })?;
        Ok(lines)
    }

    fn parse<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyAny>,
        loads: &Bound<'py, PyAny>,
        otherwise: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let values = PyList::empty(py);
        self.each_line(py, &list_of_rows(rows)?, |row, line| {
            // Freed again at once, so that it is always the same memory.
            let text = PyBytes::new(py, line);
            if !json::may_hold_minus_zero(line) {
                match loads.call1((&text,)) {
                    Ok(value) => return values.append(value),
                    Err(error) if error.is_instance_of::<PyValueError>(py) => {}
                    Err(error) => return Err(error),
                }
            }
            values.append(otherwise.call1((row, text))?)
        })?;
        Ok(values)
    }

    // ---- the whole

    fn leaf(&self, py: Python<'_>) -> Option<Row> {
        self.with(py, |core| core.index().leaf())
    }

    fn conversation(&self, py: Python<'_>) -> Option<Row> {
        self.with(py, |core| core.index().conversation())
    }

    fn distinct_ids(&self, py: Python<'_>) -> usize {
        self.with(py, |core| core.index().distinct_ids())
    }

    #[pyo3(signature = (start = 0))]
    fn labels(&self, py: Python<'_>, start: usize) -> Vec<Row> {
        self.with(py, |core| {
            core.index()
                .labels()
                .get(start..)
                .unwrap_or_default()
                .to_vec()
        })
    }

    fn last_info(&self, py: Python<'_>) -> Option<Row> {
        self.with(py, |core| core.index().infos().last().copied())
    }

    fn roots(&self, py: Python<'_>) -> PyResult<Rows> {
        self.long(py, |core, _| {
            Ok(Rows::from(core.index().roots().collect::<Vec<_>>()))
        })
    }

    fn orphans(&self, py: Python<'_>) -> PyResult<Rows> {
        self.long(py, |core, _| Ok(Rows::from(core.index().orphans())))
    }

    fn children(&self, py: Python<'_>, row: Row) -> PyResult<Vec<Row>> {
        self.at(py, row, |core| core.index_mut().children(row))
    }

    fn children_of_key(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Vec<Row>> {
        let key = from_python(id)?;
        Ok(self.with(py, |core| core.index_mut().children_of_key(&key)))
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all_columns(py)
    }

    // ---- walks

    fn path_rows(&self, py: Python<'_>, leaf: Row) -> PyResult<Rows> {
        self.at(py, leaf, |_| ())?;
        self.long(py, |core, _| walk::path(core.index(), leaf))
            .map(Rows::from)
            .map_err(|e| self.name_cycle(py, e, leaf))
    }

    fn path_until_cycle(&self, py: Python<'_>, leaf: Row) -> PyResult<(Rows, bool)> {
        self.at(py, leaf, |_| ())?;
        self.long(py, |core, _| Ok(walk::path_until_cycle(core.index(), leaf)))
            .map(|(rows, cyclic)| (rows.into(), cyclic))
    }

    fn on_path(&self, py: Python<'_>, row: Row, leaf: Row) -> PyResult<bool> {
        self.at(py, row.max(leaf), |core| {
            walk::on_path(core.index_mut(), row, leaf)
        })
    }

    fn depth(&self, py: Python<'_>, row: Row) -> PyResult<usize> {
        self.at(py, row, |_| ())?;
        self.long(py, |core, _| walk::depth(core.index(), row))
            .map_err(|e| self.name_cycle(py, e, row))
    }

    fn common_ancestor(&self, py: Python<'_>, a: Row, b: Row) -> PyResult<Option<Row>> {
        self.at(py, a.max(b), |_| ())?;
        self.long(py, |core, _| walk::common_ancestor(core.index(), a, b))
            .map_err(|e| self.name_cycle(py, e, a))
            .map_err(|e| self.name_cycle(py, e, b))
    }

    fn subtree(&self, py: Python<'_>, row: Row) -> PyResult<Rows> {
        self.at(py, row, |_| ())?;
        self.long(
            py,
            |core, _| Ok(walk::subtree(core.index_mut(), row).into()),
        )
    }

    fn leaves(&self, py: Python<'_>) -> PyResult<Rows> {
        self.long(py, |core, _| Ok(walk::leaves(core.index()).into()))
    }

    fn tree_roots(&self, py: Python<'_>) -> PyResult<Rows> {
        self.long(py, |core, _| Ok(walk::tree_roots(core.index_mut()).into()))
    }

    fn tree_children(&self, py: Python<'_>, row: Row) -> PyResult<Vec<Row>> {
        self.at(py, row, |core| walk::tree_children(core.index_mut(), row))
    }

    // ---- contexts

    fn epoch(&self, py: Python<'_>) -> u64 {
        self.with(py, |core| core.index().epoch())
    }

    fn landmarks(&self, py: Python<'_>, leaf: Row) -> PyResult<Landmarks> {
        self.at(py, leaf, |_| ())?;
        let marks = self.long(py, |core, _| Ok(walk::landmarks(core.index_mut(), leaf)))?;
        Ok((marks.compaction, marks.thinking, marks.model, marks.cyclic))
    }

    #[pyo3(signature = (leaf, compaction, kept))]
    fn context_rows(
        &self,
        py: Python<'_>,
        leaf: Row,
        compaction: Row,
        kept: Option<Row>,
    ) -> PyResult<(Rows, bool)> {
        let highest = leaf.max(compaction).max(kept.unwrap_or(0));
        self.at(py, highest, |_| ())?;
        self.long(py, |core, _| {
            Ok(walk::context_rows(core.index(), leaf, compaction, kept))
        })
        .map(|(rows, found)| (rows.into(), found))
    }

    #[pyo3(signature = (path, compaction, kept))]
    fn select(
        &self,
        py: Python<'_>,
        path: &Rows,
        compaction: Row,
        kept: Option<Row>,
    ) -> PyResult<(Rows, bool)> {
        let highest = path.rows.iter().copied().max();
        self.at(py, highest.unwrap_or(0), |_| ())?;
        self.long(py, |core, _| {
            Ok(walk::select(core.index(), &path.rows, compaction, kept))
        })
        .map(|(rows, found)| (rows.into(), found))
    }

    #[pyo3(signature = (before, leaf, stop = None))]
    fn descent(
        &self,
        py: Python<'_>,
        before: Row,
        leaf: Row,
        stop: Option<Row>,
    ) -> PyResult<Option<Rows>> {
        self.at(py, leaf, |_| ())?;
        self.long(py, |core, _| {
            Ok(walk::descent(core.index(), before, leaf, stop).map(Rows::from))
        })
    }

    // ---- writing

    #[pyo3(signature = (lines, *, strict = false, sync = false))]
    fn append(&self, py: Python<'_>, lines: &[u8], strict: bool, sync: bool) -> PyResult<Counts> {
        let how = How { strict, sync };
        self.long(py, |core, go_on| core.append(lines, how, go_on))
            .map(counts)
    }

    #[pyo3(signature = (message, id, leaf, strict, sync, /))]
    fn append_message<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        id: &str,
        leaf: Option<Row>,
        strict: bool,
        sync: bool,
    ) -> PyResult<Option<Appended<'py>>> {
        self.add_message(message, id, leaf, How { strict, sync })
    }

    #[pyo3(signature = (messages, ids, leaf, times, strict, sync, /))]
    fn append_messages<'py>(
        &self,
        messages: &Bound<'py, PyList>,
        ids: Vec<Bound<'py, PyString>>,
        leaf: Option<Row>,
        times: Option<Vec<String>>,
        strict: bool,
        sync: bool,
    ) -> PyResult<Option<Appended<'py>>> {
        let how = How { strict, sync };
        self.add_messages(messages, &ids, leaf, times.as_deref(), how)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<Counts> {
        self.long(py, Core::refresh).map(counts)
    }

    #[pyo3(signature = (path, lines, *, sync = false))]
    fn persist(&self, py: Python<'_>, path: PathBuf, lines: &[u8], sync: bool) -> PyResult<()> {
        self.long(py, |core, _| {
            core.persist(
                &path,
                lines,
                How {
                    strict: false,
                    sync,
                },
            )
        })
    }

    #[pyo3(signature = (path, header, *, sync = false))]
    fn fork(&self, py: Python<'_>, path: PathBuf, header: &[u8], sync: bool) -> PyResult<bool> {
        let target = path.as_path();
        let copy = Copy {
            header,
            target,
            sync,
        };
        self.long(py, |core, go_on| core.fork(copy, go_on))
    }

    #[staticmethod]
    #[pyo3(signature = (source, begin, *, lenient_header = false, sync = false))]
    fn open_forked(
        py: Python<'_>,
        source: PathBuf,
        begin: &Bound<'_, PyAny>,
        lenient_header: bool,
        sync: bool,
    ) -> PyResult<Option<Self>> {
        let options = options(lenient_header, None);
        let Ok(Some(old)) = py.detach(|| header::first_line(&source)) else {
            return Ok(None);
        };
        let answer = begin.call1((PyBytes::new(py, &old),))?;
        let Some((target, header)) = answer.extract::<Option<(PathBuf, Vec<u8>)>>()? else {
            return Ok(None);
        };
        let (target, header) = (target.as_path(), header.as_slice());
        let copy = Copy {
            header,
            target,
            sync,
        };
        let core = detached(py, |go_on| {
            Core::open_forked(&source, &old, copy, options, go_on)
        })?;
        Ok(core.map(Self::from))
    }

    #[pyo3(signature = (path, header, more, *, target = None, sync = false))]
    fn branch(
        &self,
        py: Python<'_>,
        path: &Rows,
        header: &[u8],
        more: &[u8],
        target: Option<PathBuf>,
        sync: bool,
    ) -> PyResult<Self> {
        self.each(py, &path.rows, |_, _| ())?;
        let parts = Parts {
            header,
            path: &path.rows,
            more,
        };
        self.long(py, |core, go_on| {
            core.branch(parts, target.as_deref(), sync, go_on)
        })
        .map(Self::from)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.long(py, |core, _| core.sync())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.long(py, |core, _| {
            core.close();
            Ok(())
        })
    }
}

impl Store {
    /// Says which ids form a cycle.
    fn name_cycle(&self, py: Python<'_>, error: PyErr, leaf: Row) -> PyErr {
        let (ids, path) = self.with(py, |core| match walk::path(core.index(), leaf) {
            Err(e) => (cycle_ids(core, &e), core.path().to_path_buf()),
            Ok(_) => (Vec::new(), PathBuf::new()),
        });
        if !ids.is_empty() {
            let _ = error.value(py).setattr("ids", ids);
        }
        if path.as_os_str() != "" {
            let _ = error.value(py).setattr("path", path.as_os_str());
        }
        error
    }
}

fn cycle_ids(core: &Core, error: &Error) -> Vec<String> {
    match error.kind() {
        ErrorKind::Cycle { rows } => rows
            .iter()
            .take(100)
            .map(|&r| core.index().id(r).to_string())
            .collect(),
        _ => Vec::new(),
    }
}

fn options(lenient_header: bool, chunk_size: Option<usize>) -> Options {
    let plain = Options {
        lenient_header,
        ..Options::default()
    };
    chunk_size.map_or(plain, |chunk| Options { chunk, ..plain })
}
