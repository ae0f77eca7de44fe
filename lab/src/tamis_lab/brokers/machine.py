"""A broker as a state machine: `handle(input, now)` returns what is to be done. No I/O, no clock.

The parts: `link` makes each connection reliable, `spreading` keeps the routing tables and what neighbours
know, `forwarding` keeps events until a neighbour has taken them, `clients` keeps notifications until a
client has. Here they are joined, and requests of clients answered.

What must survive a crash goes into one durable map through `Persist`, before anything that relies on it is
sent: local subscriptions and advertisements, events that a neighbour or client has not acknowledged,
numbers. The routing tables are not in it; neighbours tell them again.

    key                     value
    epoch                   how often this broker has started; a host sees to it that it grows
    subscription/CLIENT/ID  [expression, type, priority]
    advertisement/CLIENT/ID [expression, type]
    client/NAME             [last publication, last notification]
    refused/CLIENT/NUMBER   why a publication before the last one was refused
    queue/CLIENT/NUMBER     a notification that waits
    out/, sent/, got/       see `forwarding`
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tamis
from tamis._kernel import Event
from tamis.errors import TamisError
from tamis.pubsub.entry import Entry
from tamis.pubsub.matcher import Matcher, is_true
from tamis_lab.brokers import inputs as i
from tamis_lab.brokers.clients import Client, LocalAdvertisement, LocalSubscription, from_record, to_record
from tamis_lab.brokers.counters import Counters
from tamis_lab.brokers.effects import DeliverGap, Effect, Persist, Reply, Send, SetTimer
from tamis_lab.brokers.event_types import EventTypes
from tamis_lab.brokers.forwarding import Forwarding
from tamis_lab.brokers.link import Link
from tamis_lab.brokers.messages import Barrier, Forward, Frame, Message, ProtocolError, Settled
from tamis_lab.brokers.options import Options
from tamis_lab.brokers.shedding import Shedding
from tamis_lab.brokers.spreading import Spreading
from tamis_lab.brokers.tuning import Tuning

NAME = re.compile(r"[A-Za-z0-9_.:@-]{1,64}")


class Broker:
    """One broker of an acyclic overlay.

    `stored` is the durable map of an earlier life, empty for a new broker. `stopwatch` gives seconds and is
    used to measure filtering only.

    >>> from tamis_lab.brokers.effects import Deliver
    >>> broker = Broker("b1", neighbours=[])
    >>> def handle(input):
    ...     return [effect for effect in broker.handle(input, now=0.0) if not isinstance(effect, Persist)]
    >>> _ = handle(i.Start())
    >>> _ = handle(i.Attach("ann"))
    >>> handle(i.Subscribe("ann", 1, "cheap", "price < 15"))
    [Reply(client='ann', request=1, error=None, value=None)]
    >>> [effect.subscriptions for effect in handle(i.Publish("bob", 1, 1, '{"price": 12}'))
    ...  if isinstance(effect, Deliver)]
    [('cheap',)]
    """

    def __init__(
        self,
        name: str,
        neighbours: Iterable[str],
        options: Options | None = None,
        stored: Mapping[str, Any] | None = None,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        """Make a broker, or bring one back from what it had stored."""
        self.name = name
        self.options = options or Options()
        self.counters = Counters()
        self.neighbours = list(neighbours)
        stored = stored or {}
        self.epoch: int = stored.get("epoch", 0) + 1
        self.clients: dict[str, Client] = {}
        self._changes: dict[str, Any] = {"epoch": self.epoch}
        self._effects: list[Effect] = []
        self._timers: dict[str, float] = {}
        self._links = {
            neighbour: Link(self.epoch, self.options.resend_after) for neighbour in self.neighbours
        }
        self._place = {neighbour: place for place, neighbour in enumerate(self.neighbours)}
        self._touched = set(self.neighbours)
        """Links that may have something to send: few of them, where a broker has a thousand neighbours."""
        self._types = EventTypes(self.options.types)
        self._local = Matcher(self.options.algorithm)
        self._shedding = Shedding(self.options.limits)
        self._sample: deque[str] = deque(maxlen=self.options.sample)
        self.spreading = Spreading(
            f"{name}~{self.epoch}",
            self.neighbours,
            self.options,
            self.counters,
            self._say,
            selectivities=lambda: self._tuning.recent_selectivities(),  # noqa: PLW0108 - it comes below
        )
        self._tuning = Tuning(self.spreading, self.options.post_pruning, self.counters, self._sample)
        self.forwarding = Forwarding(self.neighbours, self._persist)
        self._stopwatch = stopwatch
        self._restore(stored)

    def handle(self, input: i.Input, now: float) -> list[Effect]:
        """Take one input; returns the effects, to be carried out in order."""
        match input:
            case i.Start():
                pass
            case i.FrameReceived(neighbour, frame):
                self._on_frame(neighbour, frame)
            case i.LinkUp(neighbour):
                self._touch(neighbour).nudge()
            case i.TimerFired(name):
                self._timers.pop(name, None)
                self._touch(name).due(now)
            case i.Attach():
                self._on_attach(input)
            case i.Detach(name):
                self._on_detach(name)
            case i.Acknowledge(name, number):
                self._on_acknowledge(name, number)
            case i.Prune(share, replace):
                self._tuning.prune(share, replace)
            case i.PruneAdvertisements(steps):
                self._tuning.prune_advertisements(steps)
            case _:
                self._on_request(input)
        return self._finish(now)

    @property
    def idle(self) -> bool:
        """Whether nothing waits for a neighbour: all links are up and all was acknowledged."""
        return all(link.idle for link in self._links.values()) and self.spreading.settling.idle

    # --- links -------------------------------------------------------------------------------------

    def _on_frame(self, neighbour: str, frame: Frame) -> None:
        link = self._touch(neighbour)
        received = link.receive(frame, accept=lambda message: self._can_take(neighbour, message))
        if received.restarted:
            for forward in self.forwarding.waiting[neighbour].values():
                link.say(forward)
            self.spreading.restarted(neighbour)
        for message in received.acknowledged:
            if isinstance(message, Forward):
                self.forwarding.acknowledged(neighbour, message.number)
        for message in received.bodies:
            self._on_message(neighbour, message)

    def _on_message(self, neighbour: str, message: Message) -> None:
        match message:
            case Forward():
                if self.forwarding.is_new(neighbour, message.number):
                    self.forwarding.taken(neighbour, message.number)
                    self._route(message, neighbour)
                else:
                    self.counters.repeated += 1
            case Barrier(number):
                self.spreading.barrier(neighbour, number)
            case Settled(number):
                self.spreading.settling.heard(neighbour, number)
            case _:
                try:
                    self.spreading.heard(neighbour, message)
                except TamisError as error:
                    raise ProtocolError(f"neighbour {neighbour} sent {message}: {error}") from error

    def _can_take(self, neighbour: str, message: Message) -> bool:
        """Leave an event with its sender while a link that it must go on to is full."""
        if not isinstance(message, Forward) or not self._is_any_link_full():
            return True
        if self._full_target(self._targets(message, Event(message.event), neighbour)) is None:
            return True
        self.counters.held_back += 1
        return False

    def _touch(self, neighbour: str) -> Link:
        self._touched.add(neighbour)
        return self._links[neighbour]

    def _say(self, neighbour: str, message: Message) -> None:
        # Without a conversation nobody listens; everything is told when one begins.
        if self._links[neighbour].in_conversation:
            self._touch(neighbour).say(message)

    # --- events ------------------------------------------------------------------------------------

    def _targets(self, forward: Forward, event: Event, sender: str | None) -> list[str]:
        if forward.everywhere:
            return [neighbour for neighbour in self.neighbours if neighbour != sender]
        return [
            neighbour
            for neighbour in self.neighbours
            if neighbour != sender and self.spreading.wants(neighbour, event, forward.type)
        ]

    def _is_any_link_full(self) -> bool:
        most = self.options.limits.link_events
        return any(len(waiting) >= most for waiting in self.forwarding.waiting.values())

    def _full_target(self, targets: list[str]) -> str | None:
        most = self.options.limits.link_events
        return next((name for name in targets if len(self.forwarding.waiting[name]) >= most), None)

    def _route(self, forward: Forward, sender: str | None) -> None:
        event = Event(forward.event)
        started = self._stopwatch() if self._stopwatch else 0.0
        targets = self._targets(forward, event, sender)
        matched = self._local.match(event, forward.type)
        if self._stopwatch:
            self.counters.filter_seconds += self._stopwatch() - started
        self.counters.filtered += 1
        self.counters.forwarded += len(targets)
        if sender is not None:
            self.counters.received += 1
            self.counters.needless += not targets and not matched
        for neighbour in targets:
            kept = self.forwarding.add(
                neighbour, forward.event, forward.type, forward.everywhere, forward.origin
            )
            self._say(neighbour, kept)
        self._notify(forward, matched)
        self._sample.append(forward.event)
        self._tuning.after_event(len(targets))

    def _notify(self, forward: Forward, matched: list[str]) -> None:
        by_client: dict[str, list[str]] = {}
        for key in matched:
            name, _, id = key.partition("/")
            by_client.setdefault(name, []).append(id)
        for name, ids in by_client.items():
            client = self.clients[name]
            kept = [id for id in ids if self._shedding.serves(client.subscriptions[id].priority)]
            self.counters.shed += len(ids) - len(kept)
            waiting = len(client.waiting)
            if kept:
                note = client.notify(forward.event, forward.type, tuple(sorted(kept)), forward.origin)
            else:
                note = client.skip("overload")
            self._shedding.waiting += len(client.waiting) - waiting
            if isinstance(note, DeliverGap):
                self.counters.gaps += bool(kept)
            else:
                self.counters.notified += 1
            self._persist(f"queue/{name}/{note.number}", to_record(note))
            self._persist_client(client)
            if client.attached:
                client.pacing.add(note)
                self._effects.extend(client.pacing.take())

    # --- clients -----------------------------------------------------------------------------------

    def _client(self, name: str) -> Client:
        if name not in self.clients:
            if not NAME.fullmatch(name):
                raise ProtocolError(f"{name!r} is not a name; use up to 64 letters, digits and _.:@-")
            self.clients[name] = Client(name, self.options.limits.client_notifications)
        return self.clients[name]

    def _on_attach(self, input: i.Attach) -> None:
        client = self._client(input.client)
        client.attached = True
        client.most_entries = input.most_entries
        self._effects.append(Reply(input.client, input.request, value=client.published))
        client.pacing.begin(client.waiting)
        self._effects.extend(client.pacing.take())

    def _on_detach(self, name: str) -> None:
        if name in self.clients:
            self.clients[name].attached = False
            self.clients[name].pacing.begin(())
            if self.clients[name].is_blank:
                del self.clients[name]  # or every name that was ever tried would stay

    def _on_acknowledge(self, name: str, number: int) -> None:
        client = self._client(name)
        for gone in client.acknowledge(number):
            self._persist(f"queue/{name}/{gone}", None)
            self._shedding.waiting -= 1
        if client.attached:
            self._effects.extend(client.pacing.take())

    def _on_request(self, input: Any) -> None:
        """Answer a request; what is wrong with it becomes the error of the reply."""
        try:
            match input:
                case i.Subscribe():
                    self._on_subscribe(input)
                case i.Unsubscribe():
                    self._on_unsubscribe(input)
                case i.AdvertiseEvents():
                    self._on_advertise(input)
                case i.WithdrawAdvertisement():
                    self._on_withdraw(input)
                case i.Publish():
                    self._on_publish(input)
        except TamisError as error:
            if isinstance(input, i.Publish):
                self.counters.refused += 1
                if input.client in self.clients:
                    self.clients[input.client].refusals.add(input.number, str(error))
            self._effects.append(Reply(input.client, input.request, error=str(error)))

    def _entry(self, input: i.Subscribe | i.AdvertiseEvents) -> Entry:
        if not 0 < len(input.id) <= 256:
            raise ProtocolError("an id has 1 to 256 characters")
        expression = tamis.parse(input.expression)
        fault = self._types.fault_of_expression(input.type, expression)
        if fault is not None:
            raise ProtocolError(fault)
        return Entry(f"{self.name}/{input.client}/{input.id}", expression, input.type)

    def _check_count(self, client: Client, entries: Mapping[str, Any], id: str, what: str) -> None:
        most = client.most_entries
        if most is not None and len(entries) >= most and id not in entries:
            raise ProtocolError(f"{client.name} has {most:,} {what}, which is its limit")

    def _on_subscribe(self, input: i.Subscribe) -> None:
        client, entry = self._client(input.client), self._entry(input)
        self._check_count(client, client.subscriptions, input.id, "subscriptions")
        subscription = self._subscribe(client, input.id, entry, input.priority)
        self._persist(
            f"subscription/{client.name}/{input.id}", [str(entry.expression), input.type, input.priority]
        )
        subscription.pending.append(input.request)
        self.spreading.settling.when_settled(
            None, lambda: self._answer(client, subscription.pending, input.request)
        )

    def _answer(self, client: Client, pending: list[int], request: int, error: str | None = None) -> None:
        if request in pending:
            pending.remove(request)
            self._effects.append(Reply(client.name, request, error))

    def _answer_all(self, client: Client, pending: list[int], id: str) -> None:
        """Answer requests for what is being taken back, or its client would ask again after a crash."""
        for request in list(pending):
            self._answer(client, pending, request, f"{id!r} was taken back before it had spread")

    def _subscribe(self, client: Client, id: str, entry: Entry, priority: float) -> LocalSubscription:
        subscription = LocalSubscription(entry, priority)
        before = client.subscriptions.get(id)
        if before is not None:
            self._shedding.remove(before.priority)
            subscription.pending = before.pending
        client.subscriptions[id] = subscription
        self._shedding.add(priority)
        self._local.put(f"{client.name}/{id}", entry.expression, entry.type)
        self.spreading.add_subscription(entry, None)
        return subscription

    def _on_unsubscribe(self, input: i.Unsubscribe) -> None:
        client = self._client(input.client)
        gone = client.subscriptions.pop(input.id, None)
        if gone is None:
            raise ProtocolError(f"{client.name} has no subscription {input.id!r}")
        self._shedding.remove(gone.priority)
        self._local.remove(f"{client.name}/{input.id}")
        self._persist(f"subscription/{client.name}/{input.id}", None)
        self.spreading.remove_subscription(gone.entry.id, None)
        self._answer_all(client, gone.pending, input.id)
        self._effects.append(Reply(client.name, input.request))

    def _on_advertise(self, input: i.AdvertiseEvents) -> None:
        client, entry = self._client(input.client), self._entry(input)
        self._check_count(client, client.advertisements, input.id, "advertisements")
        self._persist(f"advertisement/{client.name}/{input.id}", [str(entry.expression), input.type])
        self._advertise(client, input.id, entry, input.request)

    def _advertise(self, client: Client, id: str, entry: Entry, request: int | None) -> None:
        advertisement = LocalAdvertisement(entry)
        before = client.advertisements.get(id)
        if before is not None:
            advertisement.pending = before.pending
        client.advertisements[id] = advertisement
        if request is not None:
            advertisement.pending.append(request)

        def spread() -> None:
            advertisement.spread = True
            if request is not None:
                self._answer(client, advertisement.pending, request)

        self.spreading.add_advertisement(entry, None)
        self.spreading.settling.when_settled(None, spread)

    def _on_withdraw(self, input: i.WithdrawAdvertisement) -> None:
        client = self._client(input.client)
        gone = client.advertisements.pop(input.id, None)
        if gone is None:
            raise ProtocolError(f"{client.name} has no advertisement {input.id!r}")
        self._persist(f"advertisement/{client.name}/{input.id}", None)
        self.spreading.remove_advertisement(gone.entry.id, None)
        self._answer_all(client, gone.pending, input.id)
        self._effects.append(Reply(client.name, input.request))

    def _on_publish(self, input: i.Publish) -> None:
        client = self._client(input.client)
        if input.number <= client.published:
            self.counters.repeated += 1
            error = client.refusals.error_of(input.number)
            value = input.number if error is None else None
            self._effects.append(Reply(client.name, input.request, error, value))
            return
        event = Event(input.event)
        if self._types.declared:
            fault = self._types.fault_of_event(input.type, json.loads(input.event))
            if fault is not None:
                raise ProtocolError(fault)
        everywhere = self._must_go_everywhere(client, event, input)
        origin = f"{self.name}/{client.name}/{input.number}"
        forward = Forward(0, input.event, input.type, everywhere, origin)
        if self._is_any_link_full():
            full = self._full_target(self._targets(forward, event, None))
            if full is not None:
                raise ProtocolError(
                    f"broker {self.name} is full: {self.options.limits.link_events} events wait for {full}; "
                    "try again later"
                )
        client.published = input.number
        self._persist_client(client)
        for number, error in client.refusals.changes_with(input.number).items():
            self._persist(f"refused/{client.name}/{number}", error)
        self.counters.published += 1
        self._route(forward, None)
        self._effects.append(Reply(client.name, input.request, value=input.number))

    def _must_go_everywhere(self, client: Client, event: Event, input: i.Publish) -> bool:
        """Whether routing tables cannot be trusted with this event.

        That is so while its advertisement is spreading, if it was not advertised at all, and for events that
        hold sets of values, since covering and overlap are about points.
        """
        conforming = [
            advertisement
            for advertisement in client.advertisements.values()
            if advertisement.entry.type in (None, input.type)
            and is_true(advertisement.entry.expression, event)
        ]
        uses_advertisements = self.options.routing.uses_advertisements
        if not conforming and (client.advertisements or uses_advertisements):
            self.counters.nonconforming += 1
            if self.options.nonconforming == "refuse":
                raise ProtocolError(
                    f"the event conforms to no advertisement of {client.name}, of which there are "
                    f"{len(client.advertisements)}; advertise first what you publish"
                )
        spread = any(advertisement.spread for advertisement in conforming)
        return (uses_advertisements and not spread) or event.has_sets

    # --- durability --------------------------------------------------------------------------------

    def _persist(self, key: str, value: Any) -> None:
        self._changes[key] = value

    def _persist_client(self, client: Client) -> None:
        self._persist(f"client/{client.name}", [client.published, client.last])

    def _restore(self, stored: Mapping[str, Any]) -> None:
        self.forwarding.restore(stored, self.epoch)
        queued: list[tuple[str, int, Any]] = []
        for key, value in stored.items():
            kind, _, rest = key.partition("/")
            name, _, id = rest.partition("/")
            if kind == "client":
                client = self._client(name)
                client.published, client.last = value
            elif kind == "refused":
                self._client(name).refusals.restore(int(id), value)
            elif kind == "queue":
                queued.append((name, int(id), value))
            elif kind == "subscription":
                text, type, priority = value
                entry = Entry(f"{self.name}/{name}/{id}", tamis.parse(text), type)
                self._subscribe(self._client(name), id, entry, priority)
            elif kind == "advertisement":
                text, type = value
                entry = Entry(f"{self.name}/{name}/{id}", tamis.parse(text), type)
                self._advertise(self._client(name), id, entry, None)
        for name, number, record in sorted(queued, key=lambda item: item[:2]):
            self._client(name).waiting.append(from_record(name, number, record))
        self._shedding.waiting = len(queued)

    def _finish(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if self._changes:
            effects.append(Persist(self._changes))
            self._changes = {}
        effects += self._effects
        self._effects = []
        for neighbour in sorted(self._touched, key=self._place.__getitem__):
            link = self._links[neighbour]
            effects += [Send(neighbour, frame) for frame in link.take(now)]
            if link.deadline is not None and self._timers.get(neighbour) != link.deadline:
                self._timers[neighbour] = link.deadline
                effects.append(SetTimer(neighbour, link.deadline))
        self._touched.clear()
        return effects
