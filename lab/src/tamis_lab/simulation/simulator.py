"""A network of brokers in one process, in virtual time, the same for the same seed.

Frames take time, and may be lost, repeated or reordered; links can be cut; brokers crash, between any two
effects, and come back with what they had persisted, or with an older copy of it, or never. Clients are next
to their broker: they repeat requests that were not answered and drop notifications they have seen, as real
ones do. They vanish and come back.

After every step the brokers' invariants are checked (see `invariants`).
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tamis_lab.brokers import inputs as i
from tamis_lab.brokers.counters import Counters
from tamis_lab.brokers.effects import Deliver, DeliverGap, Effect, Persist, Reply, Send, SetTimer
from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.messages import Frame
from tamis_lab.brokers.options import Options
from tamis_lab.simulation.invariants import check_broker, check_quiet
from tamis_lab.simulation.topology import Topology


@dataclass(frozen=True)
class Faults:
    """How badly links and brokers behave; all are probabilities."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    crash: float = 0.0
    """That a broker crashes while it carries out the effects of an input."""
    downtime: float = 5.0
    """Seconds until it comes back."""


@dataclass
class SimulatedClient:
    """A client at a broker: what it asked, and what it heard."""

    broker: str
    name: str
    acknowledges: bool = True
    is_away: bool = False
    heard: list[Deliver] = field(default_factory=list)
    gaps: list[DeliverGap] = field(default_factory=list)
    answers: dict[int, Reply] = field(default_factory=dict)
    unanswered: dict[int, Any] = field(default_factory=dict)
    seen: int = 0
    _requests: int = 0
    _published: int = 0

    def next_request(self) -> int:
        """A new number for a request."""
        self._requests += 1
        return self._requests

    def next_publication(self) -> int:
        """A new number for a publication."""
        self._published += 1
        return self._published


class Simulator:
    """Brokers, links, clients and a clock.

    >>> simulator = Simulator(Topology.line(3), Options())
    >>> ann, bob = simulator.client("b1", "ann"), simulator.client("b3", "bob")
    >>> simulator.subscribe(ann, "cheap", "price < 15")
    1
    >>> simulator.run_until_quiet()
    >>> simulator.publish(bob, '{"price": 12}')
    1
    >>> simulator.run_until_quiet()
    >>> [(note.event, note.subscriptions) for note in ann.heard]
    [('{"price": 12}', ('cheap',))]
    """

    def __init__(
        self,
        topology: Topology,
        options: Options | Callable[[str], Options] | None = None,
        *,
        seed: int = 0,
        delay: float = 0.01,
        bandwidth: float | None = None,
        faults: Faults | None = None,
        stopwatch: Callable[[], float] | None = None,
        check: bool = True,
        make: Callable[..., Any] = Broker,
    ) -> None:
        """`options` may differ by broker; `bandwidth` is bytes a second on each link; None: no limit.

        `make` makes a broker: here, or somewhere else (`tamis_lab.simulation.processes`).
        """
        self._make = make
        self.topology = topology
        self.faults = faults or Faults()
        self.now = 0.0
        self.brokers: dict[str, Broker] = {}
        self.disks: dict[str, dict[str, Any]] = {name: {} for name in topology.brokers}
        self.clients: dict[tuple[str, str], SimulatedClient] = {}
        self._past = Counters()
        self._options = options if callable(options) else (lambda _: options or Options())
        self._chance = random.Random(seed)
        self._delay = delay
        self._bandwidth = bandwidth
        self._stopwatch = stopwatch
        self._check = check
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._cut: set[frozenset[str]] = set()
        self._free_at: dict[tuple[str, str], float] = {}
        self._lives = dict.fromkeys(topology.brokers, 0)
        self._in_flight = 0
        for name in topology.brokers:
            self.start(name)

    # --- clients -----------------------------------------------------------------------------------

    def client(self, broker: str, name: str, acknowledges: bool = True) -> SimulatedClient:
        """Attach a client; one that does not acknowledge is a slow one."""
        client = SimulatedClient(broker, name, acknowledges)
        self.clients[broker, name] = client
        self._input(broker, i.Attach(name))
        return client

    def subscribe(
        self,
        client: SimulatedClient,
        id: str,
        expression: str,
        type: str | None = None,
        priority: float = 0.0,
    ) -> int:
        """Ask for a subscription; returns the number of the request."""
        request = client.next_request()
        return self._ask(client, i.Subscribe(client.name, request, id, expression, type, priority))

    def unsubscribe(self, client: SimulatedClient, id: str) -> int:
        """Take a subscription back."""
        return self._ask(client, i.Unsubscribe(client.name, client.next_request(), id))

    def advertise(self, client: SimulatedClient, id: str, expression: str, type: str | None = None) -> int:
        """Advertise."""
        request = client.next_request()
        return self._ask(client, i.AdvertiseEvents(client.name, request, id, expression, type))

    def withdraw(self, client: SimulatedClient, id: str) -> int:
        """Take an advertisement back."""
        return self._ask(client, i.WithdrawAdvertisement(client.name, client.next_request(), id))

    def publish(self, client: SimulatedClient, event: str, type: str | None = None) -> int:
        """Publish an event, as JSON text; returns the number of the request."""
        request, number = client.next_request(), client.next_publication()
        return self._ask(client, i.Publish(client.name, request, number, event, type))

    def acknowledge(self, client: SimulatedClient) -> None:
        """Let a slow client acknowledge all that it has heard."""
        self._input(client.broker, i.Acknowledge(client.name, client.seen))

    def vanish(self, client: SimulatedClient) -> None:
        """Let a client go without a word to anyone; what it asked for stays."""
        client.is_away = True
        self._input(client.broker, i.Detach(client.name))

    def come_back(self, client: SimulatedClient) -> None:
        """Let a client that vanished attach again, and repeat what was not answered."""
        if client.is_away:
            client.is_away = False
            self._attach(client)

    def prune(self, share: float, replace: float | None = None) -> None:
        """Let all brokers prune their event routing tables so far, and replace that share of comparisons."""
        for name in self.topology.brokers:
            self._input(name, i.Prune(share, replace))

    def prune_advertisements(self, steps: int) -> None:
        """Let all brokers do this many prunings on their subscription routing tables."""
        for name in self.topology.brokers:
            self._input(name, i.PruneAdvertisements(steps))

    def _ask(self, client: SimulatedClient, request: Any) -> int:
        client.unanswered[request.request] = request
        self._input(client.broker, request)
        return int(request.request)

    # --- faults ------------------------------------------------------------------------------------

    def crash(self, name: str) -> None:
        """A broker stops, now, and forgets everything that it has not persisted."""
        broker = self.brokers.pop(name)
        self._lives[name] += 1
        for counter, value in broker.counters.as_dict().items():
            setattr(self._past, counter, getattr(self._past, counter) + value)

    def start(self, name: str) -> None:
        """A broker starts, or comes back; its clients repeat what was not answered."""
        if name in self.brokers or name not in self.disks:
            return
        options = self._options(name)
        # As a clock would: no epoch is used twice, whatever the disk remembers.
        stored = {**self.disks[name], "epoch": self._lives[name]}
        self.brokers[name] = self._make(
            name, self.topology.neighbours(name), options, stored, self._stopwatch
        )
        self._input(name, i.Start())
        for client in [client for client in self.clients.values() if client.broker == name]:
            if not client.is_away:
                self._attach(client)

    def _attach(self, client: SimulatedClient) -> None:
        self._input(client.broker, i.Attach(client.name))
        for request in list(client.unanswered.values()):
            self._input(client.broker, request)

    def restore(self, name: str, copy: dict[str, Any]) -> None:
        """A broker comes back with an older copy of its disk; its clients notice that it knows less."""
        if name in self.brokers:
            self.crash(name)
        self.disks[name] = dict(copy)
        for client in self.clients.values():
            if client.broker == name:
                _, last = copy.get(f"client/{client.name}", (0, 0))
                client.seen = min(client.seen, last)
        self.start(name)

    def lose(self, name: str) -> None:
        """A broker and its clients never come back; the overlay is rebuilt without it."""
        if name in self.brokers:
            self.crash(name)
        del self.disks[name]
        self.clients = {key: client for key, client in self.clients.items() if client.broker != name}
        self.topology.remove(name)
        for other in self.topology.brokers:
            if other in self.brokers:
                self.crash(other)
            else:
                self._lives[other] += 1  # what is under way over links of before reaches nobody
        for other in self.topology.brokers:
            self.start(other)

    def cut(self, a: str, b: str) -> None:
        """Let no frame pass between two neighbours."""
        self._cut.add(frozenset((a, b)))

    def heal(self, a: str, b: str) -> None:
        """Let frames pass again."""
        self._cut.discard(frozenset((a, b)))

    def calm(self) -> None:
        """End all faults: heal every link, bring every broker back."""
        self.faults = Faults()
        self._cut.clear()
        for name in self.topology.brokers:
            self.start(name)

    # --- time --------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Let that much time pass."""
        end = self.now + seconds
        while self._agenda and self._agenda[0][0] <= end:
            self._step()
        self.now = end

    def run_until_quiet(self, most_steps: int = 1_000_000) -> None:
        """Run until no frame is under way and nothing waits for a neighbour."""
        for _ in range(most_steps):
            if self._in_flight == 0 and self._is_quiet():
                if self._check:
                    check_quiet(self.brokers)
                return
            if not self._agenda:
                break
            self._step()
        raise RuntimeError(f"the network is not quiet after {most_steps:,} steps")

    def _is_quiet(self) -> bool:
        return len(self.brokers) == len(self.topology.brokers) and all(
            broker.idle for broker in self.brokers.values()
        )

    def _step(self) -> None:
        self.now, _, action = heapq.heappop(self._agenda)
        action()

    def _at(self, time: float, action: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._agenda, (time, self._scheduled, action))

    # --- counters ----------------------------------------------------------------------------------

    def counters(self) -> Counters:
        """The counters of all brokers together, crashed ones included."""
        total = Counters(**self._past.as_dict())  # type: ignore[arg-type]
        for broker in self.brokers.values():
            for name, value in broker.counters.as_dict().items():
                setattr(total, name, getattr(total, name) + value)
        return total

    @property
    def network_load(self) -> float:
        """The share of other brokers that filter an event: 0 if none is forwarded, 1 if all are flooded."""
        counters = self.counters()
        others = len(self.topology.brokers) - 1
        if not counters.published or not others:
            return 0.0
        return (counters.filtered - counters.published) / counters.published / others

    @property
    def brokers_use_advertisements(self) -> bool:
        """Whether the routing algorithm relies on advertisements."""
        return self._options(self.topology.brokers[0]).routing.uses_advertisements

    @property
    def routing_predicates(self) -> int:
        """The predicates of all entries in all event routing tables, as they are matched."""
        return sum(
            table.matcher.predicates
            for broker in self.brokers.values()
            for table in broker.spreading.subscriptions_from.values()
        )

    @property
    def prunings(self) -> int:
        """How many prunings led to the entries of all event routing tables as they are now."""
        pruners = (broker.spreading.pruner for broker in self.brokers.values())
        return sum(pruner.prunings for pruner in pruners if pruner is not None)

    @property
    def routing_entries(self) -> int:
        """The entries in all event routing tables."""
        return sum(
            len(table)
            for broker in self.brokers.values()
            for table in broker.spreading.subscriptions_from.values()
        )

    # --- effects -----------------------------------------------------------------------------------

    def _input(self, name: str, input: i.Input) -> None:
        broker = self.brokers.get(name)
        if broker is None:
            return
        effects = broker.handle(input, self.now)
        crashes_at = None
        if self.faults.crash and self._chance.random() < self.faults.crash:
            crashes_at = self._chance.randrange(len(effects) + 1)
        for place, effect in enumerate(effects):
            if place == crashes_at:
                break
            self._carry_out(name, effect)
        if crashes_at is not None:
            self.crash(name)
            self._at(self.now + self.faults.downtime, lambda: self.start(name))
        elif self._check:
            check_broker(broker, self.disks[name])

    def _carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Persist(changes):
                disk = self.disks[name]
                for key, value in changes.items():
                    if value is None:
                        disk.pop(key, None)
                    else:
                        disk[key] = value
            case Send(neighbour, frame):
                self._send(name, neighbour, frame)
            case SetTimer(timer, at):
                life = self._lives[name]
                self._at(at, lambda: self._fire(name, life, timer))
            case Reply(client, request):
                self._answer(self.clients[name, client], request, effect)
            case Deliver() | DeliverGap():
                self._deliver(self.clients[name, effect.client], effect)

    def _fire(self, name: str, life: int, timer: str) -> None:
        if self._lives[name] == life:
            self._input(name, i.TimerFired(timer))

    def _answer(self, client: SimulatedClient, request: int, reply: Reply) -> None:
        if client.unanswered.pop(request, None) is not None:
            client.answers[request] = reply

    def _deliver(self, client: SimulatedClient, note: Deliver | DeliverGap) -> None:
        last = note.last if isinstance(note, DeliverGap) else note.number
        if last <= client.seen:
            return
        client.seen = last
        if isinstance(note, DeliverGap):
            client.gaps.append(note)
        else:
            client.heard.append(note)
        if client.acknowledges:
            acknowledgement = i.Acknowledge(client.name, last)
            self._at(self.now, lambda: self._input(client.broker, acknowledgement))

    def _send(self, sender: str, receiver: str, frame: Frame) -> None:
        for _ in range(1 + (self._chance.random() < self.faults.duplication)):
            if self._chance.random() < self.faults.loss:
                continue
            arrival = self.now + self._delay
            if self._bandwidth is not None:
                size = 64 if frame.body is None else 64 + len(str(frame.body))
                begin = max(self.now, self._free_at.get((sender, receiver), 0.0))
                self._free_at[sender, receiver] = begin + size / self._bandwidth
                arrival = self._free_at[sender, receiver] + self._delay
            if self._chance.random() < self.faults.reordering:
                arrival += self._chance.random() * 10 * self._delay
            self._in_flight += 1
            life = self._lives[receiver]
            self._at(arrival, partial(self._arrive, sender, receiver, life, frame))

    def _arrive(self, sender: str, receiver: str, life: int, frame: Frame) -> None:
        self._in_flight -= 1
        if frozenset((sender, receiver)) not in self._cut and self._lives[receiver] == life:
            self._input(receiver, i.FrameReceived(sender, frame))
