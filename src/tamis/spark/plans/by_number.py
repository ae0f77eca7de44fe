"""Sends rows to the task whose number they carry.

Spark 4.1 can do that (`repartitionById`). Earlier releases only hash: partition = hash(value) mod partitions.
The hash is Murmur3 with a fixed seed, the same in every release, so that a value that lands in a given
partition can be looked for, and rows are hashed by that value instead of their number.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEED = 42
"""Of the hash by which Spark partitions."""

CANDIDATES = 1 << 14
"""Values that are hashed at a time."""


def gather_by_number(rows: "DataFrame", tasks: int, number: "str | Column") -> "DataFrame":
    """Bring the rows of each number below `tasks` together in a task of their own."""
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(tasks, number)
    return gather_by_hash(rows, tasks, sf.col(number) if isinstance(number, str) else number)


def gather_by_hash(rows: "DataFrame", tasks: int, number: "Column") -> "DataFrame":
    """The same where Spark can only hash."""
    # One literal, which Spark splits once when it plans: an array of 10,000 literals takes seconds.
    text = sf.lit(",".join(map(str, landing_values(tasks))))
    value = sf.element_at(sf.split(text, ","), number + 1)
    return rows.repartition(tasks, value.cast("int"))


@lru_cache(maxsize=64)
def landing_values(partitions: int) -> tuple[int, ...]:
    """For each partition, the least integer that Spark's hash sends there.

    >>> landing_values(3)
    (0, 1, 11)
    """
    values = np.full(partitions, -1, np.int64)
    first = 0
    while (values < 0).any():
        candidates = np.arange(first, first + CANDIDATES, dtype=np.int32)
        landed, at = np.unique(spark_hash(candidates).astype(np.int64) % partitions, return_index=True)
        new = values[landed] < 0
        values[landed[new]] = candidates[at[new]]
        first += CANDIDATES
    return tuple(values.tolist())


def spark_hash(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """What `hash` in Spark SQL says of integers: Murmur3 of 32 bits.

    >>> spark_hash(np.array([0, 1, -1], np.int32)).tolist()
    [933211791, -559580957, -1604776387]
    """
    mixed = _rotated(values.view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    state = _rotated(np.uint32(SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(4)  # bytes of an integer
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return (state ^ state >> np.uint32(16)).view(np.int32)


def _rotated(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    return values << np.uint32(bits) | values >> np.uint32(32 - bits)
