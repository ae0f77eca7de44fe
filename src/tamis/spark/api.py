"""The functions that users call first: events and subscriptions in, matches out."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tamis._kernel import Query
from tamis.errors import ArgumentError
from tamis.spark.building.build_index import OnError, build, opened_on_executor
from tamis.spark.built_index import BuiltIndex, Key, report_of
from tamis.spark.events.parquet_files import match_parquet
from tamis.spark.flows.report import FlowReport
from tamis.spark.matching.answer import TableQuery, match_query
from tamis.spark.plans.choose import PlanReport
from tamis.spark.plans.shape import ShapeName
from tamis.spark.store.snapshot_file import published_snapshot
from tamis.spark.store.subscription_store import SubscriptionStore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    Subscriptions = DataFrame | BuiltIndex | SubscriptionStore | str | os.PathLike[str]


def match(
    events: "DataFrame",
    subscriptions: "Subscriptions",
    *,
    key: Key = "event_id",
    k: int | None = None,
    score: Any = None,
    min_score: float | None = None,
    dimensions: Iterable[str] | None = None,
    weights: Mapping[str, float] | str | None = None,
    tags: Iterable[str] | None = None,
    tags_all: Iterable[str] | None = None,
    tags_none: Iterable[str] | None = None,
    now: datetime | None = None,
    payload: bool | None = None,
    spread: str | Iterable[str] = (),
    intervals: Sequence[str] = (),
    source: str = "source",
    shape: ShapeName = "auto",
    on_error: OnError = "fail",
    directory: str | os.PathLike[str] | None = None,
    **building: Any,
) -> Any:
    """All matches, or with `k` the best k, of each event.

    `events` is any DataFrame, batch or streaming. Its columns are attributes: structs become dotted paths,
    arrays stay arrays, a map column `m` gives `m.key`; `spread` names map or struct columns whose keys or
    fields are attributes themselves. `key` names the column or columns to carry through; `"*"` is all.
    `score` ("priority", "relevance", "relaxed", a formula or a function), `min_score`, `dimensions` and
    `weights` are those of `Index.top_k_batch`.

    `subscriptions` is a DataFrame (`id`, `expression`, and optionally `priority`, `weights`, `tags`,
    `payload`, `expires`, `starts`), which is indexed at once on the executors; or the path of a snapshot or
    of a directory with an index; or a `BuiltIndex` or `SubscriptionStore`.

    `shape` says how matches come back from the Python workers: as "rows", or as a "column" of lists that
    Spark explodes, which keeps carried columns in the JVM and the watermark of a stream; "auto" chooses, and
    `explain` says why.

    The result has the key columns, `subscription`, for the best k also `score` and `rank`, then `version`
    and, where subscriptions have any, `payload`. A subscription that does not parse makes `match` raise
    `InvalidSubscriptionsError`; with `on_error="quarantine"` the others are used, and the result is a pair:
    the matches and a DataFrame of what was left out.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = [("a", "user.age > 21"), ("b", "user.age >")]
    >>> rules = spark.createDataFrame(rules, "id string, expression string")
    >>> events = spark.sql("SELECT 1 AS event_id, named_struct('age', 27) AS user")
    >>> matches, bad = match(events, rules, on_error="quarantine")
    >>> [row.subscription for row in matches.collect()], [row.id for row in bad.collect()]
    (['a'], ['b'])
    """
    building = {"sample": None if events.isStreaming else events, **building}
    index = index_of(events.sparkSession, subscriptions, on_error=on_error, directory=directory, **building)
    matches = index.match(
        events,
        key=key,
        k=k,
        score=score,
        min_score=min_score,
        dimensions=dimensions,
        weights=weights,
        tags=tags,
        tags_all=tags_all,
        tags_none=tags_none,
        now=now,
        payload=payload,
        spread=spread,
        intervals=intervals,
        source=source,
        shape=shape,
    )
    return (matches, index.quarantined) if on_error == "quarantine" else matches


def match_column(
    events: "DataFrame", subscriptions: "Subscriptions", *, k: int | None = None, **options: Any
) -> "Column":
    """The matches of each event as a column: a list of (id), or with `k` of (id, score, rank).

    For `events.withColumn`, `select` or `filter` of the same DataFrame. Rows are not changed or moved:
    filters are pushed below the column, watermarks survive, and the other columns never leave the JVM. The
    matches of an Arrow batch of events are held in memory; if events have thousands, use `match`, which
    returns one row per match. Takes the options of `match`, except `key` and `payload`. Needs Spark 4.1 or
    later, and the replicated plan.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1", 2.0), ("b", "x > 2", 3.0)],
    ...                               "id string, expression string, priority double")
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> listed = events.withColumn("best", match_column(events, rules, k=1))
    >>> [(row.x, [tuple(best) for best in row.best]) for row in listed.orderBy("event_id").collect()]
    [(3, [('b', 3.0, 1)]), (0, [])]
    """
    asking = ("tags", "tags_all", "tags_none", "now", "spread", "intervals")
    ranking = ("score", "min_score", "dimensions", "weights")
    asked = {name: options.pop(name) for name in (*asking, *ranking) if name in options}
    return index_of(events.sparkSession, subscriptions, **options).match_column(events, k=k, **asked)


def count(
    events: "DataFrame", subscriptions: "Subscriptions", *, key: Key = "event_id", **options: Any
) -> "DataFrame":
    """The number of subscriptions that each event satisfies; faster than counting matches.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> [(row.event_id, row.matches) for row in count(events, rules).orderBy("event_id").collect()]
    [(1, 2), (2, 0)]
    """
    index, asked = _split(events, subscriptions, options)
    return index.count(events, key=key, **asked)


def exists(
    events: "DataFrame", subscriptions: "Subscriptions", *, key: Key = "event_id", **options: Any
) -> "DataFrame":
    """Whether each event satisfies any subscription.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> [(row.event_id, row.matched) for row in exists(events, rules).orderBy("event_id").collect()]
    [(1, True), (2, False)]
    """
    index, asked = _split(events, subscriptions, options)
    return index.exists(events, key=key, **asked)


def unmatched(
    events: "DataFrame", subscriptions: "Subscriptions", *, key: Key = "event_id", **options: Any
) -> "DataFrame":
    """The events that satisfy no subscription; `key="*"` returns them with all their columns.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> [(row.event_id, row.x) for row in unmatched(events, rules, key="*").collect()]
    [(2, 0)]
    """
    index, asked = _split(events, subscriptions, options)
    return index.unmatched(events, key=key, **asked)


def count_by_subscription(events: "DataFrame", subscriptions: "Subscriptions", **options: Any) -> "DataFrame":
    """The number of events that satisfy each subscription, counted without a row per match.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 2")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3), (2, 2)], "event_id int, x int")
    >>> sorted((row.subscription, row.matches) for row in count_by_subscription(events, rules).collect())
    [('a', 2), ('b', 1)]
    """
    index, asked = _split(events, subscriptions, options)
    return index.count_by_subscription(events, **asked)


def match_files(
    spark: "SparkSession",
    path: str | os.PathLike[str],
    subscriptions: "Subscriptions",
    *,
    k: int | None = None,
    score: Any = None,
    tags: Iterable[str] | None = None,
    tags_all: Iterable[str] | None = None,
    tags_none: Iterable[str] | None = None,
    now: datetime | None = None,
    payload: bool | None = None,
    **building: Any,
) -> "DataFrame":
    """Like `match`, for events in Parquet files that the tasks read themselves.

    Rows do not pass through the JVM, but every row of the answer has a path. On two cores, this was twice as
    fast as `match` on `spark.read.parquet` for events with 50 columns and hardly any match, and half as fast
    for events with ten columns and 13 matches. Measure before you choose it.

    The keys are the columns `path` and `row` (counted from 0 in each file). `path` is a file, a folder, or a
    Delta table, whose files of the current version are read. A Delta table that its files alone do not define
    (partitions, deletion vectors, column mapping) is refused, and so is a partitioned folder.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    >>> folder = tempfile.mkdtemp()
    >>> spark.createDataFrame([(0,), (2,)], "x int").coalesce(1).write.parquet(f"{folder}/events")
    >>> [(row.row, row.subscription) for row in match_files(spark, f"{folder}/events", rules).collect()]
    [(1, 'a')]
    """
    index = index_of(spark, subscriptions, **building)
    payload = index.version.payloads if payload is None else payload
    selection = {"tags": tags, "tags_all": tags_all, "tags_none": tags_none, "now": now}
    query = match_query({"k": k, "score": score}, selection, payload=payload)
    return match_parquet(spark, os.fspath(path), index, query)


def count_files(
    spark: "SparkSession",
    path: str | os.PathLike[str],
    subscriptions: "Subscriptions",
    *,
    tags: Iterable[str] | None = None,
    tags_all: Iterable[str] | None = None,
    tags_none: Iterable[str] | None = None,
    now: datetime | None = None,
    **building: Any,
) -> "DataFrame":
    """Like `count`, for events in Parquet files that the tasks read themselves, as in `match_files`.

    The result has one row per event: `path`, `row`, `matches` and `version`.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1"), ("b", "x > 0")], "id string, expression string")
    >>> folder = tempfile.mkdtemp()
    >>> spark.createDataFrame([(0,), (2,)], "x int").coalesce(1).write.parquet(f"{folder}/events")
    >>> sorted((row.row, row.matches) for row in count_files(spark, f"{folder}/events", rules).collect())
    [(0, 0), (1, 2)]
    """
    index = index_of(spark, subscriptions, **building)
    query = Query("all", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
    return match_parquet(spark, os.fspath(path), index, TableQuery("count", query))


def open_index(spark: "SparkSession", path: str | os.PathLike[str]) -> BuiltIndex:
    """The index in a directory that `build` or a `SubscriptionStore` wrote, or in a snapshot file.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("a", "x > 1")
    >>> folder = tempfile.mkdtemp()
    >>> index.save(f"{folder}/rules.tamis")
    >>> open_index(SparkSession.builder.getOrCreate(), f"{folder}/rules.tamis").version.subscriptions
    1
    """
    url = os.fspath(path)
    if url.endswith(".tamis"):
        return published_snapshot(spark, url)
    return opened_on_executor(spark, url)


def explain(matches: "DataFrame") -> PlanReport | FlowReport:
    """The plan behind a result of `match`, `flow` and the like: the choice, sizes and reasons. Print it.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    >>> events = spark.createDataFrame([(1, 3)], "event_id int, x int")
    >>> str(explain(match(events, rules))).splitlines()[0].split(":")[0]
    'plan           replicated'
    """
    report = matches.__dict__.get("tamis")
    return report if isinstance(report, FlowReport) else report_of(matches)


_ASKING = ("tags", "tags_all", "tags_none", "now", "spread", "intervals", "source")


def _split(
    events: "DataFrame", subscriptions: "Subscriptions", options: dict[str, Any]
) -> tuple[BuiltIndex, dict[str, Any]]:
    """The index, and the options of the query (not of the build)."""
    asking = {name: options.pop(name) for name in _ASKING if name in options}
    return index_of(events.sparkSession, subscriptions, **options), asking


def index_of(spark: "SparkSession", subscriptions: "Subscriptions", **building: Any) -> BuiltIndex:
    """The index for any kind of `subscriptions` argument."""
    ready = isinstance(subscriptions, BuiltIndex | SubscriptionStore | str | os.PathLike)
    ignored = [name for name, given in building.items() if name != "sample" and given not in (None, "fail")]
    if ready and ignored:
        raise ArgumentError(f"{', '.join(ignored)}: these are about building an index, and this one is built")
    if isinstance(subscriptions, BuiltIndex):
        return subscriptions
    if isinstance(subscriptions, str | os.PathLike):
        return open_index(spark, subscriptions)
    if isinstance(subscriptions, SubscriptionStore):
        return subscriptions.built_index(spark)
    if hasattr(subscriptions, "mapInArrow"):  # classic and Connect have classes of their own
        return build(subscriptions, **building)
    raise TypeError(
        "subscriptions are a DataFrame, the path of an index, a BuiltIndex or a SubscriptionStore, "
        f"not {type(subscriptions).__name__}"
    )
