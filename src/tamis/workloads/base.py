"""What every workload can do: stream its subscriptions, make events, and write both to files.

A workload is deterministic: the same parameters and seed give the same rows on every machine. Subscriptions
come in blocks of `BLOCK` rows, each from its own random stream, so memory stays flat however many are asked
for. Events are numbered, and event 17 is the same whether a hundred or a million of them are made.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.workloads.sampling import stream

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

    def subscriptions(self) -> Iterator[pa.Table]:
        """Yield tables of (id, expression, priority), ids counting from 0, `count` rows in all.

        >>> from tamis.workloads import Equality
        >>> [table.num_rows for table in Equality(count=20_000).subscriptions()]
        [16384, 3616]
        """
        for block, first in enumerate(range(0, self.count, BLOCK)):
            rows = min(BLOCK, self.count - first)
            ids = np.arange(first, first + rows)
            expressions = self._expressions(block)[:rows].cast(pa.string())
            priorities = stream(self.seed, self.name, "priority", block).random(BLOCK)[:rows].round(6)
            yield pa.table([ids, expressions, priorities], schema=SUBSCRIPTION_SCHEMA)

    def subscriptions_table(self) -> pa.Table:
        """All subscriptions as one table, for those who want them in memory.

        >>> from tamis.workloads import Equality
        >>> Equality(count=10).subscriptions_table().column_names
        ['id', 'expression', 'priority']
        """
        return pa.concat_tables(self.subscriptions()) if self.count else SUBSCRIPTION_SCHEMA.empty_table()

    def events(self, count: int) -> Iterator[EventDict]:
        """Yield `count` events, one dict each, one block in memory at a time.

        >>> from tamis.workloads import Equality
        >>> sum(1 for event in Equality(count=10).events(5))
        5
        """
        for block, first in enumerate(range(0, count, EVENT_BLOCK)):
            yield from self._events(block)[: count - first]

    def events_dicts(self, count: int) -> list[EventDict]:
        """The first `count` events as a list of dicts.

        >>> from tamis.workloads import Dense
        >>> len(Dense(count=10).events_dicts(3)[0])
        20
        """
        return list(self.events(count))

    def events_table(self, count: int) -> pa.Table:
        """The first `count` events as a table with one column per attribute, null where it is absent.

        >>> from tamis.workloads import Dense
        >>> Dense(count=10).events_table(3).shape
        (3, 20)
        """
        return pa.Table.from_pylist(self.events_dicts(count), schema=self.event_schema)

    def events_json(self, count: int) -> Iterator[str]:
        """Yield the first `count` events as JSON lines, without the line ends.

        >>> from tamis.workloads import Dense
        >>> next(Dense(count=10).events_json(1))[0]
        '{'
        """
        return (json.dumps(event) for event in self.events(count))

    def write_parquet(self, path: str | Path, progress: Callable[[int], None] | None = None) -> None:
        """Write all subscriptions to a Parquet file, block by block; `progress` hears of each block's rows.

        >>> import tempfile
        >>> from tamis.workloads import Equality
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Equality(count=10).write_parquet(f"{folder}/rules.parquet")
        ...     pq.read_table(f"{folder}/rules.parquet").num_rows
        10
        """
        with pq.ParquetWriter(path, SUBSCRIPTION_SCHEMA, compression="zstd") as writer:
            for table in self.subscriptions():
                writer.write_table(table)
                if progress:
                    progress(table.num_rows)

    def write_events(self, path: str | Path, count: int) -> None:
        """Write the first `count` events as JSON lines.

        >>> import tempfile
        >>> from tamis.workloads import Equality
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Equality(count=10).write_events(f"{folder}/events.jsonl", 2)
        ...     len(open(f"{folder}/events.jsonl").readlines())
        2
        """
        with Path(path).open("w", encoding="utf-8") as lines:
            lines.writelines(line + "\n" for line in self.events_json(count))


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
