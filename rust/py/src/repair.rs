//! Checks and repairs of session files, and images out of them and back.

use crate::access::detached;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use sessiontree_core::repair::{self, Finding, ImageTrouble, Kind};
use sessiontree_core::{ErrorKind, Result, images};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often a caller is told how far a reading is.
const TELL: Duration = Duration::from_millis(100);

/// Runs `work`, which says how many bytes of how many it has read, without the GIL; every now and then
/// `progress` is told, and may raise.
fn told<R: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> Result<R> + Send,
) -> PyResult<R> {
    let mut raised = None;
    let mut asked: Option<Instant> = None;
    let result = detached(py, |go_on| {
        work(&mut |done, total| {
            if asked.is_some_and(|at| at.elapsed() < TELL) {
                return true;
            }
            asked = Some(Instant::now());
            if let Some(progress) = &progress {
                raised = Python::attach(|py| progress.call1(py, (done, total)).err());
            }
            raised.is_none() && go_on()
        })
    });
    raised.map_or(result, Err)
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Malformed => "malformed",
        Kind::Glued => "glued",
        Kind::Nul => "nul",
        Kind::Torn => "torn",
        Kind::Unterminated => "unterminated",
        Kind::Foreign => "foreign",
        Kind::Nameless => "nameless",
        Kind::UnknownType => "unknown-type",
        Kind::Header => "header",
        Kind::Unusable => "unusable",
        Kind::Duplicate => "duplicate",
        Kind::Cycle => "cycle",
        Kind::MissingParent => "missing-parent",
        Kind::Unreachable => "unreachable",
        Kind::LabelTarget => "label-target",
        Kind::CompactionTarget => "compaction-target",
        Kind::EditTarget => "edit-target",
        Kind::ResultWithoutCall => "result-without-call",
        Kind::Large => "large",
        Kind::Clock => "clock",
        Kind::LostImage => "lost-image",
        Kind::DamagedImage => "damaged-image",
    }
}

fn finding<'py>(py: Python<'py>, found: &Finding) -> PyResult<Bound<'py, PyAny>> {
    let id = found.id.as_ref().map(|id| PyBytes::new(py, id));
    let (shown, to) = (PyBytes::new(py, &found.shown), PyBytes::new(py, &found.to));
    let kind = (name(found.kind), found.kind.is_fixable());
    let place = (found.line, found.byte, id);
    let detail = (shown, to, found.a, found.b);
    Ok((kind, place, detail).into_pyobject(py)?.into_any())
}

/// Calls `ask` with the text of an image; what it raises is kept aside, and cancels the work.
fn asked<'py, R: FromPyObjectOwned<'py>>(
    py: Python<'py>,
    ask: &Py<PyAny>,
    text: &[u8],
    raised: &mut Option<PyErr>,
) -> Result<R> {
    let given = ask.bind(py).call1((PyBytes::new(py, text),));
    let given = given.and_then(|given| given.extract().map_err(Into::into));
    given.map_err(|error| {
        *raised = Some(error);
        ErrorKind::Cancelled.into()
    })
}

/// The hash and the length that a text names, if it stands for an image that was moved out.
#[pyfunction]
pub fn moved_image(text: &[u8]) -> Option<(String, u64)> {
    let (hash, length) = images::moved(text)?;
    Some((String::from_utf8_lossy(hash).into_owned(), length))
}

/// Reads a session file and says what is wrong with it.
#[pyfunction]
#[pyo3(signature = (path, look_for, *, progress = None))]
pub fn examine(
    py: Python<'_>,
    path: PathBuf,
    look_for: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let mut raised = None;
    let found = told(py, progress, |go_on| {
        let mut look_for = |mark: &[u8]| {
            let trouble: Option<(bool, PyBackedBytes)> =
                Python::attach(|py| asked(py, &look_for, mark, &mut raised))?;
            Ok(trouble.map(|(lost, text)| ImageTrouble {
                lost,
                text: text.to_vec(),
            }))
        };
        repair::examine(&path, &mut look_for, go_on)
    });
    let found = raised.map_or(found, Err)?;
    let kept = &found.findings.kept;
    let counts = PyDict::new(py);
    for Finding { kind, .. } in kept {
        counts.set_item(name(*kind), found.findings.counts[*kind as usize])?;
    }
    let findings = kept.iter().map(|found| finding(py, found));
    let all = PyDict::new(py);
    all.set_item("findings", findings.collect::<PyResult<Vec<_>>>()?)?;
    all.set_item("counts", counts)?;
    all.set_item("entries", found.entries)?;
    all.set_item("size", found.size)?;
    all.set_item("image_bytes", found.image_bytes)?;
    all.set_item("mode", found.mode)?;
    Ok(all)
}

/// Repairs a session file; the paths of the old one and of what has no place in the new one.
#[pyfunction]
#[pyo3(signature = (path, *, progress = None))]
pub fn repair_file(
    py: Python<'_>,
    path: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<(OsString, Option<OsString>)>> {
    let done = told(py, progress, |go_on| repair::repair(&path, go_on))?;
    Ok(done.map(|done| (done.backup.into(), done.rejected.map(Into::into))))
}

/// Puts other texts in the place of images, under the file's lock, all or nothing; how many.
#[pyfunction]
#[pyo3(signature = (path, exchange, *, progress = None))]
pub fn exchange_images(
    py: Python<'_>,
    path: PathBuf,
    exchange: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let mut raised = None;
    let result = told(py, progress, |go_on| {
        let mut other = |text: &[u8]| {
            let given: Option<PyBackedBytes> =
                Python::attach(|py| asked(py, &exchange, text, &mut raised))?;
            Ok(given.map(|text| text.to_vec()))
        };
        repair::exchange_images(&path, &mut other, go_on)
    });
    raised.map_or(result, Err)
}
