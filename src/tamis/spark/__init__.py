"""The data pipeline: matches a table or stream of events with a table or stream of subscriptions.

DataFrames in, DataFrames out. It needs no JVM handle, so classic and Connect sessions work alike.

>>> from pyspark.sql import SparkSession
>>> import tamis.spark
>>> spark = SparkSession.builder.getOrCreate()
>>> rules = spark.createDataFrame([("ad-7", "age > 21", 2.0), ("ad-8", "age > 30", 3.0)],
...                               "id string, expression string, priority double")
>>> events = spark.createDataFrame([(1, 27), (2, 40)], "event_id int, age int")
>>> tamis.spark.match(events, rules, k=1).orderBy("event_id").show()
+--------+------------+-----+----+-------+
|event_id|subscription|score|rank|version|
+--------+------------+-----+----+-------+
|       1|        ad-7|  2.0|   1|      1|
|       2|        ad-8|  3.0|   1|      1|
+--------+------------+-----+----+-------+
<BLANKLINE>
"""

try:
    import pyspark  # noqa: F401
except ImportError as missing:
    from tamis._extras import missing_extra

    raise ImportError(missing_extra("tamis.spark", "spark")) from missing

from tamis.spark.api import (
    count,
    count_by_subscription,
    count_files,
    exists,
    explain,
    match,
    match_column,
    match_files,
    open_index,
    unmatched,
)
from tamis.spark.building.build_index import build
from tamis.spark.building.subscriptions import InvalidSubscriptionsError, validate
from tamis.spark.building.validity import valid_at
from tamis.spark.built_index import BuiltIndex
from tamis.spark.flows.flow import flow
from tamis.spark.flows.query_store import QueryStore
from tamis.spark.flows.report import FlowReport
from tamis.spark.history.relations import related_rules
from tamis.spark.history.report import write_rules_report
from tamis.spark.history.rules import rules
from tamis.spark.history.what_if import backfill, backtest, diff
from tamis.spark.plans.choose import PlanReport
from tamis.spark.sql import register, register_match
from tamis.spark.store.hadoop import hadoop_directory
from tamis.spark.store.subscription_store import SubscriptionStore
from tamis.store.directory import open_others_with

open_others_with(hadoop_directory)

__all__ = [
    "BuiltIndex",
    "FlowReport",
    "InvalidSubscriptionsError",
    "PlanReport",
    "QueryStore",
    "SubscriptionStore",
    "backfill",
    "backtest",
    "build",
    "count",
    "count_by_subscription",
    "count_files",
    "diff",
    "exists",
    "explain",
    "flow",
    "match",
    "match_column",
    "match_files",
    "open_index",
    "register",
    "register_match",
    "related_rules",
    "rules",
    "unmatched",
    "valid_at",
    "validate",
    "write_rules_report",
]
