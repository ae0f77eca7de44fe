"""Rows in the task whose number they carry, also where Spark can only hash."""

import random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as sf

from tamis.spark.plans.by_number import gather_by_hash, gather_by_number, landing_values, spark_hash

pytestmark = pytest.mark.spark


def test_the_hash_is_that_of_spark(spark: Any) -> None:
    choose = random.Random(5)
    values = [0, 1, -1, 2**31 - 1, -(2**31), *(choose.randrange(-(2**31), 2**31) for _ in range(500))]
    frame = spark.createDataFrame([(value,) for value in values], "value int")
    told = {
        row.value: row.hashed for row in frame.select("value", sf.hash("value").alias("hashed")).collect()
    }
    assert [told[value] for value in values] == spark_hash(np.array(values, np.int32)).tolist()


@pytest.mark.parametrize("partitions", [1, 2, 7, 200, 10_000])
def test_every_partition_has_a_value(partitions: int) -> None:
    hashed = spark_hash(np.array(landing_values(partitions), np.int32)).astype(np.int64)
    assert (hashed % partitions).tolist() == list(range(partitions))


@pytest.mark.parametrize("tasks", [1, 7])
@pytest.mark.parametrize("gather", [gather_by_number, gather_by_hash])
@pytest.mark.thorough
def test_numbers_are_tasks(spark: Any, gather: Any, tasks: int) -> None:
    """By the number modulo 7, and by an expression: what a shard of a later version is found by."""
    rows = spark.range(0, 40, 1, 3).withColumn("number", sf.pmod(sf.col("id"), sf.lit(tasks)).cast("int"))
    gathered = gather(rows, tasks, sf.col("number"))
    found = gathered.select("number", sf.spark_partition_id().alias("task")).collect()
    assert len(found) == 40
    assert all(row.number == row.task for row in found)
    assert gathered.rdd.getNumPartitions() == tasks
