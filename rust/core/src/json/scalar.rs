//! The walker for every processor, and the one that explains faults.
//!
//! It reads a byte at a time, but for the insides of strings, where eight bytes
//! are looked at together.

use std::ops::Range;

use memchr::memchr;

use super::levels::Levels;
use super::{Fault, LineVisitor, Shape, Visitor};

const END: &str = "unexpected end of the line";

/// Validates `line` and tells `visitor` its outer members.
pub(super) fn walk<V: Visitor>(line: &[u8], visitor: &mut V) -> Result<Shape, Fault> {
    Walker {
        line,
        at: 0,
        levels: Levels::new(),
        open: [None, None],
        visitor,
    }
    .run()
}

/// A member whose value has not ended yet.
pub(super) struct Open {
    /// The key, between its quotes.
    pub(super) key: Range<usize>,
    /// Where the value begins.
    pub(super) value: usize,
}

/// Walks the lines of `text`.
pub(super) fn lines<V: LineVisitor>(text: &[u8], visitor: &mut V) {
    let mut start = 0;
    while start < text.len() && visitor.goes_on() {
        let end = memchr(b'\n', &text[start..]).map_or(text.len(), |length| start + length);
        let line = &text[start..end];
        let blank = line.iter().all(|byte| b" \t\r".contains(byte));
        let answer = if blank {
            Ok(None)
        } else {
            walk(line, visitor).map(Some)
        };
        visitor.line(line, start, answer);
        start = end + 1;
    }
}

struct Walker<'a, V> {
    line: &'a [u8],
    at: usize,
    levels: Levels,
    /// The open members of depth 1 and 2, where the visitor wants to be told of them.
    open: [Option<Open>; 2],
    visitor: &'a mut V,
}

impl<V: Visitor> Walker<'_, V> {
    fn run(mut self) -> Result<Shape, Fault> {
        self.blanks();
        let Some(shape) = self.peek().and_then(Shape::of) else {
            return Err(self.fault("expected a value"));
        };
        loop {
            if self.value()? && !self.ended()? {
                break;
            }
        }
        self.blanks();
        if self.at < self.line.len() {
            return Err(self.fault("unexpected text after the value"));
        }
        Ok(shape)
    }

    /// Reads a scalar, an empty container or the opening of another one; says
    /// whether the value has ended. If not, the next value is due.
    fn value(&mut self) -> Result<bool, Fault> {
        match self.peek() {
            Some(b'"') => {
                self.at = string_end(self.line, self.at + 1)?;
                Ok(true)
            }
            Some(b'{') => self.container(true),
            Some(b'[') => self.container(false),
            _ => {
                self.at = scalar_end(self.line, self.at)?;
                Ok(true)
            }
        }
    }

    fn container(&mut self, object: bool) -> Result<bool, Fault> {
        self.at += 1;
        self.blanks();
        let close = if object { b'}' } else { b']' };
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(true);
        }
        self.levels.push(object);
        if object {
            self.key()?;
        }
        Ok(false)
    }

    /// Reads a key and its colon, up to the value.
    fn key(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a key in quotes"));
        }
        let start = self.at + 1;
        self.at = string_end(self.line, start)?;
        let key = start..self.at - 1;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.fault("expected a colon after the key"));
        }
        self.at += 1;
        self.blanks();
        if let Some(depth) = self.levels.told_depth() {
            let wanted = self.visitor.wants(depth as u8, &self.line[key.clone()]);
            let value = self.at;
            self.open[depth - 1] = wanted.then_some(Open { key, value });
        }
        Ok(())
    }

    /// After a value: closes what ends with it and goes on to the next value;
    /// says whether there is one.
    fn ended(&mut self) -> Result<bool, Fault> {
        while self.levels.depth() > 0 {
            if let Some(depth) = self.levels.told_depth()
                && let Some(Open { key, value }) = self.open[depth - 1].take()
            {
                let key = &self.line[key];
                self.visitor.member(depth as u8, key, value..self.at);
            }
            self.blanks();
            let object = self.levels.in_object();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.blanks();
                    if object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                Some(b'}') if object => {}
                Some(b']') if !object => {}
                _ if object => return Err(self.fault("expected a comma or \"}\"")),
                _ => return Err(self.fault("expected a comma or \"]\"")),
            }
            self.at += 1;
            self.levels.pop();
        }
        Ok(false)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    #[inline]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    #[cold]
    fn fault(&self, reason: &'static str) -> Fault {
        fault(self.line, self.at, reason)
    }
}

/// A fault at `at`; if the line ends there, that is what is wrong.
#[cold]
fn fault(line: &[u8], at: usize, reason: &'static str) -> Fault {
    Fault {
        at,
        reason: if at < line.len() { reason } else { END },
    }
}

/// The place after the closing quote of the string whose first byte after the
/// opening quote is at `at`.
fn string_end(line: &[u8], mut at: usize) -> Result<usize, Fault> {
    loop {
        at += plain(line.get(at..).unwrap_or_default());
        match line.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape_end(line, at + 1)?,
            _ => return Err(fault(line, at, "raw control character in a string")),
        }
    }
}

/// The place after the escape whose first byte after the backslash is at `at`.
fn escape_end(line: &[u8], at: usize) -> Result<usize, Fault> {
    match line.get(at) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => {
            let hex = line[at + 1..]
                .iter()
                .take(4)
                .take_while(|byte| byte.is_ascii_hexdigit());
            match hex.count() {
                4 => Ok(at + 5),
                fewer => Err(fault(
                    line,
                    at + 1 + fewer,
                    "expected four hexadecimal digits",
                )),
            }
        }
        _ => Err(fault(line, at, "unknown escape in a string")),
    }
}

/// How many bytes stand before the first quote, backslash or control character.
#[inline]
pub(super) fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    /// The high bit of each byte that is zero; above the lowest such byte the
    /// borrow may set others, which is why only the lowest is looked at.
    fn zero(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGH
    }
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let quote = zero(word ^ (ONES * u64::from(b'"')));
        let hit = control | quote | zero(word ^ (ONES * u64::from(b'\\')));
        if hit != 0 {
            return index * 8 + hit.trailing_zeros() as usize / 8;
        }
    }
    let rest = words.len() * 8;
    let special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    rest + bytes[rest..]
        .iter()
        .position(special)
        .unwrap_or(bytes.len() - rest)
}

/// The place after the number or literal that begins at `at`.
#[inline]
pub(super) fn scalar_end(line: &[u8], at: usize) -> Result<usize, Fault> {
    match line.get(at) {
        Some(b'-' | b'0'..=b'9') => number_end(line, at),
        Some(b't') => literal_end(line, at, b"true"),
        Some(b'f') => literal_end(line, at, b"false"),
        Some(b'n') => literal_end(line, at, b"null"),
        _ => Err(fault(line, at, "expected a value")),
    }
}

fn literal_end(line: &[u8], at: usize, word: &[u8]) -> Result<usize, Fault> {
    let rest = &line[at..];
    let right = word.iter().zip(rest).take_while(|(a, b)| a == b).count();
    if right < word.len() {
        return Err(fault(line, at + right, "misspelt literal"));
    }
    Ok(at + right)
}

fn number_end(line: &[u8], mut at: usize) -> Result<usize, Fault> {
    at += usize::from(line.get(at) == Some(&b'-'));
    at = match line.get(at) {
        Some(b'0') => at + 1,
        _ => digits_end(line, at)?,
    };
    if line.get(at) == Some(&b'.') {
        at = digits_end(line, at + 1)?;
    }
    if let Some(b'e' | b'E') = line.get(at) {
        at += 1;
        at += usize::from(matches!(line.get(at), Some(b'+' | b'-')));
        at = digits_end(line, at)?;
    }
    Ok(at)
}

/// The place after one or more digits.
fn digits_end(line: &[u8], at: usize) -> Result<usize, Fault> {
    let rest = line.get(at..).unwrap_or_default();
    match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(fault(line, at, "expected a digit")),
        count => Ok(at + count),
    }
}
