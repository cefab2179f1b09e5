//! The header of a session file, found without reading the rest.
//!
//! The first value that counts must be the header: an object with `type: "session"` and a string
//! `id`. Blank lines, lines that are no JSON and lines that hold null, false, 0 or "" are passed
//! over; a byte order mark in front is accepted. [`judge`] is that rule, and everything that reads
//! session files asks it. Looking for sessions reads at most [`SCAN_LIMIT`] bytes of each file: the
//! header's LF, or the end of the file, must come within them.

use crate::envelope::{self, Envelope, Key, Kind};
use crate::error::{Error, ErrorKind, Result};
use crate::lines::{self, LineReader, Source};
use crate::place;
use std::io;
use std::path::Path;

#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

/// How many bytes of a file are looked at for its header.
pub const SCAN_LIMIT: u64 = 1 << 20;

/// Bytes read at once: nearly every header is shorter.
const CHUNK: usize = 4096;

/// What a line before the header's says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the header.
    Header,
    /// Look at the next line.
    Pass,
    /// The file is no session, for this reason.
    NoSession(&'static str),
}

/// Judges a line that is JSON and that comes before any header. With `lenient`, objects of another
/// type are passed over.
pub fn judge(text: &[u8], envelope: &Envelope, lenient: bool) -> Verdict {
    if envelope.dropped {
        return Verdict::Pass;
    }
    match (envelope.kind, &envelope.id) {
        (Kind::Header, Key::Text(_)) => Verdict::Header,
        (Kind::Header, _) => Verdict::NoSession("the session header has no string id"),
        _ if lenient && text.trim_ascii_start().first() == Some(&b'{') => Verdict::Pass,
        _ => Verdict::NoSession("the first entry is no session header"),
    }
}

/// The line without a byte order mark.
pub fn without_bom(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}

/// The first bytes of a source.
struct Head<'s, S: ?Sized>(&'s S);

impl<S: Source + ?Sized> Source for Head<'_, S> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.size()?.min(SCAN_LIMIT))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let room = SCAN_LIMIT.saturating_sub(offset).min(buf.len() as u64);
        self.0.read_at(&mut buf[..room as usize], offset)
    }
}

/// The text of the header's line, without byte order mark and LF.
///
/// # Errors
/// [`ErrorKind::NotASession`] with the reason, or what the system says.
pub fn find<S: Source + ?Sized>(source: &S, path: &Path, lenient: bool) -> Result<Vec<u8>> {
    let head = Head(source);
    let mut reader = LineReader::new(&head, 0, 1, CHUNK);
    let mut empty = true;
    while let Some(line) = reader.next_line().map_err(|e| Error::io(e, path))? {
        empty = false;
        let (number, offset) = (line.number, line.offset);
        let no_session = |reason| not_a_session(path, number, offset, reason);
        if !line.terminated && goes_on(source).map_err(|e| Error::io(e, path))? {
            return Err(no_session("no session header in the first 1048576 bytes"));
        }
        let text = without_bom(line.bytes);
        let Ok(envelope) = envelope::read(text) else {
            continue;
        };
        match judge(text, &envelope, lenient) {
            Verdict::Header => return Ok(text.to_vec()),
            Verdict::Pass => {}
            Verdict::NoSession(reason) => return Err(no_session(reason)),
        }
    }
    let reason = if empty {
        "the file is empty"
    } else if goes_on(source).map_err(|e| Error::io(e, path))? {
        "no session header in the first 1048576 bytes"
    } else {
        "no session header"
    };
    Err(not_a_session(path, 1, 0, reason))
}

/// The same of the file that a path names.
pub fn of_file(path: &Path) -> Result<Vec<u8>> {
    let (file, _) = place::open_to_read(path).map_err(|e| Error::io(e, path))?;
    find(&file, path, false)
}

/// The same, if the header is its first line, without a byte order mark.
pub fn first_line(path: &Path) -> Result<Option<Vec<u8>>> {
    let error = |e| Error::io(e, path);
    let (file, _) = place::open_to_read(path).map_err(error)?;
    let text = find(&file, path, false)?;
    let mut line = vec![0; text.len() + 1];
    let is_whole = lines::read_exact_at(&file, &mut line, 0).map_err(error)?;
    let is_first = is_whole && line.pop() == Some(b'\n') && line == text;
    Ok(is_first.then_some(text))
}

/// Whether there is something behind the bytes that are looked at.
fn goes_on<S: Source + ?Sized>(source: &S) -> io::Result<bool> {
    Ok(source.read_at(&mut [0], SCAN_LIMIT)? > 0)
}

pub(crate) fn not_a_session(path: &Path, line: u64, byte: u64, reason: &'static str) -> Error {
    ErrorKind::NotASession {
        path: path.to_owned(),
        line,
        byte,
        reason,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"session","id":"a"}"#;

    fn found(text: &[u8], lenient: bool) -> std::result::Result<String, String> {
        find(text, Path::new("f"), lenient)
            .map(|header| String::from_utf8(header).unwrap())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn the_first_value_that_counts_must_be_the_header() {
        for before in [
            "",
            "\n \r\n",
            "no json\n",
            "0\nnull\n\"\"\nfalse\n",
            "\u{feff}",
            "x\n\u{feff}",
        ] {
            for after in ["", "\n", "\r\n", "\n{}\n"] {
                let text = format!("{before}{HEADER}{after}");
                assert_eq!(
                    found(text.as_bytes(), false).unwrap().trim_end(),
                    HEADER,
                    "{text:?}"
                );
            }
        }
        for other in [
            "{}\n",
            "5\n",
            "[]\n",
            "true\n",
            r#"{"type":"session","id":5}"#,
            r#"{"type":"title"}"#,
        ] {
            let text = format!("{other}\n{HEADER}\n");
            assert!(found(text.as_bytes(), false).is_err(), "{text:?}");
        }
        assert!(found(b"", false).unwrap_err().contains("empty"));
        assert!(
            found(b"x", false)
                .unwrap_err()
                .contains("no session header")
        );
    }

    #[test]
    fn lenient_passes_over_objects_of_another_type_only() {
        let text = format!("{{\"type\":\"title\"}}\n{HEADER}\n");
        assert_eq!(found(text.as_bytes(), true).unwrap(), HEADER);
        for other in ["5", "[]", r#"{"type":"session"}"#] {
            let text = format!("{other}\n{HEADER}\n");
            assert!(found(text.as_bytes(), true).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_header_must_end_within_the_limit() {
        let limit = SCAN_LIMIT as usize;
        for (blanks, after, seen) in [
            (limit - HEADER.len(), "", true),
            (limit - HEADER.len(), "\n", false),
            (limit - HEADER.len() - 1, "\n", true),
            (limit - HEADER.len() - 1, "\nmore", true),
            (limit - HEADER.len() + 1, "", false),
            (limit, "\n", false),
        ] {
            let text = format!("{}{HEADER}{after}", "\n".repeat(blanks));
            assert_eq!(
                found(text.as_bytes(), false).is_ok(),
                seen,
                "{blanks} {after:?}"
            );
        }
        let garbage = vec![b'x'; limit + 5];
        assert!(found(&garbage, false).unwrap_err().contains("1048576"));
    }
}
