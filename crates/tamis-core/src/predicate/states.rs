//! The states of an attribute: classes of values that no predicate of a catalog can tell apart.
//!
//! The operands of all predicates on the attribute divide the values of a kind. A value equals one of them, or lies between two:
//!
//! ```text
//! operands         o0        o1        o2
//! states       0    1    2    3    4    5    6      of that kind: twice the operands below, and one more at an operand
//! ```
//!
//! So what an event satisfies can be looked up, state by state, instead of predicate by predicate. What fires in a state is asked
//! of the catalog itself.

use std::ops::Range;

use super::bits::Bits;
use super::catalog::{AttributeEntry, Catalog, Fired};
use super::equality::text_at;
use super::keys::{head_of_key, key_of_head};
use crate::event::ValueRef;
use crate::event::value::Kind;

/// All states of one attribute.
pub struct States {
    /// By kind of scalar: its states, unless values of that kind are not expected.
    pub kinds: [Option<StatesOfKind>; 4],
    /// The state of every value, if predicates ask only whether there is one.
    pub present: Option<u32>,
    /// By state: the bits and access keys that fire, sorted. The first state is that of no value.
    pub fired: Vec<Vec<u32>>,
    /// Working memory.
    bits: Bits,
    /// How many more keys may fire.
    keys_left: usize,
}

pub struct StatesOfKind {
    /// The state of the values below all operands.
    pub first: u32,
    pub operands: Operands,
}

/// Sorted and distinct.
pub enum Operands {
    /// Of scalars that have keys: the leading bits (see [`head_of_key`]).
    Heads(Vec<u64>),
    Texts(Vec<Box<str>>),
}

/// Those that a predicate compares.
pub const SCALARS: [Kind; 4] = [Kind::Bool, Kind::Number, Kind::Str, Kind::Timestamp];

/// Notes all that fires.
#[derive(Default)]
pub struct FiredKeys(pub Vec<u32>);

impl Fired for FiredKeys {
    fn key(&mut self, key: u32) {
        self.0.push(key);
    }

    fn keys(&mut self, keys: Range<u32>) {
        self.0.extend(keys);
    }

    fn run(&mut self, from: u32, to: u32, _: u32) {
        self.0.extend(from..to);
    }
}

/// More keys fire in the states of an attribute than may.
#[derive(Debug)]
pub struct TooManyKeys;

impl Catalog {
    /// The states of an attribute; `None` where patterns or elements are looked for, which divide values in other ways.
    /// The keys that fire in all states together are taken off those that are left.
    pub fn states(
        &self,
        entry: &AttributeEntry,
        keys_left: &mut usize,
    ) -> Result<Option<States>, TooManyKeys> {
        let is_other = |kind: u32| !SCALARS.iter().any(|scalar| *scalar as u32 == kind);
        let expects_others = (0..32).any(|kind| entry.expected_kinds >> kind & 1 == 1 && is_other(kind));
        let is_expected = |kind: u32| entry.expected_kinds >> kind & 1 == 1;
        let are_values =
            self.points_of(entry).iter().all(|table| table.of_elements == 0 && is_expected(table.kind));
        let are_ranges = self.cuts_of(entry).iter().all(|table| is_expected(table.kind));
        if entry.residual > 0 || expects_others || !are_values || !are_ranges || entry.clean != [0; 4] {
            return Ok(None);
        }
        let absent = Some(entry.absent).filter(|bit| *bit != 0);
        let mut states = States {
            kinds: [const { None }; 4],
            present: None,
            fired: vec![absent.into_iter().collect()],
            bits: Bits::default(),
            keys_left: *keys_left,
        };
        if entry.expected_kinds == 0 {
            states.present = Some(1);
            states.add(|bits, fired| self.fire_present(entry, Kind::Bool, bits, fired), self.bits)?;
        }
        for kind in SCALARS {
            if entry.expected_kinds >> kind as u32 & 1 == 1 {
                let first = states.fired.len() as u32;
                let operands = match kind {
                    Kind::Str => Operands::Texts(self.add_states_of_texts(entry, &mut states)?),
                    _ => Operands::Heads(self.add_states_of_heads(entry, kind, &mut states)?),
                };
                states.kinds[kind as usize] = Some(StatesOfKind { first, operands });
            }
        }
        *keys_left = states.keys_left;
        Ok(Some(states))
    }

    fn add_states_of_heads(
        &self,
        entry: &AttributeEntry,
        kind: Kind,
        states: &mut States,
    ) -> Result<Vec<u64>, TooManyKeys> {
        let points = self.points_of(entry).iter().find(|table| table.kind == kind as u32);
        let cuts = self.cuts_of(entry).iter().find(|table| table.kind == kind as u32 && table.len > 0);
        let of_points = points.map_or(0..0, |table| table.first_entry..table.first_entry + table.entries);
        let of_points = of_points.map(|point| self.points.keys[point as usize]);
        let of_points = of_points.map(|[high, low]| head_of_key((high as u128) << 64 | low as u128));
        let of_cuts = cuts.map_or(&[][..], |table| self.cuts.heads_of(table)).iter().copied();
        let mut heads: Vec<u64> = of_points.chain(of_cuts).collect();
        heads.sort_unstable();
        heads.dedup();
        let mut fire = |rank: u32, point: Option<u32>| {
            let fire = |bits: &mut Bits, fired: &mut FiredKeys| {
                self.fire_present(entry, kind, bits, fired);
                point.into_iter().for_each(|point| self.fire_point(point, bits, fired));
                cuts.into_iter().for_each(|table| self.fire_rank(table, rank, bits, fired));
            };
            states.add(fire, self.bits)
        };
        let cuts_below = |is_below: &dyn Fn(u64) -> bool| {
            cuts.map_or(0, |table| self.cuts.heads_of(table).partition_point(|head| is_below(*head))) as u32
        };
        for head in &heads {
            fire(cuts_below(&|cut| cut < *head), None)?;
            let key = key_of_head(kind, *head);
            let rank = cuts.map_or(0, |table| self.cuts.rank_of_key(table, key));
            fire(rank, points.and_then(|table| self.points.find_ordered(table, key)))?;
        }
        fire(cuts_below(&|_| true), None)?;
        Ok(heads)
    }

    fn add_states_of_texts(
        &self,
        entry: &AttributeEntry,
        states: &mut States,
    ) -> Result<Vec<Box<str>>, TooManyKeys> {
        let is_of_texts = |kind: u32| kind == Kind::Str as u32;
        let points = self.points_of(entry).iter().find(|table| is_of_texts(table.kind));
        let cuts = self.cuts_of(entry).iter().find(|table| is_of_texts(table.kind) && table.len > 0);
        let of_points = points.map_or(0..0, |table| table.first_entry..table.first_entry + table.entries);
        let of_points = of_points.map(|point| self.points.keys[point as usize][1]);
        let of_cuts = cuts.map_or(&[][..], |table| self.cuts.heads_of(table));
        let places = of_points.chain(of_cuts.iter().copied());
        let mut texts: Vec<&[u8]> = places.map(|place| text_at(place, &self.pool)).collect();
        texts.sort_unstable();
        texts.dedup();
        let mut fire = |rank: u32, point: Option<u32>| {
            let fire = |bits: &mut Bits, fired: &mut FiredKeys| {
                self.fire_present(entry, Kind::Str, bits, fired);
                point.into_iter().for_each(|point| self.fire_point(point, bits, fired));
                cuts.into_iter().for_each(|table| self.fire_rank(table, rank, bits, fired));
            };
            states.add(fire, self.bits)
        };
        let texts: Vec<Box<str>> =
            texts.into_iter().map(|text| String::from_utf8_lossy(text).into()).collect();
        for text in &texts {
            let below = |place: &u64| text_at(*place, &self.pool) < text.as_bytes();
            fire(of_cuts.partition_point(below) as u32, None)?;
            let rank = cuts.map_or(0, |table| self.cuts.rank_of_text(table, text, &self.pool));
            let value = ValueRef::Str(text);
            fire(rank, points.and_then(|table| self.points.find(table, value, &self.pool)))?;
        }
        fire(of_cuts.len() as u32, None)?;
        Ok(texts)
    }
}

impl States {
    /// Adds a state.
    fn add(&mut self, fire: impl FnOnce(&mut Bits, &mut FiredKeys), bits: u32) -> Result<(), TooManyKeys> {
        let mut fired = FiredKeys::default();
        self.bits.reset(bits as usize);
        fire(&mut self.bits, &mut fired);
        fired.0.sort_unstable();
        self.keys_left = self.keys_left.checked_sub(fired.0.len()).ok_or(TooManyKeys)?;
        self.fired.push(fired.0);
        Ok(())
    }
}
