"""Router processes, killed with SIGKILL under load: nothing acknowledged is lost, nothing comes twice.

The long tests run on three NATS servers with three replicas, and kill servers, too.
"""

import asyncio
import contextlib
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pubsub.cluster import started
from pubsub.logs import run
from pubsub.router_processes import RouterProcess
from seeds import few
from servers import NatsServer
from tamis.pubsub import Delivered, LogError, connect
from tamis.pubsub.site import Site


async def load(site: Site, name: str, until: asyncio.Event, done: list[dict[str, Any]]) -> None:
    """Publish until told otherwise; note what was acknowledged."""
    publisher = await site.publisher(name)
    number = 0
    while not until.is_set():
        events = [{"by": name, "n": number + place, "k": (number + place) % 3} for place in range(5)]
        try:
            await publisher.publish(events)
        except LogError:
            number += 5  # unknown: these may come or not
            await asyncio.sleep(0.2)
            continue
        done += events
        number += 5
        await asyncio.sleep(0.01)


async def hear_all(
    site: Site, name: str, wanted: list[dict[str, Any]], seconds: float
) -> list[dict[str, Any]]:
    """Read until all that is wanted was heard."""
    missing = {(event["by"], event["n"]) for event in wanted}
    heard: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds
    reader = await site.subscriber(name)
    while missing and time.monotonic() < deadline:
        try:
            item = await reader.next(timeout=2)
        except (TimeoutError, LogError):
            continue
        assert isinstance(item, Delivered), item
        heard.append(item.event)
        missing.discard((item.event["by"], item.event["n"]))
    assert not missing, f"{name}: {len(missing)} of {len(wanted)} never came, such as {sorted(missing)[:5]}"
    return heard


def judge(heard: list[dict[str, Any]]) -> None:
    names = [(event["by"], event["n"]) for event in heard]
    assert len(names) == len(set(names)), "nothing comes twice"
    for by in {name for name, _ in names}:
        numbers = [number for name, number in names if name == by]
        assert numbers == sorted(numbers), "a publisher's order is kept"


async def under_load(url: str, faults: Any, seconds: float = 120) -> None:
    async with connect(url) as site:
        for name, text in (("all", "TRUE"), ("some", "k = 1")):
            await (await site.subscriber(name)).subscribe("s", text)
        ending, done = asyncio.Event(), [[], []]  # type: ignore[var-annotated]
        publishing = [
            asyncio.create_task(load(site, name, ending, list_))
            for name, list_ in zip(("bob", "carl"), done, strict=True)
        ]
        await faults()
        ending.set()
        await asyncio.gather(*publishing)
        acknowledged = [*done[0], *done[1]]
        assert len(acknowledged) > 20
        judge(await hear_all(site, "all", acknowledged, seconds))
        judge(await hear_all(site, "some", [e for e in acknowledged if e["k"] == 1], seconds))


def config(folder: Path, url: str, name: str, partitions: int = 4) -> str:
    path = folder / f"{name}.toml"
    path.write_text(
        f'log = "{url}"\nname = "{name}"\nlease_seconds = 2\nbatch = 7\npartitions = {partitions}\n'
    )
    return str(path)


async def pause_between_writes(router: RouterProcess, file: Path) -> None:
    """Stop a process when it does not hold SQLite's write lock: with the lock it would stop everybody."""
    while True:
        router.process.send_signal(signal.SIGSTOP)
        try:
            with contextlib.closing(sqlite3.connect(file, timeout=2, check_same_thread=False)) as database:
                await asyncio.to_thread(lambda: database.execute("BEGIN IMMEDIATE"))
                return
        except sqlite3.OperationalError:
            router.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.05)


@pytest.mark.thorough
def test_routers_that_are_killed_lose_and_repeat_nothing(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/site.db"
    with ExitStack() as stack:

        def start(name: str) -> RouterProcess:
            return stack.enter_context(RouterProcess(tmp_path, config(tmp_path, url, name), name=name))

        routers = [start("r0"), start("r1")]

        async def faults() -> None:
            for router in routers:
                await asyncio.to_thread(router.until, "ready")
            await asyncio.sleep(1.0)
            routers[0].kill()
            await asyncio.sleep(0.5)
            # The other one is paused for longer than its lease, and wakes up when its place is taken.
            await pause_between_writes(routers[1], tmp_path / "site.db")
            routers.append(start("r2"))
            await asyncio.to_thread(routers[2].until, "partition taken")
            await asyncio.sleep(0.5)
            routers[1].process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.5)

        run(lambda: under_load(url, faults), 200)
        assert routers[2].stop() == 0


@pytest.fixture
def cluster(nats_program: str, tmp_path: Path) -> Iterator[tuple[list[NatsServer], str]]:
    """Three servers that replicate among themselves."""
    with started(nats_program, tmp_path) as servers:
        hosts = ",".join(server.url.removeprefix("nats://") for server in servers)
        yield servers, f"nats://{hosts}/site?replicas=3"


async def when_it_answers(url: str) -> None:
    """A new cluster chooses its leaders first."""
    for _ in range(60):
        try:
            async with connect(url):
                return
        except LogError:
            await asyncio.sleep(1)
    raise AssertionError("the cluster does not answer")


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(5)))
def test_servers_and_routers_that_are_killed(
    cluster: tuple[list[NatsServer], str], tmp_path: Path, seed: int
) -> None:
    servers, url = cluster
    chance = random.Random(seed)
    with ExitStack() as stack:
        names = iter(f"r{number}" for number in range(100))

        def start() -> RouterProcess:
            name = next(names)
            return stack.enter_context(RouterProcess(tmp_path, config(tmp_path, url, name), name=name))

        async def faults() -> None:
            routers = [start(), start()]
            for router in routers:
                await asyncio.to_thread(router.until, "ready")
            for _ in range(6):
                await asyncio.sleep(chance.random() * 3)
                if chance.random() < 0.5:
                    victim = chance.choice(servers)
                    victim.kill()
                    await asyncio.sleep(chance.random() * 4)
                    await asyncio.to_thread(victim.start)
                    await asyncio.sleep(3)
                else:
                    routers.pop(chance.randrange(len(routers))).kill()
                    routers.append(start())

        async def main() -> None:
            await when_it_answers(url)
            await under_load(url, faults)

        run(main, 500)
