"""Builds, changes and matches while Spark runs slow tasks twice, as a program of its own.

Takes a folder and the master. Each input dawdles, so that Spark starts a second attempt of its task. Prints
JSON: what became of each step, and which inputs were read by second attempts.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import tamis.spark
from spark.cluster_job import EVENTS, RULES

CHANGES = "op string, sequence bigint, id bigint, expression string"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "600m",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.task.duration.threshold": "200ms",  # also where a stage has one task
}


def main(folder: Path, master: str) -> None:
    builder: Any = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    attempts = folder / "attempts"
    attempts.mkdir()

    def slowly(frame: DataFrame, what: str) -> DataFrame:
        return frame.mapInArrow(dawdle(str(attempts / what)), frame.schema)

    rules = spark.range(0, RULES, 1, 1).selectExpr(
        "id", "'x = ' || id || ' OR y < ' || (id - 50) AS expression"
    )
    store = tamis.spark.SubscriptionStore(folder / "store")
    store.replace_all(slowly(rules, "build"))
    changed = spark.createDataFrame([("add", 1, 100, "x > 48"), ("remove", 2, 7, None)], CHANGES)
    store.apply_changes(slowly(changed.coalesce(1), "apply"))
    sharded = tamis.spark.build(
        slowly(rules, "sharded"), plan="sharded", shards=2, directory=folder / "sharded"
    )
    events = spark.range(0, EVENTS, 1, 2).selectExpr("id AS event_id", "id % 50 AS x", "id % 7 AS y")
    last_is_slow = "event_id >= 200"  # then a core is free for another attempt
    early, late = events.where(f"NOT {last_is_slow}"), slowly(events.where(last_is_slow).coalesce(1), "match")
    matches = sharded.match(early.union(late))
    rows = [[row.event_id, row.subscription] for row in matches.collect()]
    print(
        json.dumps(
            {
                "pairs": sorted(rows),
                "stream": stream(spark, slowly, store, folder),
                "versions": len([*(folder / "store" / "versions").glob("0*/0*.json")]),
                "sharded versions": len([*(folder / "sharded" / "versions").glob("0*/0*.json")]),
                "second attempts": sorted({path.name.split("-")[0] for path in attempts.glob("*-1")}),
            }
        ),
        flush=True,
    )
    spark.stop()


def stream(
    spark: SparkSession, slowly: Callable[..., DataFrame], store: Any, folder: Path
) -> list[list[int]]:
    """The rows that a stream writes to files, with the version that each came from."""
    (folder / "events").mkdir()
    for file in range(2):
        texts = [json.dumps({"event_id": file * 50 + event, "x": event}) for event in range(50)]
        (folder / "events" / f"{file}.json").write_text("\n".join(texts))
    arriving = spark.readStream.schema("event_id bigint, x bigint").option("maxFilesPerTrigger", 1)
    events = slowly(arriving.json(str(folder / "events")), "stream")
    writer = tamis.spark.match(events, store).writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start(
        str(folder / "out")
    ).awaitTermination()
    rows = spark.read.parquet(str(folder / "out")).collect()
    return sorted([row.event_id, row.subscription, row.version] for row in rows)


def dawdle(log: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[Any]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        context: Any = TaskContext.get()
        number = context.attemptNumber()
        Path(f"{log}-{context.stageId()}-{context.partitionId()}-{number}").touch()
        for batch in batches:
            # Both attempts go on at about the same moment.
            time.sleep(2.5 if number == 0 else 1.5)
            yield batch

    return task


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
