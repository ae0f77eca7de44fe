"""How fast batches are matched on a GPU, next to all cores of the same machine, as JSON; see docs/gpu.md.

python bench/gpu.py --scales 1M --workloads arbitrary conjunctive -o build/gpu.json
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tamis
from tamis import _kernel
from tamis_lab.workloads import AbeGen, AdsLike, Conjunctive, Dense, Workload

WORKLOADS: dict[str, type[Workload]] = {
    "arbitrary": AbeGen,
    "ads": AdsLike,
    "dense": Dense,
    "conjunctive": Conjunctive,
}
SCALES = {"10K": 10_000, "100K": 100_000, "1M": 1_000_000, "10M": 10_000_000}
ASKS = ("count", "top 10", "by subscription", "all", "relevance")
# For relevance, a predicate on a number gets a weight, made of the number and of its attribute's name.
PREDICATE, WITH_WEIGHT = r"\b(\w*)(\d) ([<>=!]+) (\d+)\b", r"(\1\2 \3 \4)^0.\2\4"
BATCHES = (1, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 786_432)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", nargs="+", default=["1M"], choices=SCALES)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--asks", nargs="+", default=list(ASKS), choices=ASKS)
    parser.add_argument("--events", type=int, default=262_144)
    parser.add_argument(
        "--cpu-events", type=int, default=16_384, help="of these the processor's time is taken"
    )
    parser.add_argument(
        "--soak", type=int, default=0, help="count matches of this many events, and see what memory does"
    )
    parser.add_argument("-o", "--output", default="gpu.json")
    given = parser.parse_args()
    report: dict[str, Any] = {"device": device(), "cores": os.cpu_count(), "runs": []}
    for scale in given.scales:
        for name in given.workloads:
            for is_weighted in sorted({ask == "relevance" for ask in given.asks}):
                report["runs"].append(measure(name, SCALES[scale], given, is_weighted))
                with open(given.output, "w") as file:
                    json.dump(report, file, indent=1)


def device(
    asked: str = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,memory.total",
) -> dict[str, str]:
    """The device as its driver describes it."""
    if shutil.which("nvidia-smi") is None:
        return {}
    command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split(", ")
    return dict(zip(asked.split(","), [each.strip() for each in found], strict=False))


def measure(name: str, scale: int, given: argparse.Namespace, is_weighted: bool) -> dict[str, Any]:
    """Events per second on the device and on the processor, for each thing that is asked."""
    say(f"{name}, {scale:,}{', with weights' if is_weighted else ''}: generating")
    workload = WORKLOADS[name](count=scale)
    table = workload.subscriptions_table()
    index = tamis.Index()
    started = time.perf_counter()
    priorities = np.random.default_rng(1).permutation(scale).astype(float)
    expressions = table["expression"]
    if is_weighted:
        expressions = pc.replace_substring_regex(expressions, PREDICATE, WITH_WEIGHT)
    index.add_many(table["id"], expressions, priorities=priorities)
    run: dict[str, Any] = {"workload": name, "subscriptions": scale, "weighted": is_weighted}
    run["build_s"] = time.perf_counter() - started
    weighted_leaves = pc.mean(pc.count_substring_regex(expressions.slice(0, 10_000), r"\^")).as_py()
    del table, expressions
    pool = workload.events_table(min(given.events, 65_536))
    batch = pa.concat_tables([pool] * -(-given.events // pool.num_rows)).combine_chunks()
    few = batch.slice(0, given.cpu_events)
    asks: dict[str, Callable[[pa.Table], Any]] = {
        "count": index.count_batch,
        "top 10": lambda batch: index.top_k_batch(batch, 10, score="priority"),
        "by subscription": index.count_by_subscription,
        "all": index.match_batch,
        "relevance": lambda batch: index.top_k_batch(batch, 10, score="relevance"),
    }
    asks = {ask: asks[ask] for ask in given.asks if (ask == "relevance") == is_weighted}
    index.optimize()
    expected = {ask: run_it(few) for ask, run_it in asks.items()}
    run["matches_per_event"] = pc.mean(index.count_batch(few)).as_py()
    # What is added up if every match is scored.
    run["terms_per_event"] = run["matches_per_event"] * weighted_leaves
    run |= bytes_of(run["matches_per_event"]) | on_processor(asks, few)
    if not index.to_gpu():
        return run
    started = time.perf_counter()
    index.count_batch(batch.slice(0, 4_096))
    run["upload_s"] = time.perf_counter() - started
    run["gpu"], run["gpu_by_batch"] = {}, {}
    for ask, run_it in asks.items():
        is_same = run_it(few).equals(expected[ask])
        run.setdefault("same", {})[ask] = is_same
        # As many events as give a hundred million matches at most.
        most = (
            batch.num_rows
            if ask != "all"
            else int(min(batch.num_rows, 1e8 / max(1, run["matches_per_event"])))
        )
        run["gpu"][ask] = rate(run_it, batch.slice(0, max(4_096, most)))
        run["gpu_by_batch"][ask] = {
            size: rate(run_it, batch.slice(0, size)) for size in BATCHES if size <= max(4_096, most)
        }
        here, there = run["cpu_by_batch"][ask], run["gpu_by_batch"][ask]
        behind = [size for size in here if size in there and here[size] >= there[size]]
        run.setdefault("ahead_after", {})[ask] = max(behind, default=0)
        say(f"  GPU, {ask}: {run['gpu'][ask]:,.0f} events/s, the same answers: {is_same}")
        say(f"    by batch: {rounded({ask: run['gpu_by_batch'][ask]})}")
    say(f"  ahead of the processor in all larger batches than: {run['ahead_after']}")
    run["stages"] = {ask: stages(index, run_it, batch.slice(0, 4_096)) for ask, run_it in asks.items()}
    say(f"  seconds of 4,096 events by stage: {json.dumps(run['stages'])}")
    if given.soak:
        index.to_gpu()
        run["soak"] = soak(index, batch, given.soak)
        say(f"  {run['soak']}")
    stats = index.stats()
    told = (
        "device_bytes",
        "device_pinned_bytes",
        "device_answer_bytes",
        "device_parts",
        "device_failure",
        "device",
    )
    run |= {key: stats[key] for key in told}
    return run


def bytes_of(matches: float) -> dict[str, float]:
    """A match that is listed is a row number of 32 bits on its way, and two columns of 64 bits here."""
    return {"listed_bytes_per_event": 4 * matches, "written_bytes_per_event": 16 * matches}


def on_processor(asks: dict[str, Callable[[pa.Table], Any]], few: pa.Table) -> dict[str, Any]:
    """Events per second on the processor, of all events and of smaller batches."""
    found = {
        "cpu": {ask: rate(run_it, few) for ask, run_it in asks.items()},
        "cpu_by_batch": {
            ask: {size: rate(run_it, few.slice(0, size)) for size in BATCHES if size <= few.num_rows}
            for ask, run_it in asks.items()
        },
    }
    say(f"  processor: {found['cpu']}")
    say(f"    by batch: {rounded(found['cpu_by_batch'])}")
    return found


def soak(index: tamis.Index, batch: pa.Table, events: int) -> dict[str, Any]:
    """Matches of very many events, counted; what is taken of both memories after some, and after all."""
    taken = []
    started = time.perf_counter()
    rounds = -(-events // batch.num_rows)
    for at in range(rounds):
        index.count_batch(batch)
        if at in (rounds // 10, rounds - 1):
            used = device("memory.used").get("memory.used")
            with open("/proc/self/statm") as statm:
                resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            taken.append(
                {"resident": resident, "device": used, "device_bytes": index.stats()["device_bytes"]}
            )
    seconds = time.perf_counter() - started
    return {
        "events": rounds * batch.num_rows,
        "seconds": seconds,
        "after a tenth": taken[0],
        "after": taken[-1],
    }


def stages(index: tamis.Index, ask: Callable[[pa.Table], Any], batch: pa.Table) -> dict[str, float]:
    """Where the time of one block goes: each stage is waited for.

    What no stage has is `rest`: starting threads, and what becomes of the answer until Python has it.
    `drop` is freeing the answer, which is no part of `all`.
    """
    _kernel.use_device(index._kernel, 0, None, None, True)
    ask(batch)
    before = index.stats()["device"]["seconds"]
    started = time.perf_counter()
    answer = ask(batch)
    took = time.perf_counter() - started
    started = time.perf_counter()
    del answer
    dropped = time.perf_counter() - started
    after = index.stats()["device"]["seconds"]
    parts = {stage: after[stage] - before[stage] for stage in after}
    return {"all": took} | parts | {"rest": took - sum(parts.values()), "drop": dropped}


def rate(ask: Callable[[pa.Table], Any], batch: pa.Table) -> float:
    """Events per second: the best of three, after one that is not counted."""
    ask(batch)
    best = 0.0
    for _ in range(3):
        started = time.perf_counter()
        ask(batch)
        best = max(best, batch.num_rows / (time.perf_counter() - started))
    return best


def rounded(rates: dict[str, dict[int, float]]) -> dict[str, dict[int, int]]:
    """Events per second, to be read."""
    return {ask: {size: round(found) for size, found in by_size.items()} for ask, by_size in rates.items()}


def say(line: str) -> None:
    """Progress, on the standard error."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
