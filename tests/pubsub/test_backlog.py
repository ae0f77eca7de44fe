"""What waits for a client that was away: told a part at a time, in order, all of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pubsub.inside import on_tcp
from tamis.pubsub import Limits, Options
from tamis.pubsub.broker import inputs as i
from tamis.pubsub.broker.effects import Deliver, DeliverGap
from tamis.pubsub.broker.machine import Broker
from tamis.pubsub.broker.pacing import MOST_BYTES
from tamis.pubsub.net.server import MOST_UNSENT
from tamis.pubsub.net.tcp import TcpDialer

EVENT_BYTES = 250_000


def event(serial: int) -> str:
    return json.dumps({"serial": serial, "text": "x" * EVENT_BYTES})


class Told:
    """A broker with ann's subscription to everything, and what it tells ann."""

    def __init__(self, most_waiting: int = 1_000) -> None:
        self.broker = Broker("b1", [], Options(limits=Limits(client_notifications=most_waiting)))
        self.notes: list[Deliver | DeliverGap] = []
        self._published = 0
        self.handle(i.Subscribe("ann", 1, "all", "serial >= 0"))

    def handle(self, input: i.Input) -> None:
        effects = self.broker.handle(input, now=0.0)
        self.notes += [effect for effect in effects if isinstance(effect, Deliver | DeliverGap)]

    def publish(self, count: int) -> None:
        for _ in range(count):
            self._published += 1
            self.handle(i.Publish("bob", self._published, self._published, event(self._published)))

    @property
    def numbers(self) -> list[int]:
        return [note.number for note in self.notes]


def test_a_part_is_told_and_the_rest_as_it_is_acknowledged() -> None:
    told = Told()
    told.publish(40)
    told.handle(i.Attach("ann"))
    first = len(told.notes)
    assert 1 < first <= MOST_BYTES // EVENT_BYTES
    told.publish(2)
    assert len(told.notes) == first, "what is new waits for what is older"
    told.handle(i.Acknowledge("ann", 1))
    assert len(told.notes) == first + 1
    while told.numbers[-1] < 42:
        told.handle(i.Acknowledge("ann", told.numbers[-1]))
    assert told.numbers == list(range(1, 43))
    told.handle(i.Acknowledge("ann", 42))
    told.publish(1)
    assert told.numbers[-1] == 43, "who keeps up is told at once"


def test_another_connection_is_told_what_was_not_acknowledged() -> None:
    told = Told()
    told.publish(40)
    told.handle(i.Attach("ann"))
    told.handle(i.Acknowledge("ann", 3))
    told.handle(i.Detach("ann"))
    before = len(told.notes)
    told.publish(1)
    assert len(told.notes) == before
    told.handle(i.Attach("ann"))
    assert told.numbers[before] == 4
    # Dealt with on the connection before, up to what this one has not got to yet.
    told.handle(i.Acknowledge("ann", 40))
    assert told.numbers[-1] == 41


def test_a_gap_that_is_held_back_grows() -> None:
    told = Told(most_waiting=30)
    told.publish(31)
    told.handle(i.Attach("ann"))
    told.publish(2)
    while not isinstance(told.notes[-1], DeliverGap):
        told.handle(i.Acknowledge("ann", told.numbers[-1]))
    assert told.numbers == list(range(1, 32))
    assert told.notes[-1].last == 33


@pytest.mark.parametrize("times", [1, 2])
def test_a_client_comes_back_to_more_than_a_connection_holds(tmp_path: Path, times: int) -> None:
    count = 2 * MOST_UNSENT // EVENT_BYTES  # the system takes a few MiB besides

    async def hear(address: Any, acknowledges: bool) -> list[int]:
        """Until all is heard, or the broker hangs up."""
        connection = await TcpDialer(address).connect()
        connection.send({"hello": "client", "name": "ann", "token": None})
        heard: list[int] = []
        while len(heard) < count and (message := await connection.receive()) is not None:
            if "event" in message:
                heard.append(json.loads(message["event"])["serial"])
                if not acknowledges:
                    break
                connection.send({"do": "acknowledge", "number": message["number"]})
        connection.close()
        return heard

    async def scenario() -> None:
        async with on_tcp("b1", tmp_path) as broker:
            async with broker.client("ann") as ann:
                await ann.subscribe("all", "serial >= 0")
            async with broker.client("bob") as bob:
                for serial in range(count):
                    await bob.publish(event(serial))
            for _ in range(times - 1):
                assert await hear(broker.address, acknowledges=False) == [0]
            assert await hear(broker.address, acknowledges=True) == list(range(count))

    asyncio.run(scenario())
