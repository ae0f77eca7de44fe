"""Follows a governed table of rules: turns its change data feed into changes of a store.

Delta Lake's change data feed has a row for each insertion, update and deletion, with the resulting version of
the table. That version orders the changes of each rule, so reading the feed again does no harm. If one commit
deletes a rule and inserts it again, as a rewrite of the table does, the insertion wins.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.building.own_names import with_own_names
from tamis.spark.events.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEED = ("_change_type", "_commit_version")


def read_feed(spark: "SparkSession", table: str, *, streaming: bool, start: int = 0) -> "DataFrame":
    """The change data feed of a Delta table, by name or by path, from a version of it on."""
    reader: Any = spark.readStream if streaming else spark.read
    reader = reader.format("delta").option("readChangeFeed", "true").option("startingVersion", start)
    feed: DataFrame = reader.load(table) if "/" in table else reader.table(table)
    return feed


def as_changes(feed: "DataFrame", columns: Mapping[str, str] | None = None) -> "DataFrame":
    """The rows of a change data feed as changes of a store; `columns` says what the table calls things.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rows = [("a", "x > 1", "insert", 3), ("b", "x > 2", "update_preimage", 4), ("b", None, "delete", 4)]
    >>> named = "rule string, text string, _change_type string, _commit_version long"
    >>> feed = spark.createDataFrame(rows, named)
    >>> changes = as_changes(feed, {"id": "rule", "expression": "text"})
    >>> [(row.op, row.sequence, row.id, row.expression) for row in changes.collect()]
    [('add', 7, 'a', 'x > 1'), ('remove', 8, 'b', None)]
    """
    for name in FEED:
        if name not in feed.columns:
            raise ArgumentError(
                f"the table has no change data: its feed has no column {name}. Switch it on with ALTER "
                "TABLE ... SET TBLPROPERTIES (delta.enableChangeDataFeed = true)"
            )
    feed = with_own_names(feed, (columns or {}).values())
    renamed = {old: new for new, old in (columns or {}).items()}
    for old in renamed:
        if old not in feed.columns:
            raise ArgumentError(f"the table has no column {old!r}; it has {', '.join(feed.columns)}")
    # Columns of the feed, and those that a name of ours belongs to another column for, are no part of a rule.
    taken = {"op", "sequence", *(name.lower() for name in columns or {})}
    kept = [
        name
        for name in feed.columns
        if name in renamed or not (name.startswith("_") or name.lower() in taken)
    ]
    is_removal = sf.col("_change_type") == "delete"
    changes = feed.where("_change_type != 'update_preimage'").select(
        sf.when(is_removal, "remove").otherwise("add").alias("op"),
        (2 * sf.col("_commit_version") + sf.when(is_removal, 0).otherwise(1))
        .cast("bigint")
        .alias("sequence"),
        *(sf.col(quoted(name)).alias(renamed.get(name, name)) for name in kept),
    )
    changes = with_own_names(changes, ("id", "expression"))
    if "expression" not in changes.columns or "id" not in changes.columns:
        raise ArgumentError(
            f"rules have an id and an expression; the table has {', '.join(kept)}. Say which columns those "
            'are: columns={"id": ..., "expression": ...}'
        )
    return changes.withColumn("expression", sf.when(sf.col("op") == "add", sf.col("expression")))
