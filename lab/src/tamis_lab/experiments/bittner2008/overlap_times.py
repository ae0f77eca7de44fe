"""How long does it take to find what overlaps, for Boolean expressions and for their conjunctions?

Bittner (2008, section 8.5) asks with 15,000 subscriptions for overlapping advertisements, up to 500,000 of
them: for all (function problem) and for one (decision problem). In the conjunctive system every term of the
normal forms is an expression of its own, and counting has to finish before it can say anything.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import tamis
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis_lab.experiments.bittner2008.auction_network import advertisements_of, conjunctions, expressions_of
from tamis_lab.experiments.contract import Chart, Experiment, Result, Row, Scale
from tamis_lab.workloads import BookAuction

Expressions = Sequence[tamis.Expression]
KINDS = ("Boolean, all", "Boolean, one", "conjunctive, all", "conjunctive, one")


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Ask for all and for one, among a quarter, half and all of the advertisements."""
    most = scale.of(small=4_000, paper=500_000)
    asked = max(10, most // 100)
    auction = BookAuction(count=asked, seed=int(rng.integers(2**32)))
    asking = [tamis.parse(text) for text in expressions_of(auction)]
    terms = [[tamis.parse(term) for term in conjunctions(str(one))] for one in asking]
    advertisements = advertisements_of(auction, most)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in KINDS}
    increments: dict[str, int] = {}
    for count in (most // 4, most // 2, most):
        boolean, conjunctive = _indexes(advertisements[:count])
        for name, index, ask in (
            ("Boolean, all", boolean, partial(_ask, boolean.overlapping, asking)),
            ("Boolean, one", boolean, partial(_ask, boolean.any, asking)),
            ("conjunctive, all", conjunctive, partial(_ask, partial(_all_terms, conjunctive), terms)),
            ("conjunctive, one", conjunctive, partial(_ask, partial(_one_each, conjunctive), terms)),
        ):
            before = index.increments
            times[name].append((count, 1_000 * ask() / asked))
            increments[name] = index.increments - before
    took = {name: points[-1][1] for name, points in times.items()}
    rows = [
        Row("Boolean: time for one / for all", 0.2, took["Boolean, one"] / took["Boolean, all"]),
        Row(
            "conjunctive: time for one / for all",
            0.86,
            took["conjunctive, one"] / took["conjunctive, all"],
            "paper: 0.80 to 0.92",
        ),
        Row("for one: Boolean / conjunctive", 0.28, took["Boolean, one"] / took["conjunctive, one"]),
        Row("for all: conjunctive / Boolean", 0.88, took["conjunctive, all"] / took["Boolean, all"]),
        Row(
            "for one: counters incremented, Boolean / conjunctive",
            None,
            increments["Boolean, one"] / max(1, increments["conjunctive, one"]),
        ),
        Row(
            "for all: counters incremented, conjunctive / Boolean",
            None,
            increments["conjunctive, all"] / max(1, increments["Boolean, all"]),
        ),
    ]
    note = (
        f"{asked:,} subscriptions asked among {most:,} advertisements, published test on pairs. To find all, "
        "conjunctions took less time than Boolean expressions in the paper, and take more here: they "
        "increment more counters, in the last row, and every term of a subscription is a question of its "
        "own, whose answers are put together at the end. To find one, Boolean expressions gain more than in "
        "the paper because they increment a tenth of the counters and stop."
    )
    chart = Chart("Time per subscription", times, ("advertisements", "ms"))
    return Result(rows, note=note, charts=[chart])


def _indexes(advertisements: Expressions) -> tuple[OverlapIndex, OverlapIndex]:
    block = min(512, max(1, len(advertisements) // 8))
    boolean = OverlapIndex("pairs", block)
    terms = {}
    for number, expression in enumerate(advertisements):
        boolean.put(str(number), expression)
        for place, text in enumerate(conjunctions(str(expression))):
            terms[f"{number}/{place}"] = tamis.parse(text)
    # One block for all: counting says nothing before it has finished.
    conjunctive = OverlapIndex("pairs", len(terms))
    for id, term in terms.items():
        conjunctive.put(id, term)
    return boolean, conjunctive


def _all_terms(index: OverlapIndex, terms: Expressions) -> set[str]:
    return {id.partition("/")[0] for term in terms for id in index.overlapping(term)}


def _one_each(index: OverlapIndex, terms: Expressions) -> list[str | None]:
    """One for every term: a conjunctive system does not know which of its expressions belong together."""
    return [index.any(term) for term in terms]


def _ask(question: Callable[[Any], object], asking: Sequence[Any]) -> float:
    """The seconds that a question to each of them takes."""
    started = time.thread_time()
    for one in asking:
        question(one)
    return time.thread_time() - started


EXPERIMENT = Experiment(
    name="overlap-times",
    paper="Bittner 2008",
    figure="section 8.5",
    question="How long does it take to find what overlaps, for Boolean expressions and for conjunctions?",
    run=run,
)
