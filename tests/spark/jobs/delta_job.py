"""Delta tables as sources and sinks, in a program of its own: Delta must be there when the session starts.

Takes a folder and the settings of the session, as JSON. Prints one line of JSON: what was found, each way.
"""

import io
import json
import sys
from typing import Any

import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

import tamis
import tamis.spark
from tamis.spark.jobs import parse_job, run_job
from tamis.spark.jobs.progress import Lines

Pairs = list[list[Any]]


def main(folder: str, settings: dict[str, str]) -> None:
    builder: Any = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    events, rules = f"{folder}/events", f"{folder}/rules"
    first = spark.range(0, 40, 1, 2).selectExpr("id AS event_id", "id % 10 AS x")
    first.write.format("delta").save(events)
    stale = spark.range(40, 60, 1, 1).selectExpr("id AS event_id", "0L AS x")
    stale.write.format("delta").mode("append").save(events)
    # Only Delta knows which files count now.
    spark.sql(f"DELETE FROM delta.`{events}` WHERE event_id >= 40")
    written = [("a", "x > 7"), ("b", "x = 3"), ("zero", "x = 0 AND event_id > 39")]
    spark.createDataFrame(written, "id string, expression string").write.format("delta").save(rules)
    found = {
        "batch": batch(spark, folder),
        "stream": stream(spark, folder),
        "changes": changes(spark, folder),
        "followed": followed(spark, folder),
        "table": table(spark, folder),
        "files": files(spark, folder),
        "refused": refused(spark, folder),
    }
    print(json.dumps(found), flush=True)
    spark.stop()


def run(spark: SparkSession, folder: str, **parts: Any) -> None:
    job = {
        "events": {"format": "delta", "path": f"{folder}/events"},
        "subscriptions": {"format": "delta", "path": f"{folder}/rules"},
        **parts,
    }
    run_job(parse_job(yaml.safe_dump(job)), spark, Lines(io.StringIO()))


def pairs(rows: Any) -> Pairs:
    return sorted([row.event_id, row.subscription] for row in rows.collect())


def batch(spark: SparkSession, folder: str) -> Pairs:
    run(spark, folder, sink={"format": "delta", "path": f"{folder}/batch"})
    return pairs(spark.read.format("delta").load(f"{folder}/batch"))


def stream(spark: SparkSession, folder: str) -> Pairs:
    """From a Delta table to a Delta table; a second run goes on where the first ended."""
    spark.read.format("delta").load(f"{folder}/events").write.format("delta").save(f"{folder}/arriving")
    parts = {
        "events": {"format": "delta", "path": f"{folder}/arriving"},
        "sink": {"format": "delta", "path": f"{folder}/stream"},
        "trigger": "available_now",
        "checkpoint": f"{folder}/checkpoint",
    }
    run(spark, folder, **parts)
    more = spark.createDataFrame([(100, 3)], "event_id bigint, x bigint")
    more.write.format("delta").mode("append").save(f"{folder}/arriving")
    run(spark, folder, **parts)
    return pairs(spark.read.format("delta").load(f"{folder}/stream"))


def changes(spark: SparkSession, folder: str) -> Pairs:
    """A Delta table of changes, as a stream, into a store."""
    rows = [("add", 1, "a", "x > 7"), ("add", 1, "b", "x = 2"), ("remove", 2, "b", None)]
    columns = "op string, sequence bigint, id string, expression string"
    spark.createDataFrame(rows, columns).write.format("delta").save(f"{folder}/changes")
    store = tamis.spark.SubscriptionStore(f"{folder}/store")
    arriving = spark.readStream.format("delta").load(f"{folder}/changes")
    query = store.apply_changes(arriving, checkpoint=f"{folder}/applied", trigger={"availableNow": True})
    query.awaitTermination()
    return pairs(tamis.spark.match(spark.read.format("delta").load(f"{folder}/events"), store))


def followed(spark: SparkSession, folder: str) -> list[Any]:
    """A Delta table of rules through its change data: MERGE, DELETE, and a rule that is refused."""
    where = f"{folder}/governed"
    rows = [("a", "x > 7"), ("b", "x = 2"), ("c", "x = 4"), ("bad", "colour = 1")]
    writer = spark.createDataFrame(rows, "rule string, condition string").write.format("delta")
    writer.option("delta.enableChangeDataFeed", "true").save(where)
    store = tamis.spark.SubscriptionStore(f"{folder}/followed")
    events = spark.read.format("delta").load(f"{folder}/events")
    columns = {"id": "rule", "expression": "condition"}

    def catch_up() -> None:
        query = store.follow(
            spark,
            where,
            columns=columns,
            checkpoint=f"{folder}/following",
            trigger={"availableNow": True},
            events=events,
        )
        query.awaitTermination()

    catch_up()
    spark.createDataFrame(
        [("b", "x = 5"), ("d", "x = 6")], "rule string, condition string"
    ).createOrReplaceTempView("news")
    spark.sql(
        f"MERGE INTO delta.`{where}` AS t USING news ON t.rule = news.rule "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM delta.`{where}` WHERE rule = 'c'")
    catch_up()
    again = store.follow(spark, where, columns=columns, events=events)
    refused = [[row.id, row.error] for row in store.quarantined(spark).collect()]
    return [pairs(tamis.spark.match(events, store)), again.applied, sorted(refused)]


def table(spark: SparkSession, folder: str) -> list[Any]:
    """A table sink has the format that is asked for, and a table that is there keeps its own."""
    spark.sql("CREATE TABLE kept (event_id bigint, subscription string, version bigint) USING delta")
    run(spark, folder, sink={"format": "table", "table": "kept", "mode": "append"})
    run(spark, folder, sink={"format": "table", "table": "made", "table_format": "delta"})
    formats = [spark.sql(f"DESCRIBE DETAIL {name}").first() for name in ("kept", "made")]
    return [[row["format"] for row in formats if row is not None], pairs(spark.table("kept"))]


def files(spark: SparkSession, folder: str) -> Pairs:
    """Tasks read the table's files; the keys that they give lead back to the events."""
    rules = spark.read.format("delta").load(f"{folder}/rules")
    found = tamis.spark.match_files(spark, f"{folder}/events", rules).collect()
    numbers = {path: pq.read_table(path)["event_id"].to_pylist() for path in {row.path for row in found}}
    return sorted([numbers[row.path][row.row], row.subscription] for row in found)


def refused(spark: SparkSession, folder: str) -> list[str]:
    """What tables of which the files do not tell everything say."""
    rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    rows = spark.range(0, 20, 1, 1).selectExpr("id AS event_id", "id % 2 AS x")
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(f"{folder}/deleted")
    spark.sql(f"DELETE FROM delta.`{folder}/deleted` WHERE event_id = 7")
    rows.write.format("delta").partitionBy("x").save(f"{folder}/parted")
    rows.write.format("delta").option("delta.columnMapping.mode", "name").save(f"{folder}/mapped")
    said = []
    for name in ("deleted", "parted", "mapped"):
        try:
            tamis.spark.match_files(spark, f"{folder}/{name}", rules)
        except tamis.ArgumentError as error:
            said.append(str(error))
    return said


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
