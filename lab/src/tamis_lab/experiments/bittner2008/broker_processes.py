"""Real brokers for an experiment: a line of `tamis broker` processes on loopback, and their counters."""

import asyncio
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

PATIENCE = 120.0
"""Seconds that a broker may take to start or to end on a machine that has other work."""


class BrokerLine:
    """Brokers b1, b2, ... in a row, each a process; use it as a context manager."""

    def __init__(self, count: int, folder: Path, options: Sequence[str] = ()) -> None:
        """Keep their data in a folder; `options` are those of `tamis broker`."""
        ports = _free_ports(2 * count)
        self.ports, self._metrics = ports[:count], ports[count:]
        self._folder = folder
        self._options = list(options)
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "BrokerLine":
        """Start all of them."""
        for place, (port, metrics) in enumerate(zip(self.ports, self._metrics, strict=True)):
            neighbours = []
            if place > 0:
                neighbours += ["-n", f"b{place}=127.0.0.1:{self.ports[place - 1]}"]
            if place + 1 < len(self.ports):
                neighbours += ["-n", f"b{place + 2}"]
            command = [
                *(sys.executable, "-m", "tamis.cli", "broker", f"b{place + 1}"),
                *("--listen", f"127.0.0.1:{port}", "--metrics", f"127.0.0.1:{metrics}"),
                *("--data", str(self._folder), *neighbours, *self._options),
            ]
            log = (self._folder / f"b{place + 1}.err").open("wb")
            self._processes.append(subprocess.Popen(command, stderr=log))
            log.close()
        return self

    def __exit__(self, *_: object) -> None:
        """End them; each makes everything durable first."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    async def until_ready(self) -> None:
        """Wait until all of them listen."""
        async with asyncio.timeout(PATIENCE):
            for port, process in zip(self.ports, self._processes, strict=True):
                while True:
                    try:
                        _, writer = await asyncio.open_connection("127.0.0.1", port)
                    except OSError:
                        if process.poll() is not None:
                            raise RuntimeError(f"a broker ended; its log is in {self._folder}") from None
                        await asyncio.sleep(0.1)
                    else:
                        writer.close()
                        break

    def counters(self) -> dict[str, float]:
        """The counters of all of them together, as their metrics pages tell."""
        total: dict[str, float] = {}
        for port in self._metrics:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as page:
                for line in page.read().decode().splitlines():
                    if line.startswith("tamis_broker_"):
                        name, _, value = line.removeprefix("tamis_broker_").partition(" ")
                        name = name.partition("{")[0].removesuffix("_total")
                        total[name] = total.get(name, 0.0) + float(value)
        return total


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; held open together, so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
