"""Raw events to alerts, in a few steps, each a function that can run on its own.

```text
events/*.json  -> typed/ and dead_letters/ -> alerts/ -> alerts_per_window/ -> report.html
                                           -> alerts_with_memory/
rules/*.json   -> store/ (versions; refused rules in its quarantine)
queries/*.json -> query_store/ (the same, of rules with memory)
```

Run it with `python pipeline.py`. Every step reads what is new since its last run (`checkpoints/`) and ends,
so a scheduler may run it as often as you like; for a service, replace `availableNow=True` by
`processingTime="10 seconds"`. Alerts carry the version of the rules that made them.

Each step counts what passes through it (`observe`). Spark reports the counts in the progress of the query,
under `observedMetrics`; `metrics.jsonl` keeps them, and the report shows them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

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

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",  # as many as cores: each keeps state, and has a task
    # Rules with memory keep their state there.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def main(folder: Path = HERE) -> None:
    """Run all steps in a session of their own."""
    builder = SparkSession.builder.appName("alerts")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    run(builder.getOrCreate(), folder)


def run(spark: SparkSession, folder: Path) -> None:
    """Run all steps."""
    store = tamis.spark.SubscriptionStore(folder / "store")
    streams = {"events": {"time": "at", "lateness": LATEST}}
    queries = tamis.spark.QueryStore(folder / "query_store", streams=streams, key="user.id")
    read_events(spark, folder)
    read_rules(spark, folder, store)
    alert(spark, folder, store)
    count_by_window(spark, folder)
    read_queries(spark, folder, queries)
    alert_with_memory(spark, folder, queries)
    report(spark, folder, store)
    refused = [
        row for each in (store, queries) for row in each.quarantined(spark).select("id", "error").collect()
    ]
    print(f"{spark.read.parquet(str(folder / 'alerts')).count()} alerts; {len(refused)} rules were refused")
    for row in refused:
        print(f"  {row.id}: {row.error}")


def read_events(spark: SparkSession, folder: Path) -> None:
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

    _run(parsed.writeStream.foreachBatch(split), folder, "events")


def read_rules(spark: SparkSession, folder: Path, store: tamis.spark.SubscriptionStore) -> None:
    """Changes of rules become versions of the store; rules for columns that events lack are refused."""
    changes = spark.readStream.schema(RULE).json(str(folder / "rules"))
    store.apply_changes(
        changes,
        checkpoint=str(folder / "checkpoints" / "rules"),
        trigger={"availableNow": True},
        events=_typed(spark, folder),
    ).awaitTermination()


def alert(spark: SparkSession, folder: Path, store: tamis.spark.SubscriptionStore) -> None:
    """Each event once, matched: the best three rules of each, with the version that found them."""
    events = _typed(spark, folder).withWatermark("at", LATEST).dropDuplicatesWithinWatermark(["event_id"])
    matches = tamis.spark.match(events, store, key=["event_id", "at", "amount"], k=COUNTED)
    is_alert = sf.col("rank") <= BEST
    counted = matches.observe(
        "matches", sf.count("*").alias("matches"), sf.count_if(is_alert).alias("alerts")
    )
    names = {"subscription": "rule", "version": "rules_version"}
    alerts = counted.where(is_alert).withColumnsRenamed(names)
    _run(alerts.writeStream.format("parquet").option("path", str(folder / "alerts")), folder, "alerts")


def count_by_window(spark: SparkSession, folder: Path) -> None:
    """Alerts of each rule by the hour, once the hour is over."""
    schema = spark.read.parquet(str(folder / "alerts")).schema
    alerts = spark.readStream.schema(schema).parquet(str(folder / "alerts")).withWatermark("at", LATEST)
    counted = alerts.groupBy(sf.window("at", "1 hour"), "rule").agg(
        sf.count("*").alias("alerts"), sf.sum("amount").alias("amount")
    )
    rows = counted.select("window.start", "window.end", "rule", "alerts", "amount").observe(
        "windows", sf.count("*").alias("windows")
    )
    _run(
        rows.writeStream.format("parquet").option("path", str(folder / "alerts_per_window")),
        folder,
        "windows",
    )


def report(spark: SparkSession, folder: Path, store: tamis.spark.SubscriptionStore) -> None:
    """A page: how often rules match, which never do, which are superfluous; and what each step counted."""
    typed = spark.read.parquet(str(folder / "typed"))
    tested = tamis.spark.backtest(store, typed)
    related = tamis.spark.related_rules(spark, store)
    tamis.spark.write_rules_report(
        folder / "report.html",
        tested,
        related=related,
        micro_batches=metrics(folder),
        title="Rules and alerts",
    )


def read_queries(spark: SparkSession, folder: Path, queries: tamis.spark.QueryStore) -> None:
    """Changes of rules with memory become versions of their store; all of them go by user."""
    changes = spark.readStream.schema(QUERY).json(str(folder / "queries"))
    queries.apply_changes(
        changes, checkpoint=str(folder / "checkpoints" / "queries"), trigger={"availableNow": True}
    ).awaitTermination()


def alert_with_memory(spark: SparkSession, folder: Path, queries: tamis.spark.QueryStore) -> None:
    """What rules with memory tell. An event is evaluated once one that is LATEST later has come."""
    if int(spark.version.split(".")[0]) < 4:
        print("rules with memory were left out: over a stream they need Spark 4.0")
        return
    told = tamis.spark.flow(_typed(spark, folder), queries, order="event_id", buckets=4)
    counted = told.observe("told", sf.count("*").alias("alerts_with_memory"))
    _run(
        counted.writeStream.format("parquet").option("path", str(folder / "alerts_with_memory")),
        folder,
        "alerts_with_memory",
    )


def metrics(folder: Path) -> list[dict[str, Any]]:
    """What each micro-batch counted, in the order in which they ran; of one that was repeated, the last."""
    kept = folder / "metrics.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    return list({(row["step"], row["micro_batch"]): row for row in rows}.values())


def _typed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(EVENT).parquet(str(folder / "typed" / "batch=*"))


def _run(writer: Any, folder: Path, name: str) -> None:
    """Process what is new. The name of the query is the one that Spark's UI shows."""
    checkpoint = str(folder / "checkpoints" / name)
    query = writer.queryName(name).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    with (folder / "metrics.jsonl").open("a") as file:
        for progress in query.recentProgress:
            # Spark 3.5 leaves them out of a micro-batch that has none.
            observed = progress["observedMetrics"].values() if "observedMetrics" in progress else []
            counts = {key: value for row in observed for key, value in _as_dict(row).items()}
            if any(counts.values()):
                told = {"step": name, "micro_batch": progress["batchId"], **counts}
                file.write(json.dumps(told) + "\n")


def _as_dict(row: Any) -> dict[str, Any]:
    """Observed metrics are a dictionary in Spark 3.5, and a row since."""
    return row if isinstance(row, dict) else row.asDict()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
