"""Inspection and maintenance of a site by an operator."""

from typing import Any

from tamis.pubsub import keys
from tamis.pubsub.log.contract import EVENTS, QUEUES, STATE, Entry, Record
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import Cursor, Delivery, Reading, RecordError, read_drops, write
from tamis.pubsub.router.table import Table
from tamis.pubsub.site import Site
from tamis.pubsub.sites.ways import topology_of


async def status(site: Site) -> dict[str, Any]:
    """Partitions, routers, other sites and sizes.

    >>> import asyncio, tempfile
    >>> from tamis.pubsub.site import connect
    >>> async def example(folder):
    ...     async with connect(f"sqlite:{folder}/site.db", partitions=1) as site:
    ...         return await status(site)
    >>> asyncio.run(example(tempfile.mkdtemp()))["partitions"]
    [{'partition': 0, 'router': None, 'routed': 0}]
    """
    table = Table(site.log, site=site.name)
    await table.catch_up()
    numbers = range(site.settings.partitions)
    cursors = await site.log.last(QUEUES, [(keys.CURSOR, str(number)) for number in numbers])
    partitions = []
    for number in numbers:
        record = cursors.get((keys.CURSOR, str(number)))
        cursor = Cursor.read(record.body) if record is not None else Cursor("", 0)
        partitions.append({"partition": number, "router": cursor.router or None, "routed": cursor.position})
    topology = topology_of(table, site.name)
    return {
        "site": site.name,
        "partitions": partitions,
        "routers": sorted(table.others.of(keys.ROUTER)),
        "sites": {name: topology.is_reachable(name) for name in sorted(topology.sites) if name != site.name},
        "subscriptions": len(table.index),
        "subscribers": len(table.queues),
        "last_event": await site.log.end(EVENTS),
        "dead_letters": len(await site.log.read(QUEUES, topic=keys.DEAD, most=1_000_000)),
        "unreadable": table.unreadable,
        "bytes": await site.log.size(),
    }


async def subscribers(site: Site) -> list[dict[str, Any]]:
    """Each subscriber, with what waits for it and what was dropped."""
    table = Table(site.log, site=site.name)
    await table.catch_up()
    found = []
    for name in sorted(table.queues):
        reading = _reading(table.others.get((keys.READ, name)))
        waiting = size = 0
        after = reading.after
        while records := await site.log.read(QUEUES, topic=f"q-{name}", after=after):
            for record in records:
                try:
                    delivery = Delivery.read(record.body)
                except RecordError:
                    continue
                waiting += len(delivery.events)
                size += delivery.size
            after = records[-1].seq
        drops = read_drops(table.others.get((keys.DROP, name)))
        found.append(
            {
                "subscriber": name_of(name),
                "waiting": waiting - reading.part,
                "bytes": size,
                "dropped": drops.totals,
                "limits": vars_of(table.queues[name]),
            }
        )
    return found


def _reading(record: Record | None) -> Reading:
    try:
        return Reading.read(record.body) if record is not None else Reading("")
    except RecordError:
        return Reading("")


def vars_of(record: Any) -> dict[str, Any]:
    """The fields of a record.

    >>> from tamis.pubsub.records import QueueLimits
    >>> vars_of(QueueLimits(most_bytes=1))["most_bytes"]
    1
    """
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


async def knows(site: Site, subscriber: str) -> bool:
    """Whether there is such a subscriber."""
    key = (keys.QUEUE, token(subscriber))
    record = (await site.log.last(STATE, [key])).get(key)
    return record is not None and bool(record.body)


async def replay(site: Site, subscriber: str, seconds: float | None = None) -> int:
    """Move a subscriber back; returns how many events it gets again."""
    topic, key = keys.queue_topic(subscriber), (keys.READ, token(subscriber))
    before = (await site.log.last(STATE, [key])).get(key)
    reading = _reading(before)
    newest = max((record.time for record in await site.log.read(STATE, most=1_000_000)), default=0)
    position, after, count = 0, 0, 0
    while records := await site.log.read(QUEUES, topic=topic, after=after, to_end=True):
        for record in records:
            if seconds is not None and record.time < newest - seconds * 1_000_000:
                position = record.seq
            elif record.seq <= reading.after:
                count += len(Delivery.read(record.body).events)
        after = records[-1].seq
    moved = Reading("operator", position, is_replay=True)
    await site.log.append(STATE, [Entry(*key, moved.body())])
    return count


async def drain(site: Site, router: str) -> bool:
    """Ask a router to end; returns whether there is one of that name."""
    key = (keys.ROUTER, token(router))
    record = (await site.log.last(STATE, [key])).get(key)
    if record is None or not record.body:
        return False
    await site.log.append(STATE, [Entry(keys.DRAIN, token(router), write({}))])
    return True
