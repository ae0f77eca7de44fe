"""Raw events to alerts, in a few steps, each a function that can run on its own.

```text
events/*.json  -> typed/ and dead_letters/ -> alerts/ -> alerts_per_window/ -> report.html
                                           -> alerts_with_memory/
rules/*.json   -> store/ (versions; refused rules in its quarantine)
queries/*.json -> query_store/ (the same, of rules with memory)
```

Run it with `python pipeline.py`. Every step reads what is new since its last run (`checkpoints/`) and ends,
so a scheduler may run it as often as you like. `python pipeline.py --serve` does the same once, and then
keeps running all steps side by side until it is stopped. Alerts carry the version of the rules that produced
them.

Each step counts what passes through it (`observe`). Spark reports the counts of each micro-batch to a
listener, which appends them to `metrics.jsonl` while the query runs; the report shows them.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

import tamis.spark

HERE = Path(__file__).parent

EVENT = (
    "event_id string, at timestamp, user struct<id: string, country: string>, amount decimal(12, 2), "
    "tags array<string>"
)
RULE = "op string, sequence bigint, id string, expression string, priority double"

QUERY = "op string, sequence bigint, id string, expression string"

LATEST = "1 hour"
"""How late an event may come; also for how long an event is remembered that comes twice."""

BEST = 3
"""The matches of an event that become alerts, by priority."""

COUNTED = 100
"""The matches of an event that are found and counted at most."""

ONCE = {"availableNow": True}
"""Process what is new, and end."""

FOR_EVER = {"processingTime": "10 seconds"}
"""How often each step of `--serve` looks for something new."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",  # as many as cores: each keeps state, and has a task
    # Rules with memory keep their state there.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def main(folder: Path = HERE, *, forever: bool = False) -> None:
    """Run all steps in a session of their own."""
    builder = SparkSession.builder.appName("alerts")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    run(spark, folder)
    if forever:
        serve(spark, folder)


def run(spark: SparkSession, folder: Path) -> None:
    """Run all steps, one after the other."""
    store, queries = stores(folder)
    with written_metrics(spark, folder) as metrics:
        for step in steps(spark, folder, store, queries):
            query = step(ONCE)
            if query is not None:
                metrics.wait_for(query)
    report(spark, folder, store)
    refused = [
        row for each in (store, queries) for row in each.quarantined(spark).select("id", "error").collect()
    ]
    alerts = spark.read.parquet(str(folder / "alerts")).count()
    print(f"alerts: {alerts}; rules refused: {len(refused)}")
    for row in refused:
        print(f"  {row.id}: {row.error}")


def serve(spark: SparkSession, folder: Path) -> None:
    """Run all steps side by side, until one fails or somebody stops it."""
    spark.streams.resetTerminated()  # the queries of `run` have ended, and count no longer
    with written_metrics(spark, folder):
        for step in steps(spark, folder, *stores(folder)):
            step(FOR_EVER)
        spark.streams.awaitAnyTermination()


def stores(folder: Path) -> tuple[tamis.spark.SubscriptionStore, tamis.spark.QueryStore]:
    """The rules, and the rules with memory."""
    streams = {"events": {"time": "at", "lateness": LATEST}}
    queries = tamis.spark.QueryStore(folder / "query_store", streams=streams, key="user.id")
    return tamis.spark.SubscriptionStore(folder / "store"), queries


Step = Callable[[dict[str, Any]], StreamingQuery | None]
"""Starts a query with a trigger."""


def steps(
    spark: SparkSession, folder: Path, store: tamis.spark.SubscriptionStore, queries: tamis.spark.QueryStore
) -> list[Step]:
    """All steps, in the order of what they read."""
    return [
        lambda trigger: read_events(spark, folder, trigger),
        lambda trigger: read_rules(spark, folder, trigger, store),
        lambda trigger: alert(spark, folder, trigger, store),
        lambda trigger: count_by_window(spark, folder, trigger),
        lambda trigger: read_queries(spark, folder, trigger, queries),
        lambda trigger: alert_with_memory(spark, folder, trigger, queries),
    ]


def read_events(spark: SparkSession, folder: Path, trigger: dict[str, Any]) -> StreamingQuery:
    """Lines of JSON become typed events; what is not an event becomes a dead letter, with the line."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "broken"}
    event = sf.from_json("value", f"{EVENT}, broken string", options).alias("event")
    lines = spark.readStream.text(str(folder / "events")).select("value", event)
    is_event = sf.expr("event.broken IS NULL AND event.event_id IS NOT NULL AND event.at IS NOT NULL")
    parsed = lines.withColumn("is_event", sf.coalesce(is_event, sf.lit(False))).observe(
        "events", sf.count("*").alias("events_read"), sf.count_if(~sf.col("is_event")).alias("dead_letters")
    )

    def split(batch: DataFrame, number: int) -> None:
        batch.persist()  # parsed once, and counted once
        # A folder for each micro-batch: one that is repeated after a crash replaces itself.
        events = batch.where("is_event").select("event.*").drop("broken")
        events.write.mode("overwrite").parquet(str(folder / "typed" / f"batch={number}"))
        dead = batch.where("NOT is_event").select("value")
        dead.write.mode("overwrite").parquet(str(folder / "dead_letters" / f"batch={number}"))
        batch.unpersist()

    return _start(parsed.writeStream.foreachBatch(split), folder, trigger, "events")


def read_rules(
    spark: SparkSession, folder: Path, trigger: dict[str, Any], store: tamis.spark.SubscriptionStore
) -> StreamingQuery:
    """Changes of rules become versions of the store; rules for columns that events lack are refused."""
    changes = spark.readStream.schema(RULE).json(str(folder / "rules"))
    query: StreamingQuery = store.apply_changes(
        changes,
        checkpoint=str(folder / "checkpoints" / "rules"),
        trigger=trigger,
        events=_typed(spark, folder),
    )
    return query


def alert(
    spark: SparkSession, folder: Path, trigger: dict[str, Any], store: tamis.spark.SubscriptionStore
) -> StreamingQuery:
    """Each event once, matched: the best three rules of each, with the version that found them."""
    events = _typed(spark, folder).withWatermark("at", LATEST).dropDuplicatesWithinWatermark(["event_id"])
    matches = tamis.spark.match(events, store, key=["event_id", "at", "amount"], k=COUNTED)
    is_alert = sf.col("rank") <= BEST
    counted = matches.observe(
        "matches", sf.count("*").alias("matches"), sf.count_if(is_alert).alias("alerts")
    )
    names = {"subscription": "rule", "version": "rules_version"}
    alerts = counted.where(is_alert).withColumnsRenamed(names)
    writer = alerts.writeStream.format("parquet").option("path", str(folder / "alerts"))
    return _start(writer, folder, trigger, "alerts")


def count_by_window(spark: SparkSession, folder: Path, trigger: dict[str, Any]) -> StreamingQuery:
    """Alerts of each rule by the hour, once the hour is over."""
    schema = spark.read.parquet(str(folder / "alerts")).schema
    alerts = spark.readStream.schema(schema).parquet(str(folder / "alerts")).withWatermark("at", LATEST)
    counted = alerts.groupBy(sf.window("at", "1 hour"), "rule").agg(
        sf.count("*").alias("alerts"), sf.sum("amount").alias("amount")
    )
    rows = counted.select("window.start", "window.end", "rule", "alerts", "amount").observe(
        "windows", sf.count("*").alias("windows")
    )
    writer = rows.writeStream.format("parquet").option("path", str(folder / "alerts_per_window"))
    return _start(writer, folder, trigger, "windows")


def report(spark: SparkSession, folder: Path, store: tamis.spark.SubscriptionStore) -> None:
    """A page: how often rules match, which never do, which are superfluous; and what each step counted."""
    typed = spark.read.parquet(str(folder / "typed")).dropDuplicates(["event_id"])
    tested = tamis.spark.backtest(store, typed)
    related = tamis.spark.related_rules(spark, store)
    tamis.spark.write_rules_report(
        folder / "report.html",
        tested,
        related=related,
        micro_batches=metrics(folder),
        title="Rules and alerts",
    )


def read_queries(
    spark: SparkSession, folder: Path, trigger: dict[str, Any], queries: tamis.spark.QueryStore
) -> StreamingQuery:
    """Changes of rules with memory become versions of their store; all of them go by user."""
    changes = spark.readStream.schema(QUERY).json(str(folder / "queries"))
    query: StreamingQuery = queries.apply_changes(
        changes, checkpoint=str(folder / "checkpoints" / "queries"), trigger=trigger
    )
    return query


def alert_with_memory(
    spark: SparkSession, folder: Path, trigger: dict[str, Any], queries: tamis.spark.QueryStore
) -> StreamingQuery | None:
    """What rules with memory tell. An event is evaluated once one that is LATEST later has come."""
    if int(spark.version.split(".")[0]) < 4:
        print("rules with memory were left out: over a stream they need Spark 4.0")
        return None
    told = tamis.spark.flow(_typed(spark, folder), queries, order="event_id", buckets=4)
    counted = told.observe("told", sf.count("*").alias("alerts_with_memory"))
    writer = counted.writeStream.format("parquet").option("path", str(folder / "alerts_with_memory"))
    return _start(writer, folder, trigger, "alerts_with_memory")


def metrics(folder: Path) -> list[dict[str, Any]]:
    """What each micro-batch counted, in the order in which they ran; of one that was repeated, the last."""
    kept = folder / "metrics.jsonl"
    rows = []
    for line in kept.read_text().splitlines() if kept.exists() else []:
        with suppress(json.JSONDecodeError):  # a full disk has cut it off
            rows.append(json.loads(line))
    return list({(row["step"], row["micro_batch"]): row for row in rows}.values())


def _typed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(EVENT).parquet(str(folder / "typed" / "batch=*"))


def _start(writer: Any, folder: Path, trigger: dict[str, Any], name: str) -> StreamingQuery:
    """Start a query. Its name is the one that Spark's UI shows."""
    checkpoint = str(folder / "checkpoints" / name)
    named = writer.queryName(name).option("checkpointLocation", checkpoint).trigger(**trigger)
    query: StreamingQuery = named.start()
    return query


class WrittenMetrics(StreamingQueryListener):
    """Appends what each micro-batch counted to a file, as soon as it is done.

    Spark tells it in the background; what it has told of a query that has ended, `wait_for` waits for.
    """

    TELLS_WITHIN = 60
    """Seconds after the end of a query in which Spark tells of it; a count is worth no longer wait."""

    def __init__(self, file: Path) -> None:
        """Append to this file."""
        self._file = file
        self._ended: dict[str, threading.Event] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing is counted yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A micro-batch is done."""
        progress = event.progress
        observed = (progress.observedMetrics or {}).values()
        counts = {key: value for row in observed for key, value in row.asDict().items()}
        if any(counts.values()):
            told = {"step": progress.name, "micro_batch": progress.batchId, **counts}
            with self._file.open("a") as file:
                file.write(json.dumps(told) + "\n")

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing was new."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The query has ended, or failed: nothing more comes."""
        self._end_of(event.runId).set()

    def wait_for(self, query: StreamingQuery) -> None:
        """Wait until a query has ended and all of it is written; raise if it failed."""
        try:
            query.awaitTermination()
        finally:
            self._end_of(query.runId).wait(self.TELLS_WITHIN)

    def _end_of(self, run: Any) -> threading.Event:
        """Spark's thread and the one that waits ask at the same moment, and must get the same."""
        return self._ended.setdefault(str(run), threading.Event())


@contextmanager
def written_metrics(spark: SparkSession, folder: Path) -> Iterator[WrittenMetrics]:
    """Write the counts of all queries of the session to `metrics.jsonl`."""
    listener = WrittenMetrics(folder / "metrics.jsonl")
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        spark.streams.removeListener(listener)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--serve"]
    main(Path(given[0]) if given else HERE, forever="--serve" in sys.argv)
