"""Random networks against a central judge: who hears what is exactly what the oracle says."""

import os
from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from oracle import Constant
from pubsub import strategies_pubsub as s
from pubsub.history import History, make
from seeds import first_of
from tamis.pubsub import matcher
from tamis_lab.brokers import Limits
from tamis_lab.simulation import Faults

places = st.integers(0, 1_000)

HISTORIES = int(os.environ.get("TAMIS_HISTORIES", "5_000"))
"""Of each kind, in the long run."""


class Network(RuleBasedStateMachine):
    """Without faults, and quiet before each publication: exact equality."""

    history: History
    judged = 0
    """How many histories were run to their end and judged, by class."""

    @initialize(data=st.data(), topology=s.topologies)
    def build(self, data: Any, topology: Any) -> None:
        options = data.draw(s.options_for(topology, self.limits))
        self.history = make(
            topology, options, self.faults(data), data.draw(places), older=data.draw(self.older)
        )

    limits: Any = st.just(Limits())
    older: Any = st.just(frozenset())

    def faults(self, data: Any) -> Faults:
        return Faults()

    def broker(self, place: int) -> str:
        brokers = self.history.simulator.topology.brokers
        return brokers[place % len(brokers)]

    @rule(place=places, node=s.nodes(), type=s.TYPES)
    def subscribe(self, place: int, node: Any, type: str | None) -> None:
        self.history.subscribe(self.broker(place), node, type)

    @rule(place=places)
    def unsubscribe(self, place: int) -> None:
        self.history.unsubscribe(place)

    @rule(place=places, node=s.advertisements, type=s.TYPES)
    def advertise(self, place: int, node: Any, type: str | None) -> None:
        self.history.advertise(self.broker(place), node, type)

    @rule(place=places)
    def withdraw(self, place: int) -> None:
        self.history.withdraw(place)

    @rule(place=places, event=s.events, type=s.TYPES)
    def publish(self, place: int, event: dict[str, Any], type: str | None) -> None:
        self.before_publish()
        self.history.publish(self.broker(place), event, type)
        self.after_publish()

    def before_publish(self) -> None:
        self.history.settle()

    def after_publish(self) -> None:
        self.history.settle()

    @rule(share=st.floats(0, 1))
    def prune(self, share: float) -> None:
        self.history.simulator.prune(share)

    @rule(steps=st.integers(1, 3))
    def prune_advertisements(self, steps: int) -> None:
        self.history.simulator.prune_advertisements(steps)

    @rule(seconds=st.sampled_from([0.005, 0.02, 0.5, 3.0]))
    def wait(self, seconds: float) -> None:
        self.history.simulator.run(seconds)

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.history.settle()
            type(self).judged += 1


class FaultyNetwork(Network):
    """Links lose, repeat and reorder; brokers crash in the middle of their effects; links are cut.

    Nothing waits for quiet: between what must and what may be heard, everything acknowledged arrives.
    """

    def faults(self, data: Any) -> Faults:
        return data.draw(
            st.builds(
                Faults,
                loss=st.sampled_from([0.0, 0.1, 0.3]),
                duplication=st.sampled_from([0.0, 0.2]),
                reordering=st.sampled_from([0.0, 0.5]),
                crash=st.sampled_from([0.0, 0.0, 0.02]),
            )
        )

    def before_publish(self) -> None:
        pass

    def after_publish(self) -> None:
        pass

    @rule(place=places)
    def crash(self, place: int) -> None:
        if self.broker(place) in self.history.simulator.brokers:
            self.history.simulator.crash(self.broker(place))

    @rule(place=places)
    def come_back(self, place: int) -> None:
        self.history.simulator.start(self.broker(place))

    @rule(place=places, cut=st.booleans())
    def cut_or_heal(self, place: int, cut: bool) -> None:
        simulator = self.history.simulator
        if simulator.topology.links:
            link = simulator.topology.links[place % len(simulator.topology.links)]
            (simulator.cut if cut else simulator.heal)(*link)

    @rule()
    def settle(self) -> None:
        faults = self.history.simulator.faults
        self.history.settle()
        self.history.simulator.faults = faults


class DamagedNetwork(FaultyNetwork):
    """Besides: brokers come back with an older copy of their disk, or never; clients vanish; limits are tiny;
    some brokers are of the release before, and cannot read what others say.

    Cycles are not drawn: an overlay of the thesis has none (`Topology`). The histories of several sites on
    SQLite draw them (`random_sites_history`).
    """

    limits = st.builds(
        Limits,
        link_events=st.sampled_from([1, 3, 10_000]),
        client_notifications=st.sampled_from([1, 2, 1_000]),
    )
    older = st.frozensets(st.integers(0, 6), max_size=3)
    drawn: ClassVar[Counter[str]] = Counter()
    """How often each kind of damage was done, over all histories."""

    @rule(place=places, events=st.lists(s.events, min_size=2, max_size=6))
    def publish_several(self, place: int, events: list[dict[str, Any]]) -> None:
        for event in events:
            self.history.publish(self.broker(place), event, None)

    @rule(place=places, node=s.nodes(), events=st.lists(s.events, min_size=3, max_size=6), other=places)
    def meet(self, place: int, node: Any, events: list[dict[str, Any]], other: int) -> None:
        """Let a subscription spread, so that what follows must be heard."""
        self.history.advertise(self.broker(other), Constant(True), None)
        self.history.subscribe(self.broker(place), node, None)
        self.history.settle()
        self.publish_several(other, events)

    @rule(place=places)
    def copy(self, place: int) -> None:
        self.history.copy(self.broker(place))

    @rule(place=places)
    def restore(self, place: int) -> None:
        self.drawn["restored"] += 1
        self.history.restore(self.broker(place))

    @rule(place=places, events=st.lists(s.events, min_size=2, max_size=5), other=places)
    def go_on_after_a_rollback(self, place: int, events: list[dict[str, Any]], other: int) -> None:
        """What is numbered and told again right after a rollback is where it can go wrong."""
        broker, client = self.broker(place), self.broker(other)
        self.history.subscribe(client, Constant(True), None)
        self.history.settle()
        self.history.copy(broker)
        for _ in range(2):
            self.publish_several(place, events)
            self.publish_several(other, events)
            self.history.settle()
            self.restore(place)
            self.history.settle()
        self.publish_several(place, events[:2])
        self.publish_several(other, events[:2])
        self.history.settle()

    @rule(place=places, is_meant=st.sampled_from([False, False, True]))
    def lose(self, place: int, is_meant: bool) -> None:
        if is_meant and len(self.history.simulator.topology.brokers) > 2:
            self.drawn["lost"] += 1
            self.history.lose(self.broker(place))

    @rule(place=places)
    def vanish(self, place: int) -> None:
        client = self.history.clients.get(self.broker(place))
        if client is not None:
            self.drawn["vanished"] += 1
            self.history.simulator.vanish(client)

    @rule(place=places)
    def return_(self, place: int) -> None:
        client = self.history.clients.get(self.broker(place))
        if client is not None:
            self.history.simulator.come_back(client)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "history"):
            self.drawn["dropped"] += self.history.dropped


quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("machine", first_of([DamagedNetwork, Network, FaultyNetwork], 1))
def test_some_histories(machine: Any) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=50,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=quiet,
        ),
    )


def test_some_histories_with_indexes_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are scanned, and most tables of these histories are small; here none is."""
    monkeypatch.setattr(matcher, "INDEXED_FROM", 1)
    run_state_machine_as_test(
        FaultyNetwork,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=quiet,
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("machine", [Network, FaultyNetwork, DamagedNetwork])
def test_many_histories(machine: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = machine.judged
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=40,
            deadline=None,
            derandomize=False,
            suppress_health_check=quiet,
        ),
    )
    judged = machine.judged - before
    with capsys.disabled():
        print(f"{machine.__name__}: {judged:,} histories were run to their end and judged")
    assert judged >= HISTORIES
