//! 512 events at once against one segment: a bit per event.
//!
//! Every access key gets a mask of the events that fired it, and a unit is evaluated once for all of
//! them: its code runs on masks instead of bits. Where one event follows a jump and another does
//! not, both ways are taken, each with its events. A mask that is empty ends its way at once, so
//! units that concern no event of the block cost next to nothing.
//!
//! Comparisons are runs of consecutive bits: each event toggles a run's first and last mask, and one
//! pass over the cuts turns toggles into masks.
//!
//! Units are run by the code that runs them for one event (`segment/unit_evaluation.rs`). The walk over candidates is
//! its own: sharing that of `segment/walk.rs` made blocks 15 % slower (100,000 dense expressions).

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::layout::{ACCEPTS, Layout, code_place};
use super::masks::Masks;
use super::program::Leaf;
use super::unit_evaluation::{Evaluation, Paths, REJECTED, Truth};
use crate::predicate::bits::Bits;
use crate::predicate::block_lookup::Fires;
use crate::predicate::catalog::Fired;
use crate::prefetch::prefetch;

/// Events in a block.
pub const WIDTH: usize = 512;
const LANES: usize = WIDTH / 64;

/// One bit per event of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Mask(pub [u64; LANES]);

impl Mask {
    pub const NONE: Mask = Mask([0; LANES]);

    /// The first `events` events.
    pub fn first(events: usize) -> Self {
        let mut mask = Mask::NONE;
        for (lane, word) in mask.0.iter_mut().enumerate() {
            let bits = events.saturating_sub(lane * 64).min(64);
            *word = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        }
        mask
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    #[inline(always)]
    fn xor(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|lane| self.0[lane] ^ other.0[lane]))
    }

    #[inline(always)]
    fn toggle(&mut self, event: usize) {
        self.0[event / 64] ^= 1 << (event % 64);
    }

    #[inline(always)]
    fn insert(&mut self, event: usize) {
        self.0[event / 64] |= 1 << (event % 64);
    }

    /// How many events there are.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (lane, word) in self.0.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                visit(lane * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

impl Truth for Mask {
    const IS_SINGLE: bool = false;
    const NEVER: Mask = Mask::NONE;
    type Paths = ManyPaths;

    #[inline(always)]
    fn is_ever(&self) -> bool {
        !self.is_empty()
    }

    #[inline(always)]
    fn and(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|lane| self.0[lane] & other.0[lane]))
    }

    #[inline(always)]
    fn and_not(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|lane| self.0[lane] & !other.0[lane]))
    }

    #[inline(always)]
    fn or(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|lane| self.0[lane] | other.0[lane]))
    }

    #[inline(always)]
    fn flipped_if(&self, flip: bool) -> Mask {
        let all = 0u64.wrapping_sub(u64::from(flip));
        Mask(std::array::from_fn(|lane| self.0[lane] ^ all))
    }
}

/// Working memory for blocks.
#[derive(Default)]
pub struct BlockScratch {
    bits: Bits,
    /// Per access key, bits first, then intervals: the events that fired it.
    keys: Masks,
    /// Keys whose mask is not empty. Most are: asking here first saves the way to memory.
    live: Vec<u64>,
    /// Per remembered unit: the events for which it holds, once known.
    truth: Masks,
    /// Remembered units whose truth is known, and those that were delivered; a bit each.
    known: Vec<u64>,
    done: Vec<u64>,
    paths: ManyPaths,
    candidates: Candidates,
}

/// Units to be decided, and the events for which key and test of their access hold.
#[derive(Default)]
struct Candidates {
    units: Vec<u32>,
    events: Vec<Mask>,
}

/// Candidates that are decided together: enough to fetch ahead, few enough to stay in the cache.
const ENOUGH: usize = 1024;
/// How far ahead of the evaluation memory is fetched, in units.
const FETCH_AHEAD: usize = 4;

/// Notes in each key's mask that the current event fired it.
struct MaskKeys<'a> {
    keys: &'a mut [Mask],
    live: &'a mut [u64],
    event: usize,
}

fn mark(bits: &mut [u64], at: u32) {
    bits[at as usize / 64] |= 1 << (at % 64);
}

fn has(bits: &[u64], at: u32) -> bool {
    bits[at as usize / 64] >> (at % 64) & 1 == 1
}

impl Fired for MaskKeys<'_> {
    fn key(&mut self, key: u32) {
        self.keys[key as usize].insert(self.event);
        mark(self.live, key);
    }

    fn run(&mut self, from: u32, to: u32, end: u32) {
        self.keys[from as usize].toggle(self.event);
        if to < end {
            self.keys[to as usize].toggle(self.event);
        }
    }
}

/// Calls `holds` once with every unit that holds for some of the events, and for which. Events must
/// be points, at most [`WIDTH`] of them.
pub fn matching_units(
    layout: &Layout,
    events: impl Iterator<Item = impl Fires>,
    scratch: &mut BlockScratch,
    mut holds: impl FnMut(u32, &Mask),
) {
    if layout.units() == 0 {
        return;
    }
    let all = Mask::first(scratch.set_keys(layout, events));
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions, as was just checked.
            return unsafe { evaluate_avx512(layout, all, scratch, &mut holds) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { evaluate_avx2(layout, all, scratch, &mut holds) };
        }
    }
    evaluate_block(layout, all, scratch, &mut holds, compute);
}

/// Computes a remembered unit. Units that need others call it again, so that it cannot be inlined, and there is
/// one for each set of instructions: evaluating a block calls the one that was compiled for its own.
type Compute = unsafe fn(&mut Block<'_>, u32) -> Mask;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn evaluate_avx512(
    layout: &Layout,
    all: Mask,
    scratch: &mut BlockScratch,
    holds: &mut impl FnMut(u32, &Mask),
) {
    evaluate_block(layout, all, scratch, holds, compute_avx512);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn compute_avx512(block: &mut Block<'_>, unit: u32) -> Mask {
    compute(block, unit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn evaluate_avx2(layout: &Layout, all: Mask, scratch: &mut BlockScratch, holds: &mut impl FnMut(u32, &Mask)) {
    evaluate_block(layout, all, scratch, holds, compute_avx2);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn compute_avx2(block: &mut Block<'_>, unit: u32) -> Mask {
    compute(block, unit)
}

#[inline(always)]
fn compute(block: &mut Block<'_>, unit: u32) -> Mask {
    let truth = block.run(unit, block.all);
    block.truth[unit as usize] = truth;
    mark(block.known, unit);
    truth
}

impl BlockScratch {
    /// Sets the masks of the keys that fire; says how many events there are.
    fn set_keys(&mut self, layout: &Layout, events: impl Iterator<Item = impl Fires>) -> usize {
        let catalog = &layout.catalog;
        // One more than there are keys: the empty mask.
        self.clear_keys(layout.keys() as usize + 1);
        let mut count = 0;
        for (event, values) in events.enumerate() {
            self.bits.reset(catalog.bits as usize);
            let mut fired = MaskKeys { keys: &mut self.keys, live: &mut self.live, event };
            values.fire(catalog, &mut self.bits, &mut fired);
            count += 1;
        }
        for table in catalog.cut_tables.iter() {
            let mut current = Mask::NONE;
            for key in table.below..table.above + table.len {
                current = current.xor(&self.keys[key as usize]);
                self.keys[key as usize] = current;
                if !current.is_empty() {
                    mark(&mut self.live, key);
                }
            }
        }
        for bits in [&mut self.known, &mut self.done] {
            bits.clear();
            bits.resize((layout.remembered as usize).div_ceil(64), 0);
        }
        if self.truth.len() < layout.remembered as usize {
            self.truth = Masks::new(layout.remembered as usize);
        }
        count
    }
}

impl BlockScratch {
    /// Clears what the last block left: the live masks, and the toggles of runs that were empty.
    fn clear_keys(&mut self, keys: usize) {
        if self.keys.len() != keys {
            self.keys = Masks::new(keys);
            self.live.clear();
            self.live.resize(keys.div_ceil(64), 0);
            return;
        }
        for (at, word) in self.live.iter_mut().enumerate() {
            let mut rest = std::mem::take(word);
            while rest != 0 {
                self.keys[at * 64 + rest.trailing_zeros() as usize] = Mask::NONE;
                rest &= rest - 1;
            }
        }
    }
}

#[inline(always)]
fn evaluate_block(
    layout: &Layout,
    all: Mask,
    scratch: &mut BlockScratch,
    holds: &mut impl FnMut(u32, &Mask),
    compute: Compute,
) {
    let BlockScratch { keys, live, truth, known, done, paths, candidates, .. } = scratch;
    let mut block = Block { layout, all, keys, live, truth, known, paths, compute };
    for (at, word) in block.live.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let key = at as u32 * 64 + rest.trailing_zeros();
            rest &= rest - 1;
            let entries = layout.entries_of(key, key + 1);
            if !entries.is_empty() {
                let fired = block.keys[key as usize];
                block.collect(entries, &fired, done, candidates);
                if candidates.units.len() >= ENOUGH {
                    block.decide(candidates, done, holds);
                }
            }
        }
    }
    block.decide(candidates, done, holds);
}

struct Block<'a> {
    layout: &'a Layout,
    all: Mask,
    keys: &'a [Mask],
    live: &'a [u64],
    truth: &'a mut [Mask],
    known: &'a mut [u64],
    paths: &'a mut ManyPaths,
    compute: Compute,
}

impl Block<'_> {
    /// Notes the units behind a key that fired for some events, unless they are decided already.
    #[inline(always)]
    fn collect(&self, entries: Range<usize>, fired: &Mask, done: &[u64], candidates: &mut Candidates) {
        for [flagged, test] in &self.layout.entries[entries] {
            let unit = flagged & !ACCEPTS;
            if unit < self.layout.remembered && has(done, unit) {
                continue;
            }
            let events = self.test_bit(Leaf(*test), fired);
            if !events.is_empty() {
                candidates.units.push(*flagged);
                candidates.events.push(events);
            }
        }
    }

    /// Decides the candidates, and those that waited for them, and so on.
    #[inline(always)]
    fn decide(&mut self, candidates: &mut Candidates, done: &mut [u64], holds: &mut impl FnMut(u32, &Mask)) {
        let layout = self.layout;
        let mut at = 0;
        while at < candidates.units.len() {
            self.fetch(&candidates.units, at);
            let flagged = candidates.units[at];
            let events = candidates.events[at];
            at += 1;
            let unit = flagged & !ACCEPTS;
            if unit >= layout.remembered {
                let truth = if flagged & ACCEPTS != 0 { events } else { self.run(unit, events) };
                if !truth.is_empty() {
                    holds(unit, &truth);
                }
                continue;
            }
            if has(done, unit) {
                continue;
            }
            mark(done, unit);
            let truth = self.pull(unit);
            if !truth.is_empty() {
                holds(unit, &truth);
                self.collect(layout.waiting_for(unit), &truth, done, candidates);
            }
        }
        candidates.units.clear();
        candidates.events.clear();
    }

    /// Fetches what will be needed soon: heads first, then code, then the masks that the code reads.
    #[inline(always)]
    fn fetch(&self, units: &[u32], at: usize) {
        let layout = self.layout;
        if let Some(later) = units.get(at + 3 * FETCH_AHEAD) {
            prefetch(&layout.heads[(later & !ACCEPTS) as usize]);
        }
        if let Some(later) = units.get(at + 2 * FETCH_AHEAD)
            && let Some(code) = layout.code.get(code_place(layout.heads[(later & !ACCEPTS) as usize].code))
        {
            prefetch(code);
        }
        if let Some(soon) = units.get(at + FETCH_AHEAD) {
            let (kind, code) = layout.code_of(soon & !ACCEPTS);
            let (first, step) = kind.leaf_words();
            for leaf in code.iter().skip(first).step_by(step) {
                match Leaf(*leaf).as_unit() {
                    Some(unit) => prefetch(&self.truth[unit as usize]),
                    None => prefetch(self.mask(Leaf(*leaf).bit() as usize)),
                }
            }
        }
    }

    /// The events that set a bit. Nearly all masks are empty, and empty ones are not read: they are
    /// all taken from the one place behind the last key, without a branch.
    #[inline(always)]
    fn mask(&self, bit: usize) -> &Mask {
        let live = self.live[bit / 64] >> (bit % 64) & 1 == 1;
        let empty = self.keys.len() - 1;
        &self.keys[std::hint::select_unpredictable(live, bit, empty)]
    }
}

impl<'a> Evaluation<'a> for Block<'a> {
    type Truth = Mask;

    #[inline(always)]
    fn layout(&self) -> &'a Layout {
        self.layout
    }

    #[inline(always)]
    fn test_bit(&self, leaf: Leaf, events: &Mask) -> Mask {
        let set = self.mask(leaf.bit() as usize);
        events.and(&set.flipped_if(leaf.is_clear()))
    }

    #[inline(always)]
    fn pull(&mut self, unit: u32) -> Mask {
        match has(self.known, unit) {
            true => self.truth[unit as usize],
            // SAFETY: it was chosen for this processor.
            false => unsafe { (self.compute)(self, unit) },
        }
    }

    #[inline(always)]
    fn paths(&mut self) -> &mut ManyPaths {
        self.paths
    }
}

/// The masks of the events that have come to each leaf, and of those that were accepted: a frame for every unit that
/// is being evaluated.
#[derive(Default)]
pub struct ManyPaths(Vec<Mask>);

impl Paths<Mask> for ManyPaths {
    #[inline(always)]
    fn enter(&mut self, leaves: usize, events: Mask) -> usize {
        let frame = self.0.len();
        self.0.resize(frame + leaves + 1, Mask::NONE);
        self.0[frame] = events;
        frame
    }

    #[inline(always)]
    fn at(&self, frame: usize, leaf: usize) -> Mask {
        self.0[frame + leaf]
    }

    #[inline(always)]
    fn split(&mut self, frame: usize, leaf: usize, goes_on: Mask, jumps: Mask, target: usize) -> usize {
        let next = &mut self.0[frame + leaf + 1];
        *next = next.or(&goes_on);
        if target != REJECTED {
            let target = &mut self.0[frame + target];
            *target = target.or(&jumps);
        }
        leaf + 1
    }

    #[inline(always)]
    fn leave(&mut self, frame: usize, _: usize, leaves: usize) -> Mask {
        let accepted = self.0[frame + leaves];
        self.0.truncate(frame);
        accepted
    }
}
