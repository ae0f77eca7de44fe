"""Rules with memory over a stream as a program of its own, so that a test can kill its driver and its
workers.

Runs the queries of a store, which follows the changes in `<folder>/changes`, over `<folder>/events`, one
file of each at a time, and ends when all are done.
"""

import sys

from pyspark.sql import SparkSession

import tamis.spark
from tamis.spark.flows import processor

CHANGES = "op string, sequence bigint, id string, expression string"
EVENTS = "ts bigint, seq bigint, user string, n int"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(folder: str) -> None:
    processor.SHORT_LOG, processor.CHUNK = 10_000, 3_000  # so that a short stream sees all of them
    spark = (
        SparkSession.builder.master("local[2,4]")  # a task is tried four times
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .getOrCreate()
    )
    settings = {"logins": {"time": "ts", "lateness": "3s"}}
    store = tamis.spark.QueryStore(f"{folder}/store", streams=settings, key="user")
    first = "count(* BY user LAST 20s) >= 3"
    store.apply_changes(spark.createDataFrame([("add", 1, "first", first)], CHANGES))
    changes = spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1).json(f"{folder}/changes")
    applying = store.apply_changes(
        changes, checkpoint=f"{folder}/checkpoint-changes", trigger={"processingTime": "0 seconds"}
    )
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(f"{folder}/events")
    told = tamis.spark.flow(events, store, order="seq", buckets=3)
    telling = (
        told.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint-told")
        .trigger(processingTime="0 seconds")
        .start(f"{folder}/told")
    )
    telling.processAllAvailable()
    applying.processAllAvailable()
    telling.stop()
    applying.stop()


if __name__ == "__main__":
    main(sys.argv[1])
