"""`make bench-terms`: the cost of computed terms, quantifiers, networks and places per event.

Each case alternates with its baseline; the result is the median over the turns. The
time of an event is that of `Index.count_batch` on one thread over events that were read before: resolving,
computing and matching.

    computed      rules with one computed term out of 50 each; baseline: the same rules over attributes.
                  "Alone" is the computation: the time of 50 rules that no event comes near, one for each
                  term, minus that of the same over stored attributes. The ratio is without it
    exists        `exists` over arrays of ten records; baseline: one event of an index of the bodies
    exists-arrow  the same, with events and baseline as rows of Arrow tables
    networks      rules of one block of addresses each, ten of which hold the address
    circles       rules of one circle each, ten of which hold the point
    inserts       one new computed term at a time; baseline: as many in an index that has none
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import tamis
from tamis_lab.benchmark.environment import describe, one_line

ROOT = Path(__file__).parent.parent
SEED = 17
TURNS = 5
# Of calls that take milliseconds, so that the memory of both sides is known to the processor.
MANY_TURNS = 50


def main() -> None:
    """Measure, print a table, write bench/results/terms.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="how many of the rules: 0.1 is a tenth")
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES), help="which cases")
    arguments = parser.parse_args()
    environment = describe(SEED)
    console = Console()
    console.print(one_line(environment))
    table = Table("case", "rules", "µs per event", "alone", "baseline", "ratio", "matches", "goal")
    results = []
    for name in arguments.only:
        result = CASES[name](random.Random(SEED), arguments.scale)
        results.append({"case": name, **result})
        beside = "" if result["beside"] is None else f"{result['beside']:.2f}"
        alone = result.get("alone", 0.0)
        ratio = "" if result["beside"] is None else f"{(result['micros'] - alone) / result['beside']:.2f}"
        table.add_row(
            name,
            f"{result['rules']:,}",
            f"{result['micros']:.2f}",
            f"{alone:.2f}" if alone else "",
            beside,
            ratio,
            f"{result['matches']:.1f}",
            result["aim"],
        )
    console.print(table)
    path = ROOT / "bench" / "results" / "terms.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"environment": environment, "results": results}, indent=2) + "\n")


def in_turns(*calls: Callable[[], Any], turns: int = TURNS) -> list[float]:
    """The median time of the processor for each call, in microseconds, all of them called in each turn."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(turns + 1):
        for call, taken in zip(calls, times, strict=True):
            started = time.process_time()
            call()
            if turn:
                taken.append((time.process_time() - started) * 1e6)
    return [statistics.median(taken) for taken in times]


def asked(index: tamis.Index, events: list[tamis.Event]) -> Callable[[], Any]:
    """A call that asks about all events."""
    return lambda: index.count_batch(events, threads=1)


def holding(rules: list[str]) -> tamis.Index:
    """An index of these rules, in one segment."""
    index = tamis.Index()
    index.add_many(range(len(rules)), rules)
    index.optimize()
    return index


def matches(index: tamis.Index, events: list[tamis.Event]) -> float:
    """How many rules match an event, on average."""
    return sum(index.count(event) for event in events) / len(events)


def computed(draw: random.Random, scale: float) -> dict[str, Any]:
    """Rules with one computed term each."""
    rules = int(1_000_000 * scale)
    attributes = [f"a{number}" for number in range(50)]
    tests = [(draw.choice(attributes), draw.randrange(100_000), draw.randrange(10)) for _ in range(rules)]
    terms = holding([f"{name} + 1 = {value} AND b = {other}" for name, value, other in tests])
    stored = holding([f"{name} = {value} AND b = {other}" for name, value, other in tests])
    values = [
        {**{name: draw.randrange(100_000) for name in attributes}, "b": draw.randrange(10)}
        for _ in range(200)
    ]
    events = [tamis.Event(event) for event in values]
    few_terms = holding([f"{name} + 1 = -1 AND b = -1" for name in attributes])
    few_stored = holding([f"{name} = -1 AND b = -1" for name in attributes])
    indexes = (terms, stored, few_terms, few_stored)
    micros, beside, computing, reading = in_turns(*(asked(index, events) for index in indexes))
    found = matches(terms, events)
    return {
        "rules": rules,
        "micros": micros / len(events),
        "alone": (computing - reading) / len(events),
        "beside": beside / len(events),
        "matches": found,
        "aim": "1.3 times, and the computation",
    }


def quantified(draw: random.Random, scale: float) -> tuple[tamis.Index, tamis.Index, list[list[Any]]]:
    """An index of quantifiers over `items`, one of their bodies, and arrays of ten records."""
    rules = int(100_000 * scale)
    bodies = [(draw.randrange(20_000), draw.randrange(100)) for _ in range(rules)]
    outer = holding([f"exists(items, i -> i.sku = 'S{sku}' AND i.price > {price})" for sku, price in bodies])
    inner = holding([f"sku = 'S{sku}' AND price > {price}" for sku, price in bodies])
    records = [
        [{"sku": f"S{draw.randrange(20_000)}", "price": draw.randrange(100)} for _ in range(10)]
        for _ in range(200)
    ]
    return outer, inner, records


def exists(draw: random.Random, scale: float) -> dict[str, Any]:
    """Quantifiers over arrays of ten records; each event ten times, so that a call takes milliseconds."""
    outer, inner, records = quantified(draw, scale)
    events = [tamis.Event({"items": items}) for items in records] * 10
    elements = [tamis.Event(record) for items in records for record in items] * 10
    micros, beside = in_turns(asked(outer, events), asked(inner, elements), turns=MANY_TURNS)
    return {
        "rules": len(outer),
        "micros": micros / len(events),
        "beside": beside / len(elements),
        "matches": matches(outer, events[: len(records)]),
        "aim": "10 times",
    }


def exists_arrow(draw: random.Random, scale: float) -> dict[str, Any]:
    """The same from Arrow tables."""
    outer, inner, records = quantified(draw, scale)
    events = pa.concat_tables([pa.table({"items": records})] * 10).combine_chunks()
    elements = pa.Table.from_pylist([record for items in records for record in items] * 10)
    micros, beside = in_turns(
        lambda: outer.count_batch(events, threads=1),
        lambda: inner.count_batch(elements, threads=1),
        turns=MANY_TURNS,
    )
    return {
        "rules": len(outer),
        "micros": micros / len(events),
        "beside": beside / len(elements),
        "matches": sum(outer.count_batch(events).to_pylist()) / len(events),
        "aim": "10 times",
    }


def networks(draw: random.Random, scale: float) -> dict[str, Any]:
    """Blocks of addresses, ten of which are nested around each address that is asked for."""
    rules = int(1_000_000 * scale)
    blocks = []
    for number in range(rules // 10):
        high, low = divmod(number, 1 << 8)
        blocks += [f"{10 + high // 256}.{high % 256}.{low}.0/{length}" for length in range(24, 32)]
        blocks += [
            f"{10 + high // 256}.{high % 256}.{low}.0/32",
            f"{10 + high // 256}.{high % 256}.{low}.128/25",
        ]
    index = holding([f"ip_in(client, '{block}')" for block in blocks])
    clients = []
    for _ in range(400):
        high, low = divmod(draw.randrange(rules // 10), 1 << 8)
        clients.append(f"{10 + high // 256}.{high % 256}.{low}.0")
    events = [tamis.Event({"client": client}) for client in clients]
    [micros] = in_turns(asked(index, events))
    return {
        "rules": len(blocks),
        "micros": micros / len(events),
        "beside": None,
        "matches": matches(index, events),
        "aim": "10 µs",
    }


def circles(draw: random.Random, scale: float) -> dict[str, Any]:
    """Circles, of which about ten hold each point."""
    rules = int(100_000 * scale)
    metres = 1500 / scale**0.5
    side = (rules * 3.1416 * metres**2 / 10) ** 0.5 / 111_195
    places = [(52 + draw.random() * side * 0.8, 13 + draw.random() * side * 2) for _ in range(rules)]
    index = holding([f"within_distance(lat, lon, {lat:.6f}, {lon:.6f}, {metres:.1f})" for lat, lon in places])
    events = [
        tamis.Event({"lat": 52 + draw.random() * side * 0.8, "lon": 13 + draw.random() * side * 2})
        for _ in range(400)
    ]
    [micros] = in_turns(asked(index, events))
    return {
        "rules": rules,
        "micros": micros / len(events),
        "beside": None,
        "matches": matches(index, events),
        "aim": "20 µs",
    }


def inserts(draw: random.Random, scale: float) -> dict[str, Any]:
    """Single inserts of rules whose computed terms are all different: a table must not be copied for each."""
    held, more = int(20_000 * scale), 500
    large, small = tamis.Index(), tamis.Index()
    large.add_many(range(held), [f"a + {number} = 5" for number in range(held)])
    numbers = iter(range(held, held + 2 * more * (TURNS + 1)))

    def insert(index: tamis.Index) -> Callable[[], None]:
        def call() -> None:
            for _ in range(more):
                number = next(numbers)
                index.add(number, f"a + {number} = 5")

        return call

    micros, beside = in_turns(insert(large), insert(small))
    return {
        "rules": held,
        "micros": micros / more,
        "beside": beside / more,
        "matches": 0.0,
        "aim": "about 1 (an insert)",
    }


CASES: dict[str, Callable[[random.Random, float], dict[str, Any]]] = {
    "computed": computed,
    "exists": exists,
    "exists-arrow": exists_arrow,
    "networks": networks,
    "circles": circles,
    "inserts": inserts,
}

if __name__ == "__main__":
    main()
