"""A client of NATS that does not connect in time is given up, also where it does not obey at once."""

import asyncio
from typing import Any

import pytest

from tamis.pubsub.log import nats_connecting


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
