"""An index that was built on a cluster: its contents, its directory, and queries.

`tamis.spark.build` creates one, and `tamis.spark.match` does so implicitly. A query returns a DataFrame,
batch or streaming like the events, whose tasks all use one version of the index.
"""

import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from tamis._kernel import Query
from tamis.errors import ArgumentError
from tamis.spark.events.absent_attributes import absent_attributes
from tamis.spark.events.columns import (
    Projected,
    attribute_values,
    ddl,
    key_columns,
    orderable,
    project,
    quoted,
    refuse_taken,
)
from tamis.spark.events.names import ignores_case
from tamis.spark.matching.answer import KEY_PREFIX, TableQuery, match_query
from tamis.spark.matching.task import Source, match_task, refuse_relaxed_sources
from tamis.spark.plans.choose import PlanReport
from tamis.spark.plans.routing import (
    EVENT,
    by_shard,
    merge_order,
    merge_task,
    route_task,
    routed_schema,
    shard_task,
)
from tamis.spark.plans.shape import Shape, ShapeName, choose_shape, list_function, refuse_lists
from tamis.spark.session import odd_zone, wants_reports
from tamis.spark.store.pins import refuse_stream
from tamis.store.versions import Version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Key = str | Sequence[str] | None

_ANSWER = "__tamis_answer"
_MATCH = "__tamis_match"

_ASKED = (("k", "score", "min_score", "dimensions"), ("tags", "tags_all", "tags_none", "now"))
"""What a query says of ranking, and of the subscriptions that it is about."""

_RESULT = ("subscription", "score", "rank", "version", "payload", "matches", "matched")


@dataclass(frozen=True)
class BuiltIndex:
    """An index in a directory that the executors reach.

    If `follows` is true, each micro-batch of a streaming query uses the latest version at its start;
    otherwise all queries use the one described by `version`.

    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    >>> index = tamis.spark.build(rules)
    >>> index.version.subscriptions, index.version.plan
    (1, 'replicated')

    Every query is a method that returns a DataFrame:

    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> [(row.event_id, row.subscription) for row in index.match(events).collect()]
    [(1, 'a')]
    >>> sorted((row.event_id, row.matches) for row in index.count(events).collect())
    [(1, 1), (2, 0)]
    >>> sorted((row.event_id, row.matched) for row in index.exists(events).collect())
    [(1, True), (2, False)]
    >>> [row.event_id for row in index.unmatched(events).collect()]
    [2]
    >>> [(row.subscription, row.matches) for row in index.count_by_subscription(events).collect()]
    [('a', 1)]
    """

    url: str
    version: Version
    follows: bool = False
    keeps_reports: bool = True
    """Whether tasks may leave reports in the directory."""
    moment: int | None = None
    """The moment (UTC microseconds) that decides what has expired; that of each query unless it is fixed."""
    quarantined: "DataFrame | None" = None
    """The subscriptions that were left out, when `on_error="quarantine"` asked for it."""

    def match(
        self,
        events: "DataFrame",
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
    ) -> "DataFrame":
        """All matches, or with `k` the best k, of each event. See `tamis.spark.match`."""
        query = match_query(
            {"k": k, "score": score, "min_score": min_score, "dimensions": dimensions},
            {"tags": tags, "tags_all": tags_all, "tags_none": tags_none, "now": now},
            payload=self.version.payloads if payload is None else payload,
            intervals=tuple(intervals),
            weights=weights,
        )
        return self._ask(events, query, key, spread, source, shape=shape)

    def match_column(
        self,
        events: "DataFrame",
        *,
        weights: Mapping[str, float] | str | None = None,
        spread: str | Iterable[str] = (),
        intervals: Sequence[str] = (),
        **asked: Any,
    ) -> "Column":
        """The matches of each event as a column of lists. See `tamis.spark.match_column`."""
        ranking, selection = ({name: asked.pop(name, None) for name in names} for names in _ASKED)
        if asked:
            raise ArgumentError(f"match_column takes no {', '.join(asked)}")
        query = match_query(ranking, selection, intervals=tuple(intervals), weights=weights)
        refuse_lists(self.version.plan, query)
        answer, _, _ = self._answer_column(events, query, spread, stacklevel=3)
        return answer.getField("matches")

    def _answer_column(
        self, events: "DataFrame", query: TableQuery, spread: str | Iterable[str], *, stacklevel: int
    ) -> tuple["Column", list[str], str | None]:
        """The answer column, problems with the events, and the name of the query's reports."""
        streaming = events.isStreaming
        asked_for = None if streaming and self.follows else self.version.attributes
        prefix = query.weights if isinstance(query.weights, str) else None
        ignore_case = ignores_case(events.sparkSession)
        values, odd = attribute_values(events.schema, asked_for, spread, also=prefix, ignore_case=ignore_case)
        noted = self._odd(events, spread, odd, ignore_case=ignore_case, stacklevel=stacklevel + 1)
        source, query = self._source(
            query, streaming, ignore_case=ignore_case, reports=wants_reports(events.sparkSession)
        )
        event = f"struct({', '.join(values) or 'CAST(NULL AS boolean) AS __tamis_nothing'})"
        function = list_function(source, query, self.version.ids)
        return function(sf.expr(event)), noted, source.report_name

    def _odd(
        self,
        events: "DataFrame",
        spread: str | Iterable[str],
        odd: list[str],
        *,
        ignore_case: bool,
        stacklevel: int,
    ) -> list[str]:
        """Problems with columns that rules use, for the report; probable mistakes raise a warning."""
        absent = absent_attributes(events.schema, self.version.attributes, spread, ignore_case=ignore_case)
        missing = [*filter(None, [absent.warning()])]
        odd = [*odd, *odd_zone(events.sparkSession, self.version.attributes)]
        for warning in [*odd, *(missing if absent.meant else [])]:
            warnings.warn(warning, stacklevel=stacklevel + 1)
        return [*odd, *missing]

    def _source(
        self, query: TableQuery, streaming: bool, *, ignore_case: bool, reports: bool
    ) -> tuple[Source, TableQuery]:
        """Where the tasks of a query find their version, and the query at its moment."""
        if streaming:
            refuse_stream(self.url)
        else:
            query = query.at(datetime.now(UTC) if self.moment is None else self.moment)
        refuse_relaxed_sources(self.version, query)
        run = uuid.uuid4().hex if self.keeps_reports else None
        planned = None if streaming and self.follows else self.version
        ids = self.version.ids if self.version.subscriptions else None
        source = Source(self.url, planned, run, ids=ids, ignore_case=ignore_case, reports=reports)
        return source, query

    def count(self, events: "DataFrame", *, key: Key = "event_id", **options: Any) -> "DataFrame":
        """The number of subscriptions that each event satisfies: the key columns and `matches`."""
        return self._ask_plain("count", events, key, **options)

    def exists(self, events: "DataFrame", *, key: Key = "event_id", **options: Any) -> "DataFrame":
        """Whether each event satisfies any subscription: the key columns and `matched`."""
        return self._ask_plain("exists", events, key, **options)

    def unmatched(self, events: "DataFrame", *, key: Key = "event_id", **options: Any) -> "DataFrame":
        """The events that satisfy no subscription."""
        return self._ask_plain("unmatched", events, key, **options)

    def count_by_subscription(self, events: "DataFrame", **options: Any) -> "DataFrame":
        """The number of events that satisfy each subscription, if any; batch DataFrames only."""
        if events.isStreaming:
            raise ArgumentError(
                "count_by_subscription adds up a whole table; for a stream, group the result of match by "
                "subscription, with a watermark"
            )
        partial = self._ask_plain("by_subscription", events, None, **options)
        counted = partial.groupBy("subscription", "version").agg(sf.sum("matches").alias("matches"))
        return with_report(counted.select("subscription", "matches", "version"), report_of(partial))

    def _ask_plain(
        self,
        mode: Any,
        events: "DataFrame",
        key: Key,
        *,
        tags: Iterable[str] | None = None,
        tags_all: Iterable[str] | None = None,
        tags_none: Iterable[str] | None = None,
        now: datetime | None = None,
        spread: str | Iterable[str] = (),
        intervals: Sequence[str] = (),
        source: str = "source",
    ) -> "DataFrame":
        query = Query("all", tags=tags, tags_all=tags_all, tags_none=tags_none, now=now)
        return self._ask(events, TableQuery(mode, query, intervals=tuple(intervals)), key, spread, source)

    def _ask(
        self,
        events: "DataFrame",
        query: TableQuery,
        key: Key,
        spread: str | Iterable[str],
        source_column: str = "source",
        *,
        shape: ShapeName = "rows",
    ) -> "DataFrame":
        streaming = events.isStreaming
        # Later versions may ask for other attributes.
        asked_for = None if streaming and self.follows else self.version.attributes
        by_source = self.version.plan == "by-source"
        keys = key_columns(events, key)
        if source_column != "source" and source_column in events.columns:
            events = events.withColumn("source", sf.col(quoted(source_column)))
        chosen = choose_shape(shape, events, self.version, query, keys)
        if chosen.name == "column":
            return self._match_by_column(events, query, keys, spread, chosen)
        if by_source:
            keys = [*keys, *key_columns(events, source_column)]
        prefix = query.weights if isinstance(query.weights, str) else None
        ignore_case = ignores_case(events.sparkSession)
        projected = project(
            events, asked_for, keys, spread, taken=_RESULT, also=prefix, ignore_case=ignore_case
        )
        noted = self._odd(events, spread, projected.warnings, ignore_case=ignore_case, stacklevel=4)
        source, query = self._source(
            query, streaming, ignore_case=ignore_case, reports=wants_reports(events.sparkSession)
        )
        result = self._planned(projected, query, source, by_source)
        return with_report(result, self.report(events.sparkSession, source.report_name, noted, str(chosen)))

    def _match_by_column(
        self,
        events: "DataFrame",
        query: TableQuery,
        keys: list[str],
        spread: str | Iterable[str],
        shape: Shape,
    ) -> "DataFrame":
        """A row for each match, from lists: Spark itself repeats the keys."""
        refuse_taken(keys, _RESULT, ignore_case=ignores_case(events.sparkSession))
        answer, noted, run = self._answer_column(events, query, spread, stacklevel=5)
        kept = [sf.col(quoted(name)) for name in keys]
        listed = events.select(*kept, answer.alias(_ANSWER))
        version = sf.col(f"{_ANSWER}.version").alias("version")
        # One column until the end: a key may be called `id`, too.
        # Outer: of an inner one Spark infers a filter on the list below it, and asks for the list twice.
        exploded = sf.explode_outer(sf.col(f"{_ANSWER}.matches")).alias(_MATCH)
        rows = listed.select(*kept, version, exploded).where(sf.col(_MATCH).isNotNull())
        best = ("score", "rank") if query.mode == "top_k" else ()
        found = [sf.col(f"{_MATCH}.{name}").alias(name) for name in best]
        subscription = sf.col(f"{_MATCH}.id").alias("subscription")
        result = rows.select(*kept, subscription, *found, sf.col("version"))
        return with_report(result, self.report(events.sparkSession, run, noted, str(shape)))

    def _planned(
        self, projected: Projected, query: TableQuery, source: Source, by_source: bool
    ) -> "DataFrame":
        """The plan's steps; with `by_source`, the last key column only says where the event comes from."""
        keys = projected.keys[:-1] if by_source else projected.keys
        types = ", ".join(projected.key_types[: len(keys)])
        final = result_columns(query, types, self.version.ids)
        events = projected.events
        if self.version.plan == "replicated":
            return events.mapInArrow(match_task(source, query, keys), final)
        if query.mode not in ("all", "by_subscription") and not events.isStreaming:
            # Events are numbered on their way: a task that is tried again must number them alike.
            events = events.sortWithinPartitions(*orderable(events))
        dropped = f"{KEY_PREFIX}{len(keys)}" if by_source else None
        routed = events.mapInArrow(
            route_task(source, query, by_source), routed_schema(events.schema, dropped)
        )
        gathered = by_shard(routed, len(self.version.shards))
        if query.mode in ("all", "by_subscription"):
            return gathered.mapInArrow(shard_task(source, query, keys), final)
        partial = replace(query, mode="top_k" if query.mode == "top_k" else "count")
        # Under names of ours: PySpark hands no column to a task whose own name has a dot or a backquote.
        ours = [f"{KEY_PREFIX}{at}" for at in range(len(keys))]
        carried = [f"{name} {ddl(events.schema[name].dataType)}" for name in ours]
        numbered = ", ".join([*carried, f"{EVENT} bigint"])
        answer = shard_task(source, query, ours)
        answered = gathered.mapInArrow(answer, result_columns(partial, numbered, self.version.ids))
        together = answered.repartition(EVENT)
        if not events.isStreaming:  # Spark sorts no stream; a micro-batch is small
            together = together.sortWithinPartitions(*merge_order(query))
        return together.mapInArrow(merge_task(query, keys, ordered=not events.isStreaming), final)

    def report(
        self,
        spark: "SparkSession",
        run: str | None = None,
        warnings: Sequence[str] = (),
        shape: str = "",
    ) -> PlanReport:
        """The plan: the choice, sizes and reasons; after a query has run, also what its tasks saw."""
        return PlanReport(spark, self.url, self.version, run, list(warnings), shape)


def result_columns(query: TableQuery, key_types: str, ids: str) -> str:
    """The columns of an answer, as Spark writes a schema.

    >>> result_columns(TableQuery("all"), "`event_id` bigint", "string")
    '`event_id` bigint, subscription string, version bigint'
    """
    subscription = "subscription bigint" if ids == "int" else "subscription string"
    own = {
        "all": [subscription],
        "top_k": [subscription, "score double", "rank int"],
        "count": ["matches bigint"],
        "exists": ["matched boolean"],
        "unmatched": [],
        "by_subscription": [subscription, "matches bigint"],
    }[query.mode]
    columns = [key_types] if key_types and query.mode != "by_subscription" else []
    columns += [*own, "version bigint"]
    return ", ".join([*columns, "payload binary"] if query.payload else columns)


def with_report(result: "DataFrame", report: PlanReport) -> "DataFrame":
    """Attach the report to the DataFrame, where `tamis.spark.explain` finds it."""
    result.__dict__["tamis"] = report
    return result


def report_of(result: "DataFrame") -> PlanReport:
    """The report attached to a DataFrame."""
    report = result.__dict__.get("tamis")
    if not isinstance(report, PlanReport):
        raise ArgumentError(
            "this DataFrame is not what tamis.spark.match returned: keep that one, transformations of it "
            "have no report"
        )
    return report
