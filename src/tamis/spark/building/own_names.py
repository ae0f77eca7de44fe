"""Column names of rules in another case: if Spark ignores case, `Priority` is `priority`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tamis.errors import ArgumentError
from tamis.spark.events.names import ignores_case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_own_names(frame: "DataFrame", names: Iterable[str]) -> "DataFrame":
    """Rename columns that differ from these names only in case.

    >>> from pyspark.sql import SparkSession
    >>> frame = SparkSession.builder.getOrCreate().sql("SELECT 1 AS ID, 2 AS other")
    >>> with_own_names(frame, ["id", "expression"]).columns
    ['id', 'other']
    """
    columns = frame.columns
    meant = {
        name: [column for column in columns if column.lower() == name.lower()]
        for name in names
        if name not in columns
    }
    meant = {name: found for name, found in meant.items() if found}
    if not meant or not ignores_case(frame.sparkSession):
        return frame
    for name, found in meant.items():
        if len(found) > 1:
            raise ArgumentError(f"the column {name!r} may be {' or '.join(found)}: rename the others")
        frame = frame.withColumnRenamed(found[0], name)
    return frame
