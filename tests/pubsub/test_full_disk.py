"""A disk that is really full: a small file system of its own, filled under load, with room made afterwards.

Nothing acknowledged is lost, nothing comes twice, and the site goes on when there is room again.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pubsub.logs import run
from pubsub.router_processes import RouterProcess
from pubsub.test_killed_processes import config, hear_all, judge
from servers import NatsServer
from tamis.pubsub import LogError, connect

FILLER = 6 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB; mounting one takes a right that not every machine gives."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    try:
        subprocess.run(mounting, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def fill(url: str, folder: Path, restart: Any = None) -> None:
    filler = folder / "filler"
    filler.write_bytes(b"x" * FILLER)
    async with connect(url, partitions=2) as site:
        await (await site.subscriber("all")).subscribe("s", "TRUE")
        publishers = [await site.publisher(name, timeout=2) for name in ("bob", "carl")]
        done: list[dict[str, Any]] = []
        number = refused = 0
        while refused < 4:
            for publisher in publishers:
                number += 1
                event = {"by": publisher.name, "n": number, "k": 0, "text": "x" * 20_000}
                try:
                    await publisher.publish(event)
                    done.append(event)
                except LogError:
                    refused += 1
        assert len(done) > 20
        await asyncio.sleep(1)  # routers meet the full disk, too
        filler.unlink()
        if restart is not None:
            await restart()
        for publisher in publishers:
            for _ in range(60):
                number += 1
                event = {"by": publisher.name, "n": number, "k": 0}
                try:
                    await publisher.publish(event)
                except LogError:
                    await asyncio.sleep(0.5)
                    continue
                done.append(event)
                break
            else:
                raise AssertionError("there is room again, and nothing can be published")
        judge(await hear_all(site, "all", done, 120))


@pytest.mark.slow
def test_a_disk_that_is_full_under_sqlite(small_disk: Path, tmp_path: Path) -> None:
    url = f"sqlite:{small_disk}/site.db"
    with ExitStack() as stack:
        routers = [
            stack.enter_context(RouterProcess(tmp_path, config(tmp_path, url, name, partitions=2), name=name))
            for name in ("r0", "r1")
        ]
        for router in routers:
            router.until("ready")
        run(lambda: fill(url, small_disk), 300)
        assert [router.process.poll() for router in routers] == [None, None], "a full disk ends no router"


@pytest.mark.slow
def test_a_disk_that_is_full_under_nats(small_disk: Path, tmp_path: Path, nats_program: str) -> None:
    settings = tmp_path / "nats.conf"
    # The server believes that there is more room than the disk has.
    settings.write_text("jetstream { max_file_store: 1GB, max_memory_store: 64MB }\n")
    with ExitStack() as stack:
        server = NatsServer(nats_program, small_disk, "-c", str(settings)).start()
        stack.callback(server.stop)
        url = f"{server.url}/disk"
        routers = [
            stack.enter_context(RouterProcess(tmp_path, config(tmp_path, url, name, partitions=2), name=name))
            for name in ("r0", "r1")
        ]
        for router in routers:
            router.until("ready")

        async def restart() -> None:
            server.kill()
            await asyncio.to_thread(server.start)

        run(lambda: fill(url, small_disk, restart), 300)
        assert [router.process.poll() for router in routers] == [None, None], "a full disk ends no router"
