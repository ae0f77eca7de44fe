"""Columns of rules that are called as ours but for their case, or beside others that are."""

from typing import Any

import pytest

import tamis
import tamis.spark
from tamis.spark.building.subscriptions import normalised
from tamis.spark.flows.definition import _from_table
from tamis.spark.plans.by_source import collect_advertisements
from tamis.spark.store.change_data_feed import as_changes

pytestmark = pytest.mark.spark


def test_details_in_another_case_are_not_ignored(spark: Any) -> None:
    rules = spark.sql(
        "SELECT 'a' AS ID, 'x > 1' AS Expression, 2.0D AS Priority, array('t') AS TAGS, 1 AS other"
    )
    [row] = normalised(rules).collect()
    assert row.asDict() == {"id": "a", "expression": "x > 1", "priority": 2.0, "tags": ["t"]}
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(tamis.ArgumentError, match="no column 'id'; they have ID, Expression"):
            normalised(rules)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    twice = spark.sql("SELECT 'a' AS id, 'x > 1' AS expression, 1 AS Priority, 2 AS PRIORITY")
    with pytest.raises(tamis.ArgumentError, match="'priority' may be Priority or PRIORITY"):
        normalised(twice)


def test_bounds_in_another_case_are_not_ignored(spark: Any) -> None:
    rules = spark.sql(
        "SELECT 'a' AS id, 'x = 1' AS Expression, DATE '2026-05-01' AS Valid_To, NULL AS valid_from"
    )
    [row] = tamis.spark.valid_at(rules, "ts").collect()
    assert row.asDict() == {"id": "a", "expression": "x = 1 AND (ts < TIMESTAMP '2026-05-01 00:00:00')^0"}
    [asked] = tamis.spark.valid_at(rules, "ts", valid_to="VALID_TO").collect()
    assert asked.expression == row.expression
    with pytest.raises(tamis.ArgumentError, match="no column 'until'; they have id, expression"):
        tamis.spark.valid_at(rules, "ts", valid_to="until")


def test_a_followed_table_may_have_columns_called_as_ours(spark: Any) -> None:
    """Its own `id`, where `id` is another column; `op` and `sequence` in any case; names with anything."""
    feed = spark.sql("""
        SELECT 7 AS id, 'a' AS `_r``u.le`, 'x > 1' AS Text, 'EXPR' AS EXPRESSION, 'b' AS OP, 3 AS Sequence,
               'insert' AS _change_type, 4L AS _commit_version""")
    changes = as_changes(feed, {"id": "_r`u.le", "expression": "Text"})
    [row] = changes.collect()
    assert row.asDict() == {"op": "add", "sequence": 9, "id": "a", "expression": "x > 1"}
    plain = as_changes(feed.selectExpr("id AS ID", "EXPRESSION", "_change_type", "_commit_version"))
    assert plain.columns == ["op", "sequence", "id", "expression"]
    named = as_changes(feed, {"id": "ID", "expression": "expression", "Priority": "TEXT"})
    [row] = named.collect()
    assert (row.id, row.expression, row["Priority"]) == (7, "EXPR", "x > 1")


def test_queries_and_advertisements_in_another_case_are_not_ignored(spark: Any) -> None:
    queries = spark.sql("SELECT 'q' AS ID, 'v > 1' AS Expression, 'b' AS `ON`")
    assert _from_table(queries) == {"q": {"query": "v > 1", "on": "b"}}
    offers = spark.sql("SELECT 'a' AS Source, 'x > 1' AS EXPRESSION")
    assert list(collect_advertisements(offers)) == ["a"]
