"""Real brokers for tests: processes on loopback, on free ports, with a store that outlives them."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; held open together, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class BrokerProcess:
    """One `tamis broker`."""

    def __init__(self, name: str, port: int, data: Path, *arguments: str) -> None:
        self.name, self.port, self.data = name, port, data
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.data / f"{self.name}.err").read_text()

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
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tamis.cli", "broker", self.name),
                    *("--listen", f"127.0.0.1:{self.port}", "--data", str(self.data)),
                    *self._arguments,
                ],
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
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

    async def until_ready(self) -> None:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                assert self._process is not None
                assert self._process.poll() is None, self.log
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return

    def __enter__(self) -> "BrokerProcess":
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()
