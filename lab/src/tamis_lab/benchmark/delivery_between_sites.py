"""Measure delivery between three sites, all linked, and what pruning does to the traffic between them.

*Routed*: each site has a third of the subscriptions and publishes a third of the events; what another site
wants travels there. *Raw* moves as many messages through the same logs: every event is appended where it is
published and at each site it travelled to, read once for each link, and read as often as it was delivered.

Pruning makes what sites tell one another shorter and more general, so that more events travel than are wanted
(Bittner 2008, section 8.3). The subscriptions are those of the book auctions.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from tamis.pubsub import Router, Site, connect
from tamis.pubsub import keys as k
from tamis.pubsub.log import STATE, Entry, open_log
from tamis.pubsub.records import QueueLimits, Subscription
from tamis.pubsub.service.memory import freeze
from tamis.pubsub.sites.interest import Generalising, InterestEntry
from tamis.pubsub.sites.link import GOSSIP_SECONDS
from tamis.pubsub.sites.network import Network
from tamis.pubsub.sites.ways import topology_of
from tamis_lab.benchmark.delivery_steps import (
    BATCH,
    SUBSCRIBERS,
    event_bodies,
    logs_of,
    publish,
    read_queues,
    read_raw,
    subscribe,
)
from tamis_lab.experiments.bittner2008.auction_network import auction_like

SITES = ("paris", "rome", "bonn")
ROUNDS = 5
MOST_DELIVERIES = 60_000
QUIET = 3
"""This many steps without an event, and all is where it belongs."""
PRUNED = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class BetweenSites:
    """Three sites compared with their raw logs."""

    log: str
    subscriptions: int
    share: float
    """Of the subscriptions, how many match an event."""
    events: int
    deliveries: int
    travelled: int
    """Events that came to another site than their own."""
    ratio: float
    """Routed events per second by raw ones: the median of the rounds."""
    processor_ratio: float
    """The same by processor time."""


@dataclass(frozen=True)
class Traffic:
    """What three sites told one another, and what travelled, at one share of prunings."""

    pruned: float
    told_bytes: int
    """The length of all expressions that the sites told."""
    travelled: float
    """Events that came to other sites, per event that was published."""
    wanted: float
    """The share of them that somebody wanted there."""
    deliveries: int
    """The same for every share: nothing is lost."""


class Cluster:
    """Three sites in one process, each with a router, all linked to one another."""

    def __init__(self, sites: Sequence[Site], urls: Sequence[str], how: Generalising | None = None) -> None:
        """Link sites that are open; `how` says how they generalise what they tell."""
        self.sites = sites
        self.routers = [Router(site.log, site.settings) for site in sites]
        self.networks = [
            Network(
                site.log,
                site.settings,
                router.table,
                {name: partial(open_log, url) for name, url in zip(SITES, urls, strict=True) if name != here},
                router.counters,
                generalising=how,
                arrivals=router.arrivals,
            )
            for here, site, router in zip(SITES, sites, self.routers, strict=True)
        ]

    @classmethod
    @asynccontextmanager
    async def open(cls, urls: Sequence[str], how: Generalising | None = None) -> AsyncIterator["Cluster"]:
        """Open a site in each log."""
        async with AsyncExitStack() as stack:
            opened = [connect(url, name=name) for url, name in zip(urls, SITES, strict=True)]
            cluster = cls([await stack.enter_async_context(site) for site in opened], urls, how)
            for network in cluster.networks:
                stack.push_async_callback(network.close)
            yield cluster

    async def settle(self) -> None:
        """Route until nothing has happened for a while."""
        quiet = 0
        while quiet < QUIET:
            done = 0
            for router, network in zip(self.routers, self.networks, strict=True):
                while found := await router.step():
                    done += found
                done += await network.step()
            quiet = 0 if done else quiet + 1

    async def introduce(self) -> None:
        """Route until all sites know what each wants, and that all links work.

        While a site is busy with much interest, the others may believe that it is away, and tell so. Events
        would then wait for it, or take other ways.
        """
        rounds = 0
        while rounds < QUIET:
            await self.settle()
            await asyncio.sleep(GOSSIP_SECONDS)
            rounds = rounds + 1 if self._are_linked() else 0

    def _are_linked(self) -> bool:
        """Whether every site has told that all its links work, and every other one has heard it."""
        everybody = {site.settings.site for site in self.sites}
        for router, site in zip(self.routers, self.sites, strict=True):
            links = topology_of(router.table, site.settings.site).links
            if any(name not in links or set(links[name].working) != everybody - {name} for name in everybody):
                return False
        return True

    async def publish(self, bodies: Sequence[str]) -> None:
        """Publish a third of the events at each site."""
        for number, site in enumerate(self.sites):
            await publish(site, bodies[number::3])

    def travelled(self) -> int:
        """Events that have come over links so far."""
        return sum(router.counters.forwarded for router in self.routers)


def report(
    console: Console, subscriptions: int, events: int, logs: Sequence[str], shares: Sequence[float]
) -> tuple[list[BetweenSites], list[Traffic]]:
    """Measure both and print tables."""
    between = []
    table = Table("log", "subscriptions", "match", "events", "deliveries", "travelled", "ratio", "processor")
    for log in logs:
        for share in shares:
            with console.status(f"three sites, {log}, {share:.3%} match"):
                row = measure_sites(log, subscriptions, events, share)
            between.append(row)
            counts = (f"{count:,}" for count in (row.events, row.deliveries, row.travelled))
            ratios = (f"{row.ratio:.2f}", f"{row.processor_ratio:.2f}")
            table.add_row(log, f"{row.subscriptions:,}", f"{share:.3%}", *counts, *ratios)
    console.print(table)
    with console.status("pruning and traffic"):
        traffic = measure_traffic()
    table = Table("pruned", "told, bytes", "travelled per event", "wanted", "deliveries")
    for found in traffic:
        table.add_row(
            f"{found.pruned:.0%}",
            f"{found.told_bytes:,}",
            f"{found.travelled:.2f}",
            f"{found.wanted:.0%}",
            f"{found.deliveries:,}",
        )
    console.print(table)
    return between, traffic


def measure_sites(log: str, subscriptions: int, events: int, share: float) -> BetweenSites:
    """Compare three sites with their raw logs."""
    with logs_of(log, [*SITES, *(f"raw-{name}" for name in SITES)]) as urls:
        return asyncio.run(_measure(log, urls, subscriptions, events, share))


async def _measure(
    log: str, urls: Sequence[str], subscriptions: int, events: int, share: float
) -> BetweenSites:
    values = max(1, round(1 / share))
    fan_out = min(SUBSCRIBERS, max(1.0, subscriptions * share))
    events = max(300, min(events, int(MOST_DELIVERIES / fan_out)))
    bodies = event_bodies(events, values)
    raw, routed = [], []
    raw_processor, routed_processor = [], []
    async with Cluster.open(urls[:3]) as cluster, AsyncExitStack() as stack:
        beside = [await stack.enter_async_context(connect(url)) for url in urls[3:]]
        for number, site in enumerate(cluster.sites):
            # Those that match one event are spread over the sites.
            own = [n for n in range(subscriptions) if (n // values + n % values) % 3 == number]
            await subscribe(site, own, values)
        await cluster.introduce()
        freeze()  # as a router does
        after, after_raw = [0, 0, 0], [0, 0, 0]
        deliveries = travelled = 0
        for _ in range(ROUNDS):
            before = cluster.travelled()
            started, used = time.perf_counter(), time.process_time()
            await cluster.publish(bodies)
            await cluster.settle()
            read = []
            for number, site in enumerate(cluster.sites):
                found, after[number] = await read_queues(site, after[number])
                read.append(found)
            routed.append(time.perf_counter() - started)
            routed_processor.append(time.process_time() - used)
            deliveries, travelled = sum(read), cluster.travelled() - before
            started, used = time.perf_counter(), time.process_time()
            copies = [bodies[number::3] + bodies[: travelled // 3] for number in range(3)]
            for number, site in enumerate(beside):
                await publish(site, copies[number])
            for number, site in enumerate(beside):
                messages = read[number] + travelled // 3
                after_raw[number] = await read_raw(site, messages, after_raw[number])
            raw.append(time.perf_counter() - started)
            raw_processor.append(time.process_time() - used)
        expected = sum(len(range(int(body[5 : body.index(",")]), subscriptions, values)) for body in bodies)
        assert deliveries == expected, (deliveries, expected)
    ratio = float(np.median(np.divide(raw, routed)))
    processor_ratio = float(np.median(np.divide(raw_processor, routed_processor)))
    return BetweenSites(log, subscriptions, share, events, deliveries, travelled, ratio, processor_ratio)


def measure_traffic(subscriptions: int = 600, events: int = 300) -> list[Traffic]:
    """Book auctions at three sites on embedded logs, with more and more of what is told pruned."""
    found = []
    for share in PRUNED:
        with logs_of("sqlite", SITES) as urls:
            found.append(asyncio.run(_traffic(urls, share, subscriptions, events)))
    return found


async def _traffic(urls: Sequence[str], share: float, subscriptions: int, events: int) -> Traffic:
    workload = auction_like(subscriptions, paper=200_000, seed=1)
    rules = workload.subscriptions_table().column("expression").to_pylist()
    bodies = list(workload.events_json(2 * events))
    async with Cluster.open(urls, Generalising(pruning=share)) as cluster:
        for number, site in enumerate(cluster.sites):
            await site.log.append(STATE, [Entry(k.QUEUE, "reader", QueueLimits().body())])
            own = [
                Entry(*k.subscription_key("reader", str(n)), Subscription(rules[n]).body())
                for n in range(number, subscriptions, 3)
            ]
            for start in range(0, len(own), BATCH):
                await site.log.append(STATE, own[start : start + BATCH])
        await cluster.introduce()
        # What is often true is learnt from the first half, and the entries are pruned by it.
        await cluster.publish(bodies[:events])
        await cluster.introduce()
        before = [(router.counters.came, router.counters.came_wanted) for router in cluster.routers]
        delivered = sum(router.counters.deliveries for router in cluster.routers)
        await cluster.publish(bodies[events:])
        await cluster.settle()
        came = sum(r.counters.came - b[0] for r, b in zip(cluster.routers, before, strict=True))
        wanted = sum(r.counters.came_wanted - b[1] for r, b in zip(cluster.routers, before, strict=True))
        # What goes to a neighbour is a delivery too.
        deliveries = sum(router.counters.deliveries for router in cluster.routers) - delivered - came
        told = [await _told_bytes(site) for site in cluster.sites]
    return Traffic(share, sum(told), came / events, wanted / max(1, came), deliveries)


async def _told_bytes(site: Site) -> int:
    """The length of what a site tells others now."""
    entries: dict[str, int] = {}
    after = 0
    while records := await site.log.read(STATE, topic=k.INTEREST, after=after, most=BATCH):
        for record in records:
            if record.detail.startswith(f"{site.settings.site}."):
                entries[record.detail] = len(InterestEntry.read(record.body).expression or "")
        after = records[-1].seq
    return sum(entries.values())
