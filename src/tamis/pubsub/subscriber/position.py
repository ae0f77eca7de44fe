"""Where a client is in its queue, and whether the log is still the one in which it was there.

A position names the last record that was read by a digest. In a log that was rolled back, another record is
in its place, or none. Where a record was removed in good order, there are later numbers.
"""

from collections.abc import Sequence

from tamis.pubsub.log.contract import QUEUES, Log, Record, last_by, mark
from tamis.pubsub.records import Reading


async def still_valid(log: Log, topic: str, reading: Reading) -> tuple[Reading, Record | None]:
    """A position as it is, or moved back if the queue was rolled back behind it; and its record."""
    number = reading.looked_into
    found = (await log.fetch(QUEUES, [number])).get(number) if number else None
    if found is not None:
        is_same = reading.mark in ("", mark(found))
    else:  # removed in good order, or lost
        is_same = not number or await log.end(QUEUES) >= number
    if is_same:
        return reading, found if found is not None and found.topic == topic else None
    after = await last_by(log, QUEUES, topic, reading.time)
    return Reading(reading.client, after, time=reading.time), None


async def is_still_there(log: Log, last: Record, records: Sequence[Record]) -> bool | None:
    """Whether the log still has the last record that was read, which may be the first of `records`.

    None if it was removed in good order.
    """
    there = records[0] if records and records[0].seq == last.seq else None
    if there is None and (there := (await log.fetch(QUEUES, [last.seq])).get(last.seq)) is None:
        return False if await log.end(QUEUES) < last.seq else None
    return there == last


def progress(reading: Reading) -> tuple[int, int, int]:
    """Positions in their order.

    >>> progress(Reading("c1", 5)) < progress(Reading("c1", 5, part=1, part_of=6))
    True
    """
    return reading.after, reading.part_of, reading.part
