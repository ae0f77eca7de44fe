"""Answers are read out of the bytes that arrive: however these are cut, and whatever lies between them.

Faults: a message that is cut anywhere; messages of others in between; headers that a publisher chose to look
like a server's; a library whose inside is another one.
"""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from tamis.pubsub.log.nats_answers import Answers, Inbox, headers_of

STAMP = "2026-11-17T14:40:16.014793974Z"
PREFIX = len("tamis.x.events.")


def message(subject: str, sid: int, headers: str, body: bytes) -> bytes:
    head = f"NATS/1.0{headers}\r\n".encode()
    return f"HMSG {subject} {sid} {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n"


def stored(number: int, before: int, theirs: str = "", detail: str = "s") -> str:
    return (
        f"\r\n{theirs}Nats-Stream: tamis-x-events\r\nNats-Subject: tamis.x.events.p0.{detail}\r\n"
        f"Nats-Sequence: {number}\r\nNats-Time-Stamp: {STAMP}\r\n"
        f"Nats-Num-Pending: 3\r\nNats-Last-Sequence: {before}\r\n"
    )


END = " 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: {}\r\n"
FORGED = [
    "",
    "Nats-Batch-Id: 7\r\nNats-Batch-Sequence: 1\r\n",
    "Status: 503\r\n",
    f"Nats-Subject: tamis.x.events.p9.evil\r\nNats-Sequence: 9\r\nNats-Time-Stamp: {STAMP}\r\n",
    "é: ü\r\n",
    "no colon\r\n",
]


class Listening:
    """What the library gives for a subscription; it calls back for what is not read before."""

    def __init__(self, id: Any) -> None:
        self._id = id


class Library(Client):
    """The library without a server: what arrives is given to its own parser."""

    def __init__(self, id: Any = 7) -> None:
        super().__init__()
        self.seen: list[tuple[int, bytes]] = []
        self._given = id

    async def subscribe(self, *_: Any, **__: Any) -> Any:
        return Listening(self._given)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        self.seen.append((sid, data))


async def opened(library: Library, count: int = 1) -> tuple[Inbox, Answers, str]:
    inbox = await Inbox.open(library)
    answers = Answers(count, True, PREFIX)
    return inbox, answers, inbox.expect(answers)


pieces = st.lists(
    st.sampled_from(["ours", "theirs", "for nobody", "plain", "ping"]) | st.sampled_from(FORGED), max_size=12
)


@given(pieces, st.lists(st.integers(1, 400), max_size=30), st.integers(0, 3_000))
def test_however_the_bytes_are_cut(kinds: list[str], cuts: list[int], size: int) -> None:
    async def main() -> None:
        library = Library()

        async def nothing(*_: Any) -> None:
            return

        library._process_ping = nothing  # type: ignore[method-assign]
        _, answers, subject = await opened(library)
        stream, bodies, theirs = b"", list[bytes](), list[tuple[int, bytes]]()
        for place, kind in enumerate(kinds):
            body = f"{place}\r\nHMSG ".encode() * (1 + size // 20)
            if kind == "theirs":
                stream += message("other", 8, "\r\nX: y\r\n", body)
                theirs.append((8, body))
            elif kind == "plain":
                stream += f"MSG other 8 {len(body)}\r\n".encode() + body + b"\r\n"
                theirs.append((8, body))
            elif kind == "for nobody":
                stream += message(f"{subject}1", 7, stored(1, 0), body)
            elif kind == "ping":
                stream += b"PING\r\n"
            else:
                stream += message(
                    subject, 7, stored(len(bodies) + 1, len(bodies), kind if kind in FORGED else ""), body
                )
                bodies.append(body)
        stream += message(subject, 7, END.format(len(bodies)), b"")
        place = 0
        for cut in [*cuts, len(stream)]:
            await library._ps.parse(stream[place : place + cut])
            place += cut
        await asyncio.wait_for(answers.complete(), 1)
        assert [record.body for record in answers.chain()] == bodies
        assert [record.seq for record in answers.chain()] == list(range(1, len(bodies) + 1))
        assert {(record.topic, record.detail) for record in answers.chain()} <= {("p0", "s")}
        assert answers.is_whole
        assert library.seen == theirs

    asyncio.run(main())


def test_a_connection_that_is_made_again_begins_with_nothing() -> None:
    async def main() -> None:
        library = Library()
        _, answers, subject = await opened(library)
        whole = message(subject, 7, stored(1, 0), b"x" * 5_000)
        await library._ps.parse(whole[:200])
        library._ps.reset()
        await library._ps.parse(message(subject, 7, stored(1, 0), b"y"))
        await library._ps.parse(message(subject, 7, END.format(1), b""))
        assert [record.body for record in answers.chain()] == [b"y"]

    asyncio.run(main())


@pytest.mark.parametrize("are_batches", [True, False])
def test_a_time_that_is_none_does_not_end_the_reading(are_batches: bool) -> None:
    """An error inside the library's parser would end its reading task, and with it all answers."""

    async def main() -> None:
        library = Library()
        inbox = await Inbox.open(library)
        answers = Answers(2, are_batches, PREFIX)
        subject = inbox.expect(answers)
        await library._ps.parse(
            message(subject, 7, stored(1, 0).replace(STAMP, "2026-13-32T99:99:99Z"), b"x")
        )
        await library._ps.parse(message(subject, 7, stored(2, 1), b"y"))
        assert answers.chain() == []
        assert [record.body for record in answers.records] == [b"y"]
        assert answers._done.is_set() is not are_batches

    asyncio.run(main())


@pytest.mark.parametrize("id", [None, "7"])
def test_a_library_that_is_another_inside_keeps_its_ways(id: Any) -> None:
    async def main() -> None:
        library = Library(id)
        before = library._ps.parse
        inbox, answers, subject = await opened(library)
        assert library._ps.parse == before

        class Message:
            headers = headers_of(b"NATS/1.0" + stored(1, 0).encode() + b"\r\n")
            data = b"x"

        Message.subject = subject  # type: ignore[attr-defined]
        await inbox._on_message(Message())  # type: ignore[arg-type]
        assert [(record.seq, record.topic, record.body) for record in answers.chain()] == [(1, "p0", b"x")]

    asyncio.run(main())


@given(st.binary(max_size=80))
def test_any_headers_are_read(raw: bytes) -> None:
    answers = Answers(1, False, PREFIX)
    answers.take(headers_of(raw), b"")
    answers.take(headers_of(b"NATS/1.0\r\nNats-Sequence: " + raw + b"\r\nNats-Subject: a"), b"")
    assert not answers.records
