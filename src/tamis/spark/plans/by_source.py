"""Shards by source: each publisher's events visit only subscriptions that overlap what it advertises.

A subscription lies in one shard; a source visits the shards that hold any subscription it might match. An
event that breaks its source's promise, or whose source made none, visits all: nothing is missed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.errors import ArgumentError, ExpressionError
from tamis.expr import parse
from tamis.index import Index
from tamis.spark.building.on_executors import SHARD
from tamis.spark.building.own_names import with_own_names
from tamis.store.directory import Directory
from tamis.store.index_files import put_index
from tamis.store.routes import overlapping
from tamis.store.versions import IndexFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Advertised = dict[str, list[str]]
"""Source -> the expressions of which each of its events satisfies at least one."""

_SOURCES = "__tamis_sources"

MOST_SIGNATURES = 100_000


def collect_advertisements(advertisements: "DataFrame") -> Advertised:
    """The advertisements of each source; there are few, so the driver holds them."""
    advertisements = with_own_names(advertisements, ("source", "expression"))
    columns = advertisements.columns
    for needed in ("source", "expression"):
        if needed not in columns:
            raise ArgumentError(
                f"advertisements have the columns source and expression; these have {', '.join(columns)}"
            )
    found: Advertised = {}
    for row in advertisements.select("source", "expression").collect():
        try:
            parse(row["expression"])
        except (ExpressionError, TypeError) as error:
            raise ArgumentError(f"the advertisement of source {row['source']!r}: {error}") from error
        found.setdefault(str(row["source"]), []).append(row["expression"])
    if not found:
        raise ArgumentError("there are no advertisements")
    return {source: found[source] for source in sorted(found)}


def assign_shards_by_source(
    rows: "DataFrame", advertised: Advertised, shards: int
) -> tuple["DataFrame", dict[str, list[int]]]:
    """The subscriptions with the number of their shard, and the shards that each source visits."""
    types = ", ".join(f"`{name}` {kind}" for name, kind in rows.dtypes)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        promised = [[parse(text) for text in texts] for texts in advertised.values()]
        for batch in batches:
            found = [overlapping(text, promised) for text in batch.column("expression").to_pylist()]
            yield batch.append_column(_SOURCES, pa.array(found, pa.string()))

    signed = rows.mapInArrow(task, f"{types}, {_SOURCES} string").persist()
    counts = {row[_SOURCES]: row["count"] for row in signed.groupBy(_SOURCES).count().collect()}
    if len(counts) > MOST_SIGNATURES:
        raise ArgumentError(
            f"the subscriptions overlap {len(counts):,} different sets of sources; join those that are alike"
        )
    shard_of, visits = group_by_sources(counts, list(advertised), shards)

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [shard_of[signature] for signature in batch.column(_SOURCES).to_pylist()]
            yield batch.drop_columns([_SOURCES]).append_column(SHARD, pa.array(found, pa.int32()))

    return signed.mapInArrow(place, f"{types}, {SHARD} int"), visits


def group_by_sources(
    counts: dict[str, int], sources: list[str], shards: int
) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Shards for the sets of sources that subscriptions overlap, like with like and not too full.

    >>> group_by_sources({"0": 5, "1": 5, "": 1}, ["a", "b"], 2)
    ({'0': 0, '1': 1, '': 0}, {'a': [0], 'b': [1]})
    """
    room = 1.2 * sum(counts.values()) / shards
    held = [0] * shards
    visitors: list[set[int]] = [set() for _ in range(shards)]
    shard_of: dict[str, int] = {}
    for signature in sorted(counts, key=lambda signature: (-counts[signature], signature)):
        members = {int(number) for number in signature.split(",") if number}

        size = counts[signature]
        costs = [
            (
                held[shard] > 0 and held[shard] + size > room,
                len(members ^ visitors[shard]) if held[shard] else len(members),
                held[shard],
            )
            for shard in range(shards)
        ]
        chosen = costs.index(min(costs))
        shard_of[signature] = chosen
        held[chosen] += size
        visitors[chosen] |= members
    visits = {
        source: [shard for shard in range(shards) if number in visitors[shard]]
        for number, source in enumerate(sources)
    }
    return shard_of, visits


def put_advertisements(directory: Directory, advertised: Advertised) -> IndexFile:
    """An index of what sources promise: ids are `source:number`."""
    index = Index()
    for source, texts in advertised.items():
        for number, text in enumerate(texts):
            index.add(f"{source}:{number}", text)
    return put_index(directory, index)
