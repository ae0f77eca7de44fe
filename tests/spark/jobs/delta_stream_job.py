"""A streaming job on Delta tables, as a program of its own, so that a test can kill its driver.

`prepare` makes the tables of events and of rules in `<folder>`. `run` matches the events, one file at a time,
against a store that follows the rules while MERGEs change them. It ends when all of it is done, and writes
the matches to `<folder>/found.json`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import tamis.spark

FILES = 16
EVENTS_PER_FILE = 20
MERGES = 12


def prepare(spark: SparkSession, folder: str) -> None:
    for number in range(FILES):
        first = number * EVENTS_PER_FILE
        numbers = spark.range(first, first + EVENTS_PER_FILE, 1, 1)
        events = numbers.selectExpr("id AS event_id", "id % 10 AS x")
        events.write.format("delta").mode("append").save(f"{folder}/events")
    rules = spark.createDataFrame([("first", "x >= 0")], "id string, expression string")
    rules.write.format("delta").option("delta.enableChangeDataFeed", "true").save(f"{folder}/rules")


def run(spark: SparkSession, folder: str) -> None:
    store, rules = tamis.spark.SubscriptionStore(f"{folder}/store"), f"{folder}/rules"
    store.follow(spark, rules)  # a match needs a version; what was applied before is stale
    following = store.follow(
        spark, rules, checkpoint=f"{folder}/checkpoint-rules", trigger={"processingTime": "0 seconds"}
    )
    events = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(f"{folder}/events")
    matching = (
        tamis.spark.match(events, store)
        .writeStream.format("delta")
        .option("checkpointLocation", f"{folder}/checkpoint-matches")
        .trigger(processingTime="0 seconds")
        .start(f"{folder}/matches")
    )
    while (merged := latest_version(spark, rules)) < MERGES:
        merge(spark, rules, merged + 1)
    matching.processAllAvailable()
    following.processAllAvailable()
    matching.stop()
    following.stop()
    rows = spark.read.format("delta").load(f"{folder}/matches").collect()
    found = [[row.event_id, row.subscription, row.version] for row in rows]
    (Path(folder) / "found.json").write_text(json.dumps(found))


def latest_version(spark: SparkSession, table: str) -> int:
    row: Any = spark.sql(f"DESCRIBE HISTORY delta.`{table}` LIMIT 1").first()
    return int(row.version)


def merge(spark: SparkSession, table: str, number: int) -> None:
    """One rule comes, one goes, and one becomes another, in one commit."""
    news = [
        (f"r{number}", f"x = {number % 10}", False),
        (f"r{number - 3}", None, True),
        ("first", f"x >= {-(number % 2)}", False),
    ]
    columns = "id string, expression string, gone boolean"
    spark.createDataFrame(news, columns).createOrReplaceTempView("news")
    spark.sql(
        f"MERGE INTO delta.`{table}` AS t USING news ON t.id = news.id "
        "WHEN MATCHED AND news.gone THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET expression = news.expression "
        "WHEN NOT MATCHED AND NOT news.gone THEN INSERT (id, expression) VALUES (news.id, news.expression)"
    )


def main(folder: str, step: str, settings: dict[str, str], master: str = "local[2]") -> None:
    builder: Any = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    {"prepare": prepare, "run": run}[step](spark, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), *sys.argv[4:])
