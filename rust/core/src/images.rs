//! Images in the text of an entry: large, and of no use to most who read the file.
//!
//! An image is an object with a text `data` in base64 and either the type `image` or a media type
//! `image/...`, not deeper than [`DEEP`] levels. One that was moved out has, in the place of its
//! base64, [`MARK`], the SHA-256 of that in hexadecimal, a colon, and its length in decimal.

use memchr::{memchr2, memmem};
use std::ops::Range;

/// What stands before the hash of an image that was moved out.
pub const MARK: &[u8] = b"sessiontree-image:";

/// Levels of nesting that are looked into.
const DEEP: usize = 64;

/// The key of an object's member, as far as it matters.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Key {
    /// It comes next.
    Next,
    #[default]
    Other,
    Data,
    Type,
    Media,
}

/// An open bracket.
#[derive(Clone, Default)]
struct Level {
    object: bool,
    /// What the next string is, or belongs to.
    key: Key,
    data: Range<usize>,
    is_image: bool,
    is_media: bool,
}

/// Where the texts of images stand in a line that is JSON, without their quotes, in order.
///
/// ```
/// use sessiontree_core::images::find;
/// let line = br#"{"content":[{"type":"image","data":"QUJD"},{"type":"text","data":"QUJD"}]}"#;
/// assert_eq!(find(line), [36..40]);
/// ```
pub fn find(line: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if memmem::find(line, b"\"data\"").is_none() {
        return found;
    }
    let mut levels: Vec<Level> = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while let Some(&byte) = line.get(at) {
        let start = at;
        at += 1;
        let level = levels.last_mut().filter(|_| depth <= DEEP);
        match (byte, level) {
            (b'"', level) => {
                at = string_end(line, at);
                if at < start + 2 {
                    break; // no JSON
                }
                if let Some(level) = level {
                    level.take(line, start + 1..at - 1);
                }
            }
            (b'{' | b'[', _) => {
                depth += 1;
                if depth <= DEEP {
                    levels.push(Level::new(byte == b'{'));
                }
            }
            (b'}' | b']', _) => {
                if depth <= DEEP {
                    found.extend(levels.pop().and_then(Level::image));
                }
                depth = depth.saturating_sub(1);
            }
            (b',', Some(level)) if level.object => level.key = Key::Next,
            _ => {}
        }
    }
    found.retain(|place| is_base64(&line[place.clone()]) || moved(&line[place.clone()]).is_some());
    found.sort_unstable_by_key(|place| place.start);
    found
}

/// The hash and the length of an image that was moved out, if this is its text.
pub fn moved(text: &[u8]) -> Option<(&[u8], u64)> {
    let (hash, length) = text.strip_prefix(MARK)?.split_at_checked(64)?;
    let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let digits = length.strip_prefix(b":")?;
    let is_number = digits.first()? != &b'0' && digits.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (is_number && hash.iter().all(hex)).then_some((hash, length))
}

impl Level {
    fn new(object: bool) -> Self {
        Self {
            object,
            key: if object { Key::Next } else { Key::Other },
            ..Self::default()
        }
    }

    /// Takes a string, which is a key or a value.
    fn take(&mut self, line: &[u8], place: Range<usize>) {
        let text = &line[place.clone()];
        match self.key {
            Key::Next => self.key = key_of(text),
            Key::Data => self.data = place,
            Key::Type => self.is_image = text == b"image",
            Key::Media => self.is_media = text.starts_with(b"image/"),
            Key::Other => {}
        }
    }

    fn image(self) -> Option<Range<usize>> {
        let image = self.object && (self.is_image || self.is_media) && !self.data.is_empty();
        image.then_some(self.data)
    }
}

fn key_of(text: &[u8]) -> Key {
    match text {
        b"data" => Key::Data,
        b"type" => Key::Type,
        b"mimeType" | b"mediaType" | b"media_type" => Key::Media,
        _ => Key::Other,
    }
}

/// The place behind the closing quote of the string whose inside begins at `at`.
fn string_end(line: &[u8], mut at: usize) -> usize {
    while let Some(hit) = memchr2(b'"', b'\\', line.get(at..).unwrap_or_default()) {
        at += hit + 1;
        if line[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    line.len()
}

fn is_base64(text: &[u8]) -> bool {
    // Without a way out in the middle of a part, the compiler takes many bytes at once.
    let known = |&b: &u8| {
        let letter = (b | 0x20).wrapping_sub(b'a') < 26;
        let slash_or_digit = b.wrapping_sub(b'/') < 11;
        letter || slash_or_digit || b == b'+' || b == b'='
    };
    let all = |part: &[u8]| part.iter().fold(true, |all, b| all & known(b));
    text.chunks(4096).all(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<&str> {
        find(line.as_bytes())
            .into_iter()
            .map(|place| &line[place])
            .collect()
    }

    /// Images of all kinds are found wherever they are, whatever the order of their members.
    #[test]
    fn images() {
        for (line, wanted) in [
            (r#"{"type":"image","data":"AA=="}"#, &["AA=="][..]),
            (r#"{"data" : "AA+/", "type" : "image" }"#, &["AA+/"]),
            (r#"[[{"a":{"media_type":"image/png","data":"B"}}]]"#, &["B"]),
            (
                r#"{"type":"image","data":"A","x":{"type":"image","data":"B"}}"#,
                &["A", "B"],
            ),
            (
                r#"{"x":{"type":"image","data":"A"},"data":"B","type":"image"}"#,
                &["A", "B"],
            ),
            (
                r#"{"type":"image","source":{"data":"A","mimeType":"image/gif"}}"#,
                &["A"],
            ),
        ] {
            assert_eq!(texts(line), wanted, "{line}");
        }
    }

    /// What is no base64, no image, or only talks about one is left alone.
    #[test]
    fn no_images() {
        for line in [
            r#"{"type":"image","data":""}"#,
            r#"{"type":"image","data":"A B"}"#,
            r#"{"type":"image","data":"\u0041"}"#,
            r#"{"type":"audio","data":"A"}"#,
            r#"{"type":"image","x":{"data":"A"}}"#,
            r#"{"type":"image","data":["A"]}"#,
            r#"{"x":"image","type":["image"],"data":"A"}"#,
            r#"["type","image","data","A"]"#,
            r#"{"x":"{\"type\":\"image\",\"data\":\"A\"}"}"#,
        ] {
            assert_eq!(texts(line), [""; 0], "{line}");
        }
    }

    /// Each byte is one of base64 or not.
    #[test]
    fn bytes_of_base64() {
        for byte in 0..=u8::MAX {
            let wanted = byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
            assert_eq!(is_base64(&[b'A', byte]), wanted, "{byte}");
        }
    }

    /// What is nested too deep is not looked for, and what comes behind it is.
    #[test]
    fn depth() {
        let image = r#"{"type":"image","data":"A"}"#;
        let nested = |levels| "[".repeat(levels) + image + &"]".repeat(levels);
        assert_eq!(texts(&nested(63)), ["A"]);
        assert_eq!(texts(&nested(64)), [""; 0]);
        let line = format!("[{},{image}]", nested(100_000));
        assert_eq!(texts(&line), ["A"]);
    }

    /// Only a mark with a whole hash and a length is one.
    #[test]
    fn marks() {
        let hash = "0123456789abcdef".repeat(4);
        let mark = |hash: &str, length: &str| format!("sessiontree-image:{hash}:{length}");
        assert_eq!(
            moved(mark(&hash, "18446744073709551615").as_bytes()),
            Some((hash.as_bytes(), u64::MAX))
        );
        for text in ["", "AA", "sessiontree-image:", "sessiontree-image:../x"] {
            assert_eq!(moved(text.as_bytes()), None);
        }
        for length in ["", "0", "07", "+7", "-7", "7 ", "18446744073709551616"] {
            assert_eq!(moved(mark(&hash, length).as_bytes()), None, "{length}");
        }
        for hash in [&hash.to_uppercase(), &hash[1..], &format!("{hash}0")] {
            assert_eq!(moved(mark(hash, "7").as_bytes()), None, "{hash}");
        }
    }
}
