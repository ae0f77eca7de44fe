"""Shared code of the Python adapters: read the files, build, match until the time is up, print one line.

Run as `python ADAPTER.py RULES EVENTS SECONDS`. A rules file has a JSON line [id, rule] for each
subscription, in the peer's own language; an events file has a JSON object in each line.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from memory import Memory

Match = Callable[[dict[str, Any]], int]

TRIED = 100
"""Rules that are tried before anything is measured, with one event."""


def read() -> tuple[list[int], list[str], list[dict[str, Any]], float]:
    """Ids, rules, events and seconds, from the command line."""
    rules_path, events_path, seconds = sys.argv[1:4]
    ids, rules = [], []
    with open(rules_path) as lines:
        for line in lines:
            number, rule = json.loads(line)
            ids.append(number)
            rules.append(rule)
    with open(events_path) as lines:
        return ids, rules, [json.loads(line) for line in lines], float(seconds)


def report(build_seconds: float, micros: list[float], counts: list[int], memory: Memory | None) -> None:
    """Print what the driver reads: times and matches of each event, in order, and the memory taken."""
    line = {"build_seconds": build_seconds, "micros": micros, "counts": counts}
    print(json.dumps({**line, **(memory.figures() if memory else {})}))


def drive(build: Callable[[list[int], list[str]], Match]) -> None:
    """Build, then match events one by one until the seconds are over; at least one."""
    ids, rules, events, seconds = read()
    build(ids[:TRIED], rules[:TRIED])(events[0])
    memory = Memory()
    started = time.perf_counter()
    match = build(ids, rules)
    build_seconds = time.perf_counter() - started
    micros, counts = [], []
    deadline = time.perf_counter() + seconds
    for event in events:
        before = time.perf_counter()
        counts.append(match(event))
        after = time.perf_counter()
        micros.append((after - before) * 1e6)
        if after > deadline:
            break
    report(build_seconds, micros, counts, memory)
