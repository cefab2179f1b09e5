//! Finding the tokens of JSON text with vector instructions: the one module with `unsafe`.
//!
//! A token is what the grammar has to look at: a bracket, comma or colon, the opening quote of a
//! string, the first byte of a number or literal, and, where lines are told apart, a line feed
//! outside a string. Sixty-four bytes are looked at together. Each question ("which of them are
//! quotes?") gives a word with one bit a byte, and nearly everything else is arithmetic on such
//! words, without branches:
//!
//! - `escaped`: the bytes that a backslash stands before which is not itself escaped;
//! - `inside`: the prefix sum (mod 2) of the unescaped quotes, by a carry-less product: the bytes
//!   from an opening quote up to before the closing one;
//! - tokens: operators that are not inside, opening quotes, first bytes of other runs.
//!
//! Strings are checked here for good: no raw control character, no unknown escape, four digits
//! after `\u`. At the first such fault the tokens end. Bytes outside strings are not checked; every
//! run of bytes that are no operators and no white space begins with a token, and the grammar has
//! to look at the whole run.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_macros)
)]

/// How many bytes are searched at once. The places of a window's tokens stay in the first-level
/// cache beside its text.
pub(crate) const WINDOW: usize = 2048;

/// One block: a bit a byte.
const BLOCK: usize = 64;

/// Room for the tokens of a window, and for a whole block's behind the last one. It is a power of
/// two, so that an index can be cut to it instead of being checked.
const ROOM: usize = 2 * WINDOW;

/// How many tokens are looked at together.
const AHEAD: usize = 4;

/// The tokens of a window.
pub(crate) struct Tokens {
    /// Where they are, counted from the window's start.
    places: [u16; ROOM],
    /// What stands there; behind the last one, [`Tokens::MARK`].
    bytes: [u8; ROOM + AHEAD],
    count: usize,
}

impl Tokens {
    /// Stands behind the last token. It can be a token as well, but never in a valid text.
    pub(crate) const MARK: u8 = 0xff;

    pub(crate) fn new() -> Self {
        Self {
            places: [0; ROOM],
            bytes: [Self::MARK; ROOM + AHEAD],
            count: 0,
        }
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.bytes[0] = Self::MARK;
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The place of one, counted from the window's start.
    #[inline]
    pub(crate) fn place(&self, index: usize) -> usize {
        usize::from(self.places[index % ROOM])
    }

    /// The bytes of four in a row; what comes behind the last one's mark means nothing.
    #[inline]
    pub(crate) fn four(&self, index: usize) -> [u8; AHEAD] {
        let index = index % ROOM;
        let mut four = [Self::MARK; AHEAD];
        four.copy_from_slice(&self.bytes[index..index + AHEAD]);
        four
    }

    /// The byte of one.
    #[inline]
    pub(crate) fn byte(&self, index: usize) -> u8 {
        self.bytes[index % ROOM]
    }
}

/// What a window hands to the next one; the default stands for the start of a text.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Carry {
    /// All ones if the window ended inside a string.
    string: u64,
    /// 1 if it ended in a backslash that escapes the next byte.
    escape: u64,
    /// 1 if it ended in the middle of a number, a literal, or nonsense outside strings.
    scalar: u64,
    /// The first bytes that have to be hexadecimal digits.
    digits: u64,
}

impl Carry {
    /// Whether the text ends inside a string.
    pub(crate) fn in_string(self) -> bool {
        self.string != 0
    }

    /// The bytes that are escaped, from those that are backslashes.
    ///
    /// In a run of backslashes every other one escapes what follows it. Adding the backslashes
    /// that begin a run at an odd place carries a bit through each such run to the byte behind it;
    /// runs that begin at an even place end where they would without that. Which of the two a run
    /// is then tells whether its even or its odd places are escaped.
    #[inline]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = u64::MAX / 3;
        let before = self.escape;
        let escaping = backslashes & !before;
        let follows = escaping << 1 | before;
        let odd_starts = escaping & !EVEN & !follows;
        let (ends, overflow) = odd_starts.overflowing_add(escaping);
        self.escape = u64::from(overflow);
        (EVEN ^ ends << 1) & follows
    }

    /// The bytes that have to be hexadecimal digits, from those that are the `u` of an escape.
    #[inline]
    fn digits_due(&mut self, units: u64) -> u64 {
        let due = units << 1 | units << 2 | units << 3 | units << 4 | self.digits;
        self.digits = units >> 63 | units >> 62 | units >> 61 | units >> 60;
        due
    }

    /// The first bytes of runs of `scalars`.
    #[inline]
    fn starts(&mut self, scalars: u64) -> u64 {
        let starts = scalars & !(scalars << 1 | self.scalar);
        self.scalar = scalars >> 63;
        starts
    }
}

/// A set of vector instructions that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vectors(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
}

impl Vectors {
    /// The fastest set; none means that the byte-wise walker has to do.
    #[inline]
    pub(crate) fn best() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::present() {
                return Some(Self(Set::Avx512));
            }
            if avx2::present() {
                return Some(Self(Set::Avx2));
            }
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        return Some(Self(Set::Neon));
        #[cfg(not(all(target_arch = "aarch64", target_endian = "little")))]
        None
    }

    /// Every set that this processor has.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        let sets = [
            avx2::present().then_some(Set::Avx2),
            avx512::present().then_some(Set::Avx512),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let sets = [Self::best().map(|best| best.0)];
        sets.into_iter().flatten().map(Self).collect()
    }

    /// Finds the tokens of `window`, at most [`WINDOW`] bytes, which follows what `carry` has seen.
    ///
    /// Every window but a text's last one is a multiple of 64 bytes long. Returns the place of the
    /// first fault in a string, behind which there are no tokens; a text that ends inside a string
    /// may have it behind its end. After a fault `carry` is of no use.
    #[inline]
    pub(crate) fn tokens(
        self,
        window: &[u8],
        newlines: bool,
        carry: &mut Carry,
        out: &mut Tokens,
    ) -> Option<usize> {
        let newlines = if newlines { u64::MAX } else { 0 };
        out.count = 0;
        let fault = match self.0 {
            // SAFETY: a `Vectors` of this set is made only where the processor has it.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::tokens(window, newlines, carry, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::tokens(window, newlines, carry, out) },
            // SAFETY: the target has it.
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Set::Neon => unsafe { neon::tokens(window, newlines, carry, out) },
        };
        out.bytes[out.count % ROOM] = Tokens::MARK;
        fault
    }
}

/// The search itself, written once and compiled for each set of instructions. The module around it
/// provides `Block` and the questions to one.
macro_rules! search {
    ($features:literal) => {
        #[target_feature(enable = $features)]
        pub(super) fn tokens(
            window: &[u8],
            newlines: u64,
            carry: &mut Carry,
            out: &mut Tokens,
        ) -> Option<usize> {
            let mut state = *carry;
            for at in (0..window.len().min(WINDOW)).step_by(BLOCK) {
                let block = match window[at..].first_chunk() {
                    Some(bytes) => load(bytes),
                    None => load_tail(&window[at..]),
                };
                let escaped = state.escaped(equal(block, b'\\'));
                let quotes = equal(block, b'"') & !escaped;
                let before = state.string;
                let inside = prefix_xor(quotes) ^ before;
                state.string = (inside as i64 >> 63) as u64;

                let mut faults = control(block) & inside;
                let odd = escaped & inside & !plain_escape(block);
                if odd | state.digits != 0 {
                    let units = odd & equal(block, b'u');
                    faults |= odd & !units | state.digits_due(units) & !hexadecimal(block);
                }
                if faults | !before | quotes == 0 {
                    continue;
                }
                let operators = operator(block);
                let scalars = !(operators | blank(block) | inside | quotes);
                let mut tokens = state.starts(scalars) | quotes & inside;
                tokens |= (operators | newlines & equal(block, b'\n')) & !inside;
                if faults != 0 {
                    tokens &= (faults & faults.wrapping_neg()) - 1;
                    push(block, tokens, at as u16, out);
                    return Some(at + faults.trailing_zeros() as usize);
                }
                push(block, tokens, at as u16, out);
            }
            *carry = state;
            None
        }
    };
}

/// A question that needs carry-less products.
#[cfg(target_arch = "x86_64")]
macro_rules! prefix_xor {
    ($features:literal) => {
        /// Each bit is the sum, mod 2, of the bits up to it.
        #[inline]
        #[target_feature(enable = $features)]
        fn prefix_xor(bits: u64) -> u64 {
            let product =
                _mm_clmulepi64_si128(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1), 0);
            _mm_cvtsi128_si64(product) as u64
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(test)]
mod tests;

/// Appends the bytes whose bits are set, one by one, and their places, counted from `at`.
// It is compiled with the instructions of the function that it becomes a part of.
#[allow(clippy::inline_always)]
#[inline(always)]
fn push_each(bytes: &[u8; BLOCK], mut bits: u64, at: u16, out: &mut Tokens) {
    let range = out.count..out.count + bits.count_ones() as usize;
    let places = out.places.get_mut(range.clone()).unwrap_or_default();
    let out_bytes = out.bytes.get_mut(range.clone()).unwrap_or_default();
    for (place, byte) in places.iter_mut().zip(out_bytes) {
        let bit = bits.trailing_zeros();
        *place = at + bit as u16;
        *byte = bytes[bit as usize & (BLOCK - 1)];
        bits &= bits.wrapping_sub(1);
    }
    out.count = range.end;
}

/// For each low half of a byte: the white space that ends in it; 0xff is never asked for.
const BLANKS: [u8; 16] = *b" \xff\xff\xff\xff\xff\xff\xff\xff\t\n\xff\xff\r\xff\xff";
/// For each low half of a byte: the operator that ends in it, brackets as braces.
const OPERATORS: [u8; 16] = *b"\0\0\0\0\0\0\0\0\0\0:{,}\0\0";
/// Letters after a backslash, other than `u`: for each low and each high half of a byte the
/// letters it can belong to, a bit for each high half. Only a letter has a bit in both.
const ESCAPES_LOW: [u8; 16] = [
    0, 0, 0b1101, 0, 0b1000, 0, 0b100, 0, 0, 0, 0, 0, 0b10, 0, 0b100, 1,
];
const ESCAPES_HIGH: [u8; 16] = [0, 0, 1, 0, 0, 0b10, 0b100, 0b1000, 0, 0, 0, 0, 0, 0, 0, 0];
