"""Measuring the Spark pipeline: compared with the kernel alone and with common alternatives, and as it grows.

Everything is measured in one run on one local session, and compared by ratio.
"""

import json
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import tamis
import tamis.spark
from tamis.demo.local_spark import local_session
from tamis_lab.benchmark.environment import describe, one_line
from tamis_lab.benchmark.pipeline_changes import COLUMNS as OF_CHANGES
from tamis_lab.benchmark.pipeline_changes import changes
from tamis_lab.benchmark.pipeline_flink import COLUMNS as BESIDE_FLINK
from tamis_lab.benchmark.pipeline_flink import beside_flink
from tamis_lab.benchmark.pipeline_rivals import RIVALS
from tamis_lab.benchmark.pipeline_shapes import requests, shapes
from tamis_lab.benchmark.processor_time import least_spent_in_turns
from tamis_lab.workloads import AbeGen, BookAuction, Dense, Equality, Workload
from tamis_lab.workloads.spark import generate_events, generate_subscriptions

CORES = 2
ROUNDS = 3
WITHOUT_SESSION = {"changes", "requests"}
"""Parts that need no session, or have one of their own."""


@dataclass
class Results:
    """Tables by title: the names of the columns, and rows."""

    tables: dict[str, tuple[list[str], list[list[Any]]]] = field(default_factory=dict)

    def add(self, title: str, columns: list[str], row: list[Any]) -> None:
        """Append a row to a table and show it at once: long runs should not be silent."""
        self.tables.setdefault(title, (columns, []))[1].append(row)
        print(f"  {title}: " + ", ".join(f"{name} {value}" for name, value in zip(columns, row, strict=True)))


def run(
    scale: float = 1.0,
    only: tuple[str, ...] = (),
    out: Path = Path("bench/results"),
    session: Any = None,
) -> Results:
    """Measure everything, or only the named parts, at a share of the full sizes."""
    results = Results()
    parts: dict[str, Callable[[Any, Results, float], None]] = {
        "kernel": against_the_kernel,
        "today": against_what_people_write,
        "flink": against_flink,
        "shards": with_more_shards,
        "growth": with_more_subscriptions,
        "shapes": in_shapes,
        "changes": with_many_changes,
    }
    if session is None and (not only or "requests" in only):  # before the session: it has one of its own
        on_an_object_store(results, scale)
    alone = bool(only) and set(only) <= WITHOUT_SESSION
    spark = session or (None if alone else local_session(CORES, {"spark.driver.memory": "4g"}))
    environment = describe(seed=1)
    try:
        for name, measure in parts.items():
            if not only or name in only:
                print(f"{name} ...")
                measure(spark, results, scale)
    finally:
        if session is None and spark is not None:
            spark.stop()
    show(results, environment)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "spark.json"
    tables = {
        title: [dict(zip(columns, row, strict=True)) for row in rows]
        for title, (columns, rows) in results.tables.items()
    }
    path.write_text(json.dumps({"environment": environment, "tables": tables}, indent=1))
    print(f"written to {path}")
    return results


def show(results: Results, environment: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=None if Console().is_terminal else 160)
    for title, (columns, rows) in results.tables.items():
        table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, justify="left" if column == columns[0] else "right")
        for row in rows:
            table.add_row(*(f"{cell:,.4g}" if isinstance(cell, float) else str(cell) for cell in row))
        console.print(table)
        console.print()
    console.print(f"[dim]{one_line(environment)}[/]")


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least time of a few runs."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def drained(frame: Any) -> None:
    """Compute every row of a DataFrame and keep none."""
    frame.write.format("noop").mode("overwrite").save()


@dataclass(frozen=True)
class Case:
    """A workload, and whether moving its rows or matching them takes most of the time."""

    dominated_by: str
    workload: Callable[..., Workload]
    rules: int
    events: int


CASES = [
    Case("rows", Equality, 1_000, 1_000_000),
    Case("rows", BookAuction, 1_000, 1_000_000),
    Case("both", Equality, 100_000, 1_000_000),
    Case("both", BookAuction, 100_000, 400_000),
    Case("matching", Dense, 100_000, 300_000),
    Case("matching", AbeGen, 1_000_000, 20_000),
]


def against_the_kernel(spark: Any, results: Results, scale: float) -> None:
    """Count matches, compared with the kernel's own batches and a task that passes rows through.

    Moving rows to Python and matching them take the same cores, so the sum of both is the least there is.
    """
    columns = [
        "workload",
        "rules",
        "dominated by",
        "matches/event",
        "kernel s",
        "pass s",
        "spark s",
        "files s",
        "kernel/spark",
        "pass/spark",
        "sum/spark",
        "kernel/files",
        "spark ev/s",
        "kernel cpu s",
        "pass cpu s",
        "spark cpu s",
        "kernel/spark cpu",
    ]
    for case in CASES:
        row = _beside_the_kernel(spark, case, scale)
        results.add("Against the kernel alone", columns, row)


def _beside_the_kernel(spark: Any, case: Case, scale: float) -> list[Any]:
    workload = case.workload(count=max(1_000, int(case.rules * scale)))
    events = max(1_000, int(case.events * scale))
    rows = generate_events(spark, workload, events).repartition(CORES).persist()
    rows.count()
    index = tamis.spark.build(generate_subscriptions(spark, workload))
    asked = [name for name in rows.columns if name in index.version.attributes]
    needed = rows.select("event_id", *asked)
    parts = [tamis.Index.open(Path(index.url) / part.name) for part in index.version.shards[0]]
    table = workload.events_table(min(events, 100_000))
    matches = sum(float(part.count_batch(table.slice(0, 10_000)).to_numpy().mean()) for part in parts)
    path = f"{index.url}/bench-events"
    rows.write.mode("overwrite").parquet(path)
    ways: dict[str, Callable[[], Any]] = {
        "kernel": lambda: [part.count_batch(table, threads=CORES) for part in parts],
        "pass": lambda: drained(needed.mapInArrow(pass_through, "event_id bigint")),
        "spark": lambda: drained(index.count(rows)),
        "files": lambda: drained(tamis.spark.count_files(spark, path, index)),
    }
    least = least_spent_in_turns(ways, ROUNDS)
    rows.unpersist()
    more = events / table.num_rows
    alone, alone_cpu = least["kernel"].seconds * more, least["kernel"].processor * more
    passed, counted, files = (least[name].seconds for name in ("pass", "spark", "files"))
    return [
        workload.name,
        workload.count,
        case.dominated_by,
        matches,
        alone,
        passed,
        counted,
        files,
        alone / counted,
        passed / counted,
        (alone + passed) / counted,
        alone / files,
        events / counted,
        alone_cpu,
        least["pass"].processor,
        least["spark"].processor,
        alone_cpu / least["spark"].processor,
    ]


def pass_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand on one column of every batch: what it costs to come to Python at all."""
    for batch in batches:
        yield batch.select(["event_id"])


def against_what_people_write(spark: Any, results: Results, scale: float) -> None:
    """The same rules as a Python function, as generated SQL filters and as a join."""
    columns = ["rules", "tamis ev/s", *RIVALS, "best ratio"]
    for rules in (100, 1_000, 10_000):
        row = _beside_rivals(spark, rules, max(500, int(20_000 * scale)))
        results.add("Against what people write today, events per second", columns, row)


def _beside_rivals(spark: Any, rules: int, events: int) -> list[Any]:
    workload = Equality(count=rules)
    table = workload.subscriptions_table()
    all_events = generate_events(spark, workload, events).persist()
    all_events.count()
    index = tamis.spark.build(spark.createDataFrame(table))
    ours = events / seconds(lambda: drained(index.match(all_events)))
    # Rivals get fewer events, or a run would take hours.
    few = all_events.limit(max(50, 200_000 // rules)).persist()
    amount = few.count()
    rates: list[Any] = []
    for rival in RIVALS.values():
        try:
            rates.append(amount / seconds(partial(_drain_rival, rival, few, table), 1))
        except Exception as error:  # a rival's failure is a result
            rates.append(f"{type(error).__name__}: {str(error).splitlines()[0][:60]}")
    reached = [rate for rate in rates if isinstance(rate, float)]
    few.unpersist()
    all_events.unpersist()
    return [rules, ours, *rates, ours / max(reached) if reached else None]


def against_flink(spark: Any, results: Results, scale: float) -> None:
    """Rules as Flink's broadcast state, on the same files; left out where Maven is not installed."""
    for row in beside_flink(spark, scale):
        results.add("Against Flink's broadcast state", BESIDE_FLINK, row)


def _drain_rival(rival: Callable[[Any, pa.Table], Any], events: Any, rules: pa.Table) -> None:
    drained(rival(events, rules))


def _drain_matches(index: tamis.spark.BuiltIndex, events: Any) -> None:
    drained(index.match(events))


def with_more_shards(spark: Any, results: Results, scale: float) -> None:
    """Bytes per shard, shards visited per event, and time, as shards grow."""
    workload = BookAuction(count=int(200_000 * scale) or 2000)
    rules = generate_subscriptions(spark, workload).persist()
    events = generate_events(spark, workload, int(50_000 * scale) or 500).persist()
    total = events.count()
    columns = ["shards", "largest shard MB", "routing index MB", "visits/event", "build s", "match ev/s"]
    for shards in (1, 2, 4, 8, 16):
        started = time.perf_counter()
        plan = "sharded" if shards > 1 else "replicated"
        index = tamis.spark.build(rules, plan=plan, shards=shards, sample=events)
        built = time.perf_counter() - started
        took = seconds(partial(_drain_matches, index, events), 1)
        version = index.version
        largest = max(sum(file.bytes for file in shard) for shard in version.shards)
        routes = version.router.rules.bytes if version.router and version.router.rules else 0
        visits = version.notes.get("visits", 1.0)
        row = [shards, largest / 1e6, routes / 1e6, visits, built, total / took]
        results.add("Sharded plan", columns, row)


def with_more_subscriptions(spark: Any, results: Results, scale: float) -> None:
    """Generated on the fly, up to ten million."""
    columns = ["subscriptions", "generate and build s", "index MB", "match ev/s", "peak driver MB"]
    for count in (100_000, 1_000_000, 10_000_000):
        workload = Equality(count=int(count * scale))
        events = generate_events(spark, workload, max(500, int(100_000 * scale)))
        started = time.perf_counter()
        index = tamis.spark.build(generate_subscriptions(spark, workload))
        built = time.perf_counter() - started
        rate = max(500, int(100_000 * scale)) / seconds(partial(_drain_matches, index, events), 1)
        row = [workload.count, built, index.version.size / 1e6, rate, peak_megabytes()]
        results.add("Growth with subscriptions (equality-3-4)", columns, row)


def in_shapes(spark: Any, results: Results, scale: float) -> None:
    """Rows and lists, keys and all columns, DataFrames and SQL, in turns."""
    columns = ["shape", "rules", "events", "seconds", "relative to rows, key"]
    for row in shapes(spark, max(1_000, int(100_000 * scale)), max(1_000, int(400_000 * scale))):
        results.add("Shapes of answers", columns, row)


def with_many_changes(spark: Any, results: Results, scale: float) -> None:
    """Compare the first small changes of a store with those after ten thousand."""
    del spark
    for row in changes(max(500, int(10_000 * scale))):
        results.add("Cost of a change", OF_CHANGES, row)


def on_an_object_store(results: Results, scale: float) -> None:
    """Requests, which object stores charge for."""
    for row in requests({"spark.driver.memory": "1g"}, max(5, int(50 * scale))):
        results.add("Requests of an object store", ["what", "requests"], row)


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
