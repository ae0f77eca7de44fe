"""A table that is read for the first time, while what is read changes.

Faults: a subscription that was changed between two reads is there as it was before, or twice, or not at all;
the moment when it expires is remembered twice, or not; one that is not allowed any more still matches.
"""

from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from tamis.pubsub import Grant, connect, keys
from tamis.pubsub.log import STATE, Entry
from tamis.pubsub.records import Subscription
from tamis.pubsub.router import table as tables
from tamis.pubsub.router.table import Table
from tamis.pubsub.sites.interest import InterestEntry

FAR = 4_000_000_000_000_000


class Changing:
    """A log in which something is written right after some read of the stream of state."""

    def __init__(self, log: Any, entry: Entry, after_reads: int = 1) -> None:
        self._log, self._entry, self._left = log, entry, after_reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, stream: str, **how: Any) -> Any:
        found = await self._log.read(stream, **how)
        self._left -= 1
        if self._left == 0:
            await self._log.append(STATE, [self._entry])
        return found


ANN = keys.subscription_key("ann", "s1")


CHANGES = [
    (Subscription("n = 1"), Subscription("n = 2"), {2}, []),
    (Subscription("n = 1"), Subscription("n = 2", expires=FAR), {2}, [FAR]),
    (Subscription("n = 1", expires=FAR), Subscription("n = 2"), {2}, []),
    (Subscription("n = 1", expires=FAR), Subscription("n = 2", expires=FAR + 1), {2}, [FAR + 1]),
    (Subscription("n = 1"), Subscription("n FROBS 2"), {1, 2}, []),
    (Subscription("n FROBS 1"), Subscription("n = 2"), {2}, []),
    (Subscription("n = 1"), b"", set(), []),
    (Subscription("n = 1"), b"garbage", {1, 2}, []),
]
"""A subscription before and after, what it matches at the end, and when it expires."""


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_two_reads_is_there_as_it_is_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    before, after, matches, expiries = change
    later = after if isinstance(after, bytes) else after.body()
    monkeypatch.setattr(tables, "ADDED_AT_ONCE", 1)
    monkeypatch.setattr(tables, "READ_AT_ONCE", 2)

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            others = [
                Entry(*keys.subscription_key("bob", f"b{n}"), Subscription("n > 0").body()) for n in range(3)
            ]
            await site.log.append(STATE, [Entry(*ANN, before.body()), *others])
            table = Table(Changing(site.log, Entry(*ANN, later)))  # type: ignore[arg-type]
            for _ in range(2):
                await table.catch_up()
                assert table.position == 6, "the change was read together with what was there before"
                found = {n for n in (1, 2) if any(o.startswith("ann|") for o in table.index.owners({"n": n}))}
                assert found == matches
                assert table.expiries == expiries
                assert len(table.index) == 3 + bool(later)

    run(main)


INTEREST = (keys.INTEREST, "rome.x")


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (Entry(*ANN, Subscription("secret = 1").body()), ["=40rome|0|0"]),
        (Entry(*INTEREST, InterestEntry(2, None).body()), ["ann|4|0"]),
    ],
    ids=["not allowed", "not wanted"],
)
def test_what_is_not_allowed_or_not_wanted_any_more_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Entry, left: list[str]
) -> None:
    monkeypatch.setattr(tables, "ADDED_AT_ONCE", 1)
    monkeypatch.setattr(tables, "READ_AT_ONCE", 2)

    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            entries = [
                Entry(keys.GRANT, "ann", Grant(attributes=("n",)).body()),
                Entry(*ANN, Subscription("n = 1").body()),
                Entry(*INTEREST, InterestEntry(1, "n = 1").body()),
                Entry(*keys.subscription_key("bob", "x"), Subscription("n = 7").body()),
            ]
            await site.log.append(STATE, entries)
            table = Table(Changing(site.log, change, after_reads=2), site="main")  # type: ignore[arg-type]
            await table.catch_up()
            assert table.position == 6
            assert table.index.owners({"n": 1, "secret": 1}) == left
            assert list(table.refused) == (["ann.s1"] if change.key == ANN else [])

    run(main)


def test_what_was_refused_alone_is_decided_again_when_grants_change(tmp_path: Path) -> None:
    async def main() -> None:
        async with connect(f"sqlite:{tmp_path}/site.db") as site:
            grant = (keys.GRANT, "ann")
            await site.log.append(STATE, [Entry(*grant, Grant(attributes=("n",)).body())])
            await site.log.append(STATE, [Entry(*ANN, Subscription("secret = 1").body())])
            table = Table(site.log)
            await table.catch_up()
            assert list(table.refused) == ["ann.s1"]
            await site.log.append(STATE, [Entry(*grant, Grant(attributes=("n", "secret")).body())])
            await table.catch_up()
            assert table.refused == {}
            assert table.index.owners({"secret": 1}) == ["ann|4|0"]

    run(main)
