//! A path and what a listing shows of its file, as a few bytes.
//!
//! Numbers are little-endian. First come created, version (both with a byte before them that says whether
//! there is one), modified, messages, cost, skipped, size and mtime, 8 bytes each; then texts, each after
//! its length in 4 bytes (`ABSENT`: none): path, id, cwd, first message, parent, name, last role, stop
//! reason. Texts are WTF-8, paths what the system has. Bytes mean something only if they would be written
//! the same.

use super::Summary;
use std::path::PathBuf;

const ABSENT: u32 = u32::MAX;

/// Writes a path and what is shown; false, with part of it written, for a text of 4 GB.
#[must_use]
pub fn put(out: &mut Vec<u8>, path: &[u8], shown: &Summary) -> bool {
    put_number(out, shown.created.map(i64::to_le_bytes));
    put_number(out, shown.version.map(f64::to_le_bytes));
    out.extend(shown.modified.to_le_bytes());
    out.extend(shown.messages.to_le_bytes());
    out.extend(shown.cost.to_le_bytes());
    out.extend(shown.skipped.to_le_bytes());
    out.extend(shown.size.to_le_bytes());
    out.extend(shown.mtime.to_le_bytes());
    let whole = [path, &shown.id, &shown.cwd, &shown.first_message];
    let optional = [
        &shown.parent,
        &shown.name,
        &shown.last_role,
        &shown.stop_reason,
    ];
    let optional = optional.map(|text| text.as_deref());
    let texts = whole.map(Some).into_iter().chain(optional);
    texts.into_iter().all(|text| put_text(out, text))
}

/// Takes what `put` has written from the beginning of some bytes; none if they are damaged.
pub fn take(rest: &mut &[u8]) -> Option<(Vec<u8>, Summary)> {
    let mut shown = Summary {
        created: take_number(rest)?.map(i64::from_le_bytes),
        version: take_number(rest)?.map(f64::from_le_bytes),
        modified: i64::from_le_bytes(take_bytes(rest)?),
        messages: u64::from_le_bytes(take_bytes(rest)?),
        cost: f64::from_le_bytes(take_bytes(rest)?),
        skipped: u64::from_le_bytes(take_bytes(rest)?),
        size: u64::from_le_bytes(take_bytes(rest)?),
        mtime: i64::from_le_bytes(take_bytes(rest)?),
        ..Summary::default()
    };
    let path = take_text(rest)??;
    shown.id = take_text(rest)??;
    shown.cwd = take_text(rest)??;
    shown.first_message = take_text(rest)??;
    shown.parent = take_text(rest)?;
    shown.name = take_text(rest)?;
    shown.last_role = take_text(rest)?;
    shown.stop_reason = take_text(rest)?;
    Some((path, shown))
}

fn put_number(out: &mut Vec<u8>, number: Option<[u8; 8]>) {
    out.push(u8::from(number.is_some()));
    out.extend(number.unwrap_or_default());
}

fn put_text(out: &mut Vec<u8>, text: Option<&[u8]>) -> bool {
    let length = text.map_or(Some(ABSENT), |text| {
        u32::try_from(text.len()).ok().filter(|&n| n != ABSENT)
    });
    out.extend(length.unwrap_or(ABSENT).to_le_bytes());
    out.extend(text.unwrap_or_default());
    length.is_some()
}

/// The next bytes.
pub(crate) fn take_bytes<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

/// A number that may be missing; `None` for damaged bytes.
#[allow(clippy::option_option)]
fn take_number(rest: &mut &[u8]) -> Option<Option<[u8; 8]>> {
    let [given] = take_bytes(rest)?;
    let number = take_bytes(rest)?;
    match given {
        0 if number == [0; 8] => Some(None),
        1 => Some(Some(number)),
        _ => None,
    }
}

/// A text that may be missing; `None` for damaged bytes.
#[allow(clippy::option_option)]
fn take_text(rest: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let length = u32::from_le_bytes(take_bytes(rest)?);
    if length == ABSENT {
        return Some(None);
    }
    let (taken, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = behind;
    Some(Some(taken.to_vec()))
}

/// The path that a system has for some bytes.
#[cfg(unix)]
pub fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// The path that a system has for some bytes: names that are no text are lost where paths are no bytes.
#[cfg(not(unix))]
pub fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
