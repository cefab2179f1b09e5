//! Each set of instructions against the slow twin.

use super::*;
use proptest::prelude::*;

/// The slow twin: the places of all tokens, and of the first fault.
fn naive(text: &[u8], newlines: bool) -> (Vec<usize>, Option<usize>) {
    let (mut string, mut escape, mut scalar, mut digits) = (false, false, false, 0);
    let mut places = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        let escaped = escape;
        escape = byte == b'\\' && !escaped;
        if digits > 0 {
            digits -= 1;
            if !byte.is_ascii_hexdigit() {
                return (places, Some(at));
            }
        }
        if string {
            if byte < 0x20 || escaped && !br#""\/bfnrtu"#.contains(&byte) {
                return (places, Some(at));
            }
            digits = if escaped && byte == b'u' { 4 } else { digits };
            string = byte != b'"' || escaped;
            continue;
        }
        string = byte == b'"' && !escaped;
        let operator = b"{}[],:\x0c\x1a".contains(&byte);
        let blank = b" \t\r\n".contains(&byte);
        let before = std::mem::replace(&mut scalar, !operator && !blank && !string);
        if string || operator || newlines && byte == b'\n' || scalar && !before {
            places.push(at);
        }
    }
    (places, None)
}

fn fast(
    vectors: Vectors,
    text: &[u8],
    newlines: bool,
    width: usize,
) -> (Vec<usize>, Option<usize>) {
    let (mut carry, mut tokens, mut places) = (Carry::default(), Tokens::new(), Vec::new());
    for (index, window) in text.chunks(width).enumerate() {
        let fault = vectors.tokens(window, newlines, &mut carry, &mut tokens);
        let here = |place: usize| index * width + place;
        for index in 0..tokens.count() {
            assert_eq!(tokens.byte(index), window[tokens.place(index)]);
            places.push(here(tokens.place(index)));
        }
        if fault.is_some() {
            return (places, fault.map(here).filter(|&at| at < text.len()));
        }
    }
    (places, None)
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(&b"\"\"\"\\\\\\u{}[]:, \n\r\t0aF1n"[..]),
        2 => Just(b'x'),
        1 => any::<u8>(),
    ];
    let piece = prop_oneof![
        4 => proptest::collection::vec(byte, 1..20),
        1 => Just(br"\u00e9".to_vec()),
        1 => (1_usize..70).prop_map(|count| vec![b'\\'; count]),
        1 => (1_usize..200).prop_map(|count| vec![b'a'; count]),
        1 => (1_usize..70).prop_map(|count| b"[0],".repeat(count)),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Every set of instructions finds the tokens and the fault that the slow twin finds,
    /// however the text is cut into windows.
    #[test]
    fn finds_what_the_slow_twin_finds(text in text(), newlines: bool, blocks in 1..=WINDOW / BLOCK) {
        let expected = naive(&text, newlines);
        for vectors in Vectors::all() {
            let found = fast(vectors, &text, newlines, blocks * BLOCK);
            prop_assert_eq!(&found, &expected, "{:?}", vectors);
        }
    }
}

/// A window can hold a token at every byte.
#[test]
fn a_window_may_be_all_tokens() {
    for vectors in Vectors::all() {
        let text = vec![b'['; 2 * WINDOW + 1];
        let all = (0..text.len()).collect();
        assert_eq!(fast(vectors, &text, true, WINDOW), (all, None));
    }
}
