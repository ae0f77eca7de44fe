"""Reads the next batch of a partition: from the log, and from what a link of this process has just stored."""

from tamis.pubsub import keys
from tamis.pubsub.log.contract import EVENTS, MOST_READ_BYTES, Log, Record
from tamis.pubsub.records import Cursor
from tamis.pubsub.router.arrivals import Arrival, Arrivals, Run

READ_AT_ONCE = 10_000
WORTH_A_READ = 100
"""About how many events can be read in the time that another request takes."""


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

        These are not read again, but for the first and the last of each run. The others get the time of the
        first, which is not later than their own.
        """
        topic, known_to = keys.partition_topic(partition), cursor.position
        runs = self._arrivals.behind(topic, known_to)
        parts: list[tuple[list[Record], list[Arrival]]] = []
        """Of each run: what was read before it, and what is taken of it."""
        count = size = 0
        for run in [] if cursor.done else _worth_taking(runs, topic, known_to):
            here, before = run.behind(topic, known_to), []
            if here and known_to + 1 < run.first:
                wanted = min(most - count, here[0].seq - known_to)
                # There is something, at least the first of the run: a lagging replica delays nothing.
                before = await self._log.read(EVENTS, topic=topic, after=known_to, most=wanted, to_end=True)
                count, size = count + len(before), size + sum([len(record.body) for record in before])
                if not before or before[-1].seq < here[0].seq:
                    parts.append((before, []))
                    break
                known_to = before[-1].seq
                here = run.behind(topic, known_to)
            taken = _fitting(here, most - count, MOST_READ_BYTES - size)
            parts.append((before, taken))
            count, size = count + len(taken), size + sum([len(arrival.body) for arrival in taken])
            known_to = max(known_to, run.last)
            if len(taken) < len(here) or count >= most or size >= MOST_READ_BYTES:
                break
        if not parts:
            return await self.read(partition, cursor, most, to_end=bool(runs)), {}
        records = await self._joined(topic, parts)
        if records is None:
            self._arrivals.clear()  # another log
            return await self.read(partition, cursor, most), {}
        return records, {arrival.seq: arrival for _, taken in parts for arrival in taken}

    async def _joined(
        self, topic: str, parts: list[tuple[list[Record], list[Arrival]]]
    ) -> list[Record] | None:
        """All records of a batch; None if the log has others where links have stored these."""
        wanted = {one.seq for _, here in parts if here for one in (here[0], here[-1])}
        ends = await self._log.fetch(EVENTS, wanted) if wanted else {}
        records: list[Record] = []
        record = Record._make
        for before, here in parts:
            records += before
            if not here:
                continue
            if not all(_is_same(ends.get(one.seq), topic, one) for one in (here[0], here[-1])):
                return None
            since = ends[here[0].seq].time
            records += [record((seq, topic, detail, since, body)) for seq, detail, body, _, _ in here[:-1]]
            records.append(ends[here[-1].seq])
        return records

    async def as_stored(self, records: list[Record]) -> list[Record]:
        """The same records with the times that the log gave them; as they are where it has others by now."""
        stored = await self._log.fetch(EVENTS, {record.seq for record in records})
        found = [stored.get(record.seq, record) for record in records]
        return [
            there if there.body == record.body else record
            for there, record in zip(found, records, strict=True)
        ]

    async def read(self, partition: int, cursor: Cursor, most: int, *, to_end: bool = False) -> list[Record]:
        """The next batch as the log has it; what some queues have already is read again as it was.

        With `to_end`, an empty answer says that there is nothing, and not that a replica lags behind.
        """
        topic = keys.partition_topic(partition)
        to_end = to_end or bool(cursor.done)  # of which something was read before
        records = await self._log.read(EVENTS, topic=topic, after=cursor.position, most=most, to_end=to_end)
        if not cursor.done:
            return records
        until = cursor.until or (records[0].seq if records else 0)
        while (
            records
            and records[-1].seq < until
            and (
                more := await self._log.read(
                    EVENTS, topic=topic, after=records[-1].seq, most=READ_AT_ONCE, to_end=True
                )
            )
        ):
            records += more
        return [record for record in records if record.seq <= until]


def _worth_taking(runs: list[Run], topic: str, position: int) -> list[Run]:
    """The runs to take from memory, as what lies before each costs a read of its own.

    While local publishers write between the appends of links, there are many small runs. One read returns
    all of them for one batch.
    """
    if len(runs) == 1:
        return runs
    return [run for run in runs if len(run.behind(topic, position)) >= WORTH_A_READ]


def _is_same(record: Record | None, topic: str, arrival: Arrival) -> bool:
    return record is not None and record[1:3] == (topic, arrival.detail) and record.body == arrival.body


def _fitting(arrivals: list[Arrival], most: int, room: int) -> list[Arrival]:
    """The first of them, as many as a batch has room for; the last may exceed the bytes."""
    if len(arrivals) <= most and sum([len(arrival[2]) for arrival in arrivals]) <= room:
        return arrivals
    size = 0
    for place, arrival in enumerate(arrivals):
        if place >= most or size >= room:
            return arrivals[:place]
        size += len(arrival.body)
    return arrivals
