"""Real processes: garbage, half a message, a gigabyte, a full disk, shutdown."""

import asyncio
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pubsub.processes import BrokerProcess, hear
from servers import free_ports
from tamis.pubsub import RefusedError
from tamis.pubsub.net import wire


def memory_of(pid: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def error_from(reader: asyncio.StreamReader) -> str:
    """What a broker complains about, after the welcome that may come first."""
    while "error" not in (answer := await wire.read(reader) or {"error": "no answer"}):
        pass
    return str(answer["error"])


async def say(broker: BrokerProcess, data: bytes) -> dict[str, Any] | None:
    """Send bytes, and return what the broker answers before it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(data)
    writer.write_eof()
    answer = await wire.read(reader)
    writer.close()
    return answer


def test_garbage_is_refused_and_does_no_harm(tmp_path: Path) -> None:
    hello = wire.pack({"hello": "client", "name": "eve", "token": None})

    async def scenario(broker: BrokerProcess) -> None:
        await broker.until_ready()
        async with broker.client("ann") as ann:
            await ann.subscribe("s", "x = 1")
            before = memory_of(broker.pid)
            answer = await say(broker, b"GET / HTTP/1.1\r\n\r\n")
            assert answer is not None
            assert "bytes; at most" in answer["error"]
            assert await say(broker, struct.pack(">I", 4) + b"\xff\xfe[[") is not None
            answer = await say(broker, struct.pack(">I", 100) + b"{half")
            assert answer is not None
            assert answer["error"] == "the connection ended in the middle of a message"

            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write(hello + struct.pack(">I", 1 << 30))
            error = await error_from(reader)
            assert error == "a message of 1,073,741,824 bytes; at most 1,048,576 are allowed"
            writer.close()
            for bad, why in [
                ({"do": "dance"}, 'a request says what to "do"'),
                ({"do": "publish", "request": 1, "number": "x"}, "publish needs 'number' (int)"),
            ]:
                reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
                writer.write(hello + wire.pack(bad))
                assert why in await error_from(reader)
                writer.close()
            for event in ["[1]", "{", json.dumps({"x": "a" * 300_000})]:
                with pytest.raises(RefusedError):
                    await ann.publish(event)
            with pytest.raises(RefusedError, match="line 1, column"):
                await ann.subscribe("bad", "x >")
            assert memory_of(broker.pid) - before < 64 << 20

            await ann.publish({"x": 1, "serial": 7})
            assert await hear(ann, {7}) == [7]

    (port,) = free_ports(1)
    with BrokerProcess("b1", port, tmp_path) as broker:
        asyncio.run(scenario(broker))


def test_shutdown_keeps_everything_and_metrics_tell(tmp_path: Path) -> None:
    port, metrics = free_ports(2)
    broker = BrokerProcess("b1", port, tmp_path, "--metrics", f"127.0.0.1:{metrics}")

    async def first_life() -> None:
        await broker.until_ready()
        async with broker.client("ann") as ann:
            await ann.subscribe("s", "x = 1")
        async with broker.client("bob") as bob:
            for serial in range(3):
                assert await bob.publish({"x": 1, "serial": serial}) == serial + 1
        reader, writer = await asyncio.open_connection("127.0.0.1", metrics)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        page = (await reader.read()).decode()
        writer.close()
        assert 'tamis_broker_published_total{broker="b1"} 3\n' in page
        assert 'tamis_broker_waiting_notifications{broker="b1"} 3\n' in page

    async def second_life() -> None:
        await broker.until_ready()
        async with broker.client("ann") as ann:
            assert await hear(ann, {0, 1, 2}) == [0, 1, 2]
        async with broker.client("bob") as bob:
            assert await bob.publish({"x": 2}) == 4, "numbers go on"

    for life in (first_life, second_life):
        with broker:
            asyncio.run(life())
    assert [json.loads(line)["event"] for line in broker.log.splitlines()].count("stopped") == 2


def publish_until_it_stops(broker: BrokerProcess) -> list[int]:
    """Fill the broker's disk; returns the serial numbers that were acknowledged."""
    acknowledged: list[int] = []

    async def fill() -> None:
        await broker.until_ready()
        async with broker.client("ann") as ann:
            await ann.subscribe("s", "serial >= 0")
        bob = broker.client("bob")
        await bob.connect()
        for serial in range(1_000):
            publishing = asyncio.create_task(bob.publish({"serial": serial, "padding": "x" * 500}))
            while not publishing.done() and broker.is_running:
                await asyncio.sleep(0.01)
            if not publishing.done():
                break
            acknowledged.append(publishing.result() - 1)
        await bob.close()

    asyncio.run(fill())
    assert broker.stop() == 2
    assert 5 < len(acknowledged) < 1_000
    return acknowledged


def check_all_there(broker: BrokerProcess, acknowledged: list[int]) -> None:
    async def listen() -> None:
        await broker.until_ready()
        async with broker.client("ann") as ann:
            heard = await hear(ann, set(acknowledged))
        assert heard[: len(acknowledged)] == acknowledged

    with broker:
        asyncio.run(listen())


def test_a_file_that_cannot_grow_stops_the_broker_and_loses_nothing(tmp_path: Path) -> None:
    broker = BrokerProcess("b1", free_ports(1)[0], tmp_path)
    acknowledged = publish_until_it_stops(broker.start(most_file_bytes=20_000))
    assert "File too large" in broker.log
    check_all_there(broker, acknowledged)


def test_a_full_disk_stops_the_broker_and_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(options: str) -> "subprocess.CompletedProcess[bytes]":
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
        return subprocess.run(command, capture_output=True, check=False)

    if mount("size=32k").returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        broker = BrokerProcess("b1", free_ports(1)[0], tmp_path, "--data", str(disk))
        acknowledged = publish_until_it_stops(broker.start())
        assert "No space left on device" in broker.log
        assert mount("remount,size=1m").returncode == 0
        check_all_there(broker, acknowledged)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
