"""Numbers that a peer may send and nobody can compare: they are refused, and the broker goes on."""

import asyncio
import contextlib
import json
import math
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub.inside import on_tcp
from pubsub.processes import BrokerProcess, hear
from servers import free_ports
from tamis.pubsub.broker import inputs as i
from tamis.pubsub.broker.effects import Reply
from tamis.pubsub.broker.machine import Broker
from tamis.pubsub.broker.messages import MOST_NUMBER, Frame, ProtocolError
from tamis.pubsub.broker.options import Limits
from tamis.pubsub.broker.shedding import Shedding
from tamis.pubsub.net import wire
from tamis.pubsub.net.access import Access, AccessError, ClientLimits, digest
from tamis.pubsub.net.requests import to_input

HUGE = "1" + "0" * 400

NO_PRIORITIES = [
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", HUGE, f"-{HUGE}"),
    *("true", "false", '"high"', '"NaN"', "null", "[]", "[1]", "{}"),
]

PRIORITIES = ["0", "-0.0", "-3", "1.5", "1e308", "-1e308", "5e-324", "9007199254740993"]

NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "1.0", "1e3", "-1", str(2**63), HUGE, "true", '"1"', "null"]


class RawClient:
    """Sends JSON as it is written, also what no well-behaved client would write."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._requests = 0

    async def ask(self, text: str) -> dict[str, Any]:
        """Send a request, REQUEST standing for its number; returns the reply."""
        self._requests += 1
        body = text.replace("REQUEST", str(self._requests)).encode()
        self._writer.write(struct.pack(">I", len(body)) + body)
        while True:
            answer = await wire.read(self._reader)
            assert answer is not None, "the broker hung up"
            if answer.get("reply") == self._requests or "reply" not in answer:
                return answer


@contextlib.asynccontextmanager
async def raw_client(port: int, name: str) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(wire.pack({"hello": "client", "name": name, "token": None}))
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


def subscribe(id: str, priority: str) -> str:
    return (
        f'{{"do": "subscribe", "request": REQUEST, "id": "{id}", "expression": "x = 1", '
        f'"priority": {priority}}}'
    )


def test_a_broker_survives_every_priority_and_serves_the_others(tmp_path: Path) -> None:
    """With a NaN among them, removing a priority from the sorted list ended the whole process."""

    async def scenario(broker: BrokerProcess) -> None:
        await broker.until_ready()
        async with (
            broker.client("ann") as ann,
            broker.client("bob") as bob,
            raw_client(broker.port, "eve") as eve,
        ):
            await ann.subscribe("all", "serial >= 0", priority=2.0)
            for id, priority in (("two", "2"), ("odd", "NaN"), ("one", "1")):
                await eve.ask(subscribe(id, priority))
            for id in ("odd", "two", "one"):
                await eve.ask(f'{{"do": "unsubscribe", "request": REQUEST, "id": "{id}"}}')
            for priority in NO_PRIORITIES:
                answer = await eve.ask(subscribe("s", priority))
                assert "subscribe needs 'priority' (float): a finite number, not " in answer["error"]
                assert len(answer["error"]) < 200
            for number, priority in enumerate(PRIORITIES):
                assert "error" not in await eve.ask(subscribe(f"s{number}", priority))
            for number in range(len(PRIORITIES)):
                # Replaced, without a priority this time, and taken back.
                again = f'{{"do": "subscribe", "request": REQUEST, "id": "s{number}", "expression": "x = 2"}}'
                assert "error" not in await eve.ask(again)
                gone = f'{{"do": "unsubscribe", "request": REQUEST, "id": "s{number}"}}'
                assert "error" not in await eve.ask(gone)
            await bob.publish({"serial": 1, "x": 1})
            assert await hear(ann, {1}) == [1]
        assert broker.is_running

    (port,) = free_ports(1)
    with BrokerProcess("b1", port, tmp_path) as broker:
        asyncio.run(scenario(broker))
        assert broker.stop() == 0


def test_a_broker_survives_every_number_in_a_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with on_tcp("b1", tmp_path) as broker, broker.client("ann") as ann, broker.client("bob") as bob:
            await ann.subscribe("all", "serial >= 0")
            async with raw_client(broker.address.port, "eve") as eve:
                for number in (*NO_NUMBERS, "0"):
                    event = '"event": "{\\"serial\\": 9}"'
                    answer = await eve.ask(
                        f'{{"do": "publish", "request": REQUEST, "number": {number}, {event}}}'
                    )
                    assert "publish needs 'number' (int): a whole number from 1 to" in answer["error"]
                for value in ("NaN", "Infinity", "1e999", HUGE, "true", '\\"\\"'):
                    # A publication has no priority, and an event may be about one.
                    text = f'{{\\"priority\\": {value}}}'
                    number = eve._requests + 1
                    await eve.ask(
                        f'{{"do": "publish", "request": REQUEST, "number": {number}, "event": "{text}", '
                        '"priority": NaN}'
                    )
            for field, number in [("request", number) for number in (*NO_NUMBERS, "0")] + [
                ("number", number) for number in NO_NUMBERS
            ]:
                # Without a number to answer under, the connection ends.
                async with raw_client(broker.address.port, "eve") as eve:
                    do = "unsubscribe" if field == "request" else "acknowledge"
                    answer = await eve.ask(f'{{"do": "{do}", "{field}": {number}, "id": "s"}}')
                    assert f"{do} needs '{field}' (int): a whole number from" in answer["error"]
            async with raw_client(broker.address.port, "eve") as eve:
                answer = await eve.ask('{"do": "acknowledge", "number": 1' + "0" * 5_000 + "}")
                assert "a message is a JSON object" in answer["error"]
            await bob.publish({"serial": 1})
            assert await hear(ann, {1}) == [1]
            assert not broker.has_ended

    asyncio.run(scenario())


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.booleans(),
    st.text(max_size=5),
    st.none(),
    st.lists(st.integers(), max_size=2),
)


@given(
    do=st.sampled_from(["subscribe", "unsubscribe", "advertise", "withdraw", "publish", "acknowledge"]),
    fields=st.dictionaries(st.sampled_from(["request", "number", "priority", "type"]), numbers),
)
def test_what_is_let_in_can_be_compared(do: str, fields: dict[str, Any]) -> None:
    message = {"do": do, "request": 1, "number": 1, "id": "s", "expression": "x = 1", "event": "{}", **fields}
    try:
        read = to_input("ann", message)
    except ProtocolError:
        return
    for name in ("request", "number"):
        number = getattr(read, name, 1)
        assert type(number) is int
        assert 0 <= number <= MOST_NUMBER
    priority = getattr(read, "priority", 0.0)
    assert type(priority) is float
    assert math.isfinite(priority)


counts = st.integers(0, 3) | st.sampled_from([MOST_NUMBER, MOST_NUMBER + 1, -1, True, math.nan, 1.0])


@given(st.lists(counts, min_size=4, max_size=4), st.sampled_from(["Barrier", "Settled", "Forward"]), counts)
def test_frames_have_numbers_that_can_be_compared(head: list[Any], kind: str, number: Any) -> None:
    more = ["{}", None, False, "b1/ann/1"] if kind == "Forward" else []
    try:
        frame = Frame.from_json([*head, kind, number, *more])
    except ProtocolError:
        return
    read = [frame.sender_epoch, frame.receiver_epoch, frame.number, frame.acknowledged, number]
    assert all(type(count) is int and 0 <= count <= MOST_NUMBER for count in read)


priorities = st.sampled_from([1.0, 2.0, 3.0, math.nan, math.inf, -math.inf, 10**400, -(10**400)])


@given(st.lists(st.tuples(priorities | st.none(), st.integers(0, 9))), st.integers(0, 30))
def test_shedding_keeps_its_order_whatever_the_priorities(steps: list[Any], waiting: int) -> None:
    """What an older broker has stored may hold any float."""
    shedding = Shedding(Limits(shed_from=10, shed_all=20))
    shedding.waiting = waiting
    held: list[float] = []
    for priority, place in steps:
        if priority is not None:
            shedding.add(priority)
            held.append(priority)
        elif held:
            shedding.remove(held.pop(place % len(held)))
        ranked = sorted(held, key=lambda priority: (priority == priority, priority))  # noqa: PLR0124
        served = [shedding.serves(priority) for priority in ranked]
        assert served == sorted(served), "no priority is served while a higher one is not"
        assert all(served[-1:]), "the highest is always served"


def test_a_store_of_before_may_hold_a_priority_that_is_no_number() -> None:
    stored = {
        f"subscription/ann/{id}": ["x = 1", None, priority]
        for id, priority in (("two", 2.0), ("odd", math.nan), ("one", 1.0))
    }
    broker = Broker("b1", [], stored=json.loads(json.dumps(stored)))
    broker.handle(i.Start(), now=0.0)
    for request, id in enumerate(["odd", "two", "one"], 1):
        effects = broker.handle(i.Unsubscribe("ann", request, id), now=0.0)
        assert Reply("ann", request) in effects


@pytest.mark.parametrize("limit", [math.nan, math.inf, -1, True, "10", None])
def test_limits_are_numbers(limit: Any) -> None:
    for name in ("subscriptions", "expression_bytes", "event_bytes", "requests_per_second"):
        with pytest.raises(AccessError, match=f"the limit {name} is a finite number from 0 on"):
            ClientLimits(**{name: limit})
    access = Access({"clients": {"ann": {"token": digest("secret"), "limits": {"requests_per_second": 0}}}})
    with pytest.raises(AccessError, match="no request would be answered"):
        access.client("ann", "secret")
    assert ClientLimits(subscriptions=0).subscriptions == 0
