//! The parts of a container that has been validated before.

use memchr::memchr2;

/// The members of an object's text, in order, duplicates included.
///
/// The text must have passed [`validate`](super::validate); of other text the
/// iterator makes something and never panics. White space may stand around it.
///
/// ```
/// use sessiontree_core::json::members;
/// let all: Vec<_> = members(br#"{"a": [1, 2], "b": {}}"#).collect();
/// assert_eq!(all, [(&b"a"[..], &b"[1, 2]"[..]), (b"b", b"{}")]);
/// ```
pub fn members(object: &[u8]) -> Members<'_> {
    Members(Cursor::inside(object, b'{'))
}

/// The elements of an array's text, in order; see [`members`].
///
/// ```
/// use sessiontree_core::json::elements;
/// let all: Vec<_> = elements(br#"[1, "x,y", []]"#).collect();
/// assert_eq!(all, [&b"1"[..], br#""x,y""#, b"[]"]);
/// ```
pub fn elements(array: &[u8]) -> Elements<'_> {
    Elements(Cursor::inside(array, b'['))
}

/// Iterator over (raw key between the quotes, text of the value).
#[derive(Debug, Clone)]
pub struct Members<'a>(Cursor<'a>);

/// Iterator over the texts of an array's elements.
#[derive(Debug, Clone)]
pub struct Elements<'a>(Cursor<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.0.value()?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        Some((key, self.0.value()?))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        self.0.value()
    }
}

/// Goes from value to value inside one container; keys count as values.
#[derive(Debug, Clone)]
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn inside(container: &'a [u8], open: u8) -> Self {
        let start = container
            .iter()
            .position(|&byte| !is_blank(byte))
            .unwrap_or(0);
        let rest = container[start..].strip_prefix(&[open]).unwrap_or_default();
        Self { rest }
    }

    /// The next value; `None` at the container's end, and ever after.
    fn value(&mut self) -> Option<&'a [u8]> {
        let between = |&byte: &u8| !is_blank(byte) && byte != b',' && byte != b':';
        let start = self
            .rest
            .iter()
            .position(between)
            .unwrap_or(self.rest.len());
        let text = &self.rest[start..];
        let end = value_end(text);
        if end == 0 {
            self.rest = &[];
            return None;
        }
        self.rest = &text[end..];
        Some(&text[..end])
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The length of the value that `text` begins with; 0 if it begins with none.
fn value_end(text: &[u8]) -> usize {
    match text.first() {
        Some(b'"') => string_end(text, 1),
        Some(b'{' | b'[') => container_end(text),
        _ => {
            let stop = |&byte: &u8| is_blank(byte) || matches!(byte, b',' | b':' | b'}' | b']');
            text.iter().position(stop).unwrap_or(text.len())
        }
    }
}

/// The place after the closing quote of the string whose inside begins at `at`.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(hit) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += hit + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// The place after the bracket that closes the one `text` begins with.
fn container_end(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.len()
}
