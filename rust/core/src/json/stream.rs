//! The walker for processors with vector instructions: it goes from token to token.
//!
//! [`simd`](crate::simd) finds the tokens of a window of text and checks the insides of strings;
//! here the tokens are checked against the grammar. Where something is wrong, the line is given to
//! the byte-wise walker, which alone says what and where.

use super::levels::Levels;
use super::scalar::{self, Open};
use super::{Deaf, Fault, LineVisitor, Shape, Visitor};
use crate::simd::{Carry, Tokens, Vectors, WINDOW};

/// The width of the first window after a fault. The windows behind it double, so that a file full
/// of faults costs no more than its length.
const NARROW: usize = 64;

/// Walks one line.
pub(super) fn walk<V: Visitor>(
    vectors: Vectors,
    line: &[u8],
    visitor: &mut V,
) -> Result<Shape, Fault> {
    let mut tokens = Tokens::new();
    let mut levels = Levels::new();
    let mut stream = Stream::new(vectors, line, false, &mut tokens);
    let first = stream.next();
    match Walk::new(&mut stream, &mut levels, visitor, 0).run(first) {
        Some((shape, _)) => Ok(shape),
        None => scalar::walk(line, &mut Deaf),
    }
}

/// Walks the lines of `text`.
pub(super) fn lines<V: LineVisitor>(
    vectors: Vectors,
    text: &[u8],
    tokens: &mut Tokens,
    levels: &mut Levels,
    visitor: &mut V,
) {
    let mut stream = Stream::new(vectors, text, true, tokens);
    let mut start = 0;
    while start < text.len() {
        let first = stream.next();
        let blank = stream.ends_line(first);
        let walked = if blank {
            Some((None, first))
        } else {
            let walk = Walk::new(&mut stream, levels, visitor, start);
            walk.run(first).map(|(shape, end)| (Some(shape), end))
        };
        let (answer, end) = if let Some((shape, end)) = walked {
            (Ok(shape), end)
        } else {
            levels.clear();
            let end = stream.pass_line(start);
            let fault = scalar::walk(&text[start..end], &mut Deaf);
            (fault.map(Some), end)
        };
        visitor.line(&text[start..end], start, answer);
        start = end + 1;
    }
}

/// The tokens of a text, one after the other.
struct Stream<'t> {
    text: &'t [u8],
    vectors: Vectors,
    /// Whether line feeds outside strings are tokens.
    newlines: bool,
    /// Where the window begins whose tokens are given out, and where the next one does.
    base: usize,
    ahead: usize,
    /// How wide the next window is to be.
    width: usize,
    carry: Carry,
    tokens: &'t mut Tokens,
    /// How many of the window's tokens have been given out.
    given: usize,
    /// A string behind the tokens is at fault.
    fault: bool,
}

impl<'t> Stream<'t> {
    fn new(vectors: Vectors, text: &'t [u8], newlines: bool, tokens: &'t mut Tokens) -> Self {
        tokens.clear();
        Self {
            text,
            vectors,
            newlines,
            base: 0,
            ahead: 0,
            width: WINDOW,
            carry: Carry::default(),
            tokens,
            given: 0,
            fault: false,
        }
    }

    /// The place of the next token; the text's length behind the last.
    #[inline]
    fn next(&mut self) -> usize {
        match self.tokens.places().get(self.given) {
            Some(&place) => {
                self.given += 1;
                self.base + usize::from(place)
            }
            None => self.refill(),
        }
    }

    #[inline(never)]
    fn refill(&mut self) -> usize {
        while !self.fault && self.ahead < self.text.len() {
            let window = &self.text[self.ahead..];
            let window = &window[..window.len().min(self.width)];
            self.width = (self.width * 2).min(WINDOW);
            self.base = self.ahead;
            self.ahead += window.len();
            let fault = self
                .vectors
                .tokens(window, self.newlines, &mut self.carry, self.tokens);
            self.fault = fault.is_some();
            if let Some(&place) = self.tokens.places().first() {
                self.given = 1;
                return self.base + usize::from(place);
            }
        }
        self.fault |= self.carry.in_string();
        self.text.len()
    }

    /// The byte at a token's place; behind the text a line feed.
    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(b'\n')
    }

    /// The place behind the last byte before `at` that is no white space.
    #[inline]
    fn trimmed(&self, at: usize) -> usize {
        let blank = |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let mut end = at;
        while end > 0 && blank(self.text[end - 1]) {
            end -= 1;
        }
        end
    }

    /// Whether the token ends its line, or the text.
    #[inline]
    fn ends_line(&self, at: usize) -> bool {
        self.byte(at) == b'\n' && !(self.fault && at == self.text.len())
    }

    /// Goes on behind the line that begins at `start`, whatever its tokens were; returns its end.
    #[cold]
    fn pass_line(&mut self, start: usize) -> usize {
        let end = memchr::memchr(b'\n', &self.text[start..]).map_or(self.text.len(), |n| start + n);
        self.ahead = (end + 1).min(self.text.len());
        self.width = NARROW;
        self.carry = Carry::default();
        self.tokens.clear();
        self.given = 0;
        self.fault = false;
        end
    }
}

/// The grammar, over the tokens of one line.
struct Walk<'a, 't, V> {
    stream: &'a mut Stream<'t>,
    levels: &'a mut Levels,
    visitor: &'a mut V,
    /// Where the line begins; the visitor counts from there.
    start: usize,
    /// The open members of depth 1 and 2.
    open: [Open; 2],
}

impl<'a, 't, V: Visitor> Walk<'a, 't, V> {
    #[inline]
    fn new(
        stream: &'a mut Stream<'t>,
        levels: &'a mut Levels,
        visitor: &'a mut V,
        start: usize,
    ) -> Self {
        Self {
            stream,
            levels,
            visitor,
            start,
            open: Open::none(),
        }
    }

    /// Walks the line whose first token is at `at`, with nothing open before and after; returns
    /// its shape and the place of the token that ends it.
    #[inline]
    fn run(mut self, mut at: usize) -> Option<(Shape, usize)> {
        let shape = Shape::of(self.stream.byte(at))?;
        loop {
            match self.stream.byte(at) {
                b'"' => {}
                b'{' => {
                    let key = self.stream.next();
                    if self.stream.byte(key) != b'}' {
                        self.levels.push(true);
                        at = self.key(key)?;
                        continue;
                    }
                }
                b'[' => {
                    let element = self.stream.next();
                    if self.stream.byte(element) != b']' {
                        self.levels.push(false);
                        at = element;
                        continue;
                    }
                }
                _ => self.scalar(at)?,
            }
            let mut next = self.stream.next();
            while self.levels.depth() > 0 {
                self.tell(next);
                if self.stream.byte(next) == b',' {
                    break;
                }
                let close = if self.levels.in_object() { b'}' } else { b']' };
                if self.stream.byte(next) != close {
                    return None;
                }
                self.levels.pop();
                next = self.stream.next();
            }
            if self.levels.depth() == 0 {
                return self.stream.ends_line(next).then_some((shape, next));
            }
            at = self.stream.next();
            if self.levels.in_object() {
                at = self.key(at)?;
            }
        }
    }

    /// Reads the key at `at` and its colon; returns the place of the value.
    #[inline]
    fn key(&mut self, at: usize) -> Option<usize> {
        let colon = self.stream.next();
        if self.stream.byte(at) != b'"' || self.stream.byte(colon) != b':' {
            return None;
        }
        let value = self.stream.next();
        if let Some(depth) = self.levels.told_depth() {
            let key = at + 1..self.stream.trimmed(colon) - 1;
            self.open[depth - 1] = Open { key, value };
        }
        Some(value)
    }

    /// Tells the member whose value ends before `at`, if it is one of the outer ones.
    #[inline]
    fn tell(&mut self, at: usize) {
        if let Some(depth) = self.levels.told_depth() {
            let Open { key, value } = self.open[depth - 1].clone();
            let value = value - self.start..self.stream.trimmed(at) - self.start;
            self.visitor
                .member(depth as u8, &self.stream.text[key], value);
        }
    }

    /// Checks the number or literal at `at` up to where it ends.
    #[inline]
    fn scalar(&self, at: usize) -> Option<()> {
        let end = scalar::scalar_end(self.stream.text, at).ok()?;
        let delimits = |&byte: &u8| b" \t\r\n,:[]{}\"".contains(&byte);
        self.stream.text.get(end).is_none_or(delimits).then_some(())
    }
}
