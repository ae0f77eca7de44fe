"""Compare delivery with the raw log: the same client, the same number of messages, in the same run.

*Raw* is the cost of the log itself: events of 1 KB are appended, and as many messages are read as deliveries
would be read. *Routed* adds what Tamis does in between: matching, deliveries, cursors. Both are timed in
turns, on separate logs, and compared round by round, so that other work on the machine slows both. By the
clock, both also wait for the disk. *Processor* compares the processor time of this process, which has clients
and router; a server of NATS is another one.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tamis.pubsub import Router, Site, connect
from tamis.pubsub.service.memory import freeze
from tamis_lab.benchmark.delivery_between_sites import report
from tamis_lab.benchmark.delivery_steps import (
    PADDING,
    SUBSCRIBERS,
    event_bodies,
    logs_of,
    publish,
    read_queues,
    read_raw,
    subscribe,
)
from tamis_lab.benchmark.environment import describe

SHARES = (0.00001, 0.0001, 0.001, 0.01)
MOST_DELIVERIES = 200_000
ROUNDS = 5


@dataclass(frozen=True)
class Figure:
    """One row of the report."""

    log: str
    subscriptions: int
    share: float
    """Of the subscriptions, how many match an event."""
    events: int
    deliveries: int
    raw_per_second: float
    """Events a second through the raw log: appended, and read as often as they are delivered."""
    routed_per_second: float
    ratio: float
    """The second by the first: the median of the rounds."""
    processor_ratio: float
    """The same by processor time."""
    added: float
    """What the router takes, as a share of what the raw log takes: the median of the rounds."""
    p99_milliseconds: float
    replay_seconds: float
    """Until a fresh router has read all subscriptions."""
    snapshot_seconds: float


def run(
    subscriptions: int, events: int, logs: Sequence[str], shares: Sequence[float], sites: Sequence[int]
) -> None:
    """Measure one site and three, print tables, and write bench/results/pubsub.json."""
    console = Console(highlight=False)
    found: dict[str, object] = {"environment": describe(0)}
    if 1 in sites:
        rows = _one_site(console, subscriptions, events, logs, shares)
        found["rows"] = [asdict(row) for row in rows]
    if 3 in sites:
        between, traffic = report(console, subscriptions, events, logs, shares)
        found["between_sites"] = [asdict(row) for row in between]
        found["traffic"] = [asdict(row) for row in traffic]
    path = Path("bench/results/pubsub.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    console.print(f"written to {path}")


def _one_site(
    console: Console, subscriptions: int, events: int, logs: Sequence[str], shares: Sequence[float]
) -> list[Figure]:
    found: list[Figure] = []
    for log in logs:
        for share in shares:
            with logs_of(log, ("raw", "routed")) as urls, console.status(f"{log}, {share:.3%} match"):
                found.append(asyncio.run(_measure(log, urls, subscriptions, events, share)))
            row = found[-1]
            console.print(f"{log}, {share:.3%} match: {row.ratio:.2f} of the raw rate")
    _print(console, found)
    return found


async def _measure(log: str, urls: Sequence[str], subscriptions: int, events: int, share: float) -> Figure:
    values = max(1, round(1 / share))
    fan_out = min(SUBSCRIBERS, max(1.0, subscriptions * share))
    events = max(200, min(events, int(MOST_DELIVERIES / fan_out)))
    bodies = event_bodies(events, values)
    async with connect(urls[1]) as site:
        await subscribe(site, range(subscriptions), values)
        started = time.perf_counter()
        router = Router(site.log, site.settings, snapshot=Path(tempfile.mkdtemp()) / "snapshot.tamis")
        await router.step()
        router.table.index.count({"k": 1})
        replay = time.perf_counter() - started
        router.table.save()
        started = time.perf_counter()
        again = Router(site.log, site.settings, snapshot=router.table._snapshot)
        await again.table.catch_up()
        snapshot = time.perf_counter() - started
        freeze()  # as a router does
        raw, routed, routing = [], [], []
        raw_processor, routed_processor = [], []
        deliveries = after = after_raw = 0
        async with connect(urls[0]) as beside:
            for _ in range(ROUNDS):
                started, before = time.perf_counter(), time.process_time()
                await publish(site, bodies)
                published = time.perf_counter()
                while await router.step():
                    pass
                routing.append(time.perf_counter() - published)
                deliveries, after = await read_queues(site, after)
                routed.append(time.perf_counter() - started)
                routed_processor.append(time.process_time() - before)
                started, before = time.perf_counter(), time.process_time()
                await publish(beside, bodies)
                after_raw = await read_raw(beside, deliveries, after_raw)
                raw.append(time.perf_counter() - started)
                raw_processor.append(time.process_time() - before)
        assert deliveries * ROUNDS == router.counters.deliveries, (deliveries, router.counters)
        p99 = await _latency(site, router, min(300, events))
    return Figure(
        log,
        subscriptions,
        share,
        events,
        deliveries,
        events / float(np.median(raw)),
        events / float(np.median(routed)),
        float(np.median(np.divide(raw, routed))),
        float(np.median(np.divide(raw_processor, routed_processor))),
        float(np.median(np.divide(routing, raw))),
        p99 * 1_000,
        replay,
        snapshot,
    )


async def _latency(site: Site, router: Router, count: int) -> float:
    """From `publish` to `next`, one event at a time, with a router that waits for it; the 99th percentile."""
    reader = await site.subscriber("latency")
    await reader.subscribe("mine", "latency")
    publisher = await site.publisher("latency")
    routing = asyncio.create_task(router.run())
    took = []
    for _ in range(count):
        started = time.perf_counter()
        await publisher.publish({"latency": True, "text": PADDING})
        await reader.next(timeout=30)
        took.append(time.perf_counter() - started)
    router.stop()
    await routing
    return float(np.percentile(took, 99))


def _print(console: Console, rows: Sequence[Figure]) -> None:
    table = Table(
        "log",
        "subscriptions",
        "match",
        "events",
        "deliveries",
        "raw /s",
        "routed /s",
        "ratio",
        "processor",
        "router / raw",
        "p99 ms",
        "replay s",
        "snapshot s",
    )
    for row in rows:
        table.add_row(
            row.log,
            f"{row.subscriptions:,}",
            f"{row.share:.3%}",
            f"{row.events:,}",
            f"{row.deliveries:,}",
            f"{row.raw_per_second:,.0f}",
            f"{row.routed_per_second:,.0f}",
            f"{row.ratio:.2f}",
            f"{row.processor_ratio:.2f}",
            f"{row.added:.2f}",
            f"{row.p99_milliseconds:.1f}",
            f"{row.replay_seconds:.1f}",
            f"{row.snapshot_seconds:.1f}",
        )
    console.print(table)
