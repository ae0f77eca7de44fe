"""Rules that are valid for some time, matched as of the time of each event.

How it could be wrong: an end that belongs to both neighbours or to none, a session's time zone taken for UTC,
a rule that cannot be read and hides its error, scores that change, versions of one rule mixed up.
"""

from typing import Any

import pytest
from pyspark.sql import SparkSession

import tamis.spark
from seeds import first_of
from tamis.errors import ArgumentError
from tamis.spark import valid_at

RULES = """
    SELECT * FROM VALUES
        ('a', 'x > 1 OR y > 1', NULL, TIMESTAMP '2026-05-01 00:00:00'),
        ('b', 'x > 2', TIMESTAMP '2026-05-01 00:00:00', TIMESTAMP '2026-06-01 12:30:00.000001'),
        ('c', 'NOT x > 3', TIMESTAMP '2026-06-01 12:30:00.000001', NULL),
        ('d', 'x > 0', NULL, NULL),
        ('e', 'x > 0', TIMESTAMP '2026-06-01', TIMESTAMP '2026-06-01')
    AS (id, expression, valid_from, valid_to)
"""
EVENTS = """
    SELECT row_number() OVER (ORDER BY ts, x) AS event_id, x, IF(x = 0, 2, NULL) AS y, ts FROM
    (SELECT explode(sequence(0, 6)) AS x) CROSS JOIN
    (SELECT explode(array(
        NULL, TIMESTAMP '2026-04-30 23:59:59.999999', TIMESTAMP '2026-05-01 00:00:00',
        TIMESTAMP '2026-05-20 10:00:00', TIMESTAMP '2026-06-01 12:30:00',
        TIMESTAMP '2026-06-01 12:30:00.000001', TIMESTAMP '2027-01-01')) AS ts)
"""
TRUTH = """
    SELECT event_id, id FROM events CROSS JOIN rules WHERE
        (valid_from IS NULL OR ts >= valid_from) AND (valid_to IS NULL OR ts < valid_to) AND
        CASE id WHEN 'a' THEN x > 1 OR y > 1 WHEN 'b' THEN x > 2 WHEN 'c' THEN NOT x > 3 ELSE x > 0 END
"""


@pytest.fixture
def tables(spark: SparkSession) -> Any:
    rules, events = spark.sql(RULES), spark.sql(EVENTS).cache()
    events.createOrReplaceTempView("events")
    rules.createOrReplaceTempView("rules")
    return rules, events


@pytest.mark.parametrize("zone", first_of(["America/New_York", "UTC"], 1))
def test_rules_match_as_of_the_time_of_the_event(spark: SparkSession, tables: Any, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rules, events = spark.sql(RULES), spark.sql(EVENTS)
        events.createOrReplaceTempView("events")
        rules.createOrReplaceTempView("rules")
        truth = {tuple(row) for row in spark.sql(TRUTH).collect()}
        found = tamis.spark.match(events, valid_at(rules, "ts")).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert {(row.event_id, row.subscription) for row in found} == truth
    assert {id for _, id in truth} == {"a", "b", "c", "d"}


def test_a_store_keeps_what_was_valid(spark: SparkSession, tables: Any, tmp_path: Any) -> None:
    rules, events = tables
    store = tamis.spark.SubscriptionStore(tmp_path / "store")
    changes = rules.selectExpr("'add' AS op", "1L AS sequence", "*")
    assert store.apply_changes(valid_at(changes, "ts")).applied == 5
    truth = {tuple(row) for row in spark.sql(TRUTH).collect()}
    found = tamis.spark.match(events, store).collect()
    assert {(row.event_id, row.subscription) for row in found} == truth


def test_bounds_change_no_score_and_hide_no_error(spark: SparkSession) -> None:
    rules = spark.sql(
        "SELECT 'a' AS id, '(x > 1)^2 AND (y > 1)^3' AS expression, TIMESTAMP '2026-01-01' AS starts "
        "UNION ALL SELECT 'b', 'x >', TIMESTAMP '2026-01-01'"
    )
    events = spark.sql("SELECT 1 AS event_id, 5 AS x, 5 AS y, TIMESTAMP '2026-02-01' AS ts")
    bounded = valid_at(rules, "ts", valid_from="starts")
    matches, bad = tamis.spark.match(events, bounded, k=1, score="relevance", on_error="quarantine")
    assert [(row.subscription, row.score) for row in matches.collect()] == [("a", 5.0)]
    assert [(row.id, row.expression, row.column) for row in bad.collect()] == [("b", "x >", 4)]


def test_what_cannot_bound_is_named(spark: SparkSession) -> None:
    rules = spark.sql("SELECT 'a' AS id, 'x > 1' AS expression, 5 AS valid_from")
    with pytest.raises(ArgumentError, match="'valid_from' must be a timestamp or a date, not int"):
        valid_at(rules, "ts")
    with pytest.raises(ArgumentError, match="no column 'starts' or 'ends'"):
        valid_at(rules, "ts", valid_from="starts", valid_to="ends")
