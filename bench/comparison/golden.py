"""Every kind of query, on the fixed set of `golden_inputs`, as one hash per kind.

A change that is meant to keep answers must keep these hashes: ids, their order, counts, ranks and the exact
bits of scores. `tests/test_golden_answers.py` compares them with `golden.json`, `bench/compare.py` those of
two commits. It uses only the public API of `tamis`, so that it runs on commits whose internals differ.

    python bench/comparison/golden.py            # which kinds of answers differ from golden.json
    python bench/comparison/golden.py --write    # after a change that is meant to change answers
    python bench/comparison/golden.py --json     # the hashes, for bench/compare.py
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis

if __package__:
    from comparison import golden_inputs as inputs
else:
    import golden_inputs as inputs

STORED = Path(__file__).with_name("golden.json")

SCORES = ("priority", "relevance", "relaxed", "max(age, price) + 0.5 * score")
SAMPLE = 100
"""Events that are asked one by one in every way."""

EVENT_SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in inputs.NUMBERS),
        *((name, pa.string()) for name in inputs.WORDS),
        ("vip", pa.bool_()),
        ("ints", pa.list_(pa.int64())),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("home", pa.struct({"city": pa.string()})),
    ]
)


class Answers:
    """A hash that is fed with answers."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, answer: Any) -> None:
        """Take in one answer; scores count with every bit.

        >>> one, other = Answers(), Answers()
        >>> one.add([0.1 + 0.2])
        >>> other.add([0.3])
        >>> one.digest() == other.digest()
        False
        """
        self._hash.update(repr(_plain(answer)).encode())
        self._hash.update(b"\n")

    def digest(self) -> str:
        return self._hash.hexdigest()


def _plain(answer: Any) -> Any:
    """The answer as what Python writes exactly: the text of a float has all its bits."""
    if isinstance(answer, pa.Table):
        return {name: answer.column(name).to_pylist() for name in sorted(answer.column_names)}
    if isinstance(answer, pa.Array):
        return answer.to_pylist()
    if isinstance(answer, list):
        return [(*item,) if isinstance(item, tuple) else item for item in answer]
    return answer


def digest(answers: Iterable[Any]) -> str:
    """The hash of answers in a row."""
    fed = Answers()
    for answer in answers:
        fed.add(answer)
    return fed.digest()


# --- the index -------------------------------------------------------------------------------------------


def fill(index: tamis.Index, rows: Iterable[inputs.Row]) -> None:
    """Add rows in one call."""
    rows = list(rows)
    index.add_many(
        [row.id for row in rows],
        [row.expression for row in rows],
        priorities=[row.priority for row in rows],
        weights=[row.weights for row in rows],
        tags=[row.tags for row in rows],
        expires=[row.expires for row in rows],
    )


def change(index: tamis.Index) -> None:
    """Add, replace, remove and rescore one by one, so that buffers, tombstones and segments take part."""
    spare = inputs.subscriptions(300, first=inputs.SUBSCRIPTIONS, seed=inputs.SEED + 9)
    for row in spare:
        details = {
            "priority": row.priority,
            "weights": row.weights,
            "tags": row.tags,
            "expires": row.expires,
        }
        match row.id % 4:
            case 0:
                index.add(row.id, row.expression, **details)
            case 1:
                index.replace(row.id - inputs.SUBSCRIPTIONS, row.expression, **details)
            case 2:
                index.upsert(row.id - 500, row.expression, **details)
            case _:
                index.remove(row.id - 580)
    for id in range(0, 300, 7):
        if id in index:
            index.set_priority(id, id / 16)
            index.set_weights(id, {"age": 0.25 * (id % 9)})


# --- what it is asked ------------------------------------------------------------------------------------


def single_queries(index: tamis.Index) -> dict[str, Callable[[], Iterator[Any]]]:
    """The kinds of queries for one event."""
    events = inputs.events()
    sample = events[:SAMPLE]
    intervals = [
        tamis.Event({**event, **{name: tamis.Interval(*ends) for name, ends in bounds.items()}})
        for event, bounds in zip(sample, inputs.interval_bounds(SAMPLE), strict=True)
    ]
    weighted = [
        tamis.Event(event, weights=weights)
        for event, weights in zip(sample, inputs.event_weights(SAMPLE), strict=True)
    ]
    now = inputs.NOW
    narrowed: list[dict[str, Any]] = [{"tags": ["q1"]}, {"tags": ["q2", "q4"]}, {"tags": ["none"]}]

    def ranked(asked: list[Any]) -> Iterator[Any]:
        for score, k, event in product(SCORES, (1, 5, 10_000), asked):
            yield index.top_k(event, k, score, now=now)

    return {
        "match": lambda: (index.match(event, now=now) for event in events),
        "count": lambda: (index.count(event, now=now) for event in events),
        "exists": lambda: (
            index.exists({name: value}, tags=["rare"], now=now)
            for event in sample
            for name, value in event.items()
        ),
        "JSON": lambda: (index.match(tamis.Event(event).to_json(), now=now) for event in sample),
        "tags": lambda: (index.match(event, now=now, **by) for by, event in product(narrowed, sample)),
        "expiry": lambda: (
            index.match(event, now=now.replace(day=1 + day)) for day, event in enumerate(sample[:28])
        ),
        "intervals": lambda: (index.match(event, now=now) for event in intervals),
        "top-k": lambda: ranked(sample[:24]),
        "top-k of intervals": lambda: ranked(intervals[:8]),
        "top-k of weighted events": lambda: ranked(weighted[:24]),
        "top-k narrowed": lambda: (
            index.top_k(
                event, 7, score, min_score=1.0, dimensions=["age", "price"], tags=["q1", "q3"], now=now
            )
            for score, event in product(SCORES[:3], sample)
        ),
    }


def batch_queries(index: tamis.Index) -> dict[str, Callable[[], Iterator[Any]]]:
    """The kinds of queries for many events."""
    events = inputs.events()
    table = pa.Table.from_pylist(inputs.typed_events(), EVENT_SCHEMA)
    lines = "\n".join(tamis.Event(event).to_json() for event in events)
    ranged = _interval_columns()
    now = inputs.NOW
    return {
        "batch of a table": lambda: (
            index.match_batch(table, now=now, threads=threads) for threads in (1, 2)
        ),
        "batch of JSON lines": lambda: iter([index.match_batch(lines, now=now)]),
        "batch of counts": lambda: iter(
            [index.count_batch(events, now=now), index.count_batch(table, tags=["q1"], now=now)]
        ),
        "batch of intervals": lambda: iter(
            [index.match_batch(pa.table(ranged), now=now, intervals=list(ranged))]
        ),
        "batch of top-k": lambda: (
            index.top_k_batch(table, 5, score, weights={"age": 0.7}, now=now) for score in SCORES
        ),
    }


def _interval_columns() -> dict[str, pa.Array]:
    rows = inputs.interval_bounds(inputs.EVENTS)
    kind = pa.struct({"low": pa.int64(), "high": pa.int64()})
    return {
        name: pa.array(
            [{"low": row[name][0], "high": row[name][1]} if name in row else None for row in rows], kind
        )
        for name in inputs.NUMBERS
    }


def string_id_answers() -> Iterator[Any]:
    """Ids that sort differently as text than as numbers."""
    index = tamis.Index()
    rows = inputs.subscriptions(300)
    ids = [f"s{row.id}" for row in rows]
    index.add_many(ids, [row.expression for row in rows], priorities=[row.priority for row in rows])
    for event in inputs.events(SAMPLE):
        yield index.match(event)
        yield index.top_k(event, 5)
    yield index.match_batch(inputs.events())


def algorithm_answers(name: str) -> Iterator[Any]:
    """What a published algorithm refuses, and what it answers with the rest and with conjunctions."""
    for rows in (
        [(row.id, row.expression) for row in inputs.subscriptions(300)],
        inputs.conjunctions(300),
    ):
        index = tamis.Index(algorithm=name)
        ids, texts = zip(*rows, strict=True)
        refused = index.add_many(ids, texts, priorities=[id % 17 for id in ids], on_error="collect")
        yield [row.id for row in refused]
        for event in inputs.events(40):
            yield index.match(event)
            for score in SCORES[:3]:
                yield index.top_k(event, 5, score)


def answers() -> dict[str, str]:
    """A hash for each kind of query, in each state of the index."""
    found = {"inputs": digest([[repr(row) for row in inputs.subscriptions()], repr(inputs.events())])}
    index = tamis.Index(optimize="manual")
    fill(index, inputs.subscriptions())

    def ask(state: str, index: tamis.Index) -> None:
        for kind, asked in {**single_queries(index), **batch_queries(index)}.items():
            found[f"{kind}, {state}"] = digest(asked())

    ask("as built", index)
    change(index)
    ask("after changes", index)
    index.optimize()
    ask("optimized", index)
    with tempfile.TemporaryDirectory() as folder:
        index.save(f"{folder}/golden.tamis")
        ask("reopened", tamis.Index.open(f"{folder}/golden.tamis"))
    found["string ids"] = digest(string_id_answers())
    for name in tamis.ALGORITHMS:
        found[f"algorithm {name}"] = digest(algorithm_answers(name))
    return found


def stored() -> dict[str, str]:
    """The hashes in the tree."""
    hashes: dict[str, str] = json.loads(STORED.read_text())
    return hashes


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """The kinds of queries of `expected` that are answered differently in `found`, or not at all.

    >>> differences({"match": "1", "count": "2"}, {"match": "1", "count": "3", "new": "4"})
    ['count']
    """
    return [kind for kind, answer in expected.items() if found.get(kind) != answer]


def main(arguments: list[str]) -> int:
    """Compare with the stored answers, store (`--write`) or print (`--json`) those of today."""
    found = answers()
    if "--json" in arguments:
        print(json.dumps(found))
        return 0
    if "--write" in arguments:
        STORED.write_text(json.dumps(found, indent=1) + "\n")
    different = differences(stored(), found) + [f"{kind} (new)" for kind in found.keys() - stored().keys()]
    print("\n".join(different) or "the answers are those of golden.json")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
