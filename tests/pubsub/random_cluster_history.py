"""Random histories on real servers, from a seed: two sites on three NATS servers with three replicas.

Everything is a process. Under load, from the seed: routers and servers are killed or stopped for a while, all
servers at once, links are cut and delayed, clients come back. The judge knows what was acknowledged: every
subscriber at both sites must get it, once, in the order of its publisher, and without a gap.
"""

import asyncio
import random
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pubsub.nats_proxy import NatsProxy
from pubsub.router_processes import RouterProcess
from servers import NatsServer
from tamis.pubsub import Delivered, Gap, LogError
from tamis.pubsub.site import Site
from tamis.pubsub.subscriber import TakenOverError

FAULTS = 5
PATIENCE = 300.0
LEASE = 2.0


async def until_known(site: Site, name: str, text: str) -> None:
    """Subscribe, and wait until the other site knows it."""
    subscriber = await site.subscriber(name)
    for _ in range(60):
        # Long: to subscribe again would let the other site begin again, and a busy machine is no fault.
        told = await subscriber.subscribe("s", text, wait=PATIENCE)
        if {"a", "b"} <= set(told.confirmed):
            return
        await asyncio.sleep(0.5)  # it has not heard of another site yet
    raise AssertionError(told)


class Reader:
    """One subscriber, which comes back now and then; what it had acknowledged must not come again."""

    def __init__(self, site: Site, name: str, chance: random.Random) -> None:
        self.site, self.name, self.chance = site, name, chance
        self.heard: list[dict[str, Any]] = []
        self.acknowledged: set[tuple[str, int]] = set()
        self.this_life: list[dict[str, Any]] = []
        self.gaps: list[Gap] = []

    @property
    def all(self) -> set[tuple[str, int]]:
        return {(event["by"], event["n"]) for event in self.heard}

    async def read(self, ending: asyncio.Event) -> None:
        while not ending.is_set():
            try:
                subscriber = await self.site.subscriber(self.name)
                self.this_life = []
                while not ending.is_set():
                    await self.some(subscriber)
                    if self.chance.random() < 0.02:
                        break
            except (LogError, TakenOverError):
                await asyncio.sleep(0.2)

    async def some(self, subscriber: Any) -> None:
        try:
            item = await subscriber.next(timeout=0.5)
        except TimeoutError:
            return
        if isinstance(item, Gap):
            self.gaps.append(item)
            return
        assert isinstance(item, Delivered)
        key = (item.event["by"], item.event["n"])
        assert key not in self.acknowledged, (self.name, key, "was acknowledged")
        assert key not in {(e["by"], e["n"]) for e in self.this_life}, (self.name, key, "twice in one life")
        for before in reversed(self.this_life):
            if before["by"] == key[0]:
                assert before["n"] < key[1], (self.name, before, key, "a publisher's order is kept")
                break
        self.this_life.append(item.event)
        self.heard.append(item.event)
        if self.chance.random() < 0.2:
            known = {(event["by"], event["n"]) for event in self.this_life}
            await subscriber.acknowledge()
            self.acknowledged |= known


class ClusterHistory:
    """One history; `play` runs it and judges. The servers outlive it."""

    def __init__(self, seed: int, folder: Path, servers: list[NatsServer]) -> None:
        self.seed, self.folder, self.servers = seed, folder, servers
        self.chance = random.Random(seed)
        """What happens; the load draws from another one, as how often it draws depends on the machine."""
        self.happened: list[str] = []
        hosts = ",".join(server.url.removeprefix("nats://") for server in servers)
        self.urls = {name: f"nats://{hosts}/{name}-{seed}?replicas=3" for name in ("a", "b")}
        self.published: list[dict[str, Any]] = []
        self.unknown: set[tuple[str, int]] = set()
        self.ending = asyncio.Event()
        self.number = 0

    async def play(self) -> None:
        self.proxies = {name: NatsProxy(server.url) for name, server in zip("ab", self.servers, strict=False)}
        async with self.proxies["a"], self.proxies["b"]:
            with ExitStack() as stack:
                self.stack = stack
                await self._play()

    async def _play(self) -> None:
        sites = {name: await self.opened(name) for name in self.urls}
        try:
            readers = []
            for site, name, text in (("a", "all", "TRUE"), ("b", "all", "TRUE"), ("b", "some", "k = 1")):
                await (await sites[site].subscriber(name)).subscribe("s", text)
                readers.append(Reader(sites[site], name, random.Random(self.chance.random())))
            self.routers = {name: [self.start(name) for _ in range(2)] for name in self.urls}
            for router in [*self.routers["a"], *self.routers["b"]]:
                await asyncio.to_thread(router.until, "ready")
            # From now on each site knows what the other one wants.
            for site, name, text in (("a", "all", "TRUE"), ("b", "some", "k = 1"), ("b", "all", "TRUE")):
                await until_known(sites[site], name, text)
            tasks = [asyncio.create_task(reader.read(self.ending)) for reader in readers]
            publishing = asyncio.Event()
            load = [asyncio.create_task(self.load(sites[name], name, publishing)) for name in sites]
            for _ in range(FAULTS):
                await asyncio.sleep(self.chance.random() * 2)
                await self.something()
            await asyncio.sleep(0.5)
            publishing.set()
            await asyncio.gather(*load)
            await self.until_all_heard(readers, tasks)
            self.ending.set()
            await asyncio.gather(*tasks)
        finally:
            self.ending.set()
            for site in sites.values():
                await site.close()

    async def opened(self, name: str) -> Site:
        for _ in range(60):
            try:
                return await Site.open(self.urls[name], name=name, partitions=2)
            except LogError:
                await asyncio.sleep(1)  # a new cluster chooses its leaders first
        raise AssertionError("the cluster does not answer")

    def start(self, site: str) -> RouterProcess:
        self.number += 1
        name = f"{site}-{self.number}"
        other = "b" if site == "a" else "a"
        # The link to the other site goes over a proxy, which can be cut.
        neighbour = f"{self.proxies[other].url}/{other}-{self.seed}"
        path = self.folder / f"{name}-{self.seed}.toml"
        path.write_text(
            f'log = "{self.urls[site]}"\nsite = "{site}"\nname = "{name}"\npartitions = 2\n'
            f"lease_seconds = {LEASE}\nlink_seconds = 2\nbatch = 20\n"
            f'[neighbours]\n{other} = "{neighbour}"\n'
        )
        return self.stack.enter_context(RouterProcess(self.folder, str(path), name=name))

    async def load(self, site: Site, name: str, until: asyncio.Event) -> None:
        publisher = await site.publisher(f"bob-{name}", timeout=60)
        number, chance = 0, random.Random(self.seed)
        while not until.is_set():
            events = [
                {"by": f"bob-{name}", "n": n, "k": n % 3}
                for n in range(number, number + chance.choice([1, 5]))
            ]
            number += len(events)
            keys = {(event["by"], event["n"]) for event in events}
            try:
                await publisher.publish(events)
                self.published += events
            except LogError:
                self.unknown |= keys
                await asyncio.sleep(0.2)
            await asyncio.sleep(0.05)

    async def something(self) -> None:
        kind = self.chance.choice(
            [
                "router",
                "router",
                "server",
                "server",
                "stop server",
                "stop router",
                "all servers",
                "cut",
                "delay",
            ]
        )
        self.happened.append(kind)
        await getattr(self, "do_" + kind.replace(" ", "_"))()

    async def do_router(self) -> None:
        site = self.chance.choice(["a", "b"])
        self.routers[site].pop(self.chance.randrange(len(self.routers[site]))).kill()
        self.routers[site].append(self.start(site))

    async def do_stop_router(self) -> None:
        router = self.chance.choice(self.routers[self.chance.choice(["a", "b"])])
        router.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE + self.chance.random() * 2)
        router.process.send_signal(signal.SIGCONT)

    async def do_server(self) -> None:
        victim = self.chance.choice(self.servers)
        victim.kill()
        await asyncio.sleep(self.chance.random() * 3)
        await asyncio.to_thread(victim.start)
        await asyncio.sleep(2)

    async def do_stop_server(self) -> None:
        """A leader that wakes up believes for a moment that it still is one."""
        victim = self.chance.choice(self.servers)
        victim.pause()
        await asyncio.sleep(1 + self.chance.random() * 5)
        victim.resume()
        await asyncio.sleep(1)

    async def do_all_servers(self) -> None:
        for server in self.servers:
            server.kill()
        await asyncio.sleep(self.chance.random())
        for server in self.servers:
            await asyncio.to_thread(server.start)
        await asyncio.sleep(2)

    async def do_cut(self) -> None:
        proxy = self.proxies[self.chance.choice(["a", "b"])]
        proxy.cut()
        await asyncio.sleep(self.chance.random() * 4)
        proxy.mend()

    async def do_delay(self) -> None:
        proxy = self.proxies[self.chance.choice(["a", "b"])]
        proxy.seconds = self.chance.choice([0.01, 0.05])
        await asyncio.sleep(2)
        proxy.seconds = 0.0

    async def until_all_heard(self, readers: list[Reader], tasks: list[Any]) -> None:
        wanted = {
            id(reader): {(e["by"], e["n"]) for e in self.published if reader.name == "all" or e["k"] == 1}
            for reader in readers
        }
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while any(wanted[id(reader)] - reader.all for reader in readers):
            for task in tasks:
                if task.done():
                    task.result()
            left = {
                f"{reader.name} at {reader.site.name}": sorted(wanted[id(reader)] - reader.all)[:9]
                for reader in readers
            }
            assert asyncio.get_running_loop().time() < deadline, (
                f"never came: {left} of {len(self.published)}"
            )
            await asyncio.sleep(0.2)
        for reader in readers:
            assert not reader.gaps, (reader.name, reader.gaps)
            assert reader.all <= wanted[id(reader)] | self.unknown, reader.name


def play(seed: int, folder: Path, servers: list[NatsServer]) -> ClusterHistory:
    async def bounded() -> ClusterHistory:
        history = ClusterHistory(seed, folder, servers)
        try:
            async with asyncio.timeout(1_500):
                await history.play()
        except BaseException as error:
            error.add_note(f"seed {seed}: {', '.join(history.happened)}")
            raise
        return history

    return asyncio.run(bounded())
