"""The state of a flow over one part of a stream's keys, and how it becomes bytes.

Events wait until the watermark has passed them; then they are put in order and evaluated. State is a log of
steps on top of a base, so that a micro-batch writes what arrived and not all that is held:

```text
base   queries, the flow as `Flow.save` writes it, the events that wait
log    for each micro-batch: the watermark, queries that came and went, the events that arrived
```

Reading does the steps of the log again. When the log is longer than the base, both become a new base.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TamisError
from tamis.flow import Flow, Output
from tamis.spark.flows.definition import Definition, Query, add_queries
from tamis.spark.flows.evaluation import Fed, Numbers, events_of, moment
from tamis.spark.flows.frames import EVENT, TIE, TIME
from tamis.store.changes import from_bytes, to_bytes

Arrived = list[tuple[int, pa.Table]]
"""Events with the numbers of their streams."""


@dataclass(frozen=True)
class Step:
    """What a micro-batch does to a bucket.

    >>> step = Step(7, {"q": ("x > 1", None)}, ["old"], [(0, pa.table({TIME: [1]}))])
    >>> Step.from_bytes(step.to_bytes()) == step
    True
    """

    watermark: int
    """Milliseconds since the epoch; 0 for none."""
    added: Mapping[str, Query] = field(default_factory=dict)
    removed: Sequence[str] = ()
    arrived: Arrived = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """The step as it lies in the log."""
        said = {"watermark": self.watermark, "added": dict(self.added), "removed": list(self.removed)}
        return _packed(said, [(number, to_bytes(table)) for number, table in self.arrived])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Step":
        """The step in an entry of the log."""
        said, parts = _unpacked(data)
        added = {name: (text, on) for name, (text, on) in said["added"].items()}
        arrived = [(number, from_bytes(part)) for number, part in parts]
        return cls(said["watermark"], added, said["removed"], arrived)


class Bucket:
    """A flow over one part of the keys, with the events that wait for the watermark."""

    def __init__(self, definition: Definition, order: Sequence[str], flow: Flow | None = None) -> None:
        """Begin without queries, or with a flow that was kept."""
        self._definition = definition
        self._order = list(order)
        self._names = [stream.name for stream in definition.streams]
        flow = flow or definition.flow({})
        flow.set_limit(definition.limit, definition.on_limit)  # not the one that it was kept with
        self._fed = Fed(flow, self._names, limited=definition.limit is not None)
        self.queries: dict[str, Query] = {}
        self.watermark = 0
        self._waiting: dict[int, list[pa.Table]] = {}

    def changes(self, wanted: Mapping[str, Query]) -> tuple[dict[str, Query], list[str]]:
        """The queries that come and those that go, for these to be there; one that changed does both."""
        gone = [name for name, query in self.queries.items() if wanted.get(name) != query]
        return {name: query for name, query in wanted.items() if self.queries.get(name) != query}, gone

    def take(self, step: Step) -> Iterator[list[Output]]:
        """Do a step and tell what becomes true. It must be read to its end."""
        for number, table in step.arrived:
            self._waiting.setdefault(number, []).append(table)
        if step.watermark > self.watermark:
            yield from self._move(step)
        self._refuse_too_many_waiting()

    def _move(self, step: Step) -> Iterator[list[Output]]:
        """The watermark has moved: queries change, and events are evaluated."""
        for name in step.removed:
            self._fed.flow.remove(name)
            del self.queries[name]
        add_queries(self._fed.flow, step.added)
        self.queries.update(step.added)
        self.watermark = step.watermark
        yield from self._evaluate(step.watermark * 1000)
        yield self._fed.flow.advance(to=moment(step.watermark * 1000))

    def _refuse_too_many_waiting(self) -> None:
        """Events that wait are state as well, and cannot be shed."""
        if self._definition.limit is None:
            return
        held = sum(table.nbytes for tables in self._waiting.values() for table in tables)
        if held > self._definition.limit:
            raise TamisError(
                f"events that wait for the watermark take {held:,} bytes of the state, and the limit is "
                f"{self._definition.limit:,}; lower lateness=, raise limit= and start again from the "
                "checkpoint, or filter events with times in the future"
            )

    def _evaluate(self, until: int) -> Iterator[list[Output]]:
        """Evaluate the events that the watermark has passed, in their order."""
        ready: dict[int, pa.Table] = {}
        waiting, self._waiting = self._waiting, {}
        for number, tables in waiting.items():
            table = pa.concat_tables(tables, promote_options="permissive")
            passed = pc.less_equal(table.column(TIME), until)
            ready[number] = table.filter(passed)
            waits = table.filter(pc.invert(passed))
            if waits.num_rows:
                self._waiting[number] = [waits]
        ready = {number: table for number, table in sorted(ready.items()) if table.num_rows}
        if not ready:
            return
        places = pa.concat_tables(
            [
                table.drop_columns([EVENT])
                .append_column("stream", pa.array(np.full(table.num_rows, number), pa.int64()))
                .append_column("row", pa.array(np.arange(table.num_rows), pa.int64()))
                for number, table in ready.items()
            ],
            promote_options="permissive",
        )
        ranked = places.take(_sorted(places, [TIME, *self._order, "stream", TIE]))
        times, streams, rows = (_numbers(ranked, name) for name in (TIME, "stream", "row"))
        events = {number: events_of(_one_array(table.column(EVENT))) for number, table in ready.items()}
        yield from self._fed.feed(times, streams, rows, events)

    def to_bytes(self) -> bytes:
        """All of it."""
        said = {"watermark": self.watermark, "queries": self.queries}
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            path = Path(folder, "flow")
            self._fed.flow.save(path)
            parts = [(-1, path.read_bytes())]
        parts += [(number, to_bytes(table)) for number, tables in self._waiting.items() for table in tables]
        return _packed(said, parts)

    @classmethod
    def from_bytes(cls, definition: Definition, order: Sequence[str], data: bytes) -> "Bucket":
        """The bucket that was kept."""
        said, parts = _unpacked(data)
        with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
            path = Path(folder, "flow")
            path.write_bytes(dict(parts)[-1])
            bucket = cls(definition, order, Flow.open(path))
        bucket.queries = {name: (text, on) for name, (text, on) in said["queries"].items()}
        bucket.watermark = said["watermark"]
        for number, part in parts:
            if number >= 0:
                bucket._waiting.setdefault(number, []).append(from_bytes(part))
        return bucket


def split_late(table: pa.Table, watermark: int) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The events that are in time, those that the watermark has passed, and those without a time.

    >>> [part.num_rows for part in split_late(pa.table({TIME: [1, 9_000, 2_000, None]}), 2)]
    [1, 2, 1]
    """
    times = table.column(TIME)
    if watermark <= 0:
        is_late = pa.array(np.zeros(len(times), bool))
    else:
        is_late = pc.fill_null(pc.less_equal(times, watermark * 1000), False)
    is_timed = times.is_valid()
    in_time = pc.and_(is_timed, pc.invert(is_late))
    return table.filter(in_time), table.filter(is_late), table.filter(pc.invert(is_timed))


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """The order of the rows by these columns, as Spark sorts: nulls first, NaN last.

    >>> _sorted(pa.table({"x": [2.0, float("nan"), None, 1.0]}), ["x"]).to_pylist()
    [2, 3, 0, 1]
    """
    by: dict[str, pa.ChunkedArray] = {}
    for at, name in enumerate(names):
        column = table.column(name)
        if column.null_count:
            by[f"valid {at}"] = column.is_valid()
        if pa.types.is_floating(column.type):
            by[f"nan {at}"] = pc.fill_null(pc.is_nan(column), False)
        by[f"value {at}"] = column
    return pc.sort_indices(pa.table(by), sort_keys=[(name, "ascending") for name in by])


def _numbers(table: pa.Table, name: str) -> Numbers:
    numbers: Numbers = table.column(name).to_numpy()
    return numbers


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _packed(said: Mapping[str, object], parts: list[tuple[int, bytes]]) -> bytes:
    """Some JSON and numbered parts as one."""
    header = json.dumps({**said, "parts": [(number, len(part)) for number, part in parts]}).encode()
    return b"".join([len(header).to_bytes(4, "little"), header, *(part for _, part in parts)])


def _unpacked(data: bytes) -> tuple[dict[str, Any], list[tuple[int, bytes]]]:
    at = 4 + int.from_bytes(data[:4], "little")
    said = json.loads(data[4:at])
    parts = []
    for number, length in said.pop("parts"):
        parts.append((number, data[at : at + length]))
        at += length
    return said, parts
