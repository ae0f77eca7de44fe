"""A million subscriptions through one broker: memory stays bounded, and another life has them all."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from pubsub.processes import BrokerProcess, hear
from servers import free_ports
from tamis.pubsub.net.access import digest

COUNT = int(os.environ.get("TAMIS_MANY_SUBSCRIPTIONS", "1_000_000"))
IN_FLIGHT = 2_000
MOST_BYTES_EACH = 4_096
CLIENT = {"token": digest("secret"), "limits": {"subscriptions": COUNT, "requests_per_second": 1e9}}


def memory_of(pid: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_million_subscriptions(tmp_path: Path) -> None:
    credentials = tmp_path / "credentials.json"
    credentials.write_text(json.dumps({"clients": {"ann": CLIENT}}))
    broker = BrokerProcess("b1", free_ports(1)[0], tmp_path, "--credentials", str(credentials))

    async def subscribe_all() -> None:
        await broker.until_ready()
        before, started = memory_of(broker.pid), time.monotonic()
        async with broker.client("ann", token="secret") as ann:
            for first in range(0, COUNT, IN_FLIGHT):
                numbers = range(first, min(COUNT, first + IN_FLIGHT))
                texts = [f"user = {number} AND price < {number % 100}" for number in numbers]
                asked = [ann.subscribe(f"s{n}", text) for n, text in zip(numbers, texts, strict=True)]
                await asyncio.gather(*asked)
        await notify(0)
        bytes_each = (memory_of(broker.pid) - before) / COUNT
        seconds = time.monotonic() - started
        print(f"{COUNT:,} subscriptions in {seconds:.0f} s, {bytes_each:,.0f} bytes each")
        assert bytes_each < MOST_BYTES_EACH

    async def notify(serial: int) -> None:
        async with broker.client("ann", token="secret") as ann:
            await ann.publish({"user": COUNT - 1, "price": -1, "serial": serial})
            assert await hear(ann, {serial}) == [serial]

    async def another_life() -> None:
        started = time.monotonic()
        await broker.until_ready()
        print(f"back after {time.monotonic() - started:.0f} s")
        await notify(1)

    for life in (subscribe_all, another_life):
        with broker:
            asyncio.run(life())
