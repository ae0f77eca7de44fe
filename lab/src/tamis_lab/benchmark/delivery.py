"""Measure delivery beside the raw log: the same client, the same number of messages, in the same run.

*Raw* is what the log itself costs: events of 1 KB are appended, and as many messages are read as deliveries
would be read. *Routed* adds what Tamis does in between: matching, deliveries, cursors. Both are timed in
turns, on logs of their own, and compared round by round, so that other work on the machine slows both.
"""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tamis.pubsub import Router, Site, connect
from tamis.pubsub import keys as k
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry
from tamis.pubsub.records import Delivery, QueueLimits, Subscription
from tamis_lab.benchmark.environment import describe

SUBSCRIBERS = 1_000
BATCH = 1_000
SHARES = (0.00001, 0.0001, 0.001, 0.01)
MOST_DELIVERIES = 200_000
ROUNDS = 5
PADDING = "x" * 900


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
    added: float
    """What the router takes, as a share of what the raw log takes: the median of the rounds."""
    p99_milliseconds: float
    replay_seconds: float
    """Until a fresh router has read all subscriptions."""
    snapshot_seconds: float


def run(subscriptions: int, events: int, logs: Sequence[str]) -> list[Figure]:
    """Measure, print a table, and write bench/results/pubsub.json."""
    console = Console(highlight=False)
    found: list[Figure] = []
    for log in logs:
        for share in SHARES:
            with _urls(log) as urls, console.status(f"{log}, {share:.3%} match"):
                found.append(asyncio.run(_measure(log, urls, subscriptions, events, share)))
            row = found[-1]
            console.print(f"{log}, {share:.3%} match: {row.ratio:.2f} of the raw rate")
    _print(console, found)
    path = Path("bench/results/pubsub.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"environment": describe(0), "rows": [asdict(row) for row in found]}, indent=1) + "\n"
    )
    console.print(f"written to {path}")
    return found


@contextmanager
def _urls(log: str) -> Iterator[tuple[str, str]]:
    """Two logs of their own."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    try:
        if log == "sqlite":
            yield f"sqlite:{folder}/raw.db", f"sqlite:{folder}/routed.db"
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = Path(sys.executable).with_name("nats-server")
        command = [str(program), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _until_open(port)
            yield f"nats://127.0.0.1:{port}/raw", f"nats://127.0.0.1:{port}/routed"
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _until_open(port: int) -> None:
    for _ in range(300):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("nats-server does not start")


async def _measure(log: str, urls: tuple[str, str], subscriptions: int, events: int, share: float) -> Figure:
    values = max(1, round(1 / share))
    fan_out = min(SUBSCRIBERS, max(1.0, subscriptions * share))
    events = max(200, min(events, int(MOST_DELIVERIES / fan_out)))
    numbers = np.random.default_rng(1).integers(0, values, events)
    bodies = [f'{{"k":{number},"text":"{PADDING}"}}' for number in numbers]
    async with connect(urls[1]) as site:
        await _subscribe(site, subscriptions, values)
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
        raw, routed, routing = [], [], []
        deliveries = after = after_raw = 0
        async with connect(urls[0]) as beside:
            for _ in range(ROUNDS):
                started = time.perf_counter()
                await _publish(site, bodies)
                published = time.perf_counter()
                while await router.step():
                    pass
                routing.append(time.perf_counter() - published)
                deliveries, after = await _read_queues(site, after)
                routed.append(time.perf_counter() - started)
                started = time.perf_counter()
                await _publish(beside, bodies)
                after_raw = await _read_raw(beside, deliveries, after_raw)
                raw.append(time.perf_counter() - started)
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
        float(np.median(np.divide(routing, raw))),
        p99 * 1_000,
        replay,
        snapshot,
    )


async def _subscribe(site: Site, count: int, values: int) -> None:
    limits = QueueLimits().body()
    await site.log.append(STATE, [Entry(k.QUEUE, f"s{n}", limits) for n in range(SUBSCRIBERS)])
    for start in range(0, count, BATCH):
        entries = [
            Entry(
                # Those that match one event belong to different subscribers.
                *k.subscription_key(f"s{(n + n // values) % SUBSCRIBERS}", str(n)),
                Subscription(f"k = {n % values}").body(),
            )
            for n in range(start, min(start + BATCH, count))
        ]
        await site.log.append(STATE, entries)


async def _publish(site: Site, bodies: list[str]) -> None:
    publisher = await site.publisher("bench")
    for start in range(0, len(bodies), BATCH):
        await publisher.publish(bodies[start : start + BATCH])


async def _read_queues(site: Site, after: int) -> tuple[int, int]:
    """Read what is new in all queues, and the event of each delivery, as often as it is delivered."""
    found = 0
    while records := await site.log.read(QUEUES, after=after, most=BATCH):
        rounds: list[list[int]] = []
        times: Counter[int] = Counter()
        for record in records:
            if record.topic.startswith("q-"):
                for number in Delivery.read(record.body).events:
                    if times[number] == len(rounds):
                        rounds.append([])
                    rounds[times[number]].append(number)
                    times[number] += 1
        for numbers in rounds:
            found += len(await site.log.fetch(EVENTS, numbers))
        after = records[-1].seq
    return found, after


async def _read_raw(site: Site, messages: int, after: int) -> int:
    """Read so many messages, those of this round again where there are not enough."""
    first, found = after, 0
    while found < messages:
        records = await site.log.read(EVENTS, after=after, most=min(BATCH, messages - found))
        found += len(records)
        after = records[-1].seq if records else first
    return await site.log.end(EVENTS)


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
            f"{row.added:.2f}",
            f"{row.p99_milliseconds:.1f}",
            f"{row.replay_seconds:.1f}",
            f"{row.snapshot_seconds:.1f}",
        )
    console.print(table)
