"""Tells which sites already know a subscription."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tamis.pubsub import keys
from tamis.pubsub.log.contract import STATE, Log, Record
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import MOST_NUMBER, Fields, RecordError
from tamis.pubsub.sites.topology import SiteLinks

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Which sites know all subscriptions made so far at a site, and which do not yet.

    >>> Confirmation("paris", confirmed=("paris",), missing=("rome",)).is_complete
    False
    """

    site: str
    confirmed: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every known site knows them."""
        return not self.missing


async def confirm(log: Log, site: str, wanted: int, wait: float) -> Confirmation:
    """Wait up to this many seconds until other sites know a record of the state."""
    deadline = time.monotonic() + wait
    while True:
        others = await _others(log, site)
        missing = tuple(sorted(name for name, known in others.items() if known < wanted))
        if not missing or time.monotonic() >= deadline:
            confirmed = (site, *sorted(set(others) - set(missing)))
            return Confirmation(site, confirmed, missing)
        await asyncio.sleep(POLL_SECONDS)


async def _others(log: Log, site: str) -> dict[str, int]:
    """All other sites that are known, each with how much of this site's state its interest is based on."""
    applied: dict[str, int] = {}
    async for record in _records(log, keys.APPLIED):
        origin, _, by = record.detail.partition(".")
        if origin == token(site) and name_of(by) != site:
            try:
                applied[name_of(by)] = Fields(record.body, "confirmation").number("position")
            except RecordError:
                applied.setdefault(name_of(by), 0)
    known: dict[str, int] = {}
    told = MOST_NUMBER
    async for record in _records(log, keys.LINKS):
        known[name_of(record.detail)] = 0
        try:
            links = SiteLinks.read(record.body)
        except RecordError:
            continue
        # A neighbour that has never been heard of is missing, too.
        known |= dict.fromkeys(links.configured, 0)
        if name_of(record.detail) == site:
            told = links.position
    known.pop(site, None)
    # Who knows more than was told has learnt it before this log was restored from an older copy.
    return known | {name: number if number <= told else 0 for name, number in applied.items()}


async def _records(log: Log, topic: str) -> AsyncIterator[Record]:
    """All records of a topic, also where a replica lags behind: a site left out would count as told."""
    after = 0
    while records := await log.read(STATE, topic=topic, after=after, most=10_000, to_end=True):
        for record in records:
            if keys.is_key(topic, record.detail):
                yield record
        after = records[-1].seq
