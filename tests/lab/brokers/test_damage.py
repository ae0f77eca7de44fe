"""Brokers that come back with an older copy of their disk, or never, and brokers of the release before.

Faults: numbers that are given twice count as repeats; a conversation goes on with somebody who has forgotten
it; clients drop what they believe to have seen; those behind a lost broker are cut off, and events wait for
it for ever; what cannot be read is not forwarded.
"""

import json

import pytest

from pubsub.history import OlderBroker
from tamis_lab.brokers.machine import Broker
from tamis_lab.simulation import Simulator, Topology
from tamis_lab.simulation.simulator import SimulatedClient


def publish(simulator: Simulator, client: SimulatedClient, *numbers: int) -> None:
    for number in numbers:
        simulator.publish(client, json.dumps({"n": number}))
    simulator.run_until_quiet()


def heard(client: SimulatedClient) -> list[int]:
    return [json.loads(note.event)["n"] for note in client.heard]


@pytest.mark.parametrize("place", ["b1", "b2", "b3"])
@pytest.mark.parametrize("copied_after", [0, 2, None])
def test_what_is_published_after_a_rollback_is_heard(place: str, copied_after: int | None) -> None:
    simulator = Simulator(Topology.line(3))
    ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    simulator.subscribe(ann, "all", "n > 0")
    simulator.run_until_quiet()
    copy: dict[str, object] = {}  # None: nothing is left of the disk
    for number in range(1, 5):
        if copied_after == number - 1:
            copy = dict(simulator.disks[place])
        publish(simulator, bob, number)
    assert heard(ann) == [1, 2, 3, 4]
    simulator.restore(place, copy)
    simulator.subscribe(ann, "all", "n > 0")  # as a client does that has noticed
    simulator.run_until_quiet()
    publish(simulator, bob, *range(5, 9))
    assert heard(ann) == list(range(1, 9))


def test_the_overlay_without_a_lost_broker() -> None:
    simulator = Simulator(Topology.star(5))
    ann, bob, carl = (simulator.client(name, name) for name in ("b2", "b3", "b1"))
    for client in (ann, carl):
        simulator.subscribe(client, "all", "n > 0")
    simulator.run_until_quiet()
    simulator.cut("b1", "b3")
    simulator.publish(bob, '{"n": 1}')  # waits for the broker that is lost now
    simulator.run(5.0)
    simulator.lose("b1")
    simulator.run_until_quiet()
    assert not any(key.startswith("out/") for key in simulator.disks["b3"])
    publish(simulator, bob, 2)
    assert heard(ann) == [2]
    assert simulator.topology.neighbours("b2") == ["b3", "b4", "b5"]


def test_what_a_broker_of_the_release_before_cannot_read_counts_as_everything() -> None:
    def make(name: str, *arguments: object) -> Broker:
        return (OlderBroker if name == "b2" else Broker)(name, *arguments)  # type: ignore[arg-type]

    simulator = Simulator(Topology.line(3), make=make)
    ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    simulator.subscribe(ann, "new", "n > 1")
    simulator.run_until_quiet()
    publish(simulator, bob, 1, 2, 3)
    assert heard(ann) == [2, 3], "her own broker is exact"
    simulator.unsubscribe(ann, "new")
    simulator.run_until_quiet()
    before = simulator.counters().forwarded
    publish(simulator, bob, 4)
    assert simulator.counters().forwarded == before
