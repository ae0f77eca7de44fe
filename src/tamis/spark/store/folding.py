"""Folds the changes of a store into its snapshots, with one task per shard.

One task applies changes, because versions are created one after another. Rewriting the files of shards takes
far longer and can happen anywhere: each task writes those of one shard, and one publishes the version that
names them. If another writer created a version meanwhile, that one stands, and the next change folds again.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.spark.release import own_release, refuse_other_release
from tamis.spark.session import on_executor
from tamis.store.directory import Directory, open_directory
from tamis.store.folding import FoldedShard, fold_is_due, fold_shard, publish_folded
from tamis.store.versions import IndexFile, Version, read_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def waiting_to_be_folded(directory: Directory, number: int) -> str | None:
    """A version of several shards that is to be folded, as text; None if it is not."""
    version = read_version(directory, number)
    return version.to_json().decode() if len(version.shards) > 1 and fold_is_due(version) else None


def folded_in_parallel(spark: "SparkSession", url: str, due: str) -> int | None:
    """Fold a version, as `waiting_to_be_folded` gives it; the number of the new one, if it was made."""
    drivers = own_release()

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_release(drivers)
        version = Version.from_json(due.encode())
        for batch in batches:
            for shard in batch.column("id").to_pylist():
                files, routes = fold_shard(open_directory(url), version, shard)
                told = [[file.__dict__ for file in files], routes]
                yield pa.record_batch({"shard": [shard], "told": [json.dumps(told)]})

    shards = len(Version.from_json(due.encode()).shards)
    rows = spark.range(0, shards, 1, shards).mapInArrow(fold, "shard bigint, told string").collect()
    folded = [json.loads(row["told"]) for row in sorted(rows, key=lambda row: row["shard"])]

    def publish() -> int | None:
        shards = [FoldedShard([IndexFile(**file) for file in files], routes) for files, routes in folded]
        made = publish_folded(open_directory(url), Version.from_json(due.encode()), shards)
        return None if made is None else made.number

    number: int | None = on_executor(spark, publish)
    return number
