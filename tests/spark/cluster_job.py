"""A matching job as a program of its own: the tests run it on clusters and through Connect.

Prints one line of JSON: the pairs that were found. `--slow` keeps tasks busy, so that a test can kill some.
"""

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import tamis.spark

RULES = 60
EVENTS = 400


def expected() -> list[list[int]]:
    """What the job must find: rule r wants events whose x, modulo 50, is r, or whose y is below r - 50."""
    return [
        [event, rule]
        for event in range(EVENTS)
        for rule in range(RULES)
        if event % 50 == rule or event % 7 < rule - 50
    ]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--directory")
    arguments.add_argument("--slow", action="store_true")
    arguments.add_argument("--plan", default="auto")
    arguments.add_argument("--shards", type=int)
    arguments.add_argument("--tasks", type=int, default=20)
    arguments.add_argument("--more", type=int, default=0, help="rules that match nothing")
    given = arguments.parse_args()
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rules = spark.range(RULES).selectExpr("id", "'x = ' || id || ' OR y < ' || (id - 50) AS expression")
    if given.more:
        rules = rules.union(spark.range(-given.more, 0).selectExpr("id", "'x = ' || id AS expression"))
    events = spark.range(0, EVENTS, 1, given.tasks).selectExpr(
        "id AS event_id", "id % 50 AS x", "id % 7 AS y"
    )
    index = tamis.spark.build(rules, directory=given.directory, plan=given.plan, shards=given.shards)
    print("built", flush=True)
    matches = index.match(events.mapInArrow(dawdle, events.schema) if given.slow else events)
    found = sorted([row.event_id, row.subscription] for row in matches.collect())
    best = index.match(events, k=2).count()
    plan = str(tamis.spark.explain(matches))
    print(json.dumps({"pairs": found, "best": best, "plan": plan}), flush=True)
    spark.stop()


def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(0.5)
        yield batch


if __name__ == "__main__":
    main()
