"""A streaming job as a program of its own, so that a test can kill its driver and start it again.

Matches the events in `<folder>/events` against a store that follows the changes in `<folder>/changes`, one
file of each at a time, and ends when all are done. The store lies in the folder unless it is named.
"""

import sys

from pyspark.sql import SparkSession

import tamis.spark

CHANGES = "op string, sequence bigint, id string, expression string"
EVENTS = "event_id int, x int"


def main(folder: str, url: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    store = tamis.spark.SubscriptionStore(url)
    first = spark.createDataFrame([("add", 1, "first", "x >= 0")], CHANGES)
    store.apply_changes(first)
    changes = spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1).json(f"{folder}/changes")
    applying = store.apply_changes(
        changes, checkpoint=f"{folder}/checkpoint-changes", trigger={"processingTime": "0 seconds"}
    )
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(f"{folder}/events")
    matching = (
        tamis.spark.match(events, store)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint-matches")
        .trigger(processingTime="0 seconds")
        .start(f"{folder}/matches")
    )
    matching.processAllAvailable()
    applying.processAllAvailable()
    matching.stop()
    applying.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else f"{sys.argv[1]}/store")
