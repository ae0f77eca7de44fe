"""Summaries, replaced predicates, combined criteria, covered advertisements: what each may and may not do."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from oracle import Node, evaluate
from pubsub.strategies_pubsub import events, nodes
from tamis import relate
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise.combined_pruning import CombinedQueue
from tamis.pubsub.generalise.pruning import PostPruner
from tamis.pubsub.generalise.replacement import choose_replacements, replace_all
from tamis.pubsub.outgoing import Covering, Outgoing, Summaries
from tamis.pubsub.routing import AdvertisementForwarding
from tamis_lab.brokers import Options, PostPruning, Weights
from tamis_lab.simulation import Simulator, Topology
from writer import to_text


def entry_of(id: str, node: Node) -> Entry:
    return Entry(id, tamis.parse(to_text(node)), None)


@given(
    known=st.lists(nodes(2), min_size=1, max_size=6),
    gone=st.sets(st.integers(0, 5)),
    changed=st.dictionaries(st.integers(0, 5), nodes(2), max_size=2),
    most=st.integers(1, 3),
    seen=st.lists(events, min_size=1, max_size=12),
)
@settings(max_examples=80, deadline=None)
def test_a_summary_misses_nothing(
    known: list[Node], gone: set[int], changed: dict[int, Node], most: int, seen: list[dict[str, Any]]
) -> None:
    outgoing = Outgoing([Summaries("b1", most)])
    wanted: dict[str, Node] = {}
    for place, node in [*enumerate(known), *changed.items()]:
        wanted[str(place)] = node
        outgoing.show(entry_of(str(place), node))
    for place in gone:
        if wanted.pop(str(place), None) is not None:
            outgoing.hide(str(place))
    assert bool(outgoing.shown) == bool(wanted)
    for node in wanted.values():
        original = tamis.parse(to_text(node))
        for event in seen:
            if evaluate(node, event).can_be_true:
                assert any(shown.expression.evaluate(event) is True for shown in outgoing.shown.values())
        assert any(shown.expression.overlaps(original) for shown in outgoing.shown.values()) or not (
            original.overlaps(original)
        )


@pytest.mark.parametrize("text", ["x IN ()", "x IN () AND y = 1", "x IN () OR x IN ()"])
def test_an_empty_list_can_be_summarised(text: str) -> None:
    outgoing = Outgoing([Summaries("b1", most=3)])
    outgoing.show(Entry("nothing", tamis.parse(text), None))
    outgoing.show(Entry("something", tamis.parse(text.replace("()", "(1)")), None))
    assert any(shown.expression.evaluate({"x": 1, "y": 1}) is True for shown in outgoing.shown.values())
    outgoing.hide("something")
    outgoing.hide("nothing")
    assert not outgoing.shown


def test_summaries_are_few_and_bounded() -> None:
    outgoing = Outgoing([Summaries("b1", most=3)])
    for number in range(40):
        text = f"x BETWEEN {10 * number} AND {10 * number + 3} AND name = 'n{number % 3}'"
        outgoing.show(Entry(f"s{number}", tamis.parse(text), None))
    [summary] = outgoing.shown.values()
    assert summary.expression.predicates <= 4
    assert summary.expression.evaluate({"x": 391, "name": "n0"}) is True
    assert summary.expression.evaluate({"x": 391, "name": "other"}) is False
    for number in range(1, 40):
        outgoing.hide(f"s{number}")
    assert str(next(iter(outgoing.shown.values())).expression) == "name = 'n0' AND x BETWEEN 0 AND 3"


def test_a_summary_that_nothing_restricts_is_the_entry_itself() -> None:
    outgoing = Outgoing([Summaries("b1", most=3)])
    outgoing.show(Entry("s1", tamis.parse("x = 1 OR y = 2"), None))
    assert list(outgoing.shown) == ["s1"]
    outgoing.show(Entry("s1", tamis.parse("x = 1 AND y IS NULL"), None))
    [summary] = outgoing.shown.values()
    assert (summary.id, str(summary.expression)) == ("b1#1", "x = 1")


@given(
    known=st.lists(nodes(2), min_size=1, max_size=8),
    share=st.floats(0, 1),
    kept=st.lists(nodes(1), max_size=2),
)
@settings(max_examples=80, deadline=None)
def test_replaced_predicates_cover_the_original(known: list[Node], share: float, kept: list[Node]) -> None:
    expressions = {str(place): tamis.parse(to_text(node)) for place, node in enumerate(known)}
    local = [tamis.parse(to_text(node)) for node in kept]
    replacements = choose_replacements(expressions.values(), share, kept=local)
    changed = replace_all(expressions, replacements)
    for id, expression in changed.items():
        assert expression.covers(expressions[id])
        assert relate.decide_covers(expression, expressions[id]) is True
    used = {str(text) for expression in local for text in _predicates(expression)}
    assert not used & set(replacements)
    left = {str(text) for id, one in expressions.items() for text in _predicates(changed.get(id, one))}
    assert not left & set(replacements)


def _predicates(expression: tamis.Expression) -> list[tamis.Expression]:
    from tamis.pubsub.generalise import trees

    return [trees.expression_of(leaf) for leaf in trees.leaves(trees.tree_of(expression))]


@pytest.mark.parametrize(
    ("weights", "measure"),
    [
        (Weights(1, 0, 0, 0), "accuracy"),
        (Weights(0, 1, 0, 0), "efficiency"),
        (Weights(1, 0, 0, 1), "accuracy-occurrence"),
        (Weights(1, 0, 0, 0, 1), "accuracy-distance"),
    ],
)
def test_all_weight_on_one_criterion_is_that_measure(weights: Weights, measure: Any) -> None:
    texts = [
        "a = 1 AND b > 2 AND (c = 3 OR d = 4 AND e = 5)",
        "a = 2 AND (b > 1 AND c = 3 OR d = 9)",
        "f = 1 AND a = 1 AND e = 5",
    ]
    known = relate.Selectivities(
        {
            "a = 1": 0.11,
            "a = 2": 0.07,
            "b > 2": 0.53,
            "b > 1": 0.71,
            "c = 3": 0.31,
            "d = 4": 0.23,
            "d = 9": 0.17,
        }
        | {"e = 5": 0.41, "f = 1": 0.02}
    )
    ours = CombinedQueue(weights, known)
    theirs = relate.PruningQueue(measure=measure, selectivities=known, execution="restricted")
    # Occurrences change with every pruning, and the two look again at different times: one expression, then.
    for place, text in enumerate(texts[:1] if "occurrence" in measure else texts):
        ours.add(place, text, distance=1 + place)
        theirs.add(place, text, distance=1 + place)
    theirs.learn(known)
    while theirs.prune(steps=1):
        ours.prune(predicates=theirs.predicates)
        assert {place: ours[place] for place in ours} == {place: theirs[place] for place in theirs}


@given(
    known=st.lists(nodes(3), min_size=1, max_size=4),
    share=st.floats(0, 1),
    seen=st.lists(events, max_size=10),
)
@settings(max_examples=60, deadline=None)
def test_combined_pruning_covers_the_original(
    known: list[Node], share: float, seen: list[dict[str, Any]]
) -> None:
    pruner = PostPruner("combined")
    for place, node in enumerate(known):
        pruner.put("b2", entry_of(str(place), node))
    pruner.prune(share)
    for (_, id), general in pruner.changed():
        node = known[int(id)]
        assert general.covers(tamis.parse(to_text(node)), intervals=True)
        for event in seen:
            assert general.evaluate(event) is True or not evaluate(node, event).can_be_true


@given(
    known=st.lists(nodes(3), min_size=1, max_size=4),
    measure=st.sampled_from(get_args(relate.Measure)),
    steps=st.integers(1, 8),
    seen=st.lists(events, max_size=10),
)
@settings(max_examples=80, deadline=None)
def test_a_pruned_expression_is_decided_to_cover_its_original(
    known: list[Node], measure: Any, steps: int, seen: list[dict[str, Any]]
) -> None:
    originals = [tamis.parse(to_text(node)) for node in known]
    for node, original, general in zip(
        known, originals, relate.prune_many(originals, steps=steps, measure=measure), strict=True
    ):
        assert relate.decide_covers(general, original) is True
        for event in seen:
            assert general.evaluate(event) is True or not evaluate(node, event).can_be_true


def test_ranks_rest_on_what_is_known_of_events() -> None:
    options = Options(post_pruning=PostPruning("accuracy"))
    network = Simulator(Topology.line(2), options)
    ann, bob = network.client("b1", "ann"), network.client("b2", "bob")
    network.subscribe(ann, "s", "rare = 1 AND often = 1")
    network.run_until_quiet()
    for number in range(10):
        network.publish(bob, f'{{"rare": {int(number == 0)}, "often": {int(number > 0)}}}')
    network.run_until_quiet()
    network.prune(1.0)
    matcher = network.brokers["b2"].spreading.subscriptions_from["b1"].matcher
    assert [str(matcher[id]) for id in matcher] == ["rare = 1"]


def test_covered_advertisements_are_not_sent_and_come_back() -> None:
    options = Options(routing=AdvertisementForwarding(), advertisement_covering=True)
    network = Simulator(Topology.line(3), options)
    ann, bob = network.client("b3", "ann"), network.client("b1", "bob")
    network.advertise(bob, "wide", "price > 1")
    network.advertise(bob, "narrow", "price > 10")
    network.run_until_quiet()
    table = network.brokers["b2"].spreading.advertisements_from["b1"]
    assert list(table.entries) == ["b1/bob/wide"]
    network.subscribe(ann, "dear", "price > 50")
    network.withdraw(bob, "wide")
    network.run_until_quiet()
    assert list(table.entries) == ["b1/bob/narrow"]
    network.publish(bob, '{"price": 99}')
    network.run_until_quiet()
    assert [note.event for note in ann.heard] == ['{"price": 99}']


def test_covering_by_values_finds_what_all_pairs_find() -> None:
    covering, plain = Covering(), {}
    for number in range(60):
        text = f"k = {number % 4} AND x < {number * 7 % 20}" + (" AND y = 1" if number % 3 == 0 else "")
        entry = Entry(f"s{number}", tamis.parse(text), None)
        plain[entry.id] = entry
        covering.show(entry)
    for id, entry in plain.items():
        others = [one for one in plain.values() if one.id != id and one.expression.covers(entry.expression)]
        if not others:
            assert id not in covering._hidden
        elif all(not entry.expression.covers(other.expression) for other in others):
            assert id in covering._hidden


NEW_FORMS = [
    "lower(name) = 'ada'",
    "lower(name) IN ('ada', 'bob') AND price * quantity > 10",
    "price * quantity > 20",
    "price < limit",
    "AT LEAST 2 OF (price > 1, quantity > 1, vip)",
    "(price > 5 AND vip) IS NOT TRUE",
    "ip_in(client, '10.0.0.0/8')",
]


def test_computed_terms_thresholds_and_truth_tests_are_generalised() -> None:
    """Nothing that can be subscribed to stops a router, and nothing wanted is missed."""
    entries = [Entry(str(place), tamis.parse(text), None) for place, text in enumerate(NEW_FORMS)]
    seen = [
        {"name": "ADA", "price": 3.5, "quantity": 9, "limit": 5, "client": "10.1.2.3"},
        {"name": "x", "price": 30, "quantity": 1, "vip": True},
        {},
    ]
    for stages in [[Covering()], [Covering(by_sets=True)], [Summaries("b1", most=2)]]:
        outgoing = Outgoing(stages)
        for entry in entries:
            outgoing.show(entry)
        for event in seen:
            if any(entry.expression.evaluate(event) is True for entry in entries):
                assert any(shown.expression.evaluate(event) is True for shown in outgoing.shown.values())
        for entry in entries:
            outgoing.hide(entry.id)
        assert not outgoing.shown
    expressions = {entry.id: entry.expression for entry in entries}
    replacements = choose_replacements(expressions.values(), 1.0)
    for id, changed in replace_all(expressions, replacements).items():
        assert all(
            changed.evaluate(event) is True for event in seen if expressions[id].evaluate(event) is True
        )
