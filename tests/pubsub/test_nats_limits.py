"""What an operator of NATS may limit, or end: a router goes on, and what was acknowledged is delivered.

Faults: a router ends when the server takes smaller messages than its batches make, or when the account has no
room left; a connection that the server ends for good (another password) is never made again, or is made and
not used; a fenced append goes out over it before anybody has compared.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats.errors
import pytest

from pubsub.logs import read_by_ann, run
from pubsub.test_site import drain, heard, router_of
from servers import NatsServer
from tamis.pubsub import LogError, LogFullError, LogUnavailableError
from tamis.pubsub.log import Entry, FencedError, nats_connecting, open_log
from tamis.pubsub.log import nats as nats_log


def test_messages_may_be_small(nats_program: str, tmp_path: Path) -> None:
    """The numbers of the events of one batch are more than a message of this server holds."""
    config = tmp_path / "nats.conf"
    config.write_text("max_payload: 4096\n")

    async def main(url: str) -> None:
        async with read_by_ann(f"{url}/site", partitions=1) as (site, ann):
            bob = await site.publisher("bob")
            await bob.publish([{"n": n} for n in range(3_000)])
            router = router_of(site)
            await drain(router)
            assert [event["n"] for event in await heard(ann)] == list(range(3_000))
            with pytest.raises(LogError, match="max_payload"):
                await bob.publish({"x": "y" * 4_000})
            assert len(await bob.publish({"n": 1})) == 1

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url))


def test_an_account_without_room_refuses_and_loses_nothing(nats_program: str, tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(
        "accounts { red { jetstream { max_file: 2000000 }, users [ {user: red, password: secret} ] } }\n"
    )

    async def main(server: Any) -> None:
        url = server.url.replace("//", "//red:secret@")
        async with read_by_ann(f"{url}/site", partitions=1) as (site, ann):
            bob, published = await site.publisher("bob"), 0
            with suppress(LogFullError):
                while published < 500:
                    await bob.publish({"n": published, "x": "y" * 10_000})
                    published += 1
            assert 50 < published < 500
            config.write_text(config.read_text().replace("2000000", "9000000"))
            os.kill(server._process.pid, signal.SIGHUP)
            while True:
                try:
                    await bob.publish({"n": published})
                    break
                except LogFullError:
                    await asyncio.sleep(0.1)
            await drain(router_of(site))
            assert [event["n"] for event in await heard(ann)] == list(range(published + 1))

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server), 120)


@pytest.mark.thorough
def test_a_connection_that_the_server_ended_is_made_again(
    nats_program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_log, "RETRIES", 1)
    monkeypatch.setattr(nats_connecting, "ANSWER_SECONDS", 0.5)
    config = tmp_path / "nats.conf"

    def allow(password: str) -> None:
        config.write_text(f"authorization {{ users [ {{user: red, password: {password}}} ] }}\n")

    allow("secret")

    async def main(server: Any) -> None:
        url = server.url.replace("//", "//red:secret@")
        async with read_by_ann(f"{url}/site", partitions=1) as (site, ann):
            bob, router = await site.publisher("bob", timeout=1), router_of(site)
            await bob.publish({"n": 1})
            await drain(router)
            allow("other")
            os.kill(server._process.pid, signal.SIGHUP)
            with suppress(LogUnavailableError):
                while True:
                    await site.log.end("events")
            allow("secret")
            os.kill(server._process.pid, signal.SIGHUP)
            while True:
                try:
                    await site.log.end("events")
                    break
                except LogUnavailableError:
                    await asyncio.sleep(0.1)
            await bob.publish({"n": 2})
            await drain(router)
            assert await heard(ann) == [{"n": 1}, {"n": 2}]

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server), 120)


def test_a_fenced_append_over_another_connection_is_compared_first(nats_program: str, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        log: Any = await open_log(f"{url}/site")
        key = ("p0", "s.a.b")
        entry, last = Entry(*key, b"1"), 0
        for _ in range(3):
            last = await log.append("events", [entry], {key: last})
            await log._client.close()
            with pytest.raises(FencedError, match="connected again"):
                await log.append("events", [entry], {key: last})
        await log.close()

    with NatsServer(nats_program, tmp_path) as server:
        run(lambda: main(server.url))


def test_what_is_written_is_no_error_if_nobody_can_be_told(nats_program: str, tmp_path: Path) -> None:
    async def main(url: str) -> None:
        log: Any = await open_log(f"{url}/site")
        send = log._send

        async def send_and_close(*given: Any) -> Any:
            answer = await send(*given)
            await log.close()
            return answer

        log._send = send_and_close
        assert await log.append("events", [Entry("p0", "s.a.b", b"1")]) == 1

    with NatsServer(nats_program, tmp_path) as server:
        run(lambda: main(server.url))


@pytest.mark.parametrize("fault", [None, nats.errors.ConnectionClosedError])
def test_a_connection_that_is_not_used_is_not_left_open(
    nats_program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[Exception] | None
) -> None:
    """The log is closed while it connects again; or it cannot listen."""
    monkeypatch.setattr(nats_log, "RETRIES", 1)

    async def main(url: str) -> None:
        log: Any = await open_log(f"{url}/site")
        await log._client.close()
        connect, made = log._connect, []

        async def kept() -> Any:
            made.append(await connect())
            return made[-1]

        listening = asyncio.Event()

        async def listen(_: Any) -> Any:
            listening.set()
            await asyncio.sleep(60 if fault is None else 0)
            assert fault is not None
            raise fault

        log._connect, log._listen = kept, listen
        asking = [asyncio.create_task(each) for each in (log.end("events"), log.read("events"))]
        await listening.wait()
        if fault is None:
            await log.close()
        ended = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(each) for each in ended] == [LogUnavailableError] * 2
        assert [client.is_closed for client in made] == [True]
        await log.close()

    with NatsServer(nats_program, tmp_path) as server:
        run(lambda: main(server.url))
