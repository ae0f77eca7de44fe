"""Called by Spark 4.0 and later for each bucket of a stream: reads the state, runs a step, writes it."""

import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tamis.errors import TamisError
from tamis.spark.flows.bucket import Arrived, Bucket, Step, split_late
from tamis.spark.flows.definition import Definition, Query
from tamis.spark.flows.evaluation import ToldRows
from tamis.spark.flows.frames import EVENT, ORDER_PREFIX, TIME
from tamis.spark.flows.query_store import queries_of_micro_batch
from tamis.spark.flows.stream import ALL, StreamQueries
from tamis.spark.release import refuse_other_release
from tamis.spark.store.pins import micro_batch
from tamis.store.changes import from_bytes

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

CHUNK = 4 << 20
"""Bytes of a value in the state store, at most."""

SHORT_LOG = 1 << 20
"""A log of up to that many bytes is never too long."""

_held: "OrderedDict[Any, tuple[str, Bucket]]" = OrderedDict()
"""Buckets as this process left them, by query and number: with the stamp of the state that they are."""

HELD = 8
"""How many buckets a process holds between micro-batches."""


class FlowProcessor(StatefulProcessor):
    """A bucket of a flow in Spark's state store."""

    def __init__(
        self, definition: Definition, queries: StreamQueries, order: list[str], buckets: int, release: str
    ) -> None:
        """Take what all buckets have in common."""
        self._definition = definition
        self._queries = queries
        self._order = [f"{ORDER_PREFIX}{at}" for at in range(len(order))]
        streams = [(stream.name, stream.time, stream.unit) for stream in definition.streams]
        self._made_for = repr((buckets if queries.has_key else 0, queries.key, streams, order))
        self._release = release
        self._short_log, self._chunk, self._most_held = SHORT_LOG, CHUNK, HELD

    def init(self, handle: "StatefulProcessorHandle") -> None:
        """Name the parts of the state."""
        self._handle = handle
        self._head = handle.getValueState(
            "head",
            "made_for string, stamp string, watermark bigint, timer bigint, entries bigint, log bigint, "
            "base bigint",
        )
        self._base = handle.getMapState("base", "number bigint", "data binary")
        self._log = handle.getMapState("log", "number bigint", "data binary")

    def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Take in the events of a micro-batch."""
        arrived = [
            (int(stream), from_bytes(bytes(events)))
            for frame in rows
            for stream, events in zip(frame["stream"], frame["events"], strict=True)
        ]
        yield from self._step(key[0], timers.getCurrentWatermarkInMs(), arrived)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Go on without events, because the watermark has moved."""
        yield from self._step(key[0], timerValues.getCurrentWatermarkInMs(), [])

    def close(self) -> None:
        """Nothing is open."""

    def _step(self, number: int, watermark: int, arrived: Arrived) -> Iterator[pd.DataFrame]:
        refuse_other_release(self._release)
        head = self._read_head()
        if not arrived and head["watermark"] >= watermark:
            return  # the timer of a bucket that had events, too
        rows = ToldRows()
        in_time = []
        for stream, table in arrived:
            good, late, untimed = split_late(table, watermark)
            if good.num_rows:
                in_time.append((stream, good))
            if number != ALL or not self._queries.has_key:  # or each would be told twice
                for kind, unused in (("late", late), ("untimed", untimed)):
                    for batch in unused.to_batches():
                        rows.add_unused(kind, batch.column(TIME), batch.column(EVENT))
        own = micro_batch()
        name = (own and own[0], self._made_for, number)
        bucket = self._bucket(name, head)
        added: dict[str, Query] = {}
        removed: list[str] = []
        if watermark > bucket.watermark:
            added, removed = bucket.changes(self._wanted(number))
        step = Step(watermark, added, removed, in_time)
        for told in bucket.take(step):
            rows.add(told)
            yield from map(_to_pandas, rows.full())
        yield from map(_to_pandas, rows.finished())
        self._write(name, head, bucket, step)

    def _wanted(self, number: int) -> Mapping[str, Query]:
        if self._queries.store is not None:
            return queries_of_micro_batch(self._queries.store)
        return self._queries.in_one_task if number == ALL else self._queries.by_key

    def _read_head(self) -> dict[str, Any]:
        names = ("made_for", "stamp", "watermark", "timer", "entries", "log", "base")
        if not self._head.exists():
            return dict(zip(names, (self._made_for, "", 0, 0, 0, 0, 0), strict=True))
        head = dict(zip(names, self._head.get() or (), strict=True))
        if head["made_for"] != self._made_for:
            raise TamisError(
                "the checkpoint was made for another flow: its buckets, key, streams and order were "
                f"{head['made_for']}, and now they are {self._made_for}. Keep them, or use a new checkpoint"
            )
        return head

    def _bucket(self, name: Any, head: Mapping[str, Any]) -> Bucket:
        """The bucket as the state has it: as this process left it, if that is the same, or read again."""
        stamp, held = _held.pop(name, ("", None))
        if held is not None and stamp == head["stamp"]:
            return held
        chunks = (
            sorted((number, data) for (number,), (data,) in self._base.iterator()) if head["base"] else []
        )
        if chunks:
            whole = b"".join(bytes(data) for _, data in chunks)
            bucket = Bucket.from_bytes(self._definition, self._order, whole)
        else:
            bucket = Bucket(self._definition, self._order)
        parts = (
            sorted((number, bytes(data)) for (number,), (data,) in self._log.iterator())
            if head["log"]
            else []
        )
        for entry in _entries(b"".join(data for _, data in parts)):
            for _ in bucket.take(Step.from_bytes(entry)):
                pass
        return bucket

    def _write(self, name: Any, head: dict[str, Any], bucket: Bucket, step: Step) -> None:
        entry = step.to_bytes()
        framed = len(entry).to_bytes(8, "little") + entry
        head["log"] += len(framed)
        if head["log"] > max(self._short_log, head["base"]):
            whole = bucket.to_bytes()
            self._base.clear()
            self._log.clear()
            for at, chunk in enumerate(_chunks(whole, self._chunk)):
                self._base.updateValue((at,), (chunk,))
            head |= {"entries": 0, "log": 0, "base": len(whole)}
        else:
            for chunk in _chunks(framed, self._chunk):
                self._log.updateValue((head["entries"],), (chunk,))
                head["entries"] += 1
        # Whoever has state looks again when the watermark moves: rows leave, sequences end, queries change.
        if head["timer"] != step.watermark + 1:
            self._handle.registerTimer(step.watermark + 1)
            head["timer"] = step.watermark + 1
        head |= {"stamp": uuid.uuid4().hex, "watermark": step.watermark}
        self._head.update(tuple(head.values()))
        _held[name] = (head["stamp"], bucket)
        while len(_held) > self._most_held:
            _held.popitem(last=False)


def _chunks(data: bytes, most: int) -> Iterator[bytes]:
    for first in range(0, len(data), most):
        yield data[first : first + most]


def _entries(log: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(log):
        length = int.from_bytes(log[at : at + 8], "little")
        yield log[at + 8 : at + 8 + length]
        at += 8 + length


def _to_pandas(batch: pa.RecordBatch) -> pd.DataFrame:
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    columns["time"] = pd.array(columns["time"], dtype="Int64")
    return pd.DataFrame(columns)
