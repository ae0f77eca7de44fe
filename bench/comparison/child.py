"""The process that measures one side. It reads a request per line and answers each with a line of JSON.

It uses only the public API of `tamis`, so that it runs on commits whose internals differ. Times are in
nanoseconds. If Python is involved, they are processor time of the process, which other work on the machine
does not affect; times that the kernel measures are the least of some repetitions for each event.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tamis
from comparison import golden
from peers.adapters.memory import Memory

EVENTS_FILE, LINES_FILE, SUBSCRIPTIONS_FILE = "events.parquet", "events.jsonl", "subscriptions.parquet"
K = 5
ANSWERED_EVENTS = 64
ANSWERED_ROWS = 1_024


class Side:
    """One index, and the requests it answers: each public method is one."""

    def __init__(self, folder: Path) -> None:
        self._subscriptions = pq.read_table(folder / SUBSCRIPTIONS_FILE).combine_chunks()
        self._table = pq.read_table(folder / EVENTS_FILE).combine_chunks()
        with (folder / LINES_FILE).open(encoding="utf-8") as lines:
            self._events = [json.loads(line) for line in lines]
        self._index = tamis.Index(optimize="manual")
        self._cores = os.sched_getaffinity(0)
        self._figures: dict[str, Callable[[int, int, int], int]] = {
            "count": self._kernel_time("count"),
            "match": self._kernel_time("match"),
            "dict": self._dict_time,
            "batch count": self._batch_time("count_batch"),
            "batch match": self._batch_time("match_batch"),
            "top-k priority": self._kernel_time("top_k", "priority"),
            "top-k relevance": self._kernel_time("top_k", "relevance"),
        }

    # --- building ------------------------------------------------------------------------------------

    def build(self, column: str) -> dict[str, int]:
        """Index all subscriptions from their text, in place of what was indexed before."""
        os.sched_setaffinity(0, self._cores)
        self._index = tamis.Index(optimize="manual")
        memory = Memory()
        elapsed, processor = time.perf_counter_ns(), time.process_time_ns()
        self._index.add_many(
            self._subscriptions["id"],
            self._subscriptions[column],
            priorities=self._subscriptions["priority"],
        )
        processor, elapsed = time.process_time_ns() - processor, time.perf_counter_ns() - elapsed
        return {
            "processor": processor,
            "elapsed": elapsed,
            "peak": memory.figures()["peak_bytes"],
            "bytes": int(self._index.stats()["index_bytes"]),
        }

    def learn(self) -> dict[str, int]:
        """Lay the index out for events it has seen, and wait until nothing happens in the background."""
        learnt = self._events[len(self._events) // 2 :][:256]
        self._index.count_batch(learnt)
        self._index.optimize()
        for event in learnt[:128]:
            self._index.top_k(event, K)
        size = -1
        while self._index.is_optimizing or size != (size := int(self._index.stats()["index_bytes"])):
            time.sleep(0.05 + len(self._index) / 5e6)
        return {"bytes": size}

    # --- rounds --------------------------------------------------------------------------------------

    def pin(self, core: int) -> None:
        """Stay on one core until the next build or change."""
        os.sched_setaffinity(0, {core})

    def round(self, figure: str, first: int, count: int, repeats: int) -> int:
        """Time `count` events from number `first` on."""
        return self._figures[figure](first, count, repeats)

    def _kernel_time(self, mode: Any, score: str = "priority") -> Callable[[int, int, int], int]:
        def timed(first: int, count: int, repeats: int) -> int:
            asked = self._events[first : first + count]
            return int(self._index.time_events(asked, mode, k=K, score=score, repeats=repeats).sum())

        return timed

    def _dict_time(self, first: int, count: int, repeats: int) -> int:
        ask, asked = self._index.count, self._events[first : first + count]
        started = time.process_time_ns()
        for _ in range(repeats):
            for event in asked:
                ask(event)
        return (time.process_time_ns() - started) // repeats

    def _batch_time(self, method: str) -> Callable[[int, int, int], int]:
        def timed(first: int, count: int, repeats: int) -> int:
            ask, asked = getattr(self._index, method), self._table.slice(first, count)
            started = time.process_time_ns()
            for _ in range(repeats):
                ask(asked, threads=1)
            return (time.process_time_ns() - started) // repeats

        return timed

    def change(self, first: int, count: int) -> dict[str, int]:
        """Remove some subscriptions and insert them again, one by one; merges in the background count."""
        os.sched_setaffinity(0, self._cores)
        rows = self._subscriptions.slice(first, count)
        ids, texts, priorities = (rows[name].to_pylist() for name in ("id", "expression", "priority"))
        # A merge that the last insertions left behind does not count as the cost of removing.
        started = time.thread_time_ns()
        for id in ids:
            self._index.remove(id)
        remove = time.thread_time_ns() - started
        started = time.process_time_ns()
        for id, text, priority in zip(ids, texts, priorities, strict=True):
            self._index.add(id, text, priority=priority)
        while self._index.is_optimizing:
            time.sleep(0.001)
        return {"remove": remove, "insert": time.process_time_ns() - started}

    # --- answers -------------------------------------------------------------------------------------

    def answers(self, ranked: bool) -> dict[str, str]:
        """Hashes of what the index answers to the last events."""
        index, events = self._index, self._events[-ANSWERED_EVENTS:]
        rows = self._table.slice(self._table.num_rows - ANSWERED_ROWS)
        if ranked:
            return {
                f"top-k {score}": golden.digest(index.top_k(event, K, score) for event in events)
                for score in ("priority", "relevance")
            } | {"batch top-k": golden.digest([index.top_k_batch(rows.slice(0, ANSWERED_EVENTS), K)])}
        return {
            "match": golden.digest(index.match(event) for event in events),
            "count": golden.digest(index.count(event) for event in events),
            "batch count": golden.digest([index.count_batch(rows)]),
            "batch match": golden.digest([index.match_batch(rows.slice(0, ANSWERED_EVENTS))]),
        }


def main(package: str, folder: str) -> None:
    """Answer requests until standard input ends."""
    found = Path(tamis.__file__).resolve().parent
    if found != Path(package).resolve() / "tamis":
        raise SystemExit(f"asked to measure {package}/tamis, but Python imported {found}")
    side = Side(Path(folder))
    gc.collect()
    gc.freeze()
    gc.disable()
    answer = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps("ready"), file=answer, flush=True)
    for line in sys.stdin:
        request, arguments = json.loads(line)
        print(json.dumps(getattr(side, request)(**arguments)), file=answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
