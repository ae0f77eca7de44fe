//! Adds up the true leaves of a sketch, eight at a time.
//!
//! Half of the time of a search for the most relevant goes into this sum. Each leaf asks for two bits of the event, wherever they
//! are:
//!
//! ```text
//! leaves    a0 b0   a1 b1   a2 b2 ...    two gates of 16 bits, a lane each
//! open      .  1    1  1    1  .         the word of each gate is gathered from the bits of the event
//! weights   w0      w1      w2           a byte each
//! sum               w1
//! ```
//!
//! Wide leaves have gates of 28 bits in two words, which also hold half of the weight each.
//!
//! `unsafe` is here for instructions that not every processor has, which are used after asking for them; for reading eight leaves
//! and eight weights of slices that have as many; and for reading eight words of a slice, whose places are made less than its length
//! first.

/// The weights of the leaves whose gates are both open. There is a weight for each leaf.
#[inline]
pub(super) fn sum_of_narrow(leaves: &[u32], weights: &[u8], bits: &[u64]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && !bits.is_empty() {
        // SAFETY: the processor has these instructions.
        return unsafe { avx2::sum_of_narrow(leaves, weights, bits) };
    }
    sum_of_each(leaves, weights, bits)
}

/// The same of wide leaves.
#[inline]
pub(super) fn sum_of_wide(leaves: &[[u32; 2]], bits: &[u64]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && !bits.is_empty() {
        // SAFETY: the processor has these instructions.
        return unsafe { avx2::sum_of_wide(leaves, bits) };
    }
    sum_of_each_wide(leaves, bits)
}

/// Where the weight is in each word of a wide leaf: four bits.
const WEIGHT: i32 = 28;
const GATE: u32 = (1 << WEIGHT) - 1;

#[inline]
fn is_open(gate: u32, bits: &[u64]) -> u32 {
    (bits[(gate >> 7) as usize] >> (gate >> 1 & 63)) as u32 ^ gate
}

#[inline]
fn sum_of_each_wide(leaves: &[[u32; 2]], bits: &[u64]) -> u32 {
    let counts = |[first, second]: &[u32; 2]| {
        let are_open = is_open(first & GATE, bits) & is_open(second & GATE, bits) & 1;
        are_open * (first >> WEIGHT << 4 | second >> WEIGHT)
    };
    leaves.iter().map(counts).sum()
}

/// The same one by one.
#[inline]
fn sum_of_each(leaves: &[u32], weights: &[u8], bits: &[u64]) -> u32 {
    let counts = |(gates, weight): (&u32, &u8)| {
        (is_open(gates & 0xFFFF, bits) & is_open(gates >> 16, bits) & 1) * u32::from(*weight)
    };
    leaves.iter().zip(weights).map(counts).sum()
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{GATE, WEIGHT, sum_of_each, sum_of_each_wide};

    const AT_ONCE: usize = 8;

    /// There is at least one word of bits.
    #[target_feature(enable = "avx2")]
    pub(super) fn sum_of_narrow(leaves: &[u32], weights: &[u8], bits: &[u64]) -> u32 {
        let mut sums = _mm256_setzero_si256();
        let (whole, rest) = leaves.as_chunks::<AT_ONCE>();
        let (whole_weights, rest_of_weights) = weights.as_chunks::<AT_ONCE>();
        for (leaves, weights) in whole.iter().zip(whole_weights) {
            // SAFETY: there are eight of both.
            let (gates, weights) = unsafe {
                (_mm256_loadu_si256(leaves.as_ptr().cast()), _mm_loadl_epi64(weights.as_ptr().cast()))
            };
            let first = _mm256_and_si256(gates, _mm256_set1_epi32(0xFFFF));
            let open = are_open(first, _mm256_srli_epi32::<16>(gates), bits);
            sums = _mm256_add_epi32(sums, _mm256_and_si256(_mm256_cvtepu8_epi32(weights), open));
        }
        added_up(sums) + sum_of_each(rest, rest_of_weights, bits)
    }

    /// There is at least one word of bits.
    #[target_feature(enable = "avx2")]
    pub(super) fn sum_of_wide(leaves: &[[u32; 2]], bits: &[u64]) -> u32 {
        let mut sums = _mm256_setzero_si256();
        let (whole, rest) = leaves.as_chunks::<AT_ONCE>();
        for leaves in whole {
            let start: *const __m256 = leaves.as_ptr().cast();
            // SAFETY: there are eight, of two words each.
            let (some, more) =
                unsafe { (_mm256_loadu_ps(start.cast()), _mm256_loadu_ps(start.add(1).cast())) };
            // Not in their order, but in the same one.
            let first = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(some, more));
            let second = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(some, more));
            let gate = _mm256_set1_epi32(GATE as i32);
            let open = are_open(_mm256_and_si256(first, gate), _mm256_and_si256(second, gate), bits);
            let high = _mm256_slli_epi32::<4>(_mm256_srli_epi32::<WEIGHT>(first));
            let weights = _mm256_or_si256(high, _mm256_srli_epi32::<WEIGHT>(second));
            sums = _mm256_add_epi32(sums, _mm256_and_si256(weights, open));
        }
        added_up(sums) + sum_of_each_wide(rest, bits)
    }

    /// All ones where both gates are open. There is at least one word of bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn are_open(first: __m256i, second: __m256i, bits: &[u64]) -> __m256i {
        // Half words: a lane has 32 bits.
        let last = _mm256_set1_epi32((2 * bits.len() - 1) as i32);
        let is_open = |gate: __m256i| {
            let word = _mm256_min_epu32(_mm256_srli_epi32::<6>(gate), last);
            // SAFETY: the words are inside: none is behind the last one.
            let words = unsafe { _mm256_i32gather_epi32::<4>(bits.as_ptr().cast(), word) };
            let bit = _mm256_and_si256(_mm256_srli_epi32::<1>(gate), _mm256_set1_epi32(31));
            _mm256_xor_si256(_mm256_srlv_epi32(words, bit), gate)
        };
        let open = _mm256_and_si256(is_open(first), is_open(second));
        _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(open, _mm256_set1_epi32(1)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn added_up(sums: __m256i) -> u32 {
        let halves = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let pairs = _mm_add_epi32(halves, _mm_shuffle_epi32::<0b01_00_11_10>(halves));
        _mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_shuffle_epi32::<0b10_11_00_01>(pairs))) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn eight_at_a_time_add_up_to_the_same(
            words in prop::collection::vec(any::<u64>(), 1..40),
            leaves in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u8>()), 0..70),
        ) {
            let gate = |gate: u16| u32::from(gate) % (128 * words.len() as u32);
            let gates: Vec<u32> = leaves.iter().map(|(a, b, _)| gate(*a) | gate(*b) << 16).collect();
            let weights: Vec<u8> = leaves.iter().map(|(.., weight)| *weight).collect();
            prop_assert_eq!(sum_of_narrow(&gates, &weights, &words), sum_of_each(&gates, &weights, &words));
            let half = |gate_: u16, weight: u8| gate(gate_) | u32::from(weight % 16) << WEIGHT;
            let wide: Vec<[u32; 2]> =
                leaves.iter().map(|(a, b, weight)| [half(*a, weight / 16), half(*b, *weight)]).collect();
            prop_assert_eq!(sum_of_wide(&wide, &words), sum_of_each(&gates, &weights, &words));
        }
    }
}
