//! All walkers side by side: they must tell the same of any text.
//!
//! The tests ask this of texts that were made for it, the fuzzer of whatever it comes upon.

use std::ops::Range;

use super::naive::{self, Told};
use super::{Fault, LineVisitor, Shape, Visitor, Walker, members, scalar, stream, walk};
use crate::simd::Vectors;

/// The slow twin calls itself for every level.
const DEEPEST: usize = 300;

impl Visitor for Told {
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        self.push((depth, key.to_vec(), value));
    }
}

/// What a walker makes of one line.
pub(crate) type Answer = Result<(Shape, Told), Fault>;

/// The answer of a walker.
pub(crate) fn answer(
    walk: impl FnOnce(&[u8], &mut Told) -> Result<Shape, Fault>,
    line: &[u8],
) -> Answer {
    let mut told = Told::new();
    walk(line, &mut told).map(|shape| (shape, told))
}

/// Every walker answers as the slow twin does, all alike, and faults lie where they are said to be.
pub(crate) fn check_line(line: &[u8]) {
    let scalar = answer(scalar::walk, line);
    let text = String::from_utf8_lossy(line);
    if line.iter().filter(|byte| b"[{".contains(byte)).count() < DEEPEST {
        let slow = naive::walk(line);
        assert_eq!(scalar.as_ref().ok(), slow.as_ref(), "{text:?}");
    }
    assert_eq!(answer(walk, line), scalar, "{text:?}");
    for vectors in Vectors::all() {
        let walk = |line: &[u8], told: &mut Told| stream::walk(vectors, line, told);
        assert_eq!(answer(walk, line), scalar, "{vectors:?} {text:?}");
    }
    match scalar {
        Ok((Shape::Object, told)) => check_members(line, &told),
        Ok(_) => {}
        Err(fault) => {
            let early = fault.reason.contains("end of the line");
            assert_eq!(fault.at == line.len(), early, "{fault:?} {text:?}");
            assert!(fault.at <= line.len(), "{fault:?} {text:?}");
        }
    }
}

/// Depth 1 is what `members` gives; depth 2 is what it gives of those values.
pub(crate) fn check_members(line: &[u8], told: &Told) {
    let mut parts = Vec::new();
    for (key, value) in members(line) {
        if value.starts_with(b"{") {
            parts.extend(members(value).map(|(key, value)| (2, key, value)));
        }
        parts.push((1, key, value));
    }
    let told: Vec<_> = told
        .iter()
        .map(|(depth, key, value)| (*depth, &key[..], &line[value.clone()]))
        .collect();
    assert_eq!(told, parts);
}

/// Lines as they are told: place, text, and members if there is a value.
pub(crate) type Lines = Vec<(usize, Vec<u8>, Result<Option<(Shape, Told)>, Fault>)>;

#[derive(Default)]
struct Hearer {
    told: Told,
    lines: Lines,
}

impl Visitor for Hearer {
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>) {
        self.told.member(depth, key, value);
    }
}

impl LineVisitor for Hearer {
    fn line(&mut self, line: &[u8], start: usize, answer: Result<Option<Shape>, Fault>) {
        let told = std::mem::take(&mut self.told);
        let answer = answer.map(|shape| shape.map(|shape| (shape, told)));
        self.lines.push((start, line.to_vec(), answer));
    }
}

fn heard(walk: impl FnOnce(&[u8], &mut Hearer), text: &[u8]) -> Lines {
    let mut hearer = Hearer::default();
    walk(text, &mut hearer);
    hearer.lines
}

/// The slow twin of walking many lines.
fn split(text: &[u8]) -> Lines {
    let mut lines = Lines::new();
    let mut start = 0;
    for piece in text.split_inclusive(|&byte| byte == b'\n') {
        let line = piece.strip_suffix(b"\n").unwrap_or(piece);
        let blank = line.iter().all(|byte| b" \t\r".contains(byte));
        let one = |line| answer(scalar::walk, line).map(Some);
        lines.push((
            start,
            line.to_vec(),
            if blank { Ok(None) } else { one(line) },
        ));
        start += piece.len();
    }
    lines
}

/// Many lines are told as they are told one by one, whatever stands in the lines before.
pub(crate) fn check_lines(text: &[u8]) {
    let expected = split(text);
    assert_eq!(heard(scalar::lines, text), expected);
    for vectors in Vectors::all() {
        let mut walker = Walker {
            vectors: Some(vectors),
            ..Walker::new()
        };
        let lines = heard(|text, hearer| walker.lines(text, hearer), text);
        assert_eq!(lines, expected, "{vectors:?}");
        // The walker is left as it was.
        let again = heard(|text, hearer| walker.lines(text, hearer), text);
        assert_eq!(again, expected, "{vectors:?}");
    }
}
