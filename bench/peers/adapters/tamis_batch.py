"""Tamis, all events in one call on one thread: the mean time for each of them."""

import time

import numpy as np
import pyarrow as pa
from common import peak_bytes, read, report

import tamis

if __name__ == "__main__":
    # What Python imports at first use is neither build time nor memory of the index.
    tamis.Index().add_many([0], ["x = 1"])
    rules, events, _ = read()
    idle = peak_bytes()
    started = time.perf_counter()
    index = tamis.Index()
    index.add_many([number for number, _ in rules], [text for _, text in rules])
    built = time.perf_counter()
    names = sorted({name for event in events for name in event})
    table = pa.table({name: [event.get(name) for event in events] for name in names})
    began = time.perf_counter()
    matches = index.match_batch(table, threads=1)
    each = (time.perf_counter() - began) * 1e6 / len(events)
    counts = np.bincount(matches["event"].to_numpy(), minlength=len(events))
    report(built - started, [each] * len(events), counts.tolist(), idle)
