"""Generated workloads as DataFrames, made on the executors: any number of rows without a file.

Rows do not depend on how they are spread over tasks.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis_lab.workloads.base import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_TASK = 16_384


def generate_subscriptions(spark: "SparkSession", workload: Workload) -> "DataFrame":
    """The subscriptions of a workload.

    >>> from pyspark.sql import SparkSession
    >>> from tamis_lab.workloads import Equality
    >>> spark = SparkSession.builder.getOrCreate()
    >>> generate_subscriptions(spark, Equality(count=20_000)).count()
    20000
    """
    total = workload.count

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for start in _starts(batches):
            for table in workload.subscriptions(start, min(start + ROWS_PER_TASK, total)):
                yield from table.to_batches()

    return _generated(spark, total, make, workload.subscription_schema)


def generate_events(
    spark: "SparkSession", workload: Workload, count: int, *, key: str = "event_id", start: int = 0
) -> "DataFrame":
    """Events `start` to `start + count` of a workload, numbered in the column `key`.

    >>> from pyspark.sql import SparkSession
    >>> from tamis_lab.workloads import Dense
    >>> spark = SparkSession.builder.getOrCreate()
    >>> generate_events(spark, Dense(count=1), 5).columns[:2]
    ['event_id', 'n0']
    """
    schema = workload.event_schema.insert(0, pa.field(key, pa.int64()))

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for first in _starts(batches):
            stop = min(first + ROWS_PER_TASK, count)
            for table in workload.event_tables(start + first, start + stop, key):
                yield from table.cast(schema).to_batches()

    return _generated(spark, count, make, schema)


def _starts(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _generated(spark: "SparkSession", rows: int, make: Any, schema: pa.Schema) -> "DataFrame":
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - slow to import

    starts = spark.range(0, rows, ROWS_PER_TASK, numPartitions=max(1, -(-rows // ROWS_PER_TASK)))
    return starts.mapInArrow(make, from_arrow_schema(schema))
