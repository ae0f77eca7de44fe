"""The steps of measuring delivery: logs, subscriptions, events, and reading deliveries."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tamis.pubsub import Site
from tamis.pubsub import keys as k
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry
from tamis.pubsub.records import Delivery, QueueLimits, Subscription

SUBSCRIBERS = 1_000
BATCH = 1_000
PADDING = "x" * 900


@contextmanager
def logs_of(log: str, names: Sequence[str]) -> Iterator[list[str]]:
    """The URLs of empty logs."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    try:
        if log == "sqlite":
            yield [f"sqlite:{folder}/{name}.db" for name in names]
            return
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = Path(sys.executable).with_name("nats-server")
        command = [str(program), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _until_open(port)
            yield [f"nats://127.0.0.1:{port}/{name}" for name in names]
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


def event_bodies(count: int, values: int) -> list[str]:
    """Events of about 1 KB, each with one of this many values.

    >>> event_bodies(1, 1)[0][:16]
    '{"k":0,"text":"x'
    """
    numbers = np.random.default_rng(1).integers(0, values, count)
    return [f'{{"k":{number},"text":"{PADDING}"}}' for number in numbers]


async def subscribe(site: Site, numbers: Sequence[int], values: int) -> None:
    """Write subscriptions, `k = number % values` each, of the subscribers of a site."""
    limits = QueueLimits().body()
    await site.log.append(STATE, [Entry(k.QUEUE, f"s{n}", limits) for n in range(SUBSCRIBERS)])
    for start in range(0, len(numbers), BATCH):
        entries = [
            Entry(
                # Those that match one event belong to different subscribers.
                *k.subscription_key(f"s{(n + n // values) % SUBSCRIBERS}", str(n)),
                Subscription(f"k = {n % values}").body(),
            )
            for n in numbers[start : start + BATCH]
        ]
        await site.log.append(STATE, entries)


async def publish(site: Site, bodies: Sequence[str]) -> None:
    """Publish events, a thousand at a time."""
    publisher = await site.publisher("bench")
    for start in range(0, len(bodies), BATCH):
        await publisher.publish(bodies[start : start + BATCH])


async def read_queues(site: Site, after: int) -> tuple[int, int]:
    """Read what is new in all queues, and the event of each delivery, as often as it is delivered."""
    found = 0
    while records := await site.log.read(QUEUES, after=after, most=BATCH):
        rounds: list[list[int]] = []
        times: Counter[int] = Counter()
        for record in records:
            if record.topic.startswith(k.queue_topic("s")):  # not those of neighbours
                for number in Delivery.read(record.body).events:
                    if times[number] == len(rounds):
                        rounds.append([])
                    rounds[times[number]].append(number)
                    times[number] += 1
        for numbers in rounds:
            found += len(await site.log.fetch(EVENTS, numbers))
        after = records[-1].seq
    return found, after


async def read_raw(site: Site, messages: int, after: int) -> int:
    """Read this many messages, those of this round again where there are not enough."""
    first, found = after, 0
    while found < messages:
        records = await site.log.read(EVENTS, after=after, most=min(BATCH, messages - found))
        found += len(records)
        after = records[-1].seq if records else first
    return await site.log.end(EVENTS)
