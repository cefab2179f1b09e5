//! Whole objects in a text that is no JSON.
//!
//! A writer that dies leaves half a line, and the next one writes its line right behind it. So in a
//! damaged line whole objects may stand behind anything, also where the half before them would take
//! them for a value of its own.

use super::{levels::Levels, validate};
use memchr::memchr2;
use std::ops::Range;

/// How objects begin whose places are remembered inside of others: as pi writes entries.
pub(crate) const ENTRY: &[u8] = br#"{"type":""#;

/// What a text holds from some place on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Where the object ends that begins there, if it is whole.
    pub(crate) end: Option<usize>,
    /// If it is not: whole objects in it that begin as entries do, without those inside of them.
    pub(crate) inner: Vec<Range<usize>>,
    /// Where it stops making sense.
    pub(crate) stop: usize,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of an empty array.
    FirstValue,
    Key,
    /// A key, or the end of an empty object.
    FirstKey,
    Colon,
    /// A comma, or the end of the container.
    Behind,
}

/// Reads the object that begins at `start`, or as much as there is of it. Takes as long as the text
/// is that it looks at, whatever stands in it.
pub(crate) fn object_at(text: &[u8], start: usize) -> Beginning {
    let mut reading = Reading {
        text,
        at: start,
        next: Next::Value,
        levels: Levels::new(),
        begun: Vec::new(),
        found: Beginning::default(),
    };
    while reading.step().is_some() {
        if reading.levels.depth() == 0 {
            reading.found.end = Some(reading.at);
            reading.found.inner.clear();
            break;
        }
    }
    reading.found.stop = reading.at;
    reading.found
}

struct Reading<'t> {
    text: &'t [u8],
    at: usize,
    next: Next,
    levels: Levels,
    /// Depth and start of open objects that begin as entries do.
    begun: Vec<(usize, usize)>,
    found: Beginning,
}

impl Reading<'_> {
    /// Takes one token; None where it does not fit, or at the end.
    fn step(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        self.at += rest
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
            .count();
        let byte = *self.text.get(self.at)?;
        match (byte, self.next) {
            (b'{', Next::Value | Next::FirstValue) => self.open_object(),
            (b'[', Next::Value | Next::FirstValue) => self.open(false, Next::FirstValue),
            (b'}', Next::Behind | Next::FirstKey) if self.levels.in_object() => self.close(),
            (b']', Next::Behind | Next::FirstValue) if !self.levels.in_object() => self.close(),
            (b',', Next::Behind) if self.levels.in_object() => self.pass(Next::Key),
            (b',', Next::Behind) | (b':', Next::Colon) => self.pass(Next::Value),
            (b'"', Next::Key | Next::FirstKey) => self.scalar(Next::Colon)?,
            (_, Next::Value | Next::FirstValue) => self.scalar(Next::Behind)?,
            _ => return None,
        }
        Some(())
    }

    fn pass(&mut self, next: Next) {
        self.at += 1;
        self.next = next;
    }

    fn open(&mut self, object: bool, next: Next) {
        self.levels.push(object);
        self.pass(next);
    }

    fn open_object(&mut self) {
        if self.text[self.at..].starts_with(ENTRY) {
            self.begun.push((self.levels.depth(), self.at));
        }
        self.open(true, Next::FirstKey);
    }

    fn close(&mut self) {
        self.levels.pop();
        self.pass(Next::Behind);
        if let Some(&(depth, start)) = self.begun.last()
            && depth == self.levels.depth()
        {
            self.begun.pop();
            while self.found.inner.pop_if(|r| r.start > start).is_some() {}
            self.found.inner.push(start..self.at);
        }
    }

    /// Passes a string, a number or a literal.
    fn scalar(&mut self, next: Next) -> Option<()> {
        let start = self.at;
        self.at = scalar_end(self.text, start);
        self.next = next;
        validate(&self.text[start..self.at]).ok().map(drop)
    }
}

/// The end of the scalar that begins at `at`, sound or not; always behind `at`.
fn scalar_end(text: &[u8], mut at: usize) -> usize {
    if text[at] != b'"' {
        let stop = |b: &u8| b" \t\r\",:{}[]\0".contains(b);
        let rest = &text[at + 1..];
        return at + 1 + rest.iter().position(stop).unwrap_or(rest.len());
    }
    at += 1;
    while let Some(hit) = memchr2(b'"', b'\\', &text[at..]) {
        at += hit + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at = text.len().min(at + 1);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Shape;
    use proptest::prelude::*;

    fn found(text: &str) -> Beginning {
        object_at(text.as_bytes(), 0)
    }

    /// A whole object ends where it ends, whatever follows.
    #[test]
    fn whole_objects() {
        for text in [
            "{}",
            r#"{"a":[1,{"b":"}"}], "c":null}"#,
            r#"{"a":[],"b":{}}"#,
        ] {
            for behind in ["", "x", "{", "}", " "] {
                assert_eq!(
                    found(&format!("{text}{behind}")).end,
                    Some(text.len()),
                    "{text}"
                );
            }
        }
    }

    /// Of a half object the place is told where it stops, and whole entries in it are found.
    #[test]
    fn half_objects() {
        let entry = r#"{"type":"a","x":{"type":"b"}}"#;
        for before in [r#"{"a":"#, r#"{"a":[1,"#, r#"{"type":"c","x":"#] {
            let text = format!("{before}{entry}");
            let Beginning { end, inner, stop } = found(&text);
            assert_eq!((end, inner.len(), stop), (None, 1, text.len()));
            assert_eq!(inner[0], before.len()..text.len());
        }
        let cut = format!(r#"{{"a":"x{entry}"#);
        assert_eq!(found(&cut).stop, r#"{"a":"x{""#.len());
    }

    /// A hundred thousand levels are a matter of a moment, and of little memory.
    #[test]
    fn deep_ones() {
        let half = r#"{"type":"x","a":"#.repeat(100_000);
        assert_eq!(
            found(&half),
            Beginning {
                end: None,
                inner: vec![],
                stop: half.len()
            }
        );
        let whole = format!("{half}1{}!", "}".repeat(100_000));
        assert_eq!(found(&whole).end, Some(whole.len() - 1));
    }

    proptest! {
        /// The naive twin: the shortest beginning that is an object.
        #[test]
        fn as_the_shortest_beginning_that_is_one(text in r#"\{[\[\]{}:,"a1 \\e.t]{0,20}"#) {
            let text = text.as_bytes();
            let wanted = (1..=text.len()).find(|&n| validate(&text[..n]) == Ok(Shape::Object));
            prop_assert_eq!(object_at(text, 0).end, wanted);
        }
    }
}
