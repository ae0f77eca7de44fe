//! One join of windows: finds the rows of the other windows that fit a row, and the order in which to search
//! the windows.

use std::collections::{BTreeMap, BTreeSet};

use tamis_core::term::Term;

use super::definition::{Definition, Equality};
use super::plan::JoinQueryId;
use super::query::JoinQuery;
use super::window_rows::{Row, WindowRows};
use crate::key::join_value;
use crate::selection::Matcher;
use crate::slots::Slots;

pub(super) struct Join {
    pub text: String,
    pub sources: Vec<u32>,
    pub equalities: Vec<Equality>,
    /// The conditions of queries beyond the equalities, by number of the query.
    pub residuals: Matcher,
    pub queries: BTreeMap<JoinQueryId, JoinQuery>,
    /// The attributes that residuals name.
    pub needed: BTreeMap<String, Needed>,
}

/// An attribute that residuals name, such as `s1.price`: which source it is of, its name there, and in how many queries.
pub(super) struct Needed {
    pub source: usize,
    pub name: Box<str>,
    pub queries: usize,
}

/// The term of a source that is not bound yet, and the source and term it has to equal.
type Link<'j> = (&'j Term, usize, &'j Term);

/// The row whose combinations are searched. If it belongs to several sources, each combination is reported once, from the first.
pub(super) struct Fixed {
    pub source: usize,
    pub window: u32,
    pub number: u64,
}

impl Join {
    /// Adds a query with conditions beyond the equalities.
    pub fn need(&mut self, definition: &Definition) {
        for (qualified, source, name) in definition.residual_attributes() {
            let new = || Needed { source, name, queries: 0 };
            self.needed.entry(qualified).or_insert_with(new).queries += 1;
        }
    }

    pub fn need_no_more(&mut self, definition: &Definition) {
        for (qualified, ..) in definition.residual_attributes() {
            if let Some(needed) = self.needed.get_mut(&qualified) {
                needed.queries -= 1;
                if needed.queries == 0 {
                    self.needed.remove(&qualified);
                }
            }
        }
    }

    /// The equality by which a source is found from those that are bound: its own term, and the other side.
    fn link<'j>(&'j self, source: usize, is_bound: &impl Fn(usize) -> bool) -> Option<Link<'j>> {
        self.equalities.iter().find_map(|equality| {
            if equality.left == source && is_bound(equality.right) {
                return Some((&equality.left_term, equality.right, &equality.right_term));
            }
            (equality.right == source && is_bound(equality.left)).then_some((
                &equality.right_term,
                equality.left,
                &equality.left_term,
            ))
        })
    }

    /// The next source: the one with the fewest rows to expect.
    fn next(&self, windows: &Slots<WindowRows>, is_bound: &impl Fn(usize) -> bool) -> Option<(usize, f64)> {
        let open = (0..self.sources.len()).filter(|source| !is_bound(*source));
        let cost = |source: usize| {
            let window = &windows[self.sources[source]];
            match self.link(source, is_bound) {
                Some((term, ..)) => window.rows_per_value(term),
                // Every row would do: only if nothing else is left.
                None => 1e9 + window.rows.len() as f64,
            }
        };
        open.map(|source| (source, cost(source))).min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
    }

    pub fn order_from(&self, windows: &Slots<WindowRows>, start: usize) -> Vec<(usize, f64)> {
        let mut bound = BTreeSet::from([start]);
        let mut order = vec![];
        while let Some((source, cost)) = self.next(windows, &|source| bound.contains(&source)) {
            bound.insert(source);
            order.push((source, if cost >= 1e9 { cost - 1e9 } else { cost }));
        }
        order
    }

    /// Adds all combinations with the rows that are bound.
    pub fn combine<'r>(
        &self,
        windows: &'r Slots<WindowRows>,
        fixed: &Fixed,
        bound: &mut Vec<Option<&'r Row>>,
        found: &mut Vec<Vec<Row>>,
    ) {
        let Some((source, _)) = self.next(windows, &|source| bound[source].is_some()) else {
            found.push(bound.iter().map(|row| (*row).expect("all are bound").clone()).collect());
            return;
        };
        let window = &windows[self.sources[source]];
        let is_excluded = |row: &Row| {
            source < fixed.source && self.sources[source] == fixed.window && row.number == fixed.number
        };
        let mut visit = |row: &'r Row, bound: &mut Vec<Option<&'r Row>>| {
            if is_excluded(row) || !self.agrees(source, row, bound) {
                return;
            }
            bound[source] = Some(row);
            self.combine(windows, fixed, bound, found);
            bound[source] = None;
        };
        match self.link(source, &|source| bound[source].is_some()) {
            Some((term, other, other_term)) => {
                let record = &bound[other].expect("it is bound").record;
                let key = join_value(other_term, record);
                for row in key.and_then(|key| window.having(term, &key)).into_iter().flatten() {
                    visit(row, bound);
                }
            }
            None => window.rows.iter().for_each(|row| visit(row, bound)),
        }
    }

    /// Whether a row fits those that are bound, by all equalities.
    fn agrees(&self, source: usize, row: &Row, bound: &[Option<&Row>]) -> bool {
        self.equalities.iter().all(|equality| {
            let (term, other, other_term) = match source {
                _ if equality.left == source => (&equality.left_term, equality.right, &equality.right_term),
                _ if equality.right == source => (&equality.right_term, equality.left, &equality.left_term),
                _ => return true,
            };
            let Some(other) = bound[other] else { return true };
            let value = join_value(term, &row.record);
            value.is_some() && value == join_value(other_term, &other.record)
        })
    }
}
