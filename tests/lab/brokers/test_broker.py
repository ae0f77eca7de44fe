"""Single behaviours of brokers, each small enough to check by hand."""

import json
from typing import Any

import pytest

from pubsub.history import rendezvous_at
from tamis.pubsub.generalise.cut_off import CutOff
from tamis.pubsub.routing import AdvertisementForwarding, EventFlooding, SubscriptionForwarding
from tamis_lab.brokers import Limits, Options, PostPruning
from tamis_lab.brokers import inputs as i
from tamis_lab.brokers.effects import Persist, Reply
from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.refusals import MOST
from tamis_lab.simulation import Faults, Simulator, Topology


def events_heard(client: Any) -> list[Any]:
    return [json.loads(note.event) for note in client.heard]


def known_at(simulator: Simulator, broker: str, neighbour: str) -> dict[str, str]:
    """What a broker matches for a neighbour."""
    matcher = simulator.brokers[broker].spreading.subscriptions_from[neighbour].matcher
    return {id.rpartition("/")[2]: str(matcher[id]) for id in matcher}


# --- routing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("routing", "filtered"),
    [(EventFlooding(), 5), (SubscriptionForwarding(), 3), (AdvertisementForwarding(), 3)],
)
def test_an_event_goes_only_where_it_is_wanted(routing: Any, filtered: int) -> None:
    simulator = Simulator(Topology.line(5), Options(routing=routing))
    ann, bob = simulator.client("b3", "ann"), simulator.client("b1", "bob")
    simulator.advertise(bob, "a", "price > 0")
    simulator.subscribe(ann, "s", "price < 15")
    simulator.run_until_quiet()
    simulator.publish(bob, '{"price": 12}')
    simulator.run_until_quiet()
    assert events_heard(ann) == [{"price": 12}]
    assert simulator.counters().filtered == filtered


def test_advertisements_decide_where_subscriptions_go() -> None:
    simulator = Simulator(Topology.star(4), Options(routing=AdvertisementForwarding()))
    ann = simulator.client("b2", "ann")
    bob, eve = simulator.client("b3", "bob"), simulator.client("b4", "eve")
    simulator.subscribe(ann, "cheap", "price < 15")
    simulator.advertise(bob, "low", "price > 3")
    simulator.advertise(eve, "high", "price > 50")
    simulator.run_until_quiet()
    assert known_at(simulator, "b3", "b1") == {"cheap": "price < 15"}
    assert known_at(simulator, "b4", "b1") == {}
    simulator.withdraw(bob, "low")
    simulator.run_until_quiet()
    assert known_at(simulator, "b3", "b1") == {}
    assert known_at(simulator, "b1", "b2") == {}


def test_rendezvous_keeps_advertisements_from_spreading() -> None:
    topology = Topology.line(5)
    simulator = Simulator(topology, rendezvous_at(topology, "b3", "b3", Options()))
    ann, bob = simulator.client("b4", "ann"), simulator.client("b1", "bob")
    simulator.advertise(bob, "a", "price > 0", "book")
    simulator.subscribe(ann, "s", "price < 15", "book")
    simulator.run_until_quiet()
    assert known_at(simulator, "b1", "b2") == {"s": "price < 15"}
    assert len(simulator.brokers["b4"].spreading.advertisements_from["b3"]) == 0
    assert known_at(simulator, "b5", "b4") == {}
    simulator.publish(bob, '{"price": 12}', "book")
    simulator.run_until_quiet()
    assert events_heard(ann) == [{"price": 12}]


def test_a_publication_that_was_not_advertised() -> None:
    for policy, heard in [("refuse", []), ("count", [{"x": 1}])]:
        options = Options(routing=AdvertisementForwarding(), nonconforming=policy)  # type: ignore[arg-type]
        simulator = Simulator(Topology.line(2), options)
        ann, bob = simulator.client("b1", "ann"), simulator.client("b2", "bob")
        simulator.subscribe(ann, "s", "x = 1")
        simulator.advertise(bob, "a", "x = 2")
        simulator.run_until_quiet()
        request = simulator.publish(bob, '{"x": 1}')
        simulator.run_until_quiet()
        assert events_heard(ann) == heard
        assert (bob.answers[request].error is None) == bool(heard)
        assert simulator.counters().nonconforming == 1


@pytest.mark.parametrize("values", ['{"$interval": [1, 9]}', '{"$where": "> 0"}'])
def test_sets_of_values_go_wherever_they_could_be_wanted(values: str) -> None:
    simulator = Simulator(Topology.line(3), Options(covering=True))
    ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    simulator.subscribe(ann, "s", "x < 3 AND x > 5")
    simulator.run_until_quiet()
    simulator.publish(bob, f'{{"x": {values}}}')
    simulator.run_until_quiet()
    assert len(ann.heard) == 1


def test_many_subscriptions_are_indexed_and_found() -> None:
    simulator = Simulator(Topology.line(3), Options(post_pruning=PostPruning()))
    ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    for number in range(60):
        simulator.subscribe(ann, f"s{number}", f"x >= {number} AND y = 1")
    for number in range(0, 60, 2):
        simulator.unsubscribe(ann, f"s{number}")
    simulator.run_until_quiet()
    for share in (0.0, 1.0):
        simulator.prune(share)
        simulator.publish(bob, '{"x": 5, "y": 1}')
        simulator.run_until_quiet()
        assert ann.heard[-1].subscriptions == ("s1", "s3", "s5")


# --- optimisations --------------------------------------------------------------------------------


def test_covering_hides_and_restores() -> None:
    simulator = Simulator(Topology.line(3), Options(covering=True))
    ann = simulator.client("b1", "ann")
    simulator.subscribe(ann, "narrow", "price < 5 AND signed")
    simulator.subscribe(ann, "wide", "price < 15")
    simulator.run_until_quiet()
    assert known_at(simulator, "b3", "b2") == {"wide": "price < 15"}
    simulator.unsubscribe(ann, "wide")
    simulator.run_until_quiet()
    assert known_at(simulator, "b3", "b2") == {"narrow": "price < 5 AND signed"}


def test_merging_sends_one_for_two() -> None:
    simulator = Simulator(Topology.line(2), Options(merging="perfect"))
    ann = simulator.client("b1", "ann")
    simulator.subscribe(ann, "s1", "x = 1 AND y > 2")
    simulator.subscribe(ann, "s2", "x = 3 AND y > 2")
    simulator.run_until_quiet()
    assert list(known_at(simulator, "b2", "b1").values()) == ["x IN (1, 3) AND y > 2"]
    simulator.unsubscribe(ann, "s1")
    simulator.run_until_quiet()
    assert known_at(simulator, "b2", "b1") == {"s2": "x = 3 AND y > 2"}


def test_pruning_sends_more_and_delivers_the_same() -> None:
    simulator = Simulator(Topology.line(3), Options(post_pruning=PostPruning("accuracy")))
    ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    simulator.subscribe(ann, "s", "title = 'Emma' AND price < 15")
    simulator.run_until_quiet()
    for price in (12, 20):
        simulator.publish(bob, json.dumps({"title": "Emma", "price": price}))
    simulator.run_until_quiet()
    assert simulator.counters().received == 2
    simulator.prune(1.0)
    assert simulator.routing_predicates == 2
    simulator.publish(bob, '{"title": "Emma", "price": 20}')
    simulator.publish(bob, '{"title": "Persuasion", "price": 12}')
    simulator.run_until_quiet()
    assert simulator.counters().received > 2, "false positives travel"
    assert simulator.counters().needless > 0
    assert events_heard(ann) == [{"title": "Emma", "price": 12}], "and are not delivered"
    simulator.prune(0.0)
    assert simulator.routing_predicates == 4


def test_the_cut_off_is_found_and_found_again() -> None:
    cut_off = CutOff()
    for best in (0.6, 0.2):
        for _ in range(60):
            cut_off.observe(1.0 + (1 + best) * abs(cut_off.share - best))
        assert cut_off.settled
        assert abs(cut_off.share - best) < 0.1
    assert cut_off.searches == 2


def test_a_broker_prunes_by_itself() -> None:
    seconds = 0.0
    broker: Broker

    def stopwatch() -> float:
        # Filtering takes as long as there are predicates to look at.
        nonlocal seconds
        seconds += broker.spreading.subscriptions_from["b2"].matcher.predicates
        return seconds

    simulator = Simulator(Topology.line(2), Options())
    options = Options(post_pruning=PostPruning("accuracy", cut_off="auto", window=20))
    broker = Broker("b1", ["b2"], options, stopwatch=stopwatch)
    simulator.brokers["b1"] = broker
    simulator.disks["b1"].clear()
    simulator._input("b1", i.Start())
    ann, bob = simulator.client("b2", "ann"), simulator.client("b1", "bob")
    for number in range(10):
        simulator.subscribe(ann, f"s{number}", f"rare = {number} AND always > 0 AND other > 0")
    simulator.run_until_quiet()
    for number in range(400):
        simulator.publish(bob, json.dumps({"rare": 100 + number, "always": 1, "other": 1}))
        simulator.run_until_quiet()
    assert simulator.routing_predicates <= 12, "all that is left is what is rare"
    assert broker.counters.forwarded < 100


# --- limits ---------------------------------------------------------------------------------------


def test_a_slow_subscriber_gets_a_gap() -> None:
    options = Options(limits=Limits(client_notifications=3))
    simulator = Simulator(Topology.line(2), options)
    ann, bob = simulator.client("b1", "ann", acknowledges=False), simulator.client("b2", "bob")
    simulator.subscribe(ann, "s", "x > 0")
    simulator.run_until_quiet()
    for x in range(1, 7):
        simulator.publish(bob, json.dumps({"x": x}))
        simulator.run_until_quiet()
    assert events_heard(ann) == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert (ann.gaps[-1].number, ann.gaps[-1].last, ann.gaps[-1].reason) == (4, 6, "buffer full")
    simulator.acknowledge(ann)
    simulator.publish(bob, '{"x": 7}')
    simulator.run_until_quiet()
    assert events_heard(ann)[-1] == {"x": 7}
    assert simulator.counters().gaps == 3


def test_a_full_broker_refuses_and_forgets_nothing() -> None:
    simulator = Simulator(Topology.line(3), Options(limits=Limits(link_events=2)))
    ann, bob = simulator.client("b3", "ann"), simulator.client("b1", "bob")
    simulator.subscribe(ann, "s", "x > 0")
    simulator.run_until_quiet()
    simulator.cut("b2", "b3")
    requests = []
    for x in range(1, 10):
        requests.append(simulator.publish(bob, json.dumps({"x": x})))
        simulator.run(0.5)
    answers = [bob.answers[request].error for request in requests]
    accepted = [x for x, error in enumerate(answers, start=1) if error is None]
    assert accepted == [1, 2, 3, 4], "two wait at b2 and two at b1"
    assert "broker b1 is full: 2 events wait for b2" in str(answers[-1])
    simulator.calm()
    simulator.run_until_quiet()
    assert events_heard(ann) == [{"x": x} for x in accepted]


def test_low_priorities_are_shed_first() -> None:
    limits = Limits(client_notifications=100, shed_from=4, shed_all=8)
    simulator = Simulator(Topology.line(1), Options(limits=limits))
    low = simulator.client("b1", "low", acknowledges=False)
    high = simulator.client("b1", "high", acknowledges=False)
    simulator.subscribe(low, "s", "x > 0", priority=1.0)
    simulator.subscribe(high, "s", "x > 0", priority=2.0)
    bob = simulator.client("b1", "bob")
    for x in range(1, 11):
        simulator.publish(bob, json.dumps({"x": x}))
    assert len(high.heard) == 10
    assert len(low.heard) < 10
    assert low.gaps[-1].reason == "overload"
    assert simulator.counters().shed == 10 - len(low.heard)


def test_event_types_are_total() -> None:
    simulator = Simulator(Topology.line(1), Options(types={"book": {"title": "string", "price": "float"}}))
    ann = simulator.client("b1", "ann")
    refused = {
        simulator.subscribe(ann, "s1", "titel = 'Emma'", "book"): "has no attribute 'titel'",
        simulator.subscribe(ann, "s2", "x = 1", "car"): "there is no event type 'car'",
        simulator.publish(ann, '{"title": "Emma"}', "book"): "needs the attribute 'price'",
        simulator.publish(ann, '{"title": 1, "price": 2}', "book"): "is string, not 1",
    }
    good = simulator.subscribe(ann, "s", "price < 9", "book")
    simulator.publish(ann, '{"title": "Emma", "price": 5}', "book")
    simulator.publish(ann, '{"price": 5}')
    for request, reason in refused.items():
        assert reason in str(ann.answers[request].error)
    assert ann.answers[good] == Reply("ann", good)
    assert [note.type for note in ann.heard] == ["book"]


# --- crashes --------------------------------------------------------------------------------------


def test_a_subscription_is_acknowledged_when_it_has_spread() -> None:
    simulator = Simulator(Topology.line(3), delay=1.0)
    ann = simulator.client("b1", "ann")
    simulator.run_until_quiet()
    request = simulator.subscribe(ann, "s", "x = 1")
    simulator.run(3.5)
    assert request not in ann.answers
    simulator.run(1.0)
    assert request in ann.answers
    assert known_at(simulator, "b3", "b2") == {"s": "x = 1"}


@pytest.mark.parametrize("routing", [SubscriptionForwarding(), AdvertisementForwarding()])
def test_events_cross_a_broker_that_is_down(routing: Any) -> None:
    simulator = Simulator(Topology.line(3), Options(routing=routing))
    ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    simulator.advertise(bob, "a", "x > 0")
    simulator.subscribe(ann, "s", "x = 1")
    simulator.run_until_quiet()
    simulator.crash("b2")
    request = simulator.publish(bob, '{"x": 1}')
    assert bob.answers[request].error is None, "b3 keeps it"
    simulator.crash("b3")
    simulator.run(10)
    simulator.calm()
    simulator.run_until_quiet()
    assert events_heard(ann) == [{"x": 1}]


class Publisher:
    """A client that publishes straight to a broker, which can crash."""

    def __init__(self) -> None:
        self.disk: dict[str, Any] = {}
        self.broker = Broker("b1", [])
        self._requests = 0

    def crash(self) -> None:
        self.broker = Broker("b1", [], stored={key: x for key, x in self.disk.items() if x is not None})

    def publish(self, number: int, event: str) -> Reply:
        self._requests += 1
        effects = self.broker.handle(i.Publish("bob", self._requests, number, event), now=0.0)
        for effect in effects:
            if isinstance(effect, Persist):
                self.disk.update(effect.changes)
        [reply] = [effect for effect in effects if isinstance(effect, Reply)]
        assert reply.request == self._requests
        return reply


@pytest.mark.parametrize("crashes", [False, True])
def test_a_repeated_publication_is_refused_again(crashes: bool) -> None:
    bob = Publisher()
    refused = bob.publish(1, "not json").error
    assert refused is not None
    assert bob.publish(2, '{"x": 2}').value == 2
    if crashes:
        bob.crash()
    assert bob.publish(1, "not json").error == refused
    assert bob.publish(2, '{"x": 2}').value == 2


def test_a_number_that_was_refused_last_can_be_used_again() -> None:
    bob = Publisher()
    assert bob.publish(1, '{"x": 1}').value == 1
    assert bob.publish(2, "not json").error is not None
    bob.crash()
    assert bob.publish(2, '{"x": 2}').value == 2
    assert bob.publish(2, '{"x": 2}').value == 2


def test_refusals_are_kept_within_a_bound() -> None:
    bob = Publisher()
    for number in range(1, 2 * MOST + 1):
        bob.publish(number, "not json")
        if number == MOST:
            assert bob.publish(number + 1, "{}").error is None
    last = 2 * MOST + 1
    assert bob.publish(last, "{}").value == last
    kept = [key for key, error in bob.disk.items() if key.startswith("refused/") and error is not None]
    assert len(kept) == MOST
    assert bob.publish(last - 1, "not json").error is not None


def test_large_networks_settle() -> None:
    topology = Topology.random(300, seed=1)
    simulator = Simulator(topology, Options(covering=True), faults=Faults(loss=0.02), check=False)
    ann, bob = simulator.client("b7", "ann"), simulator.client("b250", "bob")
    request = simulator.subscribe(ann, "s", "x = 1")
    while request not in ann.answers:
        simulator.run(1.0)
    simulator.publish(bob, '{"x": 1}')
    simulator.publish(bob, '{"x": 2}')
    simulator.calm()
    simulator.run_until_quiet()
    assert events_heard(ann) == [{"x": 1}]
    assert simulator.network_load < 0.2


def test_bad_requests_say_what_is_wrong() -> None:
    simulator = Simulator(Topology.line(1))
    ann = simulator.client("b1", "ann")
    for request, reason in [
        (simulator.subscribe(ann, "s", "x >"), "line 1"),
        (simulator.subscribe(ann, "", "x > 1"), "an id has 1 to 256 characters"),
        (simulator.unsubscribe(ann, "none"), "has no subscription 'none'"),
        (simulator.withdraw(ann, "none"), "has no advertisement 'none'"),
        (simulator.publish(ann, "not json"), ""),
    ]:
        error = ann.answers[request].error
        assert error is not None
        assert reason in error
    assert simulator.publish(ann, '{"x": 1}') in ann.answers
