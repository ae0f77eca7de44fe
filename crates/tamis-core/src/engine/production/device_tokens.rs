//! The tokens of a block of events for a device: most values as they are, and for the others the predicates
//! they satisfy.

use std::thread;

use super::block::Block;
use crate::engine::device::{DEVICE_WIDTH, MOST_TABLES, Tokens};
use crate::predicate::bits::Bits;
use crate::predicate::block_lookup::{Fires, LookedUpBlock, ToldOfEvents};
use crate::predicate::catalog::{Catalog, Fired, TRUE_BIT};
use crate::predicate::delegated::Delegate;

/// What one thread works with.
#[derive(Default)]
pub struct Gathering<'e> {
    looked_up: LookedUpBlock<'e>,
    bits: Bits,
}

/// Cells of a table that are worth a thread of their own.
const CELLS_PER_THREAD: usize = 1 << 18;
/// And no more than so many threads: starting them takes time, too.
const MOST_THREADS: usize = 8;

/// How many threads gather a block, of so many that may.
pub fn gathering_threads(block: &Block<'_>, most: usize) -> usize {
    most.min(MOST_THREADS).min(block.cells() / CELLS_PER_THREAD).max(1)
}

/// Replaces tokens by those of a block. Several threads have some of its events each.
pub fn gather<'e>(
    block: &Block<'e>,
    catalog: &Catalog,
    threads: usize,
    space: &mut Gathering<'e>,
    tokens: &mut Tokens,
) {
    let mut pieces = if threads > 1 { block.in_pieces(threads) } else { vec![] };
    let Some(last) = pieces.pop() else { return gather_alone(block, catalog, space, tokens) };
    let mut first = block.len() - last.len();
    thread::scope(|scope| {
        let others: Vec<_> = pieces
            .into_iter()
            .map(|piece| {
                scope.spawn(move || {
                    let mut own = Tokens::default();
                    gather_alone(&piece, catalog, &mut Gathering::default(), &mut own);
                    own
                })
            })
            .collect();
        gather_alone(&last, catalog, space, tokens);
        tokens.move_events(first as u32);
        first = 0;
        for other in others {
            let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let events = other.events;
            tokens.append(other, first as u32);
            first += events;
        }
    });
}

fn gather_alone<'e>(block: &Block<'e>, catalog: &Catalog, space: &mut Gathering<'e>, tokens: &mut Tokens) {
    tokens.clear(block.len());
    block.look_up_but(catalog, &mut space.looked_up, MOST_TABLES, tokens);
    tokenize(catalog, &mut space.looked_up, &mut space.bits, tokens);
}

/// Says of the events of a block what they satisfy by the values that were looked up here.
fn tokenize(catalog: &Catalog, looked_up: &mut LookedUpBlock<'_>, bits: &mut Bits, tokens: &mut Tokens) {
    if looked_up.tell(catalog, tokens).is_some() {
        return;
    }
    tokens.clear_found();
    looked_up.arrange();
    for at in 0..tokens.events {
        bits.reset(catalog.bits as usize);
        let mut told = ToldOfOne { tokens, event: at as u32, bits: catalog.bits };
        looked_up.event(at).fire(catalog, bits, &mut told);
    }
}

impl Delegate for Tokens {
    const TAKES: bool = true;

    #[inline(always)]
    fn value(&mut self, event: u32, table: u32, head: u64) {
        self.places.push(table * DEVICE_WIDTH as u32 + event);
        self.heads.push(head);
    }
}

impl ToldOfEvents for Tokens {
    fn bit(&mut self, event: u32, bit: u32) {
        self.bits.push([event, bit]);
    }

    fn point(&mut self, event: u32, point: u32) {
        self.points.push([event, point]);
    }

    fn rank(&mut self, event: u32, table: u32, rank: u32) {
        self.ranks.push([table * DEVICE_WIDTH as u32 + event, rank]);
    }
}

/// Tells tokens what one event satisfies.
struct ToldOfOne<'a> {
    tokens: &'a mut Tokens,
    event: u32,
    /// Keys from this one on are of intervals, which the device computes from ranks.
    bits: u32,
}

impl Fired for ToldOfOne<'_> {
    const TAKES_POINTS: bool = true;

    fn key(&mut self, key: u32) {
        if key != TRUE_BIT && key < self.bits {
            self.tokens.bit(self.event, key);
        }
    }

    fn run(&mut self, _: u32, _: u32, _: u32) {
        unreachable!("a point has a rank in each table")
    }

    fn point(&mut self, point: u32) -> bool {
        self.tokens.point(self.event, point);
        true
    }

    fn rank(&mut self, table: u32, rank: u32) -> bool {
        self.tokens.rank(self.event, table, rank);
        true
    }
}
