"""Pre-pruning: what each neighbour is sent, and on what grounds."""

import pytest

from tamis_lab.brokers import Options, PrePruning
from tamis_lab.simulation import Simulator, Topology


def entries(network: Simulator, broker: str, neighbour: str) -> list[str]:
    """What a broker was told by a neighbour."""
    table = network.brokers[broker].spreading.subscriptions_from[neighbour]
    return [str(entry.expression) for entry in table.entries.values()]


def test_each_neighbour_is_sent_what_is_set_for_it() -> None:
    setting = PrePruning(2, neighbours={"b2": 1, "b3": None})
    network = Simulator(Topology.star(4), Options(pre_pruning=setting))
    ann = network.client("b1", "ann")
    network.subscribe(ann, "s", "x = 1 AND y = 2 AND z = 3")
    network.run_until_quiet()
    sent = {name: entries(network, name, "b1") for name in ("b2", "b3", "b4")}
    assert [len(text.split(" AND ")) for [text] in sent.values()] == [1, 3, 2]
    network.publish(network.client("b2", "bob"), '{"x": 1, "y": 2, "z": 3}')
    network.publish(network.client("b4", "eve"), '{"x": 1, "y": 2, "z": 4}')
    network.run_until_quiet()
    assert [note.event for note in ann.heard] == ['{"x": 1, "y": 2, "z": 3}']


def test_a_neighbour_passes_on_the_small_form_that_it_was_sent() -> None:
    network = Simulator(Topology.line(3), Options(pre_pruning=PrePruning(None, neighbours={"b2": 1})))
    network.subscribe(network.client("b1", "ann"), "s", "x = 1 AND y = 2")
    network.run_until_quiet()
    assert entries(network, "b3", "b2") == entries(network, "b2", "b1")
    assert len(entries(network, "b2", "b1")[0].split(" AND ")) == 1


@pytest.mark.parametrize("rare", ["x", "y"])
def test_what_is_kept_is_what_the_sender_has_seldom_seen(rare: str) -> None:
    network = Simulator(Topology.line(2), Options(pre_pruning=PrePruning(1)))
    ann = network.client("b1", "ann")
    for number in range(10):
        often = "y" if rare == "x" else "x"
        network.publish(ann, f'{{"{rare}": {int(number == 0)}, "{often}": {int(number > 0)}}}')
    network.subscribe(ann, "s", "x = 1 AND y = 1")
    network.run_until_quiet()
    assert entries(network, "b2", "b1") == [f"{rare} = 1"]


@pytest.mark.parametrize("wrong", [{"predicates": 0}, {"predicates": 3, "neighbours": {"b2": -1}}])
def test_an_entry_keeps_at_least_one_predicate(wrong: dict) -> None:
    with pytest.raises(ValueError, match="1 is the fewest"):
        PrePruning(**wrong)
