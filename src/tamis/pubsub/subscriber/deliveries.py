"""Reads what the records of a queue refer to, and says what is missing before one."""

from collections.abc import Iterable, Sequence

from tamis.pubsub import keys
from tamis.pubsub.log.contract import EVENTS, MOST_READ_BYTES, QUEUES, Log, Record
from tamis.pubsub.records import LINK, ROLLBACK, Delivery, Drops, RecordError
from tamis.pubsub.subscriber.items import Gap

Payload = tuple[str | None, int]
"""Which copy, if it is none of the events themselves, and the number of an event."""


def read_deliveries(records: Sequence[Record]) -> dict[int, Delivery]:
    """The deliveries of the first records, by number: a queue can be larger than this machine's memory.

    One that cannot be read is empty, and has no number.
    """
    found: dict[int, Delivery] = {}
    size = 0
    for record in records:
        try:
            delivery = Delivery.read(record.body)
        except RecordError:
            delivery = Delivery(0, ())
        size += delivery.size
        if found and size > MOST_READ_BYTES:
            break
        found[record.seq] = delivery
    return found


async def payloads(log: Log, deliveries: Iterable[Delivery]) -> dict[Payload, Record]:
    """The events that deliveries refer to, or their copies; those that are gone are left out."""
    wanted: dict[str | None, set[int]] = {}
    for delivery in deliveries:
        wanted.setdefault(delivery.copy, set()).update(delivery.events)
    found: dict[Payload, Record] = {}
    for copy, numbers in wanted.items():
        if copy is None:
            fetched = await log.fetch(EVENTS, numbers)
            found |= {(None, number): record for number, record in fetched.items()}
        else:
            topic = f"{keys.COPY}{copy}"
            lasts = await log.last(QUEUES, [(topic, str(number)) for number in numbers])
            found |= {(copy, int(detail)): record for (_, detail), record in lasts.items()}
    return found


def gaps_before(record: Record, first: int, expected: int, drops: Drops) -> list[Gap]:
    """What is missing before a record whose first delivery has another number than was expected.

    >>> from tamis.pubsub.records import read_drops
    >>> record = Record(9, "q-ann", "0.4", 0, b"")
    >>> [(gap.reason, gap.count) for gap in gaps_before(record, 7, 5, read_drops(None))]
    [('lost', 2)]
    """
    place = (record.seq, 0)
    if first < expected:
        # A lane never counts back, unless the log is an older copy that has grown again.
        return [Gap(ROLLBACK, None, place)]
    counts: dict[str, int] = {}
    number = expected
    while number < first:
        reason, last = drops.run(record.detail, number)
        last = min(last, first - 1)
        counts[reason] = counts.get(reason, 0) + last - number + 1
        number = last + 1
    # How many a gap stood for, and who wanted them, is not known.
    return [
        Gap(reason, None if reason in (LINK, ROLLBACK) else count, place) for reason, count in counts.items()
    ]
