"""What NATS answers, read where it arrives.

All answers come to one inbox, whose last part says which request they belong to. Those to direct requests
are most of what a router and a subscriber read, and the client library spends more on a message than its
content costs: headers as a dict, an object, a queue and a task. So the messages of that inbox are taken out
of the bytes as they arrive, before the library looks at them. Everything else goes its usual way; and
everything does, if this release of the library is not known here.
"""

import asyncio
import re
from collections.abc import Container, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.pubsub.log.contract import Record

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

ANSWER_SECONDS = 5.0
_CONTROL_LINE = 1
"""The state of the library's parser in which a new message begins."""
_LINE = re.compile(rb"HMSG (\S+) ([0-9]+) ([0-9]+) ([0-9]+)\r\n")
_END, _NONE, _UNSERVED = "204", "404", "503"
"""What a server says instead of a message: the end of a batch; there is none; nobody is there to answer."""
_SUBJECT = b"\r\nNats-Subject: "
_STORED = re.compile(
    rb"\r\nNats-Subject: ([!-~]+)\r\nNats-Sequence: ([0-9]{1,19})\r\n"
    rb"Nats-Time-Stamp: ([0-9]{4}-[01][0-9]-[0-3][0-9]T[0-9:]{8}(?:\.[0-9]+)?)Z\r\n"
    rb"(?:Nats-Num-Pending: [0-9]+\r\nNats-Last-Sequence: ([0-9]{1,19})\r\n)?\r\n\Z"
)
"""How the headers of a stored message end: the server writes these behind whatever its publisher wrote."""


class Answers:
    """The answers to direct requests as they come.

    Whatever is stored has a number; what has none is the server's own word. A stored message can have any
    other header, `Status` included, from whoever published it. Of a batch, each message names the one before
    it, and the end names the last: what a connection lost on the way is noticed.
    """

    def __init__(
        self, requests: int, are_batches: bool, prefix: int, wanted: Container[int] | None = None
    ) -> None:
        """`prefix` is how much of a subject comes before its topic; of `wanted`, others are left out."""
        self.records: list[Record] = []
        self.known_until = 0
        """The number up to which the answer is sure; 0 where the server did not say."""
        self.pending = 0
        """How many more there were no room for."""
        self.is_unserved = self.is_forbidden = False
        self.refusal = ""
        """Why the server does not answer, if it says so: then it is not even known that there is none."""
        self._last: int | None = None
        self._left = requests
        self._are_batches = are_batches
        self._prefix = prefix
        self._wanted = wanted
        self._subject, self._topic, self._detail = b"", "", ""
        self._before = 0
        self._whole: int | None = None
        """How many records came before the first that is missing; None as long as none is."""
        self._done = asyncio.Event()

    def stored(self, subject: bytes, number: int, stamp: bytes, before: int, body: bytes) -> None:
        """A stored message; `before` is the number of the one before it in its batch."""
        if self._wanted is not None and number not in self._wanted:
            return
        if subject != self._subject:  # a session's events have the same
            self._subject = subject
            self._topic, _, self._detail = subject[self._prefix :].decode().partition(".")
        if before != self._before and self._whole is None:
            self._whole = len(self.records)
        self._before = number
        self.records.append(Record._make((number, self._topic, self._detail, micros(stamp), body)))
        if not self._are_batches:
            self._one_less()

    def take(self, headers: Mapping[str, str], body: bytes) -> None:
        """Any message; one whose headers nobody can read is missing, and the leader will be asked."""
        try:
            if "Nats-Sequence" in headers:
                before = int(headers.get("Nats-Last-Sequence", -1))
                subject, stamp = headers["Nats-Subject"].encode(), headers["Nats-Time-Stamp"][:-1].encode()
                self.stored(subject, int(headers["Nats-Sequence"]), stamp, before, body)
                return
            if "Status" in headers:
                self.is_unserved |= headers["Status"] == _UNSERVED
                if headers["Status"] not in (_END, _NONE, _UNSERVED):
                    self.refusal = f"{headers['Status']} {headers.get('Description', '')}".strip()
                self.known_until = int(headers.get("Nats-UpTo-Sequence", 0))
                self.pending = int(headers.get("Nats-Num-Pending", 0))
                self._last = int(headers.get("Nats-Last-Sequence", 0))
                self._one_less()
                return
        except (ValueError, KeyError):
            self.unreadable()
            return
        if not self._are_batches:
            self._one_less()

    def unreadable(self) -> None:
        """A stored message that nobody can read."""
        self._whole = len(self.records) if self._whole is None else self._whole
        if not self._are_batches:
            self._one_less()

    def forbid(self, _: object) -> None:
        """The server does not allow the requests, and will not answer them."""
        self.is_forbidden = True
        self._done.set()

    def _one_less(self) -> None:
        self._left -= 1
        if self._left <= 0 or self.is_unserved:
            self._done.set()

    def chain(self) -> list[Record]:
        """The records of one batch up to the first that is missing."""
        return self.records[: self._whole]

    @property
    def is_whole(self) -> bool:
        """Whether nothing of one batch is missing."""
        return self._whole is None and self._before == self._last

    async def complete(self) -> None:
        """Wait for the last answer; `TimeoutError` if none comes for long."""
        while not self._done.is_set():
            before = len(self.records), self._left
            try:
                await asyncio.wait_for(self._done.wait(), ANSWER_SECONDS)
            except TimeoutError:
                if before == (len(self.records), self._left):
                    raise


class UnservedError(Exception):
    """Nobody is there to answer."""


class RefusedError(Exception):
    """The server does not allow to publish to this subject."""


class Answer:
    """The one answer to a question: a message, or that there will be none."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        """Nothing is there yet."""
        self._future: asyncio.Future[bytes | Exception] = asyncio.get_running_loop().create_future()

    def take(self, headers: Mapping[str, str], body: bytes) -> None:
        """The message."""
        self._end(UnservedError() if headers.get("Status") == _UNSERVED else body)

    def stored(self, _subject: bytes, _number: int, _stamp: bytes, _before: int, body: bytes) -> None:
        """A message that looks like a stored one."""
        self._end(body)

    def unreadable(self) -> None:
        """Whatever this was, it is no answer."""

    def refuse(self, subject: str) -> None:
        """The server does not allow the question."""
        self._end(RefusedError(subject))

    def is_done(self) -> bool:
        """Whether it is there, or nobody waits for it any more."""
        return self._future.done()

    async def wait(self, seconds: float) -> bytes:
        """The message; `TimeoutError` if none comes."""
        timer = asyncio.get_running_loop().call_later(seconds, self._end, TimeoutError())
        try:
            answer = await self._future
        finally:
            timer.cancel()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _end(self, answer: bytes | Exception) -> None:
        if not self._future.done():
            self._future.set_result(answer)


class Inbox:
    """Where all answers arrive; `open` makes it."""

    def __init__(self, client: "Client") -> None:
        """Use `open` instead."""
        self._client = client
        self._subject = client.new_inbox()
        self._asking: dict[bytes, Answers | Answer] = {}
        self._asked = 0
        self._sid = b""
        self._needed = 0
        """How long the buffer must be before the message at its beginning is complete."""

    @classmethod
    async def open(cls, client: "Client") -> "Inbox":
        """Listen, and read answers where they arrive if the library can be joined there."""
        inbox = cls(client)
        listening = await client.subscribe(
            f"{inbox._subject}.*", cb=inbox._on_message, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        inbox._join(getattr(listening, "_id", None))
        return inbox

    def expect(self, answers: Answers | Answer) -> str:
        """The subject to which these answers come."""
        self._asked += 1
        subject = f"{self._subject}.{self._asked}"
        self._asking[subject.encode()] = answers
        return subject

    def forget(self, subject: str) -> None:
        """What still comes to a subject is for nobody."""
        self._asking.pop(subject.encode(), None)

    async def _on_message(self, message: "Msg") -> None:
        answers = self._asking.get(message.subject.encode())
        if answers is not None:
            answers.take(message.headers or {}, message.data)

    # --- inside the library ------------------------------------------------------------------------

    def _join(self, sid: Any) -> None:
        client: Any = self._client
        parser: Any = getattr(client, "_ps", None)
        process: Any = getattr(client, "_process_msg", None)
        is_known = (
            type(sid) is int
            and isinstance(getattr(parser, "buf", None), bytearray)
            and type(getattr(parser, "state", None)) is int
            and callable(getattr(parser, "parse", None))
            and callable(process)
        )
        if not is_known:
            return
        parse, self._sid = parser.parse, str(sid).encode()

        async def parse_here_first(data: bytes = b"") -> None:
            if parser.state != _CONTROL_LINE:
                await parse(data)
                return
            if not parser.buf:
                self._needed = 0
            parser.buf.extend(data)
            if len(parser.buf) >= self._needed and self._take_all(parser.buf):
                await parse()

        async def process_here_first(
            to: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
        ) -> None:
            if to != sid:
                await process(to, subject, reply, data, headers)
            elif (answers := self._asking.get(bytes(subject))) is not None:
                answers.take(headers_of(headers) if headers else {}, data)

        parser.parse = parse_here_first
        client._process_msg = process_here_first

    def _take_all(self, buffer: bytearray) -> bool:
        """Take our messages from the beginning of a buffer; returns whether anything else is left."""
        text, place, sid, asking = bytes(buffer), 0, self._sid, self._asking
        length, self._needed = len(text), 0
        while (line := _LINE.match(text, place)) is not None:
            subject, to, header_size, size = line.groups()
            if to != sid:
                break
            start = line.end()
            body, end = start + int(header_size), start + int(size)
            if end + 2 > length:
                self._needed = end + 2 - place
                break
            answers = asking.get(subject)
            if answers is not None:
                tail = text.rfind(_SUBJECT, start, body)
                found = _STORED.match(text, tail, body) if tail >= 0 else None
                if found is None:
                    answers.take(headers_of(text[start:body]), text[body:end])
                else:
                    of, number, stamp, before = found.groups()
                    try:
                        answers.stored(of, int(number), stamp, int(before or -1), text[body:end])
                    except ValueError:  # a day that is none; raised here, it would end all reading
                        answers.unreadable()
            place = end + 2
        del buffer[:place]
        return not self._needed and bool(buffer)


def headers_of(raw: bytes) -> dict[str, str]:
    """The headers of a message, the last of each name, with the status that stands before them.

    >>> headers_of(b"NATS/1.0 204 EOB\\r\\nNats-Num-Pending: 0\\r\\n\\r\\n")
    {'Nats-Num-Pending': '0', 'Status': '204', 'Description': 'EOB'}
    """
    first, _, rest = raw.decode("utf-8", "replace").partition("\r\n")
    pairs = (line.partition(":") for line in rest.split("\r\n"))
    found = {name.strip(): value.strip() for name, colon, value in pairs if colon}
    status = first.removeprefix("NATS/1.0").strip()
    return {**found, "Status": status[:3], "Description": status[3:].strip()} if status else found


def micros(stamp: bytes) -> int:
    """Microseconds of a time such as 2026-11-16T14:01:27.381637002.

    >>> micros(b"1970-01-01T00:00:01.5"), micros(b"1970-01-01T00:00:00")
    (1500000, 0)
    """
    fraction = stamp[20:26]
    return _seconds(stamp[:19]) + int(fraction if len(fraction) == 6 else fraction.ljust(6, b"0"))


@lru_cache(maxsize=1_000)
def _seconds(stamp: bytes) -> int:
    """Microseconds of a time without a fraction; many messages have the same."""
    return int(datetime.fromisoformat(f"{stamp.decode()}+00:00").timestamp()) * 1_000_000
