//! Matches 512 events at once against one segment, with one bit per event.
//!
//! Every access key gets a mask of the events that fired it, and a unit is evaluated once for all of them: its code runs
//! on masks instead of bits. If some events follow a jump and others do not, both paths are taken, each with its events.
//! An empty mask ends its path at once, so units that concern no event of the block cost next to nothing.
//!
//! Comparisons are runs of consecutive bits: each event toggles the first and last mask of a run, and one pass over the
//! cuts turns toggles into masks. Keys between the same two toggles share a mask. So there are about as many masks as
//! values in the block, however many predicates there are, and they stay in the cache.
//!
//! Most matches of arbitrary expressions are single-row units that an access entry proves. As for one event, their code
//! does not run: each access entry adds its events to the unit's mask.
//!
//! Units are run by the same code as for one event (`segment/unit_evaluation.rs`). The walk over candidates is separate:
//! sharing that of `segment/walk.rs` made blocks 15 % slower (100,000 dense expressions).

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::layout::{ACCEPTS, Layout, code_place};
use super::many_paths::ManyPaths;
use super::masks::Masks;
use super::program::Leaf;
use super::unit_evaluation::{Evaluation, Truth};
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

    #[inline(always)]
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
    keys: KeyMasks,
    truth: TruthMemory,
    single_row: SingleRowMemory,
    /// Remembered units that were decided because an access fired; a bit each.
    done: Vec<u64>,
    paths: ManyPaths,
    candidates: Candidates,
}

/// The events that fired each access key.
#[derive(Default)]
struct KeyMasks {
    /// Per access key, bits first, then intervals: the number of its mask.
    number: Vec<u32>,
    /// The first one is empty.
    masks: Vec<Mask>,
}

/// What [`UnitTruth`] uses from block to block.
#[derive(Default)]
struct TruthMemory {
    known: Vec<u64>,
    number: Vec<u32>,
    masks: Masks,
}

/// The events for which each remembered unit holds, once known.
struct UnitTruth<'a> {
    /// A bit per unit: whether its truth is known.
    known: &'a mut [u64],
    /// Per unit that is known, the number of its mask.
    number: &'a mut [u32],
    /// In the order in which they became known, so that what is written together lies together. The first is empty.
    masks: &'a mut [Mask],
    used: usize,
}

/// What [`SingleRowTruth`] uses from block to block.
#[derive(Default)]
struct SingleRowMemory {
    masks: Masks,
    found: Vec<u64>,
}

/// The events for which each single-row unit is known to hold.
struct SingleRowTruth<'a> {
    /// Per unit, all empty before a block and after it.
    masks: &'a mut [Mask],
    /// A bit per unit: whether its mask is not empty.
    found: &'a mut [u64],
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
/// How far ahead of the walk memory is fetched, in entries: first where a mask is, then the mask.
const FETCH_ENTRIES: usize = 8;

/// Notes in each key's mask that the current event fired it.
struct MaskKeys<'a> {
    keys: &'a mut KeyMasks,
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
        self.keys.own_mask(key).insert(self.event);
    }

    fn run(&mut self, from: u32, to: u32, end: u32) {
        self.keys.own_mask(from).toggle(self.event);
        if to < end {
            self.keys.own_mask(to).toggle(self.event);
        }
    }
}

impl KeyMasks {
    /// Makes room for that many keys, all of which have the empty mask.
    fn reset(&mut self, keys: usize) {
        self.number.clear();
        self.number.resize(keys, 0);
        self.masks.clear();
        self.masks.push(Mask::NONE);
    }

    /// The mask of a key alone.
    #[inline]
    fn own_mask(&mut self, key: u32) -> &mut Mask {
        let number = &mut self.number[key as usize];
        if *number == 0 {
            *number = self.masks.len() as u32;
            self.masks.push(Mask::NONE);
        }
        &mut self.masks[*number as usize]
    }

    /// Turns the toggles of a run of keys into the events that each has; what lies between two toggles shares a mask.
    fn add_up(&mut self, keys: Range<u32>) {
        let (mut events, mut shared) = (Mask::NONE, 0);
        for number in &mut self.number[keys.start as usize..keys.end as usize] {
            if *number != 0 {
                let toggled = &mut self.masks[*number as usize];
                events = events.xor(toggled);
                *toggled = events;
                shared = if events.is_empty() { 0 } else { *number };
            }
            *number = shared;
        }
    }
}

impl TruthMemory {
    /// Nothing is known of that many units.
    fn start(&mut self, units: usize) -> UnitTruth<'_> {
        self.known.clear();
        self.known.resize(units.div_ceil(64), 0);
        if self.number.len() < units {
            self.number = vec![0; units];
            self.masks = Masks::new(units + 1);
        }
        UnitTruth { known: &mut self.known, number: &mut self.number, masks: &mut self.masks, used: 1 }
    }
}

impl UnitTruth<'_> {
    #[inline(always)]
    fn note(&mut self, unit: u32, events: &Mask) {
        mark(self.known, unit);
        self.number[unit as usize] = 0;
        if !events.is_empty() {
            self.number[unit as usize] = self.used as u32;
            self.masks[self.used] = *events;
            self.used += 1;
        }
    }

    #[inline(always)]
    fn is_known(&self, unit: u32) -> bool {
        has(self.known, unit)
    }

    /// Of a unit that is known.
    #[inline(always)]
    fn of(&self, unit: u32) -> &Mask {
        &self.masks[self.number[unit as usize] as usize]
    }
}

impl SingleRowMemory {
    /// None of that many units is known to hold.
    fn start(&mut self, units: usize) -> SingleRowTruth<'_> {
        if self.masks.len() < units {
            self.found = vec![0; units.div_ceil(64)];
            self.masks = Masks::new(units);
        }
        SingleRowTruth { masks: &mut self.masks, found: &mut self.found }
    }
}

impl SingleRowTruth<'_> {
    #[inline(always)]
    fn add(&mut self, place: u32, events: &Mask) {
        let held = &mut self.masks[place as usize];
        *held = held.or(events);
        mark(self.found, place);
    }

    /// Calls `holds` with each unit whose mask is not empty, counted from the first, and empties it.
    #[inline(always)]
    fn drain(&mut self, mut holds: impl FnMut(u32, &Mask)) {
        for (at, word) in self.found.iter_mut().enumerate() {
            let mut rest = std::mem::take(word);
            while rest != 0 {
                let place = at * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                holds(place as u32, &self.masks[place]);
                self.masks[place] = Mask::NONE;
            }
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
    block.truth.note(unit, &truth);
    truth
}

impl BlockScratch {
    /// Sets the masks of the keys that fire; says how many events there are.
    fn set_keys(&mut self, layout: &Layout, events: impl Iterator<Item = impl Fires>) -> usize {
        let catalog = &layout.catalog;
        self.keys.reset(layout.keys() as usize);
        let mut count = 0;
        for (event, values) in events.enumerate() {
            self.bits.reset(catalog.bits as usize);
            values.fire(catalog, &mut self.bits, &mut MaskKeys { keys: &mut self.keys, event });
            count += 1;
        }
        for table in catalog.cut_tables.iter() {
            self.keys.add_up(table.below..table.above + table.len);
        }
        self.done.clear();
        self.done.resize((layout.remembered as usize).div_ceil(64), 0);
        count
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
    let BlockScratch { keys, truth, single_row, done, paths, candidates, .. } = scratch;
    let keys: &KeyMasks = keys;
    let truth = truth.start(layout.remembered as usize);
    let single_row = single_row.start((layout.remembered - layout.single_row) as usize);
    let mut block = Block { layout, all, keys, truth, single_row, done, paths, compute };
    for (key, number) in keys.number.iter().enumerate() {
        let entries = layout.access_off[key] as usize..layout.access_off[key + 1] as usize;
        if *number != 0 && !entries.is_empty() {
            block.collect(entries, &keys.masks[*number as usize], candidates);
            if candidates.units.len() >= ENOUGH {
                block.decide(candidates, holds);
            }
        }
    }
    block.decide(candidates, holds);
    block.single_row.drain(|place, events| holds(layout.single_row + place, events));
}

struct Block<'a> {
    layout: &'a Layout,
    all: Mask,
    keys: &'a KeyMasks,
    truth: UnitTruth<'a>,
    single_row: SingleRowTruth<'a>,
    done: &'a mut [u64],
    paths: &'a mut ManyPaths,
    compute: Compute,
}

impl Block<'_> {
    /// Notes the units behind a key that fired for some events, unless they are decided already. Single-row units
    /// that are proved by key and test take their events at once.
    #[inline(always)]
    fn collect(&mut self, entries: Range<usize>, fired: &Mask, candidates: &mut Candidates) {
        let layout = self.layout;
        let single_row_units = layout.remembered - layout.single_row;
        for at in entries {
            self.fetch_entry(at);
            let [flagged, test] = layout.entries[at];
            let unit = flagged & !ACCEPTS;
            if unit < layout.remembered && has(self.done, unit) {
                continue;
            }
            let events = self.test_bit(Leaf(test), fired);
            if events.is_empty() {
                continue;
            }
            let place = flagged.wrapping_sub(ACCEPTS | layout.single_row);
            if place < single_row_units {
                self.single_row.add(place, &events);
            } else {
                candidates.units.push(flagged);
                candidates.events.push(events);
            }
        }
    }

    /// Decides the candidates, and those that waited for them, and so on.
    #[inline(always)]
    fn decide(&mut self, candidates: &mut Candidates, holds: &mut impl FnMut(u32, &Mask)) {
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
            if has(self.done, unit) {
                continue;
            }
            if unit >= layout.single_row {
                let place = unit - layout.single_row;
                if events.and_not(&self.single_row.masks[place as usize]).is_empty() {
                    continue; // other accesses proved it for these events
                }
                mark(self.done, unit);
                let truth = self.run(unit, self.all);
                if !truth.is_empty() {
                    self.single_row.add(place, &truth);
                }
                continue;
            }
            mark(self.done, unit);
            let truth = self.pull(unit);
            if !truth.is_empty() {
                holds(unit, &truth);
                self.collect(layout.waiting_for(unit), &truth, candidates);
            }
        }
        candidates.units.clear();
        candidates.events.clear();
    }

    /// Fetches what entries further on will need: where the masks of their tests are, then these masks, and those of
    /// single-row units.
    #[inline(always)]
    fn fetch_entry(&self, at: usize) {
        let layout = self.layout;
        if let Some([later, test]) = layout.entries.get(at + 2 * FETCH_ENTRIES) {
            let place = (later & !ACCEPTS).wrapping_sub(layout.single_row);
            if place < layout.remembered - layout.single_row {
                prefetch(&self.single_row.masks[place as usize]);
            }
            prefetch(&self.keys.number[Leaf(*test).bit() as usize]);
        }
        if let Some([_, test]) = layout.entries.get(at + FETCH_ENTRIES) {
            prefetch(self.mask(*test));
        }
    }

    /// Fetches what will be needed soon: heads first, then code, then where masks are that the code reads, then
    /// these masks, or the code of units that are not known yet.
    #[inline(always)]
    fn fetch(&self, units: &[u32], at: usize) {
        let layout = self.layout;
        let fetch_code = |unit: u32| {
            if let Some(code) = layout.code.get(code_place(layout.heads[unit as usize].code)) {
                prefetch(code);
            }
        };
        if let Some(later) = units.get(at + 4 * FETCH_AHEAD) {
            prefetch(&layout.heads[(later & !ACCEPTS) as usize]);
        }
        if let Some(later) = units.get(at + 3 * FETCH_AHEAD) {
            fetch_code(later & !ACCEPTS);
        }
        if let Some(later) = units.get(at + 2 * FETCH_AHEAD) {
            for leaf in layout.leaves_of(later & !ACCEPTS) {
                match leaf.as_unit() {
                    Some(unit) => {
                        prefetch(&self.truth.number[unit as usize]);
                        prefetch(&layout.heads[unit as usize]);
                    }
                    None => prefetch(&self.keys.number[leaf.bit() as usize]),
                }
            }
        }
        if let Some(soon) = units.get(at + FETCH_AHEAD) {
            for leaf in layout.leaves_of(soon & !ACCEPTS) {
                match leaf.as_unit() {
                    Some(unit) if self.truth.is_known(unit) => prefetch(self.truth.of(unit)),
                    Some(unit) => fetch_code(unit),
                    None => prefetch(self.mask(leaf.0)),
                }
            }
        }
    }

    /// The events that set the bit of a test, set or clear.
    #[inline(always)]
    fn mask(&self, test: u32) -> &Mask {
        &self.keys.masks[self.keys.number[Leaf(test).bit() as usize] as usize]
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
        events.and(&self.mask(leaf.0).flipped_if(leaf.is_clear()))
    }

    #[inline(always)]
    fn pull(&mut self, unit: u32) -> Mask {
        match self.truth.is_known(unit) {
            true => *self.truth.of(unit),
            // SAFETY: it was chosen for this processor.
            false => unsafe { (self.compute)(self, unit) },
        }
    }

    #[inline(always)]
    fn all_of(&mut self, leaves: &[u32], events: Mask) -> Mask {
        leaves.iter().fold(events, |left, leaf| self.test(Leaf(*leaf), &left))
    }

    #[inline(always)]
    fn any_of(&mut self, leaves: &[u32], events: Mask) -> Mask {
        leaves.iter().fold(Mask::NONE, |found, leaf| found.or(&self.test(Leaf(*leaf), &events)))
    }

    #[inline(always)]
    fn follow(&mut self, steps: &[[u32; 2]], events: Mask) -> Mask {
        let frame = self.paths.enter(steps.len(), events);
        for (at, &[leaf, jump]) in steps.iter().enumerate() {
            let here = self.paths.at(frame, at);
            let goes_on = here.and(&self.test(Leaf(leaf), &here).flipped_if(jump & 1 == 0));
            self.paths.split(frame, at, goes_on, here.and_not(&goes_on), jump >> 1);
        }
        self.paths.leave(frame, steps.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_has_room_for_its_single_row_units() {
        let mut memory = SingleRowMemory::default();
        for units in [1, 17, 18, 64, 65, 3, 100_000, 100_001] {
            let last = units as u32 - 1;
            let mut truth = memory.start(units);
            truth.add(last, &Mask::first(2));
            let mut found = vec![];
            truth.drain(|place, events| found.push((place, events.0[0])));
            assert_eq!(found, [(last, 0b11)]);
        }
    }
}
