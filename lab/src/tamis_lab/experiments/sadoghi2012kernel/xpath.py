"""What does it cost to match XPath expressions as Boolean expressions? (Sadoghi 2012, on GPX-Matcher)

The text gives no figures: "a matching time in the millisecond range for millions of XPath expressions which
outperforms state-of-the-art algorithms". So this is the shape of the claim: the encoding on some algorithms,
compared with rivals of the two kinds of the time, one that tries paths one by one and one that shares an
automaton. The automaton is that of Tamis itself, whose states are built as documents need them.
"""

import random
import statistics

import numpy as np

import tamis
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale
from tamis_lab.experiments.sadoghi2012kernel.encoding import Event, TreePath, events_of, random_paths
from tamis_lab.workloads.xml import documents

ENCODED = {"BE-Tree": "be-tree", "k-index": "k-index", "counting": "counting", "kernel": "auto"}
MOST_ONE_BY_ONE = 1_000
"""More than a thread keeps ready would be parsed again for each document."""
ROUNDS = 3


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Time documents against the same paths in all ways, for growing numbers of paths."""
    largest = scale.of(small=5_000, paper=1_000_000)
    seed = int(rng.integers(2**32))
    few, many = (3, 20) if largest <= 10_000 else (40, 200)
    texts = _documents(few, seed)
    events = [events_of(text) for text in texts]
    sources = _documents(many, seed + 1)
    made = random_paths(largest, sources, random.Random(seed))
    counts = sorted({max(10, largest // 100), max(10, largest // 10), largest})
    lines: dict[str, list[tuple[float, float]]] = {}
    for count in counts:
        for name, milliseconds in measure(made[:count], texts, events).items():
            lines.setdefault(name, []).append((count, milliseconds))
    last = {name: points[-1][1] for name, points in lines.items() if points[-1][0] == largest}
    best = min((f"encoded: {name}" for name in ENCODED), key=last.__getitem__)
    rows = [
        Row(f"{name}, {count:,} paths: ms a document", None, took)
        for name, points in lines.items()
        for count, took in points
    ]
    rows += [
        Row("best encoding over the automaton", None, last[best] / last["automaton"], best),
        Row("growth of the best encoding, last tenfold", None, lines[best][-1][1] / lines[best][-2][1]),
        Row("growth of the automaton, last tenfold", None, last["automaton"] / lines["automaton"][-2][1]),
    ]
    ways = statistics.mean(len(one) for one in events)
    note = (
        f"{few} documents of 10 KB, each {ways:.0f} events when encoded. Times of the encoding are without "
        "parsing and encoding; those of the others include parsing. The paper gives no figures, only that "
        "millions of expressions take milliseconds and that rivals take longer. All ways find the same paths."
    )
    return Result(rows=rows, lines=lines, axes=("paths", "milliseconds a document"), note=note)


def measure(paths: list[TreePath], texts: list[str], events: list[list[Event]]) -> dict[str, float]:
    """Milliseconds a document in each way; all of them must find the same paths.

    >>> from tamis_lab.experiments.sadoghi2012kernel.encoding import Step
    >>> paths = [TreePath((Step("a"), Step("b"))), TreePath((Step("*"),), ("c",))]
    >>> document = "<a><b/><d><c/></d></a>"
    >>> sorted(measure(paths, [document], [events_of(document)]))[:2]
    ['automaton', 'encoded: BE-Tree']
    """
    took: dict[str, float] = {}
    xpaths = [f"xpath(doc, '{path.xpath()}')".replace("= '", "= \\'").replace("']", "\\']") for path in paths]
    automaton = _index(xpaths, "auto")
    expected = [automaton.match({"doc": text}) for text in texts]
    took["automaton"] = _milliseconds(automaton, [[{"doc": text}] for text in texts])
    if len(paths) <= MOST_ONE_BY_ONE:
        scan = _index(xpaths, "scan")
        took["one by one"] = _milliseconds(scan, [[{"doc": text}] for text in texts])
    for name, algorithm in ENCODED.items():
        index = _index([path.expression() for path in paths], algorithm)
        for of_document, matches in zip(events, expected, strict=True):
            found = sorted({path for event in of_document for path in index.match(event)})
            if found != matches:
                raise AssertionError(f"{name} finds other paths than the automaton")
        took[f"encoded: {name}"] = _milliseconds(index, events)
    return took


def _index(expressions: list[str], algorithm: str) -> tamis.Index:
    index = tamis.Index(algorithm=algorithm)
    index.add_many(range(len(expressions)), expressions)
    index.optimize()
    return index


def _documents(count: int, seed: int) -> list[str]:
    """Stories of about 10 KB."""
    return list(documents(count, size=10_000, kind="news", depth=8, values=1000, seed=seed))


def _milliseconds(index: tamis.Index, events: list[list[Event]]) -> float:
    """The time of all events of a document, in the kernel; the fastest of some rounds counts.

    Documents come in turns, because one that was just read is not read again.
    """
    rounds = [[float(index.time_events(of, repeats=1).sum()) for of in events] for _ in range(ROUNDS)]
    return float(statistics.mean(min(times) for times in zip(*rounds, strict=True))) / 1e6


EXPERIMENT = Experiment(
    name="sadoghi-kernel-xpath",
    paper="Sadoghi 2012",
    figure="section 2, GPX-Matcher",
    question="What does it cost to match XPath expressions as Boolean expressions over pairs?",
    run=run,
)
