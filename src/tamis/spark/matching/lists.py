"""The matches of each event as a list, in a column next to the event, returned by an Arrow function of Spark.

Rows keep their number and their order, so Spark carries the other columns itself: they never leave the JVM,
filters pass below the function, and a watermark survives it. Cost: the matches of one Arrow batch of events
are held at once, so this is for the best k, or where events have few matches.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import ArgumentError
from tamis.spark.matching.answer import TableQuery, attribute_columns
from tamis.spark.matching.pairs import Pairs, plain_ids
from tamis.spark.matching.task import Seen, Source
from tamis.store.open_shards import open_all
from tamis.store.versions import IdKind

MOST_MATCHES = 50_000_000
"""In the lists of one Arrow batch: offsets have 32 bits, and a task has not all the memory of the host."""

Structs = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]


def list_type(query: TableQuery, ids: IdKind) -> str:
    """The type of the list, as Spark writes it.

    >>> list_type(TableQuery("all"), "int")
    'array<struct<id:bigint>>'
    """
    id = "id:bigint" if ids == "int" else "id:string"
    return f"array<struct<{id}{',score:double,rank:int' if query.mode == 'top_k' else ''}>>"


def answer_type(query: TableQuery, ids: IdKind) -> str:
    """The type of what the function returns: the list, and the version that it comes from."""
    return f"struct<matches:{list_type(query, ids)},version:bigint>"


def list_task(source: Source, query: TableQuery, ids: IdKind, *, versions: bool = True) -> Structs:
    """Answer a column of structs, each an event, with lists; with `versions`, as `answer_type` says."""

    def task(events: Iterator[pa.Array]) -> Iterator[pa.Array]:
        directory, version, asked = source.resolve(query)
        indexes = open_all(directory, version)
        pairs = asked.pairs_in(indexes)
        seen = Seen(version, ignore_case=source.ignore_case)
        seen.place(indexes)
        matches = 0
        for structs in events:
            batch = seen.note(pa.RecordBatch.from_struct_array(structs))
            lists = lists_of(pairs, batch, asked, ids)
            matches += len(lists.values)
            if versions:
                numbers = pa.repeat(pa.scalar(version.number, pa.int64()), len(structs))
                lists = pa.StructArray.from_arrays([lists, numbers], ["matches", "version"])
            yield lists
        seen.report(directory, source.report_name, matches)

    return task


def lists_of(pairs: Pairs, events: pa.RecordBatch, query: TableQuery, ids: IdKind) -> pa.Array:
    """The matches of each event of a batch as a list; those of one event come as the query orders them.

    >>> from tamis.index import Index
    >>> index = Index()
    >>> errors = index.add_many([1, 2], ["x > 1", "x > 2"])
    >>> asked = TableQuery("all")
    >>> lists_of(asked.pairs_in([index]), pa.record_batch({"x": [3, 0]}), asked, "int").to_pylist()
    [[{'id': 1}, {'id': 2}], []]
    """
    names = ["event", "subscription", *(["score", "rank"] if query.mode == "top_k" else [])]
    columns: list[list[pa.Array]] = [[] for _ in names]
    total = 0
    for table in pairs.of(attribute_columns(events, [])):
        total += table.num_rows
        if total > MOST_MATCHES:
            raise ArgumentError(
                f"{events.num_rows:,} events have more than {MOST_MATCHES:,} matches, too many to be held "
                "at once: ask for the best k, lower spark.sql.execution.arrow.maxRecordsPerBatch, or use "
                "tamis.spark.match, which gives a row for each match"
            )
        for found in table.to_batches():
            for column, name in zip(columns, names, strict=True):
                values = found.column(name)
                column.append(plain_ids(values) if name == "subscription" else values)
    kinds = [pa.int64(), pa.int64() if ids == "int" else pa.string(), pa.float64(), pa.int32()]
    event, *rest = (_joined(parts, kind) for parts, kind in zip(columns, kinds, strict=False))
    numbers = event.to_numpy()
    order = np.argsort(numbers, kind="stable")  # several indexes answer one after the other
    ends = np.searchsorted(numbers[order], np.arange(events.num_rows), side="right")
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    place = pa.array(order)
    fields = ["id", *names[2:]]
    structs = pa.StructArray.from_arrays([part.take(place) for part in rest], fields)
    return pa.ListArray.from_arrays(pa.array(offsets), structs)


def _joined(parts: Sequence[pa.Array], kind: pa.DataType) -> Any:
    return pa.concat_arrays([part.cast(kind) for part in parts]) if parts else pa.array([], kind)
