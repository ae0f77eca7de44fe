"""Which subscriptions share a shard, and how little must be known of them to send an event there or not.

Subscriptions that share an access predicate (one that must be true for the expression to be) lie together, so
that an event concerns few shards; shards are cut so that the work which sampled events would cause there and
the memory that they take are even, not the number of rows. What the router keeps of a shard is its
expressions, pruned: predicates are dropped from ANDs, first those whose absence lets the fewest more events
pass, until all fit into a budget of bytes. A pruned expression covers its original, so no match is missed.
"""

import bisect
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from tamis import relate
from tamis.errors import ExpressionError
from tamis.index import Index
from tamis.spark.building.on_executors import SHARD, put_index
from tamis.spark.matching.pairs import matched_prefixes
from tamis.spark.store.changes import from_bytes, to_bytes
from tamis.spark.store.directory import Directory
from tamis.spark.store.versions import IndexFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUTER_BYTES = 16 << 20
"""What the routing index of all shards may take, by the measure of pruning: 5 bytes a predicate."""

SAMPLED_SUBSCRIPTIONS = 50_000
"""Subscriptions whose access predicates decide where shards are cut."""

Place = tuple[str, int]
"""Where a subscription stands in the order that is cut into shards: access predicate, hash of the id."""


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


def places(batch: pa.RecordBatch, sample: pa.Table | None) -> Iterator[tuple[Place, float]]:
    """The place of each subscription, and the share of events that will make the index look at it.

    >>> rows = pa.record_batch({"id": ["a"], "expression": ["country = 'CA' AND age > 30"]})
    >>> [((key, _), work)] = places(rows, None)
    >>> key
    "country = 'CA'"
    """
    ids = batch.column("id").to_pylist()
    texts = batch.column("expression").to_pylist()
    readable = [text if is_readable(text) else "FALSE" for text in texts]
    known = selectivities(readable, sample)
    for id, keys in zip(ids, relate.access_predicates(readable, known), strict=True):
        work = sum(known[key] if key != "TRUE" else 1.0 for key in keys)
        yield (keys[0] if keys else "", zlib.crc32(str(id).encode())), max(work, 1e-9)


def selectivities(expressions: Sequence[str], sample: pa.Table | None) -> relate.Selectivities:
    """How often the predicates of expressions are true for sampled events; estimates without a sample."""
    if sample is None or not sample.num_rows:
        return relate.Selectivities()
    return relate.Selectivities.from_events(expressions, sample)


def is_readable(text: str | None) -> bool:
    """Whether an expression can be parsed; one that cannot is refused later, where errors are reported.

    >>> is_readable("age > 30"), is_readable("age >"), is_readable(None)
    (True, False, False)
    """
    from tamis.expr import parse  # noqa: PLC0415

    try:
        return text is not None and parse(text) is not None
    except ExpressionError:
        return False


def costs_of(works: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """What each subscription costs: its share of all the work, and its share of all the memory.

    Shards of even cost have at most twice their even share of either. By work alone, all that the sampled
    events do not concern would be free, and could lie in one shard.

    >>> costs_of([3.0, 1.0, 0.0], [10, 10, 20])
    [1.0, 0.5, 0.5]
    """
    work, size = sum(works) or 1.0, sum(sizes) or 1
    return [each / work + bytes / size for each, bytes in zip(works, sizes, strict=True)]


def cut(placed: list[tuple[Place, float]], shards: int) -> list[Place]:
    """The places where the next shard begins, so that every shard has the same cost.

    >>> cut([(("a", 0), 1.0), (("b", 0), 1.0), (("c", 0), 2.0), (("d", 0), 0.5)], 2)
    [('c', 0)]
    """
    ordered = sorted(placed)
    share = sum(cost for _, cost in ordered) / shards
    cuts: list[Place] = []
    done = 0.0
    for place, cost in ordered:
        if done + cost / 2 > share * (len(cuts) + 1) and len(cuts) < shards - 1:
            cuts.append(place)
        done += cost
    return cuts


def put_routes(directory: Directory, texts: Sequence[str], budget: int, sample: pa.Table | None) -> str:
    """Prune the expressions of a shard to a budget of bytes and put what is left into a file.

    What is more than the budget when nothing can be pruned any more becomes one access predicate for each.
    """
    known = selectivities(texts, sample)
    pruned = {str(expression) for expression in relate.prune_many(texts, bytes=budget, selectivities=known)}
    name = f"snapshots/{uuid.uuid4().hex}.routes"
    directory.create(name, to_bytes(pa.table({"expression": pa.array(sorted(pruned), pa.string())})))
    return name


def join_routes(
    directory: Directory, routes: dict[int, list[str]], sample: pa.Table | None
) -> tuple[IndexFile, float | None]:
    """The routing index of all shards, and how many of them a sampled event visits on average."""
    index = Index()
    for shard, names in routes.items():
        tables = [from_bytes(directory.read(name)) for name in names]
        texts = pa.concat_tables(tables).column("expression").combine_chunks()
        index.add_many([f"{shard}:{number}" for number in range(len(texts))], texts)
    visits = None
    if sample is not None and sample.num_rows:
        visits = sum(_visits(index, events, max(routes, default=0) + 1) for events in sample.to_batches())
        visits /= sample.num_rows
    file = put_index(directory, index)
    for names in routes.values():
        for name in names:
            directory.delete(name)
    return file, visits


def _visits(routes: Index, events: pa.RecordBatch, shards: int) -> int:
    """How many shards all these events visit together."""
    visited = np.zeros((events.num_rows, shards), bool)
    for event, shard in matched_prefixes(routes, events):
        visited[event, shard.astype(np.int64)] = True
    return int(visited.sum())


def gather_by_number(rows: "DataFrame", tasks: int, number: str = SHARD) -> "DataFrame":
    """Bring the rows of each number together in a task of their own."""
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(tasks, number)
    # A hash puts some numbers together; each is still in one task only.
    return rows.repartition(tasks, number)


def sample_events(events: "DataFrame", rows: int = 2000) -> pa.Table | None:
    """A few events, to learn from; None for a stream."""
    from tamis.spark.events.columns import project  # noqa: PLC0415
    from tamis.spark.matching.answer import attribute_columns  # noqa: PLC0415

    if events.isStreaming:
        return None

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": [to_bytes(pa.Table.from_batches([batch]))]})

    some = project(events, None, []).events.limit(rows)
    tables = [from_bytes(row["rows"]) for row in some.mapInArrow(packed, "rows binary").collect()]
    named = [attribute_columns(batch, []) for table in tables for batch in table.to_batches()]
    return pa.Table.from_batches(named) if named else None
