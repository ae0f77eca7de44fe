"""A network and, beside it, a central judge that knows every subscription and every event.

The judge evaluates expressions with the oracle. While things are under way it knows what a client *must* hear
(subscriptions acknowledged before the event was published, and still there) and what it *may* hear
(subscriptions asked for, or just taken back); when all is quiet before each publication, the two are one.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from oracle import Node, evaluate
from tamis.pubsub.routing import Rendezvous
from tamis_lab.brokers.options import Options
from tamis_lab.simulation import Topology
from tamis_lab.simulation.simulator import Faults, SimulatedClient, Simulator
from writer import to_text


def rendezvous_at(topology: Topology, books: str, others: str, options: Options) -> Any:
    """Options by broker for a network with two rendezvous brokers."""

    def options_of(name: str) -> Options:
        towards = {"book": topology.towards(name, books)}
        routing = Rendezvous(towards, topology.towards(name, others))
        return Options(**{**vars(options), "routing": routing})

    return options_of


@dataclass
class Wanted:
    client: SimulatedClient
    id: str
    node: Node
    type: str | None
    request: int
    removed_at: int | None = None


@dataclass
class Published:
    event: dict[str, Any]
    type: str | None
    client: SimulatedClient
    request: int
    at: int
    text: str
    settled_before: list[Wanted]
    refusal_expected: bool


@dataclass
class History:
    """Drives a simulator and judges it."""

    simulator: Simulator
    refuses: bool
    clock: int = 0
    wanted: list[Wanted] = field(default_factory=list)
    advertised: dict[tuple[str, str], tuple[Node, str | None]] = field(default_factory=dict)
    published: list[Published] = field(default_factory=list)
    clients: dict[str, SimulatedClient] = field(default_factory=dict)
    refused: int = 0
    notified: int = 0

    def client(self, broker: str) -> SimulatedClient:
        if broker not in self.clients:
            self.clients[broker] = self.simulator.client(broker, f"client-{broker}")
        return self.clients[broker]

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def subscribe(self, broker: str, node: Node, type: str | None) -> None:
        client, id = self.client(broker), f"s{self.tick()}"
        self.wanted.append(Wanted(client, id, node, type, 0))
        self.wanted[-1].request = self.simulator.subscribe(client, id, to_text(node), type)

    def unsubscribe(self, place: int) -> None:
        there = [wanted for wanted in self.wanted if wanted.removed_at is None]
        if there:
            gone = there[place % len(there)]
            gone.removed_at = self.tick()
            self.simulator.unsubscribe(gone.client, gone.id)

    def advertise(self, broker: str, node: Node, type: str | None) -> None:
        id = f"a{self.tick()}"
        self.advertised[broker, id] = (node, type)
        self.simulator.advertise(self.client(broker), id, to_text(node), type)

    def withdraw(self, place: int) -> None:
        if self.advertised:
            broker, id = list(self.advertised)[place % len(self.advertised)]
            del self.advertised[broker, id]
            self.simulator.withdraw(self.client(broker), id)

    def publish(self, broker: str, event: dict[str, Any], type: str | None) -> None:
        client, at = self.client(broker), self.tick()
        event = {**event, "serial": at}
        acknowledged = [
            wanted
            for wanted in self.wanted
            if wanted.removed_at is None and wanted.request in wanted.client.answers
        ]
        mine = [entry for (where, _), entry in self.advertised.items() if where == broker]
        conforms = any(
            (kind is None or kind == type) and evaluate(node, event).can_be_true for node, kind in mine
        )
        uses = self.simulator.brokers_use_advertisements
        refusal = self.refuses and not conforms and (bool(mine) or uses)
        text = json.dumps(event)
        entry = Published(event, type, client, 0, at, text, acknowledged, refusal)
        self.published.append(entry)
        entry.request = self.simulator.publish(client, text, type)

    def settle(self) -> None:
        """End all faults, let everything arrive, and judge."""
        self.simulator.calm()
        self.simulator.run_until_quiet()
        self.simulator.run(0.0)
        heard: dict[tuple[str, str], set[str]] = {}
        for client in self.clients.values():
            assert not client.unanswered, client.unanswered
            assert not client.gaps
            for note in client.heard:
                for id in note.subscriptions:
                    matched = heard.setdefault((note.event, client.name), set())
                    assert id not in matched, "heard twice"
                    matched.add(id)
        self.judge_order()
        for entry in self.published:
            reply = entry.client.answers[entry.request]
            assert (reply.error is not None) == entry.refusal_expected, (entry, reply)
            if reply.error is not None:
                self.refused += 1
                assert not any(text == entry.text for text, _ in heard)
                continue
            for client in self.clients.values():
                got = heard.get((entry.text, client.name), set())
                must, may = self.expected(entry, client)
                assert must <= got <= may, (entry, client.name, must, got, may)
                self.notified += len(got)
        for client in self.clients.values():
            client.heard.clear()
        self.published.clear()

    def judge_order(self) -> None:
        """Each publisher's events come in its order."""
        publisher = {entry.text: entry.client.name for entry in self.published}
        for client in self.clients.values():
            last: dict[str, int] = {}
            for note in client.heard:
                by, serial = publisher[note.event], json.loads(note.event)["serial"]
                assert last.get(by, 0) < serial, "a publisher's order is kept"
                last[by] = serial

    def expected(self, entry: Published, client: SimulatedClient) -> tuple[set[str], set[str]]:
        must, may = set(), set()
        for wanted in self.wanted:
            if wanted.client is not client or wanted.type not in (None, entry.type):
                continue
            if not evaluate(wanted.node, entry.event).can_be_true:
                continue
            if wanted.removed_at is None or wanted.removed_at > entry.at:
                may.add(wanted.id)
            if wanted in entry.settled_before and wanted.removed_at is None:
                must.add(wanted.id)
        return must, may


def make(topology: Topology, options: Any, faults: Faults | None = None, seed: int = 0) -> History:
    simulator = Simulator(topology, options, seed=seed, faults=faults)
    some = options(topology.brokers[0]) if callable(options) else options  # brokers may crash at once
    return History(simulator, some.nonconforming == "refuse")
