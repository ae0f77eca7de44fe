//! Assigns bits to the predicates of a segment.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::catalog::{AttributeEntry, Catalog, NO_ATTRIBUTE, TRUE_BIT};
use super::equality::PointsBuilder;
use super::interval_lists::IntervalListsBuilder;
use super::interval_tree::{IntervalTreeBuilder, NONE};
use super::keys::has_exact_key;
use super::paths::PathPredicates;
use super::ranges::{Cut, CutTable, CutsBuilder};
use super::residual::{Residual, ResidualOfAttribute, ResidualPredicates};
use crate::event::value::Kind;
use crate::event::{TermId, Value, ValueRef};
use crate::expr::ast::Outcome;
use crate::expr::atoms::AtomTable;
use crate::expr::atoms::Literal;
use crate::expr::operators::{Operator, Shape};
use crate::prefetch::prefetch;

/// What it takes for a literal to be true, in bits.
#[derive(Clone, Debug, PartialEq)]
pub enum LiteralTest {
    /// This bit is set.
    Bit(u32),
    /// The first bit is set and the second is clear.
    SetAndClear(u32, u32),
    /// The attribute is absent, or the second bit is set and the third is clear.
    AbsentOr(u32, u32, u32),
    /// The value lies above one cut of a table and below another; at least one is given.
    Between {
        table: u32,
        above: Option<u32>,
        below: Option<u32>,
    },
    /// The value lies below one cut or above another: NOT BETWEEN.
    Outside {
        table: u32,
        below: u32,
        above: u32,
    },
    Never,
}

/// Where an atom was put.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Its bit, and the bit that is set when it is defined.
    Bit {
        bit: u32,
        defined: u32,
    },
    /// The same, but it is false, not undefined, when the attribute is absent.
    BitOrAbsent {
        bit: u32,
        defined: u32,
        absent: u32,
    },
    /// Its bit, and the bit that is set when it is false.
    TwoBits {
        bit: u32,
        false_bit: u32,
    },
    /// True above one cut and below another of a table.
    Range {
        table: u32,
        above: Option<u32>,
        below: Option<u32>,
    },
    Absence {
        absent: u32,
        present: u32,
    },
    /// True exactly when another predicate is defined.
    Defined {
        defined: u32,
    },
    /// Never true, and false for every value of its kind unless it is never defined.
    Empty {
        defined: u32,
    },
}

pub struct CatalogBuilder {
    places: Vec<Place>,
    catalog: Catalog,
    cut_tables: Vec<CutTable>,
    interval_lists: IntervalListsBuilder,
    interval_tree: IntervalTreeBuilder,
    /// Intervals asked for so far, per cut table: (above cut, below cut) → number.
    intervals: Vec<HashMap<(u32, u32), u32, FxBuildHasher>>,
    /// The access keys of intervals, by number. An interval that no value is in has the key of nothing.
    interval_keys: Vec<u32>,
    next_key: u32,
    /// Of the bits that say that there is a value: those that some literal tests.
    tested: Vec<AtomicU64>,
}

impl CatalogBuilder {
    /// Lays out the bits of all atoms of the table.
    pub fn new(atoms: &AtomTable) -> Self {
        let by_attribute = by_attribute(atoms);
        let mut layout = Layout {
            atoms,
            next_bit: TRUE_BIT + 1,
            places: vec![Place::Empty { defined: 0 }; atoms.len()],
            terms: vec![],
            asks_absence: vec![],
            points: PointsBuilder::default(),
            cut_tables: vec![],
            cuts: CutsBuilder::default(),
            pool: vec![],
            residual: vec![],
            sorted: Sorted::default(),
        };
        for group in by_attribute.chunk_by(|a, b| atoms.atom(*a).attribute == atoms.atom(*b).attribute) {
            layout.attribute(atoms.atom(group[0]).attribute, group);
        }
        let mut entry_of = vec![];
        for (at, entry) in layout.terms.iter().enumerate() {
            entry_of.resize(entry.attribute as usize + 1, NO_ATTRIBUTE);
            entry_of[entry.attribute as usize] = at as u32;
        }
        let catalog = Catalog {
            terms: layout.terms.into(),
            entry_of: entry_of.into(),
            asks_absence: layout.asks_absence.into(),
            points: layout.points.finish(),
            cuts: layout.cuts.finish(),
            pool: layout.pool.into(),
            residual: std::sync::Arc::new(ResidualPredicates::new(layout.residual)),
            bits: layout.next_bit,
            ..Catalog::default()
        };
        Self {
            places: layout.places,
            intervals: layout.cut_tables.iter().map(|_| HashMap::default()).collect(),
            interval_keys: vec![],
            cut_tables: layout.cut_tables,
            interval_lists: IntervalListsBuilder::default(),
            interval_tree: IntervalTreeBuilder::default(),
            next_key: catalog.bits,
            tested: (0..catalog.bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            catalog,
        }
    }

    /// The catalog as it is before access intervals are known: enough to fire events for counting.
    pub fn draft(&self) -> Catalog {
        Catalog { cut_tables: self.cut_tables.clone().into(), ..self.catalog.clone() }
    }

    /// How many bits there are.
    pub fn bits(&self) -> usize {
        self.catalog.bits as usize
    }

    /// Frees the data on how literals are tested, which is no longer needed.
    pub fn forget_tests(&mut self) {
        self.places = vec![];
    }

    /// Fetches what [`test`](Self::test) will need.
    pub fn fetch(&self, literal: Literal) {
        prefetch(&self.places[literal.atom() as usize]);
    }

    /// How a literal is tested. What is needed for it is in the catalog from then on.
    pub fn test(&self, literal: Literal) -> LiteralTest {
        let test = self.find_test(literal);
        if let Place::Defined { defined } = self.places[literal.atom() as usize] {
            self.note_tested(defined);
        }
        match test {
            LiteralTest::SetAndClear(set, _) | LiteralTest::AbsentOr(_, set, _) => self.note_tested(set),
            LiteralTest::Bit(bit) if literal.is_negated() => self.note_tested(bit),
            _ => {}
        }
        test
    }

    fn note_tested(&self, bit: u32) {
        let (word, mask) = (&self.tested[bit as usize / 64], 1 << (bit % 64));
        if word.load(Ordering::Relaxed) & mask == 0 {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    fn is_tested(&self, bit: u32) -> bool {
        self.tested[bit as usize / 64].load(Ordering::Relaxed) >> (bit % 64) & 1 == 1
    }

    /// The same, for an estimate: it will not be tested.
    pub fn find_test(&self, literal: Literal) -> LiteralTest {
        match (self.places[literal.atom() as usize], literal.is_negated()) {
            (Place::Bit { bit, .. } | Place::BitOrAbsent { bit, .. } | Place::TwoBits { bit, .. }, false) => {
                LiteralTest::Bit(bit)
            }
            (Place::BitOrAbsent { bit, defined, absent }, true) => {
                LiteralTest::AbsentOr(absent, defined, bit)
            }
            (Place::Bit { defined: 0, .. }, true) => LiteralTest::Never,
            (Place::Bit { bit, defined }, true) => LiteralTest::SetAndClear(defined, bit),
            (Place::TwoBits { false_bit, .. }, true) => LiteralTest::Bit(false_bit),
            (Place::Range { table, above, below }, false) => LiteralTest::Between { table, above, below },
            // "Not above c" is "below c", and the other way round.
            (Place::Range { table, above: Some(above), below: None }, true) => {
                LiteralTest::Between { table, above: None, below: Some(above) }
            }
            (Place::Range { table, above: None, below: Some(below) }, true) => {
                LiteralTest::Between { table, above: Some(below), below: None }
            }
            (Place::Range { table, above: Some(above), below: Some(below) }, true) => {
                LiteralTest::Outside { table, below: above, above: below }
            }
            (Place::Range { above: None, below: None, .. }, true) => LiteralTest::Never,
            (Place::Defined { defined }, false) => LiteralTest::Bit(defined),
            (Place::Defined { defined }, true) => LiteralTest::SetAndClear(TRUE_BIT, defined),
            (Place::Absence { absent, .. }, false) => LiteralTest::Bit(absent),
            (Place::Absence { present, .. }, true) => LiteralTest::Bit(present),
            (Place::Empty { .. }, false) | (Place::Empty { defined: 0 }, true) => LiteralTest::Never,
            (Place::Empty { defined }, true) => LiteralTest::Bit(defined),
        }
    }

    pub fn cut_table(&self, table: u32) -> &CutTable {
        &self.cut_tables[table as usize]
    }

    /// Asks for an access key that stands for "above one cut and below another", and returns the number of the interval.
    pub fn want_interval(&mut self, table: u32, above: u32, below: u32) -> u32 {
        *self.intervals[table as usize].entry((above, below)).or_insert_with(|| {
            self.interval_keys.push(0);
            self.interval_keys.len() as u32 - 1
        })
    }

    /// Gives the wanted intervals their keys, in the order in which they are listed or an interval tree finds
    /// them, so that what fires together is numbered together.
    pub fn number_intervals(&mut self) {
        for (table, intervals) in self.cut_tables.iter_mut().zip(std::mem::take(&mut self.intervals)) {
            let mut list: Vec<(u32, u32)> =
                intervals.keys().copied().filter(|(above, below)| above < below).collect();
            list.sort_unstable();
            // Above cut i and below cut j: the rank is in i + 1 ..= j.
            let places = list.iter().enumerate().map(|(at, (above, below))| (above + 1, *below, at as u32));
            let places: Vec<(u32, u32, u32)> = places.collect();
            let mut key_of = |at: u32| {
                let key = self.next_key;
                self.interval_keys[intervals[&list[at as usize]] as usize] = key;
                self.next_key += 1;
                key
            };
            match self.interval_lists.table(&places, &mut key_of) {
                Some(number) => table.list = number,
                None => table.tree = self.interval_tree.tree(places, &mut key_of),
            }
        }
    }

    /// The key of an interval that was wanted, by its number.
    pub fn interval_key(&self, number: u32) -> u32 {
        self.interval_keys[number as usize]
    }

    /// The number of access keys: bits first, then intervals.
    pub fn keys(&self) -> u32 {
        self.next_key
    }

    /// The catalog. Bits that say that there is a value are left out where no literal tests them.
    pub fn finish(mut self) -> Catalog {
        let mut terms = self.catalog.terms.to_vec();
        for entry in &mut terms {
            if entry.absent == 0 && !self.is_tested(entry.present) {
                entry.present = 0;
            }
            for bit in entry.defined.iter_mut().filter(|bit| !self.is_tested(**bit)) {
                *bit = 0;
            }
        }
        self.catalog.terms = terms.into();
        self.catalog.cut_tables = self.cut_tables.into();
        self.catalog.interval_lists = self.interval_lists.finish();
        self.catalog.interval_tree = self.interval_tree.finish();
        self.catalog
    }
}

struct Layout<'a> {
    atoms: &'a AtomTable,
    next_bit: u32,
    places: Vec<Place>,
    terms: Vec<AttributeEntry>,
    asks_absence: Vec<u32>,
    points: PointsBuilder,
    cut_tables: Vec<CutTable>,
    cuts: CutsBuilder,
    pool: Vec<u8>,
    residual: Vec<ResidualOfAttribute>,
    /// Memory that is used from attribute to attribute: a small segment has hardly more predicates than attributes.
    sorted: Sorted<'a>,
}

/// Predicates of one attribute by what they look for.
#[derive(Default)]
struct Sorted<'a> {
    /// By kind of scalar, and then by kind of element: values and the bits they set.
    points: [Vec<(ValueRef<'a>, u32)>; 8],
    /// By kind of scalar: ranges.
    ranges: [Vec<u32>; 4],
    /// The cuts of one kind.
    cuts: Vec<Cut>,
}

/// Beside the kinds that are expected of an attribute: that paths look into it, so that it should be a document.
pub const DOCUMENT: u32 = 1 << 30;

const SCALAR_KINDS: [Kind; 4] = [Kind::Bool, Kind::Number, Kind::Str, Kind::Timestamp];

impl<'a> Layout<'a> {
    fn bit(&mut self) -> u32 {
        self.next_bit += 1;
        self.next_bit - 1
    }

    fn attribute(&mut self, attribute: TermId, group: &[u32]) {
        let first_bit = self.next_bit;
        let mut entry: AttributeEntry = bytemuck::Zeroable::zeroed();
        entry.attribute = attribute.0;
        entry.first_bit = first_bit;
        entry.present = self.bit();
        let atoms = self.atoms;
        let (mut residual_atoms, mut residual) = (vec![], vec![]);
        let Sorted { mut points, mut ranges, cuts } = std::mem::take(&mut self.sorted);
        self.sorted.cuts = cuts;
        let mut paths = vec![];
        for (at, &id) in group.iter().enumerate() {
            fetch_ahead(atoms, group, at);
            let atom = atoms.atom(id);
            let rules = atom.operator.rules();
            let kind = rules.expects(&atom.operands);
            let tested = atom.operator.tested(&atom.operands);
            let about = atom.operator.is_about(&atom.operands);
            if let Some(kind) = about {
                entry.expected_kinds |= 1 << kind as u32;
                if entry.defined[kind as usize] == 0 {
                    entry.defined[kind as usize] = self.bit();
                }
            }
            if let Some(inner) = tested {
                match inner.deciding_kind() {
                    Some(kind) if atom.operator == Operator::KNOWN => {
                        // IS UNKNOWN also holds without a value, and whoever adds up weights has to know.
                        self.absent_bit(&mut entry);
                        self.places[id as usize] = Place::Defined { defined: entry.defined[kind as usize] };
                    }
                    // Which values make it true is known, and it is false for all others and for none.
                    _ if matches!(rules.shape(&atom.operands), Shape::Points(_)) => {}
                    _ => {
                        self.absent_bit(&mut entry);
                        residual_atoms.push(id);
                        continue;
                    }
                }
                if atom.operator == Operator::KNOWN {
                    continue;
                }
            }
            if atom.operator == Operator::XPATH {
                entry.expected_kinds |= DOCUMENT;
                paths.push(id);
                continue;
            }
            let defined = kind.map_or(entry.present, |kind| entry.defined[kind as usize]);
            let holds_null = atom.operands.iter().any(|operand| matches!(operand, Value::Null));
            // What has no key of its own has to be asked.
            let is_keyed = atom.operands.iter().all(|operand| has_exact_key(operand.as_ref()));
            match rules.shape(&atom.operands) {
                Shape::Points(values) => {
                    let bit = self.bit();
                    if is_keyed {
                        let scalars = values.iter().filter(|value| !matches!(value, Value::Null));
                        for value in scalars {
                            let kind = value.kind().expect("not null") as usize;
                            points[kind].push((value.as_ref(), bit));
                        }
                    } else {
                        residual.push(Residual::new(atom, bit, 0));
                    }
                    self.places[id as usize] = if rules.evaluate(None, &atom.operands) == Outcome::FALSE {
                        Place::BitOrAbsent { bit, defined, absent: self.absent_bit(&mut entry) }
                    } else {
                        // With a null among the operands it is never false.
                        Place::Bit { bit, defined: if holds_null { 0 } else { defined } }
                    };
                }
                Shape::Elements(values) if is_keyed && !holds_null && one_scalar_kind(values).is_some() => {
                    let kind = one_scalar_kind(values).expect("just checked") as usize;
                    if entry.clean[kind] == 0 {
                        entry.clean[kind] = self.bit();
                    }
                    let bit = self.bit();
                    points[4 + kind].extend(values.iter().map(|value| (value.as_ref(), bit)));
                    self.places[id as usize] = Place::Bit { bit, defined: entry.clean[kind] };
                }
                Shape::Range { low, high } if is_keyed => {
                    let kind =
                        low.or(high).and_then(|bound| bound.value.kind()).expect("a range has a scalar end");
                    ranges[kind as usize].push(id);
                }
                Shape::Absent => {
                    let absent = self.absent_bit(&mut entry);
                    self.places[id as usize] = Place::Absence { absent, present: entry.present };
                }
                Shape::Never if kind.is_none() || rules.is_two_valued(&atom.operands) => {
                    let can_be_false = !holds_null && rules.is_two_valued(&atom.operands);
                    self.places[id as usize] =
                        Place::Empty { defined: if can_be_false { defined } else { 0 } };
                }
                _ => residual_atoms.push(id),
            }
        }
        entry.first_points = self.points.tables_so_far();
        for (at, pairs) in points.iter_mut().enumerate() {
            if !pairs.is_empty() {
                self.points.table(SCALAR_KINDS[at % 4], at >= 4, pairs, &mut self.pool);
                pairs.clear();
            }
        }
        entry.points = self.points.tables_so_far() - entry.first_points;
        entry.first_residual = 0;
        residual.extend(residual_atoms.into_iter().map(|id| self.residual_atom(id, &entry)));
        entry.residual = residual.len() as u32 + u32::from(!paths.is_empty());
        let paths = (!paths.is_empty()).then(|| Box::new(self.paths(&paths)));
        self.residual.push((residual, paths));
        entry.first_cuts = self.cut_tables.len() as u32;
        for (kind, ids) in ranges.iter_mut().enumerate() {
            if !ids.is_empty() {
                self.cut_table(SCALAR_KINDS[kind], ids);
                ids.clear();
            }
        }
        (self.sorted.points, self.sorted.ranges) = (points, ranges);
        entry.cuts = self.cut_tables.len() as u32 - entry.first_cuts;
        entry.end_bit = self.next_bit;
        self.terms.push(entry);
    }

    fn absent_bit(&mut self, entry: &mut AttributeEntry) -> u32 {
        if entry.absent == 0 {
            entry.absent = self.bit();
            self.asks_absence.push(self.terms.len() as u32);
        }
        entry.absent
    }

    /// Paths have consecutive bits; one more says that there is a document.
    fn paths(&mut self, ids: &[u32]) -> PathPredicates {
        let document_bit = self.bit();
        let first_bit = self.next_bit;
        for id in ids {
            let bit = self.bit();
            self.places[*id as usize] = Place::Bit { bit, defined: document_bit };
        }
        let texts = ids.iter().map(|id| self.atoms.atom(*id).operands[0].as_ref().text());
        PathPredicates::new(document_bit, first_bit, texts).expect("what is stored was checked")
    }

    fn residual_atom(&mut self, id: u32, entry: &AttributeEntry) -> Residual {
        let atom = self.atoms.atom(id);
        let rules = atom.operator.rules();
        let bit = self.bit();
        let mut false_bit = 0;
        self.places[id as usize] = if atom.operator.tested(&atom.operands).is_some() {
            Place::BitOrAbsent { bit, defined: entry.present, absent: entry.absent }
        } else if rules.is_two_valued(&atom.operands) {
            let defined =
                rules.expects(&atom.operands).map_or(entry.present, |kind| entry.defined[kind as usize]);
            Place::Bit { bit, defined }
        } else {
            false_bit = self.bit();
            Place::TwoBits { bit, false_bit }
        };
        Residual::new(atom, bit, false_bit)
    }

    fn cut_table(&mut self, kind: Kind, ids: &[u32]) {
        let atoms = self.atoms;
        let ends = |id: u32| -> (Option<Cut>, Option<Cut>) {
            let atom = atoms.atom(id);
            match atom.operator.rules().shape(&atom.operands) {
                Shape::Range { low, high } => (
                    low.map(|bound| Cut::new(bound.value, !bound.inclusive)),
                    high.map(|bound| Cut::new(bound.value, bound.inclusive)),
                ),
                _ => unreachable!("only ranges are given a cut table"),
            }
        };
        let mut cuts = std::mem::take(&mut self.sorted.cuts);
        for id in ids {
            let (low, high) = ends(*id);
            cuts.extend([low, high].into_iter().flatten());
        }
        cuts.sort_unstable();
        cuts.dedup();
        let place = |cut: Cut| cuts.binary_search(&cut).expect("every end became a cut") as u32;
        let table = self.cut_tables.len() as u32;
        for id in ids {
            let (low, high) = ends(*id);
            self.places[*id as usize] = Place::Range { table, above: low.map(place), below: high.map(place) };
        }
        let len = cuts.len() as u32;
        let below = self.next_bit;
        self.next_bit += 2 * len;
        let first = self.cuts.count() as u32;
        for cut in &cuts {
            self.cuts.push(cut, &mut self.pool);
        }
        cuts.clear();
        self.sorted.cuts = cuts;
        self.cut_tables.push(CutTable {
            kind: kind as u32,
            first,
            len,
            below,
            above: below + len,
            list: NONE,
            tree: NONE,
        });
    }
}

/// The atoms by attribute, those of one attribute in the order of their numbers.
fn by_attribute(atoms: &AtomTable) -> Vec<u32> {
    let terms = atoms.iter().map(|atom| atom.attribute.0 as usize + 1).max().unwrap_or(0);
    let mut next = vec![0u32; terms + 1];
    for atom in atoms.iter() {
        next[atom.attribute.0 as usize + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut sorted = vec![0; atoms.len()];
    for (id, atom) in atoms.iter().enumerate() {
        let place = &mut next[atom.attribute.0 as usize];
        sorted[*place as usize] = id as u32;
        *place += 1;
    }
    sorted
}

/// Atoms of one attribute lie scattered: fetches those that come next, and then their operands.
fn fetch_ahead(atoms: &AtomTable, group: &[u32], at: usize) {
    if let Some(later) = group.get(at + 16) {
        prefetch(atoms.atom(*later));
    }
    if let Some(operand) = group.get(at + 8).and_then(|soon| atoms.atom(*soon).operands.first()) {
        prefetch(operand);
    }
}

fn one_scalar_kind(values: &[Value]) -> Option<Kind> {
    let kind = values.first()?.kind()?;
    let scalar = SCALAR_KINDS.contains(&kind);
    (scalar && values.iter().all(|value| value.kind() == Some(kind))).then_some(kind)
}
