"""A client of NATS that does not connect in time is given up, also where it does not obey at once.

Faults: a client that connected as it was given up stays open; those who wait for a connection try one after
another; a log that is closed meanwhile connects again, or tells who waits that it was cancelled.
"""

import asyncio
from typing import Any

import pytest

from tamis.pubsub.log import LogUnavailableError, nats_connecting


class Stubborn:
    """Swallows being cancelled, as the client of NATS does now and then, and may connect all the same."""

    def __init__(self, swallows: int, connects: bool) -> None:
        self.swallows, self.connects, self.closed = swallows, connects, False

    async def connect(self) -> Any:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.swallows -= 1
                if self.swallows < 0:
                    if self.connects:
                        return self
                    raise

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("connects", [False, True])
@pytest.mark.parametrize("swallows", [0, 1, 3])
def test_it_is_given_up(monkeypatch: pytest.MonkeyPatch, swallows: int, connects: bool) -> None:
    monkeypatch.setattr(nats_connecting, "ANSWER_SECONDS", 0.01)
    client = Stubborn(swallows, connects)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await nats_connecting.connected(client.connect())

    asyncio.run(main())
    assert client.closed is connects, "what connected too late is not left open"


def test_a_client_that_connects_as_it_is_given_up_is_closed() -> None:
    client = Stubborn(0, True)

    async def main() -> None:
        connects = asyncio.Event()

        async def connect() -> Any:
            await connects.wait()
            return client

        waiting = asyncio.create_task(nats_connecting.connected(connect()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        connects.set()
        await asyncio.sleep(0)  # it is connected, and nobody knows yet
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert client.closed


def test_all_who_wait_share_an_attempt_and_its_error() -> None:
    made = 0

    async def attempt() -> None:
        nonlocal made
        made += 1
        await asyncio.sleep(0.01)
        raise LogUnavailableError(f"attempt {made}")

    async def main() -> None:
        attempts = nats_connecting.Attempts(attempt)
        for number in (1, 2):
            cancelled, *waiting = (asyncio.create_task(attempts.made()) for _ in range(16))
            await asyncio.sleep(0)
            cancelled.cancel()
            ended = await asyncio.gather(*waiting, return_exceptions=True)
            assert {str(each) for each in ended} == {f"attempt {number}"}
            assert cancelled.cancelled()

    asyncio.run(main())


def test_who_waits_hears_that_the_log_was_closed() -> None:
    ended = False

    async def attempt() -> None:
        nonlocal ended
        try:
            await asyncio.sleep(60)
        finally:
            ended = True

    async def main() -> None:
        attempts = nats_connecting.Attempts(attempt)
        waiting = asyncio.create_task(attempts.made())
        await asyncio.sleep(0.01)
        await attempts.stop()
        assert ended
        for each in (waiting, attempts.made()):
            with pytest.raises(LogUnavailableError, match="closed"):
                await each

    asyncio.run(main())
