"""Tamis, all events in one call on one thread: the mean time for each of them."""

import time

import numpy as np
import pyarrow as pa
from common import TRIED, read, report
from memory import Memory

import tamis


def build(ids: list[int], rules: list[str]) -> tamis.Index:
    """Index the rules."""
    index = tamis.Index()
    index.add_many(ids, rules)
    return index


if __name__ == "__main__":
    ids, rules, events, _ = read()
    names = sorted({name for event in events for name in event})
    table = pa.table({name: [event.get(name) for event in events] for name in names})
    build(ids[:TRIED], rules[:TRIED]).match_batch(table[:1], threads=1)
    memory = Memory()
    started = time.perf_counter()
    index = build(ids, rules)
    built = time.perf_counter()
    matches = index.match_batch(table, threads=1)
    each = (time.perf_counter() - built) * 1e6 / len(events)
    counts = np.bincount(matches["event"].to_numpy(), minlength=len(events))
    report(built - started, [each] * len(events), counts.tolist(), memory)
