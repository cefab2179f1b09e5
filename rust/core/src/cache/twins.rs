//! Saved indexes that are true, damaged, or made up: a true one answers as the scan does, a damaged
//! one is refused, and one that only its own check sum speaks for does no harm.

use super::{MAGIC, RACY, Saved, Stamp, ToSave, read, seams, written};
use crate::index::saved::Out;
use crate::index::twins::answers;
use crate::store::{Backing, Options, Store};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const PATH: &str = "/s.jsonl";
const HEADER: &[u8] = b"{\"type\":\"session\",\"version\":3,\"id\":\"a\"}\n";
const AT: u64 = 100 * RACY;

fn stamp(text: &[u8]) -> Stamp {
    Stamp {
        dev: 1,
        ino: 2,
        size: text.len() as u64,
        mtime: RACY,
        ctime: RACY,
    }
}

/// The whole file that holds these bytes.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    [MAGIC, &xxh3_64(bytes).to_le_bytes()[..], bytes].concat()
}

fn believed(file: &[u8], text: &[u8]) -> Option<Saved> {
    read(file, file.len() as u64, Path::new(PATH), stamp(text), text)
}

fn options() -> Options {
    Options {
        threads: 0,
        ..Options::default()
    }
}

/// A session with this text behind its header, scanned, and its saved index.
fn scanned(text: &[u8]) -> Option<(Store, Vec<u8>)> {
    let store = Store::memory(text.to_vec(), options()).ok()?;
    let seams = seams(text, store.sealed_end).ok()??;
    let what = ToSave {
        index: &store.index,
        report: &store.report,
        sealed_end: store.sealed_end,
        lines: store.lines,
        header: store.header?,
    };
    let bytes = written(Path::new(PATH), stamp(text), AT, seams, &what);
    Some((store, bytes))
}

/// What was saved is what was scanned, and any bit that is not as it was is noticed.
fn check_true(text: &[u8], flip: usize) {
    let Some((mut store, bytes)) = scanned(text) else {
        return;
    };
    let file = sealed(&bytes);
    // The tail is not saved; without its LF it is read again.
    if store.end == store.sealed_end {
        let mut saved = believed(&file, text).unwrap_or_else(|| panic!("refused"));
        assert_eq!(answers(&mut saved.index), answers(&mut store.index));
        assert_eq!(saved.report, store.report);
        assert_eq!(Some(saved.header), store.header);
        assert_eq!(
            (saved.sealed_end, saved.lines),
            (store.sealed_end, store.lines)
        );
    }
    let mut flipped = file;
    let bit = flip % (8 * flipped.len());
    flipped[bit / 8] ^= 1 << (bit % 8);
    assert!(believed(&flipped, text).is_none(), "bit {bit}");
}

/// Numbers in place of some that were saved, with a check sum that is right.
fn check_changed(text: &[u8], changes: &[u8]) {
    let Some((_, mut bytes)) = scanned(text) else {
        return;
    };
    let (changes, _) = changes.as_chunks::<4>();
    for &[low, high, value, sign] in changes {
        let at = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
        let end = bytes.len().min(at + 8);
        let number = u64::from(value) << (sign % 64);
        let number = if sign & 64 == 0 { number } else { !number };
        bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
    }
    check_harmless(&sealed(&bytes), text);
}

/// Anything behind a beginning that is right.
fn check_made_up(text: &[u8], rest: &[u8]) {
    let end = text.len() as u64;
    let Ok(Some((head, tail))) = seams(text, end) else {
        return;
    };
    let mut out = Out::default();
    out.bytes(PATH.as_bytes());
    let now = stamp(text);
    for number in [
        now.dev, now.ino, now.size, now.mtime, now.ctime, AT, end, head, tail,
    ] {
        out.number(number);
    }
    out.0.extend_from_slice(rest);
    check_harmless(&sealed(&out.0), text);
}

/// An index that is believed answers every question, and its lines are read or refused.
fn check_harmless(file: &[u8], text: &[u8]) {
    let Some(saved) = believed(file, text) else {
        return;
    };
    let backing = Backing::Memory(text.to_vec());
    let mut store = Store::empty(Path::new(PATH).to_owned(), backing, options());
    if store.believe(saved).is_err() {
        return;
    }
    drop(answers(&mut store.index));
    let rows = 0..store.index.len() as u32;
    for row in rows.clone() {
        drop(store.line(row));
    }
    drop(store.read_group(&rows.collect::<Vec<_>>(), &mut Vec::new()));
    drop(store.scan(true, &mut || true));
    drop(answers(&mut store.index));
}

/// The first byte chooses what is done with the rest.
pub(crate) fn check(data: &[u8]) {
    let &[how, first, second, ref rest @ ..] = data else {
        return;
    };
    let text = [HEADER, rest].concat();
    match how % 4 {
        0 => assert!(believed(data, &text).is_none()),
        1 => check_made_up(&HEADER.repeat(1 + usize::from(first) % 4), rest),
        2 => check_true(&text, usize::from(u16::from_le_bytes([first, second]))),
        _ => {
            let (changes, lines) = rest.split_at(rest.len() * usize::from(first) / 256);
            check_changed(&[HEADER, lines].concat(), changes);
        }
    }
}
