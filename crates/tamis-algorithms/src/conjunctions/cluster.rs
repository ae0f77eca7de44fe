//! The cluster algorithm (Hanson et al. 1999, Fabret et al. 2001, as described by Bittner 2008).
//!
//! Each conjunction is filed under one of its predicates, its *access predicate*, which must be true for it to
//! be true. Conjunctions with the same access predicate and the same size form a cluster, whose predicates lie
//! in one array and are checked row by row:
//!
//! ```text
//! access predicate   cluster of size 3    line        predicates
//! a = 1           ─► ┌─────────────────┬────────────┬───────────────┐
//!                    │ conjunction 4   │   p7  p9   │  without the  │
//!                    │ conjunction 9   │   p2  p9   │  access one   │
//!                    └─────────────────┴────────────┴───────────────┘
//! ```
//!
//! The original uses equality predicates for access. If a conjunction has none, the narrowest other predicate
//! is used.

use rustc_hash::FxHashMap;

use super::{Conjunctions, Held, choose_access};
use crate::predicates::{Predicates, Satisfied};
use crate::short_list::ShortList;
use tamis_core::engine::contract::Work;
use tamis_core::expr::Literal;

#[derive(Default)]
pub struct Clusters {
    clusters: Vec<Cluster>,
    by_key: FxHashMap<(Literal, u32), u32>,
    /// From an access predicate to its clusters.
    of_access: Vec<ShortList>,
    /// How many conjunctions each predicate is the access predicate of.
    load: FxHashMap<Literal, u32>,
    /// The cluster and the line of each conjunction.
    place_of: Vec<(u32, u32)>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Cluster {
    access: Option<Literal>,
    /// Predicates per line, the access predicate aside.
    width: usize,
    lines: Vec<u32>,
    predicates: Vec<Literal>,
}

impl Clusters {
    fn cluster(&mut self, access: Literal, size: usize) -> u32 {
        let key = (access, size as u32);
        if let Some(&at) = self.by_key.get(&key) {
            return at;
        }
        let cluster = Cluster { access: Some(access), width: size - 1, ..Cluster::default() };
        let at = match self.free.pop() {
            Some(at) => {
                self.clusters[at as usize] = cluster;
                at
            }
            None => {
                self.clusters.push(cluster);
                self.clusters.len() as u32 - 1
            }
        };
        self.by_key.insert(key, at);
        if self.of_access.len() <= access.0 as usize {
            self.of_access.resize_with(access.0 as usize + 1, ShortList::default);
        }
        self.of_access[access.0 as usize].push(at);
        at
    }
}

impl Conjunctions for Clusters {
    type Scratch = ();

    fn insert(&mut self, number: u32, literals: &[Literal], predicates: &Predicates) {
        let load = |literal: Literal| self.load.get(&literal).copied().unwrap_or(0) as usize;
        let access = choose_access(literals, predicates, load);
        *self.load.entry(access).or_default() += 1;
        let at = self.cluster(access, literals.len());
        let cluster = &mut self.clusters[at as usize];
        if self.place_of.len() <= number as usize {
            self.place_of.resize(number as usize + 1, (u32::MAX, 0));
        }
        self.place_of[number as usize] = (at, cluster.lines.len() as u32);
        cluster.lines.push(number);
        cluster.predicates.extend(literals.iter().filter(|literal| **literal != access));
    }

    fn remove(&mut self, number: u32, literals: &[Literal]) {
        let (at, line) = self.place_of[number as usize];
        let cluster = &mut self.clusters[at as usize];
        let access = cluster.access.expect("a cluster in use has an access predicate");
        let (line, width) = (line as usize, cluster.width);
        // The last line takes the place of the one that goes.
        let last = cluster.lines.len() - 1;
        cluster.lines.swap_remove(line);
        cluster.predicates.copy_within(last * width..(last + 1) * width, line * width);
        cluster.predicates.truncate(last * width);
        if let Some(&moved) = cluster.lines.get(line) {
            self.place_of[moved as usize].1 = line as u32;
        }
        let load = self.load.get_mut(&access).expect("counted at insertion");
        *load -= 1;
        if *load == 0 {
            self.load.remove(&access);
        }
        if last == 0 {
            *cluster = Cluster::default();
            self.by_key.remove(&(access, literals.len() as u32));
            self.of_access[access.0 as usize].remove(at);
            self.free.push(at);
        }
    }

    fn satisfied(&self, _: &Held, satisfied: &Satisfied, _: &mut (), found: &mut dyn FnMut(u32)) -> Work {
        let mut work = Work::default();
        for literal in &satisfied.literals {
            let Some(clusters) = self.of_access.get(literal.0 as usize) else { continue };
            for &at in clusters.as_slice() {
                let cluster = &self.clusters[at as usize];
                work.candidates += cluster.lines.len() as u64;
                if cluster.width == 0 {
                    cluster.lines.iter().for_each(|&number| found(number));
                    continue;
                }
                work.evaluations += cluster.lines.len() as u64;
                for (&number, line) in cluster.lines.iter().zip(cluster.predicates.chunks(cluster.width)) {
                    if line.iter().all(|literal| satisfied.holds(*literal)) {
                        found(number);
                    }
                }
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let arrays =
            |cluster: &Cluster| (cluster.lines.capacity() + cluster.predicates.capacity()) * size_of::<u32>();
        let lists: usize = self.of_access.iter().map(ShortList::heap_bytes).sum();
        vec![
            (
                "clusters",
                self.clusters.capacity() * size_of::<Cluster>()
                    + self.clusters.iter().map(arrays).sum::<usize>(),
            ),
            (
                "access",
                self.of_access.capacity() * size_of::<ShortList>()
                    + lists
                    + self.by_key.capacity() * size_of::<((Literal, u32), u32)>()
                    + self.load.capacity() * size_of::<(Literal, u32)>(),
            ),
            ("cluster table", self.place_of.capacity() * size_of::<(u32, u32)>()),
        ]
    }
}
