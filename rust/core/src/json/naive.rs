//! The slow twin: the grammar written down as it is read, one function a rule,
//! recursive, and telling members from a tree of what it has seen.

use std::ops::Range;

use super::Shape;

/// What a visitor is to be told: depth, raw key, place of the value.
pub(crate) type Told = Vec<(u8, Vec<u8>, Range<usize>)>;

/// The shape and the told members of `line`; `None` if it is no JSON value.
pub(crate) fn walk(line: &[u8]) -> Option<(Shape, Told)> {
    let mut told = Told::new();
    let start = blanks(line, 0);
    let end = value(line, start, 1, &mut told)?;
    (blanks(line, end) == line.len()).then_some((Shape::of(line[start])?, told))
}

fn blanks(line: &[u8], at: usize) -> usize {
    at + line[at..]
        .iter()
        .take_while(|byte| b" \t\r\n".contains(byte))
        .count()
}

/// `depth` is that of members of an object that stands here; 3 tells nothing.
fn value(line: &[u8], at: usize, depth: u8, told: &mut Told) -> Option<usize> {
    match line.get(at)? {
        b'{' => object(line, at, depth, told),
        b'[' => array(line, at, told),
        b'"' => string(line, at),
        b't' => line[at..].starts_with(b"true").then_some(at + 4),
        b'f' => line[at..].starts_with(b"false").then_some(at + 5),
        b'n' => line[at..].starts_with(b"null").then_some(at + 4),
        _ => number(line, at),
    }
}

fn object(line: &[u8], at: usize, depth: u8, told: &mut Told) -> Option<usize> {
    let mut at = blanks(line, at + 1);
    if line.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        let key = at + 1..string(line, at)? - 1;
        at = blanks(line, key.end + 1);
        (line.get(at) == Some(&b':')).then_some(())?;
        let start = blanks(line, at + 1);
        let end = value(line, start, (depth + 1).min(3), told)?;
        if depth < 3 {
            told.push((depth, line[key].to_vec(), start..end));
        }
        at = blanks(line, end);
        match line.get(at)? {
            b',' => at = blanks(line, at + 1),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn array(line: &[u8], at: usize, told: &mut Told) -> Option<usize> {
    let mut at = blanks(line, at + 1);
    if line.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        at = blanks(line, value(line, at, 3, told)?);
        match line.get(at)? {
            b',' => at = blanks(line, at + 1),
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn string(line: &[u8], at: usize) -> Option<usize> {
    (line.get(at)? == &b'"').then_some(())?;
    let mut at = at + 1;
    loop {
        match *line.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if *line.get(at + 1)? == b'u' => {
                let hex = line.get(at + 2..at + 6)?;
                hex.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                at += 6;
            }
            b'\\' if br#""\/bfnrt"#.contains(line.get(at + 1)?) => at += 2,
            b'\\' | 0..0x20 => return None,
            _ => at += 1,
        }
    }
}

fn number(line: &[u8], at: usize) -> Option<usize> {
    let digits = |at: usize| line.get(at..).map_or(0, digits);
    let mut at = at + usize::from(line[at] == b'-');
    at += match digits(at) {
        0 => return None,
        _ if line[at] == b'0' => 1,
        count => count,
    };
    if line.get(at) == Some(&b'.') {
        at += 1 + Some(digits(at + 1)).filter(|&count| count > 0)?;
    }
    if matches!(line.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(line.get(at + 1), Some(b'+' | b'-')));
        at += Some(digits(at)).filter(|&count| count > 0)?;
    }
    Some(at)
}

fn digits(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}
