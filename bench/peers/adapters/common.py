"""What the Python adapters have in common: read the files, build, match until the time is up, print one line.

Run as `python ADAPTER.py RULES EVENTS SECONDS`. A rules file has a JSON line [id, rule] for each
subscription, in the peer's own language; an events file has a JSON object in each line.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Match = Callable[[dict[str, Any]], int]


def peak_bytes() -> int:
    """The most memory that this process has had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def read() -> tuple[list[Any], list[dict[str, Any]], float]:
    """Rules, events and seconds, from the command line."""
    rules, events, seconds = sys.argv[1:4]
    with open(rules) as lines:
        read_rules = [json.loads(line) for line in lines]
    with open(events) as lines:
        return read_rules, [json.loads(line) for line in lines], float(seconds)


def report(build_seconds: float, micros: list[float], counts: list[int], idle_bytes: int) -> None:
    """Print what the driver reads: times and matches of each event, in order."""
    line = {"build_seconds": build_seconds, "micros": micros, "counts": counts}
    print(json.dumps({**line, "peak_bytes": peak_bytes(), "idle_bytes": idle_bytes}))


def drive(build: Callable[[list[Any]], Match]) -> None:
    """Build, then match events one by one until the seconds are over; at least one."""
    rules, events, seconds = read()
    idle = peak_bytes()
    started = time.perf_counter()
    match = build(rules)
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
    report(build_seconds, micros, counts, idle)
