"""What every workload can do: stream its subscriptions, make events, and write both to files.

A workload is deterministic: the same parameters and seed give the same rows on every machine. Subscriptions
come in blocks of `BLOCK` rows, each from its own random stream, so memory stays flat however many are asked
for, and rows [start, stop) can be made without those before them: any partitioning gives the same rows.
Events are numbered, and event 17 is the same whether a hundred or a million of them are made.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis_lab.workloads.sampling import Floats, stream

BLOCK = 16_384
EVENT_BLOCK = 1_024

SUBSCRIPTION_SCHEMA = pa.schema([("id", pa.int64()), ("expression", pa.string()), ("priority", pa.float64())])

EventDict = dict[str, Any]


class Workload(ABC):
    """A generator of subscriptions and of events for them."""

    name: ClassVar[str]
    """How commands refer to it."""

    count: int
    seed: int

    @abstractmethod
    def _expressions(self, block: int) -> pa.Array:
        """The `BLOCK` texts of block number `block`."""

    @abstractmethod
    def _events(self, block: int) -> list[EventDict]:
        """The `EVENT_BLOCK` events of block number `block`."""

    @property
    @abstractmethod
    def event_schema(self) -> pa.Schema:
        """The attributes that an event may have, with their types."""

    @property
    def subscription_schema(self) -> pa.Schema:
        """The columns of the subscriptions: id, expression, priority, and what the workload adds."""
        return SUBSCRIPTION_SCHEMA

    def _priorities(self, block: int) -> Floats:
        """The `BLOCK` priorities of block number `block`: anything between 0 and 1."""
        return stream(self.seed, self.name, "priority", block).random(BLOCK).round(6)

    def _further_columns(self, block: int) -> list[pa.Array]:
        """What the workload adds to the `BLOCK` rows of block number `block`, in the order of its schema."""
        return []

    def subscriptions(self, start: int = 0, stop: int | None = None) -> Iterator[pa.Table]:
        """Yield tables of (id, expression, priority): ids `start` to `stop`, which is `count` by default.

        Rows do not depend on the bounds, so that many machines can each make a part.

        >>> from tamis_lab.workloads import Equality
        >>> [table.num_rows for table in Equality(count=20_000).subscriptions()]
        [16384, 3616]
        >>> [table["id"][0].as_py() for table in Equality(count=20_000).subscriptions(16_000, 17_000)]
        [16000, 16384]
        """
        stop = self.count if stop is None else stop
        if not 0 <= start <= stop <= self.count:
            raise ValueError(f"rows {start} to {stop} are not within the {self.count} subscriptions")
        for block, rows in blocks(start, stop, BLOCK):
            first = block * BLOCK
            ids = np.arange(first + rows.start, first + rows.stop)
            made = [
                self._expressions(block),
                pa.array(self._priorities(block)),
                *self._further_columns(block),
            ]
            fields = list(self.subscription_schema)[1:]
            cut = [column[rows].cast(field.type) for column, field in zip(made, fields, strict=True)]
            yield pa.table([pa.array(ids), *cut], schema=self.subscription_schema)

    def subscriptions_table(self) -> pa.Table:
        """All subscriptions as one table, for those who want them in memory.

        >>> from tamis_lab.workloads import Equality
        >>> Equality(count=10).subscriptions_table().column_names
        ['id', 'expression', 'priority']
        """
        return (
            pa.concat_tables(self.subscriptions()) if self.count else self.subscription_schema.empty_table()
        )

    def events(self, count: int) -> Iterator[EventDict]:
        """Yield `count` events, one dict each, one block in memory at a time.

        >>> from tamis_lab.workloads import Equality
        >>> sum(1 for event in Equality(count=10).events(5))
        5
        """
        for block, first in enumerate(range(0, count, EVENT_BLOCK)):
            yield from self._events(block)[: count - first]

    def events_dicts(self, count: int) -> list[EventDict]:
        """The first `count` events as a list of dicts.

        >>> from tamis_lab.workloads import Dense
        >>> len(Dense(count=10).events_dicts(3)[0])
        20
        """
        return list(self.events(count))

    def events_table(self, count: int) -> pa.Table:
        """The first `count` events as a table with one column per attribute, null where it is absent.

        >>> from tamis_lab.workloads import Dense
        >>> Dense(count=10).events_table(3).shape
        (3, 20)
        """
        tables = list(self.event_tables(0, count))
        return pa.concat_tables(tables).combine_chunks() if tables else self.event_schema.empty_table()

    def event_tables(self, start: int, stop: int, key: str | None = None) -> Iterator[pa.Table]:
        """Yield events `start` to `stop` as tables; `key` names a first column with their numbers.

        >>> from tamis_lab.workloads import Equality
        >>> tables = list(Equality(count=10).event_tables(1_000, 1_100, key="event_id"))
        >>> [(table.num_rows, table["event_id"][0].as_py()) for table in tables]
        [(24, 1000), (76, 1024)]
        """
        for block, rows in blocks(start, stop, EVENT_BLOCK):
            table = self._event_table(block)[rows]
            if key is not None:
                numbers = np.arange(rows.start, rows.stop) + block * EVENT_BLOCK
                table = table.add_column(0, key, pa.array(numbers))
            yield table

    def _event_table(self, block: int) -> pa.Table:
        return pa.Table.from_pylist(self._events(block), schema=self.event_schema)

    def events_json(self, count: int) -> Iterator[str]:
        """Yield the first `count` events as JSON lines, without the line ends.

        >>> from tamis_lab.workloads import Dense
        >>> next(Dense(count=10).events_json(1))[0]
        '{'
        """
        return (json.dumps(event) for event in self.events(count))

    def write_parquet(self, path: str | Path, progress: Callable[[int], None] | None = None) -> None:
        """Write all subscriptions to a Parquet file, block by block; `progress` hears of each block's rows.

        >>> import tempfile
        >>> from tamis_lab.workloads import Equality
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Equality(count=10).write_parquet(f"{folder}/rules.parquet")
        ...     pq.read_table(f"{folder}/rules.parquet").num_rows
        10
        """
        write_tables(path, self.subscription_schema, self.subscriptions(), progress)

    def write_events_parquet(
        self,
        path: str | Path,
        count: int,
        key: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Write the first `count` events to a Parquet file, with a column of their numbers if it has a name.

        >>> import tempfile
        >>> from tamis_lab.workloads import Dense
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Dense(count=10).write_events_parquet(f"{folder}/events.parquet", 5, key="event_id")
        ...     pq.read_table(f"{folder}/events.parquet").shape
        (5, 21)
        """
        schema = self.event_schema
        if key is not None:
            schema = schema.insert(0, pa.field(key, pa.int64()))
        write_tables(path, schema, self.event_tables(0, count, key), progress)

    def write_events(self, path: str | Path, count: int) -> None:
        """Write the first `count` events as JSON lines.

        >>> import tempfile
        >>> from tamis_lab.workloads import Equality
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Equality(count=10).write_events(f"{folder}/events.jsonl", 2)
        ...     len(open(f"{folder}/events.jsonl").readlines())
        2
        """
        with Path(path).open("w", encoding="utf-8") as lines:
            lines.writelines(line + "\n" for line in self.events_json(count))


def blocks(start: int, stop: int, size: int) -> Iterator[tuple[int, slice]]:
    """The blocks of `size` rows that rows `start` to `stop` lie in, each with the rows wanted of it.

    >>> list(blocks(5, 12, size=10))
    [(0, slice(5, 10, None)), (1, slice(0, 2, None))]
    """
    if not 0 <= start <= stop:
        raise ValueError(f"rows {start} to {stop} are not a range")
    for block in range(start // size, -(-stop // size)):
        first = block * size
        rows = slice(max(start - first, 0), min(stop - first, size))
        if rows.start < rows.stop:
            yield block, rows


def write_tables(
    path: str | Path, schema: pa.Schema, tables: Iterable[pa.Table], progress: Callable[[int], None] | None
) -> None:
    """Write tables to a Parquet file as they come; `progress` hears of the rows that are written.

    >>> import tempfile
    >>> table = pa.table({"x": [1, 2]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tables(f"{folder}/x.parquet", table.schema, [table], progress=print)
    2
    """
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in _regrouped(tables):
            writer.write_table(table)
            if progress:
                progress(table.num_rows)


def _regrouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of at least `BLOCK` rows but for the last: a row group each."""
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(part.num_rows for part in pending) >= BLOCK:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)


def number_events(names: pa.Array, attributes: list[list[int]], values: list[list[int]]) -> list[EventDict]:
    """Events from rows of attribute numbers and rows of their values.

    >>> number_events(pa.array(["a0", "a1", "a2"]), [[0, 2]], [[10, 20]])
    [{'a0': 10, 'a2': 20}]
    """
    texts = names.to_pylist()
    return [
        {texts[attribute]: value for attribute, value in zip(*row, strict=True)}
        for row in zip(attributes, values, strict=True)
    ]
