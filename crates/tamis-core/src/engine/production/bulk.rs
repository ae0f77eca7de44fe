//! Decides how many segments many subscriptions become, and builds them side by side.
//!
//! An event looks its values up in every segment, so one segment is best where it has little else to do. Where it has a
//! lot to do in each, a large number of subscriptions becomes several segments of consecutive ids:
//!
//! ```text
//! rows      |     1/3      |     1/3      |     1/3      |    sorted by id
//! threads   |  segment 0   |  segment 1   |  segment 2   |    each by one thread, others help where a step is shared
//! ```
//!
//! Building then has no step in which one thread works for all, tables fit the cache better, and only the segments that
//! are being built need the memory that building takes. *Cost:* subexpressions and lookups are shared only within a
//! segment; a single event of arbitrary expressions takes about a tenth longer with four segments than with one.
//!
//! What comes out depends on the rows, never on the number of threads.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::view::Part;
use crate::engine::segment::{Segment, SegmentBuilder, Threads, build_on_threads};
use crate::error::{Error, Result};
use crate::event::{Event, Terms};

/// Fewer rows are always one segment.
pub(super) const MOST_ROWS: usize = SIZES.0;
/// An event that is expected to have as many candidates in one segment takes far longer to try them than to look its values
/// up: 0.3 ms against some 10 µs.
const MANY_CANDIDATES: f64 = SIZES.1;
/// Rows that are looked at to decide.
const SAMPLED: usize = SIZES.2;
/// The three. Tests have several segments long before.
const SIZES: (usize, f64, usize) = if cfg!(test) {
    (3_000, 40.0, 500)
} else if cfg!(feature = "testing") {
    (40_000, 100.0, 500)
} else {
    (1 << 20, 20_000.0, 8 * 1024)
};
/// If more than one in this many sampled rows has a term that a smaller sample lacks, there are about as many terms as rows. Every
/// segment would then number them in its own way and would have to be built again.
const MOST_NEW_TERMS: usize = 64;

/// Whether a segment is not merged with others unless all are: the result would be built as several again.
pub(super) fn stays_apart(part: &Part) -> bool {
    let is_busy = || part.segment.layout_basis.candidates >= MANY_CANDIDATES;
    part.is_apart || part.living() > MOST_ROWS / 2 && is_busy()
}

/// What rows became.
pub(super) struct Built {
    /// In the order of ids.
    pub segments: Vec<Segment>,
    /// The terms given, and what else the rows look at; the rows are counted among the uses.
    pub terms: Terms,
}

/// Builds the segments of `rows` rows, with `add` adding some of them in rising order of id. It may be asked for a row more
/// than once. The first error in the order of rows is returned.
pub(super) fn build_segments(
    rows: usize,
    terms: Terms,
    samples: &[Event<'_>],
    threads: usize,
    add: impl Fn(&mut SegmentBuilder, Range<usize>) -> Result<()> + Sync,
) -> Result<Built> {
    let bulk = Bulk { rows, samples, threads: Threads::new(threads), add };
    let count = rows.div_ceil(MOST_ROWS);
    match bulk.terms_of_several(count, &terms) {
        Some(known) => bulk.several(count, &terms, known),
        None => {
            let builder = build_on_threads(rows, terms, &bulk.threads, bulk.add)?;
            let (segment, terms) = builder.finish(samples, &bulk.threads)?;
            Ok(Built { segments: vec![segment], terms })
        }
    }
}

struct Bulk<'a, F> {
    rows: usize,
    samples: &'a [Event<'a>],
    threads: Threads,
    add: F,
}

impl<F: Fn(&mut SegmentBuilder, Range<usize>) -> Result<()> + Sync> Bulk<'_, F> {
    /// The terms of rows here and there, if that many segments are better than one.
    fn terms_of_several(&self, count: usize, terms: &Terms) -> Option<Terms> {
        if count < 2 {
            return None;
        }
        let step = self.rows.div_ceil(SAMPLED);
        let (whole, half) = (self.sample(terms, step)?, self.sample(terms, 2 * step)?);
        // Where expressions repeat, or predicates have few values, candidates grow more slowly than rows.
        let growth = (whole.candidates / half.candidates.max(1e-9)).log2().clamp(0.0, 1.0);
        let rows_of_one = self.rows as f64 / count as f64;
        let candidates = whole.candidates * (rows_of_one / whole.rows as f64).powf(growth);
        let new_terms = whole.terms.len().saturating_sub(half.terms.len());
        let are_known = new_terms * MOST_NEW_TERMS <= whole.rows - half.rows;
        (candidates >= MANY_CANDIDATES && are_known).then_some(whole.terms)
    }

    /// One row of every `step`, not always at the same place: ids may rise in a pattern. `None` if one is wrong, which is
    /// told when it is built.
    fn sample(&self, terms: &Terms, step: usize) -> Option<Sample> {
        let mut builder = SegmentBuilder::new(terms.clone());
        let starts = (0..self.rows).step_by(step);
        let rows = starts.len();
        for start in starts {
            let scattered = (start as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let at = (start + scattered as usize % step).min(self.rows - 1);
            (self.add)(&mut builder, at..at + 1).ok()?;
        }
        let (segment, terms) = builder.finish(self.samples, &Threads::new(1)).ok()?;
        Some(Sample { rows, candidates: segment.layout_basis.candidates, terms })
    }

    /// Builds that many segments side by side, over terms of which some are `known`.
    fn several(&self, count: usize, terms: &Terms, known: Terms) -> Result<Built> {
        let known = known.without_uses();
        let mut built = self.side_by_side(&(0..count).collect::<Vec<_>>(), count, &known)?;
        // Terms that were not known have their numbers by segment. All get numbers in the order of rows; where those are
        // others than a segment gave, it is built again.
        let mut all = known.clone();
        for (_, own) in &built {
            own.iter().skip(known.len()).for_each(|term| {
                all.intern_term(term);
            });
        }
        let has_others =
            |(_, own): &(Segment, Terms)| own.iter().zip(all.iter()).any(|(own, term)| own != term);
        let others: Vec<usize> = (0..count).filter(|at| has_others(&built[*at])).collect();
        others.iter().for_each(|at| built[*at].0 = Segment::default());
        let again = self.side_by_side(&others, count, &all)?;
        for (at, segment) in others.into_iter().zip(again) {
            built[at] = segment;
        }
        for (_, own) in &built {
            for (term, uses) in own.uses() {
                all.add_uses(own.term(term), uses);
            }
        }
        let segments =
            built.into_iter().map(|(segment, _)| segment).filter(|segment| segment.len() > 0).collect();
        Ok(Built { segments, terms: all.with_uses_of(terms) })
    }

    /// Builds the `chosen` of `count` segments. Once one cannot be built, those behind it are given up.
    fn side_by_side(&self, chosen: &[usize], count: usize, terms: &Terms) -> Result<Vec<(Segment, Terms)>> {
        let failed = AtomicUsize::new(usize::MAX);
        self.threads.share(chosen.len(), count, |at| {
            let range = self.rows * chosen[at] / count..self.rows * (chosen[at] + 1) / count;
            let add = |builder: &mut SegmentBuilder, own: Range<usize>| match failed.load(Relaxed) < at {
                true => Err(Error::Argument("an earlier row is wrong".into())),
                false => (self.add)(builder, range.start + own.start..range.start + own.end),
            };
            let builder = build_on_threads(range.len(), terms.clone(), &self.threads, add);
            let built = builder.and_then(|builder| builder.finish(self.samples, &self.threads));
            built.inspect_err(|_| {
                failed.fetch_min(at, Relaxed);
            })
        })
    }
}

/// What was learnt from some of the rows.
struct Sample {
    rows: usize,
    candidates: f64,
    terms: Terms,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::engine::contract::{Change, Engine, Version, Workspace};
    use crate::engine::production::Production;
    use crate::engine::production::tests::List;
    use crate::engine::segment::sections;
    use crate::engine::{Id, Subscription};
    use crate::event::ValueRef;
    use crate::expr::parser::parse;
    use crate::query::{Filter, Tags};
    use crate::snapshot::{Snapshot, SnapshotWriter};

    const ROWS: usize = 2 * MOST_ROWS + 1;

    /// An event with `x` has every other one as a candidate.
    fn dense(row: usize) -> Subscription {
        let text = format!("(x > {} OR y = {}) AND (z < {} OR w IS NULL)", row % 50, row % 9, row % 70);
        subscription(row, &text)
    }

    fn subscription(row: usize, text: &str) -> Subscription {
        let expression = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        Subscription::new(Id::Int(row as i64), expression)
    }

    fn build(threads: usize, row: impl Fn(usize) -> Result<Option<Subscription>> + Sync) -> Result<Built> {
        build_segments(ROWS, Terms::default(), &[], threads, |builder, range| {
            builder.push_all(range.map(&row))
        })
    }

    fn built(threads: usize, row: impl Fn(usize) -> Subscription + Sync) -> Built {
        build(threads, |at| Ok(Some(row(at)))).unwrap_or_else(|error| panic!("{error}"))
    }

    fn sizes(built: &Built) -> Vec<usize> {
        built.segments.iter().map(Segment::len).collect()
    }

    fn bytes(built: &Built) -> Vec<u8> {
        let mut writer = SnapshotWriter::in_memory();
        for (number, segment) in built.segments.iter().enumerate() {
            sections::write(segment, number, &mut writer).unwrap_or_else(|error| panic!("{error}"));
        }
        writer.finish(0).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn only_large_builds_with_many_candidates_are_apart() {
        assert_eq!(sizes(&built(2, dense)).len(), 3);
        assert_eq!(sizes(&built(2, dense)).iter().sum::<usize>(), ROWS);
        let sparse = |row: usize| subscription(row, &format!("x = {row} AND y = {}", row % 3));
        assert_eq!(sizes(&built(2, sparse)), [ROWS]);
        let engine = Production::default();
        let add = |rows: Range<usize>| engine.add_all(&List(rows.map(dense).collect()));
        assert!(matches!(add(0..MOST_ROWS), Ok(MOST_ROWS)));
        assert_eq!(engine.view().part_sizes(), [MOST_ROWS, 0]);
    }

    /// Terms that only some segments have: in one the numbers are others than in all, and it is built again.
    #[test]
    fn the_number_of_threads_changes_no_byte() {
        let row = |row: usize| match row % 911 {
            7 => subscription(row, &format!("late{} = 1 AND x * {} > 3", row / 1_500, row / 2_500)),
            _ => dense(row),
        };
        let alone = built(1, row);
        assert_eq!(alone.segments.len(), 3);
        let uses: i64 = alone.terms.uses().map(|(_, uses)| uses.all).sum();
        assert_eq!(uses, (0..ROWS).filter(|row| row % 911 == 7).count() as i64);
        for threads in [2, 5] {
            let together = built(threads, row);
            assert!(alone.terms.iter().eq(together.terms.iter()));
            assert!(bytes(&alone) == bytes(&together), "{threads} threads");
        }
        let first = alone.segments.iter().scan(0, |first, segment| {
            *first += segment.len();
            Some(*first - segment.len())
        });
        for (segment, first) in alone.segments.iter().zip(first) {
            for at in (0..segment.len()).filter(|at| (first + at) % 911 == 7 || at % 97 == 0) {
                let found = segment.subscription(at as u32, &alone.terms);
                assert_eq!(found.unwrap_or_else(|error| panic!("{error}")), row(first + at));
            }
        }
    }

    /// However many rows repeat them, an event has no more candidates than there are different expressions.
    #[test]
    fn repeated_expressions_are_in_one_segment() {
        let row = |row: usize| subscription(row, &format!("x > {} AND y < {}", row % 7, row % 11));
        assert_eq!(sizes(&built(2, row)), [ROWS]);
    }

    /// Fault: a file without the second of three segments opens as if it had one.
    #[test]
    fn a_file_with_a_gap_is_refused() {
        let engine = Production::default();
        engine.add_all(&List((0..9).map(dense).collect())).unwrap_or_else(|error| panic!("{error}"));
        let mut writer = SnapshotWriter::in_memory();
        let segment = &engine.view().parts[0].segment;
        for number in [0, 2] {
            sections::write(segment, number, &mut writer).unwrap_or_else(|error| panic!("{error}"));
        }
        let bytes = writer.finish(0).unwrap_or_else(|error| panic!("{error}"));
        let snapshot = Snapshot::from_bytes(bytes).unwrap_or_else(|error| panic!("{error}"));
        let refused = sections::segment_count(&snapshot).map_err(|error| error.to_string());
        assert_eq!(refused, Err("the section `2/attributes` belongs to no segment".to_string()));
        let foreign = sections::read(&std::sync::Arc::new(snapshot), 2, 1);
        let checked = foreign.and_then(|segment| segment.prepare()).map_err(|error| error.to_string());
        assert!(
            checked.is_err_and(|error| error.contains("attributes")),
            "there is one term, and it looks at more"
        );
    }

    /// Fault: a segment that was rewritten alone came last, so that all matches had to be merged.
    #[test]
    fn a_segment_that_is_rewritten_keeps_its_place() {
        let engine = Production::default();
        engine.add_all(&List((0..ROWS).map(dense).collect())).unwrap_or_else(|error| panic!("{error}"));
        let first = engine.view().parts[0].segment.len();
        for row in (0..first).step_by(2) {
            engine.apply(Change::Remove(Id::Int(row as i64))).unwrap_or_else(|error| panic!("{error}"));
        }
        let held = || engine.view().parts.iter().map(|part| part.segment.len()).sum::<usize>();
        while engine.is_optimizing() || held() == ROWS {
            std::thread::yield_now();
        }
        let firsts: Vec<Id> = engine
            .view()
            .parts
            .iter()
            .map(|part| part.segment.subscription_table.id_ref(0).to_owned())
            .collect();
        assert!(firsts.is_sorted(), "{firsts:?}");
    }

    #[test]
    fn terms_as_numerous_as_rows_are_in_one_segment() {
        let row =
            |row: usize| subscription(row, &format!("(x > {} OR a{row} = 1) AND z < {}", row % 50, row % 70));
        assert_eq!(sizes(&built(2, row)), [ROWS]);
    }

    #[test]
    fn the_first_error_is_returned_and_rows_may_be_left_out() {
        for bad in [[1, ROWS - 1], [ROWS / 2, ROWS / 2 + 1], [0, MOST_ROWS]] {
            for threads in [1, 4] {
                let outcome = build(threads, |row| match bad.contains(&row) {
                    true => Err(Error::Argument(row.to_string())),
                    false => Ok(Some(dense(row))),
                });
                assert_eq!(outcome.err().map(|error| error.to_string()), Some(bad[0].to_string()));
            }
        }
        // Those of the second segment are all left out.
        let refused = Mutex::new(vec![]);
        let range = ROWS / 3..2 * (ROWS / 3) + 1;
        let outcome = build(2, |row| match range.contains(&row) {
            true => {
                refused.lock().map(|mut refused| refused.push(row)).map(|()| None).map_err(|_| unreachable!())
            }
            false => Ok(Some(dense(row))),
        });
        let built = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(built.segments.iter().map(Segment::len).sum::<usize>(), ROWS - range.len());
        assert!(built.segments.iter().all(|segment| segment.len() > 0));
    }

    fn matches(engine: &Production, x: i64) -> Vec<Id> {
        let view = engine.view();
        let term = |name| view.terms.get(name).unwrap_or_else(|| panic!("{name}"));
        let mut values = vec![(term("x"), ValueRef::Int(x)), (term("z"), ValueRef::Int(3))];
        values.sort_by_key(|(term, _)| *term);
        let event = Event { values, ..Event::default() };
        let filter = Filter { tags: &Tags::default(), now: 0 };
        let (found, _) = view.matches(&event, &filter, &mut Workspace::default());
        found.into_iter().map(|at| view.id(at).to_owned()).collect()
    }

    /// A change, a merge or a file loses nothing, doubles nothing and keeps the order.
    #[test]
    fn segments_apart_change_are_merged_and_saved() {
        let engine = Production::default();
        engine.add_all(&List((0..ROWS).map(dense).collect())).unwrap_or_else(|error| panic!("{error}"));
        let expected = |x: i64, rows: &dyn Fn(usize) -> bool| -> Vec<Id> {
            // `w` is absent, so `x` decides.
            let holds = |row: &usize| rows(*row) && x > (*row % 50) as i64;
            (0..ROWS).filter(holds).map(|row| Id::Int(row as i64)).collect()
        };
        let check = |engine: &Production, rows: &dyn Fn(usize) -> bool| {
            for x in [0, 1, 25, 60] {
                assert!(matches(engine, x) == expected(x, rows), "x = {x}");
            }
        };
        let reopened = |engine: &Production| {
            let bytes = engine.to_bytes(None).unwrap_or_else(|error| panic!("{error}"));
            let snapshot = Snapshot::from_bytes(bytes).unwrap_or_else(|error| panic!("{error}"));
            let version = snapshot.format_version();
            let (engine, _) = Production::from_snapshot(snapshot).unwrap_or_else(|error| panic!("{error}"));
            engine.verify().unwrap_or_else(|error| panic!("{error}"));
            (engine, version)
        };
        check(&engine, &|_| true);
        assert_eq!(engine.view().parts.len(), 3);
        let (copy, version) = reopened(&engine);
        assert_eq!((copy.view().parts.len(), version), (3, 13));
        check(&copy, &|_| true);

        let remains = |row: usize| row % 5 != 1;
        for row in (0..ROWS).filter(|row| !remains(*row)) {
            engine.apply(Change::Remove(Id::Int(row as i64))).unwrap_or_else(|error| panic!("{error}"));
        }
        check(&engine, &remains);
        check(&reopened(&engine).0, &remains);
        engine.optimize().unwrap_or_else(|error| panic!("{error}"));
        check(&engine, &remains);
        for row in (0..ROWS).filter(|row| !remains(*row)) {
            engine.apply(Change::Add(dense(row))).unwrap_or_else(|error| panic!("{error}"));
        }
        check(&engine, &|_| true);
        engine.optimize().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(engine.view().parts.len(), 3);
        check(&engine, &|_| true);
        check(&reopened(&engine).0, &|_| true);
    }
}
