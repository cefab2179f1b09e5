//! What a listing shows as a few bytes, so that thousands of sessions come out of a catalog at once.
//!
//! Numbers are little-endian. First come created, version (both with a byte before them that says whether
//! there is one), modified, messages, cost, skipped, size and mtime, 8 bytes each; then texts, each after
//! its length in 4 bytes (`ABSENT`: none): path, id, cwd, first message, parent, name, last role, stop
//! reason. Texts are WTF-8, paths what the system has.

use crate::listing::SessionInfo;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sessiontree_core::summary::Summary;
use std::path::{Path, PathBuf};

const ABSENT: u32 = u32::MAX;

/// The bytes that `unpack_infos` takes.
#[pyfunction]
pub fn pack_info<'py>(
    py: Python<'py>,
    info: &Bound<'py, SessionInfo>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (path, shown) = info.get().parts();
    let mut out = Vec::with_capacity(256);
    put_numbers(&mut out, shown);
    let whole = [
        bytes_of_path(path),
        &shown.id,
        &shown.cwd,
        &shown.first_message,
    ];
    let optional = [
        &shown.parent,
        &shown.name,
        &shown.last_role,
        &shown.stop_reason,
    ];
    let optional = optional.map(|text| text.as_deref());
    for text in whole.map(Some).into_iter().chain(optional) {
        put_text(&mut out, text)?;
    }
    Ok(PyBytes::new(py, &out))
}

/// What was packed; a `ValueError` for bytes that are damaged.
#[pyfunction]
pub fn unpack_infos(packed: Vec<Bound<'_, PyBytes>>) -> PyResult<Vec<SessionInfo>> {
    let unpack = |bytes: &Bound<'_, PyBytes>| take(&mut bytes.as_bytes());
    let infos: Result<Vec<_>, Damaged> = packed.iter().map(unpack).collect();
    infos.map_err(|Damaged| PyValueError::new_err("packed sessions are damaged"))
}

fn put_numbers(out: &mut Vec<u8>, shown: &Summary) {
    out.push(u8::from(shown.created.is_some()));
    out.extend(shown.created.unwrap_or_default().to_le_bytes());
    out.push(u8::from(shown.version.is_some()));
    out.extend(shown.version.unwrap_or_default().to_le_bytes());
    out.extend(shown.modified.to_le_bytes());
    out.extend(shown.messages.to_le_bytes());
    out.extend(shown.cost.to_le_bytes());
    out.extend(shown.skipped.to_le_bytes());
    out.extend(shown.size.to_le_bytes());
    out.extend(shown.mtime.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: Option<&[u8]>) -> PyResult<()> {
    let length = match text {
        None => ABSENT,
        Some(text) => match u32::try_from(text.len()) {
            Ok(length) if length != ABSENT => length,
            _ => return Err(PyOverflowError::new_err("a text of 4 GB cannot be packed")),
        },
    };
    out.extend(length.to_le_bytes());
    out.extend(text.unwrap_or_default());
    Ok(())
}

/// Bytes that `pack_info` has not made.
struct Damaged;

fn take(rest: &mut &[u8]) -> Result<SessionInfo, Damaged> {
    let mut shown = Summary {
        created: number(rest)?.map(i64::from_le_bytes),
        version: number(rest)?.map(f64::from_le_bytes),
        modified: i64::from_le_bytes(bytes(rest)?),
        messages: u64::from_le_bytes(bytes(rest)?),
        cost: f64::from_le_bytes(bytes(rest)?),
        skipped: u64::from_le_bytes(bytes(rest)?),
        size: u64::from_le_bytes(bytes(rest)?),
        mtime: i64::from_le_bytes(bytes(rest)?),
        ..Summary::default()
    };
    let path = path_of(text(rest)?.ok_or(Damaged)?);
    shown.id = text(rest)?.ok_or(Damaged)?;
    shown.cwd = text(rest)?.ok_or(Damaged)?;
    shown.first_message = text(rest)?.ok_or(Damaged)?;
    shown.parent = text(rest)?;
    shown.name = text(rest)?;
    shown.last_role = text(rest)?;
    shown.stop_reason = text(rest)?;
    if rest.is_empty() {
        Ok(SessionInfo::of(path, shown, None))
    } else {
        Err(Damaged)
    }
}

fn bytes<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Damaged> {
    let (taken, behind) = rest.split_first_chunk().ok_or(Damaged)?;
    *rest = behind;
    Ok(*taken)
}

/// A number that may be missing.
fn number(rest: &mut &[u8]) -> Result<Option<[u8; 8]>, Damaged> {
    let [given] = bytes(rest)?;
    let number = bytes(rest)?;
    match given {
        0 => Ok(None),
        1 => Ok(Some(number)),
        _ => Err(Damaged),
    }
}

/// A text that may be missing.
fn text(rest: &mut &[u8]) -> Result<Option<Vec<u8>>, Damaged> {
    let length = u32::from_le_bytes(bytes(rest)?);
    if length == ABSENT {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|_| Damaged)?;
    let (taken, behind) = rest.split_at_checked(length).ok_or(Damaged)?;
    *rest = behind;
    Ok(Some(taken.to_vec()))
}

fn bytes_of_path(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// Names that are no text are left out of account where paths are no bytes.
#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
