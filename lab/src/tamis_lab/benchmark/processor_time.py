"""The processor time of this process and its descendants, which other work on the machine does not affect.

A Spark session is a Java process, the child of this one, and Python workers, which are its grandchildren. On
a busy machine, elapsed time shows how busy it is; the processor time of a query shows its cost.
"""

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 15
"""Fields of `/proc/<pid>/stat` after the name. Times are user and system, own and of children that ended."""


class Spent(NamedTuple):
    """Wall-clock seconds, and seconds of all processors."""

    seconds: float
    processor: float


def processor_seconds() -> float:
    """What this process, its descendants, and those of them that have ended were given so far.

    >>> before = processor_seconds()
    >>> _ = sum(range(3_000_000))
    >>> processor_seconds() > before
    True
    """
    children: dict[int, list[int]] = defaultdict(list)
    times: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended; its parent has its time
            continue
        children[int(fields[_PARENT])].append(int(folder.name))
        times[int(folder.name)] = sum(map(int, fields[_FIRST_TIME:_LAST_TIME])) / _TICKS
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += times.get(process, 0.0)
        waiting += children[process]
    return total


def least_spent_in_turns(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Spent]:
    """Do all of some things in each round; of each, the least seconds and the least processor time count.

    >>> sorted(least_spent_in_turns({"a": lambda: None, "b": lambda: None}, 2))
    ['a', 'b']
    """

    found: dict[str, list[Spent]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            processor, started = processor_seconds(), perf_counter()
            way()
            found[name].append(Spent(perf_counter() - started, processor_seconds() - processor))
    return {
        name: Spent(min(each.seconds for each in spent), min(each.processor for each in spent))
        for name, spent in found.items()
    }
