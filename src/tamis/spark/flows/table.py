"""Rules with memory over a table: history, evaluated in the order of its times.

```text
events -> by key into tasks -> sorted by (time, order) in each -> one flow a task -> what it tells
```

A task has one flow for all its keys: a flow per key would hold every query again. Spark sorts, on disk if
needed, and the task sees one Arrow batch at a time, so memory use is that of the windows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from tamis.spark.flows.definition import Definition, Query
from tamis.spark.flows.evaluation import COLUMNS, END, Fed, ToldRows, events_of
from tamis.spark.flows.frames import EVENT, KEY, TIME, order_names
from tamis.spark.release import own_release, refuse_other_release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STREAM = "__tamis_stream"

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def told_by_table(
    frames: Sequence["DataFrame"],
    definition: Definition,
    by_key: Mapping[str, Query],
    in_one_task: Mapping[str, Query],
    order: Sequence[str],
    *,
    late: bool,
) -> "DataFrame":
    """What queries tell of the events of tables, those `by_key` in parallel."""
    together = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        [_numbered(frame, number) for number, frame in enumerate(frames)],
    )
    *first, tie = order_names(order)
    parts = []
    if by_key:
        parts.append((together.repartition(KEY), by_key))
    if in_one_task or not by_key:
        parts.append((together.repartition(1), in_one_task))
    told = []
    for number, (events, queries) in enumerate(parts):
        ordered = events.drop(KEY).sortWithinPartitions(*first, STREAM, tie)
        task = flow_task(definition, queries, late=late and number == 0)
        told.append(ordered.mapInArrow(task, COLUMNS))
    return reduce(lambda one, other: one.union(other), told)


def _numbered(frame: "DataFrame", number: int) -> "DataFrame":
    return frame.withColumn(STREAM, sf.lit(number)).withColumnRenamed(EVENT, f"{EVENT}_{number}")


def flow_task(definition: Definition, queries: Mapping[str, Query], *, late: bool) -> Task:
    """Evaluate the sorted events of a partition; with `late`, also tell of events without a time."""
    drivers = own_release()
    names = [stream.name for stream in definition.streams]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_release(drivers)
        fed: Fed | None = None
        rows = ToldRows()
        for batch in batches:
            timed = _timed(batch, rows, late=late)
            if not timed.num_rows:
                continue
            fed = fed or Fed(definition.flow(queries), names, limited=definition.limit is not None)
            columns = timed.schema.names
            events = {
                number: events_of(timed.column(f"{EVENT}_{number}"))
                for number in range(len(names))
                if f"{EVENT}_{number}" in columns
            }
            times, streams = timed.column(TIME).to_numpy(), timed.column(STREAM).to_numpy()
            for told in fed.feed(times, streams, np.arange(len(times)), events):
                rows.add(told)
                yield from rows.full()
        if fed is not None:
            rows.add(fed.flow.advance(to=END))
        yield from rows.finished()

    return task


def _timed(batch: pa.RecordBatch, rows: ToldRows, *, late: bool) -> pa.RecordBatch:
    """The events that have a time."""
    times = batch.column(TIME)
    if times.null_count == 0:
        return batch
    if late:
        without = batch.filter(times.is_null())
        numbers = without.column(STREAM).to_numpy()
        for number in np.unique(numbers).tolist():
            own = without.filter(pa.array(numbers == number))
            rows.add_unused("untimed", own.column(TIME), own.column(f"{EVENT}_{number}"))
    return batch.filter(times.is_valid())
