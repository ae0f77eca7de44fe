"""`tamis.spark.flow`: rules with memory over a table or a stream of events."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.events.absent_attributes import compared
from tamis.spark.events.names import ambiguous_paths, ignores_case, spark_paths
from tamis.spark.flows.definition import Definition, add_queries, read_definition
from tamis.spark.flows.frames import declared_schema, key_kinds, order_kinds, possible_keys, stream_frame
from tamis.spark.flows.keys import Key, Split, choose_key, split_of
from tamis.spark.flows.query_store import QueryStore, Settings
from tamis.spark.flows.report import FlowReport
from tamis.spark.flows.stream import StreamQueries, refuse_without_state, told_by_stream
from tamis.spark.flows.table import told_by_table
from tamis.spark.store.pins import refuse_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def flow(
    events: "DataFrame | Mapping[str, DataFrame]",
    queries: Any,
    *,
    key: str | Sequence[str] | None = None,
    time: str | Mapping[str, str] | None = None,
    unit: str | Mapping[str, str] | None = None,
    lateness: Any = None,
    order: str | Sequence[str] = (),
    buckets: int = 32,
    limit: int | None = None,
    on_limit: Literal["refuse", "shed"] = "refuse",
    late: bool = False,
) -> "DataFrame":
    """The results of rules with memory over a table or a stream of events: `tamis.Flow` on Spark.

    `events` is a DataFrame, or one for each stream by name. `queries` is a mapping of names to texts, a
    list of (name, text) or (name, text, stream), a DataFrame (`id`, `expression` and optionally `on`), the
    path of a file of rules as `tamis flow` reads it, or a `QueryStore`. `time`, `unit` and `lateness` are
    those of `Flow.stream`, for all streams or by stream.

    Queries that partition by the attributes of `key` run in parallel; without `key`, it is chosen from the
    queries. The others see all events in one task, with a warning; `tamis.spark.explain` shows the plan.
    Events of equal times are evaluated in the order of the columns that `order` names.

    The result has `query`, `kind` ("+" or "-"), `time`, `row` (JSON: the values of a rule's windowed terms,
    or the columns of a join) and `events`, an array of JSON texts: the events that made it true. With
    `late=True`, events that were not evaluated are rows too, of the kinds "late" and "untimed" (without a
    usable time).

    A table is evaluated to its end. A stream keeps its state in Spark's state store, in `buckets` parts,
    which belong to its checkpoint; it needs Spark 4.0 and RocksDB, and counts late events in the metric
    `tamis` of its progress. `limit` bounds the state of each task, or bucket.

    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> logins = spark.createDataFrame(
    ...     [(0, "ann", False), (60, "ann", False), (70, "bob", False), (120, "ann", False),
    ...      (130, "ann", True)], "ts int, user string, ok boolean")
    >>> queries = {"burst": "count(* WHERE NOT ok BY user LAST 10m) >= 3 AND NOT ok",
    ...            "guessed": "SEQUENCE (a: NOT ok){3,} THEN (b: ok) WITHIN 10 MINUTES BY user"}
    >>> told = tamis.spark.flow(logins, queries, time="ts")
    >>> told.select("query", "kind", "time").orderBy("time").show()
    +-------+----+-------------------+
    |  query|kind|               time|
    +-------+----+-------------------+
    |  burst|   +|1970-01-01 00:02:00|
    |guessed|   +|1970-01-01 00:02:10|
    +-------+----+-------------------+
    <BLANKLINE>
    >>> print(tamis.spark.explain(told))
    streams        events
    by key         user: 2 queries in parallel (burst, guessed)
    order          time, then a hash of the event
    """
    order = [order] if isinstance(order, str) else list(order)
    definition, store = _definition(
        events, queries, {"time": time, "unit": unit, "lateness": lateness}, limit=limit, on_limit=on_limit
    )
    given = dict(events) if isinstance(events, Mapping) else {definition.streams[0].name: events}
    streaming = _is_streaming(given)
    follows = store is not None and streaming
    splits = _splits(definition, given, may_lack_columns=follows)
    chosen = _key(key, splits, given) if store is None else store.key
    key_kinds(given, chosen)
    order_kinds(given, order)
    by_key = {name: query for name, query in definition.queries.items() if splits[name].allows(chosen)}
    rest = {name: query for name, query in definition.queries.items() if name not in by_key}
    chosen = chosen if by_key or follows else ()
    report = FlowReport(
        list(given),
        chosen,
        [] if follows else list(by_key),
        {} if follows else {name: splits[name].why for name in rest},
        order,
        buckets if streaming and chosen else 1 if streaming else None,
        queries.url if follows else None,
    )
    if (warning := report.warning()) is not None:
        warnings.warn(warning, stacklevel=2)
    frames = [stream_frame(given[stream.name], stream, chosen, order) for stream in definition.streams]
    if streaming:
        refuse_without_state(frames[0].sparkSession)
        asked = StreamQueries(by_key, rest, key=chosen)
        if follows:
            refuse_stream(queries.url)
            asked = StreamQueries(store=queries.url, key=chosen)
        told = told_by_stream(frames, definition, asked, order, buckets=buckets, late=late)
    else:
        told = told_by_table(frames, definition, by_key, rest, order, late=late)
    result = told.withColumn("time", sf.timestamp_micros("time"))
    result.__dict__["tamis"] = report
    return result


def _definition(
    events: "DataFrame | Mapping[str, DataFrame]", queries: Any, settings: Mapping[str, Any], **limits: Any
) -> tuple[Definition, Settings | None]:
    """Streams and queries, and the settings of the store that they come from, if they do."""
    if not isinstance(queries, QueryStore):
        names = list(events) if isinstance(events, Mapping) else None
        return read_definition(queries, names, settings, **limits), None
    for name, value in settings.items():
        if value is not None:
            raise ArgumentError(f"{name}= is fixed by the store of queries, {queries.url}")
    frame = next(iter(events.values())) if isinstance(events, Mapping) else events
    store = queries.settings(frame.sparkSession)
    known = [stream.name for stream in store.streams]
    given = list(events) if isinstance(events, Mapping) else known[:1]
    if sorted(given) != sorted(known):
        raise ArgumentError(f"the store is about the streams {', '.join(known)}; give a DataFrame for each")
    return Definition(store.streams, queries.queries(frame.sparkSession), **limits), store


def _is_streaming(given: Mapping[str, "DataFrame"]) -> bool:
    kinds = {name: frame.isStreaming for name, frame in given.items()}
    if len(set(kinds.values())) > 1:
        table = next(name for name, streams in kinds.items() if not streams)
        raise ArgumentError(
            f"{table!r} is a table and other events are a stream: a table has no end that a stream could "
            "wait for. Read both as streams, or both as tables"
        )
    return any(kinds.values())


def _splits(
    definition: Definition, given: Mapping[str, "DataFrame"], *, may_lack_columns: bool
) -> dict[str, Split]:
    """What each query can be split by; a query that asks for a column which is not there is refused.

    Unless it `may_lack_columns`: a store may get such a query while a stream runs, and then the stream must
    start again, too. There is a warning.
    """
    schemas = {}
    for name, frame in given.items():
        unreadable = ambiguous_paths(frame.schema, ignore_case=ignores_case(frame.sparkSession))
        schemas[name] = declared_schema(frame.schema, unreadable)
        if unreadable and schemas[name] is None:
            shown = ", ".join(sorted(unreadable))
            warnings.warn(f"stream {name!r}: queries do not see ambiguous columns ({shown})", stacklevel=3)
    trial, checked = definition.flow(), definition.flow({}, schemas)
    splits = {name: split_of(trial, name) for name in definition.queries}
    for name, split in splits.items():
        try:
            add_queries(checked, {name: definition.queries[name]})
            for stream in split.streams:
                absent = compared(split.attributes or (), spark_paths(given[stream].schema)).warning()
                if absent is not None:
                    raise ArgumentError(f"query {name!r}, stream {stream!r}: {absent}")
        except ArgumentError as error:
            if not may_lack_columns:
                raise
            warnings.warn(str(error), stacklevel=3)
    return splits


def _key(
    key: str | Sequence[str] | None, splits: Mapping[str, Split], given: Mapping[str, "DataFrame"]
) -> Key:
    if key is None:
        return choose_key(splits, possible_keys(given))
    return (key,) if isinstance(key, str) else tuple(key)
