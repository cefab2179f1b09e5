//! NEON, which every 64-bit Arm processor has: nothing to ask for when the program runs.

use super::{BLANKS, BLOCK, Carry, ESCAPES_HIGH, ESCAPES_LOW, OPERATORS, Tokens, WINDOW};
#[allow(clippy::wildcard_imports)]
use std::arch::aarch64::*;

search!("neon");

/// Each bit is the sum, mod 2, of the bits up to it.
///
/// The carry-less product that does this at once belongs to an extension that not all have.
fn prefix_xor(mut bits: u64) -> u64 {
    for width in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << width;
    }
    bits
}

#[derive(Clone, Copy)]
struct Block([uint8x16_t; 4]);

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; BLOCK]) -> Block {
    let start = bytes.as_ptr();
    // SAFETY: four times 16 bytes are readable there, at any alignment.
    unsafe {
        Block([
            vld1q_u8(start),
            vld1q_u8(start.add(16)),
            vld1q_u8(start.add(32)),
            vld1q_u8(start.add(48)),
        ])
    }
}

/// A block of fewer bytes, with spaces behind them.
#[inline]
#[target_feature(enable = "neon")]
fn load_tail(bytes: &[u8]) -> Block {
    let mut filled = [b' '; BLOCK];
    filled[..bytes.len()].copy_from_slice(bytes);
    load(&filled)
}

/// One bit for each byte of a block, from the answers to a question: all ones, or zero.
///
/// Of eight neighbours each keeps a bit of its own; adding neighbours three times makes one byte of
/// eight.
#[inline]
#[target_feature(enable = "neon")]
fn bits(block: Block, question: impl Fn(uint8x16_t) -> uint8x16_t) -> u64 {
    // SAFETY: 16 bytes are readable there, at any alignment.
    let own = unsafe { vld1q_u8(OWN_BIT.as_ptr()) };
    let [a, b, c, d] = block.0.map(|part| vandq_u8(question(part), own));
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

const OWN_BIT: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

#[inline]
#[target_feature(enable = "neon")]
fn equal(block: Block, byte: u8) -> u64 {
    bits(block, |part| vceqq_u8(part, vdupq_n_u8(byte)))
}

#[inline]
#[target_feature(enable = "neon")]
fn control(block: Block) -> u64 {
    bits(block, |part| vcltq_u8(part, vdupq_n_u8(0x20)))
}

/// For each byte the entry of its low half; zero for bytes from 0x80 up.
#[inline]
#[target_feature(enable = "neon")]
fn look_up(entries: [u8; 16], part: uint8x16_t) -> uint8x16_t {
    // SAFETY: 16 bytes are readable there, at any alignment.
    let entries = unsafe { vld1q_u8(entries.as_ptr()) };
    vqtbl1q_u8(entries, vandq_u8(part, vdupq_n_u8(0x8f)))
}

#[inline]
#[target_feature(enable = "neon")]
fn plain_escape(block: Block) -> u64 {
    bits(block, |part| {
        let high = look_up(ESCAPES_HIGH, vshrq_n_u8::<4>(part));
        vtstq_u8(look_up(ESCAPES_LOW, part), high)
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn hexadecimal(block: Block) -> u64 {
    bits(block, |part| {
        let digit = vsubq_u8(part, vdupq_n_u8(b'0'));
        let lower = vorrq_u8(part, vdupq_n_u8(0x20));
        let letter = vsubq_u8(lower, vdupq_n_u8(b'a'));
        let is_letter = vcleq_u8(letter, vdupq_n_u8(5));
        vorrq_u8(vcleq_u8(digit, vdupq_n_u8(9)), is_letter)
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn blank(block: Block) -> u64 {
    bits(block, |part| vceqq_u8(part, look_up(BLANKS, part)))
}

/// Operators, and two control characters that are taken for such here; the grammar looks again.
#[inline]
#[target_feature(enable = "neon")]
fn operator(block: Block) -> u64 {
    bits(block, |part| {
        let braces = vorrq_u8(part, vdupq_n_u8(0x20));
        vceqq_u8(braces, look_up(OPERATORS, part))
    })
}

/// Appends the bytes whose bits are set, and their places, counted from `at`.
#[inline]
#[target_feature(enable = "neon")]
fn push(block: Block, bits: u64, at: u16, out: &mut Tokens) {
    let mut bytes = [0; BLOCK];
    for (part, place) in block.0.into_iter().zip(bytes.as_chunks_mut::<16>().0) {
        // SAFETY: there is room for 16 bytes, at any alignment.
        unsafe { vst1q_u8(place.as_mut_ptr(), part) };
    }
    super::push_each(&bytes, bits, at, out);
}
