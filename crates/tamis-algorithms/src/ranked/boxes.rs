//! Boxes over several attributes: one interval index for each attribute, read side by side.
//!
//! *Exact*: a box matches if its side holds the value of every attribute. It has one score, its priority, the same
//! in every index, so their answers run in the same order and are intersected. An attribute without a side is
//! unconstrained, and its interval the whole line.
//!
//! *Relaxed*: one side is enough, and the score is the sum of the weights of the sides that hold. The indexes are
//! sorted by the weight of their own side, and the Threshold Algorithm adds up.
//!
//! The two need different orders, so each has its own indexes, which are built on first use.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::lists::{Intersection, RoundRobin, best_sums};
use super::{ABSENT, Extent, IntervalIndex, LAST, Scored, ScoredInterval, Settings, position};
use tamis_core::{Error, Result};

/// The interval of a box on one attribute, ends included, and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    pub low: f64,
    pub high: f64,
    pub weight: f64,
}

/// A side for every attribute, in their order; `None` where the box is unconstrained.
pub type Sides = Box<[Option<Side>]>;

struct Held {
    priority: f64,
    sides: Sides,
}

/// One interval index for every attribute.
type Indexes = Vec<Box<dyn IntervalIndex>>;

pub struct BoxIndex {
    terms: Vec<Box<str>>,
    settings: Settings,
    boxes: FxHashMap<i64, Held>,
    exact: OnceLock<Indexes>,
    relaxed: OnceLock<Indexes>,
}

impl BoxIndex {
    /// An index of boxes given at once: id, priority and sides.
    pub fn new(
        terms: Vec<Box<str>>,
        settings: Settings,
        boxes: impl Iterator<Item = (i64, f64, Sides)>,
    ) -> Result<Self> {
        if terms.is_empty() {
            return Err(Error::Argument("an index of intervals needs at least one attribute".into()));
        }
        if let Some(twice) = (1..terms.len()).find(|at| terms[..*at].contains(&terms[*at])) {
            return Err(Error::Argument(format!("the attribute `{}` is given twice", terms[twice])));
        }
        if settings.branching < 2 {
            let given = settings.branching;
            return Err(Error::Argument(format!("the branching is at least 2, not {given}")));
        }
        let mut index = Self {
            terms,
            settings,
            boxes: FxHashMap::default(),
            exact: OnceLock::new(),
            relaxed: OnceLock::new(),
        };
        for (id, priority, sides) in boxes {
            index.hold(id, priority, sides)?;
        }
        Ok(index)
    }

    pub fn terms(&self) -> &[Box<str>] {
        &self.terms
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    pub fn len(&self) -> usize {
        self.boxes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    pub fn contains(&self, id: i64) -> bool {
        self.boxes.contains_key(&id)
    }

    pub fn insert(&mut self, id: i64, priority: f64, sides: Sides) -> Result<()> {
        self.refuse_static("add")?;
        self.hold(id, priority, sides)?;
        let held = &self.boxes[&id];
        for (indexes, is_relaxed) in [(self.exact.get_mut(), false), (self.relaxed.get_mut(), true)] {
            for (at, index) in indexes.into_iter().flatten().enumerate() {
                if let Some(interval) = held.interval(id, at, is_relaxed) {
                    index.as_dynamic().expect("static ones were refused").insert(interval);
                }
            }
        }
        Ok(())
    }

    pub fn remove(&mut self, id: i64) -> Result<()> {
        self.refuse_static("remove")?;
        let Some(held) = self.boxes.remove(&id) else {
            return Err(Error::UnknownId(format!("there is no subscription {id}")));
        };
        for (indexes, is_relaxed) in [(self.exact.get_mut(), false), (self.relaxed.get_mut(), true)] {
            for (at, index) in indexes.into_iter().flatten().enumerate() {
                if let Some(interval) = held.interval(id, at, is_relaxed) {
                    index.as_dynamic().expect("static ones were refused").remove(&interval);
                }
            }
        }
        Ok(())
    }

    fn refuse_static(&self, what: &str) -> Result<()> {
        let structure = self.settings.structure;
        if structure.is_dynamic() {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "the structure {:?} is built at once and takes no changes, so it cannot {what}: rebuild it, or use \
             \"ir\", which changes at little cost",
            structure.name()
        )))
    }

    fn hold(&mut self, id: i64, priority: f64, sides: Sides) -> Result<()> {
        if sides.len() != self.terms.len() {
            let (given, wanted) = (sides.len(), self.terms.len());
            return Err(Error::Argument(format!("the subscription {id} has {given} sides, not {wanted}")));
        }
        if !priority.is_finite() {
            return Err(Error::Argument(format!(
                "the priority of the subscription {id} must be finite, not {priority}"
            )));
        }
        for (side, attribute) in sides.iter().zip(&self.terms) {
            let Some(Side { low, high, weight }) = side else { continue };
            // Also where one of them is no number.
            if !matches!(low.partial_cmp(high), Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)) {
                return Err(Error::Argument(format!(
                    "the interval of `{attribute}` in the subscription {id} must have a low end that is not above \
                     its high end, not {low} and {high}"
                )));
            }
            if !weight.is_finite() || *weight < 0.0 {
                return Err(Error::Argument(format!(
                    "the weight of `{attribute}` in the subscription {id} must be finite and not negative, not \
                     {weight}"
                )));
            }
        }
        if self.boxes.contains_key(&id) {
            return Err(Error::DuplicateId(format!("there is a subscription {id} already")));
        }
        // -0.0 and 0.0 are one score.
        self.boxes.insert(id, Held { priority: priority + 0.0, sides });
        Ok(())
    }

    fn build(&self, is_relaxed: bool) -> Indexes {
        let of_attribute = |at: usize| {
            let held = self.boxes.iter();
            let intervals = held.filter_map(|(id, held)| held.interval(*id, at, is_relaxed));
            self.settings.build(intervals.collect())
        };
        (0..self.terms.len()).map(of_attribute).collect()
    }

    fn indexes(&self, is_relaxed: bool) -> &Indexes {
        let built = if is_relaxed { &self.relaxed } else { &self.exact };
        built.get_or_init(|| self.build(is_relaxed))
    }

    /// The boxes that hold an event whole, the best priority first; one value for each attribute, `None` where
    /// it is absent: then only boxes without a side there match.
    fn exact(&self, event: &[Option<f64>]) -> Intersection<'_> {
        let lists = self.indexes(false).iter().zip(event);
        Intersection::new(lists.map(|(index, value)| index.stab(value.map_or(ABSENT, position))).collect())
    }

    /// The sides that hold their values, the greatest weight first; attributes without a value are left out.
    fn relaxed(&self, event: &[Option<f64>]) -> RoundRobin<'_> {
        let lists = self.indexes(true).iter().zip(event);
        RoundRobin::new(lists.filter_map(|(index, value)| Some((index.stab(position((*value)?)), 1.0))))
    }

    /// The k best, and how many items were read from the lists for them.
    pub fn top_k(&self, event: &[Option<f64>], k: usize, is_relaxed: bool) -> (Vec<Scored>, u64) {
        if is_relaxed {
            let mut lists = self.relaxed(event);
            let best = best_sums(&mut lists, k, |id| self.boxes[&id].sum(event));
            (best, lists.reads)
        } else {
            let mut all = self.exact(event);
            (all.by_ref().take(k).collect(), all.reads)
        }
    }

    /// Whether all is as the paper promises; builds what was not asked for yet.
    pub fn check(&self) -> std::result::Result<(), String> {
        for is_relaxed in [false, true] {
            for (at, index) in self.indexes(is_relaxed).iter().enumerate() {
                let mode = if is_relaxed { "relaxed" } else { "exact" };
                let of = |problem| format!("the {mode} index of `{}`: {problem}", self.terms[at]);
                index.check().map_err(of)?;
            }
        }
        Ok(())
    }

    /// Bytes by part; the indexes of a mode that was not asked for yet take none.
    pub fn bytes(&self) -> [(&'static str, usize); 3] {
        let indexes = |built: &OnceLock<Indexes>| {
            built.get().map_or(0, |indexes| indexes.iter().map(|index| index.bytes()).sum())
        };
        let sides = self.boxes.len() * self.terms.len() * size_of::<Option<Side>>();
        let boxes = self.boxes.capacity() * size_of::<(i64, Held)>() + sides;
        [("subscriptions", boxes), ("exact", indexes(&self.exact)), ("relaxed", indexes(&self.relaxed))]
    }
}

impl Held {
    /// What the index of an attribute holds of a box.
    fn interval(&self, id: i64, attribute: usize, is_relaxed: bool) -> Option<ScoredInterval> {
        let side = self.sides[attribute];
        let extent = match side {
            Some(side) => Extent { low: position(side.low), high: position(side.high) },
            None => Extent { low: ABSENT, high: LAST },
        };
        let score = if is_relaxed { side?.weight + 0.0 } else { self.priority };
        Some(ScoredInterval { extent, scored: Scored { score, id } })
    }

    /// The weights of the sides that hold their value, in the order of the attributes.
    fn sum(&self, event: &[Option<f64>]) -> f64 {
        let holds = |(side, value): (&Option<Side>, &Option<f64>)| {
            let (side, value) = ((*side)?, (*value)?);
            (side.low <= value && value <= side.high).then_some(side.weight)
        };
        self.sides.iter().zip(event).filter_map(holds).fold(0.0, |sum, weight| sum + weight)
    }
}
