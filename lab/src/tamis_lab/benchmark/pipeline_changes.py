"""The cost of a one-row change of a store after 10,000 others, compared with the first ones, in turns.

Three stores take turns: a new one in each turn, which gets its first change; one that starts empty; and one
with many changes. Means count, not medians, so that merging files is part of it; and processor time, requests
and bytes, which other work on the machine hardly disturbs.
"""

import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tamis.store import RuleStore
from tamis_lab.benchmark.counted_directory import CountedDirectory

COLUMNS = ["changes before", "processor ms", "wall ms", "requests", "names listed", "KB", "beside few"]

_TURNS = 256
"""Within them, files of up to 64 changes are merged four times, and others as often as they are due."""


class _Changed:
    """A store whose changes are counted and timed."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="tamis-changes-")
        self.directory = CountedDirectory(self.folder)
        self.store = RuleStore(self.folder)
        self.store._directory = self.directory
        self.changes = 0
        self.spent: dict[str, float] = defaultdict(float)

    def change(self, rules: int = 1) -> None:
        """Add some rules as one change."""
        numbers = range(self.changes, self.changes + rules)
        rows = [{"op": "add", "sequence": at, "id": at, "expression": f"x = {at}"} for at in numbers]
        self.directory.counted.clear()
        wall, processor = time.perf_counter(), time.process_time()
        self.store.apply(rows)
        self.spent["processor"] += time.process_time() - processor
        self.spent["wall"] += time.perf_counter() - wall
        for name, counted in self.directory.counted.items():
            self.spent[name] += counted
        self.changes += rules


def changes(count: int, turns: int = _TURNS, together: int = 1) -> Iterator[list[Any]]:
    """Rows of means: the first change of stores, the next few of one, and those after `count` others.

    To save time, the others may have been applied some together.
    """
    stores = [few, many] = [_Changed(), _Changed()]
    first: dict[str, float] = defaultdict(float)
    try:
        few.change()
        for _ in range(count // together):
            many.change(together)
        for store in stores:
            store.spent.clear()
        for _ in range(turns):
            new = _Changed()
            stores.append(new)
            new.change()
            for name, spent in new.spent.items():
                first[name] += spent
            few.change()
            many.change()
    finally:
        for store in stores:
            shutil.rmtree(store.folder, ignore_errors=True)
    base = few.spent["processor"]
    for before, all_spent in (
        ("0", first),
        (f"1 to {turns}", few.spent),
        (f"{count:,} and more", many.spent),
    ):
        mean = {name: value / turns for name, value in all_spent.items()}
        yield [
            before,
            1000 * mean["processor"],
            1000 * mean["wall"],
            mean["requests"],
            mean["names"],
            mean["bytes"] / 1000,
            all_spent["processor"] / base,
        ]
