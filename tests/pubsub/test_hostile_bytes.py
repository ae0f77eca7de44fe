"""Bytes from outside: records, headers, config files. Only documented errors come of them."""

import asyncio
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pubsub.several_sites import Sites
from pubsub.test_site import drain, router_of
from tamis.pubsub import keys, records
from tamis.pubsub.log import EVENTS, QUEUES, STATE, Entry
from tamis.pubsub.names import name_of, token
from tamis.pubsub.operating import status, subscribers
from tamis.pubsub.records import RecordError
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.service.config import ConfigError, config_of, read_config
from tamis.pubsub.site import connect
from tamis.pubsub.sites.advertised import Advertised
from tamis.pubsub.sites.interest import InterestEntry
from tamis.pubsub.sites.link_cursor import LinkCursor
from tamis.pubsub.sites.network import Network
from tamis.pubsub.sites.told import is_newer
from tamis.pubsub.sites.topology import SiteLinks


@dataclass(frozen=True)
class Told:
    """What sites behind a neighbour are told: a record that is read into another one."""

    drops: records.Drops

    def body(self) -> bytes:
        return self.drops.behind_body()

    @classmethod
    def read(cls, body: bytes) -> "Told":
        return cls(records.Drops().and_read_behind(body))


READERS: list[Any] = [
    *(records.EventHeader, records.Subscription, records.QueueLimits, records.Delivery, records.Cursor),
    *(records.Reading, records.Drops, records.DeadLetter, records.Settings, records.Grant),
    *(InterestEntry, SiteLinks, LinkCursor, Advertised, records.Advertisement, Told),
]
NAMES = """
    v p o l n h to expression priority expires most_bytes keep_seconds replay_seconds idle_seconds e b u c
    router position done until of time mark sites client after part expected replay totals recent next event
    reason expressions g w r stood untold telling told rollbacks
    site partitions filter attributes subscriptions k working configured life
"""
FIELDS = NAMES.split()

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([1, -1, 2**53, 2**64, "TRUE", "x <"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=8)
bodies = (
    st.binary(max_size=60)
    | objects.map(lambda found: json.dumps(found).encode())
    | objects.map(lambda found: json.dumps({**found, "v": 1}).encode())
    | st.sampled_from([b"[" * 100_000, b'{"v":1,' + b'"a":[' * 50_000, b'{"v": 1e999}', b'{"v":1,"k":1e400}'])
)


@given(bodies)
def test_a_record_is_read_or_refused(body: bytes) -> None:
    for reader in READERS:
        try:
            found = reader.read(body)
        except RecordError:
            continue
        assert reader.read(found.body()) == found, "what is read can be written and read again"
    InterestEntry.read_or_everything(body)
    assert not (is_newer(body, b"{}") and is_newer(b"{}", body))


@given(st.text(max_size=20))
def test_names_come_back(name: str) -> None:
    try:
        made = token(name)
    except UnicodeEncodeError:
        return
    if name:
        assert name_of(made) == name


@given(
    st.dictionaries(
        st.sampled_from(["log", "site", "interest", "grants", "neighbours", "batch"]), json_values
    )
)
def test_a_config_is_taken_or_refused(found: dict[str, Any]) -> None:
    try:
        config_of(found)
    except ConfigError:
        return


@given(st.binary(max_size=80))
def test_a_config_file_is_taken_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "router.toml"
        path.write_bytes(content)
        with pytest.raises(ConfigError):
            read_config(path)


TOPICS = [
    *(
        (STATE, topic, detail)
        for topic in ("sub", "queue", "read", "drop", "grant")
        for detail in ("ann", "ann.x")
    ),
    *((STATE, topic, "rome") for topic in (keys.LINKS, keys.PEER, keys.ROUTER, keys.TRIM)),
    (STATE, keys.INTEREST, "rome.x"),
    *((STATE, topic, "rome.main") for topic in (keys.APPLIED, keys.HEARD)),
    *((STATE, keys.ADVERTISED, site) for site in ("rome", "main")),
    *((STATE, topic, "main.rome") for topic in (keys.HEARD, keys.ADVERTISEMENT)),
    (EVENTS, "p0", "evil"),
    (QUEUES, keys.DEAD, "0"),
    *(
        (STATE, topic, detail)
        for topic in (
            "sub",
            "queue",
            "read",
            "grant",
            "links",
            "interest",
            "applied",
            "heard",
            "advertised",
            "ad",
            "later",
        )
        for detail in (
            "a|b",
            "a|4|0.x",
            "=FF",
            "=FF.x",
            "a..b",
            ".",
            "ann.",
            "a.b.c",
            "é",
            "@rome",
            "=40rome.=",
        )
    ),
    *((QUEUES, topic, detail) for topic in ("q-a|b", "q-=40=FF", "q-", "copy-x") for detail in ("0.4", "x")),
]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(TOPICS), bodies), min_size=1, max_size=6))
def test_a_router_survives_whatever_lies_in_the_log(given_: list[Any]) -> None:
    async def main(folder: str) -> None:
        async with connect(f"sqlite:{folder}/site.db", partitions=1) as site:
            eve = await site.subscriber("eve")
            await eve.subscribe("all", "TRUE")
            for (stream, topic, detail), body in given_:
                await site.log.append(stream, [Entry(topic, detail, body)])
            await (await site.publisher("bob")).publish({"n": 1})
            router = router_of(site)
            await drain(router)
            network = Network(site.log, site.settings, router.table, {}, router.counters)
            await network.step()
            await eve.subscribe("more", "TRUE")
            await status(site)
            await subscribers(site)
            await Retention(site.log, site.settings, router.table, router.counters).tidy()
            heard = [await eve.next(10)]
            assert heard[-1].event == {"n": 1} or heard[-1].publisher  # type: ignore[union-attr]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))


BETWEEN_SITES = [
    *(("b", STATE, "site", "life"), ("b", STATE, "queue", "=40a"), ("b", STATE, "peer", "a")),
    *(("b", QUEUES, "q-=40a", lane) for lane in ("0.0", "x.0", "é", "0|0")),
    *(
        ("b", STATE, topic, detail)
        for topic in ("links", "interest", "advertised")
        for detail in ("b", "=FF", "b.x")
    ),
    *(
        ("b", STATE, topic, detail)
        for topic in ("heard", "applied")
        for detail in ("b.a", "a.b", "a|b", "c.=FF")
    ),
    *(("a", EVENTS, topic, detail) for topic in ("link", "seen") for detail in ("b", "b.-.0", "=FF")),
]


@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from(BETWEEN_SITES), bodies), min_size=1, max_size=4))
def test_a_site_survives_whatever_lies_in_the_log_of_its_neighbour(given_: list[Any]) -> None:
    """A link may be down because of it; the site and its own subscribers go on."""

    async def main(folder: str) -> None:
        async with Sites(Path(folder), [("a", "b")]) as sites:
            ann = await sites.sites["a"].subscriber("ann")
            await ann.subscribe("all", "TRUE")
            for _ in range(3):
                await sites.step()
            for (site, stream, topic, detail), body in given_:
                await sites.sites[site].log.append(stream, [Entry(topic, detail, body)])
            await (await sites.sites["b"].publisher("bob")).publish({"n": 1})
            await (await sites.sites["a"].publisher("carl")).publish({"n": 2})
            for _ in range(4):
                await sites.step()
            assert {"n": 2} in await sites.heard(ann)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
