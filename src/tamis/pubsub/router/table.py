"""What a router knows of its site: an index of all subscriptions, and the rest of the stream of state.

It is made from a snapshot, if there is one, and the changes since, and catches up before every batch: an
event that was published after a subscription was acknowledged is matched with it.

A subscription that cannot be read or parsed here counts as wanting everything. Its deliveries are marked, and
the subscriber's own client decides: it understood the expression when it subscribed.

A site's settings are written first and never removed. Where they are missing, somebody has purged the stream:
nothing is routed by what is left of it, and events wait until it is restored.
"""

import asyncio
import bisect
import json
import logging
import os
import time
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import tamis
from tamis._kernel import Expression
from tamis.errors import TamisError
from tamis.pubsub import keys
from tamis.pubsub.log.contract import STATE, STATE_IS_GONE, Log, Record, StreamLostError, mark
from tamis.pubsub.names import name_of, token
from tamis.pubsub.records import (
    DEFAULT_PRIORITY,
    Grant,
    QueueLimits,
    RecordError,
    Subscription,
    plain_subscription,
)
from tamis.pubsub.router.latest import Latest
from tamis.pubsub.router.quotas import Quotas, Refused, client_of
from tamis.pubsub.sites.interest import InterestEntry

logger = logging.getLogger("tamis.router")

READ_AT_ONCE = 20_000
ADDED_AT_ONCE = 250_000
LAG_SECONDS = 0.01
LOOKS = 3
"""So often the last record must be missing before it counts as removed."""
MARKS = 32
RECENT_EVENTS = 512
MOST_REFUSED = 10_000
ADMITTED_AT_ONCE = 100
"""Refused subscriptions whose texts are fetched together: each may be as large as the log allows."""
SNAPSHOT_VERSION = 3
SNAPSHOT_SECONDS = 43_200
"""An older snapshot is not used: signs of removal are kept for a day."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a match is: a subscriber, with what its subscription says."""

    name: str
    """As a part of a key."""
    priority: int
    is_unsure: bool

    @property
    def text(self) -> str:
        """As the index knows it."""
        return f"{self.name}|{self.priority}|{int(self.is_unsure)}"


@lru_cache(maxsize=100_000)
def owner_of(text: str) -> Owner:
    """The owner that the index names.

    >>> owner_of(Owner("ann", 4, False).text)
    Owner(name='ann', priority=4, is_unsure=False)
    """
    name, priority, unsure = text.split("|")
    return Owner(name, int(priority), unsure == "1")


class Table:
    """The state of a site as far as it has been read.

    >>> import tempfile
    >>> from tamis.pubsub.log import Entry, open_log
    >>> async def example(folder):
    ...     log = await open_log(f"sqlite:{folder}/site.db")
    ...     wanted = Subscription("price < 15").body()
    ...     await log.append("state", [Entry(*keys.subscription_key("ann", "cheap"), wanted)])
    ...     table = Table(log)
    ...     await table.catch_up()
    ...     await log.close()
    ...     return table.index.owners({"price": 12})
    >>> asyncio.run(example(tempfile.mkdtemp()))
    ['ann|4|0']
    """

    def __init__(self, log: Log, snapshot: Path | None = None, site: str | None = None) -> None:
        """`snapshot` is a file of this machine, for a faster start; it is never needed."""
        self._log = log
        self._site = None if site is None else token(site)
        self._lock = asyncio.Lock()
        self._snapshot = snapshot
        self.rollbacks = 0
        """How often the log turned out to be older than what was read of it, or to have lost some of it."""
        self.is_lost = False
        """Whether somebody has purged the stream of state: then nothing may be routed."""
        self.unreadable = 0
        """How many records could not be read."""
        self.recent: deque[bytes] = deque(maxlen=RECENT_EVENTS)
        """Some of the events that were routed lately."""
        self._clear()
        self._generation = 0
        self._identity = ""

    def _clear(self) -> None:
        self.index = tamis.Index()
        self.position = 0
        self.time = 0
        """The latest time that the log has shown, in UTC microseconds."""
        self.queues: dict[str, QueueLimits] = {}
        self.grants: dict[str, Grant] = {}
        self.others = Latest()
        """All other records, the last of each key; those that are gone are left out."""
        self.expiries: list[int] = []
        self.refused: dict[str, str] = {}
        """Some of the subscriptions that name what a grant does not allow, with the reason."""
        self.quotas = Quotas()
        self.sites: set[str] = set()
        """The sites that have told anything of themselves."""
        self.last_subscription = self.last_advertisement = 0
        """The last record of each that was read."""
        self._waiting: dict[str, Record] = {}
        """Subscriptions that were read and are added together: many at once cost far less each."""
        self._removed: set[str] = set()
        self._marks: dict[int, str] = {}
        self._saved = 0
        self._is_first_reading = True
        """While all is read for the first time: what is read is hardly ever in the index already."""
        self._was_recreated = False
        """Whether the settings were written twice: what was read before the second time is gone."""

    async def catch_up(self) -> bool:
        """Read all that the log has; returns whether anything is new."""
        async with self._lock:
            return await self._catch_up()

    async def check(self) -> None:
        """Notice that somebody has purged the stream; `StreamLostError` until it is restored."""
        if keys.SETTINGS not in self.others:
            return
        found = await self._log.last(STATE, [keys.SETTINGS])
        if keys.SETTINGS not in found and self._identity == self._log.identity:  # not another log altogether
            self._lose()

    def _lose(self) -> NoReturn:
        if not self.is_lost:
            self.is_lost = True
            self.rollbacks += 1
            logger.error("the state of the site is gone", extra={"stream": STATE, "read": self.position})
        raise StreamLostError(STATE_IS_GONE)

    async def _catch_up(self) -> bool:
        try:
            end = await self._log.end(STATE)
        except StreamLostError:
            self._lose()
        if self.is_lost:
            if keys.SETTINGS not in await self._log.last(STATE, [keys.SETTINGS]):
                self._lose()
            logger.warning("the state of the site is there again", extra={"stream": STATE, "end": end})
            self.is_lost = False
            if end < self.position or not await self._is_same_log():
                self._clear()
        if self._generation != self._log.generation or end < self.position:
            await self._start_over(end)
        before, looks = self.position, 0
        try:
            while self.position < end:
                records = await self._log.read(STATE, after=self.position, most=READ_AT_ONCE)
                if records:
                    self._apply(records)
                    continue
                await asyncio.sleep(LAG_SECONDS)  # a replica that lags behind, or another log
                now = await self._log.end(STATE)
                if now < end or self._generation != self._log.generation:
                    return await self._catch_up()
                looks += 1
                if now == end and looks >= LOOKS and end not in await self._log.fetch(STATE, [end]):
                    await self._pass_over_what_was_removed(end)
            self._add_waiting()
            while (is_admitted := await self._admit_refused()) or self.quotas.forgotten():
                if not is_admitted and not await self._remember_refused():
                    return await self._catch_up()
        finally:
            self._add_waiting()  # whatever was read is in the index when this returns
            self._is_first_reading = self._is_first_reading and self.position < end
        if self._was_recreated:
            self.rollbacks += 1
            logger.error("the state of the site was recreated", extra={"stream": STATE})
            self._clear()
            return await self._catch_up()
        return self.position > before

    async def _remember_refused(self) -> bool:
        """Read again what clients with room wrote beyond their number; False if the log has changed."""
        forgotten = self.quotas.forgotten()
        found = {name: Refused() for name in forgotten}
        after, end, looks = min(forgotten.values()) - 1, 0, 0
        while after < self.position and any(each.more_from is None for each in found.values()):
            records = await self._log.read(STATE, after=after, most=READ_AT_ONCE)
            for record in records:
                name = client_of(record.detail) if record.topic == keys.SUBSCRIPTION else ""
                if name not in found or not forgotten[name] <= record.seq <= self.position:
                    continue
                if record.body and keys.is_key(*record[1:3]):
                    found[name].add(record.detail, record.seq)
            if records:
                after = records[-1].seq
                continue
            await asyncio.sleep(LAG_SECONDS)  # as in _catch_up
            before, end = end, await self._log.end(STATE)
            if end < self.position or self._generation != self._log.generation:
                return False
            looks = looks + 1 if end == before else 0
            if looks >= LOOKS and end not in await self._log.fetch(STATE, [end]):
                break
        self.quotas.remember(found)
        return True

    async def _pass_over_what_was_removed(self, end: int) -> None:
        """The last record always stays, unless somebody else removes it: then nothing will come."""
        if keys.SETTINGS not in await self._log.last(STATE, [keys.SETTINGS]):
            self._lose()
        self.rollbacks += 1
        logger.error("others have removed state", extra={"stream": STATE, "read": self.position, "end": end})
        self.position = end

    def take_removed(self) -> set[str]:
        """The topics of queues that were removed or made since the last call."""
        removed, self._removed = self._removed, set()
        return removed

    async def _start_over(self, end: int) -> None:
        generation = self._log.generation
        if self.position and (end < self.position or not await self._is_same_log()):
            await self.check()
            self.rollbacks += 1
            logger.error(
                "the log was rolled back", extra={"stream": STATE, "read": self.position, "end": end}
            )
        elif self.position:
            self._generation = generation
            return
        self._clear()
        self._generation = generation
        self._identity = self._log.identity
        if self._snapshot is not None and self._snapshot.exists():
            await self._load(self._snapshot)

    async def _is_same_log(self) -> bool:
        """Whether something that was read is still there as it was."""
        found = await self._log.fetch(STATE, self._marks)
        return any(mark(record) == self._marks[number] for number, record in found.items())

    # --- changes -----------------------------------------------------------------------------------

    def _apply(self, records: list[Record]) -> None:
        added = self._waiting
        is_regranted = False
        subscription, is_plain = keys.SUBSCRIPTION, keys.PLAIN_SUBSCRIPTION.fullmatch
        for record in records:
            if record[1] == subscription and record[4] and is_plain(record[2]):  # nearly all, and millions
                added[record[2]] = record
                self.last_subscription = record[0]
            elif not keys.is_key(record.topic, record.detail):
                self._complain(record, RecordError("no name makes such a key: it is ignored"))
            elif record.topic == keys.SUBSCRIPTION:
                self.last_subscription = record.seq
                added.pop(record.detail, None)
                if not record.body:
                    self._remove(record.detail)
                else:
                    added[record.detail] = record
            elif record.topic == keys.INTEREST:
                self.others.put(record)
                if record.detail.partition(".")[0] != self._site:
                    added[f"@{record.detail}"] = record
            elif record.topic == keys.ADVERTISEMENT:
                self.last_advertisement = record.seq
            elif record.topic == keys.GRANT:
                is_regranted |= self._grant(record)
            elif record.topic == keys.QUEUE:
                self._queue(record)
            elif record.body:
                key = (record.topic, record.detail)
                self._was_recreated |= key == keys.SETTINGS and self.others.get(key, record).seq != record.seq
                self.others.put(record)
                if record.topic == keys.LINKS:
                    self.sites.add(name_of(record.detail))
            else:
                self.others.remove((record.topic, record.detail))
                if record.topic == keys.LINKS:
                    self.sites.discard(name_of(record.detail))
        if len(added) >= ADDED_AT_ONCE:
            self._add_waiting()
        self.position = records[-1].seq
        self.time = max(self.time, records[-1].time)
        for record in records[-MARKS:]:
            self._marks[record.seq] = mark(record)
        while len(self._marks) > MARKS:
            del self._marks[next(iter(self._marks))]
        if is_regranted and (len(self.index) or self.refused or self.quotas.refuses_any):
            self._is_first_reading = False
            self._waiting.clear()
            self.quotas.restart()
            self.position = 0  # what a grant allows is decided for every subscription again

    def _add_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if self.quotas.limits:  # one that was written again has its old place among those that were read
            waiting = dict(sorted(waiting.items(), key=lambda item: item[1].seq))
        self._add(waiting)

    async def _admit_refused(self) -> bool:
        """Those that a number has refused, where there is room now; whether there were any.

        One that is gone meanwhile is passed over: its removal, or its next version, is read later.
        """
        following = self.quotas.next_refused(ADMITTED_AT_ONCE)
        found = await self._log.fetch(STATE, following.values()) if following else {}
        admitted: dict[str, Record] = {}
        for id, number in following.items():
            record = found.get(number)
            is_there = record is not None and record[1:3] == (keys.SUBSCRIPTION, id) and record.body
            if self.quotas.take(id, number) and record is not None and is_there:
                admitted[id] = record
        self._add(admitted, are_next=True)
        return bool(following)

    def _queue(self, record: Record) -> None:
        before = self.queues.pop(record.detail, None)
        if record.body:
            try:
                self.queues[record.detail] = QueueLimits.read(record.body)
            except RecordError as error:
                self._complain(record, error)
                self.queues[record.detail] = QueueLimits()
        now = self.queues.get(record.detail)
        if before is None or now is None or before.life != now.life:
            # Also when it was made again: of its removal nothing is left, if nobody has read it meanwhile.
            self._removed.add(f"q-{record.detail}")

    def _grant(self, record: Record) -> bool:
        before = self.grants.pop(record.detail, None)
        if record.body:
            try:
                grant = Grant.read(record.body)
                if grant.filter is not None:
                    tamis.parse(grant.filter)
            except (RecordError, TamisError) as error:
                self._complain(record, error)
                grant = Grant(filter="FALSE")  # who may have what is not known gets nothing
            self.grants[record.detail] = grant
        now = self.grants.get(record.detail)
        self.quotas.limit(record.detail, None if now is None else now.subscriptions)
        return before != self.grants.get(record.detail)

    def _add(self, added: dict[str, Record], are_next: bool = False) -> None:
        """Put subscriptions into the index. `are_next`: it is their turn, as others have made room."""
        ids: list[str] = []
        texts: list[str] = []
        owners: list[str] = []
        expiring: dict[int, int] = {}
        """By row."""
        has_grants, subscription, is_first = bool(self.grants), keys.SUBSCRIPTION, self._is_first_reading
        for id, record in added.items():
            if not is_first:
                self._remove(id)
            if record[1] == subscription and not has_grants:  # nearly all, and there are millions
                plain = plain_subscription(record[4])
                if plain is not None:
                    text, priority = plain
                    ids.append(id)
                    texts.append(text)
                    owners.append(f"{id[: id.index('.')]}|{priority}|0")
                    continue
            if is_first:
                self._remove(id)
            if not are_next and not self.quotas.has_room(id):
                self.quotas.refuse(id, record.seq)
                continue
            prepared = self._prepare(id, record)
            if prepared is None:
                continue
            self.quotas.count(id)
            text, owner, expires = prepared
            if expires is not None:
                expiring[len(ids)] = expires
            ids.append(id)
            texts.append(text)
            owners.append(owner.text)
        if not ids:
            return
        expiries = [expiring.get(row) for row in range(len(ids))] if expiring else None
        failed = self.index.add_many(ids, texts, owners=owners, expires=expiries, on_error="collect")
        known = {ids[row.row] for row in failed if is_first and ids[row.row] in self.index}
        for row_number, expires in expiring.items():
            if ids[row_number] not in known:
                bisect.insort(self.expiries, expires)
        for row in failed:
            if ids[row.row] in known:
                continue
            self._complain(added[ids[row.row]], row.error)
            owner = Owner(owner_of(owners[row.row]).name, owner_of(owners[row.row]).priority, is_unsure=True)
            self.index.upsert(
                ids[row.row],
                self._allowed(owner.name, None) or "FALSE",
                owner=owner.text,
                expires=expiring.get(row.row),
            )
        if known:  # they were changed between two reads
            self._is_first_reading = False
            self._add({id: added[id] for id in known})
            self._is_first_reading = True

    def _prepare(self, id: str, record: Record) -> tuple[str, Owner, int | None] | None:
        if record.topic == keys.INTEREST:
            return _interest(record)
        name = id.partition(".")[0]
        try:
            wanted = Subscription.read(record.body)
        except RecordError as error:
            self._complain(record, error)
            text = self._allowed(name, None)
            return None if text is None else (text, Owner(name, DEFAULT_PRIORITY, is_unsure=True), None)
        owner = Owner(name, wanted.priority, is_unsure=False)
        if name not in self.grants:
            return wanted.expression, owner, wanted.expires
        try:
            expression: Expression | None = tamis.parse(wanted.expression)
        except TamisError as error:
            self._complain(record, error)
            expression, owner = None, Owner(name, wanted.priority, is_unsure=True)
        text = self._allowed(name, expression)
        if text is None and len(self.refused) < MOST_REFUSED:
            self.refused[id] = f"it names attributes that {name} may not see"
        return None if text is None else (text, owner, wanted.expires)

    def _allowed(self, name: str, expression: Expression | None) -> str | None:
        """What is matched for a client: what it wants (None: everything) within what it is granted."""
        grant = self.grants.get(name)
        if grant is None:
            return "TRUE" if expression is None else str(expression)
        seen = None if expression is None or grant.attributes is None else set(expression.attributes)
        if seen is not None and not seen <= set(grant.attributes or ()):
            return None
        allowed = None if grant.filter is None else tamis.parse(grant.filter)
        if expression is None or allowed is None:
            only = allowed if expression is None else expression
            return "TRUE" if only is None else str(only)
        return str(expression & allowed)

    def _remove(self, id: str) -> None:
        self.refused.pop(id, None)
        self.quotas.release(id)
        if id in self.index:
            expires = self.index[id].expires if self.expires_any else None
            if expires is not None:
                self.expiries.remove(_micros(expires))
            self.index.remove(id)

    @property
    def expires_any(self) -> bool:
        """Whether any subscription expires."""
        return bool(self.expiries)

    def _complain(self, record: Record, error: Exception) -> None:
        self.unreadable += 1
        logger.warning(
            "unreadable",
            extra={"key": f"{record.topic}.{record.detail}", "seq": record.seq, "error": str(error)},
        )

    # --- snapshots ---------------------------------------------------------------------------------

    def save(self) -> bool:
        """Write a snapshot, if there is a place for it and anything is new; returns whether it did."""
        if self._snapshot is None or self.position == self._saved or self._was_recreated:
            return False
        self._add_waiting()  # somebody may be reading just now: what was read is in the snapshot
        about = {
            "version": SNAPSHOT_VERSION,
            "tamis": tamis.__version__,
            "identity": self._log.identity,
            "position": self.position,
            "time": time.time(),
            "marks": {str(number): text for number, text in self._marks.items()},
            "queues": {name: limits.body().decode() for name, limits in self.queues.items()},
            "grants": {name: grant.body().decode() for name, grant in self.grants.items()},
            "others": [[*key, r.seq, r.time, r.body.decode("latin-1")] for key, r in self.others.items()],
            "expiries": self.expiries,
            "refused": self.refused,
            "quotas": self.quotas.to_json(),
        }
        self._snapshot.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._snapshot.with_suffix(".new")
        self.index.save(temporary)
        _hide(temporary)
        os.replace(temporary, self._snapshot)
        temporary.touch(0o660)
        temporary.write_text(json.dumps(about), encoding="utf-8")
        os.replace(temporary, self._about_file(self._snapshot))
        self._saved = self.position
        return True

    @staticmethod
    def _about_file(snapshot: Path) -> Path:
        return snapshot.with_suffix(".json")

    async def _load(self, snapshot: Path) -> None:
        """Take a snapshot, unless it is of another log, of a rolled-back one, old or damaged."""
        try:
            about: dict[str, Any] = json.loads(self._about_file(snapshot).read_text(encoding="utf-8"))
            if (
                about["version"] != SNAPSHOT_VERSION
                or about["tamis"] != tamis.__version__
                or about["identity"] != self._log.identity
                or not 0 <= time.time() - about["time"] <= SNAPSHOT_SECONDS
            ):
                return
            self._marks = {int(number): text for number, text in about["marks"].items()}
            if await self._log.end(STATE) < about["position"] or not await self._is_same_log():
                self._clear()
                return
            self.index = tamis.Index.open(snapshot)
            self.queues = {name: QueueLimits.read(text.encode()) for name, text in about["queues"].items()}
            self.grants = {name: Grant.read(text.encode()) for name, text in about["grants"].items()}
            for topic, detail, seq, at, text in about["others"]:
                self.others.put(Record(seq, topic, detail, at, text.encode("latin-1")))
            self.sites = {name_of(detail) for detail in self.others.of(keys.LINKS)}
            self.expiries = about["expiries"]
            self.refused = about["refused"]
            limits = [(name, grant.subscriptions) for name, grant in self.grants.items()]
            self.quotas = Quotas.from_json(limits, about["quotas"])
            self.position = self._saved = about["position"]
            self._is_first_reading = False
        except (OSError, ValueError, KeyError, TypeError, AttributeError, TamisError) as error:
            logger.warning("snapshot not used", extra={"file": str(snapshot), "error": str(error)})
            self._clear()


def _interest(record: Record) -> tuple[str, Owner, int | None] | None:
    site = record.detail.partition(".")[0]
    entry = InterestEntry.read_or_everything(record.body)
    return None if entry.expression is None else (entry.expression, Owner(f"=40{site}", 0, False), None)


def _hide(path: Path) -> None:
    """What clients want, and what they are granted, is not for every user of this machine."""
    os.chmod(path, os.stat(path).st_mode & 0o7770)


def _micros(moment: Any) -> int:
    return round(float(moment.timestamp()) * 1_000_000)
