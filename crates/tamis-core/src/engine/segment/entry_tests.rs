//! Tests runs of access entries and queues the units of those whose test holds, in their order.
//!
//! An event of a large index looks at hundreds of entries or thousands, nearly all of which fail. Which ones is as good as random,
//! so nothing here branches on it. Eight entries are tested at a time, and the units that stay are put side by side:
//!
//! ```text
//! entries   u0 t0 u1 t1 u2 t2 u3 t3 ...
//! tests      .     1     .     1        the word of each is gathered from the bits of the event
//! queued    u1 u3 ?  ?                  eight are written, as many count as hold
//! ```
//!
//! `unsafe` is here for instructions that not every processor has, which are used after asking for them; for reading eight entries at
//! once; and for reading eight words of a slice, whose places are made less than its length first.

use std::ops::Range;

use super::program::Leaf;

/// Queues the units of the entries in some runs whose test holds for these bits.
pub(super) fn queue_entries_that_hold(
    entries: &[[u32; 2]],
    runs: impl Iterator<Item = Range<usize>> + Clone,
    bits: &[u64],
    queue: &mut Vec<u32>,
) {
    let end = queue.len();
    let most: usize = runs.clone().map(|run| run.len()).sum();
    queue.resize(end + most + AT_ONCE, 0);
    let end = queue_all(entries, runs, bits, queue, end);
    queue.truncate(end);
}

/// Entries that are tested together. The queue has room for so many more.
const AT_ONCE: usize = 8;

#[cfg(target_arch = "x86_64")]
fn queue_all(
    entries: &[[u32; 2]],
    runs: impl Iterator<Item = Range<usize>>,
    bits: &[u64],
    queue: &mut [u32],
    end: usize,
) -> usize {
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") && !bits.is_empty() {
        // SAFETY: the processor has these instructions.
        unsafe { avx2::queue_all(entries, runs, bits, queue, end) }
    } else {
        runs.fold(end, |end, run| queue_each(&entries[run], bits, queue, end))
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn queue_all(
    entries: &[[u32; 2]],
    runs: impl Iterator<Item = Range<usize>>,
    bits: &[u64],
    queue: &mut [u32],
    end: usize,
) -> usize {
    runs.fold(end, |end, run| queue_each(&entries[run], bits, queue, end))
}

/// The same one by one.
#[inline]
fn queue_each(entries: &[[u32; 2]], bits: &[u64], queue: &mut [u32], mut end: usize) -> usize {
    for [unit, test] in entries {
        queue[end] = *unit;
        end += Leaf(*test).holds(bits) as usize;
    }
    end
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::{AT_ONCE, queue_each};

    /// For each set of lanes, those in it, and then any.
    static LANES_OF: [u64; 256] = {
        let mut lanes = [0; 256];
        let mut set = 0;
        while set < 256 {
            let (mut lane, mut count) = (0, 0);
            while lane < 8 {
                if set >> lane & 1 == 1 {
                    lanes[set] |= lane << (8 * count);
                    count += 1;
                }
                lane += 1;
            }
            set += 1;
        }
        lanes
    };

    /// There is at least one word of bits.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn queue_all(
        entries: &[[u32; 2]],
        runs: impl Iterator<Item = Range<usize>>,
        bits: &[u64],
        queue: &mut [u32],
        mut end: usize,
    ) -> usize {
        // Half words: a lane has 32 bits.
        let last = _mm256_set1_epi32((2 * bits.len() - 1) as i32);
        let low_bits = _mm256_set1_epi32(31);
        for run in runs {
            let mut at = run.start;
            while at < run.end {
                // Those behind the run are tested, too, and do not count.
                let Some(eight) = entries[at..].first_chunk::<AT_ONCE>() else {
                    end = queue_each(&entries[at..run.end], bits, queue, end);
                    break;
                };
                let counting = 0xFF >> AT_ONCE.saturating_sub(run.end - at);
                let pairs = eight.as_ptr().cast::<__m256i>();
                // SAFETY: eight pairs of 32 bits are two registers, which may lie anywhere.
                let [low, high] = unsafe { [_mm256_loadu_si256(pairs), _mm256_loadu_si256(pairs.add(1))] };
                let [low, high] = [_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)];
                let in_order = |lanes| _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(lanes));
                let units = in_order(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
                let tests = in_order(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
                // A test is twice the bit, and 1 if that must be clear.
                let places = _mm256_min_epu32(_mm256_srli_epi32::<6>(tests), last);
                // SAFETY: no place is beyond the last half word.
                let found = unsafe { _mm256_i32gather_epi32::<4>(bits.as_ptr().cast(), places) };
                let found =
                    _mm256_srlv_epi32(found, _mm256_and_si256(_mm256_srli_epi32::<1>(tests), low_bits));
                let holds = _mm256_slli_epi32::<31>(_mm256_xor_si256(found, tests));
                let set = _mm256_movemask_ps(_mm256_castsi256_ps(holds)) as usize & counting;
                let lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(LANES_OF[set & 0xFF] as i64));
                let kept = _mm256_permutevar8x32_epi32(units, lanes);
                let room: &mut [u32; AT_ONCE] = queue[end..].first_chunk_mut().expect("there is room");
                // SAFETY: the room is that of a register, which may lie anywhere.
                unsafe { _mm256_storeu_si256(room.as_mut_ptr().cast(), kept) };
                end += set.count_ones() as usize;
                at += AT_ONCE;
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Runs of any length anywhere, up to the last entry.
        #[test]
        fn eight_at_a_time_queue_what_each_alone_does(
            tests in prop::collection::vec(0..2 * 640u32, 0..200),
            bits in prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 10),
            cuts in prop::collection::vec(0..=200usize, 0..12),
            queued in prop::collection::vec(any::<u32>(), 0..3),
        ) {
            let entries: Vec<[u32; 2]> = (7..).zip(tests).map(|(unit, test)| [unit, test]).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(entries.len())).collect();
            cuts.sort_unstable();
            let runs = || cuts.as_chunks().0.iter().map(|[from, to]| *from..*to);
            let mut queue = queued.clone();
            queue_entries_that_hold(&entries, runs(), &bits, &mut queue);
            let holding = runs().flat_map(|run| &entries[run]).filter(|[_, test]| Leaf(*test).holds(&bits));
            let expected: Vec<u32> = queued.into_iter().chain(holding.map(|[unit, _]| *unit)).collect();
            prop_assert_eq!(queue, expected);
        }
    }
}
