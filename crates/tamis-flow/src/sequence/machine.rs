//! The partial matches at one key of all sequences of a tree.
//!
//! They are a list in the order of preference: earlier starts first and, among equal starts, the preferred
//! choices first. Each row lets every partial match branch in the order that `docs/flows.md` defines: take
//! the row for the current step, take it for the next step (of each sequence that continues differently),
//! skip it. A complete match waits in its place until nothing above it can become a match of its sequence. A
//! partial match below it that starts no later than it ends can never be reported: a match from above ends
//! later still, and excludes it too. If sequences share a partial match, it stays for those that may still
//! report it; `passed` records for which starts a sequence has already reported.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tamis_core::event::Record;

use super::condition::Condition;
use super::plan::SequenceId;
use super::taken::{Holders, Position, ROWS_IN_PLACE, Records, Run, TakenRow, TakenRows};
use super::tree::{NodeId, Possible, Summary, Tree};
use crate::selection::SelectionId;

/// A row as a machine sees it.
pub(crate) struct Row<'r> {
    pub number: u64,
    pub time: i64,
    pub record: &'r Arc<Record>,
    /// The selections that are true for it, in order.
    pub selected: &'r [SelectionId],
    /// Counts the keys that hold the record, if it may be more than one.
    pub holders: Option<Holders>,
}

/// So many partial matches are compared one by one, without a table of what decides their future.
const FEW: usize = 24;

#[derive(Clone, Debug)]
pub(crate) struct Partial {
    pub start_row: u64,
    pub start_time: i64,
    pub node: NodeId,
    /// How many rows the step has taken; no further than it matters.
    pub count: u32,
    /// A forbidden row was seen since the last row that was taken.
    pub blocked: bool,
    pub is_complete: bool,
    pub taken: Run,
}

/// Which starts a sequence leaves out, because it has told a match.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// All up to this row.
    pub through: u64,
    /// And these.
    pub starts: BTreeSet<u64>,
}

impl Passed {
    fn last(&self) -> u64 {
        self.through.max(self.starts.last().copied().unwrap_or(0))
    }
}

/// A match to be told: of which sequence, when it began, and the rows it took with their steps.
pub(crate) struct Found {
    pub sequence: SequenceId,
    pub start_row: u64,
    pub start_time: i64,
    pub rows: Vec<(usize, TakenRow)>,
}

/// Most keys have few of them, which lie in place.
pub(crate) type Partials = SmallVec<[Partial; PARTIALS_IN_PLACE]>;
const PARTIALS_IN_PLACE: usize = 3;
/// The bytes that partial matches and rows have in place.
pub(super) const IN_PLACE: usize =
    PARTIALS_IN_PLACE * size_of::<Partial>() + ROWS_IN_PLACE * size_of::<Option<TakenRow>>();

#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub partials: Partials,
    pub rows: TakenRows,
    pub passed: FxHashMap<SequenceId, Passed>,
    /// The number of runs outside the partial matches.
    runs: usize,
}

impl Partial {
    fn settle(&mut self, node: &Summary) {
        self.is_complete = node.is_end && self.count >= node.least;
        if node.most.is_none() {
            self.count = self.count.min(node.least);
        }
    }

    fn can_take_more(&self, node: &Summary) -> bool {
        node.most.is_none_or(|most| self.count < most)
    }

    /// The same, with a row taken for the step of a node. `runs` counts those outside partial matches.
    fn taking(&self, tree: &Tree, id: NodeId, position: Position, runs: &mut usize) -> Self {
        let node = tree.summary(id);
        let mut next = Self {
            node: id,
            count: if id == self.node { self.count + 1 } else { 1 },
            blocked: false,
            taken: self.taken.taking(node.step, position, runs),
            ..*self
        };
        next.settle(node);
        next
    }

    /// Its count, as far as it decides which matches of this start are told. Whatever a partial match goes on to that may go to
    /// the next step, one above it that may go there too goes on to as well, by skipping rows: how many more rows its
    /// step takes is all the same.
    fn decisive_count(&self, node: &Summary) -> u32 {
        if node.is_enough_at_least { self.count.min(node.least) } else { self.count }
    }

    /// The state that decides its future.
    fn future(&self, node: &Summary) -> (u64, NodeId, u32, bool, SmallVec<[Option<Position>; 2]>) {
        let rows = node.referenced.iter().map(|step| self.taken.last_of(*step));
        (self.start_row, self.node, self.decisive_count(node), self.blocked, rows.collect())
    }

    /// Whether its step has to take more rows, of which it may leave out any.
    fn must_take_more(&self, node: &Summary, strict: bool) -> bool {
        !strict && self.count < node.least
    }

    /// What decides which rows its step takes: its position, and the rows of earlier steps that a condition
    /// uses.
    fn prospect(&self, node: &Summary) -> (u64, NodeId, SmallVec<[Option<Position>; 2]>) {
        let rows = node.earlier_referenced().map(|step| self.taken.last_of(step));
        (self.start_row, self.node, rows.collect())
    }

    /// Whether one below it, of the same start, need not be kept: whatever that becomes, this becomes something preferred
    /// that ends with the same row. None of both is complete.
    ///
    /// That is so if they have the same future. It is also so if the one below has to take more rows for its step, and
    /// this has taken as many and may take more: of the rows that the other one takes it takes the last ones, as many as
    /// it lacks but at least one, and skips those before. Then both have taken the same row last, which is all that
    /// later steps can look at.
    fn makes_needless(&self, below: &Self, node: &Summary, strict: bool) -> bool {
        if self.node != below.node {
            return false;
        }
        let is_same = |step| self.taken.last_of(step) == below.taken.last_of(step);
        if below.must_take_more(node, strict) && self.count >= below.count && self.can_take_more(node) {
            return node.earlier_referenced().all(is_same);
        }
        self.blocked == below.blocked
            && self.decisive_count(node) == below.decisive_count(node)
            && node.referenced.iter().copied().all(is_same)
    }

    pub fn deadline(&self, tree: &Tree) -> i64 {
        self.start_time.saturating_add(tree.within)
    }
}

/// The incoming row, which gets a position once a partial match takes it.
struct Coming<'m, 'r> {
    row: &'m Row<'r>,
    position: Option<Position>,
}

impl Coming<'_, '_> {
    fn position(&mut self, rows: &mut TakenRows, records: &mut Records) -> Position {
        *self.position.get_or_insert_with(|| {
            let Row { number, time, record, holders, .. } = self.row;
            let (record, holders) = (Arc::clone(record), holders.clone());
            let row = TakenRow { number: *number, time: *time, record, holders };
            records.acquire(&row);
            rows.push(Some(row))
        })
    }
}

impl Machine {
    pub fn is_empty(&self) -> bool {
        self.partials.is_empty()
    }

    /// A row of the key. Matches that are final are added to `found`. `next` is memory that is used again.
    pub fn feed(
        &mut self,
        tree: &Tree,
        row: &Row<'_>,
        records: &mut Records,
        next: &mut Vec<Partial>,
        found: &mut Vec<Found>,
    ) {
        let possible = tree.possible(row);
        let mut coming = Coming { row, position: None };
        let mut before = std::mem::take(&mut self.partials);
        let mut lost_one = false;
        for partial in before.drain(..) {
            if partial.is_complete {
                next.push(partial);
            } else {
                lost_one |= !self.branch(partial, tree, &possible, &mut coming, records, next);
            }
        }
        for (_, id) in possible.iter().take_while(|(parent, _)| parent.is_none()) {
            let node = tree.summary(*id);
            if node.has_rest && !tree.nodes[*id].condition.rest_holds(row, |_| None) {
                continue;
            }
            let position = coming.position(&mut self.rows, records);
            let mut partial = Partial {
                start_row: row.number,
                start_time: row.time,
                node: *id,
                count: 1,
                blocked: false,
                is_complete: false,
                taken: Run::starting(position),
            };
            partial.settle(node);
            next.push(partial);
        }
        lost_one |= self.prune(tree, next);
        // There are many keys: no room for more than there are, unless it was there.
        before.reserve_exact(next.len());
        before.extend(next.drain(..));
        self.partials = before;
        lost_one |= self.tell(tree, found);
        if lost_one {
            self.settle(records);
        }
    }

    /// Adds what becomes of a partial match at a row, in the order of preference. Says whether anything does.
    fn branch(
        &mut self,
        partial: Partial,
        tree: &Tree,
        possible: &Possible,
        coming: &mut Coming<'_, '_>,
        records: &mut Records,
        into: &mut Vec<Partial>,
    ) -> bool {
        let before = into.len();
        let node = tree.summary(partial.node);
        let can_take_more = partial.can_take_more(node);
        let row = coming.row;
        if can_take_more
            && possible.binary_search(&(node.parent, partial.node)).is_ok()
            && self.takes(tree, partial.node, row, &partial)
        {
            let position = coming.position(&mut self.rows, records);
            let taking = partial.taking(tree, partial.node, position, &mut self.runs);
            let is_enough = partial.must_take_more(node, tree.strict)
                && !taking.is_complete
                && taking.makes_needless(&partial, node, tree.strict);
            into.push(taking);
            if is_enough {
                return true;
            }
        }
        if partial.count >= node.least && !partial.blocked {
            let first = possible.partition_point(|(parent, _)| *parent < Some(partial.node));
            let children = possible[first..].iter().take_while(|(parent, _)| *parent == Some(partial.node));
            for (_, child) in children {
                if self.takes(tree, *child, row, &partial) {
                    let position = coming.position(&mut self.rows, records);
                    into.push(partial.taking(tree, *child, position, &mut self.runs));
                }
            }
        }
        if !tree.strict {
            let mut skipping = partial;
            let absent = if node.has_absent { tree.nodes[skipping.node].next_absent.as_ref() } else { None };
            skipping.blocked |= absent
                .is_some_and(|absent| absent.is_possible(row) && self.rest_holds(absent, row, &skipping));
            if !skipping.blocked || can_take_more {
                into.push(skipping);
            }
        }
        into.len() > before
    }

    /// The number of the last row that a partial match took.
    pub fn end_of(&self, partial: &Partial) -> u64 {
        self.rows.get(partial.taken.last).map_or(0, |row| row.number)
    }

    /// Whether a step that a row may take by what an index says is taken.
    fn takes(&self, tree: &Tree, node: NodeId, row: &Row<'_>, partial: &Partial) -> bool {
        !tree.summary(node).has_rest || self.rest_holds(&tree.nodes[node].condition, row, partial)
    }

    fn rest_holds(&self, condition: &Condition, row: &Row<'_>, partial: &Partial) -> bool {
        condition.rest_holds(row, |step| self.rows.get(partial.taken.last_of(step as u32)?))
    }

    /// Lets partial matches go whose time is over before this moment.
    pub fn expire(&mut self, tree: &Tree, now: i64, records: &mut Records, found: &mut Vec<Found>) {
        let before = self.partials.len();
        self.partials.retain(|partial| partial.is_complete || partial.deadline(tree) >= now);
        if self.partials.len() < before {
            self.tell(tree, found);
            self.settle(records);
        }
    }

    /// After a sequence was removed: drops what no other can tell.
    pub fn forget_removed(&mut self, tree: &Tree, records: &mut Records) {
        self.passed.retain(|sequence, _| tree.endings.contains_key(sequence));
        self.partials.retain(|partial| tree.nodes.get(partial.node).is_some());
        self.drop_passed(tree);
        self.settle(records);
    }

    /// Whether a sequence leaves out all matches that start here.
    fn has_passed(&self, tree: &Tree, sequence: SequenceId, start: u64) -> bool {
        // No sequence of the tree came after it, and none has told anything: so it is with most.
        if start > tree.latest_epoch && self.passed.is_empty() {
            return false;
        }
        start <= tree.endings[&sequence].epoch
            || self
                .passed
                .get(&sequence)
                .is_some_and(|passed| start <= passed.through || passed.starts.contains(&start))
    }

    /// Drops those that can never be told: below a complete match that excludes them, or with the same future as one
    /// above. Says whether there were any.
    fn prune(&self, tree: &Tree, partials: &mut Vec<Partial>) -> bool {
        let count = partials.len();
        let mut futures = FxHashSet::default();
        // The greatest count above of those that may take more.
        let mut prospects = FxHashMap::default();
        // Of the last complete match of a sequence above: its start and its end.
        let mut above: FxHashMap<SequenceId, (u64, u64)> = FxHashMap::default();
        let mut kept = 0;
        for at in 0..count {
            let partial = &partials[at];
            let node = tree.summary(partial.node);
            let start = partial.start_row;
            if let Some(only) = node.only {
                let is_below = above.get(&only).is_some_and(|(above_start, above_end)| {
                    if tree.endings[&only].skip_to_next { start == *above_start } else { start <= *above_end }
                });
                if is_below || self.has_passed(tree, only, start) {
                    continue;
                }
            }
            match node.only {
                // Where a sequence ends, no other goes through.
                Some(sequence) if partial.is_complete => {
                    above.insert(sequence, (start, self.end_of(partial)));
                }
                _ => {
                    let is_known = if count <= FEW {
                        // Those of one start lie together.
                        let same = partials[..kept].iter().rev().take_while(|other| other.start_row == start);
                        same.into_iter().any(|other| {
                            !other.is_complete && other.makes_needless(partial, node, tree.strict)
                        })
                    } else {
                        let most: &mut Option<u32> = prospects.entry(partial.prospect(node)).or_default();
                        let is_known =
                            partial.must_take_more(node, tree.strict) && *most >= Some(partial.count);
                        if partial.can_take_more(node) {
                            *most = (*most).max(Some(partial.count));
                        }
                        is_known || !futures.insert(partial.future(node))
                    };
                    if is_known {
                        continue;
                    }
                }
            }
            // What is between is dropped, so that the order remains.
            partials.swap(kept, at);
            kept += 1;
        }
        partials.truncate(kept);
        kept < count
    }

    /// Takes out the complete matches that nothing above can replace. Says whether there were any.
    fn tell(&mut self, tree: &Tree, found: &mut Vec<Found>) -> bool {
        if !self.has_complete() {
            return false;
        }
        let mut kept = Partials::with_capacity(self.partials.len());
        let mut has_told = false;
        for partial in std::mem::take(&mut self.partials) {
            let end = tree.nodes[partial.node].end.filter(|_| partial.is_complete);
            let Some(sequence) = end else {
                kept.push(partial);
                continue;
            };
            let start = partial.start_row;
            let skip_to_next = tree.endings[&sequence].skip_to_next;
            let is_hidden = kept.iter().any(|above| {
                (!skip_to_next || above.start_row == start)
                    && tree.leads_to(above.node, sequence)
                    && !self.has_passed(tree, sequence, above.start_row)
            });
            if is_hidden {
                kept.push(partial);
                continue;
            }
            has_told = true;
            let end = self.end_of(&partial);
            let passed = self.passed.entry(sequence).or_default();
            if skip_to_next {
                passed.starts.insert(start);
            } else {
                passed.through = passed.through.max(end);
            }
            let rows = self.rows_of(&partial);
            found.push(Found { sequence, start_row: start, start_time: partial.start_time, rows });
        }
        self.partials = kept;
        if has_told {
            self.drop_passed(tree);
        }
        has_told
    }

    /// Whether a match waits until nothing above can replace it.
    pub fn has_complete(&self) -> bool {
        self.partials.iter().any(|partial| partial.is_complete)
    }

    /// Drops partial matches that all sequences leave out which they could lead to.
    fn drop_passed(&mut self, tree: &Tree) {
        let partials = std::mem::take(&mut self.partials);
        let is_wanted = |partial: &Partial| {
            let sequences = &tree.nodes[partial.node].sequences;
            partial.is_complete
                || sequences.iter().any(|sequence| !self.has_passed(tree, *sequence, partial.start_row))
        };
        self.partials = partials.into_iter().filter(is_wanted).collect();
    }

    fn rows_of(&self, partial: &Partial) -> Vec<(usize, TakenRow)> {
        let mut rows = vec![];
        for run in partial.taken.chain() {
            let taken = run.positions().rev().filter_map(|position| self.rows.get(position));
            rows.extend(taken.map(|row| (run.step as usize, row.clone())));
        }
        rows.reverse();
        rows
    }

    /// After a partial match was lost: drops rows that are no longer held, and what sequences have passed
    /// before the first start. As long as none is, every row and every run is still held.
    pub fn settle(&mut self, records: &mut Records) {
        self.runs = self.rows.keep_only(self.partials.iter().map(|partial| &partial.taken), records);
        if self.passed.is_empty() {
            return;
        }
        let first = self.partials.first().map_or(u64::MAX, |partial| partial.start_row);
        self.passed.retain(|_, passed| passed.last() >= first);
        for passed in self.passed.values_mut() {
            passed.starts = passed.starts.split_off(&first);
        }
    }

    /// When the first partial match that is not complete comes to its end.
    pub fn first_deadline(&self, tree: &Tree) -> Option<i64> {
        let open = self.partials.iter().find(|partial| !partial.is_complete)?;
        Some(open.deadline(tree))
    }

    /// When somebody has to look at it if no row comes: where a match waits, when what may replace it comes to its end;
    /// otherwise not before everything has.
    pub fn next_look(&self, tree: &Tree) -> Option<i64> {
        if self.has_complete() {
            return self.first_deadline(tree);
        }
        self.partials.last().map(|partial| partial.deadline(tree))
    }

    /// Without the records, which other keys may hold too; the contents, wherever they lie.
    pub fn bytes(&self) -> usize {
        let passed = self.passed.values().map(|passed| 40 + 16 * passed.starts.len());
        self.partials.len() * size_of::<Partial>()
            + self.runs * (size_of::<Run>() + 16)
            + self.rows.len() * size_of::<Option<TakenRow>>()
            + passed.sum::<usize>()
    }
}
