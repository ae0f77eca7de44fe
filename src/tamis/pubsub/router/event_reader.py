"""Reads the next batch of a partition: from the log, and from what a link of this process has just stored."""

from tamis.pubsub import keys
from tamis.pubsub.log.contract import EVENTS, MOST_READ_BYTES, Log, Record
from tamis.pubsub.records import Cursor
from tamis.pubsub.router.arrivals import Arrival, Arrivals

READ_AT_ONCE = 10_000


class EventReader:
    """Reads the events behind a cursor, in their order."""

    def __init__(self, log: Log, arrivals: Arrivals) -> None:
        """`arrivals` are those of the same log."""
        self._log = log
        self._arrivals = arrivals

    async def next(
        self, partition: int, cursor: Cursor, most: int
    ) -> tuple[list[Record], dict[int, Arrival]]:
        """The next batch, and those of its events that a link of this process has stored, by number.

        These are not read again, but for the first and the last. The others get the time of the first, which
        is not later than their own.
        """
        topic, position = keys.partition_topic(partition), cursor.position
        run = None if cursor.done else self._arrivals.behind(topic, position)
        if run is None:
            return await self.read(partition, cursor, most), {}
        here = run.behind(topic, position)
        records: list[Record] = []
        if position + 1 < run.first:
            before = min(most, here[0].seq - position)
            records = await self._log.read(EVENTS, topic=topic, after=position, most=before)
            if not records or records[-1].seq < here[0].seq:
                return records, {}
            here = run.behind(topic, records[-1].seq)
        here = _fitting(here, most - len(records))
        if not here:
            return records, {}
        ends = await self._log.fetch(EVENTS, {here[0].seq, here[-1].seq})
        if not all(_is_same(ends.get(one.seq), topic, one) for one in (here[0], here[-1])):
            self._arrivals.clear()  # another log
            return records or await self.read(partition, cursor, most), {}
        since = ends[here[0].seq].time
        record = Record._make
        records += [record((seq, topic, detail, since, body)) for seq, detail, body, _, _ in here[:-1]]
        records.append(ends[here[-1].seq])
        return records, {arrival.seq: arrival for arrival in here}

    async def as_stored(self, records: list[Record]) -> list[Record]:
        """The same records with the times that the log gave them; as they are where it has others by now."""
        stored = await self._log.fetch(EVENTS, {record.seq for record in records})
        found = [stored.get(record.seq, record) for record in records]
        return [
            there if there.body == record.body else record
            for there, record in zip(found, records, strict=True)
        ]

    async def read(self, partition: int, cursor: Cursor, most: int) -> list[Record]:
        """The next batch as the log has it; what some queues have already is read again as it was."""
        topic = keys.partition_topic(partition)
        records = await self._log.read(EVENTS, topic=topic, after=cursor.position, most=most)
        if not cursor.done:
            return records
        until = cursor.until or (records[0].seq if records else 0)
        while records and records[-1].seq < until:
            more = await self._log.read(EVENTS, topic=topic, after=records[-1].seq, most=READ_AT_ONCE)
            if not more:
                if await self._log.end(EVENTS) >= until:
                    return []  # a replica that lags behind
                break
            records += more
        return [record for record in records if record.seq <= until]


def _is_same(record: Record | None, topic: str, arrival: Arrival) -> bool:
    return record is not None and record[1:3] == (topic, arrival.detail) and record.body == arrival.body


def _fitting(arrivals: list[Arrival], most: int) -> list[Arrival]:
    """The first of them, as many as a batch has room for."""
    size = 0
    for place, arrival in enumerate(arrivals):
        size += len(arrival.body)
        if place >= most or (place and size > MOST_READ_BYTES):
            return arrivals[:place]
    return arrivals
