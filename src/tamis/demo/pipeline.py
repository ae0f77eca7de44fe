"""The product's main job on local Spark: a table of rules, a table of events, then both as streams.

Finally, it runs the pipeline that `tamis spark init` writes: raw events to alerts, windows and a report.

Advertisers register which page views they want, and every page view is an event.
"""

import json
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sf
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import tamis.spark
from tamis.demo.campaigns import Campaigns
from tamis.demo.local_spark import local_session
from tamis.demo.pipeline_report import write_report
from tamis.demo.whole_pipeline import run_template

STREAMED_BATCHES = 12
EVENTS_PER_BATCH = 2_000
CHANGES_PER_BATCH = 200
FILES = 8

PIPELINE = "pipeline"
"""The folder of the pipeline that `tamis spark init` writes."""

CHANGE_COLUMNS = "op string, sequence bigint, id string, expression string, priority double"


@dataclass
class Seen:
    """What the demonstration measured, for the summary and the report."""

    subscriptions: int
    events: int
    index_seconds: float = 0.0
    match_seconds: float = 0.0
    matches: int = 0
    plan: str = ""
    popular: list[tuple[str, int, str]] = field(default_factory=list)
    """Campaigns with the most matches, how many, and their expressions."""
    per_rule: list[tuple[int, int]] = field(default_factory=list)
    """How many campaigns have this many matches: at least a power of two, and fewer than the next."""
    per_event: list[tuple[int, int]] = field(default_factory=list)
    """The same of page views."""
    batches: list[dict[str, Any]] = field(default_factory=list)


def run(
    subscriptions: int = 200_000,
    events: int = 100_000,
    out: str | Path = "demo-output",
    seed: int = 1,
    session: Any = None,
) -> Path:
    """Match a table in batch, then a stream while subscriptions change; returns the path of the report."""
    console = Console(highlight=False, soft_wrap=True)
    folder = Path(out).absolute()
    _clear(folder)
    console.print(
        "\n[bold]Tamis on Spark[/]: which campaigns want this page view? "
        f"{subscriptions:,} standing expressions, {events:,} page views\n"
    )
    with console.status("starting Spark on this machine"):
        spark = session or local_session()
    campaigns = Campaigns(seed)
    seen = Seen(subscriptions, events)
    try:
        _generate(console, campaigns, seen, folder)
        store = _index(console, spark, seen, folder)
        _match(console, spark, store, seen, folder)
        _stream(console, spark, store, campaigns, seen=seen, folder=folder)
    finally:
        if session is None:
            spark.stop()
    _step(console, 5, "A whole pipeline, as `tamis spark init` writes it: raw events to alerts")
    run_template(console, folder / PIPELINE)
    report = write_report(folder / "report.html", seen)
    _farewell(console, folder, report)
    return report


def _clear(folder: Path) -> None:
    """Remove what an earlier run left, and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    made = ("rules", "events", "matches", "streamed", "index", "stream", "checkpoints", PIPELINE)
    for name in made:
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "report.html").unlink(missing_ok=True)


def _generate(console: Console, campaigns: Campaigns, seen: Seen, folder: Path) -> None:
    _step(console, 1, "Generate campaigns and page views, as Parquet")
    with console.status("generating"):
        rules = campaigns.rules(0, seen.subscriptions)
        _write_parquet(folder / "rules", rules)
        _write_parquet(folder / "events", campaigns.page_view_table(0, seen.events))
    for rule in rules.slice(0, 2).to_pylist():
        console.print(f"    [cyan]{rule['id']:>9}[/]  {escape(rule['expression'])}")
    [event] = campaigns.page_views(0, 1)
    console.print(f"    [cyan]page view[/]  {escape(json.dumps(event))}")


def _write_parquet(folder: Path, table: pa.Table) -> None:
    """Write a table as several files, which Spark reads in parallel."""
    folder.mkdir()
    rows = -(-table.num_rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * rows, rows), folder / f"part-{number}.parquet")


def _index(console: Console, spark: Any, seen: Seen, folder: Path) -> tamis.spark.SubscriptionStore:
    _step(console, 2, "Index the rules, on the executors")
    store = tamis.spark.SubscriptionStore(folder / "index")
    started = time.perf_counter()
    with console.status("parsing and indexing"):
        built = store.replace_all(spark.read.parquet(str(folder / "rules")))
    seen.index_seconds = time.perf_counter() - started
    rate = seen.subscriptions / seen.index_seconds
    console.print(
        f"    [bold]{built.version.subscriptions:,}[/] subscriptions in {seen.index_seconds:.1f} s "
        f"({rate:,.0f}/s), {built.version.size / seen.subscriptions:,.0f} bytes each on disk, texts included"
    )
    return store


def _match(
    console: Console, spark: Any, store: tamis.spark.SubscriptionStore, seen: Seen, folder: Path
) -> None:
    _step(console, 3, "Match the table of events")
    events = spark.read.parquet(str(folder / "events"))
    matches = tamis.spark.match(events, store)
    started = time.perf_counter()
    with console.status("matching"):
        matches.write.parquet(str(folder / "matches"))
    seen.match_seconds = time.perf_counter() - started
    written = spark.read.parquet(str(folder / "matches"))
    seen.matches = written.count()
    seen.plan = str(tamis.spark.explain(matches))
    by_rule = written.groupBy("subscription").count()
    best = by_rule.orderBy("count", "subscription", ascending=[False, True]).limit(10)
    rules = spark.read.parquet(str(folder / "rules"))
    named = best.join(rules, best.subscription == rules.id).orderBy("count", "id", ascending=[False, True])
    seen.popular = [(row.id, row["count"], row.expression) for row in named.collect()]
    seen.per_rule = _sizes(by_rule, seen.subscriptions)
    seen.per_event = _sizes(written.groupBy("event_id").count(), seen.events)
    console.print(
        f"    [bold]{seen.matches:,}[/] matches in {seen.match_seconds:.1f} s: "
        f"{seen.events / seen.match_seconds:,.0f} events/s, written as Parquet\n"
    )
    for line in seen.plan.splitlines():
        console.print(f"    [dim]{escape(line)}[/]")


def _sizes(counted: Any, all_of_them: int) -> list[tuple[int, int]]:
    """How many counts there are between one power of two and the next; those without a row count zero."""
    rows = counted.selectExpr("int(floor(log2(count))) AS power").groupBy("power").count().collect()
    by_power = {row.power: row["count"] for row in rows}
    none = all_of_them - sum(by_power.values())
    powers = range(max(by_power, default=-1) + 1)
    return [(0, none), *((2**power, by_power.get(power, 0)) for power in powers)]


def _stream(
    console: Console,
    spark: Any,
    store: tamis.spark.SubscriptionStore,
    campaigns: Campaigns,
    *,
    seen: Seen,
    folder: Path,
) -> None:
    _step(console, 4, "The same as streams: events arrive while subscriptions change")
    changes_in, events_in = folder / "stream" / "changes", folder / "stream" / "events"
    changes_in.mkdir(parents=True)
    events_in.mkdir()
    arriving = spark.read.parquet(str(folder / "events")).schema
    applying = store.apply_changes(
        spark.readStream.schema(CHANGE_COLUMNS).json(str(changes_in)),
        checkpoint=folder / "checkpoints" / "changes",
        trigger={"processingTime": "200 milliseconds"},
    )
    events = spark.readStream.schema(arriving).option("maxFilesPerTrigger", 1).json(str(events_in))
    matching = (
        tamis.spark.match(events, store, k=3)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoints" / "matches"))
        .trigger(processingTime="0 seconds")
        .start(str(folder / "streamed"))
    )
    shown = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("micro-batch", "events", "top-3 matches", "version", "seconds", "events/s"):
        shown.add_column(column, justify="right")
    try:
        with console.status("streaming") as status:
            for batch in range(STREAMED_BATCHES):
                status.update(f"streaming: micro-batch {batch + 1} of {STREAMED_BATCHES}")
                _write_changes(changes_in, campaigns, seen.subscriptions, batch)
                _write_events(events_in, campaigns, seen.events, batch)
                applying.processAllAvailable()
                matching.processAllAvailable()
    finally:
        matching.stop()
        applying.stop()
    _collect(spark, matching, seen, folder)
    for row in seen.batches:
        shown.add_row(
            str(row["batch"]),
            f"{row['events']:,}",
            f"{row['matches']:,}",
            str(row["version"]),
            f"{row['seconds']:.2f}",
            f"{row['events'] / row['seconds']:,.0f}",
        )
    console.print(shown)


def _write_changes(folder: Path, campaigns: Campaigns, count: int, batch: int) -> None:
    """Rules that leave, and others that take their place."""
    first = batch * CHANGES_PER_BATCH % max(1, count - CHANGES_PER_BATCH)
    later = Campaigns(campaigns.seed + 1).rules(first, first + CHANGES_PER_BATCH)
    rows = []
    for number, rule in enumerate(later.to_pylist()):
        sequence = batch * CHANGES_PER_BATCH + number + 1
        if number % 4 == 0:
            rows.append({"op": "remove", "sequence": sequence, "id": rule["id"]})
        else:
            rows.append({"op": "replace", "sequence": sequence, **rule})
    _put(folder, batch, rows)


def _write_events(folder: Path, campaigns: Campaigns, done: int, batch: int) -> None:
    first = done + batch * EVENTS_PER_BATCH
    _put(folder, batch, campaigns.page_view_table(first, first + EVENTS_PER_BATCH).to_pylist())


def _put(folder: Path, batch: int, rows: list[dict[str, Any]]) -> None:
    """Write a file and move it into place, so that a stream sees it whole."""
    draft = folder.parent / f".{folder.name}-{batch}"
    draft.write_text("\n".join(json.dumps(row) for row in rows))
    draft.rename(folder / f"{batch:04d}.json")


def _collect(spark: Any, query: Any, seen: Seen, folder: Path) -> None:
    """What each micro-batch did, by Spark's own account and by the rows it wrote."""
    written = spark.read.parquet(str(folder / "streamed"))
    first = seen.events
    batch = f"floor((event_id - {first}) / {EVENTS_PER_BATCH}) AS batch"
    counted = written.selectExpr(batch, "version").groupBy("batch")
    summed = counted.agg(sf.count("*").alias("matches"), sf.max("version").alias("version")).collect()
    per_batch = {row["batch"]: (row["matches"], row["version"]) for row in summed}
    progress = [report for report in query.recentProgress if report["numInputRows"]]
    for number, report in enumerate(progress):
        matches, version = per_batch.get(number, (0, None))
        seen.batches.append(
            {
                "batch": report["batchId"],
                "events": report["numInputRows"],
                "matches": matches,
                "version": version,
                "seconds": report["durationMs"]["triggerExecution"] / 1000,
            }
        )


def _farewell(console: Console, folder: Path, report: Path) -> None:
    _step(console, None, "Where to look")
    for path, meaning in (
        (report, "charts of what you just saw; open it in a browser"),
        (folder / "matches", "which campaign matched which page view, Parquet"),
        (
            folder / "streamed",
            "the 3 best campaigns of each streamed page view, with the version that answered",
        ),
        (
            folder / PIPELINE,
            "what `tamis spark init` writes, after its first run: pipeline.py, its tables and its report",
        ),
        ("docs/spark.md", "the tutorial"),
        ("tamis demo --library", "the same without Spark: one process, microseconds"),
    ):
        console.print(f"    [cyan]{path}[/]\n        {meaning}")
    console.print()


def _step(console: Console, number: int | None, title: str) -> None:
    mark = "-" if number is None else str(number)
    console.print(f"\n[bold blue]{mark}[/]  [bold]{escape(title)}[/]\n")
