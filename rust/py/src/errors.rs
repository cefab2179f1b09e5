//! Core errors as the exceptions of `sessiontree.exceptions`, and as `OSError` with errno and path.

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError};
use pyo3::prelude::*;
use sessiontree_core::{Error, ErrorKind, stays};
use std::io;
use std::path::Path;

fn named(py: Python<'_>, class: &str, message: String) -> PyErr {
    match py
        .import("sessiontree.exceptions")
        .and_then(|m| m.getattr(class))
        .and_then(|c| c.call1((message,)))
    {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// `OSError(errno, strerror, filename)`: Python picks the subclass by errno.
pub fn os_error(py: Python<'_>, error: &io::Error, path: &Path) -> PyErr {
    os_error_that(py, error, path, "")
}

/// The same, with more to say than the system does.
fn os_error_that(py: Python<'_>, error: &io::Error, path: &Path, more: &str) -> PyErr {
    let errno = error.raw_os_error().or_else(|| errno_of(error.kind()));
    let text = errno.map_or_else(
        || Ok(error.to_string()),
        |n| {
            py.import("os")
                .and_then(|os| os.call_method1("strerror", (n,))?.extract::<String>())
        },
    );
    match text {
        Ok(text) => PyOSError::new_err((errno, text + more, path.as_os_str().to_owned())),
        Err(error) => error,
    }
}

/// The errno of the kinds that the core makes itself.
fn errno_of(kind: io::ErrorKind) -> Option<i32> {
    Some(match kind {
        io::ErrorKind::NotFound => 2,
        io::ErrorKind::ResourceBusy => 16,
        io::ErrorKind::AlreadyExists => 17,
        io::ErrorKind::IsADirectory => 21,
        io::ErrorKind::StorageFull | io::ErrorKind::WriteZero => 28,
        _ => return None,
    })
}

/// Turns a core error into the exception that Python sees.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Io { source, path } => return os_error(py, source, path),
        ErrorKind::Stays {
            source,
            path,
            entries,
        } => return os_error_that(py, source, path, &format!("; {}", stays(*entries))),
        ErrorKind::Cancelled => {
            return PyErr::take(py).unwrap_or_else(|| PyKeyboardInterrupt::new_err(()));
        }
        ErrorKind::NoMemory { .. } => return PyMemoryError::new_err(error.to_string()),
        ErrorKind::NotASession { .. } => "InvalidSessionError",
        ErrorKind::TooNew { .. } => "UnsupportedVersionError",
        ErrorKind::Lost { .. } => "SessionFileLostError",
        ErrorKind::Cycle { .. } => "CorruptSessionError",
        ErrorKind::Conflict { .. } => "SessionConflictError",
    };
    named(py, class, error.to_string())
}
