"""A log on NATS servers with JetStream: replicated, for anything that outgrows one machine.

    stream  tamis-SITE-events   subjects tamis.SITE.events.TOPIC.DETAIL
    stream  tamis-SITE-queues   subjects tamis.SITE.queues.TOPIC.DETAIL
    stream  tamis-SITE-state    subjects tamis.SITE.state.TOPIC.DETAIL, one message kept of each
    subject tamis.SITE.wake.STREAM   a hint, never stored, that a stream has grown

An `append` is an atomic batch of the server (2.12 or later), and a fence is its expected last sequence of a
subject. The duplicate window of the server is not used. Reading is direct, without consumers: nothing is
left behind on the server, and any number of readers cost nothing while they are silent. Replicas may lag
behind, which `read` is allowed to; `last` and `end` are asked of the leader. A client that may not ask the
leader can be allowed to ask for the last message of its own subjects: permissions of NATS tell these apart.
"""

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tamis._extras import missing_extra
from tamis.pubsub.log.contract import (
    EVENTS,
    MOST_ENTRIES,
    MOST_READ_BYTES,
    STATE,
    STREAMS,
    Entry,
    FencedError,
    ForbiddenError,
    Key,
    LogError,
    LogUnavailableError,
    Record,
    check_name,
)
from tamis.pubsub.log.nats_answers import (
    ANSWER_SECONDS,
    Answer,
    Answers,
    Inbox,
    RefusedError,
    UnservedError,
    micros,
)
from tamis.pubsub.log.nats_connecting import Attempts, connected, tls_of
from tamis.pubsub.log.nats_errors import (
    PASSING,
    InUseError,
    MissingError,
    NoMessageError,
    explained,
    unreached,
)
from tamis.pubsub.log.nats_refusals import Refusals
from tamis.pubsub.log.secrets import check_private, without_password
from tamis.pubsub.names import token

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

logger = logging.getLogger("tamis.log")

RETRIES = 6
RETRY_SECONDS = 0.25
MOST_IN_FLIGHT = 500
MOST_RANGES_IN_FLIGHT = 8
MOST_LASTS = MOST_ENTRIES
"""Last messages asked for in one request, of which servers take 1,024. Where it names none that is there, the
server does not say what it knows, and the leader is asked for each: so a router asks for all keys that an
append can have, with one that is there, at once."""
NEAR, NEAR_IF_DENSE = 4, 16
"""Numbers that lie so close are read as one range, with what is in between. A request costs as much as about
ten messages that nobody wants; if many are wanted of all, longer ranges leave fewer requests."""
DENSE = 6
"""At least each sixth number is wanted, between the first and the last."""
FEW = 4
"""So few keys are asked of the leader at once."""
STALE_SECONDS = 5.0
"""For so long it is not believed that a stream has become shorter, or has lost what it acknowledged."""
MOST_ACKNOWLEDGED = 1_000
LONGEST_WAIT = 0.5
"""Hints can be lost; so long at most nobody looks."""
_IDENTITY = "tamis-identity"


class NatsLog:
    """A `Log` on JetStream; `open` makes its streams where they are missing."""

    def __init__(self, client: "Client", site: str, replicas: int, most_bytes: int | None) -> None:
        """Use `open` instead."""
        self._client = client
        self._inbox = Inbox(client)
        self._site = token(site)
        self._replicas = replicas
        self._most_bytes = most_bytes
        self._highest = dict.fromkeys(STREAMS, 0)
        """The highest number of each stream that was seen."""
        self._prefixes = {stream: len(f"tamis.{self._site}.{stream}.") for stream in STREAMS}
        """How much of a subject comes before its topic."""
        self._waiting: dict[str, set[asyncio.Event]] = {stream: set() for stream in STREAMS}
        """Who waits for a stream to grow: each has an event of its own, which nobody else clears."""
        self._acknowledged: dict[str, int] = {}
        """The last number of subjects that were written here with a fence, of some of them."""
        self._refusals = Refusals()
        self._connect: Callable[[], Awaitable[Client]] | None = None
        """Makes another connection, as long as this log is in use."""
        self._attempts = Attempts(self._connect_again)
        self.identity = ""
        self.generation = self._fenced_generation = 1

    @classmethod
    async def open(
        cls,
        servers: Sequence[str],
        site: str,
        *,
        replicas: int = 1,
        most_bytes: int | None = None,
        credentials: str | None = None,
        authority: str | None = None,
        certificate: str | None = None,
        inbox: str = "_INBOX",
    ) -> "NatsLog":
        """Connect, and make the streams of a site where they are missing."""
        try:
            import nats  # noqa: PLC0415 - an extra
        except ImportError:
            raise LogError(missing_extra("a log on NATS", "nats")) from None

        for file in (credentials, certificate):
            if file:
                check_private(file, "a key")
        tls = tls_of(authority, certificate)
        log: NatsLog | None = None

        async def on_reconnect() -> None:
            if log is not None:
                log._refusals.clear()
                log.generation += 1

        async def on_error(error: Exception) -> None:
            if log is not None:
                log._refusals.note(str(error))
            logger.warning("trouble with NATS", extra={"error": str(error) or type(error).__name__})

        options: dict[str, Any] = {"user_credentials": credentials} if credentials else {}

        async def connect() -> "Client":
            try:
                return await connected(
                    nats.connect(
                        list(servers),
                        tls=tls,
                        max_reconnect_attempts=-1,
                        reconnect_time_wait=RETRY_SECONDS,
                        connect_timeout=2,
                        reconnected_cb=on_reconnect,
                        error_cb=on_error,
                        pending_size=64 << 20,
                        inbox_prefix=inbox,
                        **options,
                    )
                )
            except ModuleNotFoundError:
                raise LogError(missing_extra("credentials of NATS", "nats")) from None
            except (OSError, nats.errors.Error, TimeoutError) as error:
                reason = str(error) or type(error).__name__
                shown = ", ".join(map(without_password, servers))
                raise LogUnavailableError(f"cannot reach NATS at {shown}: {reason}") from None
            except Exception as error:  # whatever the client makes of a file that is none
                reason = f"{credentials}: " if credentials else ""
                raise LogError(f"cannot use {reason}{str(error) or type(error).__name__}") from None

        log = cls(await connect(), site, replicas, most_bytes)
        try:
            log._inbox = await log._listen(log._client)
            for stream in STREAMS:
                await log._make(stream)
        except BaseException:
            await log._client.close()
            raise
        log._connect = connect
        return log

    async def _listen(self, client: "Client") -> Inbox:
        inbox = await Inbox.open(client)
        await client.subscribe(f"tamis.{self._site}.wake.*", cb=self._on_hint)
        return inbox

    async def _connected(self) -> "Client":
        """The connection. One that the server has ended for good, as for another password, is made again."""
        if self._client.is_closed and self._connect is not None:
            await self._attempts.made()
        return self._client

    async def _connect_again(self) -> None:
        from nats.errors import Error  # noqa: PLC0415 - an extra

        if self._connect is None:
            raise LogUnavailableError("this log is closed")
        client = await self._connect()
        try:
            inbox = await self._listen(client)
        except BaseException as error:
            await client.close()
            if isinstance(error, (Error, OSError, TimeoutError)):
                raise unreached(error) from None
            raise
        self._client, self._inbox = client, inbox
        self._refusals.clear()
        self.generation += 1

    @property
    def largest(self) -> int:
        """How many bytes the body of a record may have: a message has headers, too."""
        return self._client.max_payload - 1_024

    # --- the contract ------------------------------------------------------------------------------

    async def append(
        self, stream: str, entries: Sequence[Entry], fences: Mapping[Key, int] | None = None
    ) -> int:
        """Write all entries or none; returns the number of the last."""
        if not 0 < len(entries) <= MOST_ENTRIES:
            raise LogError(f"1 to {MOST_ENTRIES} entries are appended at once, not {len(entries)}")
        waiting = dict(fences or {})
        missing = set(waiting) - {entry.key for entry in entries}
        if missing:
            raise LogError(f"a fence is on a key that is written: {sorted(missing)} are not")
        self._check_sizes(entries)
        client = await self._connected()
        if fences and self.generation != self._fenced_generation:
            self._fenced_generation = self.generation
            raise FencedError("connected again: what was expected of the log may hold no longer")
        prefix, number = f"tamis.{self._site}.{stream}.", 0
        answered = Answer()
        self._refusals.begin(answered, prefix, entries)
        try:
            answer = await self._send(client, prefix, entries, waiting, answered)
            if error := answer.get("error"):
                raise explained(error, self._stream(stream))
            number = int(answer["seq"])
        finally:
            self._refusals.end(answered, is_written=number > 0)
        with contextlib.suppress(Exception):  # it is written, whether or not others hear of it now
            await client.publish(f"tamis.{self._site}.wake.{stream}")
        self._highest[stream] = max(self._highest[stream], number)
        if stream == EVENTS and fences:
            if len(self._acknowledged) >= MOST_ACKNOWLEDGED:
                self._acknowledged.clear()
            self._acknowledged[f"{prefix}{entries[-1].topic}.{entries[-1].detail}"] = number
        return number

    async def _send(
        self,
        client: "Client",
        prefix: str,
        entries: Sequence[Entry],
        waiting: dict[Key, int],
        answered: Answer,
    ) -> dict[str, Any]:
        """Send entries as one batch; returns what the server answers."""
        from nats.errors import Error  # noqa: PLC0415 - an extra

        count = len(entries)
        batch = uuid.uuid4().hex if count > 1 else ""
        subject, headers = "", {}
        try:
            for number, entry in enumerate(entries, 1):
                headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)} if batch else {}
                if (expected := waiting.pop(entry.key, None)) is not None:
                    headers["Nats-Expected-Last-Subject-Sequence"] = str(expected)
                subject = f"{prefix}{entry.topic}.{entry.detail}"
                if number < count:
                    await client.publish(subject, entry.body, headers=headers)
        except (Error, OSError) as error:
            raise unreached(error) from None
        except asyncio.CancelledError:
            await self._end_batch(client, prefix, entries, batch)
            raise
        if batch:
            headers["Nats-Batch-Commit"] = "1"
        try:
            return await self._ask(client, subject, entries[-1].body, headers, answered)
        except RefusedError as refused:
            forbidden = str(refused)
        if batch:
            await self._end_batch(client, prefix, entries, batch)
        with contextlib.suppress(Exception):
            # There is a word for each message. The next append must not take one of these for its own.
            await client.flush()
        raise ForbiddenError(f"the server does not allow to publish to {forbidden}; nothing was written")

    async def _end_batch(self, client: "Client", prefix: str, entries: Sequence[Entry], batch: str) -> None:
        """Let a server give up a batch that lacks its last message: it opens few, and keeps each for long.

        A message that leaves out numbers ends it. If it is open, its first subject is allowed.
        """
        headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(len(entries) + 2)}
        with contextlib.suppress(Exception):
            await client.publish(f"{prefix}{entries[0].topic}.{entries[0].detail}", headers=headers)

    async def read(
        self,
        stream: str,
        *,
        topic: str | None = None,
        name: str = "",
        after: int = 0,
        most: int = 1_000,
        to_end: bool = False,
    ) -> list[Record]:
        """Records behind a number, in order: of one topic, or of all; or those of a name in it."""
        check_name(topic, name)
        within = ".".join(part for part in (topic, name, ">") if part)
        subject = f"tamis.{self._site}.{stream}.{within}"
        request = {"seq": after + 1, "next_by_subj": subject, "batch": most, "max_bytes": MOST_READ_BYTES}
        answers = await self._direct(stream, [request], are_batches=True)
        found = answers.chain()
        if to_end and not found:
            await self.end(stream)  # after it, a leader that had been asleep has been found out
        if not found and (to_end or not answers.is_whole):
            # What was lost on the way, has headers that nobody can read, or has not reached this replica yet,
            # the leader tells as JSON.
            first = {"seq": after + 1, "next_by_subj": subject}
            found = [self._stored(stream, answer) for answer in await self._leader(stream, [first])]
        if found:
            self._highest[stream] = max(self._highest[stream], found[-1].seq)
        return found

    async def fetch(self, stream: str, numbers: Iterable[int]) -> dict[int, Record]:
        """Records by number; those that are gone are left out."""
        wanted = sorted(set(numbers))
        found: dict[int, Record] = {}
        every = f"tamis.{self._site}.{stream}.>"
        alone, together = _runs(wanted)
        ranges = [
            {"seq": first, "next_by_subj": every, "batch": count, "max_bytes": MOST_READ_BYTES}
            for first, count in together
        ]
        requests = [{"seq": number} for number in alone]
        for start in range(0, len(requests), MOST_IN_FLIGHT):
            answers = await self._direct(stream, requests[start : start + MOST_IN_FLIGHT], are_batches=False)
            found |= {record.seq: record for record in answers.records}
        asked = set(wanted)
        for start in range(0, len(ranges), MOST_RANGES_IN_FLIGHT):
            some = ranges[start : start + MOST_RANGES_IN_FLIGHT]
            answers = await self._direct(stream, some, are_batches=True, wanted=asked)
            found |= {record.seq: record for record in answers.records}
        # A replica that lags behind does not know yet what the leader has.
        missing = [number for number in wanted if number not in found]
        for answer in await self._leader(stream, [{"seq": number} for number in missing]):
            record = self._stored(stream, answer)
            found[record.seq] = record
        return found

    async def last(self, stream: str, keys: Iterable[Key]) -> dict[Key, Record]:
        """The last record of each key; keys without one are left out."""
        prefix = f"tamis.{self._site}.{stream}."
        subjects = [f"{prefix}{topic}.{detail}" for topic, detail in keys]
        found: dict[Key, Record] = {}
        unsure: list[str] = []
        end = await self.end(stream)  # after it, a leader that had been asleep has been found out
        if len(subjects) < FEW:
            unsure = subjects
        else:
            for part in _requests_of(subjects, self.largest):
                unsure += await self._last_of(stream, part, end, found)
        try:
            answers = await self._leader(stream, [{"last_by_subj": subject} for subject in unsure])
        except ForbiddenError:
            records = [await self._last_by_replica(stream, subject) for subject in unsure]
        else:
            records = [self._stored(stream, answer) for answer in answers]
        return found | {(record.topic, record.detail): record for record in records if record is not None}

    async def _last_by_replica(self, stream: str, subject: str) -> Record | None:
        """The last message of a subject, asked for in a way that can be allowed for some subjects only.

        Any replica answers. One that does not know what was acknowledged lags behind, for a while.
        """
        deadline = time.monotonic() + STALE_SECONDS
        while True:
            answers = await self._direct(stream, [{}], are_batches=False, subject=subject)
            record = answers.records[0] if answers.records else None
            is_behind = (0 if record is None else record.seq) < self._acknowledged.get(subject, 0)
            if not is_behind or time.monotonic() >= deadline:
                return record
            await asyncio.sleep(RETRY_SECONDS)

    async def _last_of(
        self, stream: str, subjects: list[str], end: int, found: dict[Key, Record]
    ) -> list[str]:
        """Look for the last record of each subject; returns those of which the leader must be asked."""
        while subjects:
            request = {"multi_last": subjects, "batch": len(subjects), "max_bytes": MOST_READ_BYTES}
            answers = await self._direct(stream, [request], are_batches=True)
            # Any replica may answer: unless it knows what the leader knew, the leader is asked.
            if answers.known_until < end or not answers.is_whole:
                return subjects
            records = answers.records
            found |= {(record.topic, record.detail): record for record in records}
            if not answers.pending:
                break
            # The answer had no room for all of them.
            there = {f"tamis.{self._site}.{stream}.{record.topic}.{record.detail}" for record in records}
            subjects = [subject for subject in subjects if subject not in there]
        return []

    async def end(self, stream: str) -> int:
        """The highest number that was ever given in a stream."""
        deadline = time.monotonic() + STALE_SECONDS
        while True:
            # What was seen before the question: what others of this process append meanwhile may not be in
            # the answer.
            seen = self._highest[stream]
            last = int((await self._info(stream))["state"]["last_seq"])
            if last >= seen:
                self._highest[stream] = max(last, self._highest[stream])
                return last
            # A leader that was stopped for a while wakes up and does not know yet that there is another one.
            if time.monotonic() >= deadline:
                self._highest[stream] = last
                return last
            await asyncio.sleep(RETRY_SECONDS)

    async def trim(self, stream: str, before: int, topic: str, detail: str | None = None) -> None:
        """Remove the records of a key, or of a topic, with numbers below `before`."""
        subject = f"tamis.{self._site}.{stream}.{topic}.{detail or '>'}"
        await self._api(f"STREAM.PURGE.{self._stream(stream)}", {"filter": subject, "seq": before})

    async def wait(self, stream: str, after: int, seconds: float) -> None:
        """Return when a stream may have records behind a number, at the latest after so many seconds."""
        deadline = time.monotonic() + seconds
        grown = asyncio.Event()
        self._waiting[stream].add(grown)
        try:
            while True:
                grown.clear()
                if await self.end(stream) > after:
                    return
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(grown.wait(), min(left, LONGEST_WAIT))
        finally:
            self._waiting[stream].discard(grown)

    async def size(self) -> int:
        """The bytes of the three streams, on one replica."""
        return sum([int((await self._info(stream))["state"]["bytes"]) for stream in STREAMS])

    async def close(self) -> None:
        """Close the connection."""
        self._connect = None
        await self._attempts.stop()
        await self._client.close()

    # --- talking to the server ---------------------------------------------------------------------

    def _stream(self, stream: str) -> str:
        return f"tamis-{self._site}-{stream}"

    async def _make(self, stream: str) -> None:
        config = {
            "name": self._stream(stream),
            "subjects": [f"tamis.{self._site}.{stream}.>"],
            "retention": "limits",
            "storage": "file",
            "num_replicas": self._replicas,
            "max_msgs_per_subject": 1 if stream == STATE else -1,
            "max_bytes": self._most_bytes_of(stream) or -1,
            # What is full refuses what is new; what was promised is never deleted.
            "discard": "new",
            "allow_direct": True,
            "allow_atomic": True,
            "metadata": {_IDENTITY: uuid.uuid4().hex},
        }
        try:
            info = await self._info(stream)
        except MissingError:
            try:
                info = await self._api(f"STREAM.CREATE.{self._stream(stream)}", config)
            except InUseError:  # somebody else was faster
                info = await self._info(stream)
        self._check_config(stream, info["config"])
        limit = self._most_bytes_of(stream)
        if limit is not None and info["config"].get("max_bytes") != limit:
            await self._api(f"STREAM.UPDATE.{self._stream(stream)}", {**info["config"], "max_bytes": limit})
        if stream == EVENTS:
            self.identity = info["config"].get("metadata", {}).get(_IDENTITY) or info["created"]

    def _most_bytes_of(self, stream: str) -> int | None:
        """A full log must still take positions and what was dropped: nothing is freed without them."""
        return None if stream == STATE else self._most_bytes

    def _check_config(self, stream: str, config: dict[str, Any]) -> None:
        """A stream that others have made or changed must not delete or refuse what is promised."""
        name = self._stream(stream)
        if not config.get("allow_atomic"):
            raise LogError(
                f"the stream {name} has no atomic batches: NATS 2.12 or later is needed, "
                "and a stream that Tamis has made"
            )
        kept = 1 if stream == STATE else -1
        expected = {"retention": "limits", "discard": "new", "max_age": 0, "max_msgs": -1}
        expected |= {"max_msgs_per_subject": kept, "max_msg_size": -1, "allow_direct": True}
        for setting, value in expected.items():
            # What is not said has the value that limits nothing.
            if config.get(setting, value) not in ((value, 0) if value == -1 else (value,)):
                raise LogError(
                    f"the stream {name} has {setting} = {config[setting]}, which would lose what was "
                    f"promised: set it to {value}"
                )
        replicas = int(config.get("num_replicas", 1))
        if replicas < self._replicas:
            some = "1 replica" if replicas == 1 else f"{replicas} replicas"
            raise LogError(
                f"the stream {name} has {some}, not the {self._replicas} that the URL asks for: "
                f"raise it (nats stream edit {name} --replicas {self._replicas}), or ask for fewer"
            )

    async def _info(self, stream: str) -> dict[str, Any]:
        return await self._api(f"STREAM.INFO.{self._stream(stream)}", None)

    async def _api(self, name: str, request: Any) -> dict[str, Any]:
        content = b"" if request is None else json.dumps(request).encode()
        for attempt in range(RETRIES):
            try:
                answer = await self._question(name, content)
            except ForbiddenError:
                raise
            except LogUnavailableError:
                if attempt == RETRIES - 1:
                    raise
            else:
                error = answer.get("error")
                if error is None:
                    return answer
                if error.get("err_code") not in PASSING or attempt == RETRIES - 1:
                    raise explained(error, name)
            await asyncio.sleep(RETRY_SECONDS * 2**attempt / 2)
        raise AssertionError("the last attempt returns or raises")

    async def _question(self, name: str, content: bytes) -> dict[str, Any]:
        """The answer to a question; an error as soon as the server says that we may not ask it."""
        refused, answered = self._refusals.of_question(name), Answer()

        def refuse(_: object) -> None:
            answered.refuse(name)

        refused.add_done_callback(refuse)
        try:
            return await self._ask(await self._connected(), f"$JS.API.{name}", content, None, answered)
        except RefusedError:
            raise ForbiddenError(f"the server does not allow {name}") from None
        finally:
            refused.remove_done_callback(refuse)

    async def _ask(
        self, client: "Client", subject: str, content: bytes, headers: dict[str, str] | None, answered: Answer
    ) -> dict[str, Any]:
        """What the server says to a message; `RefusedError` if `answered` is told so."""
        from nats.errors import Error  # noqa: PLC0415 - an extra

        inbox = self._inbox
        reply = inbox.expect(answered)
        try:
            await client.publish(subject, content, reply, headers)
            data = await answered.wait(ANSWER_SECONDS)
        except UnservedError:
            raise LogUnavailableError(
                f"nobody answers {subject}: JetStream is starting or has no leader, or the server runs "
                "without it (nats-server -js)"
            ) from None
        except (Error, OSError, TimeoutError) as error:
            raise unreached(error) from None
        finally:
            inbox.forget(reply)
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise LogError(f"NATS answers {subject} with {data[:100]!r}, which is no JSON object")
        return answer

    async def _direct(
        self,
        stream: str,
        requests: list[dict[str, Any]],
        *,
        are_batches: bool,
        subject: str = "",
        wanted: Container[int] | None = None,
    ) -> Answers:
        """What answers direct requests: one message each, or a batch; or the last message of a subject."""
        from nats.errors import Error  # noqa: PLC0415 - an extra

        answers = Answers(len(requests), are_batches, self._prefixes[stream], wanted)
        if not requests:
            return answers
        name = f"DIRECT.GET.{self._stream(stream)}" + (f".{subject}" if subject else "")
        client = await self._connected()
        refused = self._refusals.of_question(name)
        refused.add_done_callback(answers.forbid)
        inbox = self._inbox
        reply = inbox.expect(answers)
        try:
            for request in requests:
                content = json.dumps(request).encode() if request else b""
                await client.publish(f"$JS.API.{name}", content, reply=reply)
            await answers.complete()
        except (Error, OSError, TimeoutError) as error:
            raise unreached(error) from None
        finally:
            inbox.forget(reply)
            refused.remove_done_callback(answers.forbid)
        if answers.is_forbidden:
            raise ForbiddenError(f"the server does not allow {name}")
        if answers.is_unserved:
            raise LogUnavailableError(f"nobody serves {self._stream(stream)} at the moment")
        if answers.refusal:
            raise LogUnavailableError(f"NATS does not read {self._stream(stream)}: {answers.refusal}")
        return answers

    async def _leader(self, stream: str, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the leader has stored; what it has not is left out."""
        answers: list[dict[str, Any]] = []
        name = f"STREAM.MSG.GET.{self._stream(stream)}"

        async def get(request: dict[str, Any]) -> None:
            with contextlib.suppress(NoMessageError):
                answers.append((await self._api(name, request))["message"])

        if len(requests) == 1:  # nearly always
            await get(requests[0])
            return answers
        for start in range(0, len(requests), MOST_IN_FLIGHT):
            await asyncio.gather(*(get(request) for request in requests[start : start + MOST_IN_FLIGHT]))
        return answers

    def _key(self, stream: str, subject: str) -> Key:
        topic, _, detail = subject.removeprefix(f"tamis.{self._site}.{stream}.").partition(".")
        return topic, detail

    def _stored(self, stream: str, answer: dict[str, Any]) -> Record:
        import base64  # noqa: PLC0415 - rare

        topic, detail = self._key(stream, answer["subject"])
        body = base64.b64decode(answer.get("data", ""))
        return Record(int(answer["seq"]), topic, detail, micros(answer["time"][:-1].encode()), body)

    def _check_sizes(self, entries: Sequence[Entry]) -> None:
        most = self.largest
        largest = max(len(entry.body) for entry in entries)
        if largest > most:
            raise LogError(
                f"a record of {largest:,} bytes is larger than the {most:,} that this NATS server takes: "
                "raise its max_payload"
            )

    async def _on_hint(self, message: "Msg") -> None:
        for grown in self._waiting.get(message.subject.rpartition(".")[2], ()):
            grown.set()


def _requests_of(subjects: Sequence[str], most_bytes: int) -> list[list[str]]:
    """Subjects in parts of which a request has room for each.

    >>> _requests_of(["tamis.a.x", "tamis.a.y", "tamis.a.z"], 30)
    [['tamis.a.x', 'tamis.a.y'], ['tamis.a.z']]
    """
    parts: list[list[str]] = [[]]
    size = 0
    for subject in subjects:
        size += len(subject) + len('"", ')
        if parts[-1] and (size > most_bytes or len(parts[-1]) == MOST_LASTS):
            parts.append([])
            size = len(subject)
        parts[-1].append(subject)
    return parts


def _runs(numbers: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Sorted numbers as single ones, and as ranges (first, count) where few in between are not wanted.

    >>> _runs([1, 2, 4, 90, 200, 201, 202, 205])
    ([90], [(1, 4), (200, 6)])
    >>> _runs([1, 7, 13, 19])
    ([1, 7, 13, 19], [])
    >>> _runs([1, 6, 11, 16, 17])
    ([], [(1, 17)])
    """
    is_dense = len(numbers) > 0 and numbers[-1] - numbers[0] < DENSE * (len(numbers) - 1)
    near = NEAR_IF_DENSE if is_dense else NEAR
    alone: list[int] = []
    together: list[tuple[int, int]] = []
    first = last = -1
    for number in [*numbers, -1]:
        if first >= 0 and 0 < number - last <= near and number - first < MOST_ENTRIES:
            last = number
            continue
        if first >= 0:
            if first == last:
                alone.append(first)
            else:
                together.append((first, last - first + 1))
        first = last = number
    return alone, together
