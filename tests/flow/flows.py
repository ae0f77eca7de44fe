"""Flows as several tests begin and interrupt them."""

import random
from pathlib import Path

import tamis


def flow_of(**queries: str) -> tamis.Flow:
    """A flow of one stream, `s`, with these queries."""
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    for name, query in queries.items():
        flow.add(name, query)
    return flow


def sometimes_reopened(flow: tamis.Flow, random_: random.Random, way: str, path: Path) -> tamis.Flow:
    """The flow, or now and then what is read of it after it was written; a checkpoint may also go on."""
    if random_.random() >= 0.15:
        return flow
    if way == "save":
        flow.save(path)
        return tamis.Flow.open(path)
    flow.checkpoint(path)
    return tamis.Flow.open(path) if random_.random() < 0.5 else flow
