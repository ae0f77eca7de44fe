"""Brokers and clients on a real NATS server: delivery, the store in JetStream, packets, what is refused."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from nats.errors import ConnectionClosedError
from nats.js import JetStreamContext
from nats.js.errors import ServerError, ServiceUnavailableError

from pubsub.inside import on_nats
from pubsub.processes import hear
from servers import NatsServer
from tamis.pubsub.broker.messages import ProtocolError
from tamis.pubsub.net import nats_store, replay
from tamis.pubsub.net.access import Access, digest
from tamis.pubsub.net.client import RefusedError
from tamis.pubsub.net.connection import Connection, StoreError, UnreachableError
from tamis.pubsub.net.nats_peer import NatsPeer
from tamis.pubsub.net.nats_store import JetStreamStore


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A broker's name that no other test uses, with what subjects and streams cannot have."""
    return f"b.1@{request.node.originalname.removeprefix('test_')[:40]}"


def test_an_event_goes_from_broker_to_broker(nats: Any, name: str) -> None:
    async def scenario() -> None:
        async with (
            on_nats(name, nats.url, f"{name}-2") as one,
            on_nats(f"{name}-2", nats.url, name) as two,
            one.client("ann") as ann,
            two.client("bob") as bob,
        ):
            await ann.subscribe("cheap", "price < 15")
            await bob.publish({"price": 20, "serial": 0})
            await bob.publish({"price": 12, "serial": 1, "title": "é" * 100_000})
            assert await hear(ann, {1}) == [1]

    asyncio.run(scenario())


def test_another_life_goes_on_where_the_first_ended(nats: Any, name: str) -> None:
    async def life(number: int) -> None:
        async with on_nats(name, nats.url) as broker:
            if number == 1:
                async with broker.client("ann") as ann:
                    await ann.subscribe("all", "serial >= 0")
                async with broker.client("bob") as bob:
                    assert await bob.publish({"serial": 7}) == 1
            else:
                async with broker.client("ann") as ann, broker.client("bob") as bob:
                    assert await bob.publish({"serial": 8}) == 2
                    assert await hear(ann, {8}) == [7, 8]

    asyncio.run(life(1))
    asyncio.run(life(2))


def test_credentials_and_limits_are_the_same(nats: Any, name: str) -> None:
    access = Access({"clients": {"ann": {"token": digest("secret"), "ids": "ann-*"}}})

    async def scenario() -> None:
        async with on_nats(name, nats.url, access=access) as broker:
            with pytest.raises(RefusedError, match="no client 'ann' with that token"):
                await broker.client("ann").connect()
            async with broker.client("ann", token="secret") as ann:
                with pytest.raises(RefusedError, match="the id 'x' is not allowed"):
                    await ann.subscribe("x", "y = 1")
                with pytest.raises(RefusedError, match="at most 262,144 are allowed"):
                    await ann.publish({"x": "a" * 300_000})
                with pytest.raises(RefusedError, match="at most 1,048,576 are allowed"):
                    await ann.publish({"x": "a" * 2_000_000})

    asyncio.run(scenario())


def test_who_cannot_connect_is_told_why(tmp_path: Path, nats: Any, nats_program: str) -> None:
    async def scenario() -> None:
        with pytest.raises(ConnectionError, match=r"cannot connect to NATS at nats://127\.0\.0\.1:1: "):
            await NatsPeer("nats://127.0.0.1:1", "x").open()
        with NatsServer(nats_program, tmp_path, "--user", "u", "--pass", "p") as locked:
            with pytest.raises(UnreachableError, match="Authorization"):
                await NatsPeer(locked.url, "x").open()
            peer = NatsPeer(locked.url.replace("//", "//u:p@"), "x")
            await peer.open()
            await peer.close()

    asyncio.run(scenario())


# --- connections -----------------------------------------------------------------------------------------


def with_connection(nats: Any, name: str, use: Callable[[Connection, Connection], Awaitable[None]]) -> None:
    """Two ends of a connection; the second has heard the hello."""

    async def scenario() -> None:
        here, there = NatsPeer(nats.url, "here"), NatsPeer(nats.url, "there")
        accepted: asyncio.Queue[Connection] = asyncio.Queue()
        await there.listen(name, accepted.put)
        near = await here.connect_to(name)
        near.send({"hello": 1})
        far = await accepted.get()
        assert await far.receive() == {"hello": 1}
        try:
            await use(near, far)
        finally:
            await here.close()
            await there.close()

    asyncio.run(scenario())


def test_large_messages_travel_in_order_and_in_parts(nats: Any, name: str) -> None:
    async def use(near: Connection, far: Connection) -> None:
        for number in range(5):
            near.send({"number": number, "text": "x" * 700_000})
        assert near.unsent > 0, "the window holds back what the other end has not taken"
        for number in range(5):
            message = await far.receive()
            assert message is not None
            assert (message["number"], len(message["text"])) == (number, 700_000)
        await near.drain()
        assert near.unsent == 0
        near.close()
        assert await far.receive() is None

    with_connection(nats, name, use)


def test_too_large_a_message_is_refused(nats: Any, name: str) -> None:
    async def use(near: Connection, far: Connection) -> None:
        near.send({"text": "x" * 700_000})
        with pytest.raises(ProtocolError, match="at most 100,000 are allowed"):
            await far.receive(100_000)

    with_connection(nats, name, use)


@pytest.mark.parametrize(
    ("packet", "error", "reason"),
    [
        (b"garbage", ProtocolError, "a packet of 7 bytes; the head alone has 17"),
        (bytes(16) + b"?", ProtocolError, "unknown kind b'\\?'"),
        (bytes(7) + b"\x09" + bytes(8) + b".{}", ConnectionError, "packet 2 from .* was lost"),
        (bytes(7) + b"\x02" + bytes(8) + b".half", ProtocolError, "a message is a JSON object"),
    ],
)
def test_garbage_ends_the_connection(
    nats: Any, name: str, packet: bytes, error: type[Exception], reason: str
) -> None:
    async def use(near: Any, far: Connection) -> None:
        await near._publish(packet)
        with pytest.raises(error, match=reason):
            await far.receive()

    with_connection(nats, name, use)


def test_an_end_that_is_gone_is_noticed(nats: Any, name: str) -> None:
    async def scenario() -> None:
        here = NatsPeer(nats.url, "here")
        nobody = await here.connect_to(name)
        nobody.send({"hello": 1})
        with pytest.raises(ConnectionError, match="is not there"):
            await nobody.receive()
        await here.close()

    asyncio.run(scenario())


# --- the store -------------------------------------------------------------------------------------------


def with_peer(nats: Any, use: Callable[[NatsPeer], Awaitable[None]]) -> None:
    async def scenario() -> None:
        peer = NatsPeer(nats.url, "store")
        await use(peer)
        await peer.close()

    asyncio.run(scenario())


def test_what_was_saved_is_there_again(nats: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_store, "PART_BYTES", 100)

    async def use(peer: NatsPeer) -> None:
        store = await JetStreamStore.open(peer, name)
        await store.save({"epoch": 1, "gone": 2})
        await store.save({"gone": None, "large": ["é" * 500]})
        again = await JetStreamStore.open(peer, name)
        assert again.values == store.values == {"epoch": 1, "large": ["é" * 500]}

    with_peer(nats, use)


def test_a_change_set_without_its_end_does_not_count(
    nats: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_store, "PART_BYTES", 100)

    async def use(peer: NatsPeer) -> None:
        store = await JetStreamStore.open(peer, name)
        await store.save({"a": 1})
        torn = json.dumps({"a": "x" * 500}).encode()
        await store._publish(bytes([1]) + torn[:100])
        await store._publish(bytes([0]) + torn[100:200])
        again = await JetStreamStore.open(peer, name)
        assert again.values == {"a": 1}
        await again.save({"b": 2})
        assert (await JetStreamStore.open(peer, name)).values == {"a": 1, "b": 2}

    with_peer(nats, use)


def test_of_two_owners_the_first_stops(nats: Any, name: str) -> None:
    async def use(peer: NatsPeer) -> None:
        first = await JetStreamStore.open(peer, name)
        await first.save({"epoch": 1})
        second = await JetStreamStore.open(peer, name)
        await second.save({"epoch": 2})
        with pytest.raises(StoreError, match=f"another broker with the name {name} is writing"):
            await first.save({"epoch": 3})
        await second.save({"more": 1})
        assert (await JetStreamStore.open(peer, name)).values == {"epoch": 2, "more": 1}

    with_peer(nats, use)


@pytest.mark.parametrize(
    "trouble", [TimeoutError(), ServiceUnavailableError(), ServerError(code=500), ConnectionClosedError()]
)
def test_who_cannot_see_whose_message_it_is_asks_again(
    nats: Any, name: str, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that arrived unanswered is refused when repeated; whose it is cannot be seen at once."""
    publish, get_msg = JetStreamContext.publish, JetStreamContext.get_msg
    failing = [TimeoutError()]
    failing_to_see = [trouble]

    async def publish_unanswered(self: JetStreamContext, *given: Any, **named: Any) -> Any:
        answer = await publish(self, *given, **named)
        if failing:
            raise failing.pop()
        return answer

    async def get_msg_later(self: JetStreamContext, *given: Any, **named: Any) -> Any:
        if failing_to_see:
            raise failing_to_see.pop()
        return await get_msg(self, *given, **named)

    async def use(peer: NatsPeer) -> None:
        store = await JetStreamStore.open(peer, f"{name}-{type(trouble).__name__}")
        monkeypatch.setattr(JetStreamContext, "publish", publish_unanswered)
        monkeypatch.setattr(JetStreamContext, "get_msg", get_msg_later)
        await store.save({"a": 1})
        assert not failing_to_see
        await store.save({"b": 2})
        info = await (await peer.jetstream()).stream_info(store._stream)
        assert info.state.messages == 2

    with_peer(nats, use)


def test_old_messages_go(nats: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "COMPACT_FROM", 20)

    async def use(peer: NatsPeer) -> None:
        store = await JetStreamStore.open(peer, name)
        for number in range(100):
            await store.save({"last": number, f"queue/{number}": "x", f"queue/{number - 3}": None})
        info = await (await peer.jetstream()).stream_info(store._stream)
        assert info.state.messages < 60
        again = await JetStreamStore.open(peer, name)
        assert again.values == {"last": 99, "queue/97": "x", "queue/98": "x", "queue/99": "x"}

    with_peer(nats, use)


def test_saving_waits_for_a_server_that_is_away(tmp_path: Path, nats_program: str) -> None:
    async def scenario() -> None:
        with NatsServer(nats_program, tmp_path) as server:
            peer = NatsPeer(server.url, "store")
            store = await JetStreamStore.open(peer, "b1")
            await store.save({"a": 1})
            server.kill()
            saving = asyncio.create_task(store.save({"b": 2}))
            await asyncio.sleep(0.3)
            assert not saving.done()
            await asyncio.to_thread(server.start)
            await saving
            assert (await JetStreamStore.open(peer, "b1")).values == {"a": 1, "b": 2}
            await peer.close()

    asyncio.run(scenario())


def test_a_server_without_jetstream_is_named(tmp_path: Path, nats_program: str) -> None:
    async def scenario() -> None:
        with NatsServer(nats_program, tmp_path, jetstream=False) as server:
            peer = NatsPeer(server.url, "store")
            with pytest.raises(UnreachableError, match="has no JetStream; start nats-server with -js"):
                await JetStreamStore.open(peer, "b1")
            await peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "passing", [ServiceUnavailableError(code=503, err_code=10008), ServerError(code=500, err_code=10009)]
)
def test_opening_waits_for_a_jetstream_that_starts(
    nats: Any, name: str, passing: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_info = JetStreamContext.stream_info
    failing = [passing]

    async def stream_info_later(self: JetStreamContext, *given: Any, **named: Any) -> Any:
        if failing:
            raise failing.pop()
        return await stream_info(self, *given, **named)

    monkeypatch.setattr(JetStreamContext, "stream_info", stream_info_later)

    async def use(peer: NatsPeer) -> None:
        assert (await JetStreamStore.open(peer, name)).values == {}
        assert not failing

    with_peer(nats, use)


def test_a_full_stream_refuses_and_keeps_what_it_has(tmp_path: Path, nats_program: str) -> None:
    config = tmp_path / "nats.conf"
    config.write_text("jetstream { max_file_store: 100KB }\n")

    async def scenario() -> None:
        with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
            peer = NatsPeer(server.url, "store")
            store = await JetStreamStore.open(peer, "b1")
            kept: list[int] = []

            async def save_until_full() -> None:
                for number in range(1_000):
                    await store.save({f"queue/{number}": "x" * 1_000})
                    kept.append(number)

            with pytest.raises(StoreError, match="cannot write the stream tamis-b1"):
                await save_until_full()
            assert 10 < len(kept) < 1_000
            assert len((await JetStreamStore.open(peer, "b1")).values) == len(kept)
            await peer.close()

    asyncio.run(scenario())
