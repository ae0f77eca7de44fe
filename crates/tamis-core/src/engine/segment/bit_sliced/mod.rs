//! A plan for segments of few rules: what each value makes true is looked up for all rules at once, a bit for each.
//!
//! A rule becomes clauses, which must all hold; a clause holds if one of its literals does. The nth clauses of all rules lie side
//! by side in a *slice*, so that few instructions decide 64 rules:
//!
//! ```text
//! rule          r0   r1   r2   r3   r4      sorted: those with most clauses come first
//! slice 0       c    c    c    c    c       words of 64 rules
//! slice 1       c    c    c    c    1       what no rule has is always 1 where a word has room for it
//! slice 2       c    c    1    1    1
//! hold          &    &    &    &    &       all slices
//! ```
//!
//! An event sets the bits of all clauses that its values make true, attribute by attribute: a value has a *state* among the
//! operands of its attribute (`predicate/states`), and a state has a *row*, which says what to set (`rows`). Small integers lead
//! to their row by one table, texts by a hash table, other values by a search among the operands. There are no bits of predicates,
//! no access entries and no code to run.
//!
//! A rule that would need many clauses (an OR of long ANDs, say) has some that hold whenever it does, and its literals have bits of
//! their own behind the slices; if its clauses hold, the rule is decided from these.
//!
//! Long conjunctions of many rules would need too many words. Only the literals of theirs that seem rarest are clauses then, and the
//! few rules that pass ask the event for the values of the others (`checks`). Operands that no clause mentions are not looked for.
//!
//! Invariant: bit r of the last slice that has it is set in `words` after an event exactly if that clause of rule r holds.
//!
//! The plan is made of a layout when the first events have come, and is not stored. It declines events with sets of values,
//! large integers, decimals, or values of kinds that no predicate expects: the layout answers those.
//!
//! An event waits while it is made, so everything that could grow faster than the rules has a limit: states, keys that fire in them,
//! nodes of formulas, sets of states, bits that states set, words of rows. Beyond one of them, or if the result is much larger than
//! the layout, there is no plan.

mod attributes;
mod checks;
mod clauses;
mod formula;
mod lanes;
mod rows;
mod state_set;
#[cfg(test)]
mod tests;
mod texts;

use std::ops::Range;

use attributes::{AttributeStates, Attributes};
use checks::{BitCheck, Check, ValueCheck, Values, are_near, ends, note_places};
use clauses::{Clause, Odds, clauses, in_order, necessary_clauses};
use formula::{Formula, Formulas, KeyTest, Literal};
use rows::{BitsOfLiterals, MOST_WORDS, Rows, RowsBuilder, SPARE_WORDS, Wide, Words};
use texts::Texts;

use super::layout::Layout;
use super::walk::UnitCollector;
use crate::engine::contract::Work;
use crate::event::value::Kind;
use crate::event::{Event, ValueRef};
use crate::predicate::bits::Bits;
use crate::predicate::catalog::Catalog;
use crate::predicate::keys::head;
use crate::predicate::states::{FiredKeys, Operands, States, StatesOfKind};

/// Segments with more rules have no such plan.
pub const MOST_RULES: usize = 1024;
/// States of all attributes together, and keys that fire in them.
const MOST_STATES: usize = 64 * 1024;
const MOST_FIRED: usize = 4 << 20;
/// Tests of what values of attributes without states fire, in all: each is made for each event.
const MOST_TESTS_OF_KEYS: usize = 64;
/// The plan takes no more memory than so many layouts, or than this.
const MOST_LAYOUTS: usize = 6;
const MOST_BYTES_OF_SMALL: usize = 1 << 20;
/// Clauses of one rule.
const MOST_CLAUSES: usize = 8;
/// Clauses of a conjunction if words do not stay in registers: what passes them is decided from the values themselves.
const FEW_CLAUSES: usize = 3;
/// Integers that have a table, for one attribute and for all.
const MOST_INTEGERS: i64 = 1024;
const MOST_INTEGERS_IN_ALL: usize = 16 * 1024;

/// Pairs of words of an event that stay in registers.
const MOST_WIDE: usize = 8;
/// Terms of the index.
const MOST_TERMS: usize = 16 * 1024;

const NOTHING: u32 = u32::MAX;

/// What no rule asks for.
const UNKNOWN: Attribute =
    Attribute { least: 0, greatest: 0, absence: 0, first_integer: 0, others: NOTHING, has_integers: false };

pub struct BitSliced {
    /// By term.
    attributes: Vec<Attribute>,
    others: Vec<Others>,
    rows: Rows,
    /// The row of each state, by attribute and kind.
    row_of_state: Vec<u16>,
    /// The leading bits of operands, rising within each attribute and kind.
    heads: Vec<u64>,
    /// The row of each integer that has a table.
    row_of_integer: Vec<u16>,
    texts: Vec<TextRows>,
    /// What absent attributes set: the bit of each that sets anything, and its row.
    absent: Vec<(u32, u16)>,
    /// All bits of absent attributes.
    all_absent: u32,
    /// How many rows attributes that fire keys set at most, all together.
    tests_of_keys: usize,
    /// The words before any value.
    base: Vec<u64>,
    /// By word of rules: a run in `places`.
    places_of: Vec<Range<u32>>,
    /// Where slices lie: the word, and the first bit in it.
    places: Vec<(u16, u8)>,
    /// How many pairs of words are in use, or 0 if they are too many for wide rows.
    wide: usize,
    /// By rule.
    units: Vec<u32>,
    /// Which rules have to be decided from their literals, a bit each.
    is_undecided: Vec<u64>,
    /// By rule.
    checks: Vec<Option<Check>>,
}

/// What is looked up first: the fastest way to the row of a small integer.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Attribute {
    /// The least and the greatest integer of the table; everything below or above has the same row.
    least: i64,
    greatest: i64,
    /// Its bit among those that set something when they are absent.
    absence: u32,
    /// Where the table begins.
    first_integer: u32,
    /// Its place in `others`, or [`NOTHING`] for what no rule asks for.
    others: u32,
    has_integers: bool,
}

/// What is looked up for other values.
enum Others {
    Rows(OtherRows),
    Unlisted(Unlisted),
}

struct OtherRows {
    /// By kind of scalar.
    kinds: [OfKind; 4],
    /// The row of any value, or [`NOTHING`].
    present: u32,
}

/// The states of one kind.
#[derive(Clone, Copy)]
struct OfKind {
    /// Where the rows of the states begin, or [`NOTHING`].
    first_row: u32,
    /// The operands, in `heads`; for texts, the place in `texts`.
    first: u32,
    len: u32,
}

enum TextRows {
    /// By equality.
    Equal(Texts),
    /// By order: the texts, rising.
    Ordered(Vec<Box<str>>),
}

/// An attribute whose values fire keys.
struct Unlisted {
    /// Its place in the catalog.
    entry: usize,
    tests: Vec<(KeyTest, u16)>,
}

impl Unlisted {
    /// Asks the catalog which keys a value fires; `None` if it is of an unexpected kind.
    #[inline(never)]
    fn fire(
        &self,
        catalog: &Catalog,
        value: ValueRef<'_>,
        bits: &mut Bits,
        fired: &mut FiredKeys,
    ) -> Option<()> {
        let entry = &catalog.terms[self.entry];
        if entry.expected_kinds != 0 && entry.expected_kinds >> value.kind()? as u32 & 1 == 0 {
            return None;
        }
        bits.reset(catalog.bits as usize);
        fired.0.clear();
        catalog.fire_one(entry, value, bits, fired);
        fired.0.sort_unstable();
        Some(())
    }
}

/// Working memory, reused from event to event.
pub struct Memory {
    words: Box<Words>,
    /// What the values of an event set, and the attributes that are absent.
    rows: Vec<u16>,
    bits: Bits,
    fired: FiredKeys,
    /// Where the value of each term is.
    place_of: Vec<u32>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            words: Box::new([0; MOST_WORDS]),
            rows: vec![],
            bits: Bits::default(),
            fired: FiredKeys::default(),
            place_of: vec![],
        }
    }
}

impl BitSliced {
    /// Hands the units that hold to the collector, as [`Layout::matching_units`] does. `None` if the event is to be asked there.
    /// No value is then of a kind that nobody expects.
    #[inline]
    pub fn matching_units(
        &self,
        layout: &Layout,
        event: &Event<'_>,
        memory: &mut Memory,
        collector: &mut impl UnitCollector,
    ) -> Option<Work> {
        if event.has_intervals {
            return None;
        }
        self.find_rows(layout, event, memory)?;
        match self.wide {
            1 => self.set_wide::<1>(memory),
            2 => self.set_wide::<2>(memory),
            3 => self.set_wide::<3>(memory),
            4 => self.set_wide::<4>(memory),
            5 => self.set_wide::<5>(memory),
            6 => self.set_wide::<6>(memory),
            7 => self.set_wide::<7>(memory),
            8 => self.set_wide::<8>(memory),
            _ => {
                memory.words[..self.base.len()].copy_from_slice(&self.base);
                memory.rows.iter().for_each(|row| self.rows.set(*row, &mut memory.words));
            }
        }
        Some(self.deliver(event, memory, collector))
    }

    /// Sets all words in registers. Nothing else happens here, or they would not stay there.
    #[inline]
    fn set_wide<const PAIRS: usize>(&self, memory: &mut Memory) {
        let mut wide = Wide::<PAIRS>::new(&self.base);
        let rows = self.rows.wide::<PAIRS>();
        for row in &memory.rows {
            wide.set(&rows[*row as usize]);
        }
        wide.store(&mut memory.words);
    }

    /// Finds out what the values of an event set, and what it sets that others are absent.
    #[inline]
    fn find_rows(&self, layout: &Layout, event: &Event<'_>, memory: &mut Memory) -> Option<()> {
        let Memory { rows, bits, fired, .. } = memory;
        rows.clear();
        rows.resize(event.values.len() + self.absent.len() + self.tests_of_keys, 0);
        let (mut present, mut count) = (0, 0);
        let mut found = |row| {
            rows[count] = row;
            count += 1;
        };
        for (term, value) in &event.values {
            let Some(attribute) = self.attributes.get(term.0 as usize) else { break };
            present |= attribute.absence;
            let row = match *value {
                ValueRef::Int(number) if attribute.has_integers => {
                    let place = number.max(attribute.least).min(attribute.greatest) - attribute.least;
                    self.row_of_integer[attribute.first_integer as usize + place as usize]
                }
                _ if attribute.others == NOTHING => continue,
                value => match &self.others[attribute.others as usize] {
                    Others::Rows(others) => self.row_of(others, value)?,
                    Others::Unlisted(unlisted) => {
                        unlisted.fire(&layout.catalog, value, bits, fired)?;
                        for (test, row) in &unlisted.tests {
                            if test.holds(&|key| fired.0.binary_search(&key).is_ok()) {
                                found(*row);
                            }
                        }
                        continue;
                    }
                },
            };
            found(row);
        }
        if present != self.all_absent {
            let absent = self.absent.iter().filter(|(bit, _)| present & bit == 0);
            absent.for_each(|(_, row)| found(*row));
        }
        rows.truncate(count);
        Some(())
    }

    /// The row of a value that has no faster way to it; `None` if it is of an unexpected kind or has no state.
    #[inline]
    fn row_of(&self, of: &OtherRows, value: ValueRef<'_>) -> Option<u16> {
        if of.present != NOTHING {
            return Some(of.present as u16);
        }
        let (state, of) = match value {
            ValueRef::Str(text) => {
                let of = &of.kinds[Kind::Str as usize];
                match self.texts.get(of.first as usize)? {
                    TextRows::Equal(texts) => return Some(texts.row(text)),
                    TextRows::Ordered(texts) => {
                        let below = texts.partition_point(|known| **known < *text);
                        let is_same = texts.get(below).is_some_and(|known| **known == *text);
                        (2 * below + is_same as usize, of)
                    }
                }
            }
            value => {
                let of = of.kinds.get(value.kind()? as usize)?;
                if of.first_row == NOTHING {
                    return None;
                }
                let head = head(value)?;
                let heads = &self.heads[of.first as usize..][..of.len as usize];
                let below = heads.partition_point(|known| *known < head);
                (2 * below + (heads.get(below) == Some(&head)) as usize, of)
            }
        };
        Some(self.row_of_state[of.first_row as usize + state])
    }

    /// Puts the slices together.
    #[inline]
    fn deliver(&self, event: &Event<'_>, memory: &mut Memory, collector: &mut impl UnitCollector) -> Work {
        let mut work = Work::default();
        let Memory { words, place_of, .. } = memory;
        let mut has_places = false;
        for (at, (places, undecided)) in self.places_of.iter().zip(&self.is_undecided).enumerate() {
            let mut left = u64::MAX;
            for (word, bit) in &self.places[places.start as usize..places.end as usize] {
                left &= words[*word as usize % MOST_WORDS] >> (bit % 64);
            }
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let rule = 64 * at + bit as usize;
                work.candidates += 1;
                if undecided >> bit & 1 == 1 {
                    work.evaluations += 1;
                    let holds = match &self.checks[rule] {
                        None => true,
                        Some(Check::Bits(check)) => check.holds(words),
                        Some(Check::Values(checks)) => {
                            if !std::mem::replace(&mut has_places, true) {
                                note_places(&event.values, self.attributes.len(), place_of);
                            }
                            all_hold(checks, words, &Values { values: &event.values, place_of })
                        }
                    };
                    if !holds {
                        continue;
                    }
                }
                if collector.unit(self.units[rule], &[]).is_break() {
                    return work;
                }
            }
        }
        work
    }

    pub fn bytes(&self) -> usize {
        let of_texts = |texts: &TextRows| match texts {
            TextRows::Equal(texts) => texts.bytes(),
            TextRows::Ordered(texts) => texts.iter().map(|text| size_of::<Box<str>>() + text.len()).sum(),
        };
        let of_checks = self.checks.iter().flatten().map(Check::bytes).sum::<usize>();
        size_of::<Self>()
            + of_checks
            + size_of_val(&self.attributes[..])
            + size_of_val(&self.others[..])
            + self.rows.bytes()
            + size_of_val(&self.row_of_state[..])
            + size_of_val(&self.heads[..])
            + size_of_val(&self.row_of_integer[..])
            + self.texts.iter().map(of_texts).sum::<usize>()
            + 8 * self.base.len()
            + size_of_val(&self.units[..])
            + size_of_val(&self.checks[..])
    }
}

/// Not part of the loop over rules, whose registers it would take.
#[inline(never)]
fn all_hold(checks: &[ValueCheck], words: &Words, values: &Values<'_, '_>) -> bool {
    checks.iter().all(|check| check.holds(words, values))
}

/// A rule on its way into the plan.
struct Rule<'a> {
    unit: u32,
    clauses: Vec<Clause>,
    /// What decides it, if its clauses do not.
    formula: Option<&'a Formula>,
}

impl BitSliced {
    /// The plan for a layout; `None` if it has too many rules or states, or rules that are too long.
    pub fn new(layout: &Layout) -> Option<Self> {
        let with_rows = (0..layout.units()).filter(|unit| !layout.rows_of(*unit).is_empty());
        if with_rows.clone().take(MOST_RULES + 1).count() > MOST_RULES {
            return None;
        }
        let attributes = Attributes::new(&layout.catalog, MOST_STATES, MOST_FIRED)?;
        let mut formulas = Formulas::new(layout, &attributes);
        let mut of_units = vec![];
        for unit in with_rows {
            of_units.push((unit, formulas.of_unit(unit)?));
        }
        let odds = Odds::new(of_units.iter().map(|(_, formula)| formula), attributes.all.len());
        let rules = |most_of_conjunctions| {
            let of_units = of_units.iter();
            let mut rules: Vec<Rule<'_>> = of_units
                .map(|(unit, formula)| Rule::new(*unit, formula, most_of_conjunctions, &odds))
                .collect();
            rules.sort_by_key(|rule| std::cmp::Reverse(rule.clauses.len()));
            rules
        };
        let mut made = rules(MOST_CLAUSES);
        let checked = made.iter().filter_map(|rule| rule.formula).map(Formula::literals);
        let from_values = bits_of(&slices(&made)) + checked.sum::<usize>() > MOST_WIDE * 128;
        if from_values {
            made = rules(FEW_CLAUSES);
        }
        let plan = PlanBuilder::new(&layout.catalog, &attributes, &odds).finish(made, from_values)?;
        let of_layout: usize = layout.bytes().iter().map(|(_, bytes)| bytes).sum();
        (plan.bytes() <= (MOST_LAYOUTS * of_layout).max(MOST_BYTES_OF_SMALL)).then_some(plan)
    }
}

impl<'a> Rule<'a> {
    fn new(unit: u32, formula: &'a Formula, most_of_conjunctions: usize, odds: &Odds) -> Self {
        let is_conjunction = formula.as_conjunction().is_some();
        let most = if is_conjunction { most_of_conjunctions } else { MOST_CLAUSES };
        let clauses = clauses(formula, most);
        let decided_by = clauses.is_none().then_some(formula);
        let clauses = clauses.unwrap_or_else(|| match is_conjunction {
            true => necessary_clauses(formula, most, &|literal| odds.of_literal(literal)),
            false => necessary_clauses(formula, most, &Literal::share),
        });
        Self { unit, clauses, formula: decided_by }
    }
}

/// Where the clauses of one number lie.
struct Slice {
    start: usize,
    /// How many rules have one.
    having: usize,
    /// How many bits it takes.
    room: usize,
}

/// The slices of rules, of which those with most clauses come first.
fn slices(rules: &[Rule<'_>]) -> Vec<Slice> {
    let most = rules.first().map_or(0, |rule| rule.clauses.len()).max(1);
    let words = rules.len().div_ceil(64);
    // Several slices of few rules share a word.
    let width = if words > 1 { 64 * words } else { rules.len().next_power_of_two() };
    let mut start = 0;
    let slice = |number| {
        let having = rules.iter().filter(|rule| rule.clauses.len() > number).count();
        let room = match number {
            0 => width,
            _ if words > 1 => having.next_multiple_of(64),
            _ => width,
        };
        start += room;
        Slice { start: start - room, having, room }
    };
    (0..most).map(slice).collect()
}

fn bits_of(slices: &[Slice]) -> usize {
    slices.last().map_or(0, |slice| slice.start + slice.room)
}

struct PlanBuilder<'a> {
    catalog: &'a Catalog,
    attributes: &'a Attributes,
    odds: &'a Odds,
    /// By attribute.
    literals: Vec<BitsOfLiterals>,
    rows: RowsBuilder,
    next_bit: u32,
}

impl<'a> PlanBuilder<'a> {
    fn new(catalog: &'a Catalog, attributes: &'a Attributes, odds: &'a Odds) -> Self {
        let literals = attributes.all.iter().map(|_| BitsOfLiterals::default()).collect();
        Self { catalog, attributes, odds, literals, rows: RowsBuilder::new(), next_bit: 0 }
    }

    /// With `from_values`, conjunctions ask for values where their clauses do not decide.
    fn finish(mut self, rules: Vec<Rule<'_>>, from_values: bool) -> Option<BitSliced> {
        let slices = slices(&rules);
        let mut base = vec![0u64; bits_of(&slices).div_ceil(64).max(1)];
        let mut places = vec![vec![]; rules.len().div_ceil(64)];
        for (number, Slice { start, having, room }) in slices.into_iter().enumerate() {
            for (at, rule) in rules[..having].iter().enumerate() {
                rule.clauses[number].iter().for_each(|literal| {
                    self.literals[literal.attribute as usize].add(literal, (start + at) as u32);
                });
            }
            // Where there is no rule at all, nothing holds; where a rule has no such clause, it does.
            let filled = if number == 0 { rules.len() } else { room };
            (start + having..start + filled).for_each(|bit| base[bit / 64] |= 1 << (bit % 64));
            for (at, places) in places.iter_mut().enumerate().take(room.div_ceil(64)) {
                places.push(((start / 64 + at) as u16, (start % 64) as u8));
            }
        }
        self.next_bit = base.len() as u32 * 64;
        let mut is_undecided = vec![0u64; rules.len().div_ceil(64)];
        let mut checks = vec![];
        for (at, rule) in rules.iter().enumerate() {
            checks.push(rule.formula.map(|formula| match formula.as_conjunction().filter(|_| from_values) {
                Some(literals) => Check::Values(self.checks_of_values(literals, &rule.clauses)),
                None => Check::Bits(self.check(formula)),
            }));
            is_undecided[at / 64] |= (rule.formula.is_some() as u64) << (at % 64);
        }
        base.resize(self.next_bit.div_ceil(64) as usize, 0);
        let wide = Some(base.len().div_ceil(2)).filter(|pairs| *pairs <= MOST_WIDE).unwrap_or(0);
        base.resize(base.len().max(2 * wide), 0);
        if base.len() > MOST_WORDS - SPARE_WORDS || self.catalog.entry_of.len() > MOST_TERMS {
            return None;
        }
        let mut places_of = vec![];
        for places in &places {
            let first = places_of.last().map_or(0, |last: &Range<u32>| last.end);
            places_of.push(first..first + places.len() as u32);
        }
        let mut plan = BitSliced {
            attributes: vec![UNKNOWN; self.catalog.entry_of.len()],
            others: vec![],
            rows: Rows::default(),
            row_of_state: vec![],
            heads: vec![],
            row_of_integer: vec![],
            texts: vec![],
            absent: vec![],
            all_absent: 0,
            tests_of_keys: 0,
            base,
            places_of,
            places: places.concat(),
            wide,
            units: rules.iter().map(|rule| rule.unit).collect(),
            is_undecided,
            checks,
        };
        for at in 0..self.attributes.all.len() {
            self.add_attribute(at, &mut plan)?;
        }
        plan.rows = self.rows.finish();
        if wide > 0 {
            plan.rows.widen(wide);
        }
        Some(plan)
    }

    /// What remains of a conjunction if some clauses hold, first what seems to hold most rarely.
    fn checks_of_values(&mut self, literals: Vec<&Literal>, clauses: &[Clause]) -> Vec<ValueCheck> {
        let is_known =
            |literal: &Literal| clauses.iter().any(|clause| clause[..] == *std::slice::from_ref(literal));
        let mut left: Vec<&Literal> = literals.into_iter().filter(|literal| !is_known(literal)).collect();
        left.sort_by_cached_key(|literal| in_order(self.odds.of_literal(literal)));
        let check = |literal: &Literal| {
            let attribute = literal.attribute as usize;
            let of_value = match &self.attributes.all[attribute] {
                AttributeStates::Listed(states, _) => {
                    ValueCheck::of_value(literal, states, self.catalog.terms[attribute].attribute)
                }
                AttributeStates::Unlisted => None,
            };
            of_value.unwrap_or_else(|| ValueCheck::Bit(self.bit_of(literal)))
        };
        left.into_iter().map(check).collect()
    }

    fn check(&mut self, formula: &Formula) -> BitCheck {
        match formula {
            Formula::True => BitCheck::All(vec![]),
            Formula::False => BitCheck::Any(vec![]),
            Formula::Literal(literal) => BitCheck::Bit(self.bit_of(literal)),
            Formula::And(parts) => BitCheck::All(parts.iter().map(|part| self.check(part)).collect()),
            Formula::Or(parts) => BitCheck::Any(parts.iter().map(|part| self.check(part)).collect()),
        }
    }

    fn bit_of(&mut self, literal: &Literal) -> u32 {
        let bit = self.next_bit;
        self.next_bit += 1;
        self.literals[literal.attribute as usize].add(literal, bit);
        bit
    }

    fn add_attribute(&mut self, at: usize, plan: &mut BitSliced) -> Option<()> {
        let entry = &self.catalog.terms[at];
        let literals = std::mem::take(&mut self.literals[at]);
        let mut attribute = Attribute { others: plan.others.len() as u32, ..UNKNOWN };
        let when_absent = match &self.attributes.all[at] {
            AttributeStates::Listed(states, _) => {
                let rows = self.rows.rows_of_states(&literals, states.fired.len())?;
                let present = states.present.map_or(NOTHING, |state| rows[state as usize] as u32);
                let kinds = add_kinds(states, &rows, &mut attribute, plan);
                plan.others.push(Others::Rows(OtherRows { kinds, present }));
                rows[0]
            }
            AttributeStates::Unlisted => {
                let mut tests = vec![];
                let mut when_absent = vec![];
                for (test, bits) in literals.into_tests() {
                    if test.holds(&|key| entry.absent != 0 && key == entry.absent) {
                        when_absent.extend(&bits);
                    }
                    tests.push((test, self.rows.row(&bits)?));
                }
                plan.tests_of_keys += tests.len();
                if plan.tests_of_keys > MOST_TESTS_OF_KEYS {
                    return None;
                }
                plan.others.push(Others::Unlisted(Unlisted { entry: at, tests }));
                self.rows.row(&when_absent)?
            }
        };
        if when_absent != 0 {
            attribute.absence = 1u32.checked_shl(plan.absent.len() as u32)?;
            plan.all_absent |= attribute.absence;
            plan.absent.push((attribute.absence, when_absent));
        }
        plan.attributes[entry.attribute as usize] = attribute;
        Some(())
    }
}

fn add_kinds(states: &States, rows: &[u16], attribute: &mut Attribute, plan: &mut BitSliced) -> [OfKind; 4] {
    let mut kinds = [OfKind { first_row: NOTHING, first: NOTHING, len: 0 }; 4];
    for (kind, of) in states.kinds.iter().enumerate() {
        let Some(StatesOfKind { first, operands }) = of else { continue };
        let rows = &rows[*first as usize..];
        let first_row = plan.row_of_state.len() as u32;
        match operands {
            Operands::Heads(heads) => {
                // An integer without leading bits of its own may equal an operand that no state stands for.
                let has_all = are_near(heads);
                let (heads, rows) = that_matter(heads, rows);
                let first = plan.heads.len() as u32;
                plan.heads.extend(&heads);
                plan.row_of_state.extend(&rows);
                kinds[kind] = OfKind { first_row, first, len: heads.len() as u32 };
                if kind == Kind::Number as usize && has_all {
                    add_integers(&heads, &rows, attribute, plan);
                }
            }
            Operands::Texts(texts) => {
                let (texts, rows) = that_matter(texts, rows);
                let between = rows.iter().step_by(2);
                let first = plan.texts.len() as u32;
                plan.texts.push(if between.clone().all(|row| *row == rows[0]) {
                    let with_rows = texts.iter().zip(rows.iter().skip(1).step_by(2));
                    let with_rows: Vec<(&str, u16)> = with_rows.map(|(text, row)| (&**text, *row)).collect();
                    TextRows::Equal(Texts::new(&with_rows, rows[0]))
                } else {
                    TextRows::Ordered(texts.clone())
                });
                plan.row_of_state.extend(&rows);
                kinds[kind] = OfKind { first_row, first, len: texts.len() as u32 };
            }
        }
    }
    kinds
}

/// The operands whose states have other rows than those around them, and the rows of what is left of the states.
fn that_matter<T: Clone>(operands: &[T], rows: &[u16]) -> (Vec<T>, Vec<u16>) {
    let (mut kept, mut rows_kept) = (vec![], vec![rows[0]]);
    for (operand, around) in operands.iter().zip(rows.windows(3).step_by(2)) {
        if around[0] != around[1] || around[1] != around[2] {
            kept.push(operand.clone());
            rows_kept.extend(&around[1..]);
        }
    }
    (kept, rows_kept)
}

/// Gives an attribute a table of integers if its operands are near to each other.
fn add_integers(heads: &[u64], rows: &[u16], attribute: &mut Attribute, plan: &mut BitSliced) {
    let (low, high) = ends(heads);
    let (low, high) = (low.floor() as i64 - 1, high.ceil() as i64 + 1);
    let first = plan.row_of_integer.len();
    if high - low >= MOST_INTEGERS || first + (high - low) as usize >= MOST_INTEGERS_IN_ALL {
        return;
    }
    for number in low..=high {
        let of = head(ValueRef::Int(number)).unwrap_or_default();
        let below = heads.partition_point(|known| *known < of);
        plan.row_of_integer.push(rows[2 * below + (heads.get(below) == Some(&of)) as usize]);
    }
    let (first_integer, has_integers) = (first as u32, true);
    *attribute = Attribute { least: low, greatest: high, first_integer, has_integers, ..*attribute };
}
