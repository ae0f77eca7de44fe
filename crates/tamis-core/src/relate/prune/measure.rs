//! The costs and gains of a pruning (Bittner 2008, section 6.4).

use crate::relate::tree::LeafId;

/// Bounds of how often an expression is true, and a guess that takes its predicates for independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub min: f64,
    pub avg: f64,
    pub max: f64,
}

/// What to prune by. Ties go to the other criteria, in the order that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Least growth of the estimate; then efficiency; then memory.
    Accuracy,
    /// Least loss of predicates that must be true; then accuracy; then memory.
    Efficiency,
    /// Most bytes gained, as near to the leaves as possible; then accuracy; then efficiency.
    Memory,
    /// Accuracy, where uncommon predicates go first, so that what is left becomes alike; then accuracy;
    /// then efficiency.
    AccuracyAndOccurrence,
    /// Accuracy, divided by how far away the subscriber is; then as accuracy. (Proposed in the thesis
    /// without a formula.)
    AccuracyAndDistance,
}

impl Measure {
    /// The measure of that name, with "-" between words.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, measure)| *measure)
    }

    pub const NAMES: [(&'static str, Self); 5] = [
        ("accuracy", Self::Accuracy),
        ("efficiency", Self::Efficiency),
        ("memory", Self::Memory),
        ("accuracy-occurrence", Self::AccuracyAndOccurrence),
        ("accuracy-distance", Self::AccuracyAndDistance),
    ];
}

/// What the measures know of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    pub estimate: Estimate,
    /// How many predicates must be true at least for the tree to be true.
    pub least_true: u32,
    pub bytes: usize,
    /// How often its predicates occur in all trees, added up.
    pub occurrence: u64,
}

impl Profile {
    /// Of what is always true: an AND without children.
    pub const TRUE: Self =
        Self { estimate: Estimate { min: 1.0, avg: 1.0, max: 1.0 }, least_true: 0, bytes: 0, occurrence: 0 };
}

/// What the measures must know of leaves.
#[derive(Clone, Copy)]
pub struct LeafFacts<'a> {
    pub selectivity: &'a [f64],
    pub occurrence: &'a [u32],
}

impl LeafFacts<'_> {
    pub fn profile(&self, leaf: LeafId) -> Profile {
        let share = self.selectivity[leaf.0 as usize];
        Profile {
            estimate: Estimate { min: share, avg: share, max: share },
            least_true: 1,
            bytes: LEAF_BYTES,
            occurrence: self.occurrence[leaf.0 as usize].into(),
        }
    }
}

pub const LEAF_BYTES: usize = 5;
pub const NODE_BYTES: usize = 2;

/// The best pruning comes first. Numbers are rounded, so that equal ones are ties however they were
/// computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rank {
    /// Giving up the whole expression comes after everything else.
    is_last_resort: bool,
    criteria: [f64; 3],
}

impl Rank {
    /// Of the pruning that makes `after` of `before`, which was `original` once.
    pub fn new(
        measure: Measure,
        original: &Profile,
        before: &Profile,
        after: &Profile,
        distance: u32,
    ) -> Self {
        let (from, to) = (original.estimate, after.estimate);
        let accuracy = (to.min - from.min).max(to.avg - from.avg).max(to.max - from.max);
        let efficiency = f64::from(original.least_true) - f64::from(after.least_true);
        let memory = after.bytes as f64 - before.bytes as f64;
        let criteria = match measure {
            Measure::Accuracy => [accuracy, efficiency, memory],
            Measure::Efficiency => [efficiency, accuracy, memory],
            Measure::Memory => [memory, accuracy, efficiency],
            Measure::AccuracyAndOccurrence => {
                let common = before.occurrence as f64 / after.occurrence.max(1) as f64;
                [common * accuracy, accuracy, efficiency]
            }
            Measure::AccuracyAndDistance => [accuracy / f64::from(distance.max(1)), efficiency, memory],
        };
        Self { is_last_resort: false, criteria: criteria.map(|x| (x * 1e12).round() / 1e12 + 0.0) }
    }

    /// The same, after all that are not.
    pub fn as_last_resort(self) -> Self {
        Self { is_last_resort: true, ..self }
    }

    /// The first criterion.
    pub fn value(&self) -> f64 {
        self.criteria[0]
    }
}

impl Eq for Rank {}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let criteria = || self.criteria.iter().zip(&other.criteria);
        self.is_last_resort.cmp(&other.is_last_resort).then_with(|| {
            criteria().fold(std::cmp::Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(b)))
        })
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
