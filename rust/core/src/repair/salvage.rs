//! Entries in a line that is no JSON.
//!
//! Right behind the beginning of the line, or behind an entry, every object with a type counts. Behind
//! anything else it must have what pi gives an entry, so that an object that half an entry talks about
//! is not taken for one.

use super::parts::{self, Parts};
use crate::envelope::Key;
use crate::json::islands::{self, ENTRY};
use crate::json::{self, Shape};
use memchr::memmem;
use std::ops::Range;

/// A part of a damaged line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) place: Range<usize>,
    /// Whether it is an entry, or the rest.
    pub(super) sound: bool,
}

/// Cuts a line into entries and the rest; only blanks are left out.
pub(super) fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut cut = Cut {
        text,
        pieces: Vec::new(),
        done: 0,
    };
    let mut at = 0;
    while let Some(start) = cut.candidate(at) {
        let flush = cut.is_flush(start);
        let found = islands::object_at(text, start);
        if let Some(end) = found.end {
            cut.take(start..end, flush);
            at = end;
            continue;
        }
        for inner in found.inner {
            cut.take(inner, false);
        }
        // An object that begins in a string ends that string with its first quote.
        at = found.stop.saturating_sub(2).max(start + 1).max(cut.done);
    }
    cut.rest(text.len());
    cut.pieces
}

/// Whether there are only blanks, or zeros as a crash may leave them.
pub(super) fn is_void(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | 0))
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r'))
}

struct Cut<'t> {
    text: &'t [u8],
    pieces: Vec<Piece>,
    /// What lies before has its place.
    done: usize,
}

impl Cut<'_> {
    /// Where the next object may begin.
    fn candidate(&self, at: usize) -> Option<usize> {
        if at == self.done {
            let void = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | 0);
            let start = at + self.text[at..].iter().take_while(|b| void(b)).count();
            if self.text.get(start) == Some(&b'{') {
                return Some(start);
            }
        }
        memmem::find(&self.text[at..], ENTRY).map(|found| at + found)
    }

    fn is_flush(&self, start: usize) -> bool {
        is_void(&self.text[self.done..start])
    }

    /// Takes an object, if it is an entry.
    fn take(&mut self, place: Range<usize>, flush: bool) {
        if !is_entry(&self.text[place.clone()], flush) {
            return;
        }
        self.rest(place.start);
        self.done = place.end;
        self.pieces.push(Piece { place, sound: true });
    }

    /// What lies between has no place.
    fn rest(&mut self, end: usize) {
        let place = self.done..end;
        if !is_blank(&self.text[place.clone()]) {
            self.pieces.push(Piece {
                place,
                sound: false,
            });
        }
    }
}

fn is_entry(text: &[u8], flush: bool) -> bool {
    let mut parts = Parts::default();
    if json::walk(text, &mut parts) != Ok(Shape::Object) {
        return false;
    }
    let value = |place: &Range<usize>| &text[place.clone()];
    let is_string = |place| parts::inside(value(place)).is_some();
    let header = parts::is_text(value(&parts.kind), "session");
    is_string(&parts.kind)
        && (flush
            || is_string(&parts.id)
                && is_string(&parts.time)
                && (header || parts::key(value(&parts.parent)) != Key::Missing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"{\"type\":\"x\"}"}}"#;
    const BARE: &str = r#"{"type":"custom"}"#;

    fn cut(text: &str) -> Vec<(&str, bool)> {
        let pieces = pieces(text.as_bytes());
        let part = |piece: Piece| (&text[piece.place], piece.sound);
        pieces.into_iter().map(part).collect()
    }

    /// Entries that are glued to each other, to halves, to zeros and to garbage are found.
    #[test]
    fn glued_ones() {
        assert_eq!(cut(&format!("{A}{A}")), [(A, true), (A, true)]);
        assert_eq!(cut(&format!("{BARE} {BARE}")), [(BARE, true), (BARE, true)]);
        assert_eq!(cut(&format!("\0\0{BARE}")), [("\0\0", false), (BARE, true)]);
        assert_eq!(
            cut(&format!("{A}\0\0 {BARE}x")),
            [(A, true), ("\0\0 ", false), (BARE, true), ("x", false)]
        );
        for half in [
            "x",
            r#"{"type":"mess"#,
            r#"{"type":"message","id":"#,
            r#"{"a":[{"type":"b"},"#,
            r#"{"a":"\"#,
        ] {
            assert_eq!(
                cut(&format!("{half}{A}")),
                [(half, false), (A, true)],
                "{half}"
            );
            assert_eq!(
                cut(&format!("{A}{half}")),
                [(A, true), (half, false)],
                "{half}"
            );
        }
    }

    /// What an entry talks about, or holds, is none.
    #[test]
    fn contents_are_no_entries() {
        for text in [
            format!("x{BARE}"),
            format!(r#"{{"type":"message","message":{BARE}"#),
            A[..A.len() - 3].to_owned(),
        ] {
            assert_eq!(cut(&text), [(text.as_str(), false)]);
        }
    }

    /// A line of the same half over and over costs no more than its length.
    #[test]
    fn hostile_ones() {
        for half in [ENTRY, br#"{"type":"a","b":"#, br#"{"type":"a{"#] {
            let text = half.repeat(200_000);
            assert_eq!(pieces(&text).iter().filter(|p| p.sound).count(), 0);
        }
    }

    proptest! {
        /// Pieces come in order and leave out only blanks.
        #[test]
        fn nothing_is_left_out(parts in prop::collection::vec(
            prop_oneof![Just(A), Just(BARE), Just("\0"), Just(" "), Just("x\\\""), Just("{\"type\":\""), Just("{\"a\":")], 0..8)
        ) {
            let text = parts.concat();
            let mut done = 0;
            for piece in pieces(text.as_bytes()) {
                prop_assert!(piece.place.start >= done && is_blank(&text.as_bytes()[done..piece.place.start]));
                prop_assert!(!piece.sound || json::validate(&text.as_bytes()[piece.place.clone()]).is_ok());
                done = piece.place.end;
            }
            prop_assert!(is_blank(&text.as_bytes()[done..]));
        }
    }
}
