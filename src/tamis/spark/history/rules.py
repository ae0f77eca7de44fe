"""Rules as a table: the rules of a version of an index, and the changes between two versions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf

from tamis.spark.building.subscriptions import bound_to_source, id_kind, normalised
from tamis.spark.session import on_executor
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_shard
from tamis.store.rows import subscription_batches
from tamis.store.versions import Version, read_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "id {ids}, expression string, priority double, weights map<string,double>, tags array<string>, "
    "owner string, payload binary, expires timestamp, starts timestamp"
)


def rules(spark: "SparkSession", subscriptions: Any, *, version: int | None = None) -> "DataFrame":
    """The subscriptions of an index or a store as a DataFrame, of any version that still exists.

    The columns are those of a DataFrame of subscriptions: `id`, `expression`, `priority`, `weights`, `tags`,
    `owner`, `payload`, `expires` and `starts`. A DataFrame of subscriptions comes back as it is read.

    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> given = spark.createDataFrame([("a", "x>1"), ("b", "y = 2")], "id string, expression string")
    >>> sorted((row.id, row.expression) for row in rules(spark, tamis.spark.build(given)).collect())
    [('a', 'x > 1'), ('b', 'y = 2')]
    """
    from tamis.spark.api import index_of  # noqa: PLC0415 - it offers this

    if hasattr(subscriptions, "mapInArrow"):
        id_kind(subscriptions)
        return bound_to_source(normalised(subscriptions))
    index = index_of(spark, subscriptions)
    url, number = index.url, version
    held = index.version
    if number is not None and number != held.number:
        read = on_executor(spark, lambda: read_version(open_directory(url), number).to_json().decode())
        held = Version.from_json(read.encode())
    return _rules_of(spark, url, held)


def _rules_of(spark: "SparkSession", url: str, version: Version) -> "DataFrame":
    content, ids = version.to_json(), version.ids

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for shard in batch.column("id").to_pylist():
                indexes = open_shard(open_directory(url), Version.from_json(content), shard)
                yield from subscription_batches(indexes, ids)

    shards = len(version.shards)
    columns = _COLUMNS.format(ids="bigint" if ids == "int" else "string")
    return spark.range(shards).repartition(shards).mapInArrow(read, columns)


def changed_rules(before: "DataFrame", after: "DataFrame") -> "DataFrame":
    """The differences between two tables of rules that affect matches.

    The columns are `id`, `change` ("added", "removed" or "changed"), and the expression `before` and `after`.
    Equivalent expressions with different texts count as changed.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> columns = "id string, expression string"
    >>> old = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2"), ("c", "x > 3")], columns)
    >>> new = spark.createDataFrame([("a", "x > 1"), ("b", "x > 9"), ("d", "x > 4")], columns)
    >>> sorted((row.id, row.change) for row in changed_rules(old, new).collect())
    [('b', 'changed'), ('c', 'removed'), ('d', 'added')]
    """
    old, new = (
        rows.select("id", sf.col("expression").alias(name), _active(rows).alias(f"{name}_active"))
        for rows, name in ((before, "before"), (after, "after"))
    )
    joined = old.join(new, "id", "full_outer")
    differs = ~sf.col("before").eqNullSafe(sf.col("after")) | ~sf.col("before_active").eqNullSafe(
        sf.col("after_active")
    )
    change = (
        sf.when(sf.col("before").isNull(), "added")
        .when(sf.col("after").isNull(), "removed")
        .otherwise("changed")
    )
    return joined.where(differs).select("id", change.alias("change"), "before", "after")


def _active(rows: "DataFrame") -> Any:
    """When the rules match at all."""
    given = [
        sf.col(name) if name in rows.columns else sf.lit(None).cast("timestamp").alias(name)
        for name in ("starts", "expires")
    ]
    return sf.struct(*given)
