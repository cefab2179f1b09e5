//! AVX2 with carry-less products: Haswell, Zen and later.

use super::{BLANKS, BLOCK, Carry, ESCAPES_HIGH, ESCAPES_LOW, OPERATORS, Tokens, WINDOW};
#[allow(clippy::wildcard_imports)]
use std::arch::x86_64::*;

pub(super) fn present() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

search!("avx2,pclmulqdq,bmi1,bmi2,popcnt");
prefix_xor!("avx2,pclmulqdq");

#[derive(Clone, Copy)]
struct Block(__m256i, __m256i);

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; BLOCK]) -> Block {
    let start = bytes.as_ptr();
    // SAFETY: twice 32 bytes are readable there, at any alignment.
    unsafe {
        Block(
            _mm256_loadu_si256(start.cast()),
            _mm256_loadu_si256(start.add(32).cast()),
        )
    }
}

/// A block of fewer bytes, with spaces behind them.
#[inline]
#[target_feature(enable = "avx2")]
fn load_tail(bytes: &[u8]) -> Block {
    let mut filled = [b' '; BLOCK];
    filled[..bytes.len()].copy_from_slice(bytes);
    load(&filled)
}

#[inline]
#[target_feature(enable = "avx2")]
fn bits(low: __m256i, high: __m256i) -> u64 {
    let half = |part| u64::from(_mm256_movemask_epi8(part) as u32);
    half(low) | half(high) << 32
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(block: Block, byte: u8) -> u64 {
    let byte = _mm256_set1_epi8(byte as i8);
    bits(
        _mm256_cmpeq_epi8(block.0, byte),
        _mm256_cmpeq_epi8(block.1, byte),
    )
}

/// Whether bytes, as unsigned numbers, are at most `most`.
#[inline]
#[target_feature(enable = "avx2")]
fn at_most(part: __m256i, most: u8) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_min_epu8(part, _mm256_set1_epi8(most as i8)), part)
}

#[inline]
#[target_feature(enable = "avx2")]
fn control(block: Block) -> u64 {
    bits(at_most(block.0, 0x1f), at_most(block.1, 0x1f))
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(entries: [u8; 16]) -> __m256i {
    // SAFETY: 16 bytes are readable there, at any alignment.
    let entries = unsafe { _mm_loadu_si128(entries.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(entries)
}

#[inline]
#[target_feature(enable = "avx2")]
fn plain_escape(block: Block) -> u64 {
    let (low, high) = (table(ESCAPES_LOW), table(ESCAPES_HIGH));
    let none = |part| {
        let upper = _mm256_and_si256(_mm256_srli_epi16(part, 4), _mm256_set1_epi8(15));
        let both = _mm256_and_si256(
            _mm256_shuffle_epi8(low, part),
            _mm256_shuffle_epi8(high, upper),
        );
        _mm256_cmpeq_epi8(both, _mm256_setzero_si256())
    };
    !bits(none(block.0), none(block.1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn hexadecimal(block: Block) -> u64 {
    let test = |part| {
        let lower = _mm256_or_si256(part, _mm256_set1_epi8(0x20));
        let digit = _mm256_sub_epi8(part, _mm256_set1_epi8(b'0' as i8));
        let letter = _mm256_sub_epi8(lower, _mm256_set1_epi8(b'a' as i8));
        _mm256_or_si256(at_most(digit, 9), at_most(letter, 5))
    };
    bits(test(block.0), test(block.1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn blank(block: Block) -> u64 {
    let test = |part| _mm256_cmpeq_epi8(part, _mm256_shuffle_epi8(table(BLANKS), part));
    bits(test(block.0), test(block.1))
}

/// Operators, and two control characters that are taken for such here; the grammar looks again.
#[inline]
#[target_feature(enable = "avx2")]
fn operator(block: Block) -> u64 {
    let test = |part| {
        let braces = _mm256_or_si256(part, _mm256_set1_epi8(0x20));
        _mm256_cmpeq_epi8(braces, _mm256_shuffle_epi8(table(OPERATORS), part))
    };
    bits(test(block.0), test(block.1))
}

/// Appends the bytes whose bits are set, and their places, counted from `at`.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn push(block: Block, bits: u64, at: u16, out: &mut Tokens) {
    let mut bytes = [0; BLOCK];
    // SAFETY: there is room for twice 32 bytes, at any alignment.
    unsafe {
        _mm256_storeu_si256(bytes.as_mut_ptr().cast(), block.0);
        _mm256_storeu_si256(bytes.as_mut_ptr().add(32).cast(), block.1);
    }
    super::push_each(&bytes, bits, at, out);
}
