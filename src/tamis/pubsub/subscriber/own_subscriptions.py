"""A client's own subscriptions: what it may write, how many it has, and what they want."""

import time
from typing import Any

import tamis
from tamis._kernel import Expression
from tamis.errors import ArgumentError, TamisError
from tamis.pubsub import keys
from tamis.pubsub.log.contract import STATE, Entry, Log, Record, append_each
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import Grant, Subscription

IDS_SECONDS = 43_200.0
"""After such a rest all subscriptions are read again: signs of removal are kept for a day."""
MOST_EXPRESSION_BYTES = 64 << 10


class OwnSubscriptions:
    """The subscriptions of one client, as far as it has read them."""

    def __init__(self, log: Log, name: str) -> None:
        """Read nothing yet."""
        self._log = log
        self._name = name
        self._expressions: list[Expression] | None = None
        self._changes = 0
        """How often our subscriptions were changed: what was read of them before may be out of date."""
        self._ids: set[str] = set()
        """The keys of our subscriptions up to a number of the state, where a grant limits how many."""
        self._ids_until = self._ids_generation = 0
        self._ids_at = 0.0

    async def write(self, entries: list[Entry]) -> int:
        """Write or take back some; returns the number of the last."""
        try:
            return await append_each(self._log, STATE, entries)
        finally:  # some may be there, whatever happened
            self.forget_expressions()

    async def texts(self) -> dict[str, str]:
        """The subscriptions that the log has, by id."""
        found: dict[str, str] = {}
        for record in await self._records():
            try:
                found[name_of(record.detail.partition(".")[2])] = Subscription.read(record.body).expression
            except ValueError:
                continue
        return found

    async def _records(self) -> list[Record]:
        found: dict[str, Record] = {}
        after, mine = 0, token(self._name)
        while records := await self._log.read(
            STATE, topic=keys.SUBSCRIPTION, name=mine, after=after, most=5_000, to_end=True
        ):
            after = records[-1].seq
            for record in records:
                found.pop(record.detail, None)  # it was changed between two reads
                if record.body:
                    found[record.detail] = record
        return list(found.values())

    async def check_count(self, most: int, more: set[str]) -> None:
        """Refuse more subscriptions, by key, than a grant allows together with those that are there."""
        there = await self._own_ids()
        wanted = len(there) + len(more - there)
        if wanted > most:
            raise ArgumentError(f"{self._name} may have {most:,} subscriptions, these would be {wanted:,}")

    async def _own_ids(self) -> set[str]:
        """The keys of our subscriptions: all are read once, and then what has changed."""
        now = time.monotonic()
        is_older = await self._log.end(STATE) < self._ids_until
        if is_older or self._log.generation != self._ids_generation or now - self._ids_at > IDS_SECONDS:
            self._ids, self._ids_until, self._ids_generation = set(), 0, self._log.generation
        mine = token(self._name)
        while records := await self._log.read(
            STATE, topic=keys.SUBSCRIPTION, name=mine, after=self._ids_until, most=5_000, to_end=True
        ):
            for record in records:
                (self._ids.add if record.body else self._ids.discard)(record.detail)
            self._ids_until = records[-1].seq
        self._ids_at = now
        return self._ids

    def checked(self, given: Any, grant: Grant | None) -> Expression:
        """An expression that may be written."""
        expression = tamis.parse(given) if isinstance(given, str) else tamis.parse(str(given))
        if len(str(expression).encode()) > MOST_EXPRESSION_BYTES:
            raise ArgumentError(f"an expression has at most {MOST_EXPRESSION_BYTES:,} bytes")
        if grant is not None and grant.attributes is not None:
            hidden = sorted(set(expression.attributes) - set(grant.attributes))
            if hidden:
                raise ArgumentError(
                    f"{self._name} may not name {', '.join(hidden)}, only {', '.join(grant.attributes)}"
                )
        return expression

    async def expressions(self) -> list[Expression]:
        """What this subscriber wants, to decide about events where a router could not."""
        if self._expressions is not None:
            return self._expressions
        changes = self._changes
        learnt = [_parsed_or_everything(text) for text in (await self.texts()).values()]
        if changes == self._changes:
            self._expressions = learnt
        return learnt

    def forget_expressions(self) -> None:
        """They may have changed."""
        self._expressions = None
        self._changes += 1


def _parsed_or_everything(text: str) -> Expression:
    """An expression; one of a later release that cannot be parsed here wants everything."""
    try:
        return tamis.parse(text)
    except TamisError:
        return tamis.parse("TRUE")


def wants(expressions: list[Expression], body: bytes) -> bool:
    """Whether an event, or some point of an interval event, satisfies any."""
    return any(expression.evaluate(body) in (True, "either") for expression in expressions)
