//! The walker for processors with vector instructions: it goes from token to token.
//!
//! [`simd`](crate::simd) finds the tokens of a window of text and checks the insides of strings;
//! here the tokens are checked against the grammar. Where something is wrong, the line is given to
//! the byte-wise walker, which alone says what and where.
// Without it the walk is no longer one function, its state lives in memory, and it takes half as
// long again.
#![allow(clippy::inline_always)]

use std::ops::Range;

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
    let search = Search::new(vectors, line, false, &mut tokens);
    let mut walk = Walk::new(search, &mut levels, visitor);
    match (walk.line(), walk.shape) {
        (Some(()), Some(shape)) => Ok(shape),
        _ => scalar::walk(line, &mut Deaf),
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
    let search = Search::new(vectors, text, true, tokens);
    let mut walk = Walk::new(search, levels, visitor);
    while walk.start < text.len() {
        let start = walk.start;
        let (answer, end) = if walk.line().is_some() {
            (Ok(walk.shape), walk.place())
        } else if !walk.visitor.goes_on() {
            walk.levels.clear();
            return;
        } else {
            let end = walk.pass_line();
            let fault = scalar::walk(&text[start..end], &mut Deaf);
            (fault.map(Some), end)
        };
        walk.visitor.line(&text[start..end], start, answer);
        walk.start = end + 1;
    }
}

/// Finds the tokens of a text, window by window.
struct Search<'t> {
    text: &'t [u8],
    vectors: Vectors,
    /// Whether line feeds outside strings are tokens.
    newlines: bool,
    /// Where the window begins that was searched last, and where the next one does.
    base: usize,
    ahead: usize,
    /// How wide it is to be.
    width: usize,
    carry: Carry,
    tokens: &'t mut Tokens,
    /// A string behind the tokens is at fault.
    fault: bool,
}

impl<'t> Search<'t> {
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
            fault: false,
        }
    }

    /// Starts anew at `ahead`, where a line begins.
    fn pass(&mut self, ahead: usize) {
        self.ahead = ahead;
        self.width = NARROW;
        self.carry = Carry::default();
        self.fault = false;
        self.tokens.clear();
    }

    /// Searches on for tokens; false if there are none any more.
    #[inline(never)]
    fn refill(&mut self, visitor: &impl Visitor) -> bool {
        while !self.fault && self.ahead < self.text.len() {
            if !visitor.goes_on() {
                self.fault = true;
                break;
            }
            let window = &self.text[self.ahead..];
            let window = &window[..window.len().min(self.width)];
            self.width = (self.width * 2).min(WINDOW);
            self.base = self.ahead;
            self.ahead += window.len();
            let fault = self
                .vectors
                .tokens(window, self.newlines, &mut self.carry, self.tokens);
            self.fault = fault.is_some();
            if self.tokens.count() > 0 {
                return true;
            }
        }
        self.fault |= self.carry.in_string();
        self.tokens.clear();
        false
    }

    /// The place behind the last byte before `at` that is no white space.
    #[inline(always)]
    fn trimmed(&self, at: usize) -> usize {
        let blank = |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let mut end = at;
        while end > 0 && blank(self.text[end - 1]) {
            end -= 1;
        }
        end
    }
}

/// What stands for a token behind the end of the text: it ends a line as well.
const END: u8 = b'\n';

/// The grammar, over the tokens of lines.
struct Walk<'t, 'v, V> {
    search: Search<'t>,
    /// How many tokens of the window have been read.
    read: usize,
    levels: &'t mut Levels,
    /// 1 or 2, if members that end here may be told.
    told: usize,
    visitor: &'v mut V,
    /// Where the line begins; the visitor counts from there.
    start: usize,
    /// What the line holds; none as long as that is nothing.
    shape: Option<Shape>,
    /// The open members of depth 1 and 2, where the visitor wants to be told of them.
    open: [Option<Open>; 2],
}

impl<'t, 'v, V: Visitor> Walk<'t, 'v, V> {
    fn new(search: Search<'t>, levels: &'t mut Levels, visitor: &'v mut V) -> Self {
        Self {
            search,
            read: 0,
            levels,
            told: 0,
            visitor,
            start: 0,
            shape: None,
            open: [None, None],
        }
    }

    /// The next token's byte.
    #[inline(always)]
    fn next(&mut self) -> u8 {
        let token = self.search.tokens.byte(self.read);
        self.read += 1;
        if token == Tokens::MARK {
            return self.next_window();
        }
        token
    }

    /// The same where the window may be at its end.
    #[cold]
    #[inline(never)]
    fn next_window(&mut self) -> u8 {
        if self.read <= self.search.tokens.count() {
            return Tokens::MARK;
        }
        self.read = 0;
        if !self.search.refill(self.visitor) {
            return END;
        }
        self.read = 1;
        self.search.tokens.byte(0)
    }

    /// The place of the token that was read last.
    #[inline(always)]
    fn place(&self) -> usize {
        match self.read {
            0 => self.search.text.len(),
            read => self.place_of(read - 1),
        }
    }

    /// The place of a token of the window.
    #[inline(always)]
    fn place_of(&self, token: usize) -> usize {
        self.search.base + self.search.tokens.place(token)
    }

    /// Whether the token that was read last ends its line, or the text.
    #[inline(always)]
    fn ends_line(&self, token: u8) -> bool {
        token == END && !(self.search.fault && self.read == 0)
    }

    /// Walks a line, with nothing open before and after, up to the token that ends it. If that
    /// fails, `pass_line` has to come next.
    #[inline(always)]
    fn line(&mut self) -> Option<()> {
        let mut token = self.next();
        self.shape = Shape::of(token);
        if self.shape.is_none() {
            return self.ends_line(token).then_some(());
        }
        loop {
            match token {
                b'"' => {}
                b'{' => {
                    token = self.next();
                    if token != b'}' {
                        self.push(true);
                        token = self.key(token)?;
                        continue;
                    }
                }
                b'[' => {
                    token = self.next();
                    if token != b']' {
                        self.push(false);
                        continue;
                    }
                }
                _ => self.scalar(self.place())?,
            }
            loop {
                token = self.next();
                if self.levels.depth() == 0 {
                    return self.ends_line(token).then_some(());
                }
                self.tell();
                let object = self.levels.in_object();
                if token == b',' {
                    token = self.next();
                    if object {
                        token = self.key(token)?;
                    }
                    break;
                }
                if token != if object { b'}' } else { b']' } {
                    return None;
                }
                self.pop();
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, object: bool) {
        self.levels.push(object);
        self.told = self.levels.told_depth().unwrap_or_default();
    }

    #[inline(always)]
    fn pop(&mut self) {
        self.levels.pop();
        self.told = self.levels.told_depth().unwrap_or_default();
    }

    /// Reads on from the first token of a key behind its colon; returns the token of the value.
    ///
    /// Members before that whose value is a string, a number or a literal are read on the way.
    #[inline(always)]
    fn key(&mut self, quote: u8) -> Option<u8> {
        if quote != b'"' {
            return None;
        }
        self.plain_members()?;
        let (key, told) = (self.place() + 1, self.told);
        if self.next() != b':' {
            return None;
        }
        if told == 0 {
            return Some(self.next());
        }
        let key = key..self.search.trimmed(self.place()) - 1;
        let value = self.next();
        let wanted = self.wants(&key);
        self.open[told - 1] = wanted.then(|| Open {
            key,
            value: self.place(),
        });
        Some(value)
    }

    /// Reads members with a plain value, as long as another key follows; from one key's quote to
    /// another's.
    ///
    /// Most members are like that. Reading their four tokens at once takes a third of the time.
    #[inline(always)]
    fn plain_members(&mut self) -> Option<()> {
        loop {
            match self.search.tokens.four(self.read) {
                [b':', b'"', b',', b'"'] => {}
                [b':', b'-' | b'0'..=b'9' | b'f' | b'n' | b't', b',', b'"'] => {
                    self.scalar(self.place_of(self.read + 1))?;
                }
                _ => return Some(()),
            }
            if self.told > 0 {
                let colon = self.place_of(self.read);
                let key = self.place() + 1..self.search.trimmed(colon) - 1;
                if self.wants(&key) {
                    let value = self.place_of(self.read + 1);
                    let end = self.place_of(self.read + 2);
                    self.member(Open { key, value }, end);
                }
            }
            self.read += 4;
        }
    }

    /// Tells the member whose value ends before the last token, if it is to be told.
    #[inline(always)]
    fn tell(&mut self) {
        if self.told > 0
            && let Some(open) = self.open[self.told - 1].take()
        {
            self.member(open, self.place());
        }
    }

    #[inline(always)]
    fn wants(&self, key: &Range<usize>) -> bool {
        let key = &self.search.text[key.clone()];
        self.visitor.wants(self.told as u8, key)
    }

    #[inline(always)]
    fn member(&mut self, open: Open, end: usize) {
        let value = open.value - self.start..self.search.trimmed(end) - self.start;
        let key = &self.search.text[open.key];
        self.visitor.member(self.told as u8, key, value);
    }

    /// Checks the number or literal that begins at `place`, up to where it ends.
    #[inline(always)]
    fn scalar(&self, place: usize) -> Option<()> {
        let text = self.search.text;
        if let Some([b'0'..=b'9', b',' | b'}' | b']', ..]) = text.get(place..) {
            return Some(());
        }
        let end = scalar::scalar_end(text, place).ok()?;
        let end = text.get(end).copied().unwrap_or(END);
        // What begins with one of these is a token, or nothing.
        matches!(
            end,
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"'
        )
        .then_some(())
    }

    /// Leaves the line, whatever its tokens were, to go on behind it; returns where it ends.
    #[cold]
    fn pass_line(&mut self) -> usize {
        let text = self.search.text;
        let length = memchr::memchr(b'\n', &text[self.start..]);
        let end = length.map_or(text.len(), |length| self.start + length);
        self.search.pass((end + 1).min(text.len()));
        self.read = 0;
        self.levels.clear();
        self.told = 0;
        end
    }
}
