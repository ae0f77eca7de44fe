//! Which literals on one attribute contradict or imply one another.
//!
//! In an AND, nothing satisfies `x > 5 AND x < 3`, `x = 1 AND x = 2`, `x = 1 AND x > 5`, `x = 1 AND x = 'a'`,
//! `x IS NULL AND x = 1` or `p AND NOT p`; and if `x > 5` holds, `x > 3` and `x IS NOT NULL` add nothing. In an OR the wider
//! range wins, and `x IS NULL OR x IS NOT NULL` is always true.
//!
//! Forms only describe truth, so all of this is exact for point values. An interval can intersect two disjoint ranges at
//! once, and a cell of a CSV file has a different value for each kind: contradictions of order, equality and kind hold for
//! points only. Dropping implied literals is exact for intervals, too, as far as the operator accepts them: a value that
//! satisfies the narrower literal also satisfies the wider, and ranges that intersect an interval and one another intersect
//! it in one place (Helly).

use std::cmp::Ordering;

use crate::expr::atoms::{AtomTable, Literal};
use crate::expr::operators::{Bound, Shape};
use crate::term::TermId;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

/// How many (point, literal) pairs one AND may try: large sets together with many literals are left alone.
const MOST_TRIALS: usize = 1024;

/// What was found out about the literals of one AND or OR.
#[derive(Default)]
pub(super) struct Settled {
    /// The AND is never true; the OR is always true.
    pub decided: bool,
    /// The literals that the others make superfluous.
    pub redundant: Vec<Literal>,
    /// An interval could tell the difference.
    pub point_only: bool,
}

/// Settles the literals of an AND; they are sorted and distinct.
pub(super) fn settle_and(literals: impl Iterator<Item = Literal>, atoms: &AtomTable) -> Settled {
    let mut settled = Settled::default();
    for_each_shared_attribute(literals, atoms, |group| {
        if !settled.decided {
            settle_and_group(group, atoms, &mut settled);
        }
    });
    settled
}

/// Settles the literals of an OR; they are sorted and distinct.
pub(super) fn settle_or(literals: impl Iterator<Item = Literal>, atoms: &AtomTable) -> Settled {
    let mut settled = Settled::default();
    for_each_shared_attribute(literals, atoms, |group| {
        if !settled.decided {
            settle_or_group(group, atoms, &mut settled);
        }
    });
    settled
}

/// Hands over the literals of each attribute that has several.
fn for_each_shared_attribute(
    literals: impl Iterator<Item = Literal>,
    atoms: &AtomTable,
    mut visit: impl FnMut(&[(TermId, Literal)]),
) {
    let with_attribute = literals.map(|literal| (atoms.atom(literal.atom()).attribute, literal));
    // Nearly all expressions are small, and they come by the million: no allocation for those.
    let mut few = [(TermId(0), Literal(0)); 16];
    let mut many = Vec::new();
    let mut count = 0;
    for entry in with_attribute {
        if count < few.len() {
            few[count] = entry;
        } else {
            if count == few.len() {
                many.extend_from_slice(&few);
            }
            many.push(entry);
        }
        count += 1;
    }
    let by_attribute = if many.is_empty() { &mut few[..count] } else { &mut many[..] };
    by_attribute.sort_unstable();
    for group in by_attribute.chunk_by(|a, b| a.0 == b.0) {
        if group.len() > 1 {
            visit(group);
        }
    }
}

fn settle_and_group(group: &[(TermId, Literal)], atoms: &AtomTable, settled: &mut Settled) {
    let allows_absence = |literal: Literal| literal.holds(atoms.atom(literal.atom()).outcome(None));
    if group.iter().all(|(_, literal)| allows_absence(*literal)) {
        return; // An absent attribute satisfies them all.
    }
    let mut the_kind: Option<Kind> = None;
    let mut presence = Vec::new();
    let mut shapes = Vec::with_capacity(group.len());
    for &(_, literal) in group {
        let atom = atoms.atom(literal.atom());
        let rules = atom.operator.rules();
        let shape = rules.shape(&atom.operands);
        if matches!(shape, Shape::Absent) {
            if !literal.is_negated() {
                settled.decided = true;
                return;
            }
            presence.push(literal);
            continue;
        }
        if let Some(kind) = rules.expects(&atom.operands) {
            if the_kind.is_some_and(|other| other != kind) {
                settled.decided = true;
                settled.point_only = true; // A cell is a value of each kind.
                return;
            }
            the_kind = Some(kind);
        }
        shapes.push((literal, shape));
    }
    // `IS NOT NULL` goes if another literal, or another way to write it, needs a value as well.
    let needs_value = |literal: &Literal| !allows_absence(*literal);
    let kept = usize::from(!shapes.iter().any(|(literal, _)| needs_value(literal)));
    settled.redundant.extend(presence.into_iter().skip(kept));
    if shapes.windows(2).any(|pair| pair[0].0.not() == pair[1].0) {
        settled.decided = true;
        settled.point_only = true;
        return;
    }
    let smallest_set = shapes
        .iter()
        .filter_map(|(literal, shape)| match shape {
            Shape::Points(points) if !literal.is_negated() => Some((*literal, *points)),
            _ => None,
        })
        .min_by_key(|(_, points)| points.len());
    match smallest_set {
        Some((literal, points)) => try_points(literal, points, &shapes, atoms, settled),
        None => intersect_ranges(&shapes, settled),
    }
}

/// Tries the few values that one literal allows on all others.
fn try_points(
    the_set: Literal,
    points: &[Value],
    shapes: &[(Literal, Shape<'_>)],
    atoms: &AtomTable,
    settled: &mut Settled,
) {
    if points.len().saturating_mul(shapes.len()) > MOST_TRIALS {
        return;
    }
    let mut possible = vec![true; points.len()];
    for (literal, shape) in shapes {
        let cheap = !matches!(shape, Shape::Literals(_) | Shape::LowerCase(_) | Shape::Opaque);
        if *literal == the_set || !cheap {
            continue;
        }
        let atom = atoms.atom(literal.atom());
        let mut implied = true;
        for (point, possible) in points.iter().zip(&mut possible) {
            let holds = literal.holds(atom.outcome(Some(point.as_ref())));
            implied &= holds;
            *possible &= holds;
        }
        if implied {
            settled.redundant.push(*literal);
            // Patterns may be undefined for every interval, even for one that is a single point.
            let as_interval = (points[0].clone(), points[0].clone());
            settled.point_only |= !literal.holds(atom.outcome(Some(ValueRef::Interval(&as_interval))));
        }
    }
    if !possible.contains(&true) {
        settled.decided = true;
        settled.point_only = true;
    }
}

/// An end of a range and the literal it comes from.
type End<'a> = Option<(Bound<'a>, Literal)>;

/// Finds the tightest ends: if they cross, nothing is left; who gives neither is superfluous.
fn intersect_ranges(shapes: &[(Literal, Shape<'_>)], settled: &mut Settled) {
    let ranges = || {
        shapes.iter().filter_map(|(literal, shape)| match shape {
            Shape::Range { low, high } if !literal.is_negated() => Some((*literal, *low, *high)),
            _ => None,
        })
    };
    let (mut tightest_low, mut tightest_high): (End<'_>, End<'_>) = (None, None);
    for (literal, low, high) in ranges() {
        keep_end(&mut tightest_low, low, literal, |new, old| low_order(new, old).is_gt());
        keep_end(&mut tightest_high, high, literal, |new, old| high_order(new, old).is_lt());
    }
    if let (Some((low, _)), Some((high, _))) = (tightest_low, tightest_high) {
        let crossed = match low.value.compare(high.value) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => !(low.inclusive && high.inclusive),
            _ => false,
        };
        if crossed {
            settled.decided = true;
            settled.point_only = true;
            return;
        }
    }
    let gives = |end: End<'_>, literal| end.is_some_and(|(_, giver)| giver == literal);
    for (literal, _, _) in ranges() {
        if !gives(tightest_low, literal) && !gives(tightest_high, literal) {
            settled.redundant.push(literal);
        }
    }
}

fn settle_or_group(group: &[(TermId, Literal)], atoms: &AtomTable, settled: &mut Settled) {
    let shape_of = |literal: Literal| {
        let atom = atoms.atom(literal.atom());
        atom.operator.rules().shape(&atom.operands)
    };
    for pair in group.windows(2) {
        if pair[0].1.not() == pair[1].1 && matches!(shape_of(pair[0].1), Shape::Absent) {
            settled.decided = true;
            return;
        }
    }
    let ranges: Vec<_> = group
        .iter()
        .filter(|(_, literal)| !literal.is_negated())
        .filter_map(|&(_, literal)| match shape_of(literal) {
            Shape::Range { low, high } => Some((literal, low, high)),
            _ => None,
        })
        .collect();
    // The widest half-line of each kind and direction; kinds are few.
    let (mut from, mut upto) = ([None; KINDS], [None; KINDS]);
    for &(literal, low, high) in &ranges {
        match (low, high) {
            (Some(low), None) => {
                let widest: &mut End<'_> = &mut from[kind_of(low)];
                keep_end(widest, Some(low), literal, |new, old| low_order(new, old).is_lt());
            }
            (None, Some(high)) => {
                let widest: &mut End<'_> = &mut upto[kind_of(high)];
                keep_end(widest, Some(high), literal, |new, old| high_order(new, old).is_gt());
            }
            _ => {}
        }
    }
    for (literal, low, high) in ranges {
        let inside_from = low.is_some_and(|low| {
            from[kind_of(low)]
                .is_some_and(|(widest, giver)| giver != literal && low_order(low, widest).is_ge())
        });
        let inside_upto = high.is_some_and(|high| {
            upto[kind_of(high)]
                .is_some_and(|(widest, giver)| giver != literal && high_order(high, widest).is_le())
        });
        if inside_from || inside_upto {
            settled.redundant.push(literal);
        }
    }
}

const KINDS: usize = Kind::Record as usize + 1;

fn kind_of(bound: Bound<'_>) -> usize {
    bound.value.kind().unwrap_or(Kind::Record) as usize
}

/// Replaces an end by a new one that is better.
fn keep_end<'a>(
    best: &mut End<'a>,
    new: Option<Bound<'a>>,
    literal: Literal,
    is_better: impl Fn(Bound<'a>, Bound<'a>) -> bool,
) {
    if let Some(new) = new
        && best.is_none_or(|(old, _)| is_better(new, old))
    {
        *best = Some((new, literal));
    }
}

/// Orders low ends by where they start: `>= 5` before `> 5`.
fn low_order(a: Bound<'_>, b: Bound<'_>) -> Ordering {
    let values = a.value.compare(b.value).expect("ends of one kind");
    values.then(b.inclusive.cmp(&a.inclusive))
}

/// Orders high ends by where they stop: `< 5` before `<= 5`.
fn high_order(a: Bound<'_>, b: Bound<'_>) -> Ordering {
    let values = a.value.compare(b.value).expect("ends of one kind");
    values.then(a.inclusive.cmp(&b.inclusive))
}
