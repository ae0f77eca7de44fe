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
//! Invariant: bit r of the last slice that has it is set in `words` after an event exactly if that clause of rule r holds.
//!
//! The plan is made of a layout when the first events have come, and is not stored. It declines events with sets of values,
//! large integers, decimals, or values of kinds that no predicate expects: the layout answers those.

mod attributes;
mod clauses;
mod formula;
mod rows;
mod texts;
#[cfg(test)]
mod tests;

use std::ops::Range;

use attributes::{AttributeStates, Attributes};
use clauses::{Clause, clauses, necessary_clauses};
use formula::{Formula, Formulas, KeyTest};
use rows::{BitsOfLiterals, Rows, RowsBuilder};
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
/// States of all attributes together.
const MOST_STATES: usize = 16 * 1024;
/// Clauses of one rule.
const MOST_CLAUSES: usize = 8;
/// Integers that have a table, for one attribute and for all.
const MOST_INTEGERS: i64 = 1024;
const MOST_INTEGERS_IN_ALL: usize = 16 * 1024;

const NOTHING: u32 = u32::MAX;

pub struct BitSliced {
    /// Term → its attribute, or [`NOTHING`].
    attribute_of: Vec<u32>,
    attributes: Vec<Attribute>,
    rows: Rows,
    /// The row of each state, by attribute and kind.
    row_of_state: Vec<u16>,
    /// The leading bits of operands, rising within each attribute and kind.
    heads: Vec<u64>,
    /// The row of each integer that has a table.
    row_of_integer: Vec<u16>,
    texts: Vec<TextRows>,
    unlisted: Vec<Unlisted>,
    /// What absent attributes set: the bit of each that sets anything, and its row.
    absent: Vec<(u64, u16)>,
    /// All bits of absent attributes.
    all_absent: u64,
    /// The words before any value.
    base: Vec<u64>,
    /// Where slices begin; the last ends where the bits of literals begin.
    slices: Vec<Range<usize>>,
    /// By rule.
    units: Vec<u32>,
    /// Which rules have to be decided from their literals, a bit each.
    is_undecided: Vec<u64>,
    /// By rule.
    checks: Vec<Option<Check>>,
}

struct Attribute {
    /// The least and the greatest integer of the table, and its place; everything below or above has the same row.
    integers: Range<i64>,
    first_integer: u32,
    /// By kind of scalar.
    kinds: [OfKind; 4],
    /// The row of any value, or [`NOTHING`].
    present: u32,
    /// Its bit among those that set something when they are absent.
    absence: u64,
    /// Its place among those without states, or [`NOTHING`].
    unlisted: u32,
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

/// How a rule is decided from the bits of literals.
enum Check {
    Bit(u32),
    All(Vec<Check>),
    Any(Vec<Check>),
}

impl Check {
    fn holds(&self, words: &[u64]) -> bool {
        match self {
            Check::Bit(bit) => words[*bit as usize / 64] >> (bit % 64) & 1 == 1,
            Check::All(checks) => checks.iter().all(|check| check.holds(words)),
            Check::Any(checks) => checks.iter().any(|check| check.holds(words)),
        }
    }
}

/// Working memory, reused from event to event.
#[derive(Default)]
pub struct Memory {
    words: Vec<u64>,
    bits: Bits,
    fired: FiredKeys,
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
        memory.words.clear();
        memory.words.extend_from_slice(&self.base);
        let mut present = 0;
        for (term, value) in &event.values {
            let Some(&at) = self.attribute_of.get(term.0 as usize) else { break };
            let Some(attribute) = self.attributes.get(at as usize) else { continue };
            present |= attribute.absence;
            let row = match *value {
                ValueRef::Int(number) if attribute.first_integer != NOTHING => {
                    let place = number.clamp(attribute.integers.start, attribute.integers.end)
                        - attribute.integers.start;
                    self.row_of_integer[attribute.first_integer as usize + place as usize]
                }
                value if attribute.unlisted == NOTHING => self.row_of(attribute, value)?,
                value => {
                    self.set_unlisted(&layout.catalog, attribute, value, memory)?;
                    continue;
                }
            };
            self.rows.set(row, &mut memory.words);
        }
        if present != self.all_absent {
            for (bit, row) in &self.absent {
                if present & bit == 0 {
                    self.rows.set(*row, &mut memory.words);
                }
            }
        }
        Some(self.deliver(memory, collector))
    }

    /// The row of a value that has no faster way to it; `None` if it is of an unexpected kind or has no state.
    #[inline]
    fn row_of(&self, attribute: &Attribute, value: ValueRef<'_>) -> Option<u16> {
        if attribute.present != NOTHING {
            return Some(attribute.present as u16);
        }
        let (state, of) = match value {
            ValueRef::Str(text) => {
                let of = &attribute.kinds[Kind::Str as usize];
                if of.first_row == NOTHING {
                    return None;
                }
                match &self.texts[of.first as usize] {
                    TextRows::Equal(texts) => return Some(texts.row(text)),
                    TextRows::Ordered(texts) => {
                        let below = texts.partition_point(|known| **known < *text);
                        let is_same = texts.get(below).is_some_and(|known| **known == *text);
                        (2 * below + is_same as usize, of)
                    }
                }
            }
            value => {
                let of = attribute.kinds.get(value.kind()? as usize)?;
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

    /// Asks the catalog which keys a value fires; `None` if it is of an unexpected kind.
    #[inline(never)]
    fn set_unlisted(
        &self,
        catalog: &Catalog,
        attribute: &Attribute,
        value: ValueRef<'_>,
        memory: &mut Memory,
    ) -> Option<()> {
        let unlisted = &self.unlisted[attribute.unlisted as usize];
        let expected = catalog.terms[unlisted.entry].expected_kinds;
        if expected != 0 && expected >> value.kind()? as u32 & 1 == 0 {
            return None;
        }
        memory.bits.reset(catalog.bits as usize);
        memory.fired.0.clear();
        catalog.fire_one(&catalog.terms[unlisted.entry], value, &mut memory.bits, &mut memory.fired);
        memory.fired.0.sort_unstable();
        for (test, row) in &unlisted.tests {
            if test.holds(&|key| memory.fired.0.binary_search(&key).is_ok()) {
                self.rows.set(*row, &mut memory.words);
            }
        }
        Some(())
    }

    /// Puts the slices together.
    #[inline]
    fn deliver(&self, memory: &mut Memory, collector: &mut impl UnitCollector) -> Work {
        let mut work = Work::default();
        let words = &mut memory.words[..];
        let Some((first, rest)) = self.slices.split_first() else { return work };
        for slice in rest {
            let (hold, further) = words.split_at_mut(slice.start);
            for (hold, more) in hold[first.clone()].iter_mut().zip(&further[..slice.len()]) {
                *hold &= more;
            }
        }
        for (at, undecided) in first.clone().zip(&self.is_undecided) {
            let mut left = words[at];
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let rule = 64 * at + bit as usize;
                work.candidates += 1;
                if undecided >> bit & 1 == 1 {
                    work.evaluations += 1;
                    if !self.checks[rule].as_ref().is_none_or(|check| check.holds(words)) {
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
        size_of::<Self>()
            + size_of_val(&self.attribute_of[..])
            + size_of_val(&self.attributes[..])
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

/// A rule on its way into the plan.
struct Rule {
    unit: u32,
    clauses: Vec<Clause>,
    /// What decides it, if its clauses do not.
    formula: Option<Formula>,
}

impl BitSliced {
    /// The plan for a layout; `None` if it has too many rules or states, or rules that are too long.
    pub fn new(layout: &Layout) -> Option<Self> {
        let with_rows = (0..layout.units()).filter(|unit| !layout.rows_of(*unit).is_empty());
        if with_rows.clone().count() > MOST_RULES {
            return None;
        }
        let attributes = Attributes::new(&layout.catalog, MOST_STATES)?;
        let mut formulas = Formulas::new(layout, &attributes);
        let mut rules = vec![];
        for unit in with_rows {
            rules.push(Rule::new(unit, formulas.of_unit(unit)?));
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.clauses.len()));
        PlanBuilder::new(&layout.catalog, attributes).finish(rules)
    }
}

impl Rule {
    fn new(unit: u32, formula: Formula) -> Self {
        match clauses(&formula, MOST_CLAUSES) {
            Some(clauses) => Self { unit, clauses, formula: None },
            None => {
                let clauses = necessary_clauses(&formula, MOST_CLAUSES);
                Self { unit, clauses, formula: Some(formula) }
            }
        }
    }
}

struct PlanBuilder<'a> {
    catalog: &'a Catalog,
    attributes: Attributes,
    /// By attribute.
    literals: Vec<BitsOfLiterals>,
    rows: RowsBuilder,
    next_bit: u32,
}

impl<'a> PlanBuilder<'a> {
    fn new(catalog: &'a Catalog, attributes: Attributes) -> Self {
        let literals = attributes.all.iter().map(|_| BitsOfLiterals::default()).collect();
        Self { catalog, attributes, literals, rows: RowsBuilder::new(), next_bit: 0 }
    }

    fn finish(mut self, rules: Vec<Rule>) -> Option<BitSliced> {
        let (mut slices, mut base): (Vec<Range<usize>>, Vec<u64>) = (vec![], vec![]);
        let most = rules.first().map_or(0, |rule| rule.clauses.len()).max(1);
        for number in 0..most {
            let having = rules.iter().filter(|rule| rule.clauses.len() > number).count();
            let words = if number == 0 { rules.len() } else { having }.div_ceil(64);
            slices.push(base.len()..base.len() + words);
            for (at, rule) in rules[..having].iter().enumerate() {
                let bit = (base.len() * 64 + at) as u32;
                rule.clauses[number].iter().for_each(|literal| {
                    self.literals[literal.attribute as usize].add(literal, bit);
                });
            }
            // Where there is no rule at all, nothing holds; where a rule has no such clause, it does.
            let filled = if number == 0 { rules.len() } else { 64 * words };
            let start = base.len() * 64;
            base.resize(base.len() + words, 0);
            (start + having..start + filled).for_each(|bit| base[bit / 64] |= 1 << (bit % 64));
        }
        self.next_bit = base.len() as u32 * 64;
        let mut is_undecided = vec![0u64; rules.len().div_ceil(64)];
        let mut checks = vec![];
        for (at, rule) in rules.iter().enumerate() {
            checks.push(rule.formula.as_ref().map(|formula| self.check(formula)));
            is_undecided[at / 64] |= (rule.formula.is_some() as u64) << (at % 64);
        }
        base.resize(self.next_bit.div_ceil(64) as usize + 1, 0);
        let mut plan = BitSliced {
            attribute_of: vec![NOTHING; self.catalog.entry_of.len()],
            attributes: vec![],
            rows: Rows::default(),
            row_of_state: vec![],
            heads: vec![],
            row_of_integer: vec![],
            texts: vec![],
            unlisted: vec![],
            absent: vec![],
            all_absent: 0,
            base,
            slices,
            units: rules.iter().map(|rule| rule.unit).collect(),
            is_undecided,
            checks,
        };
        for at in 0..self.attributes.all.len() {
            self.add_attribute(at, &mut plan)?;
        }
        plan.rows = self.rows.finish();
        Some(plan)
    }

    fn check(&mut self, formula: &Formula) -> Check {
        match formula {
            Formula::True => Check::All(vec![]),
            Formula::False => Check::Any(vec![]),
            Formula::Literal(literal) => {
                let bit = self.next_bit;
                self.next_bit += 1;
                self.literals[literal.attribute as usize].add(literal, bit);
                Check::Bit(bit)
            }
            Formula::And(parts) => Check::All(parts.iter().map(|part| self.check(part)).collect()),
            Formula::Or(parts) => Check::Any(parts.iter().map(|part| self.check(part)).collect()),
        }
    }

    fn add_attribute(&mut self, at: usize, plan: &mut BitSliced) -> Option<()> {
        let entry = &self.catalog.terms[at];
        plan.attribute_of[entry.attribute as usize] = plan.attributes.len() as u32;
        let literals = std::mem::take(&mut self.literals[at]);
        let absent = OfKind { first_row: NOTHING, first: 0, len: 0 };
        let mut attribute = Attribute {
            integers: 0..0,
            first_integer: NOTHING,
            kinds: [absent; 4],
            present: NOTHING,
            absence: 0,
            unlisted: NOTHING,
        };
        let when_absent = match &self.attributes.all[at] {
            AttributeStates::Listed(states) => {
                let rows: Option<Vec<u16>> =
                    (0..states.fired.len()).map(|state| self.rows.row(&literals.of_state(state))).collect();
                let rows = rows?;
                attribute.present = states.present.map_or(NOTHING, |state| rows[state as usize] as u32);
                add_kinds(states, &rows, &mut attribute, plan);
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
                attribute.unlisted = plan.unlisted.len() as u32;
                plan.unlisted.push(Unlisted { entry: at, tests });
                self.rows.row(&when_absent)?
            }
        };
        if when_absent != 0 {
            attribute.absence = 1u64.checked_shl(plan.absent.len() as u32)?;
            plan.all_absent |= attribute.absence;
            plan.absent.push((attribute.absence, when_absent));
        }
        plan.attributes.push(attribute);
        Some(())
    }
}

fn add_kinds(states: &States, rows: &[u16], attribute: &mut Attribute, plan: &mut BitSliced) {
    for (kind, of) in states.kinds.iter().enumerate() {
        let Some(StatesOfKind { first, operands }) = of else { continue };
        let count = match operands {
            Operands::Heads(heads) => heads.len(),
            Operands::Texts(texts) => texts.len(),
        };
        let rows = &rows[*first as usize..][..2 * count + 1];
        let first_row = plan.row_of_state.len() as u32;
        plan.row_of_state.extend(rows);
        attribute.kinds[kind] = match operands {
            Operands::Heads(heads) => {
                let first = plan.heads.len() as u32;
                plan.heads.extend(heads);
                OfKind { first_row, first, len: count as u32 }
            }
            Operands::Texts(texts) => {
                let between = rows.iter().step_by(2);
                let first = plan.texts.len() as u32;
                plan.texts.push(if between.clone().all(|row| *row == rows[0]) {
                    let with_rows = texts.iter().zip(rows.iter().skip(1).step_by(2));
                    let with_rows: Vec<(&str, u16)> = with_rows.map(|(text, row)| (&**text, *row)).collect();
                    TextRows::Equal(Texts::new(&with_rows, rows[0]))
                } else {
                    TextRows::Ordered(texts.clone())
                });
                OfKind { first_row, first, len: count as u32 }
            }
        };
        if let (Operands::Heads(heads), true) = (operands, kind == Kind::Number as usize) {
            add_integers(heads, rows, attribute, plan);
        }
    }
}

/// Gives an attribute a table of integers if its operands are near to each other.
fn add_integers(heads: &[u64], rows: &[u16], attribute: &mut Attribute, plan: &mut BitSliced) {
    const FARTHEST: f64 = (1u64 << 52) as f64;
    let float = |head: u64| f64::from_bits(if head >> 63 == 1 { head & !(1 << 63) } else { !head });
    let ends = heads.first().zip(heads.last()).map_or((0.0, 0.0), |(low, high)| (float(*low), float(*high)));
    if !(ends.0 > -FARTHEST && ends.1 < FARTHEST) {
        return;
    }
    let (low, high) = (ends.0.floor() as i64 - 1, ends.1.ceil() as i64 + 1);
    let first = plan.row_of_integer.len();
    if high - low >= MOST_INTEGERS || first + (high - low) as usize >= MOST_INTEGERS_IN_ALL {
        return;
    }
    for number in low..=high {
        let of = head(ValueRef::Int(number)).unwrap_or_default();
        let below = heads.partition_point(|known| *known < of);
        plan.row_of_integer.push(rows[2 * below + (heads.get(below) == Some(&of)) as usize]);
    }
    (attribute.integers, attribute.first_integer) = (low..high, first as u32);
}
