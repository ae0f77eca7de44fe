//! Building segments: from subscriptions, from rows of other segments, on one thread or on several.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Segment;
use super::buffered_subscription::BufferedSubscription;
use super::forms::{Forms, Import};
use super::layout_planner::plan_layout;
use super::scoring::ScoringBuilder;
use super::subscription_table::SubscriptionTableBuilder;
use crate::error::Result;
use crate::event::{Event, TermId, Terms};
use crate::subscription::Subscription;

/// Segments of fewer rows keep their forms for the next merge.
const KEEPS_FORMS_BELOW: usize = 32 * 1024;
/// Rows that are added before threads share the rest: most names of attributes are known by then, so that
/// all threads give them the same numbers.
const FIRST_ROWS: usize = 4096;

/// How much some rows take.
struct Size {
    rows: usize,
    records: usize,
    forms: [usize; 3],
}

/// Builds a segment from subscriptions in rising order of id.
pub struct SegmentBuilder {
    /// Those of the index, and the new ones of the rows added here.
    terms: Terms,
    forms: Forms,
    subscription_table: SubscriptionTableBuilder,
    scoring: ScoringBuilder,
}

impl SegmentBuilder {
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            forms: Forms::default(),
            subscription_table: SubscriptionTableBuilder::default(),
            scoring: ScoringBuilder::default(),
        }
    }

    pub fn push(&mut self, subscription: &Subscription) -> Result<()> {
        let point_only = self.forms.push(&subscription.expression, &mut self.terms);
        self.scoring.push(subscription, &mut self.terms, &mut self.forms.atoms);
        self.subscription_table.push(subscription, point_only, &mut self.terms)?;
        subscription.expression.note_uses(&mut self.terms, 1);
        Ok(())
    }

    /// Adds a subscription that was normalised already.
    pub fn push_buffered(&mut self, held: &BufferedSubscription) -> Result<()> {
        self.forms.push_normal(&held.normal.root, &held.atoms);
        self.scoring.push(&held.subscription, &mut self.terms, &mut self.forms.atoms);
        self.subscription_table.push(&held.subscription, held.normal.point_only, &mut self.terms)
    }

    /// Adds a row of another segment of the same index; `import` takes over its forms, if it kept them. Rows
    /// of segments of which none has weights need not be `scored`.
    pub fn push_row(
        &mut self,
        segment: &Segment,
        row: u32,
        import: Option<&mut Import<'_>>,
        scored: bool,
    ) -> Result<()> {
        segment.check_record(row)?;
        let point_only = match import {
            Some(import) => {
                import.row(row, &mut self.forms);
                segment.subscription_table.point_only.binary_search(&row).is_ok()
            }
            None => {
                let expression = segment.subscription_table.expression(row, &self.terms)?;
                self.forms.push(&expression, &mut self.terms)
            }
        };
        if scored {
            let subscription = segment.subscription_table.subscription(row, &self.terms)?;
            self.scoring.push(&subscription, &mut self.terms, &mut self.forms.atoms);
        } else {
            self.scoring.push_unweighted();
        }
        self.subscription_table.push_copy(&segment.subscription_table, row, point_only)
    }

    fn size(&self) -> Size {
        Size {
            rows: self.subscription_table.len(),
            records: self.subscription_table.record_bytes(),
            forms: self.forms.size(),
        }
    }

    /// Makes room for more rows like those that `seen` is the size of. Room costs nothing until it is used, but
    /// what grows by being copied leaves holes as large as itself.
    fn reserve(&mut self, rows: usize, seen: &Size) {
        let expected = |seen_size: usize| (seen_size * rows).div_ceil(seen.rows.max(1));
        self.subscription_table.reserve(rows, expected(seen.records));
        self.forms.reserve(rows, seen.forms.map(expected));
    }

    /// Adds the rows of another builder behind its own.
    fn append(&mut self, mut other: SegmentBuilder) -> Result<()> {
        other.forms.seal();
        let renumbered: Vec<TermId> = other.terms.iter().map(|term| self.terms.intern_term(term)).collect();
        for (term, uses) in other.terms.uses() {
            self.terms.add_uses(other.terms.term(term), uses as i64);
        }
        let same_numbers = renumbered.iter().enumerate().all(|(there, here)| here.0 as usize == there);
        let mut import = Import::new(&other.forms, if same_numbers { &[] } else { &renumbered });
        for row in 0..other.forms.roots.len() as u32 {
            import.row(row, &mut self.forms);
        }
        self.scoring.append(other.scoring, &renumbered, |atom| import.atom(atom, &mut self.forms));
        drop(other.forms);
        let renumber = (!same_numbers).then_some((&other.terms, &mut self.terms));
        self.subscription_table.append(other.subscription_table, renumber)
    }

    /// The rows added so far.
    pub fn subscription_table(&self) -> &SubscriptionTableBuilder {
        &self.subscription_table
    }

    /// Lays the segment out, using sample events to choose access predicates. Also returns the attributes,
    /// of which some may be new.
    pub fn finish(mut self, samples: &[Event<'_>], threads: usize) -> Result<(Segment, Terms)> {
        self.forms.seal();
        let plan = plan_layout(&self.forms, samples, threads)?;
        let forms = (self.forms.roots.len() < KEEPS_FORMS_BELOW).then_some(self.forms);
        let (sharing, layout_basis) = (plan.sharing, plan.basis);
        let (layout, scoring) = plan.lay_out(self.subscription_table.priorities(), self.scoring, threads);
        let segment = Segment {
            layout,
            subscription_table: self.subscription_table.finish(),
            scoring,
            sharing,
            layout_basis,
            forms,
            ..Segment::default()
        };
        Ok((segment, self.terms))
    }
}

/// Builds from `rows` rows on several threads: each adds a run of them with `add`, and the runs are joined
/// in order, so that the result does not depend on who was faster. The first error in the order of rows
/// is returned.
///
/// Threads are started here and end here: a pool would not survive a fork.
pub fn build_on_threads(
    rows: usize,
    terms: Terms,
    threads: usize,
    add: impl Fn(&mut SegmentBuilder, Range<usize>) -> Result<()> + Sync,
) -> Result<SegmentBuilder> {
    let first = rows.min(FIRST_ROWS);
    let mut builder = SegmentBuilder::new(terms);
    add(&mut builder, 0..first)?;
    builder.reserve(rows - first, &builder.size());
    let threads = threads.min((rows - first).div_ceil(FIRST_ROWS)).max(1);
    let run = |thread: usize| {
        let at = |thread: usize| first + (rows - first) * thread / threads;
        at(thread)..at(thread + 1)
    };
    let failed = AtomicUsize::new(usize::MAX);
    let add_run = |builder: &mut SegmentBuilder, thread: usize| -> Result<()> {
        let mut rest = run(thread);
        while !rest.is_empty() && failed.load(Ordering::Relaxed) >= thread {
            let some = rest.start..rest.end.min(rest.start + FIRST_ROWS);
            rest.start = some.end;
            add(builder, some).inspect_err(|_| {
                failed.fetch_min(thread, Ordering::Relaxed);
            })?;
        }
        Ok(())
    };
    let others = std::thread::scope(|scope| {
        let (known, size) = (&builder.terms, builder.size());
        let started: Vec<_> = (1..threads)
            .map(|thread| {
                let mut own = SegmentBuilder::new(known.clone());
                own.reserve(run(thread).len(), &size);
                let add_run = &add_run;
                scope.spawn(move || add_run(&mut own, thread).map(|()| own))
            })
            .collect();
        let outcome = add_run(&mut builder, 0);
        let others: Vec<_> =
            started.into_iter().map(|thread| thread.join().expect("no thread panics")).collect();
        outcome.map(|()| others)
    })?;
    for other in others {
        builder.append(other?)?;
    }
    Ok(builder)
}

/// How many threads to build on when nobody is to be left in peace.
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::parser::parse;
    use crate::subscription::Id;

    /// Rows name attributes that only some threads see, so that records have to be renumbered.
    fn subscription(row: usize) -> Subscription {
        let text = format!("a{} = {} AND (b > {} OR a{} IS NULL)", row / 50, row % 7, row % 11, row % 900);
        let expression = parse(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        Subscription {
            tags: vec![format!("t{}", row % 3).into()],
            weights: vec![("b".into(), 0.5 + (row % 5) as f64)],
            ..Subscription::new(Id::Int(row as i64), expression)
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let rows = 5 * FIRST_ROWS;
        let build = |threads: usize| {
            let builder = build_on_threads(rows, Terms::default(), threads, |builder, range| {
                range.into_iter().try_for_each(|row| builder.push(&subscription(row)))
            });
            builder.and_then(|builder| builder.finish(&[], threads)).unwrap_or_else(|error| panic!("{error}"))
        };
        let (alone, names) = build(1);
        for threads in [2, 3] {
            let (together, same_names) = build(threads);
            assert!(names.iter().eq(same_names.iter()));
            assert_eq!(together.layout.code[..], alone.layout.code[..]);
            assert_eq!(together.layout.entries[..], alone.layout.entries[..]);
            assert_eq!(together.scoring.code[..], alone.scoring.code[..]);
            assert_eq!(together.scoring.bounds[..], alone.scoring.bounds[..]);
            assert_eq!(together.subscription_table.records[..], alone.subscription_table.records[..]);
            assert_eq!(together.subscription_table.tag_rows[..], alone.subscription_table.tag_rows[..]);
            for row in (0..rows).step_by(997) {
                let found = together.subscription(row as u32, &same_names);
                assert_eq!(found.unwrap_or_else(|error| panic!("{error}")), subscription(row));
            }
        }
    }

    #[test]
    fn the_first_error_in_the_order_of_rows_is_returned() {
        let add = |_: &mut SegmentBuilder, range: Range<usize>| match range.start {
            start if start < 2 * FIRST_ROWS => Ok(()),
            start => Err(crate::error::Error::Argument(start.to_string())),
        };
        for threads in [1, 2, 4] {
            let built = build_on_threads(20 * FIRST_ROWS, Terms::default(), threads, add);
            let Err(error) = built else { panic!("nothing was refused") };
            assert_eq!(error.to_string(), (2 * FIRST_ROWS).to_string(), "{threads} threads");
        }
    }
}
