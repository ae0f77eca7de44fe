"""How subscriptions and advertisements spread, and how they are told again after a crash.

A broker keeps what came from each neighbour (`tables`) and decides for each neighbour what it should know
(`outgoing`): the subscriptions of all others that the routing algorithm wants there. Every change is told
at once, additions before removals.

After a restart a broker knows only its own clients. Each neighbour tells it everything again, and it tells
each neighbour what it learns, ending with `Synced` once it has heard that from all others. Until then the
neighbour keeps what it had been told before, so that no event is missed meanwhile.

An expression that cannot be read here, because a later release wrote it, counts as everything.
"""

from collections.abc import Callable, Iterable
from typing import Any

import tamis
from tamis._kernel import Event, Expression
from tamis.errors import TamisError
from tamis.pubsub.entry import Entry
from tamis.pubsub.generalise.overlap_index import OverlapIndex
from tamis.pubsub.generalise.pruning import PostPruner
from tamis.pubsub.outgoing import Change, Covering, Merging, Outgoing, PrePruner, Show, Stage, Summaries
from tamis_lab.brokers.counters import Counters
from tamis_lab.brokers.messages import Advertise, Deregister, Message, Register, Settled, Synced, Withdraw
from tamis_lab.brokers.options import Options
from tamis_lab.brokers.settling import Settling
from tamis_lab.brokers.tables import Advertisements, FromNeighbour, Subscriptions

SUBSCRIPTIONS, ADVERTISEMENTS = "subscriptions", "advertisements"
EVERYTHING = tamis.parse("TRUE")


class Spreading:
    """The routing tables of one broker, and what its neighbours know.

    >>> said = []
    >>> spreading = Spreading("b1/1", ["b2", "b3"], Options(), Counters(), lambda *told: said.append(told))
    >>> spreading.heard("b2", Register("b2/ann/s1", "x > 1", None, 1))
    >>> said
    [('b3', Register(id='b2/ann/s1', expression='x > 1', type=None, hops=2))]
    """

    def __init__(
        self,
        name: str,
        neighbours: Iterable[str],
        options: Options,
        counters: Counters,
        say: Callable[[str, Message], None],
        *,
        selectivities: Callable[[], Any] = lambda: None,
    ) -> None:
        """`name` is unique to this broker and this life of it; `say` tells a neighbour, if it listens."""
        self.neighbours = list(neighbours)
        self.read: Callable[[str], Expression] = tamis.parse
        """How expressions of neighbours are read."""
        self.settling = Settling(self.neighbours, say)
        self.pruner: PostPruner | None = None
        if options.post_pruning is not None:
            self.pruner = PostPruner(
                options.post_pruning.measure, options.post_pruning.execution, options.post_pruning.weights
            )
        self._routing = options.routing
        self._shortcut = options.shortcut
        self._counters = counters
        self._say = say
        self._subscriptions: dict[str, tuple[Entry, str | None]] = {}
        self._advertisements: dict[str, tuple[Entry, str | None]] = {}
        self.subscriptions_from = {
            neighbour: Subscriptions(options.algorithm) for neighbour in self.neighbours
        }
        self.advertisements_from = {
            neighbour: Advertisements(options.overlap, counters) for neighbour in self.neighbours
        }
        self.outgoing = {
            neighbour: Outgoing(_stages(name, neighbour, options, selectivities))
            for neighbour in self.neighbours
        }
        self.advertising = {
            neighbour: Outgoing([Covering()] if options.advertisement_covering else [])
            for neighbour in self.neighbours
        }
        self._overlapping = OverlapIndex(options.overlap) if options.routing.uses_advertisements else None
        """All subscriptions, for those that overlap a new advertisement."""
        self._because: dict[str, dict[str, str]] = {neighbour: {} for neighbour in self.neighbours}
        """Which advertisement of a neighbour made us forward a subscription there."""
        self._conversation = dict.fromkeys(self.neighbours, 0)
        self._heard_all: dict[str, set[str]] = {SUBSCRIPTIONS: set(), ADVERTISEMENTS: set()}
        self._told_all: dict[str, set[str]] = {SUBSCRIPTIONS: set(), ADVERTISEMENTS: set()}

    @property
    def subscriptions(self) -> list[Entry]:
        """All subscriptions known here, local ones included."""
        return [entry for entry, _ in self._subscriptions.values()]

    @property
    def local_subscriptions(self) -> list[Expression]:
        """The subscriptions of this broker's own clients."""
        return [entry.expression for entry, origin in self._subscriptions.values() if origin is None]

    # --- events ------------------------------------------------------------------------------------

    def wants(self, neighbour: str, event: Event, type: str | None) -> bool:
        """Whether an event must go to a neighbour: always, until the neighbour has told us everything."""
        if self._routing.floods_events or neighbour not in self._heard_all[SUBSCRIPTIONS]:
            return True
        return self.subscriptions_from[neighbour].wants(event, type, self._shortcut)

    # --- what neighbours say -----------------------------------------------------------------------

    def heard(self, neighbour: str, message: Message) -> None:
        """Take what a neighbour says about subscriptions and advertisements."""
        match message:
            case Register(id, text, type, hops):
                self.add_subscription(Entry(id, self.understood(text), type, hops), neighbour)
            case Deregister(id):
                self.remove_subscription(id, neighbour)
            case Advertise(id, text, type):
                self.add_advertisement(Entry(id, self.understood(text), type), neighbour)
            case Withdraw(id):
                self.remove_advertisement(id, neighbour)
            case Synced(what):
                self._heard_everything(neighbour, what)

    def understood(self, text: str) -> Expression:
        """What a neighbour's expression means here."""
        try:
            return self.read(text)
        except TamisError:
            return EVERYTHING

    def barrier(self, neighbour: str, number: int) -> None:
        """A neighbour asks to hear when all that it said has spread."""
        self.settling.when_settled(neighbour, lambda: self._say(neighbour, Settled(number)))

    def restarted(self, neighbour: str) -> None:
        """A new conversation with a neighbour begins: tell it everything."""
        self._conversation[neighbour] += 1
        for told in self._told_all.values():
            told.discard(neighbour)
        for entry in self.advertising[neighbour].shown.values():
            self._tell_advertisement(neighbour, entry)
        for entry in self.outgoing[neighbour].shown.values():
            self._tell_subscription(neighbour, entry)
        self._tell_everything_is_told()
        self.settling.restarted(neighbour)

    # --- subscriptions -----------------------------------------------------------------------------

    def add_subscription(self, entry: Entry, origin: str | None) -> None:
        """A subscription comes from a neighbour, or from a client (None); or it is replaced."""
        known = self._subscriptions.get(entry.id)
        if known is not None and known[1] != origin:
            self.remove_subscription(entry.id, known[1])
            known = None
        if origin is not None:
            if known is not None and known[0] == entry:
                self.subscriptions_from[origin].tell_again(entry.id, self._conversation[origin])
                return
            self.subscriptions_from[origin].put(entry, self._conversation[origin])
            if self.pruner is not None:
                self.pruner.put(origin, entry)
        elif known is not None and known[0] == entry:
            return
        self._subscriptions[entry.id] = (entry, origin)
        if self._overlapping is not None:
            self._overlapping.put(entry.id, entry.expression, entry.type)
        for neighbour in self.neighbours:
            if neighbour != origin:
                self._decide(neighbour, entry)

    def remove_subscription(self, id: str, origin: str | None) -> None:
        """A subscription goes; only where it came from can take it back."""
        known = self._subscriptions.get(id)
        if known is None or known[1] != origin:
            return
        del self._subscriptions[id]
        if self._overlapping is not None:
            self._overlapping.remove(id)
        if origin is not None:
            self.subscriptions_from[origin].remove(id)
            if self.pruner is not None:
                self.pruner.remove(origin, id)
        for neighbour in self.neighbours:
            self._because[neighbour].pop(id, None)
            self._tell_changes(neighbour, self.outgoing[neighbour].hide(id))

    def _decide(self, neighbour: str, entry: Entry) -> None:
        """Show a subscription to a neighbour, or hide it there, as the routing algorithm wants."""
        wanted = self._routing.sends_subscription(entry.type, neighbour)
        if not wanted and self._routing.uses_advertisements:
            advertisement = self.advertisements_from[neighbour].overlapping(entry)
            wanted = advertisement is not None
            if advertisement is not None:
                self._because[neighbour][entry.id] = advertisement
            else:
                self._because[neighbour].pop(entry.id, None)
        outgoing = self.outgoing[neighbour]
        self._tell_changes(neighbour, outgoing.show(entry) if wanted else outgoing.hide(entry.id))

    # --- advertisements ----------------------------------------------------------------------------

    def add_advertisement(self, entry: Entry, origin: str | None) -> None:
        """An advertisement comes from a neighbour, or from a client (None); or it is replaced."""
        known = self._advertisements.get(entry.id)
        if known is not None and known[1] != origin:
            self.remove_advertisement(entry.id, known[1])
            known = None
        if known is not None and known[0] == entry:
            if origin is not None:
                self.advertisements_from[origin].tell_again(entry.id, self._conversation[origin])
            return
        self._advertisements[entry.id] = (entry, origin)
        if origin is not None:
            table = self.advertisements_from[origin]
            table.put(entry, self._conversation[origin])
            self._reconsider(origin, entry.id)
            self._forward_overlapping(origin, entry)
        for neighbour in self.neighbours:
            if neighbour != origin:
                outgoing = self.advertising[neighbour]
                is_sent = self._routing.sends_advertisement(entry.type, neighbour)
                self._tell_advertisements(
                    neighbour, outgoing.show(entry) if is_sent else outgoing.hide(entry.id)
                )

    def remove_advertisement(self, id: str, origin: str | None) -> None:
        """An advertisement goes; subscriptions that went its way for no other reason are taken back."""
        known = self._advertisements.get(id)
        if known is None or known[1] != origin:
            return
        del self._advertisements[id]
        if origin is not None:
            self.advertisements_from[origin].remove(id)
            self._reconsider(origin, id)
        for neighbour in self.neighbours:
            self._tell_advertisements(neighbour, self.advertising[neighbour].hide(id))

    def _reconsider(self, neighbour: str, advertisement: str) -> None:
        """An advertisement has changed or gone: look again at what was forwarded because of it."""
        for id, because in list(self._because[neighbour].items()):
            if because == advertisement:
                self._decide(neighbour, self._subscriptions[id][0])

    def _forward_overlapping(self, neighbour: str, advertisement: Entry) -> None:
        """The function problem: all subscriptions that overlap a new advertisement go its way."""
        if self._overlapping is None:
            return
        self._counters.overlap_checks += 1
        for id in self._overlapping.overlapping(advertisement.expression, advertisement.type):
            entry, origin = self._subscriptions[id]
            if origin != neighbour and id not in self.outgoing[neighbour]:
                self._because[neighbour][id] = advertisement.id
                self._tell_changes(neighbour, self.outgoing[neighbour].show(entry))

    # --- telling -----------------------------------------------------------------------------------

    def _tell_changes(self, neighbour: str, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Show):
                self.settling.told(neighbour)
                self._tell_subscription(neighbour, change.entry)
            else:
                self._counters.subscriptions_sent += 1
                self._say(neighbour, Deregister(change.id))

    def _tell_subscription(self, neighbour: str, entry: Entry) -> None:
        self._counters.subscriptions_sent += 1
        self._say(neighbour, Register(entry.id, str(entry.expression), entry.type, entry.hops + 1))

    def _tell_advertisements(self, neighbour: str, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Show):
                self.settling.told(neighbour)
                self._tell_advertisement(neighbour, change.entry)
            else:
                self._counters.advertisements_sent += 1
                self._say(neighbour, Withdraw(change.id))

    def _tell_advertisement(self, neighbour: str, entry: Entry) -> None:
        self._counters.advertisements_sent += 1
        self._say(neighbour, Advertise(entry.id, str(entry.expression), entry.type))

    def _heard_everything(self, neighbour: str, what: str) -> None:
        table: FromNeighbour
        if what == SUBSCRIPTIONS:
            table, remove = self.subscriptions_from[neighbour], self.remove_subscription
        else:
            table, remove = self.advertisements_from[neighbour], self.remove_advertisement
        for id in table.stale(self._conversation[neighbour]):
            remove(id, neighbour)
        self._heard_all[what].add(neighbour)
        self._tell_everything_is_told()

    def _tell_everything_is_told(self) -> None:
        """Tell each neighbour that we told it everything, once all others have told us.

        For subscriptions, the neighbour's own advertisements are needed too: they decide what it hears.
        """
        for what in (ADVERTISEMENTS, SUBSCRIPTIONS):
            heard, told = self._heard_all[what], self._told_all[what]
            if len(heard) < len(self.neighbours) - 1:
                continue  # so it is during most of the beginning, with a thousand neighbours
            silent = set(self.neighbours) - heard
            for neighbour in self.neighbours:
                ready = silent <= {neighbour} and (
                    what == ADVERTISEMENTS or neighbour in self._heard_all[ADVERTISEMENTS]
                )
                if ready and self._conversation[neighbour] > 0 and neighbour not in told:
                    told.add(neighbour)
                    self._say(neighbour, Synced(what))


def _stages(broker: str, neighbour: str, options: Options, selectivities: Callable[[], Any]) -> list[Stage]:
    name = f"{broker}~{neighbour}"
    stages: list[Stage] = []
    if options.covering:
        stages.append(Covering(by_sets=options.subsumption))
    if options.merging != "off":
        stages.append(Merging(options.merging, name, options.merge_prunings))
    if options.summaries is not None:
        stages.append(Summaries(name, options.summaries))
    most = options.pre_pruning.most(neighbour) if options.pre_pruning is not None else None
    if options.pre_pruning is not None and most is not None:
        stages.append(PrePruner(most, options.pre_pruning.measure, selectivities))
    return stages
