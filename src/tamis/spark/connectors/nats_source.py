"""NATS JetStream as a source and sink of Spark, batch and streaming, in plain Python: no jar is needed.

>>> from pyspark.sql import SparkSession
>>> from tamis.spark.connectors.nats_source import NatsDataSource
>>> spark = SparkSession.builder.getOrCreate()
>>> spark.dataSource.register(NatsDataSource)

```text
spark.read.format("nats").option("stream", "EVENTS").load()            # all that the stream holds
spark.readStream.format("nats").option("stream", "EVENTS").load()      # and what comes
frame.write.format("nats").mode("append").option("subject", "matches").save()
```

A row is a message: `subject`, `data`, `sequence`, `timestamp` and `headers`. The offset of a streaming query
is the sequence number of the last message that it has read, so a query resumes exactly there. Reading changes
nothing on the server: consumers are short-lived and acknowledge nothing.

Options for reading: `servers`, `stream`, `subject` (a filter, wildcards allowed), `data` ("binary" or
"string"), `startingSequence` ("earliest", "latest" or a number), `endingSequence` (batch only), `partitions`
(tasks that share a range), `prefetch` (messages on their way to a task), `maxMessagesPerTrigger` (streaming
only), `failOnDataLoss`, `timeout` (seconds), and `user`, `password`, `token` or `credentials`.
Writing is in `tamis.spark.connectors.nats_writer`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tamis.errors import ArgumentError
from tamis.spark.connectors.nats_session import NatsError, NatsSession
from tamis.spark.connectors.nats_writer import NatsStreamWriter, NatsWriter

PREFETCH = 1_000
"""Messages that a task asks for at once."""

_ATTEMPTS = 3
"""How often a task asks again for messages that do not come."""

_PAUSE_SECONDS = 0.25
"""How long a task waits after a failure before it asks again; after the second in a row, twice that."""

_IDLE_SECONDS = 600.0
"""How long the server keeps the consumer of a task that is busy with the rows it has."""


class NatsDataSource(DataSource):
    """The format "nats"; register it with `spark.dataSource.register(NatsDataSource)`.

    >>> NatsDataSource.name()
    'nats'
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "nats"

    def schema(self) -> str:
        """The columns of a message."""
        data = self.options.get("data", "binary")
        if data not in ("binary", "string"):
            raise ArgumentError(f'the option data is "binary" or "string", not {data!r}')
        return (
            f"subject string, data {data}, sequence bigint, timestamp timestamp, headers map<string,string>"
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what the stream holds."""
        return NatsReader(dict(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Read what the stream holds and what comes."""
        return NatsStreamReader(dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publish each row."""
        if overwrite:
            raise ArgumentError('messages can only be added: write with mode("append")')
        return NatsWriter(dict(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publish each row of each micro-batch."""
        return NatsStreamWriter(dict(self.options), schema)


@dataclass
class SequenceRange(InputPartition):
    """The messages of a stream from `first` to `last`, both included."""

    first: int
    last: int


class _Ranges:
    """What batch and streaming readers share: options, ranges, and reading one."""

    def __init__(self, options: dict[str, str]) -> None:
        # Spark hands over the names as the user wrote them.
        self.options = {name.lower(): value for name, value in options.items()}
        if not self.options.get("stream"):
            raise ArgumentError('the format "nats" reads a stream: name it with option("stream", "...")')
        self.stream = self.options["stream"]
        self.tasks = self._number("partitions", 1)
        self.prefetch = self._number("prefetch", PREFETCH)
        self.text = self.options.get("data", "binary") == "string"

    def _number(self, name: str, default: int | None) -> Any:
        given = self.options.get(name)
        if given is None:
            return default
        if not given.isdigit() or int(given) < 1:
            raise ArgumentError(f"the option {name} is a whole number from 1 on, not {given!r}")
        return int(given)

    def bounds(self) -> tuple[int, int]:
        """The first and the last sequence number that the stream holds; last < first when it is empty."""
        with NatsSession(self.options) as session:
            state = session.stream(self.stream).state
            return state.first_seq, state.last_seq

    def starting(self) -> int:
        """The sequence number before the first message to read."""
        given = self.options.get("startingsequence", "earliest")
        first, last = self.bounds()
        if given == "earliest":
            return max(0, first - 1)
        if given == "latest":
            return last
        if given.isdigit() and int(given) - 1 > last:
            raise ArgumentError(
                f"the option startingSequence is {given}, but the last message of {self.stream} is {last}; "
                'use "latest" to begin with the next one'
            )
        if given.isdigit():
            return max(0, int(given) - 1)
        raise ArgumentError(f'the option startingSequence is "earliest", "latest" or a number, not {given!r}')

    def split(self, after: int, last: int) -> list[SequenceRange]:
        """The messages after one and up to another, in about equal ranges."""
        count = last - after
        parts = min(self.tasks, count)
        edges = [after + count * part // parts for part in range(parts + 1)] if parts > 0 else []
        return [SequenceRange(low + 1, high) for low, high in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a range, as Arrow batches of at most `prefetch` rows."""
        if not isinstance(partition, SequenceRange):
            return  # Spark reads a table without partitions as one that says nothing
        with NatsSession(self.options) as session:
            for messages in _fetched(
                session, self.stream, self.options.get("subject"), partition, self.prefetch
            ):
                yield _batch(messages, self.text)


class NatsReader(_Ranges, DataSourceReader):
    """Reads what a stream holds when the query is planned."""

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of sequence numbers."""
        after = self.starting()
        last = self.bounds()[1]
        return self.split(after, min(last, self._number("endingsequence", last)))


class NatsStreamReader(_Ranges, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream micro-batch by micro-batch; the offset is the last sequence number that was read."""

    def __init__(self, options: dict[str, str]) -> None:
        """Read the options."""
        super().__init__(options)
        self.limit = self._number("maxmessagespertrigger", None)
        self.target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Before the first message."""
        return {"sequence": self.starting()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As many messages as the user allows in a micro-batch."""
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The last message, or the last that the limit allows: numbers that are missing count too."""
        before = start["sequence"]
        first, newest = self.bounds()
        self._refuse_loss(before, first, newest)
        if before > newest:  # the stream was recreated, and that is no error
            before = max(0, first - 1)
        last = newest if self.target is None else min(newest, self.target)
        if isinstance(limit, ReadMaxRows):
            # What was removed from the front needs no micro-batches.
            last = min(last, max(before, first - 1) + limit.max_rows)
        return {"sequence": max(before, last)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        """The last message of the stream, from which Spark tells how far behind a query is."""
        return {"sequence": self.bounds()[1]}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Go no further than what is there now."""
        self.target = self.bounds()[1]

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Ranges of sequence numbers; the same again when a micro-batch is replayed."""
        recreated = start["sequence"] > end["sequence"]
        return self.split(0 if recreated else start["sequence"], end["sequence"])

    def _refuse_loss(self, before: int, first: int, newest: int) -> None:
        if self.options.get("failondataloss", "true").lower() == "false":
            return
        remedy = 'start from a new checkpoint, or go on with option("failOnDataLoss", "false")'
        if newest < before:
            raise NatsError(
                f"the stream {self.stream!r} ends at message {newest}, but the query has read up to "
                f"{before}: the stream was recreated; {remedy}"
            )
        if first > before + 1:
            raise NatsError(
                f"the stream {self.stream!r} starts at message {first}, but the query has read only up to "
                f"{before}: the server has dropped the messages between; {remedy}"
            )


def _fetched(
    session: NatsSession, stream: str, subject: str | None, wanted: SequenceRange, prefetch: int
) -> Iterator[list[Any]]:
    """The messages of a range that the stream still holds, in order, a few at a time.

    What a consumer has sent is gone for it, also when the connection broke on the way, and the server forgets
    a consumer that was not asked for long. So a consumer is used only while it sends one message after the
    other; otherwise a new one starts after the last message that came.
    """
    from nats.errors import Error  # noqa: PLC0415 - an extra

    last = wanted.first - 1
    failures = 0
    while last < wanted.last:
        reason: Exception | None = None
        before = last
        try:
            with _Consumer(session, stream, subject, last + 1) as consumer:
                while last < wanted.last and (messages := consumer.next(prefetch)):
                    inside = [message for message in messages if _number(message) <= wanted.last]
                    last = _number(messages[-1])
                    if inside:
                        yield inside
                if consumer.complete:
                    return
        except Error as error:
            reason = error
        failures = failures + 1 if last == before else 0
        if failures == _ATTEMPTS:
            said = (str(reason) or type(reason).__name__) if reason else "they were lost on the way"
            raise NatsError(
                f"messages of {stream!r} after {last} did not come, {_ATTEMPTS} times ({said}); raise "
                "the option timeout if the network is slow"
            ) from reason
        time.sleep(failures * _PAUSE_SECONDS)


class _Consumer:
    """A consumer that the server keeps for one task; gone at the end of the `with` statement."""

    def __init__(self, session: NatsSession, stream: str, subject: str | None, first: int) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy  # noqa: PLC0415 - an extra

        self._session = session
        self._stream = stream
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=first,
            ack_policy=AckPolicy.NONE,
            filter_subject=subject,
            inactive_threshold=_IDLE_SECONDS,
            mem_storage=True,
        )
        added = session.wait(session.jetstream.add_consumer(stream, config))
        self._name = added.name
        self._bound = session.wait(session.jetstream.pull_subscribe_bind(added.name, stream))
        self._pending = added.num_pending or 0
        self._sent = 0
        self._lost = False
        self.complete = False
        """Whether all that the stream holds has come."""

    def __enter__(self) -> "_Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        from nats.errors import Error  # noqa: PLC0415 - an extra

        with suppress(Error):  # the server forgets it anyway
            self._session.wait(self._session.jetstream.delete_consumer(self._stream, self._name))

    def next(self, most: int) -> list[Any]:
        """The next messages; none when all have come, or when one is missing between those that came."""
        self.complete = not self._pending and not self._lost
        if self.complete or self._lost:
            return []
        fetched = self._bound.fetch(min(most, self._pending), timeout=self._session.timeout)
        messages: list[Any] = []
        for message in self._session.wait(fetched):
            self._lost = message.metadata.sequence.consumer != self._sent + 1
            if self._lost:
                break
            self._sent += 1
            self._pending = message.metadata.num_pending
            messages.append(message)
        return messages


def _number(message: Any) -> int:
    number: int = message.metadata.sequence.stream
    return number


def _batch(messages: list[Any], text: bool) -> pa.RecordBatch:
    data = [message.data.decode() if text else message.data for message in messages]
    headers = [list(message.headers.items()) if message.headers else None for message in messages]
    return pa.record_batch(
        {
            "subject": pa.array([message.subject for message in messages], pa.string()),
            "data": pa.array(data, pa.string() if text else pa.binary()),
            "sequence": pa.array([message.metadata.sequence.stream for message in messages], pa.int64()),
            "timestamp": pa.array(
                [message.metadata.timestamp for message in messages], pa.timestamp("us", tz="UTC")
            ),
            "headers": pa.array(headers, pa.map_(pa.string(), pa.string())),
        }
    )
