//! The structures by name, with their constructors.

use super::by_endpoint::ByEndpoint;
use super::by_score::ByScore;
use super::interval_tree::IntervalTree;
use super::packed::{MaxScoreRTree, PlainRTree, SoptRTree};
use super::scored_r_tree::ScoredRTree;
use super::segment_tree::SegmentTree;
use super::{IntervalIndex, ScoredInterval};
use tamis_core::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    Segment,
    IntervalScore,
    IntervalEndpoint,
    R,
    MaxR,
    ScoredR,
    Ir,
    SoptR,
}

/// Every structure, and its name.
pub const STRUCTURES: [(&str, Structure); 8] = [
    ("segment", Structure::Segment),
    ("interval-score", Structure::IntervalScore),
    ("interval-endpoint", Structure::IntervalEndpoint),
    ("r", Structure::R),
    ("max-r", Structure::MaxR),
    ("scored-r", Structure::ScoredR),
    ("ir", Structure::Ir),
    ("sopt-r", Structure::SoptR),
];

/// How interval indexes are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub structure: Structure,
    /// Children of a node of an R-tree, at least 2.
    pub branching: usize,
}

impl Default for Settings {
    /// The dynamic structure that the paper recommends, with the branching of its experiments.
    fn default() -> Self {
        Self { structure: Structure::Ir, branching: 50 }
    }
}

impl Structure {
    pub fn named(name: &str) -> Result<Self> {
        let found = STRUCTURES.iter().find(|(other, _)| *other == name);
        found.map(|(_, structure)| *structure).ok_or_else(|| {
            let names: Vec<String> = STRUCTURES.iter().map(|(name, _)| format!("{name:?}")).collect();
            Error::Argument(format!("the structure is one of {}, not {name:?}", names.join(", ")))
        })
    }

    pub fn name(self) -> &'static str {
        STRUCTURES.iter().find(|(_, other)| *other == self).expect("all are listed").0
    }

    /// Whether it takes changes one by one; the others are built at once.
    pub fn is_dynamic(self) -> bool {
        match self {
            Self::IntervalScore | Self::IntervalEndpoint | Self::ScoredR | Self::Ir => true,
            Self::Segment | Self::R | Self::MaxR | Self::SoptR => false,
        }
    }
}

impl Settings {
    pub fn build(self, mut intervals: Vec<ScoredInterval>) -> Box<dyn IntervalIndex> {
        let Self { structure, branching } = self;
        intervals.sort_unstable_by_key(|interval| interval.scored);
        match structure {
            Structure::Segment => Box::new(SegmentTree::new(&intervals)),
            Structure::IntervalScore => Box::new(IntervalTree::<ByScore>::new(intervals, branching)),
            Structure::IntervalEndpoint => Box::new(IntervalTree::<ByEndpoint>::new(intervals, branching)),
            Structure::R => Box::new(PlainRTree::new(intervals, branching)),
            Structure::MaxR => Box::new(MaxScoreRTree::new(intervals, branching)),
            Structure::ScoredR => Box::new(ScoredRTree::new(intervals, branching)),
            Structure::Ir => Box::new(IntervalTree::<ScoredRTree>::new(intervals, branching)),
            Structure::SoptR => Box::new(SoptRTree::new(intervals, branching)),
        }
    }
}
