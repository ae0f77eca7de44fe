"""Rules that are equivalent to another rule or covered by one, and rules that are never true.

Only few pairs are compared: a rule that covers another one matches all its events, so matching one example
event of a rule against the index finds all rules that may cover it. Each row of the table is proven; pairs
that could not be decided are left out.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis import relate
from tamis.expr import parse
from tamis.index import Index
from tamis.spark.history.rules import rules
from tamis.spark.session import cluster
from tamis.store.directory import open_directory
from tamis.store.open_shards import open_all
from tamis.store.versions import IdKind, Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_COMPARED = 200
"""Rules that one rule is compared with."""

BUDGET = 20_000
"""Steps that a comparison may take before it counts as undecided."""


def related_rules(spark: "SparkSession", subscriptions: Any, **building: Any) -> "DataFrame":
    """Duplicates, covered rules, and rules that are never true.

    The columns are `subscription`, `relation`, `other` and both expressions. `relation` is "duplicate" (true
    for the same events as `other`, which has the smaller id), "covered" (whenever it is true, `other` is,
    too) or "never true".

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> texts = ["x > 5", "x > 2", "NOT x <= 5", "x > 5 AND x < 3"]
    >>> given = spark.createDataFrame(list(zip("abcd", texts)), "id string, expression string")
    >>> found = related_rules(spark, given).collect()
    >>> sorted((row.subscription, row.relation, row.other) for row in found)
    [('a', 'covered', 'b'), ('c', 'covered', 'b'), ('c', 'duplicate', 'a'), ('d', 'never true', None)]
    """
    from tamis.spark.api import index_of  # noqa: PLC0415 - it offers this

    index = index_of(spark, subscriptions, **building)
    url, content, ids = index.url, index.version.to_json(), index.version.ids

    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        indexes = open_all(open_directory(url), Version.from_json(content))
        for batch in batches:
            written = zip(batch.column("id").to_pylist(), batch.column("expression").to_pylist(), strict=True)
            found = [row for id, text in written for row in relations_of(id, text, indexes)]
            if found:
                yield pa.RecordBatch.from_pylist(found, _schema(ids))

    kind = "bigint" if ids == "int" else "string"
    columns = (
        f"subscription {kind}, relation string, other {kind}, expression string, other_expression string"
    )
    rows = rules(spark, index).select("id", "expression")
    return rows.repartition(cluster(spark).tasks).mapInArrow(compare, columns)


def _schema(ids: IdKind) -> pa.Schema:
    kind = pa.int64() if ids == "int" else pa.string()
    return pa.schema(
        {
            "subscription": kind,
            "relation": pa.string(),
            "other": kind,
            "expression": pa.string(),
            "other_expression": pa.string(),
        }
    )


def relations_of(id: Any, text: str, indexes: list[Index]) -> Iterator[dict[str, Any]]:
    """What one rule is to the others."""
    own = parse(text)
    row = {"subscription": id, "expression": text, "other": None, "other_expression": None}
    example = relate.example_of_overlap(own, own, budget=BUDGET)
    if example is None:
        if relate.decide_overlaps(own, own, budget=BUDGET) is False:
            yield row | {"relation": "never true"}
        return
    for index in indexes:
        for other in index.match(example)[:MOST_COMPARED]:
            if other == id:
                continue
            theirs = index[other].expression
            if relate.decide_covers(theirs, own, budget=BUDGET) is not True:
                continue
            same = relate.decide_covers(own, theirs, budget=BUDGET) is True
            if not same or other < id:
                relation = "duplicate" if same else "covered"
                yield row | {"relation": relation, "other": other, "other_expression": str(theirs)}
