//! The answers to one query about many events.

use super::rows::{BestMatchRows, MatchRows};

/// Matches of many events, sorted by event, then by id.
#[derive(Default, Debug)]
pub struct BatchMatches {
    /// In one chunk or in several.
    pub rows: Vec<MatchRows>,
    pub matches: usize,
    /// How many events are answered, counted from the first: all, unless a bound on matches was reached.
    pub answered: usize,
}

/// The best matches of many events, sorted by event, then by rank.
#[derive(Default, Debug)]
pub struct BatchTopK {
    pub rows: Vec<BestMatchRows>,
    /// As in [`BatchMatches`].
    pub answered: usize,
}

/// The owners that have a match, sorted by event, then by name.
#[derive(Default, Debug)]
pub struct BatchOwners {
    pub events: Vec<u32>,
    pub owners: Vec<Box<str>>,
}

/// The answers to one query about many events.
#[derive(Debug)]
pub enum BatchAnswer {
    All(BatchMatches),
    /// By event.
    Count(Vec<u32>),
    /// By event.
    Exists(Vec<bool>),
    Owners(BatchOwners),
    Best(BatchTopK),
}

impl BatchAnswer {
    /// How many matches are listed.
    pub fn matches(&self) -> usize {
        match self {
            BatchAnswer::All(found) => found.matches,
            BatchAnswer::Best(best) => best.rows.iter().map(|rows| rows.events.len()).sum(),
            BatchAnswer::Count(_) | BatchAnswer::Exists(_) | BatchAnswer::Owners(_) => 0,
        }
    }

    /// How many of the events that were asked about are answered, counted from the first.
    pub fn answered(&self, asked: usize) -> usize {
        match self {
            BatchAnswer::All(found) => found.answered,
            BatchAnswer::Best(best) => best.answered,
            BatchAnswer::Count(_) | BatchAnswer::Exists(_) | BatchAnswer::Owners(_) => asked,
        }
    }
}
