"""What servers say instead of messages, read from the bytes that a real one sent (`nats_said.py`).

Faults: a request that the server refused counts as "there is nothing", and whoever asked goes on behind what
it has not read; a batch that ends for want of room counts as whole; an answer that is cut anywhere.
"""

import asyncio
import itertools

import pytest

from pubsub.log.nats_said import TO_CONSUMERS, TO_READERS
from pubsub.log.test_nats_inbox import Library
from pubsub.logs import run
from servers import Nats
from tamis.pubsub.log import EVENTS, Entry, LogUnavailableError, open_log
from tamis.pubsub.log.nats_answers import Answers, Inbox

PREFIX = len("tamis.x.events.")
_sites = (f"said-{number}" for number in itertools.count())


def answers_to(said: bytes, *, are_batches: bool, cut: int | None = None) -> Answers:
    """What a reader makes of what a server said, in one piece or in two."""

    async def main() -> Answers:
        library = Library()
        inbox = await Inbox.open(library)
        answers = Answers(1, are_batches, PREFIX)
        inbox._asking[said.split(b" ")[1]] = answers
        for piece in (said,) if cut is None else (said[:cut], said[cut:]):
            await library._ps.parse(piece)
        await asyncio.wait_for(answers.complete(), 60)
        assert not library.seen, "it is taken before the library looks at it"
        return answers

    return asyncio.run(main())


@pytest.mark.parametrize("are_batches", [True, False])
@pytest.mark.parametrize("name", ["no such message", "nothing behind", "no last value"])
def test_there_is_none(name: str, are_batches: bool) -> None:
    answers = answers_to(TO_READERS[name], are_batches=are_batches)
    assert (answers.chain(), answers.is_whole) == ([], True)
    assert (answers.refusal, answers.is_unserved, answers.known_until) == ("", False, 0)


@pytest.mark.parametrize("are_batches", [True, False])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("empty request", "408 Empty Request"),
        ("malformed request", "408 Malformed Request"),
        ("bad request", "408 Bad Request"),
        ("too many results", "413 Too Many Results"),
    ],
)
def test_a_refusal_says_nothing_of_what_there_is(name: str, reason: str, are_batches: bool) -> None:
    answers = answers_to(TO_READERS[name], are_batches=are_batches)
    assert (answers.records, answers.refusal, answers.is_unserved) == ([], reason, False)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("request timeout", "408 Request Timeout"),
        ("batch too large", "409 Exceeded MaxRequestBatch of 10"),
        ("leadership change", "409 Leadership Change"),
        ("message too large", "409 Message Size Exceeds MaxBytes"),
        ("consumer deleted", "409 Consumer Deleted"),
    ],
)
def test_what_is_said_of_consumers_is_a_refusal_too(name: str, reason: str) -> None:
    assert answers_to(TO_CONSUMERS[name], are_batches=True).refusal == reason


def test_no_messages_for_a_consumer_are_none() -> None:
    answers = answers_to(TO_CONSUMERS["no messages"], are_batches=True)
    assert (answers.records, answers.refusal, answers.is_whole) == ([], "", True)


def test_nobody_answers() -> None:
    """It names a subject, as stored messages do."""
    answers = answers_to(TO_READERS["nobody"], are_batches=True)
    assert (answers.records, answers.is_unserved, answers.refusal) == ([], True, "")


def test_one_message() -> None:
    answers = answers_to(TO_READERS["one"], are_batches=False)
    assert [(r.seq, r.topic, r.detail, r.body) for r in answers.records] == [(2, "p0", "s", b"body 1")]


@pytest.mark.parametrize(("name", "count", "pending"), [("batch", 3, 0), ("part", 2, 1)])
def test_a_batch_and_what_there_was_no_room_for(name: str, count: int, pending: int) -> None:
    answers = answers_to(TO_READERS[name], are_batches=True)
    assert [(record.seq, record.body) for record in answers.chain()] == [
        (number, f"body {number - 1}".encode()) for number in range(1, count + 1)
    ]
    assert (answers.pending, answers.is_whole, answers.known_until) == (pending, True, 0)


@pytest.mark.parametrize("name", sorted(TO_READERS | TO_CONSUMERS))
def test_wherever_it_is_cut(name: str) -> None:
    said = (TO_READERS | TO_CONSUMERS)[name]
    are_batches = name != "one"
    whole = answers_to(said, are_batches=are_batches)
    for cut in range(1, len(said), 1 if len(said) < 200 else 7):
        answers = answers_to(said, are_batches=are_batches, cut=cut)
        assert answers.records == whole.records
        assert (answers.refusal, answers.is_unserved) == (whole.refusal, whole.is_unserved)


@pytest.mark.parametrize("are_batches", [True, False])
def test_a_request_that_a_server_refuses_is_no_empty_stream(nats: Nats, are_batches: bool) -> None:
    async def main() -> None:
        log = await open_log(f"{nats.url}/{next(_sites)}")
        await log.append(EVENTS, [Entry("p0", "s", b"x")])
        wrong = {"seq": 1, "last_by_subj": "a", "next_by_subj": "b"}
        with pytest.raises(LogUnavailableError, match="408 Bad Request"):
            await log._direct(EVENTS, [wrong], are_batches=are_batches)  # type: ignore[attr-defined]
        assert len(await log.read(EVENTS)) == 1
        await log.close()

    run(main)
