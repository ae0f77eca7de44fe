"""A network and, beside it, a central judge that knows every subscription and every event.

The judge evaluates expressions with the oracle. While things are under way it knows what a client *must* hear
(subscriptions acknowledged before the event was published, and still there) and what it *may* hear
(subscriptions asked for, or just taken back); when all is quiet before each publication, the two are one.

What was under way when a broker was lost, or came back with an older copy of its disk, may be gone; what is
published afterwards may not. What tiny limits drop must be counted by gaps.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import tamis
from oracle import Node, evaluate
from tamis.errors import TamisError
from tamis.pubsub.routing import Rendezvous
from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.options import Options
from tamis_lab.simulation import Topology
from tamis_lab.simulation.simulator import Faults, SimulatedClient, Simulator
from writer import to_text


def rendezvous_at(topology: Topology, books: str, others: str, options: Options) -> Any:
    """Options by broker for a network with two rendezvous brokers."""

    def living(name: str) -> str:
        return name if name in topology.brokers else topology.brokers[0]

    def options_of(name: str) -> Options:
        towards = {"book": topology.towards(name, living(books))}
        routing = Rendezvous(towards, topology.towards(name, living(others)))
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


class OlderBroker(Broker):
    """A broker of a release that does not know `>` and `>=` yet."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.spreading.read = read_as_before


def read_as_before(text: str) -> Any:
    if ">" in text:
        raise TamisError("what is >?")
    return tamis.parse(text)


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
    is_damaged: bool = False
    """Whether something was lost since it was published."""


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
    dropped: int = 0
    copies: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of brokers' disks."""
    has_limits: bool = False

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

    # --- damage ------------------------------------------------------------------------------------

    def copy(self, broker: str) -> None:
        self.copies[broker] = dict(self.simulator.disks[broker])

    def restore(self, broker: str) -> None:
        """A broker comes back with an older copy of its disk; its client asks for what it wants again."""
        self._damage()
        self.simulator.restore(broker, self.copies.get(broker, {}))
        client = self.clients.get(broker)
        if client is None:
            return
        for wanted in self.wanted:
            if wanted.client is client and wanted.removed_at is None:
                wanted.request = self.simulator.subscribe(
                    client, wanted.id, to_text(wanted.node), wanted.type
                )
            elif wanted.client is client:
                self.simulator.unsubscribe(client, wanted.id)
        for key in [key for key in self.copies.get(broker, {}) if key.startswith("advertisement/")]:
            id = key.rpartition("/")[2]
            if (broker, id) not in self.advertised:
                self.simulator.withdraw(client, id)
        for (where, id), (node, type) in self.advertised.items():
            if where == broker:
                self.simulator.advertise(client, id, to_text(node), type)

    def lose(self, broker: str) -> None:
        """A broker is lost for good, with its disk and its clients."""
        self._damage()
        self.simulator.lose(broker)
        self.copies.pop(broker, None)
        gone = self.clients.pop(broker, None)
        self.wanted = [wanted for wanted in self.wanted if wanted.client is not gone]
        self.advertised = {key: entry for key, entry in self.advertised.items() if key[0] != broker}

    def _damage(self) -> None:
        for entry in self.published:
            entry.is_damaged = True

    # --- judging -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """End all faults, let everything arrive, and judge."""
        self.simulator.calm()
        for client in self.clients.values():
            self.simulator.come_back(client)
        self.simulator.run_until_quiet()
        self.simulator.run(0.0)
        heard: dict[tuple[str, str], set[str]] = {}
        damaged = {entry.text for entry in self.published if entry.is_damaged}
        for client in self.clients.values():
            assert not client.unanswered, client.unanswered
            assert self.has_limits or not client.gaps
            for note in client.heard:
                for id in note.subscriptions:
                    matched = heard.setdefault((note.event, client.name), set())
                    assert id not in matched or note.event in damaged, "heard twice"
                    matched.add(id)
        self.judge_order(damaged)
        missing: dict[str, int] = {}
        for entry in self.published:
            reply = entry.client.answers.get(entry.request)
            if reply is None:
                assert entry.client not in self.clients.values(), entry
                continue
            is_full = self.has_limits and reply.error is not None and " is full: " in reply.error
            if not entry.is_damaged:
                assert (reply.error is not None) == (entry.refusal_expected or is_full), (entry, reply)
            if reply.error is not None:
                self.refused += 1
                assert entry.is_damaged or not any(text == entry.text for text, _ in heard)
                continue
            for client in self.clients.values():
                got = heard.get((entry.text, client.name), set())
                must, may = self.expected(entry, client)
                assert got <= may, (entry, client.name, got, may)
                if not entry.is_damaged and not must <= got:
                    assert self.has_limits, (entry, client.name, must, got)
                    assert not got, "what is dropped for one subscription is dropped for all"
                    missing[client.name] = missing.get(client.name, 0) + 1
                self.notified += len(got)
        for client in self.clients.values():
            counted = sum(gap.last - gap.number + 1 for gap in client.gaps)
            assert missing.get(client.name, 0) <= counted, (client.name, missing, client.gaps)
            self.dropped += counted
            client.heard.clear()
            client.gaps.clear()
        self.published.clear()

    def judge_order(self, damaged: set[str]) -> None:
        """Each publisher's events come in its order."""
        publisher = {entry.text: entry.client.name for entry in self.published}
        for client in self.clients.values():
            last: dict[str, int] = {}
            for note in client.heard:
                if note.event in damaged:
                    continue
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


def make(
    topology: Topology,
    options: Any,
    faults: Faults | None = None,
    seed: int = 0,
    *,
    older: frozenset[int] = frozenset(),
) -> History:
    """`older` are the places of brokers of the release before."""
    before = {name for place, name in enumerate(topology.brokers) if place in older}

    def release(name: str, *arguments: Any) -> Broker:
        return (OlderBroker if name in before else Broker)(name, *arguments)

    simulator = Simulator(topology, options, seed=seed, faults=faults, make=release)
    some = options(topology.brokers[0]) if callable(options) else options  # brokers may crash at once
    history = History(simulator, some.nonconforming == "refuse")
    history.has_limits = some.limits != Options().limits
    return history
