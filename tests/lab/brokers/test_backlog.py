"""What waits for a client that was away: told a part at a time, in order, all of it."""

import json

from tamis_lab.brokers import Limits, Options
from tamis_lab.brokers import inputs as i
from tamis_lab.brokers.effects import Deliver, DeliverGap
from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.pacing import MOST_BYTES

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
