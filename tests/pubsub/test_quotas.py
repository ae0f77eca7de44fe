"""Which subscriptions count where a grant limits their number: all routers of a site say the same.

Faults: one that was refused stays refused on a router that was running when room was made; a newer one takes
the room first; one that was written again keeps its old place; a snapshot forgets who waits; a change of the
grant, or where a read ends, changes the answer; what the grant refuses for its attributes takes a place; a
client that writes without end fills the memory of routers, or makes them read everything again and again; a
snapshot that is written while a router reads lacks what was just read.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from seeds import few
from tamis.errors import ArgumentError
from tamis.pubsub import Grant, connect, keys
from tamis.pubsub.log import STATE, Entry
from tamis.pubsub.records import Subscription
from tamis.pubsub.router import quotas
from tamis.pubsub.router import table as tables
from tamis.pubsub.router.table import Table
from tamis.pubsub.subscriber import Subscriber

CLIENTS = ("ann", "eve", "bob")
TEXTS = ("n = 1", "n > 7 AND n < 20", "secret = 1", "n FROBS 2")


def counted(records: list[Any]) -> set[str]:
    """The definition: of what the stream holds, in its order."""
    grants = {r.detail: Grant.read(r.body) for r in records if r.topic == keys.GRANT and r.body}
    found: dict[str, list[str]] = {}
    for record in records:
        if record.topic == keys.SUBSCRIPTION and record.body:
            name = record.detail.partition(".")[0]
            grant = grants.get(name, Grant())
            if grant.attributes is not None and "secret" in Subscription.read(record.body).expression:
                continue
            ids = found.setdefault(name, [])
            if grant.subscriptions is None or len(ids) < grant.subscriptions:
                ids.append(record.detail)
    return {id for ids in found.values() for id in ids}


def one_change(chance: random.Random) -> Entry:
    name = chance.choice(CLIENTS)
    kind = chance.random()
    if kind < 0.12:
        most = chance.choice([None, 0, 1, 2, 3])
        grant = Grant(attributes=chance.choice([None, ("n",)]), subscriptions=most)
        return Entry(keys.GRANT, name, b"" if chance.random() < 0.1 else grant.body())
    key = keys.subscription_key(name, chance.choice("abcdef"))
    if kind < 0.4:
        return Entry(*key, b"")
    return Entry(*key, Subscription(chance.choice(TEXTS)).body())


@pytest.mark.parametrize("seed", few(range(24)))
def test_all_routers_of_a_site_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(tables, "ADDED_AT_ONCE", chance.choice([1, 3, 250_000]))
    monkeypatch.setattr(tables, "READ_AT_ONCE", chance.choice([1, 2, 5, 20_000]))
    monkeypatch.setattr(quotas, "MOST_BYTES", chance.choice([1, 800, 1 << 20]))

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            snapshot = tmp_path / "snapshot.tamis"
            running, saving = Table(site.log), Table(site.log, snapshot)
            for step in range(25):
                await site.log.append(STATE, [one_change(chance) for _ in range(chance.choice([1, 1, 2, 6]))])
                expected = sorted(counted(await site.log.read(STATE)))
                for which in (running, Table(site.log, snapshot), Table(site.log)):
                    await which.catch_up()
                    assert sorted(which.index) == expected, (seed, step)
                if chance.random() < 0.2:
                    await saving.catch_up()
                    assert saving.save() or saving.position == saving._saved

    run(main)


def test_a_client_cannot_fill_memory_with_what_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor make a router read everything whenever it takes one back."""
    monkeypatch.setattr(quotas, "MOST_BYTES", 20_000)

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            await site.log.append(
                STATE, [Entry(keys.GRANT, "eve", Grant(attributes=("n",), subscriptions=2).body())]
            )
            allowed, other = Subscription("n = 1").body(), Subscription("secret = 1").body()

            def entry(number: int, body: bytes) -> Entry:
                return Entry(*keys.subscription_key("eve", f"s{number}"), body)

            for start in range(0, 2_000, 500):
                bodies = [other if 100 < n < 1_500 else allowed for n in range(start, start + 500)]
                await site.log.append(STATE, [entry(start + n, body) for n, body in enumerate(bodies)])
            log = Counting(site.log)
            table = Table(log)  # type: ignore[arg-type]
            await table.catch_up()
            assert sorted(table.index) == ["eve.s0", "eve.s1"]
            kept = len(table.quotas.refused_ids())
            assert 10 < kept < 100
            reads = log.reads
            for n in range(300):
                await site.log.append(STATE, [entry(n, b"")])
                await table.catch_up()
                following = [i for i in range(n + 1, 2_000) if not 100 < i < 1_500][:2]
                assert sorted(table.index) == sorted(f"eve.s{i}" for i in following), n
                assert len(table.quotas.refused_ids()) <= kept
            extra = log.reads - reads - 300
            assert extra <= 1 + 2_000 // kept, "once for as many as are remembered"

    run(main)


def test_large_subscriptions_that_do_not_count_are_remembered_as_well_as_small_ones(tmp_path: Path) -> None:
    """By key and number: with their texts, each removal read the stream again, and complained again."""

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            large = Subscription(f"n = 1 OR s = '{'x' * 600_000}'").body()
            wrong = b"no subscription " + b"x" * 600_000
            bodies = [large if n % 2 else wrong for n in range(10)]
            await site.log.append(STATE, [Entry(keys.GRANT, "eve", Grant(subscriptions=1).body())])
            for n, body in enumerate(bodies):
                await site.log.append(STATE, [Entry(*keys.subscription_key("eve", str(n)), body)])
            log = Counting(site.log)
            table = Table(log)  # type: ignore[arg-type]
            await table.catch_up()
            reads = log.reads
            for n in range(9):
                assert list(table.index) == [f"eve.{n}"]
                await site.log.append(STATE, [Entry(*keys.subscription_key("eve", str(n)), b"")])
                await table.catch_up()
            assert log.reads - reads == 9, "only what is new"
            assert table.unreadable == 5
            assert len(json.dumps(table.quotas.to_json())) < 1_000

    run(main)


class Counting:
    """A log that counts how often it is read."""

    def __init__(self, log: Any) -> None:
        self._log, self.reads = log, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, *what: Any, **how: Any) -> Any:
        self.reads += 1
        return await self._log.read(*what, **how)


def test_a_snapshot_has_all_that_was_read_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another task writes it than the one that reads: between two reads, some were read and not added."""
    monkeypatch.setattr(tables, "READ_AT_ONCE", 3)

    class Saving(Counting):
        async def read(self, *what: Any, **how: Any) -> Any:
            table.save()
            return await super().read(*what, **how)

    async def main() -> None:
        nonlocal table
        async with connect(f"sqlite:{tmp_path}/site.db", partitions=1) as site:
            for n in range(10):
                body = Subscription("n = 1").body()
                await site.log.append(STATE, [Entry(*keys.subscription_key("ann", f"s{n}"), body)])
            snapshot = tmp_path / "snapshot.tamis"
            table = Table(Saving(site.log), snapshot)  # type: ignore[arg-type]
            await table.catch_up()
            again = Table(site.log, snapshot)
            await again.catch_up()
            assert sorted(again.index) == [f"ann.s{n}" for n in range(10)]

    table: Table
    run(main)


def test_a_client_counts_its_own_subscriptions_alone(log_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It read those of all clients, each time that it subscribed."""

    async def main() -> None:
        async with connect(log_url, partitions=1) as site:
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", Grant(subscriptions=4).body())])
            others = {f"s{n}": f"n = {n}" for n in range(1_500)}
            for name in ("an", "ann-", "annie", "zoe"):
                await (await site.subscriber(name)).subscribe_many(others)
            ann, twin = await site.subscriber("ann"), Subscriber(site.log, site.settings, "ann")
            read, seen = site.log.read, 0

            async def counting(*which: Any, **more: Any) -> Any:
                nonlocal seen
                found = await read(*which, **more)
                seen += len(found)
                return found

            monkeypatch.setattr(site.log, "read", counting)
            await ann.subscribe_many({"a": "n = 1", "b": "n = 2", "c": "n = 3"})
            await ann.subscribe("a", "n = 2")
            await twin.unsubscribe("b", "x")
            await ann.subscribe_many({"b": "n = 1", "d": "n = 1"})
            with pytest.raises(ArgumentError, match="may have 4 subscriptions, these would be 5"):
                await ann.subscribe("e", "n = 1")
            await twin.unsubscribe("d")
            await ann.subscribe("e", "n = 1")
            assert sorted(await ann.subscriptions()) == ["a", "b", "c", "e"]
            assert seen < 40

    run(main)
