//! Builds segments from subscriptions or from rows of other segments, on one or several threads.

use std::ops::Range;

use super::Segment;
use super::buffered_subscription::BufferedSubscription;
use super::forms::{Below, Detached, Forms, Import};
use super::layout_planner::plan_layout;
use super::scoring::ScoringBuilder;
use super::subscription_table::SubscriptionTableBuilder;
use super::threads::Threads;
use crate::error::Result;
use crate::event::{Event, TermId, Terms};
use crate::expr::normal_form::{NormalForm, normal_form};
use crate::heap::give_back_free_memory;
use crate::subscription::Subscription;
use crate::term::Term;

/// Segments of fewer rows keep their forms for the next merge.
const KEEPS_FORMS_BELOW: usize = 32 * 1024;
/// Rows that are added before threads share the rest: most names of attributes are known by then, so that
/// all threads give them the same numbers.
const FIRST_ROWS: usize = 4096;

/// Rows of a run: what one thread builds before it is joined with what others built. Tests have many rounds of few rows.
const RUN: usize = if cfg!(test) { 256 } else { 512 };
/// Runs of a round: they all build on the rows of the rounds before.
const RUNS_OF_A_ROUND: usize = if cfg!(test) { 8 } else { 32 };
/// Rows whose predicates are fetched from memory together.
const FETCHED_TOGETHER: usize = 32;

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

/// Rows that were built over those of a [`SegmentBuilder`], apart from it.
struct Run {
    terms: Terms,
    forms: Detached,
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

    /// An empty builder that gives what these forms have the numbers that it has there.
    fn over(below: &Below, terms: Terms) -> Self {
        Self { forms: Forms::over(below), ..Self::new(terms) }
    }

    /// Adds subscriptions, some at a time: what one needs from memory is on its way while others are looked at. `None` is
    /// left out.
    pub fn push_all(
        &mut self,
        subscriptions: impl IntoIterator<Item = Result<Option<Subscription>>>,
    ) -> Result<()> {
        let mut coming = subscriptions.into_iter();
        let mut some: Vec<Subscription> = Vec::with_capacity(FETCHED_TOGETHER);
        loop {
            let mut is_end = true;
            for subscription in coming.by_ref().take(FETCHED_TOGETHER) {
                is_end = false;
                some.extend(subscription?);
            }
            if is_end {
                return Ok(());
            }
            self.push_together(&some)?;
            some.clear();
        }
    }

    fn push_together(&mut self, subscriptions: &[Subscription]) -> Result<()> {
        let expressions = subscriptions.iter().map(|subscription| &subscription.expression);
        let mut numbers = self.forms.fetch(expressions, &mut self.terms).into_iter();
        let normal = subscriptions.iter().map(|subscription| {
            normal_form(&subscription.expression, &mut self.terms, &mut self.forms.atoms)
        });
        let normal: Vec<NormalForm> = normal.collect();
        self.forms.fetch_forms(normal.iter().map(|normal| &normal.root));
        for (subscription, NormalForm { root, point_only }) in subscriptions.iter().zip(normal) {
            self.forms.push_form(&root);
            self.scoring.push(subscription, &mut self.terms, &mut self.forms.atoms);
            let mut number = |_: &Term| numbers.next().expect("each predicate has its number");
            self.subscription_table.push(subscription, point_only, &mut number)?;
            subscription.expression.note_uses(&mut self.terms, 1);
        }
        Ok(())
    }

    pub fn push(&mut self, subscription: &Subscription) -> Result<()> {
        self.push_together(std::slice::from_ref(subscription))
    }

    /// Adds a subscription that was normalised already.
    pub fn push_buffered(&mut self, held: &BufferedSubscription) -> Result<()> {
        self.forms.push_normal(&held.normal.root, &held.atoms);
        self.scoring.push(&held.subscription, &mut self.terms, &mut self.forms.atoms);
        let mut terms = held.terms.iter();
        let mut number = |_: &Term| *terms.next().expect("each predicate has its number");
        self.subscription_table.push(&held.subscription, held.normal.point_only, &mut number)
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

    fn into_run(self) -> Run {
        let Self { terms, forms, subscription_table, scoring } = self;
        Run { terms, forms: forms.detach(), subscription_table, scoring }
    }

    /// Adds the rows of a run behind its own.
    fn append(&mut self, run: Run) -> Result<()> {
        let renumbered: Vec<TermId> = run.terms.iter().map(|term| self.terms.intern_term(term)).collect();
        for (term, uses) in run.terms.uses() {
            self.terms.add_uses(run.terms.term(term), uses);
        }
        let same_numbers = renumbered.iter().enumerate().all(|(there, here)| here.0 as usize == there);
        let atoms = self.forms.absorb(run.forms, if same_numbers { &[] } else { &renumbered });
        self.scoring.append(run.scoring, &renumbered, |atom| atoms.atom(atom));
        let renumber = (!same_numbers).then_some((&run.terms, &mut self.terms));
        self.subscription_table.append(run.subscription_table, renumber)
    }

    /// Lays the segment out, using sample events to choose access predicates. Also returns the attributes,
    /// of which some may be new.
    pub fn finish(mut self, samples: &[Event<'_>], threads: &Threads) -> Result<(Segment, Terms)> {
        self.forms.seal();
        let are_kept = self.forms.roots.len() < KEEPS_FORMS_BELOW;
        if !are_kept {
            give_back_free_memory();
        }
        let plan = plan_layout(&mut self.forms, samples, threads, are_kept)?;
        let forms = are_kept.then_some(self.forms);
        if !are_kept {
            give_back_free_memory();
        }
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
        if !are_kept {
            give_back_free_memory();
        }
        Ok((segment, self.terms))
    }
}

/// Builds from `rows` rows on several threads, with `add` adding some of them. The first error in the order of rows is
/// returned.
///
/// ```text
/// rows    | first | run | run | … | run | run | run | …
/// rounds  | alone | a round             | a round
/// ```
///
/// The runs of a round are built over all rows before that round, by whichever thread is free, and then joined in order.
/// Where they begin depends on nothing but the number of rows. So the number of threads decides nothing that can be seen:
/// the bytes of the segment are the same.
///
/// A run holds only predicates and subexpressions that were not there before. If every thread built its part of the
/// rows alone, they would be held once for each thread, and mapped once more in the end.
pub fn build_on_threads(
    rows: usize,
    terms: Terms,
    threads: &Threads,
    add: impl Fn(&mut SegmentBuilder, Range<usize>) -> Result<()> + Sync,
) -> Result<SegmentBuilder> {
    let first = rows.min(FIRST_ROWS);
    let mut builder = SegmentBuilder::new(terms);
    add(&mut builder, 0..first)?;
    builder.reserve(rows - first, &builder.size());
    let starts: Vec<usize> = (first..rows).step_by(RUN).collect();
    for round in starts.chunks(RUNS_OF_A_ROUND) {
        let below = builder.forms.lend();
        // A run tells how often its own rows use a term.
        let terms = &builder.terms.without_uses();
        let runs = threads.share(round.len(), round.len(), |at| {
            let mut own = SegmentBuilder::over(&below, terms.clone());
            add(&mut own, round[at]..rows.min(round[at] + RUN))?;
            Ok(own.into_run())
        });
        builder.forms.restore(below);
        for run in runs? {
            builder.append(run)?;
        }
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::segment::sections;
    use crate::expr::parser::parse;
    use crate::snapshot::SnapshotWriter;
    use crate::subscription::Id;

    /// Attributes and predicates that only some runs see, so that records and weights are renumbered; parities, whose sides
    /// are ordered by numbers; equal ranges written as different numbers, of which the first one stays.
    fn subscription(row: usize) -> Subscription {
        let (a, b, c) = (row % 11, row % 7, row % 900);
        let text = match row % 4 {
            0 => format!("a{} = {b} AND (b > {a} OR a{c} IS NULL)", row / 50),
            1 => format!("(c < {a} OR d{} = {b}) XOR (b >= {c} AND e = {}) XOR a{c} = 1", row / 300, row / 3),
            2 => format!("b > {c} AND b > {c}.0 AND NOT (e IN ({a}, {c}) OR f <= {b}) AND g * {a} > 1"),
            _ => format!("AT LEAST 2 OF (a = {c}, b < {row}, (c = {a} OR d = {b}))"),
        };
        let expression = parse(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        Subscription {
            tags: vec![format!("t{}", row % 3).into()],
            weights: vec![("b".into(), 0.5 + (row % 5) as f64)],
            owner: row.is_multiple_of(5).then(|| format!("o{}", row % 70).into()),
            ..Subscription::new(Id::Int(row as i64), expression)
        }
    }

    /// All arrays of the segment, as a snapshot has them.
    fn stored(segment: &Segment) -> Vec<u8> {
        let mut writer = SnapshotWriter::in_memory();
        sections::write(segment, 0, &mut writer).unwrap_or_else(|error| panic!("{error}"));
        writer.finish(0).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_number_of_threads_changes_no_byte() {
        // Three rounds, the last run a short one.
        let rows = FIRST_ROWS + 2 * RUN * RUNS_OF_A_ROUND + RUN + 7;
        let build = |threads: usize| {
            let threads = &Threads::new(threads);
            let builder = build_on_threads(rows, Terms::default(), threads, |builder, range| {
                builder.push_all(range.map(|row| Ok((row % 101 != 0).then(|| subscription(row)))))
            });
            builder.and_then(|builder| builder.finish(&[], threads)).unwrap_or_else(|error| panic!("{error}"))
        };
        let (alone, names) = build(1);
        let bytes = stored(&alone);
        let expected: Vec<usize> = (0..rows).filter(|row| row % 101 != 0).collect();
        assert_eq!(alone.len(), expected.len());
        for (row, &expected) in expected.iter().enumerate().step_by(997) {
            let found = alone.subscription(row as u32, &names);
            assert_eq!(found.unwrap_or_else(|error| panic!("{error}")), subscription(expected));
        }
        let uses: i64 = names.uses().map(|(_, uses)| uses.all).sum();
        let computing = expected.iter().filter(|row| **row % 4 == 2).count();
        assert_eq!(uses, computing as i64, "a row is counted once, whichever run it is of");
        for threads in [2, 3] {
            let (together, same_names) = build(threads);
            assert!(names.iter().eq(same_names.iter()));
            assert!(stored(&together) == bytes, "{threads} threads");
        }
    }

    #[test]
    fn the_first_error_in_the_order_of_rows_is_returned() {
        let add = |_: &mut SegmentBuilder, range: Range<usize>| match range.start {
            start if start < 2 * FIRST_ROWS => Ok(()),
            start => Err(crate::error::Error::Argument(start.to_string())),
        };
        for threads in [1, 2, 4] {
            let built = build_on_threads(20 * FIRST_ROWS, Terms::default(), &Threads::new(threads), add);
            let Err(error) = built else { panic!("nothing was refused") };
            assert_eq!(error.to_string(), (2 * FIRST_ROWS).to_string(), "{threads} threads");
        }
    }
}
