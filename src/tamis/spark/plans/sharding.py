"""Decides in tasks which subscriptions share a shard; `tamis.store.routes` has the algorithm."""

import bisect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from tamis.index import Index
from tamis.spark.building.on_executors import SHARD
from tamis.spark.matching.pairs import matched_prefixes
from tamis.store.changes import from_bytes, to_bytes
from tamis.store.routes import Place, costs_of, cut, places

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLED_SUBSCRIPTIONS = 50_000
"""Subscriptions whose access predicates decide where shards are cut."""


def assign_shards(
    rows: "DataFrame", shards: int, subscriptions: int, sample: pa.Table | None
) -> tuple["DataFrame", list[Place]]:
    """The subscriptions with the number of their shard, and the places where the next shard begins."""
    every = max(1, subscriptions // SAMPLED_SUBSCRIPTIONS)
    some = rows.filter(sf.pmod(sf.hash("id"), sf.lit(every)) == 0)
    placed = some.mapInArrow(_placing(sample), "key string, hash bigint, work double, size bigint").collect()
    costs = costs_of([row["work"] for row in placed], [row["size"] for row in placed])
    cuts = cut([((row["key"], row["hash"]), cost) for row, cost in zip(placed, costs, strict=True)], shards)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [bisect.bisect_right(cuts, place) for place, _ in places(batch, sample)]
            yield batch.append_column(SHARD, pa.array(found, pa.int32()))

    types = ", ".join(f"`{name}` {kind}" for name, kind in rows.dtypes)
    return rows.mapInArrow(task, f"{types}, {SHARD} int"), cuts


def _placing(sample: pa.Table | None) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = list(places(batch, sample))
            yield pa.record_batch(
                {
                    "key": pa.array([place[0] for place, _ in found], pa.string()),
                    "hash": pa.array([place[1] for place, _ in found], pa.int64()),
                    "work": pa.array([work for _, work in found], pa.float64()),
                    "size": pc.coalesce(pc.binary_length(batch.column("expression")), 0).cast(pa.int64()),
                }
            )

    return task


def visits_per_event(routes: Index, sample: pa.Table | None) -> float | None:
    """How many shards a sampled event visits on average; None without a sample."""
    if sample is None or not sample.num_rows:
        return None
    shards = 1 + max((int(str(id).partition(":")[0]) for id in routes), default=0)
    visits = sum(_visits(routes, events, shards) for events in sample.to_batches())
    return visits / int(sample.num_rows)


def _visits(routes: Index, events: pa.RecordBatch, shards: int) -> int:
    """How many shards all these events visit together."""
    visited = np.zeros((events.num_rows, shards), bool)
    for event, shard in matched_prefixes(routes, events):
        visited[event, shard.astype(np.int64)] = True
    return int(visited.sum())


def sample_events(events: "DataFrame", rows: int = 2000) -> pa.Table | None:
    """A few events, to learn from; None for a stream."""
    from tamis.spark.events.columns import project  # noqa: PLC0415
    from tamis.spark.events.names import ignores_case  # noqa: PLC0415
    from tamis.spark.matching.answer import attribute_columns  # noqa: PLC0415

    if events.isStreaming:
        return None

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": [to_bytes(pa.Table.from_batches([batch]))]})

    ignore_case = ignores_case(events.sparkSession)
    some = project(events, None, [], ignore_case=ignore_case).events.limit(rows)
    tables = [from_bytes(row["rows"]) for row in some.mapInArrow(packed, "rows binary").collect()]
    named = [attribute_columns(batch, []) for table in tables for batch in table.to_batches()]
    return pa.Table.from_batches(named) if named else None
