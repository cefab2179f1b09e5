//! AVX-512 with byte compression (VBMI2): Ice Lake, Zen 4 and later.

use super::{BLANKS, BLOCK, Carry, ESCAPES_HIGH, ESCAPES_LOW, OPERATORS, Tokens, WINDOW};
#[allow(clippy::wildcard_imports)]
use std::arch::x86_64::*;

pub(super) fn present() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

search!("avx512f,avx512bw,avx512vbmi2,pclmulqdq,bmi1,bmi2,popcnt");
prefix_xor!("avx512f,pclmulqdq");

type Block = __m512i;

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; BLOCK]) -> Block {
    // SAFETY: 64 bytes are readable there, at any alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// A block of fewer bytes, with spaces behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn load_tail(bytes: &[u8]) -> Block {
    let mask = _bzhi_u64(u64::MAX, bytes.len().min(BLOCK) as u32);
    // SAFETY: bytes whose bit in the mask is 0 are not touched, and those with a 1 are there.
    unsafe { _mm512_mask_loadu_epi8(_mm512_set1_epi8(32), mask, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn equal(block: Block, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte as i8))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn control(block: Block) -> u64 {
    _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn table(entries: [u8; 16]) -> Block {
    // SAFETY: 16 bytes are readable there, at any alignment.
    let entries = unsafe { _mm_loadu_si128(entries.as_ptr().cast()) };
    _mm512_broadcast_i32x4(entries)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn plain_escape(block: Block) -> u64 {
    let high = _mm512_and_si512(_mm512_srli_epi16(block, 4), _mm512_set1_epi8(15));
    let low = _mm512_shuffle_epi8(table(ESCAPES_LOW), block);
    _mm512_test_epi8_mask(low, _mm512_shuffle_epi8(table(ESCAPES_HIGH), high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn hexadecimal(block: Block) -> u64 {
    let below = |from: i8, count: i8, block: Block| {
        let offset = _mm512_sub_epi8(block, _mm512_set1_epi8(from));
        _mm512_cmplt_epu8_mask(offset, _mm512_set1_epi8(count))
    };
    let lower = _mm512_or_si512(block, _mm512_set1_epi8(0x20));
    below(b'0' as i8, 10, block) | below(b'a' as i8, 6, lower)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn blank(block: Block) -> u64 {
    _mm512_cmpeq_epi8_mask(block, _mm512_shuffle_epi8(table(BLANKS), block))
}

/// Operators, and two control characters that are taken for such here; the grammar looks again.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn operator(block: Block) -> u64 {
    let braces = _mm512_or_si512(block, _mm512_set1_epi8(0x20));
    _mm512_cmpeq_epi8_mask(braces, _mm512_shuffle_epi8(table(OPERATORS), block))
}

/// Appends the bytes whose bits are set, and their places, counted from `at`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn push(block: Block, mask: u64, at: u16, out: &mut Tokens) {
    let Some(places) = out
        .places
        .get_mut(out.count..)
        .and_then(<[_]>::first_chunk_mut::<BLOCK>)
    else {
        return;
    };
    let Some(bytes) = out
        .bytes
        .get_mut(out.count..)
        .and_then(<[_]>::first_chunk_mut::<BLOCK>)
    else {
        return;
    };
    let kept = _mm512_maskz_compress_epi8(mask, block);
    // SAFETY: there is room for 64 bytes, at any alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), kept) };
    let packed = _mm512_maskz_compress_epi8(mask, iota());
    let base = _mm512_set1_epi16(at as i16);
    let wide = |half| _mm512_add_epi16(base, _mm512_cvtepu8_epi16(half));
    let first = wide(_mm512_castsi512_si256(packed));
    // SAFETY: there is room for 32 places of two bytes, at any alignment.
    unsafe { _mm512_storeu_si512(places.as_mut_ptr().cast(), first) };
    let count = mask.count_ones() as usize;
    if count > 32 {
        let second = wide(_mm512_extracti64x4_epi64::<1>(packed));
        // SAFETY: there is room for another 32 behind them.
        unsafe { _mm512_storeu_si512(places.as_mut_ptr().add(32).cast(), second) };
    }
    out.count += count;
}

/// 0, 1, ..., 63
#[inline]
#[target_feature(enable = "avx512f")]
fn iota() -> Block {
    const IOTA: [u8; BLOCK] = {
        let mut iota = [0; BLOCK];
        let mut at = 0;
        while at < BLOCK {
            iota[at] = at as u8;
            at += 1;
        }
        iota
    };
    load(&IOTA)
}
