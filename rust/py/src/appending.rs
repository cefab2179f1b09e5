//! Appending message entries: from Python's values to the bytes in the file, in one call.

use crate::access::no_row;
use crate::keys::{key_of, text_bytes, to_python};
use crate::store::{Counts, Store, counts};
use crate::written::Writer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use sessiontree_core::append::{Change, How};
use sessiontree_core::compose::{Lines, Time};
use sessiontree_core::envelope::Key;
use sessiontree_core::{Row, store::Store as Core};
use std::time::{SystemTime, UNIX_EPOCH};

/// What came of an append of messages.
#[derive(IntoPyObject)]
pub enum Appended<'py> {
    /// Nobody else was there; the last row.
    Alone(Row),
    /// What else was met, and the id of the parent.
    Met((Counts, Bound<'py, PyAny>)),
}

/// Without others, an append changes nothing but the end of the file.
const ALONE: Change = Change {
    foreign: 0,
    replaced: false,
    rebuilt: false,
    sealed: false,
    written: true,
};

impl Store {
    /// Appends one message, at the time it is; None, with nothing done, if an entry has the id, or if
    /// the message or the time has to be written by others.
    pub(crate) fn add_message<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        id: &str,
        leaf: Option<Row>,
        how: How,
    ) -> PyResult<Option<Appended<'py>>> {
        let py = message.py();
        let look = |core: &mut Core| match core.index().find(&key_of(id)) {
            Some(_) => Ok(None),
            None => parent_key(core, leaf).map(Some),
        };
        let Some(parent) = self.with(py, look)? else {
            return Ok(None);
        };
        let mut lines = Lines::below(parent.clone());
        let add = |time| {
            lines.message(id.as_bytes(), time, |out| {
                Writer::default().write(message, out)
            })
        };
        match now().and_then(add) {
            Some(()) => self.add_lines(py, &lines, &parent, how).map(Some),
            None => Ok(None),
        }
    }

    /// Appends messages, each of which hangs on the one before; without times at the time it is. None,
    /// with nothing done, if something has to be written by others.
    pub(crate) fn add_messages<'py>(
        &self,
        messages: &Bound<'py, PyList>,
        ids: &[Bound<'py, PyString>],
        leaf: Option<Row>,
        times: Option<&[String]>,
        how: How,
    ) -> PyResult<Option<Appended<'py>>> {
        let py = messages.py();
        let wanted = messages.len();
        if ids.len() != wanted || times.is_some_and(|times| times.len() != wanted) {
            return Err(PyValueError::new_err("each message needs an id and a time"));
        }
        let parent = self.with(py, |core| parent_key(core, leaf))?;
        let mut lines = Lines::below(parent.clone());
        let mut writer = Writer::of_many();
        let now = now();
        for (n, (message, id)) in messages.iter().zip(ids).enumerate() {
            let time = match times {
                Some(times) => Time::of(times[n].as_bytes()),
                None => now,
            };
            let write = |out: &mut Vec<u8>| writer.write(&message, out);
            let Some(time) = time else { return Ok(None) };
            let done = match id.to_str() {
                Ok(id) => lines.message(id.as_bytes(), time, write),
                Err(_) => lines.message(&text_bytes(id)?, time, write),
            };
            if done.is_none() {
                return Ok(None);
            }
            if n == 0 {
                lines.expect(wanted - 1);
            }
        }
        self.add_lines(py, &lines, &parent, how).map(Some)
    }

    fn add_lines<'py>(
        &self,
        py: Python<'py>,
        lines: &Lines,
        parent: &Key,
        how: How,
    ) -> PyResult<Appended<'py>> {
        let (change, rows) = self.long(py, |core, go_on| {
            let change = core.append_composed(lines, how, go_on)?;
            Ok((change, core.index().len()))
        })?;
        if change == ALONE {
            return Ok(Appended::Alone((rows - 1) as Row));
        }
        let parent = match parent {
            Key::Text(_) => to_python(py, parent)?,
            _ => py.None().into_bound(py),
        };
        Ok(Appended::Met((counts(change), parent)))
    }
}

fn parent_key(core: &Core, leaf: Option<Row>) -> PyResult<Key> {
    match leaf {
        None => Ok(Key::Null),
        Some(row) if (row as usize) < core.index().len() => Ok(core.index().id(row)),
        Some(_) => Err(no_row()),
    }
}

fn now() -> Option<Time> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Time::at(i64::try_from(since.as_millis()).ok()?)
}
