"""Publishing rows to NATS JetStream: at least once, and once within the stream's duplicate window.

Each message carries a `Nats-Msg-Id` made of the query, the micro-batch, the partition and the row: when a
task or a micro-batch runs again, the server recognises what it has. A row that has a column `message_id` uses
that.

The columns are `data` and optionally `subject`, `headers` (a map) and `message_id`. The option `subject` is
for rows that name none; `window` is how many messages may wait for the server's answer.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import Row, StructType

from tamis.errors import ArgumentError
from tamis.spark.connectors.nats_session import NatsError, NatsSession

WINDOW = 256
"""Messages that may wait for the server's answer."""

_TYPES = {
    "data": ("binary", "string"),
    "subject": ("string",),
    "headers": ("map<string,string>",),
    "message_id": ("string",),
}


class _Publisher:
    """Publishes the rows of a task."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.options = {name.lower(): value for name, value in options.items()}
        self.run = uuid.uuid4().hex  # made on the driver: tasks that run again have the same one
        _check(schema, self.options)

    def publish(self, rows: Iterator[Row]) -> None:
        """Publish all rows, each with its id."""
        prefix = _task_id(self.run)
        window = int(self.options.get("window", WINDOW))
        waiting: list[Any] = []
        with NatsSession(self.options) as session:
            seen: dict[str, int] = {}
            for row in rows:
                waiting.append(self._message(row, prefix, seen))
                if len(waiting) == window:
                    session.wait(_publish(session, waiting))
                    waiting = []
            session.wait(_publish(session, waiting))

    def _message(self, row: Row, prefix: str, seen: dict[str, int]) -> tuple[str, bytes, dict[str, str]]:
        """The message of a row. Its id is made of its content: another attempt may see another order."""
        given = row.asDict()
        subject = given.get("subject") or self.options.get("subject")
        if not subject:
            raise ArgumentError('a row has no subject, and there is no option("subject", "...") for it')
        data = given["data"]
        content = data.encode() if isinstance(data, str) else bytes(data or b"")
        digest = hashlib.sha256(subject.encode() + b"\0" + content).hexdigest()[:32]
        seen[digest] = seen.get(digest, 0) + 1
        default_id = f"{prefix}-{digest}-{seen[digest]}"
        headers = {**(given.get("headers") or {}), "Nats-Msg-Id": given.get("message_id") or default_id}
        return subject, content, headers


class NatsWriter(_Publisher, DataSourceWriter):
    """Publishes the rows of a batch DataFrame."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish the rows of a partition."""
        self.publish(iterator)
        return WriterCommitMessage()


class NatsStreamWriter(_Publisher, DataSourceStreamWriter):
    """Publishes the rows of each micro-batch."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish the rows of a partition."""
        self.publish(iterator)
        return WriterCommitMessage()


def _check(schema: StructType, options: dict[str, str]) -> None:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "data" not in types:
        raise ArgumentError(
            f"a message needs a column `data`; the rows have {', '.join(types)}. To send them as JSON: "
            "select(to_json(struct('*')).alias('data'))"
        )
    for name, given in types.items():
        if name not in _TYPES:
            raise ArgumentError(
                f"a message has the columns {', '.join(_TYPES)}, and no {name!r}: leave it out"
            )
        if given not in _TYPES[name]:
            raise ArgumentError(f"the column {name!r} must be {' or '.join(_TYPES[name])}, not {given}")
    if "subject" not in types and not options.get("subject"):
        raise ArgumentError('where to? Set option("subject", "...") or give the rows a column `subject`')


def _task_id(run: str) -> str:
    """What the ids of a task's messages start with: the same when it, or its micro-batch, runs again."""
    context = TaskContext.get()
    if context is None:
        return run
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    start = run if query is None else f"{query}-{batch}"
    return f"{start}-{context.partitionId()}"


async def _publish(session: NatsSession, messages: list[tuple[str, bytes, dict[str, str]]]) -> None:
    from nats.js.errors import Error, NoStreamResponseError  # noqa: PLC0415 - an extra

    jetstream = session.jetstream
    try:
        await asyncio.gather(
            *(jetstream.publish(subject, data, headers=headers) for subject, data, headers in messages)
        )
    except NoStreamResponseError:
        subjects = ", ".join(sorted({subject for subject, _, _ in messages})[:5])
        raise NatsError(
            f"no stream takes messages of {subjects}; make one with `nats stream add ... --subjects ...`"
        ) from None
    except Error as error:
        raise NatsError(f"the server refused a message: {error}") from error
