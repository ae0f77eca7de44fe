//! What happens to matches as they are found.
//!
//! An engine passes every match to a collector, in no particular order, until it wants no more. The collector that ranks
//! is [`TopK`](super::TopK): it also takes scores, and has a threshold. Lower scores are not wanted, and an engine that
//! knows bounds can skip them.

use std::ops::ControlFlow;

use crate::subscription::Location;

/// Takes matches while they are found.
pub trait Collector {
    /// Whether only the number of matches matters; then [`add`](Self::add) may stand for many calls of `collect`.
    const COUNTS: bool = false;

    /// Takes a match, or says that no more are wanted.
    fn collect(&mut self, found: Location) -> ControlFlow<()>;

    /// Takes that many matches at once.
    fn add(&mut self, _matches: usize) {}

    /// Whether some matches may be all that is wanted.
    fn may_stop(&self) -> bool {
        false
    }
}

/// A collector that several threads fill: each has one of its own, and all are put together at the end.
pub trait Shared: Collector + Send + Sized {
    /// An empty one of the same kind.
    fn empty(&self) -> Self;

    /// Takes what another one has.
    fn unite(&mut self, other: Self);
}

impl<C: Collector> Collector for &mut C {
    const COUNTS: bool = C::COUNTS;

    #[inline]
    fn collect(&mut self, found: Location) -> ControlFlow<()> {
        (**self).collect(found)
    }

    #[inline]
    fn add(&mut self, matches: usize) {
        (**self).add(matches);
    }

    #[inline]
    fn may_stop(&self) -> bool {
        (**self).may_stop()
    }
}

/// Every match.
#[derive(Default)]
pub struct All(pub Vec<Location>);

impl Collector for All {
    #[inline]
    fn collect(&mut self, found: Location) -> ControlFlow<()> {
        self.0.push(found);
        ControlFlow::Continue(())
    }
}

impl Shared for All {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn unite(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}

/// How many there are.
#[derive(Default)]
pub struct Count(pub usize);

impl Collector for Count {
    const COUNTS: bool = true;

    #[inline]
    fn collect(&mut self, _: Location) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    #[inline]
    fn add(&mut self, matches: usize) {
        self.0 += matches;
    }
}

impl Shared for Count {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn unite(&mut self, other: Self) {
        self.0 += other.0;
    }
}

/// Whether there is one.
#[derive(Default)]
pub struct Exists(pub bool);

impl Collector for Exists {
    fn collect(&mut self, _: Location) -> ControlFlow<()> {
        self.0 = true;
        ControlFlow::Break(())
    }

    fn may_stop(&self) -> bool {
        true
    }
}

impl Shared for Exists {
    fn empty(&self) -> Self {
        Self::default()
    }

    fn unite(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// At most one match of each owner.
pub struct PerOwner<F> {
    /// The number of a subscription's owner, below `owners`; `None` if it has none.
    owner_of: F,
    owners: usize,
    /// A bit per owner: there may be a million of them, and an event is for few.
    seen: Vec<u64>,
    found: Vec<u32>,
}

impl<F: Fn(Location) -> Option<u32>> PerOwner<F> {
    pub fn new(owners: usize, owner_of: F) -> Self {
        Self { owner_of, owners, seen: vec![0; owners.div_ceil(64)], found: vec![] }
    }

    /// The numbers of the owners that have a match, in any order.
    pub fn found(self) -> Vec<u32> {
        self.found
    }

    #[inline]
    fn note(&mut self, owner: u32) {
        let (word, bit) = (&mut self.seen[owner as usize / 64], 1 << (owner % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.found.push(owner);
        }
    }
}

impl<F: Fn(Location) -> Option<u32>> Collector for PerOwner<F> {
    #[inline]
    fn collect(&mut self, found: Location) -> ControlFlow<()> {
        if let Some(owner) = (self.owner_of)(found) {
            self.note(owner);
            if self.found.len() == self.owners {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn may_stop(&self) -> bool {
        true
    }
}

impl<F: Fn(Location) -> Option<u32> + Clone + Send> Shared for PerOwner<F> {
    fn empty(&self) -> Self {
        Self::new(self.owners, self.owner_of.clone())
    }

    fn unite(&mut self, other: Self) {
        other.found.into_iter().for_each(|owner| self.note(owner));
    }
}
