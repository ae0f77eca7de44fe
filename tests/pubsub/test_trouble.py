"""Things that go wrong under load: brokers are killed, NATS goes away. Nothing is lost."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pubsub.load import publish_while
from pubsub.processes import BrokerProcess
from servers import NatsServer, free_ports


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


def publish_and_hear_while(brokers: list[BrokerProcess], trouble: Callable[[], Awaitable[None]]) -> None:
    """Publish at the last broker and hear at the first, while something bad happens."""

    async def scenario() -> None:
        for broker in brokers:
            await broker.until_ready()
        async with brokers[0].client("ann") as ann, brokers[-1].client("bob") as bob:
            await bob.advertise("mine", "serial >= 0")
            await ann.subscribe("all", "serial >= 0 AND kind = 'wanted'")
            await publish_while(bob, ann, trouble)

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
