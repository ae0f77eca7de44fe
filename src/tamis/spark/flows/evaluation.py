"""Feeds events to a flow in order, and returns its results as rows of bounded batches.

Runs in tasks and does not depend on Spark: Arrow in, Arrow out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.flow import Flow, Output
from tamis.spark.matching.answer import attribute_columns
from tamis.spark.matching.bounded_batches import MOST_BYTES, MOST_ROWS

Numbers = np.ndarray[Any, np.dtype[np.int64]]

MOST_EVENTS = 4_096
"""Events that are pushed at once, at most: what they tell is held until it is handed on."""

MANY_OUTPUTS = 8_192
"""If a push tells more than that, the next has fewer events."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 31, tzinfo=UTC)
"""After this nothing comes: what waits is told."""


def moment(micros: int) -> datetime:
    """A moment from microseconds since the epoch.

    >>> moment(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return _EPOCH + timedelta(microseconds=micros)


def events_of(column: pa.StructArray) -> pa.RecordBatch:
    """The events of a column of structs, with columns named as the attributes."""
    return attribute_columns(pa.RecordBatch.from_struct_array(column), ())


class Fed:
    """A flow that is fed events in their order.

    >>> flow = Flow()
    >>> for name in ("a", "b"):
    ...     flow.stream(name, time="ts")
    >>> flow.add("pairs", "SELECT x.n, y.n FROM a RANGE 1m AS x JOIN b RANGE 1m AS y")
    >>> fed = Fed(flow, ["a", "b"])
    >>> events = {0: pa.record_batch({"ts": [1, 2], "n": [1, 2]}), 1: pa.record_batch({"ts": [2], "n": [3]})}
    >>> times, streams, rows = np.array([1, 2, 2]) * 10**6, np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> [list(out.row.values()) for told in fed.feed(times, streams, rows, events) for out in told]
    [[1, 3], [2, 3]]
    """

    def __init__(self, flow: Flow, streams: list[str], *, limited: bool = False) -> None:
        """Take a flow, the names of its streams by their numbers, and whether its state is limited."""
        self.flow = flow
        self._streams = streams
        # Several events of one stream wait in the flow for those of another, and what waits counts toward a
        # limit: the size of portions would decide what is refused or shed.
        self._one_by_one = limited and len(streams) > 1
        self._at_once = 1 if self._one_by_one else 256

    def feed(
        self, times: Numbers, streams: Numbers, rows: Numbers, events: Mapping[int, pa.RecordBatch]
    ) -> Iterator[list[Output]]:
        """Push events, which are rows of the batches of their streams, and tell what becomes true."""
        # A flow evaluates equal times as they come: within a segment, the events of a stream come together.
        turns_back = (times[1:] == times[:-1]) & (streams[1:] < streams[:-1])
        bounds = [*(np.flatnonzero(turns_back) + 1).tolist(), len(times)]
        first = 0
        for bound in bounds:
            while first < bound:
                end = min(first + self._at_once, bound)
                told = self._push(times[end - 1], streams[first:end], rows[first:end], events)
                self._adapt(end - first, len(told))
                yield told
                first = end

    def _push(
        self, last: int, streams: Numbers, rows: Numbers, events: Mapping[int, pa.RecordBatch]
    ) -> list[Output]:
        told: list[Output] = []
        for stream in np.unique(streams).tolist():
            own = events[stream].take(pa.array(rows[streams == stream]))
            told += self.flow.push_batch(self._streams[stream], own)
        if len(self._streams) > 1:  # or one stream would wait for another
            told += self.flow.advance(to=moment(int(last)))
        return told

    def _adapt(self, pushed: int, told: int) -> None:
        if self._one_by_one:
            return
        if told > MANY_OUTPUTS:
            self._at_once = max(1, pushed * MANY_OUTPUTS // told)
        elif pushed == self._at_once:
            self._at_once = min(MOST_EVENTS, self._at_once * 2)


ROW = {"query": pa.string(), "kind": pa.string(), "time": pa.int64(), "row": pa.string()}
SCHEMA = pa.schema({**ROW, "events": pa.list_(pa.string())})
COLUMNS = "query string, kind string, time bigint, row string, events array<string>"


class ToldRows:
    """What a flow tells, as record batches of bounded size.

    >>> rows = ToldRows()
    >>> rows.add([Output("q", "+", moment(5), {"n": 3}, [])])
    >>> [batch.to_pylist() for batch in rows.finished()]
    [[{'query': 'q', 'kind': '+', 'time': 5, 'row': '{"n": 3}', 'events': []}]]
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._rows: list[tuple[str | None, str, int | None, str | None, list[str]]] = []
        self._bytes = 0
        self._full: list[pa.RecordBatch] = []

    def add(self, told: Iterable[Output]) -> None:
        """Take in what was told."""
        for out in told:
            time = (out.time - _EPOCH) // timedelta(microseconds=1)
            row = json.dumps(out.row, ensure_ascii=False, default=str)
            self._put(out.query, out.kind, time, row, [event.to_json() for event in out.events])

    def add_unused(self, kind: str, times: pa.Array, events: pa.StructArray) -> None:
        """Take in events that were not evaluated, and why."""
        named = events_of(events)
        for time, event in zip(times.to_pylist(), named.to_pylist(), strict=True):
            self._put(None, kind, time, None, [json.dumps(event, ensure_ascii=False, default=str)])

    def _put(
        self, query: str | None, kind: str, time: int | None, row: str | None, events: list[str]
    ) -> None:
        self._rows.append((query, kind, time, row, events))
        # Letters count as three bytes: no text has more than that for each, but for rare ones of four.
        self._bytes += 3 * (len(query or "") + len(row or "") + sum(map(len, events))) + 32
        if self._bytes >= MOST_BYTES or len(self._rows) >= MOST_ROWS:
            self._cut()

    def _cut(self) -> None:
        columns = list(zip(*self._rows, strict=True))
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        self._full.append(pa.record_batch(arrays, SCHEMA))
        self._rows, self._bytes = [], 0

    def full(self) -> Iterator[pa.RecordBatch]:
        """The batches that are full."""
        full, self._full = self._full, []
        yield from full

    def finished(self) -> Iterator[pa.RecordBatch]:
        """All that is left."""
        if self._rows:
            self._cut()
        yield from self.full()
