"""What must hold in every network of brokers, whatever happens: checked by the simulator after every step."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.pacing import last_number


class InvariantError(AssertionError):
    """A broker is in a state that must not be; the fault is in the broker."""


def check_broker(broker: Broker, disk: Mapping[str, Any]) -> None:
    """One broker, after it has dealt with an input: what it would lose in a crash now it need not keep."""
    kept: dict[str, set[str]] = {}
    for key in disk:
        kind, _, rest = key.partition("/")
        kept.setdefault(kind, set()).add(rest)
    _same(broker, "subscriptions", kept.get("subscription", set()), _ids(broker, "subscriptions"))
    _same(broker, "advertisements", kept.get("advertisement", set()), _ids(broker, "advertisements"))
    waiting = {
        f"{neighbour}/{number}"
        for neighbour, events in broker.forwarding.waiting.items()
        for number in events
    }
    _same(broker, "events for neighbours", kept.get("out", set()), waiting)
    queued = {f"{client.name}/{note.number}" for client in broker.clients.values() for note in client.waiting}
    _same(broker, "notifications", kept.get("queue", set()), queued)
    for client in broker.clients.values():
        numbers = [(note.number, last_number(note)) for note in client.waiting]
        for (_, last), (following, _) in pairwise(numbers):
            if following != last + 1:
                raise InvariantError(
                    f"{broker.name}: notifications of {client.name} are not in a row: {numbers}"
                )
        most = broker.options.limits.client_notifications
        if len(client.waiting) > 2 * most + 2:
            raise InvariantError(f"{broker.name}: {len(client.waiting)} notifications wait for {client.name}")


def check_quiet(brokers: Mapping[str, Broker]) -> None:
    """All brokers, when nothing is under way: each knows what its neighbours mean it to know."""
    for name, broker in brokers.items():
        for neighbour in broker.neighbours:
            told = broker.spreading.outgoing[neighbour].shown
            understood = brokers[neighbour].spreading.understood
            knows = brokers[neighbour].spreading.subscriptions_from[name]
            if {id: understood(str(entry.expression)) for id, entry in told.items()} != {
                id: entry.expression for id, entry in knows.entries.items()
            }:
                raise InvariantError(
                    f"{neighbour} knows {sorted(knows.entries)} of {name}, which told {sorted(told)}"
                )
            advertised = set(broker.spreading.advertising[neighbour].shown)
            heard = set(brokers[neighbour].spreading.advertisements_from[name].entries)
            if advertised != heard:
                raise InvariantError(f"{neighbour} heard {sorted(heard)} of {name}, which told {advertised}")
            for id, entry in knows.entries.items():
                if not knows.matcher[id].covers(entry.expression, intervals=True):
                    raise InvariantError(f"{neighbour} matches {knows.matcher[id]} for {entry.expression}")


def _ids(broker: Broker, kind: str) -> set[str]:
    return {f"{client.name}/{id}" for client in broker.clients.values() for id in getattr(client, kind)}


def _same(broker: Broker, what: str, stored: set[str], held: set[str]) -> None:
    if stored != held:
        raise InvariantError(f"{broker.name}: {what} stored and held differ: {sorted(stored ^ held)}")
