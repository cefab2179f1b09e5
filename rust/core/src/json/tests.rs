//! Tests of the walker against its slow twin, `serde_json` and plain examples.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::twins::{answer, check_line, check_lines, check_members};
use super::{Fault, LineVisitor, Shape, Visitor, Walker};
use super::{decode_string, elements, is_dropped, key_is, members, number, validate, walk};

/// The number of cases of each property; `SESSIONTREE_CASES` sets another.
fn cases(usual: u32) -> ProptestConfig {
    let set = std::env::var("SESSIONTREE_CASES")
        .ok()
        .and_then(|text| text.parse().ok());
    ProptestConfig::with_cases(set.unwrap_or(usual))
}

/// A valid JSON text with white space, odd strings and odd numbers.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?",
        string(),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let item = (blank(), inner.clone(), blank())
            .prop_map(|(a, b, c)| a + &b + &c)
            .boxed();
        let member = (blank(), string(), blank(), item.clone())
            .prop_map(|(a, key, b, value)| format!("{a}{key}{b}:{value}"));
        prop_oneof![
            (blank(), vec(item, 0..8)).prop_map(|(gap, items)| wrap('[', &gap, &items, ']')),
            (blank(), vec(member, 0..8)).prop_map(|(gap, items)| wrap('{', &gap, &items, '}')),
        ]
    })
}

fn wrap(open: char, gap: &str, items: &[String], close: char) -> String {
    let gap = if items.is_empty() { gap } else { "" };
    format!("{open}{gap}{}{close}", items.join(","))
}

fn blank() -> BoxedStrategy<String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r\n]{0,3}", 1 => " {0,70}"].boxed()
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ -!#-\\[\\]-~]{0,12}",
        1 => "[a-z{}:,\\[\\]]{0,150}",
        2 => "(\\\\[\"\\\\/bfnrt]){1,9}",
        1 => "\\\\u[0-9a-fA-F]{4}",
        1 => "\\PC{0,4}".prop_map(|text| text.replace(['"', '\\'], "\u{e9}")),
        1 => prop::sample::select(vec!["id", "type", "\u{7f}\u{80}\u{2028}", "\u{1f680}"])
            .prop_map(str::to_owned),
    ];
    vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// One change to a text: at a place, take some bytes away and put others there.
type Change = (prop::sample::Index, usize, Vec<u8>);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let byte = prop_oneof![
        4 => prop::sample::select(&b"{}[]:,\"\\ \t\r\n0123456789.-+eEtfnu/abxyz"[..]),
        1 => any::<u8>(),
    ];
    vec(
        (any::<prop::sample::Index>(), 0_usize..3, vec(byte, 0..3)),
        0..4,
    )
}

fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut line = text.as_bytes().to_vec();
    for (index, taken, put) in changes {
        let at = index.index(line.len() + 1);
        let end = (at + taken).min(line.len());
        line.splice(at..end, put.iter().copied());
    }
    line
}

fn serde_accepts(line: &[u8]) -> bool {
    let mut reader = serde_json::Deserializer::from_slice(line);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader)
        .and_then(|serde::de::IgnoredAny| reader.end())
        .is_ok()
}

/// Every walker must answer as the slow twin and `serde_json` do.
fn check(line: &[u8]) {
    check_line(line);
    let text = String::from_utf8_lossy(line);
    assert_eq!(serde_accepts(line), validate(line).is_ok(), "{text:?}");
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Many lines are told as they are told one by one, whatever stands in the lines before.
    #[test]
    fn lines_are_told_as_each_by_itself(parts in vec((json(), changes(), "\n{1,2}"), 0..12)) {
        let mut text = Vec::new();
        for (json, changes, end) in parts {
            text.extend(changed(&json, &changes));
            text.extend(end.as_bytes());
        }
        check_lines(&text);
        check_lines(&text[..text.len().saturating_sub(1)]);
    }

    /// Valid and slightly broken texts are judged and told as the slow twin does.
    #[test]
    fn agrees_with_the_slow_twin(text in json(), changes in changes()) {
        check(&changed(&text, &changes));
    }

    /// A text is valid as generated, at whatever offset from a block's start.
    #[test]
    fn accepts_what_is_valid(text in json(), shift in 0_usize..130) {
        let line = " ".repeat(shift) + &text;
        check(line.as_bytes());
        prop_assert!(validate(line.as_bytes()).is_ok());
    }

    /// Every cut of a text is judged as the slow twin does.
    #[test]
    fn agrees_at_every_cut(text in json()) {
        for end in 0..text.len().min(300) {
            check(&text.as_bytes()[..end]);
        }
    }

    /// Arbitrary bytes give an answer, the same as the slow twin's.
    #[test]
    fn survives_any_bytes(line in vec(any::<u8>(), 0..300)) {
        check(&line);
    }

    /// The members and elements of a container are those a full parse finds.
    #[test]
    fn parts_are_those_of_a_full_parse(text in json()) {
        let parse = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
        match parse(text.as_bytes()) {
            Some(serde_json::Value::Array(items)) => {
                let parts: Vec<_> = elements(text.as_bytes()).filter_map(parse).collect();
                prop_assert_eq!(parts, items);
            }
            Some(serde_json::Value::Object(items)) => {
                let part = |(key, value)| Some((decoded(key), parse(value)?));
                let parts: serde_json::Map<_, _> =
                    members(text.as_bytes()).filter_map(part).collect();
                prop_assert_eq!(parts, items);
            }
            _ => {}
        }
    }

    /// Depth 1 is what `members` gives; depth 2 is what it gives of those values.
    #[test]
    fn told_members_are_the_parts(text in json()) {
        if let Ok((Shape::Object, told)) = answer(walk, text.as_bytes()) {
            check_members(text.as_bytes(), &told);
        }
    }

    /// The iterators over parts end on any bytes.
    #[test]
    fn parts_of_any_bytes_end(text in vec(any::<u8>(), 0..200), open in "[\\[{ ]") {
        let text = [open.as_bytes(), &text].concat();
        prop_assert!(elements(&text).count() <= text.len());
        prop_assert!(members(&text).count() <= text.len());
    }

    /// Decoding agrees with `serde_json` wherever that accepts the string.
    #[test]
    fn decodes_as_serde_does(text in string()) {
        if let Ok(value) = serde_json::from_str::<String>(&text) {
            prop_assert_eq!(&*decode_string(&text.as_bytes()[1..text.len() - 1]), value.as_bytes());
        }
    }

    /// Decoding any bytes gives text in WTF-8 and keeps what UTF-8 there was.
    #[test]
    fn decodes_any_bytes(raw in vec(any::<u8>(), 0..100)) {
        if !raw.contains(&b'\\') {
            let lossy = String::from_utf8_lossy(&raw);
            prop_assert_eq!(&*decode_string(&raw), lossy.as_bytes());
        }
        let _ = decode_string(&raw);
        let _ = number(&raw);
        let _ = key_is(&raw, "id");
    }

    /// A number's value is that of the language's own parser.
    #[test]
    fn numbers_have_their_value(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,5})?") {
        prop_assert_eq!(Ok(number(text.as_bytes()).to_bits()), text.parse::<f64>().map(f64::to_bits));
    }
}

fn decoded(raw: &[u8]) -> String {
    String::from_utf8_lossy(&decode_string(raw)).into_owned()
}

/// Nothing is told any more once the visitor has had enough, and the walker can be used again.
#[test]
fn ends_when_the_visitor_has_enough() {
    struct Asked(std::cell::Cell<u32>, u32);
    impl Visitor for Asked {
        fn member(&mut self, _: u8, _: &[u8], _: Range<usize>) {}
        fn goes_on(&self) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() > 0
        }
    }
    impl LineVisitor for Asked {
        fn line(&mut self, _: &[u8], _: usize, answer: Result<Option<Shape>, Fault>) {
            assert!(answer.is_ok());
            self.1 += 1;
        }
    }
    let text = format!("{{\"a\":[\"{}\"]}}\n", "x".repeat(5000)).repeat(10);
    let mut walker = Walker::new();
    for asked in [1, 2, 3, 10] {
        let mut visitor = Asked(asked.into(), 0);
        walker.lines(text.as_bytes(), &mut visitor);
        assert!(visitor.1 < asked, "{asked}");
    }
    let mut visitor = Asked(u32::MAX.into(), 0);
    walker.lines(text.as_bytes(), &mut visitor);
    assert_eq!(visitor.1, 10);
}

/// Nesting is followed beyond the levels that are remembered without allocating.
#[test]
fn nesting_has_no_limit() {
    for depth in [
        1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 4160, 4161, 1_000_000,
    ] {
        let open = "{\"a\":[".repeat(depth / 2) + &"[".repeat(depth % 2);
        let close = "]".repeat(depth % 2) + &"]}".repeat(depth / 2);
        assert!(
            validate((open.clone() + "0" + &close).as_bytes()).is_ok(),
            "{depth}"
        );
        let wrong = close.replacen(']', "}", 1);
        let fault = validate((open.clone() + "0" + &wrong).as_bytes()).map_err(|fault| fault.at);
        assert_eq!(fault, Err(open.len() + 1), "{depth}");
        assert!(
            validate((open.clone() + "0" + &close[1..]).as_bytes()).is_err(),
            "{depth}"
        );
        assert!(
            validate((open + "0" + &close + "]").as_bytes()).is_err(),
            "{depth}"
        );
    }
}

/// What `JSON.parse` accepts and other parsers do not is accepted.
#[test]
fn accepts_what_javascript_accepts() {
    let digits = "9".repeat(5000);
    for line in [
        b"\"\\ud800\"".as_slice(),
        b"\"\\udc00\\ud800\"",
        b"{\"\\ud800\":1}",
        b"1e400",
        b"-1e99999999999",
        digits.as_bytes(),
        b"\"\xff\xc0\x80\xed\xa0\x80\"",
        b"\"\x7f\xc2\x80\xe2\x80\xa8\"",
        b" \t\r\n0\r",
        b"{\"a\":1,\"a\":2}",
    ] {
        assert!(validate(line).is_ok(), "{}", String::from_utf8_lossy(line));
    }
}

/// What `JSON.parse` refuses and other parsers accept is refused, at the place.
#[test]
fn refuses_what_javascript_refuses() {
    for (line, at) in [
        (b"".as_slice(), 0),
        (b"  ", 2),
        (b"NaN", 0),
        (b"-Infinity", 1),
        (b"\xef\xbb\xbf{}", 0),
        (b"\x0b1", 0),
        (b"1\xc2\xa0", 1),
        (b"\"\x1f\"", 1),
        (b"\"a\tb\"", 2),
        (b"01", 1),
        (b"1.", 2),
        (b".5", 0),
        (b"1e+", 3),
        (b"[1,]", 3),
        (b"{\"a\":1,}", 7),
        (b"{a:1}", 1),
        (b"{\"a\" 1}", 5),
        (b"\"\\x41\"", 2),
        (b"\"\\u12g4\"", 5),
        (b"\"\\u12", 5),
        (b"\"abc", 4),
        (b"\"abc\\", 5),
        (b"nulL", 3),
        (b"{} {}", 3),
        (b"[1}", 2),
        (b"{\"a\":1]", 6),
        (b"]", 0),
        (b"'a'", 0),
    ] {
        let fault = validate(line).map_err(|fault| fault.at);
        assert_eq!(fault, Err(at), "{}", String::from_utf8_lossy(line));
    }
}

/// Surrogates are joined where they are a pair and kept where they are not.
#[test]
fn decodes_surrogates() {
    for (raw, text) in [
        (r"\ud83d\ude80", "\u{1f680}".as_bytes()),
        (r"\uD83D\uDE80!", "\u{1f680}!".as_bytes()),
        (r"\ude80\ud83d", b"\xed\xba\x80\xed\xa0\xbd"),
        (r"\ud83d\ud83d\ude80", b"\xed\xa0\xbd\xf0\x9f\x9a\x80"),
        (r"\ud83dx", b"\xed\xa0\xbdx"),
        (r"\ud83d\n", b"\xed\xa0\xbd\n"),
        (r"\u0000\u00e9\u20ac", b"\0\xc3\xa9\xe2\x82\xac"),
        (r#"\"\\\/\b\f\n\r\t"#, b"\"\\/\x08\x0c\n\r\t"),
    ] {
        assert_eq!(&*decode_string(raw.as_bytes()), text, "{raw}");
    }
}

/// Every maximal part that is not UTF-8 becomes one replacement character.
#[test]
fn decodes_invalid_utf8_as_whatwg_does() {
    for (raw, text) in [
        (b"\xff".as_slice(), "\u{fffd}"),
        (b"a\xe2\x82b", "a\u{fffd}b"),
        (b"\xe2\x82\\n", "\u{fffd}\n"),
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        (b"\xf0\x9f\x9a", "\u{fffd}"),
        (b"\xf0\x80\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        (b"\xc0\xaf", "\u{fffd}\u{fffd}"),
    ] {
        assert_eq!(&*decode_string(raw), text.as_bytes(), "{raw:?}");
    }
}

/// Exactly the values that are falsy in JavaScript are dropped.
#[test]
fn drops_what_is_falsy() {
    for (line, dropped) in [
        ("null", true),
        (" false\r", true),
        ("0", true),
        ("-0", true),
        ("0.0e5", true),
        ("1e-400", true),
        ("\t\"\" ", true),
        ("5e-324", false),
        ("1e400", false),
        ("\" \"", false),
        ("true", false),
        ("[]", false),
        ("{}", false),
    ] {
        let shape = validate(line.as_bytes());
        assert_eq!(
            shape.map(|shape| is_dropped(line.as_bytes(), shape)),
            Ok(dropped),
            "{line}"
        );
    }
}

/// A key is compared by its value, not by its spelling.
#[test]
fn compares_keys_by_value() {
    assert!(key_is(b"parentId", "parentId"));
    assert!(key_is(br"p\u0061rentId", "parentId"));
    assert!(!key_is(br"p\u0041rentId", "parentId"));
    assert!(!key_is(b"parentId ", "parentId"));
    assert!(!key_is(br"\\id", "id"));
}
