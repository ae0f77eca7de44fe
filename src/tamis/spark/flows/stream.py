"""Rules with memory over a stream, with Spark's state store and checkpoints.

```text
events -> packed by bucket (Arrow) -> watermark -> transformWithState: a `Bucket` for each -> what it tells
```

Keys are hashed into a fixed number of buckets, each with one flow: a flow per key would hold every query
again (55 KB for a thousand of them). Packed events are one row per bucket and Arrow batch, so pandas sees no
event. The watermark's column is dropped before the operator; otherwise Spark would filter late events before
they could be counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.flows.definition import Definition, Query
from tamis.spark.flows.evaluation import COLUMNS
from tamis.spark.flows.frames import KEY, TIME
from tamis.spark.matching.bounded_batches import batch_bytes, cuts
from tamis.spark.release import own_release
from tamis.store.changes import to_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ALL = -1
"""The bucket of queries that see all events."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class StreamQueries:
    """The queries of a stream, by key or seeing all events; or the store they are in."""

    by_key: Mapping[str, Query] = field(default_factory=dict)
    in_one_task: Mapping[str, Query] = field(default_factory=dict)
    store: str | None = None
    key: tuple[str, ...] = ()

    @property
    def has_key(self) -> bool:
        """Whether there are buckets by key."""
        return bool(self.key)

    @property
    def has_all(self) -> bool:
        """Whether there is a bucket that sees all events."""
        return bool(self.in_one_task) or not self.has_key


def refuse_without_state(spark: "SparkSession") -> None:
    """Raise if this session cannot keep state as flows need it."""
    if int(spark.version.split(".")[0]) < 4:
        raise ArgumentError(
            f"rules with memory over a stream need transformWithState, which Spark has since 4.0; this is "
            f"Spark {spark.version}. Tables work here: read the events with spark.read"
        )
    if "RocksDB" not in str(spark.conf.get(_PROVIDER, "")):
        raise ArgumentError(
            "rules with memory over a stream keep their state in RocksDB, as transformWithState requires; "
            f'set it before: spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")'
        )


def told_by_stream(
    frames: Sequence["DataFrame"],
    definition: Definition,
    queries: StreamQueries,
    order: Sequence[str],
    *,
    buckets: int,
    late: bool,
) -> "DataFrame":
    """What queries tell of streams of events."""
    together = reduce(
        lambda one, other: one.union(other),
        [
            _packed(frame, number, stream.lateness, queries, buckets)
            for number, (frame, stream) in enumerate(zip(frames, definition.streams, strict=True))
        ],
    )
    from tamis.spark.flows.processor import FlowProcessor  # noqa: PLC0415 - Spark 3.5 has no such classes

    processor = FlowProcessor(definition, queries, list(order), buckets, own_release())
    told = together.groupBy("bucket").transformWithStateInPandas(
        processor, COLUMNS, outputMode="Append", timeMode="EventTime"
    )
    is_kind = {kind: sf.coalesce(sf.col("kind") == kind, sf.lit(False)) for kind in ("late", "untimed")}
    counted = told.observe("tamis", *(sf.count_if(test).alias(kind) for kind, test in is_kind.items()))
    return counted if late else counted.where(~(is_kind["late"] | is_kind["untimed"]))


def _packed(
    frame: "DataFrame", number: int, lateness: int, queries: StreamQueries, buckets: int
) -> "DataFrame":
    """The events of a stream, packed by bucket; they move the watermark."""
    task = pack_task(number, buckets if queries.has_key else 0, to_all=queries.has_all)
    packed = frame.mapInArrow(task, "bucket int, seen bigint, stream int, events binary")
    timed = packed.withColumn("seen", sf.timestamp_micros("seen"))
    # Spark rounds times down to milliseconds and takes an event at the watermark for late: one more for that.
    marked = timed.withWatermark("seen", f"{-(-lateness // 1000) + 1} milliseconds")
    return marked.select("bucket", "stream", "events")


def pack_task(
    number: int, buckets: int, *, to_all: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Turn events into a row for each bucket: its number, the latest time, the stream, the events."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for whole in batches:
            for first, end in cuts(batch_bytes(whole.columns, whole.num_rows)):
                batch = whole.slice(first, end - first)
                plain = pa.Table.from_batches([batch.drop_columns([KEY])])
                parts = [(ALL, plain)] if to_all else []
                if buckets:
                    homes = np.mod(batch.column(KEY).to_numpy(), buckets)
                    parts += [
                        (home, plain.filter(pa.array(homes == home))) for home in np.unique(homes).tolist()
                    ]
                for home, part in parts:
                    latest = pc.max(part.column(TIME)).as_py()
                    row = {"bucket": home, "seen": latest, "stream": number, "events": to_bytes(part)}
                    yield pa.RecordBatch.from_pylist([row], _PACKED)

    return task


_PACKED = pa.schema({"bucket": pa.int32(), "seen": pa.int64(), "stream": pa.int32(), "events": pa.binary()})
