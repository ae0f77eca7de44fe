"""Things that go wrong under load: brokers are killed, NATS goes away, links are cut. Nothing is lost."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pubsub.processes import BrokerProcess
from pubsub.proxy import Proxy
from servers import NatsServer, free_ports
from tamis.pubsub import Client, Notification


def line(count: int, folder: Path, *options: str, nats: str | None = None) -> list[BrokerProcess]:
    """Brokers b1, b2, ... in a row; on TCP, each connects to the one before it."""
    ports = free_ports(count)
    brokers: list[BrokerProcess] = []
    for place, port in enumerate(ports, start=1):
        neighbours = []
        if place > 1:
            neighbours += ["-n", f"b{place - 1}" if nats else f"b{place - 1}=127.0.0.1:{ports[place - 2]}"]
        if place < count:
            neighbours += ["-n", f"b{place + 1}"]
        brokers.append(BrokerProcess(f"b{place}", port, folder, *neighbours, *options, nats=nats))
    return brokers


async def hear_all(client: Client) -> list[int]:
    """Serial numbers in the order in which they are heard, up to that of the last event."""
    heard: list[int] = []
    async for note in client:
        assert isinstance(note, Notification)
        heard.append(note.event["serial"])
        if note.event.get("is_last"):
            break
    return heard


async def nothing() -> None:
    pass


def publish_and_hear_while(
    brokers: list[BrokerProcess],
    trouble: Callable[[], Awaitable[None]],
    before: Callable[[], Awaitable[None]] = nothing,
) -> None:
    """Publish at the last broker and hear at the first, while something bad happens."""

    async def scenario() -> None:
        await before()
        for broker in brokers:
            await broker.until_ready()
        async with brokers[0].client("ann") as ann, brokers[-1].client("bob") as bob:
            await bob.advertise("mine", "serial >= 0")
            await ann.subscribe("all", "serial >= 0 AND kind = 'wanted'")
            hearing = asyncio.create_task(hear_all(ann))
            over = asyncio.create_task(trouble())
            serial = 0
            while not over.done() or serial < 50:
                await bob.publish({"serial": serial, "kind": "wanted" if serial % 2 else "unwanted"})
                await asyncio.sleep(0.01)
                serial += 1
            await over
            await bob.publish({"serial": serial, "kind": "wanted", "is_last": True})
            wanted = [*range(1, serial, 2), serial]
            assert await hearing == wanted, "each once, in order"

    with contextlib.ExitStack() as running:
        for broker in brokers:
            running.enter_context(broker)
        asyncio.run(scenario())
        assert [broker.stop() for broker in brokers] == [0] * len(brokers)


@pytest.mark.parametrize(
    ("transport", "options"),
    [("tcp", ()), ("tcp", ("--routing", "advertisements", "--covering")), ("nats", ())],
)
def test_killing_brokers_loses_nothing(
    tmp_path: Path, transport: str, options: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    nats = request.getfixturevalue("nats").url if transport == "nats" else None
    brokers = line(3, tmp_path, *options, nats=nats)

    async def kill_all() -> None:
        for broker in [brokers[1], brokers[2], brokers[0]]:
            await asyncio.sleep(0.3)
            broker.kill()
            broker.start()
            await broker.until_ready()

    publish_and_hear_while(brokers, kill_all)


@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_a_nats_server_that_goes_away_loses_nothing(tmp_path: Path, nats_program: str, way: str) -> None:
    with NatsServer(nats_program, tmp_path) as server:

        async def take_away() -> None:
            for _ in range(2):
                await asyncio.sleep(0.5)
                await asyncio.to_thread(server.kill if way == "killed" else server.stop)
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.start)

        publish_and_hear_while(line(2, tmp_path, nats=server.url), take_away)


def test_a_link_that_is_cut_heals(tmp_path: Path) -> None:
    one, two, between = free_ports(3)
    brokers = [
        BrokerProcess("b1", one, tmp_path, "-n", "b2"),
        BrokerProcess("b2", two, tmp_path, "-n", f"b1=127.0.0.1:{between}"),
    ]
    proxy = Proxy(between, one)

    async def cut_and_heal() -> None:
        await asyncio.sleep(0.3)
        proxy.pause()  # nothing passes, and no side is told
        await asyncio.sleep(1.0)
        proxy.resume()
        await asyncio.sleep(0.3)
        proxy.cut()
        await asyncio.sleep(0.5)
        await proxy.open()

    publish_and_hear_while(brokers, cut_and_heal, before=proxy.open)
    assert proxy.connections >= 2
    assert len(brokers[1].logged("link up")) >= 2
