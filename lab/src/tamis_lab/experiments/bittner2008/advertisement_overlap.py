"""Shared code of the experiments with pruned advertisements: pruning in steps, and measuring overlap."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import tamis
from tamis import relate
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise.advertisement_pruning import AdvertisementPruner, Worth
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis_lab.experiments.bittner2008.auction_network import advertisements_of, expressions_of
from tamis_lab.workloads import BookAuction

Expressions = Sequence[tamis.Expression]
SAMPLE = 2_000


@dataclass(frozen=True)
class Market:
    """Subscriptions and advertisements of one auction, and how often predicates are true in its events."""

    subscriptions: list[tamis.Expression]
    advertisements: list[tamis.Expression]
    known: relate.Selectivities


def market(count: int, advertisements: int, rng: np.random.Generator) -> Market:
    """An auction with this many of both."""
    auction = BookAuction(count=count, seed=int(rng.integers(2**32)))
    subscriptions = [tamis.parse(text) for text in expressions_of(auction)]
    known = relate.Selectivities.from_events(subscriptions, auction.events_table(SAMPLE))
    return Market(subscriptions, advertisements_of(auction, advertisements), known)


def pruned_in_steps(found: Market, shares: Sequence[float]) -> list[tuple[float, list[tamis.Expression]]]:
    """The advertisements after shares of all prunings, each with the share of predicates removed."""
    worth = Worth(found.subscriptions, {text: SAMPLE * share for text, share in found.known})
    whole = predicates(found.advertisements)
    all_prunings = _pruner(found.advertisements)
    most = 0
    while all_prunings.prune(1_000, worth.of):
        most = all_prunings.done
    pruner = _pruner(found.advertisements)
    steps = []
    for share in shares:
        pruner.prune(round(share * most) - pruner.done, worth.of)
        left = [pruner.current.get(id, entry.expression) for id, entry in pruner.originals.items()]
        steps.append((1 - predicates(left) / whole, left))
    return steps


@dataclass(frozen=True)
class Overlap:
    """How much overlaps, and what finding that took."""

    share: float
    """Of all pairs, by the published test."""
    all_milliseconds: float
    """Per advertisement, to find all overlapping subscriptions."""
    one_milliseconds: float
    """Per subscription, to find one overlapping advertisement."""
    candidates: int
    """Trees that were evaluated, repeated ones included."""


def overlap(advertisements: Expressions, subscriptions: Expressions) -> Overlap:
    """Ask in both directions.

    >>> found = overlap([tamis.parse("x > 1")], [tamis.parse("x < 3"), tamis.parse("x < 0")])
    >>> found.share
    0.5
    """
    by_subscription, by_advertisement = _index(subscriptions), _index(advertisements)
    started = time.thread_time()
    pairs = sum(len(by_subscription.overlapping(one)) for one in advertisements)
    between = time.thread_time()
    for one in subscriptions:
        by_advertisement.any(one)
    ended = time.thread_time()
    return Overlap(
        pairs / (len(advertisements) * len(subscriptions)),
        1_000 * (between - started) / len(advertisements),
        1_000 * (ended - between) / len(subscriptions),
        by_subscription.tests,
    )


def predicates(expressions: Expressions) -> int:
    """The predicates of all expressions."""
    return sum(expression.predicates for expression in expressions)


def at_share(points: Mapping[float, float] | Sequence[tuple[float, float]], share: float) -> float:
    """The value at a share, in proportion between the points beside it.

    >>> at_share([(0.0, 0.4), (0.5, 0.6)], 0.25)
    0.5
    """
    shares, values = zip(*(points.items() if isinstance(points, Mapping) else points), strict=True)
    return float(np.interp(share, shares, values))


def _pruner(advertisements: Expressions) -> AdvertisementPruner:
    pruner = AdvertisementPruner()
    for number, expression in enumerate(advertisements):
        pruner.originals[str(number)] = Entry(str(number), expression, None)
    return pruner


def _index(expressions: Expressions) -> OverlapIndex:
    index = OverlapIndex("pairs", block=min(512, max(1, len(expressions) // 4)))
    for number, expression in enumerate(expressions):
        index.put(str(number), expression)
    return index
