"""Small expressions, events and networks that meet often."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from oracle import Connective, Constant, Node, Predicate
from pubsub.history import rendezvous_at
from tamis.pubsub.routing import AdvertisementForwarding, EventFlooding, SubscriptionForwarding
from tamis_lab.brokers.options import Limits, Options, PostPruning, PrePruning
from tamis_lab.simulation import Topology

ATTRIBUTES = ("x", "y", "z")
TYPES = st.sampled_from([None, None, "book"])

predicates = st.builds(
    lambda attribute, name, operand, negated: Predicate(attribute, name, (operand,), negated),
    st.sampled_from(ATTRIBUTES),
    st.sampled_from(["=", "<", ">=", ">"]),
    st.integers(0, 3),
    st.sampled_from([False, False, False, True]),
)


def nodes(depth: int = 2) -> st.SearchStrategy[Node]:
    if depth == 0:
        return predicates
    below = nodes(depth - 1)
    joined = st.builds(
        Connective, st.sampled_from(["AND", "AND", "OR"]), st.lists(below, min_size=2, max_size=3).map(tuple)
    )
    return predicates | joined | joined


# An advertisement of everything keeps most histories from publishing nothing.
advertisements = nodes(1) | st.just(Constant(True))

events = st.fixed_dictionaries(
    {}, optional={name: st.integers(0, 3) for name in ATTRIBUTES}
) | st.fixed_dictionaries({name: st.integers(0, 3) for name in ATTRIBUTES})

topologies = st.one_of(
    st.integers(1, 5).map(Topology.line),
    st.integers(2, 6).map(Topology.star),
    st.integers(2, 7).map(Topology.tree),
    st.builds(Topology.random, st.integers(2, 7), st.integers(0, 100)),
)

plain_options = st.builds(
    Options,
    routing=st.sampled_from([SubscriptionForwarding(), AdvertisementForwarding(), EventFlooding()]),
    shortcut=st.booleans(),
    covering=st.booleans(),
    subsumption=st.booleans(),
    merging=st.sampled_from(["off", "perfect", "imperfect"]),
    merge_prunings=st.integers(1, 2),
    summaries=st.sampled_from([None, None, 1, 4]),
    pre_pruning=st.sampled_from(
        [
            None,
            None,
            PrePruning(1),
            PrePruning(2, "efficiency"),
            PrePruning(None, neighbours={"b1": 1, "b2": 2}),
            PrePruning(1, neighbours={"b1": None, "b3": 2}),
        ]
    ),
    post_pruning=st.sampled_from(
        [None]
        + [
            PostPruning(measure, execution, replace=replace)
            for measure, execution, replace in [
                ("accuracy", "strict", 0.0),
                ("efficiency", "strict", 1.0),
                ("memory", "restricted", 0.0),
                ("accuracy-occurrence", "restricted", 0.5),
                ("accuracy-distance", "strict", 0.0),
                ("combined", "strict", 0.5),
            ]
        ]
    ),
    advertisement_covering=st.booleans(),
    overlap=st.sampled_from(["exact", "pairs"]),
    nonconforming=st.sampled_from(["refuse", "count"]),
)


def options_for(topology: Topology, limits: st.SearchStrategy[Limits]) -> st.SearchStrategy[Any]:
    brokers = st.sampled_from(topology.brokers)
    options = st.builds(replace, plain_options, limits=limits)
    rendezvous = st.builds(rendezvous_at, st.just(topology), brokers, brokers, options)
    return options | options | rendezvous
