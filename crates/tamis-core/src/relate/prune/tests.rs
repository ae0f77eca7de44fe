//! The worked example of Bittner (2008, section 6.4), without the printed values that do not follow from the
//! published algorithms, and what must hold for every expression.

use proptest::prelude::*;

use super::measure::{Profile, Rank};
use super::options::{bytes, remove};
use super::*;
use crate::expr::testing::{any_expr, any_interval_event, lookup};
use crate::expr::{evaluate, parse};
use crate::relate::covers_by_structure;
use crate::relate::tree::Leaves;

const S1: &str = "title = 'Harry Potter' AND ending < 1440 AND \
    (condition = 'new' AND price < 15 OR price < 12 AND condition = 'used')";
const S2: &str = "title = 'Harry Potter' AND ending < 1440 AND \
    (format = 'hardcover' AND (condition = 'new' AND price < 25 OR price < 20 AND condition = 'used') OR \
    format = 'softcover' AND (condition = 'new' AND price < 15 OR price < 10 AND condition = 'used'))";
const S3: &str = "(category = 'Ancient Literature' OR author = 'JK Rowling') AND \
    (ending < 60 AND (bids = 0 OR special = 'signed') OR buy_it_now AND special = 'signed')";

/// The queue of the example with subscription S3. `bids = 0` is set so that the OR below is true in 87 %.
fn example(measure: Measure) -> PruningQueue {
    let bids = 1.0 - 0.13 / (1.0 - 0.011);
    let known = [
        ("category = 'Ancient Literature'", 0.015),
        ("author = 'JK Rowling'", 0.002),
        ("ending < 60", 0.16),
        ("buy_it_now", 0.15),
        ("special = 'signed'", 0.011),
        ("bids = 0", bids),
    ];
    let known = known.map(|(text, share)| (parse(text).unwrap(), share));
    let options = Options { measure, ..Options::default() };
    let mut queue = PruningQueue::new(options, Selectivities::new(known).unwrap());
    queue.add(&parse(S3).unwrap(), 1);
    // In order of first use: category, author, ending, bids, special, buy_it_now.
    queue.set_occurrences(&[100, 30, 500, 400, 60, 70]);
    queue
}

/// The number that the thesis gives a pruning of S3.
fn number(path: &[usize]) -> usize {
    match path {
        [0] => 1,
        [1] => 2,
        [1, 0, 1] => 3,
        [1, 0, 0] => 4,
        [1, 1, 0] => 5,
        [1, 1, 1] => 6,
        _ => unreachable!("S3 has six prunings"),
    }
}

fn order(measure: Measure) -> Vec<usize> {
    example(measure).ranked(0, measure).iter().map(|(_, path, _)| number(path)).collect()
}

fn by_number(measure: Measure) -> Vec<(Rank, Vec<usize>, Profile)> {
    let mut ranked = example(measure).ranked(0, measure);
    ranked.sort_by_key(|(_, path, _)| number(path));
    ranked
}

#[test]
fn accuracy_ranks_as_recomputed() {
    // The independent estimate and the degradation of each pruning.
    let expected = [
        (0.14062, 0.154),
        (0.01697, 0.015),
        (0.00274, 0.00035),
        (0.01477, 0.01238),
        (0.00252, 0.00014),
        (0.00455, 0.00217),
    ];
    for ((rank, path, after), (avg, degradation)) in by_number(Measure::Accuracy).iter().zip(expected) {
        assert!((after.estimate.avg - avg).abs() < 6e-6, "{path:?} {after:?}");
        assert!((rank.value() - degradation).abs() < 6e-6, "{path:?} {rank:?}");
    }
    assert_eq!(order(Measure::Accuracy), [5, 3, 6, 4, 2, 1]);
}

#[test]
fn efficiency_memory_and_occurrence_rank_as_in_the_example() {
    let efficiency: Vec<f64> = by_number(Measure::Efficiency).iter().map(|(rank, ..)| rank.value()).collect();
    assert_eq!(efficiency, [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(order(Measure::Efficiency), [5, 3, 6, 4, 1, 2]);

    let sizes: Vec<(usize, usize)> =
        by_number(Measure::Memory).iter().map(|(_, path, after)| (number(path), after.bytes)).collect();
    assert_eq!(sizes, [(1, 33), (3, 33), (4, 38), (5, 40), (6, 40)], "2 contains other prunings");
    assert_eq!(order(Measure::Memory)[..2], [3, 1], "a tie that accuracy breaks");

    let by_occurrence = by_number(Measure::AccuracyAndOccurrence);
    let occurrences: Vec<u64> = by_occurrence.iter().map(|(_, _, after)| after.occurrence).collect();
    assert_eq!(occurrences, [1090, 130, 760, 720, 1150, 1160]);
    let expected = [0.1724, 0.1408, 0.00057, 0.0210, 0.000145, 0.00228];
    for ((rank, ..), expected) in by_occurrence.iter().zip(expected) {
        assert!((rank.value() - expected).abs() < expected * 0.05, "{rank:?} {expected}");
    }
    assert_eq!(order(Measure::AccuracyAndOccurrence), [5, 3, 6, 4, 2, 1]);
}

#[test]
fn sizes_and_prunings_of_the_classes() {
    for (text, size, prunings, by_memory) in [(S1, 38, 7, 6), (S2, 80, 15, 12), (S3, 47, 6, 5)] {
        let mut queue = PruningQueue::new(Options::default(), Selectivities::default());
        queue.add(&parse(text).unwrap(), 1);
        assert_eq!(queue.bytes(), size);
        assert_eq!(queue.ranked(0, Measure::Accuracy).len(), prunings);
        assert_eq!(queue.ranked(0, Measure::Memory).len(), by_memory);
    }
}

#[test]
fn what_is_left_is_joined() {
    let mut leaves = Leaves::default();
    let mut tree = leaves.tree(&parse(S3).unwrap());
    remove(&mut tree, &[1, 0, 0]);
    assert_eq!(
        leaves.written(&tree).to_string(),
        "(category = 'Ancient Literature' OR author = 'JK Rowling') AND \
         (bids = 0 OR special = 'signed' OR buy_it_now AND special = 'signed')"
    );
    assert_eq!(bytes(&tree), 38);
}

#[test]
fn the_best_of_all_goes_first_until_the_budget_is_met() {
    let expressions: Vec<Expr> =
        ["a = 1 AND b > 2", "c = 1 AND d > 3", "e = 1 OR f = 1"].map(|text| parse(text).unwrap()).into();
    let known = [("b > 2", 0.5), ("d > 3", 0.99)].map(|(text, share)| (parse(text).unwrap(), share));
    let mut queue = PruningQueue::new(Options::default(), Selectivities::new(known).unwrap());
    queue.add_many(expressions.iter());
    assert_eq!((queue.bytes(), queue.predicates()), (36, 6));
    assert_eq!(queue.prune(Until::Bytes(30)), 1);
    assert_eq!(queue.expression(1).unwrap().to_string(), "c = 1");
    assert_eq!(queue.expression(0).unwrap(), expressions[0]);
    assert!(queue.remove(1) && !queue.remove(1));
    assert_eq!(queue.bytes(), 24);
    assert_eq!(queue.prune(Until::Predicates(0)), 1, "an OR of predicates cannot be pruned");
    assert_eq!(queue.expressions().len(), 2);
}

#[test]
fn the_last_resort_is_true() {
    let options = Options { to_true: true, measure: Measure::Memory, ..Options::default() };
    let pruned = |until| {
        prune(&parse("a = 1 AND (b = 1 OR c = 1)").unwrap(), until, options, &Selectivities::default())
    };
    assert_eq!(pruned(Until::Steps(1)).to_string(), "a = 1");
    assert_eq!(pruned(Until::Bytes(0)).to_string(), "TRUE");
    let strict =
        prune(&parse("a = 1").unwrap(), Until::Bytes(0), Options::default(), &Selectivities::default());
    assert_eq!(strict.to_string(), "a = 1");
}

#[test]
fn a_number_that_is_used_again_has_nothing_left_of_its_former_owner() {
    let mut queue = PruningQueue::new(Options::default(), Selectivities::default());
    let former = queue.add(&parse("a = 1 AND b = 1").unwrap(), 1);
    assert!(queue.remove(former));
    let latter = queue.add(&parse("c = 1").unwrap(), 1);
    assert_eq!(former, latter);
    assert_eq!(queue.prune(Until::Steps(1)), 0, "there is nothing to prune");
}

#[test]
fn restricted_execution_looks_again() {
    let expressions = ["a = 1 AND b = 1", "c = 1 AND d = 1"].map(|text| parse(text).unwrap());
    let known = |shares: [f64; 4]| {
        let texts = ["a = 1", "b = 1", "c = 1", "d = 1"];
        Selectivities::new(texts.into_iter().zip(shares).map(|(text, share)| (parse(text).unwrap(), share)))
            .unwrap()
    };
    for (execution, first) in [
        (Execution::Strict, 0),
        (Execution::StaticallyRestricted(0.1), 1),
        (Execution::DynamicallyRestricted, 1),
    ] {
        let options = Options { execution, ..Options::default() };
        let mut queue = PruningQueue::new(options, known([0.1, 0.9, 0.3, 0.7]));
        queue.add_many(expressions.iter());
        queue.learn(known([0.5, 0.5, 0.3, 0.99]));
        queue.prune(Until::Steps(1));
        let is_pruned = |entry: usize| queue.expression(entry).unwrap() != expressions[entry];
        assert!(is_pruned(first) && !is_pruned(1 - first), "{execution:?}");
    }
}

proptest! {
    #[test]
    fn the_pruned_covers_the_original(
        expressions in prop::collection::vec(any_expr(4), 1..5),
        measure in prop::sample::select(Measure::NAMES.map(|(_, measure)| measure).to_vec()),
        steps in 0..12usize,
        to_true: bool,
        events in prop::collection::vec(any_interval_event(), 20),
    ) {
        let options = Options { measure, to_true, ..Options::default() };
        let borrowed: Vec<&Expr> = expressions.iter().collect();
        let pruned = prune_many(&borrowed, Until::Steps(steps), options, &Selectivities::default());
        for (original, pruned) in expressions.iter().zip(&pruned) {
            for event in &events {
                let lookup = lookup(event);
                let is_true = |expr| evaluate(expr, &lookup).can_be_true;
                prop_assert!(!is_true(original) || is_true(pruned), "{original} / {pruned}");
            }
            prop_assert!(covers_by_structure(pruned, original) , "{original} / {pruned}");
        }
    }

    /// What is predicted of a pruning is what it does.
    #[test]
    fn predictions_come_true(expr in any_expr(5)) {
        let mut queue = PruningQueue::new(Options::default(), Selectivities::default());
        let entry = queue.add(&expr, 1);
        let mut leaves = Leaves::default();
        for (_, path, after) in queue.ranked(entry, Measure::Accuracy) {
            let mut tree = leaves.tree(&expr);
            remove(&mut tree, &path);
            let mut again = PruningQueue::new(Options::default(), Selectivities::default());
            let at = again.add(&leaves.written(&tree), 1);
            let profile = again.profile(at);
            prop_assert_eq!(profile.bytes, after.bytes);
            prop_assert_eq!(profile.least_true, after.least_true);
            let (a, b) = (profile.estimate, after.estimate);
            for (a, b) in [(a.min, b.min), (a.avg, b.avg), (a.max, b.max)] {
                prop_assert!((a - b).abs() < 1e-9, "{} {}", a, b);
            }
        }
    }
}
