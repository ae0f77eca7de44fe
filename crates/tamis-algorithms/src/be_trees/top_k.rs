//! The best matches by relevance (Sadoghi and Jacobsen 2012, section VI).
//!
//! Every l-node, p-node and bucket has an upper bound (`summary.rs`). P-nodes wait in a heap, the one with the highest
//! bound first. L-nodes and buckets with a bound below the threshold are skipped, and such p-nodes are not
//! queued (pruning one by one). When the first p-node of the heap is below the threshold, so are all others,
//! and the search ends.
//!
//! Only a strictly lower bound is pruned: among equal scores the smaller id wins, and the ids below a node
//! are not known yet.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Tree;
use super::node::{CNode, Directory, PNode};
use super::places::Places;
use super::summary::{Bounding, least_weight};
use crate::span::Span;
use tamis_core::engine::contract::Work;
use tamis_core::event::Event;
use tamis_core::query::Scale;

/// A p-node that the event will visit, unless its bound falls behind.
struct Waiting<'a, D> {
    bound: f64,
    span: Span,
    pnode: &'a PNode<D>,
}

impl<D> Ord for Waiting<'_, D> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound)
    }
}

impl<D> PartialOrd for Waiting<'_, D> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<D> PartialEq for Waiting<'_, D> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<D> Eq for Waiting<'_, D> {}

/// One event on its way through the tree.
struct Search<'a, 'e, D> {
    tree: &'a Tree<D>,
    places: &'e Places,
    event: &'e Event<'e>,
    scale: &'e Scale,
    least_wanted: f64,
    waiting: BinaryHeap<Waiting<'a, D>>,
    work: Work,
}

impl<'a, D: Directory> Search<'a, '_, D> {
    fn look(&mut self, cnode: &'a CNode<D>, offer: &mut dyn FnMut(u32) -> f64) {
        let Self { tree, places, event, scale, least_wanted, waiting, work } = self;
        let by = tree.store.settings.bounding;
        if !cnode.members.is_empty() && cnode.summary.can_reach(event, scale, by, *least_wanted) {
            let enough = weight_for(*least_wanted, by, scale);
            tree.scan(cnode, event, places, work, enough, &mut |row| {
                *least_wanted = offer(row);
                weight_for(*least_wanted, by, scale)
            });
        }
        tree.for_each_partition(cnode, event, places, &mut |at, span| {
            let pnode = &cnode.partitions[at];
            let bound = pnode.summary.bound(event, scale, by, *least_wanted);
            if bound >= *least_wanted {
                waiting.push(Waiting { bound, span, pnode });
            }
        });
    }
}

/// The weight that a conjunction needs for a score. The published bound does not look at whole conjunctions.
fn weight_for(score: f64, by: Bounding, scale: &Scale) -> f64 {
    match by {
        Bounding::ByAttribute => f64::NEG_INFINITY,
        _ => least_weight(score, scale),
    }
}

impl<D: Directory> Tree<D> {
    pub(super) fn find_best(
        &self,
        event: &Event<'_>,
        places: &Places,
        scale: &Scale,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Work {
        let by = self.store.settings.bounding;
        // Most of the p-nodes that an event visits are those of its own attributes, below the root.
        let (waiting, work) = (BinaryHeap::with_capacity(2 * event.values.len()), Work::default());
        let mut search = Search { tree: self, places, event, scale, least_wanted, waiting, work };
        search.look(&self.root, offer);
        let mut reached = Vec::with_capacity(event.values.len());
        while let Some(Waiting { bound, span, pnode }) = search.waiting.pop() {
            if bound < search.least_wanted {
                break;
            }
            let enough = weight_for(search.least_wanted, by, scale);
            pnode.directory.reach(span, enough, &mut |cnode| reached.push(cnode));
            reached.drain(..).for_each(|cnode| search.look(cnode, offer));
        }
        search.work
    }
}
