//! The header that a look at the first bytes finds, beside the one that a plain split finds, and the
//! one that opening and listing the file find.

use super::{SCAN_LIMIT, Verdict, find, judge, without_bom};
use crate::envelope;
use crate::store::{Options, Store};
use crate::summary::twins::summary;
use std::path::Path;

/// The slow twin: all text in memory, split at its LFs.
fn naive(text: &[u8], lenient: bool) -> Option<Vec<u8>> {
    let limit = SCAN_LIMIT as usize;
    let seen = &text[..text.len().min(limit)];
    for piece in seen.split_inclusive(|&byte| byte == b'\n') {
        let line = piece.strip_suffix(b"\n").unwrap_or(piece);
        if line.len() == piece.len() && text.len() > limit {
            return None;
        }
        let line = without_bom(line);
        let Ok(envelope) = envelope::read(line) else {
            continue;
        };
        match judge(line, &envelope, lenient) {
            Verdict::Header => return Some(line.to_vec()),
            Verdict::Pass => {}
            Verdict::NoSession(_) => return None,
        }
    }
    None
}

/// White space of this length, with or without an LF behind it.
fn blanks(length: usize, lf: bool) -> Vec<u8> {
    let mut blanks = vec![b' '; length];
    if let Some(last) = blanks.last_mut().filter(|_| lf) {
        *last = b'\n';
    }
    blanks
}

/// Looking, opening and listing know one header. The first two bytes choose what stands before the
/// text: nothing, or so much white space that the limit of the look lies somewhere in the text.
pub(crate) fn check(data: &[u8]) {
    let &[how, short, ref text @ ..] = data else {
        return;
    };
    let lenient = how & 1 == 1;
    let far = how >= 0xfc;
    let before = if far {
        blanks(SCAN_LIMIT as usize - usize::from(short), how & 2 == 2)
    } else {
        Vec::new()
    };
    let padded = [&before, text].concat();
    let found = find(&padded[..], Path::new("f"), lenient).ok();
    assert_eq!(found, naive(&padded, lenient));
    if far {
        return;
    }
    let options = Options {
        lenient_header: lenient,
        threads: 0,
        ..Options::default()
    };
    let opened = Store::memory(padded.clone(), options).ok();
    assert_eq!(opened.map(|store| store.header().to_vec()), found);
    let listed = summary(&padded, 1 + usize::from(short), lenient).ok();
    let alone = found.map(|header| super::super::summary::of_header(&header));
    let told = |summary: crate::summary::Summary| (summary.id, summary.cwd, summary.version);
    assert_eq!(listed.map(told), alone.map(told));
}
