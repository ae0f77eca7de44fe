"""Real brokers for tests: processes on loopback, on TCP or NATS, with a store that outlives them."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tamis.pubsub import Client, Gap


class BrokerProcess:
    """One `tamis broker`, which listens on a port, or on NATS if a server is given."""

    def __init__(self, name: str, port: int, data: Path, *arguments: str, nats: str | None = None) -> None:
        self.name, self.port, self.data, self.nats = name, port, data, nats
        where = ("--nats", nats) if nats else ("--listen", f"127.0.0.1:{port}", "--data", str(data))
        self._command = [sys.executable, "-m", "tamis.cli", "broker", name, *where, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._earlier = 0

    def client(self, name: str, **more: Any) -> Client:
        if self.nats is not None:
            return Client.over_nats(self.nats, self.name, name, **more)
        return Client("127.0.0.1", self.port, name, **more)

    @property
    def log(self) -> str:
        return (self.data / f"{self.name}.err").read_text()

    def logged(self, event: str) -> list[dict[str, Any]]:
        """All complete lines of the log about that."""
        lines = [line for line in self.log.splitlines(keepends=True) if line.startswith("{")]
        records = [json.loads(line) for line in lines if line.endswith("\n")]
        return [record for record in records if record["event"] == event]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, most_file_bytes: int | None = None) -> "BrokerProcess":
        """Start it; with a limit, its disk is full when a file has grown to that size."""
        with (self.data / f"{self.name}.err").open("ab") as log:
            self._earlier = log.tell()
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(self._command, stderr=log, env=environment)
        if most_file_bytes is not None:
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (most_file_bytes, most_file_bytes))
        return self

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End gracefully; returns the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def wait(self) -> int:
        """Wait until it ends by itself; returns the exit code."""
        assert self._process is not None
        return self._process.wait()

    async def until_ready(self) -> None:
        """Wait until it says that it listens, in this life."""
        while '"listening"' not in self.log[self._earlier :]:
            assert self.is_running, self.log
            await asyncio.sleep(0.05)

    def __enter__(self) -> "BrokerProcess":
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


async def hear(client: Client, wanted: set[int]) -> list[int]:
    """Serial numbers in the order in which they are heard, until all that are wanted have been."""
    heard: list[int] = []
    async for note in client:
        assert not isinstance(note, Gap)
        heard.append(note.event["serial"])
        if wanted <= set(heard):
            client.acknowledge(note.number)
            break
    return heard
