//! JSON as `JSON.parse` understands it, told without building it.
//!
//! A session file is read by programs that skip a line when `JSON.parse`
//! refuses it, so the scan has to refuse exactly the same lines, and it must do
//! so at the speed of reading. One pass over a line validates it and tells a
//! [`Visitor`] where the members of the outermost two objects lie; nothing is
//! decoded and nothing is allocated.
//!
//! What is accepted:
//! - white space is space, tab, CR and LF, nothing else;
//! - raw control characters below U+0020 are refused inside strings, everything
//!   else is allowed there, invalid UTF-8 and lone surrogate escapes too (the
//!   decoder turns the former into U+FFFD, see [`decode_string`]);
//! - outside strings every byte from 0x80 up is refused, a byte order mark too;
//! - numbers have any length and any exponent;
//! - nesting has no limit: one bit a level is remembered, on the stack for the
//!   first 4,096 levels and on the heap beyond.
//!
//! Everything here is iterative: no input can exhaust the call stack.

pub(crate) mod islands;
mod levels;
mod parts;
mod scalar;
mod stream;
mod text;

#[cfg(any(test, fuzzing))]
pub(crate) mod naive;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
pub(crate) mod twins;

use std::ops::Range;

use crate::simd::{Tokens, Vectors};
use levels::Levels;

pub use parts::{Elements, Members, elements, members};
pub use text::{
    decode_string, is_dropped, key_is, may_hold_minus_zero, number, write_integer, write_number,
};

/// Why a line is no JSON value, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Offset in the line of the first byte that cannot stand there; the line's
    /// length if the line ends too early.
    pub at: usize,
    /// What is wrong, in lower case and without a full stop.
    pub reason: &'static str,
}

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// Any number.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

impl Shape {
    /// The shape of the value that begins with `byte`, if any does.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            b'{' => Self::Object,
            b'[' => Self::Array,
            b'"' => Self::String,
            b'-' | b'0'..=b'9' => Self::Number,
            b't' => Self::True,
            b'f' => Self::False,
            b'n' => Self::Null,
            _ => return None,
        })
    }
}

/// Is told where the members of a line's outermost objects lie.
pub trait Visitor {
    /// One member of an object, told when its value has ended.
    ///
    /// `depth` is 1 for a member of the line's own object and 2 for a member of
    /// an object that is the direct value of such a member; so the members of
    /// depth 2 come before the member of depth 1 that holds them. Duplicate
    /// keys are all told, in order. `key` is the raw text between the quotes
    /// ([`key_is`] compares it), `value` the place of the value's text in the
    /// line, without white space around it.
    ///
    /// If the line turns out to be no JSON value, what was told up to there is
    /// to be thrown away.
    fn member(&mut self, depth: u8, key: &[u8], value: Range<usize>);

    /// Whether such a member is to be told at all; asked when the key has been read.
    ///
    /// Where most are not, it is faster to say so here than to ignore them afterwards.
    #[inline]
    fn wants(&self, _depth: u8, _key: &[u8]) -> bool {
        true
    }

    /// Whether to go on with a text of many lines; asked every few thousand bytes. After a false
    /// nothing is told any more.
    #[inline]
    fn goes_on(&self) -> bool {
        true
    }
}

/// The visitor that listens to nothing.
struct Deaf;

impl Visitor for Deaf {
    fn member(&mut self, _depth: u8, _key: &[u8], _value: Range<usize>) {}

    fn wants(&self, _depth: u8, _key: &[u8]) -> bool {
        false
    }
}

/// Says whether `JSON.parse` accepts `line`, and what kind of value it holds.
///
/// ```
/// use sessiontree_core::json::{Shape, validate};
/// assert_eq!(validate(b" [1, 2] \r"), Ok(Shape::Array));
/// assert_eq!(validate(b"[1, 2").unwrap_err().at, 5);
/// ```
pub fn validate(line: &[u8]) -> Result<Shape, Fault> {
    walk(line, &mut Deaf)
}

/// Validates `line` and tells `visitor` its outer members, in one pass.
///
/// ```
/// use sessiontree_core::json::{Shape, Visitor, walk};
/// struct Keys(Vec<(u8, String)>);
/// impl Visitor for Keys {
///     fn member(&mut self, depth: u8, key: &[u8], _value: std::ops::Range<usize>) {
///         self.0.push((depth, String::from_utf8_lossy(key).into_owned()));
///     }
/// }
/// let mut keys = Keys(Vec::new());
/// assert_eq!(walk(br#"{"a":{"b":[{"c":1}]}}"#, &mut keys), Ok(Shape::Object));
/// assert_eq!(keys.0, [(2, "b".to_owned()), (1, "a".to_owned())]);
/// ```
pub fn walk<V: Visitor>(line: &[u8], visitor: &mut V) -> Result<Shape, Fault> {
    match Vectors::best() {
        Some(vectors) if line.len() >= LONG => stream::walk(vectors, line, visitor),
        _ => scalar::walk(line, visitor),
    }
}

/// Whether a line holds nothing but JSON's white space.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| b" \t\r\n".contains(byte))
}

/// The fault that every line has which begins like this; none if it may still become a value.
pub(crate) fn hopeless(beginning: &[u8]) -> Option<Fault> {
    let fault = validate(beginning).err();
    fault.filter(|fault| fault.at < beginning.len())
}

/// A single line shorter than this is walked byte by byte: setting up the search for tokens
/// costs as much as walking a few hundred bytes.
const LONG: usize = 512;

/// Is told the lines of a text, each after its members.
pub trait LineVisitor: Visitor {
    /// A line has ended: its text without the LF, its place in the whole text, and what it holds;
    /// `None` if that is only white space.
    ///
    /// If it is a fault, the members told since the last line are to be thrown away.
    fn line(&mut self, line: &[u8], start: usize, answer: Result<Option<Shape>, Fault>);
}

/// Walks many lines at once, which is much faster than one by one where they are short.
pub struct Walker {
    vectors: Option<Vectors>,
    tokens: Tokens,
    levels: Levels,
}

impl Walker {
    /// A walker for this processor. It is 9 kB large and has nothing on the heap.
    pub fn new() -> Self {
        Self {
            vectors: Vectors::best(),
            tokens: Tokens::new(),
            levels: Levels::new(),
        }
    }

    /// Validates every line of `text` and tells `visitor` what it holds. A last line needs no LF.
    ///
    /// ```
    /// use sessiontree_core::json::{Fault, LineVisitor, Shape, Visitor, Walker};
    /// struct Lines(Vec<(usize, bool)>);
    /// impl Visitor for Lines {
    ///     fn member(&mut self, _: u8, _: &[u8], _: std::ops::Range<usize>) {}
    /// }
    /// impl LineVisitor for Lines {
    ///     fn line(&mut self, _: &[u8], start: usize, answer: Result<Option<Shape>, Fault>) {
    ///         self.0.push((start, answer.is_ok()));
    ///     }
    /// }
    /// let mut lines = Lines(Vec::new());
    /// Walker::new().lines(b"{}\n{\n\n[]", &mut lines);
    /// assert_eq!(lines.0, [(0, true), (3, false), (5, true), (6, true)]);
    /// ```
    pub fn lines<V: LineVisitor>(&mut self, text: &[u8], visitor: &mut V) {
        match self.vectors {
            Some(vectors) => {
                stream::lines(vectors, text, &mut self.tokens, &mut self.levels, visitor);
            }
            None => scalar::lines(text, visitor),
        }
    }
}

impl Default for Walker {
    fn default() -> Self {
        Self::new()
    }
}
