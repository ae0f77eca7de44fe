"""What rules would have matched: hits of rules on past events, and what a change of rules gains and loses.

Only rules that differ are matched: of a million rules of which ten changed, ten are indexed, once as they
were and once as they are.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.building.build_index import build
from tamis.spark.building.subscriptions import id_kind
from tamis.spark.events.columns import key_columns, quoted
from tamis.spark.history.rules import changed_rules, rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = Any


def backtest(subscriptions: Any, history: "DataFrame", **building: Any) -> "DataFrame":
    """How often each rule would have matched past events: hit rates, and which rules are dead.

    The columns are `subscription`, `expression`, `matches`, `rate` (matches per event) and `dead` (no match).

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> given = spark.createDataFrame([("a", "x > 1"), ("b", "x > 9")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> tested = backtest(given, events).orderBy("subscription").collect()
    >>> [(row.subscription, row.matches, row.rate, row.dead) for row in tested]
    [('a', 1, 0.5, False), ('b', 0, 0.0, True)]
    """
    from tamis.spark.api import index_of  # noqa: PLC0415 - it offers this

    spark = history.sparkSession
    index = index_of(spark, subscriptions, **building)
    counted = index.count_by_subscription(history).select("subscription", "matches")
    events = history.count()
    named = rules(spark, index).select(sf.col("id").alias("subscription"), "expression")
    matches = sf.coalesce(sf.col("matches"), sf.lit(0)).alias("matches")
    joined = named.join(counted, "subscription", "left").select("subscription", "expression", matches)
    rate = sf.col("matches") / sf.lit(max(1, events))
    return joined.withColumn("rate", rate).withColumn("dead", sf.col("matches") == 0)


def gained_and_lost(
    events: "DataFrame", before: "DataFrame", after: "DataFrame", *, key: Key = "event_id", **building: Any
) -> "DataFrame":
    """The matches that only one of two tables of rules has: `key`, `subscription` and `change`.

    `change` is "gained" or "lost". Rules that are the same in both tables are not matched.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> columns = "id string, expression string"
    >>> old = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2")], columns)
    >>> new = spark.createDataFrame([("a", "x > 1"), ("b", "x < 2")], columns)
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> found = gained_and_lost(events, old, new).collect()
    >>> sorted((row.event_id, row.subscription, row.change) for row in found)
    [(1, 'b', 'lost'), (2, 'b', 'gained')]
    """
    kinds = [id_kind(rows) for rows in (before, after)]
    if kinds[0] != kinds[1]:
        raise ArgumentError(f"the ids of the rules are of type {kinds[0]} before and {kinds[1]} after")
    changed = changed_rules(before, after).cache()
    keys = key_columns(events, key)
    then, now = (
        build(
            rows.join(changed.where(f"change != '{without}'").select("id"), "id", "left_semi"),
            **building,
        )
        .match(events, key=keys, payload=False)
        .select(*map(quoted, keys), "subscription")
        for rows, without in ((before, "added"), (after, "removed"))
    )
    gained = now.exceptAll(then).withColumn("change", sf.lit("gained"))
    lost = then.exceptAll(now).withColumn("change", sf.lit("lost"))
    return gained.unionAll(lost)


def backfill(
    store: Any, v1: int, v2: int, events: "DataFrame", *, key: Key = "event_id", **building: Any
) -> "DataFrame":
    """The rows to add to and remove from a table of matches when a store goes from version `v1` to `v2`.

    The columns are the key, `subscription`, `change` ("gained": to be added, "lost": to be removed) and
    `version`, which is `v2`. Both versions must still exist: garbage collection keeps the latest ones.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> store = tamis.spark.SubscriptionStore(tempfile.mkdtemp())
    >>> columns = "op string, sequence bigint, id string, expression string"
    >>> for change in ([("add", 1, "a", "x > 1")], [("add", 2, "b", "x > 2"), ("remove", 2, "a", None)]):
    ...     applied = store.apply_changes(spark.createDataFrame(change, columns))
    >>> events = spark.createDataFrame([(1, 3), (2, 2)], "event_id int, x int")
    >>> found = backfill(store, 1, 2, events).collect()
    >>> sorted((row.event_id, row.subscription, row.change, row.version) for row in found)
    [(1, 'a', 'lost', 2), (1, 'b', 'gained', 2), (2, 'a', 'lost', 2)]
    """
    spark = events.sparkSession
    before, after = (rules(spark, store, version=number) for number in (v1, v2))
    found = gained_and_lost(events, before, after, key=key, **building)
    return found.withColumn("version", sf.lit(v2).cast("bigint"))


def diff(
    events: "DataFrame", before: Any, after: Any, *, key: Key = "event_id", **building: Any
) -> "DataFrame":
    """The effect of a change of rules on past events, one row per rule that differs.

    `before` and `after` are DataFrames of subscriptions, indexes or stores. The columns are `subscription`,
    `change` ("added", "removed" or "changed"), `gained` and `lost` matches, and the expression `before` and
    `after`.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> columns = "id string, expression string"
    >>> old = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2")], columns)
    >>> new = spark.createDataFrame([("b", "x > 0"), ("c", "x > 7")], columns)
    >>> events = spark.createDataFrame([(1, 3), (2, 1)], "event_id int, x int")
    >>> found = diff(events, old, new).orderBy("subscription").collect()
    >>> [(row.subscription, row.change, row.gained, row.lost) for row in found]
    [('a', 'removed', 0, 1), ('b', 'changed', 1, 0), ('c', 'added', 0, 0)]
    """
    spark = events.sparkSession
    old, new = rules(spark, before), rules(spark, after)
    found = gained_and_lost(events, old, new, key=key, **building)
    counted = found.groupBy("subscription").agg(
        *(sf.count_if(sf.col("change") == name).alias(name) for name in ("gained", "lost"))
    )
    named = changed_rules(old, new).withColumnRenamed("id", "subscription")
    both = named.join(counted, "subscription", "left").fillna(0, ["gained", "lost"])
    return both.select("subscription", "change", "gained", "lost", "before", "after")
