//! One text, read in every way there is: at once, in small pieces, as it grew. The store must be the
//! same, or the refusal.

use super::{Backing, Options, Report, Store, Tail};
use crate::index::twins::{Answers, answers};
use std::path::PathBuf;

/// More lines than this are more than walks over all pairs of rows have time for.
const LINES: usize = 40;

/// All that a store knows.
#[derive(Debug, PartialEq)]
pub(crate) struct Known {
    answers: Answers,
    report: Report,
    tail: Tail,
    ends: (u64, u64, u64),
    header: Option<(u64, u64)>,
    text: Vec<u8>,
    session: Vec<u8>,
}

pub(crate) fn known(store: &mut Store) -> Known {
    Known {
        answers: answers(&mut store.index),
        report: store.report.clone(),
        tail: store.tail,
        ends: (store.sealed_end, store.end, store.lines),
        header: store.header,
        text: store.header_text.clone(),
        session: store.session.clone(),
    }
}

/// Scans the pieces of a text one after the other, as `refresh` does with a file that grows.
fn grown(pieces: &[&[u8]], options: Options) -> Result<Known, String> {
    let mut store = Store::empty(PathBuf::new(), Backing::Memory(Vec::new()), options);
    for piece in pieces {
        if let Backing::Memory(bytes) = &mut store.backing {
            bytes.extend_from_slice(piece);
        }
        let result = store.scan(false, &mut || true);
        result.map_err(|error| error.to_string())?;
    }
    Ok(known(&mut store))
}

fn at_once(text: &[u8], options: Options) -> Result<Known, String> {
    let store = Store::memory(text.to_vec(), options);
    store
        .map(|mut store| known(&mut store))
        .map_err(|error| error.to_string())
}

/// Chunks of any size give one answer, and so does a file that is looked at while it grows. The
/// first two bytes choose where it is cut and how large the chunks are.
pub(crate) fn check(data: &[u8]) {
    let &[cut, chunk, ref text @ ..] = data else {
        return;
    };
    if memchr::memchr_iter(b'\n', text).count() > LINES {
        return;
    }
    let whole = Options {
        lenient_header: chunk & 1 == 1,
        threads: 0,
        ..Options::default()
    };
    let pieces = Options {
        chunk: 1 + usize::from(chunk),
        threads: usize::from(cut == 0xff),
        ..whole
    };
    assert_eq!(at_once(text, pieces), at_once(text, whole));
    let (before, behind) = text.split_at(usize::from(cut) * text.len() / 256);
    let expected = grown(&[text], whole);
    assert_eq!(grown(&[before, behind], pieces), expected);
    assert_eq!(grown(&[before, b"", behind], whole), expected);
}
