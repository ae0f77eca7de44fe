"""A broker without credentials says so, and does not listen beyond its machine unless it is told to."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pubsub.inside import on_tcp, running
from pubsub.processes import BrokerProcess
from servers import free_ports
from tamis.pubsub.net.access import Access, AccessError, digest
from tamis.pubsub.net.server import Setup
from tamis.pubsub.net.tcp import Address, TcpTransport

CREDENTIALS = {"clients": {"ann": {"token": digest("secret")}}, "neighbours": {}}


def broker_on(host: str, folder: Path, *arguments: str) -> BrokerProcess:
    (port,) = free_ports(1)
    return BrokerProcess("b1", port, folder, "--listen", f"{host}:{port}", *arguments)


def warnings(broker: BrokerProcess) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in broker.log.splitlines()]
    return [line for line in lines if line["level"] == "warning"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_listen_beyond_its_machine(tmp_path: Path, host: str) -> None:
    broker = broker_on(host, tmp_path).start()
    assert broker.wait() == 2
    assert f"b1 would listen at {host}:{broker.port} without credentials" in broker.log
    for way_out in ("--credentials", "127.0.0.1", "--allow-anyone"):
        assert way_out in broker.log
    assert "listening" not in broker.log
    assert not (tmp_path / "b1.log").exists()


@pytest.mark.parametrize("arguments", [("127.0.0.1",), ("localhost",), ("0.0.0.0", "--allow-anyone")])
def test_where_anyone_may_come_in_one_line_says_so(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async def scenario() -> None:
        await broker.until_ready()
        async with broker.client("anyone") as client:
            assert await client.publish({"x": 1}) == 1

    with broker_on(arguments[0], tmp_path, *arguments[1:]) as broker:
        asyncio.run(scenario())
    (warning,) = warnings(broker)
    assert "no credentials: anyone who reaches this broker may publish, subscribe and" in warning["event"]
    assert "--credentials" in warning["event"]


def test_with_credentials_there_is_nothing_to_say(tmp_path: Path) -> None:
    known = tmp_path / "credentials.json"
    known.write_text(json.dumps(CREDENTIALS))

    async def scenario() -> None:
        await broker.until_ready()
        async with broker.client("ann", token="secret") as client:
            assert await client.publish({"x": 1}) == 1

    with broker_on("0.0.0.0", tmp_path, "--credentials", str(known)) as broker:
        asyncio.run(scenario())
    assert warnings(broker) == []


def test_a_program_that_is_a_broker_is_asked_as_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def everywhere(**setup: Any) -> Any:
        return running(Setup("b1", **setup), TcpTransport("b1", Address("", 0), tmp_path, {}))

    async def scenario() -> None:
        with pytest.raises(AccessError, match="without credentials: any machine could publish"):
            await everywhere().__aenter__()
        async with everywhere(access=Access(CREDENTIALS)):
            pass
        assert caplog.records == []
        async with everywhere(allow_anyone=True):
            pass
        async with on_tcp("b2", tmp_path):
            pass
        assert [record.levelname for record in caplog.records] == ["WARNING"] * 2

    caplog.set_level("WARNING", "tamis.broker")
    asyncio.run(scenario())
