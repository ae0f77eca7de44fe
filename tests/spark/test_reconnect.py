"""Spark Connect: connections that break, servers that restart, and servers without Tamis."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from servers import free_port
from spark.cluster_job import expected
from spark.test_clusters import environment

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.spark_since("4.1")]

HERE = Path(__file__).parent


@contextmanager
def connect_server(folder: Path, port: int, settings: dict[str, str], **variables: str) -> Iterator[Any]:
    """A server on loopback, until the block ends."""
    with (folder / "server.err").open("a") as errors:
        server = subprocess.Popen(
            [sys.executable, str(HERE / "connect_server.py"), str(port), json.dumps(settings)],
            env=environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n", (folder / "server.err").read_text()[-4000:]
        yield server
    finally:
        server.kill()
        server.wait()


class Proxy:
    """Passes bytes on to a port, and cuts connections when told to."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.open: list[socket.socket] = []
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            with suppress(OSError):
                client, _ = self.listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    client.close()
                    continue
                self.open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()
            if self.listener.fileno() < 0:
                return

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """End all connections that there are; new ones are let through."""
        held, self.open = self.open, []
        for each in held:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
                self.cuts += 1

    def close(self) -> None:
        self.listener.close()
        self.cut()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy(free_port())
    yield made
    made.close()


def test_connections_break_and_the_server_restarts(tmp_path: Path, proxy: Proxy) -> None:
    """A connection that breaks twice a second loses and doubles nothing; an index outlives its session."""
    command = [sys.executable, str(HERE / "reconnect_job.py"), str(tmp_path), f"sc://127.0.0.1:{proxy.port}"]
    with (tmp_path / "err").open("w") as errors, connect_server(tmp_path, proxy.target, {}) as first:
        job = subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert job.stdin is not None
        assert job.stdout is not None
        done = threading.Event()
        assert job.stdout.readline() == "connection\n", (tmp_path / "err").read_text()[-4000:]

        def cut() -> None:
            while not done.wait(0.5):
                proxy.cut()

        cutting = threading.Thread(target=cut)
        cutting.start()
        try:
            job.stdin.write("\n")
            job.stdin.flush()
            said = job.stdout.readline()
        finally:
            done.set()
            cutting.join()
        assert said == "server\n", (tmp_path / "err").read_text()[-4000:]
        assert proxy.cuts >= 4
        first.kill()
        first.wait()
        with connect_server(tmp_path, proxy.target, {}):
            told, _ = job.communicate("\n")
    assert job.returncode == 0, (tmp_path / "err").read_text()[-4000:]
    answer = json.loads(told.splitlines()[-1])
    assert answer["pairs"] == expected()
    assert answer["versions"] == 1
    assert "session" in answer["said"].lower()
    assert answer["another session"] == expected()
    assert answer["its own"] == expected()


def test_a_server_without_tamis_says_what_to_do(tmp_path: Path) -> None:
    """Its Python finds a module that is not there."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "tamis.py").write_text("raise ModuleNotFoundError(\"No module named 'tamis'\")\n")
    port = free_port()
    asked = (
        "import tamis.spark; from pyspark.sql import SparkSession\n"
        f"spark = SparkSession.builder.remote('sc://127.0.0.1:{port}').getOrCreate()\n"
        "rules = spark.createDataFrame([('a', 'x > 1')], 'id string, expression string')\n"
        "try:\n"
        f"    tamis.spark.build(rules, directory={str(tmp_path / 'index')!r})\n"
        "except tamis.TamisError as error:\n"
        "    print(str(error).splitlines()[0][:400])\n"
    )
    path = os.pathsep.join([str(hidden), environment()["PYTHONPATH"]])
    with connect_server(tmp_path, port, {}, PYTHONPATH=path):
        told = subprocess.run(
            [sys.executable, "-c", asked], env=environment(), capture_output=True, text=True, check=False
        )
    assert told.returncode == 0, told.stderr[-4000:]
    assert "the Python of the executors lacks tamis" in told.stdout
