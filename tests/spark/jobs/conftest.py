"""Real servers for the tests: a NATS server and a Kafka broker, on loopback, in temporary folders.

What they need is fetched once into `.tools`: `nats-server` from the distribution's package, Kafka and Spark's
connectors for it and for Delta Lake from Maven. Where that cannot be had, the tests that need it are skipped,
and say why.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".tools"
KAFKA_VERSION = "4.1.1"
SECONDS_TO_START = 60

# Data sources in Python are opened by processes that Spark starts by this name.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tamis</groupId><artifactId>{artifact}-classpath</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
SPARK = "org.apache.spark"
DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
)
EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"
NOTHING_MORE = "<exclusions>" + EXCLUSION.format("*", "*") + "</exclusions>"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def java() -> str:
    own = TOOLS / "java" / "bin" / "java"
    found = str(own) if own.exists() else shutil.which("java")
    if found is None:
        pytest.skip("there is no Java")
    return found


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
def nats_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    own = TOOLS / "nats" / "nats-server"
    if found := shutil.which("nats-server"):
        return found
    if not own.exists():
        if shutil.which("apt-get") is None:
            pytest.skip("there is no nats-server on the PATH, and no apt-get to fetch one with")
        folder = tmp_path_factory.mktemp("nats-package")
        attempt(["apt-get", "download", "nats-server"], folder)
        attempt(["dpkg", "-x", str(next(folder.glob("*.deb"))), "."], folder)
        own.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(next(path for path in folder.glob("usr/*bin/nats-server")), own)
    return str(own)


class Nats:
    """A NATS server, and the few things that tests do to it directly."""

    def __init__(self, url: str) -> None:
        self.url = url

    def _session(self) -> Any:
        from tamis.spark.nats_session import NatsSession

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
    folder = tmp_path_factory.mktemp("nats")
    port, log = free_port(), folder / "log"
    command = [nats_program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "store")]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(lambda: answers(port), process, log)
        yield Nats(f"nats://127.0.0.1:{port}")
    finally:
        stop(process)


def fetch(name: str, dependencies: str, folder: Path) -> Path:
    """Jars of Maven artifacts with all that they need, in a folder of their own."""
    target = TOOLS / name
    complete = target / ".complete"
    if not complete.exists() or complete.read_text() != dependencies:
        if shutil.which("mvn") is None:
            pytest.skip(f"there is no mvn to fetch {name} with")
        (folder / "pom.xml").write_text(POM.format(artifact=name, dependencies=dependencies))
        shutil.rmtree(target, ignore_errors=True)
        options = [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
        attempt(["mvn", "-q", "-B", "dependency:copy-dependencies", *options], folder)
        complete.write_text(dependencies)
    return target


@pytest.fixture(scope="session")
def kafka_jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Apache Kafka's own jars."""
    wanted = [
        ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION, ""),
        ("org.apache.kafka", "kafka-tools", KAFKA_VERSION, ""),
        ("org.slf4j", "slf4j-simple", "1.7.36", ""),
    ]
    dependencies = "".join(DEPENDENCY.format(*each) for each in wanted)
    return fetch("kafka", dependencies, tmp_path_factory.mktemp("kafka-classpath"))


@pytest.fixture(scope="session")
def kafka_connector(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings with which Spark has the connector for Kafka that `tamis.spark.connectors` pins.

    Its helper for authentication is fetched in a version that mirrors have; the broker here asks for none.
    """
    from tamis.spark.connectors import connector

    [coordinates] = connector("kafka").packages
    helper = "spark-token-provider-kafka-0-10_2.13"
    without = "".join(EXCLUSION.format(SPARK, name) for name in (helper, "spark-tags_2.13"))
    exclusions = f"<exclusions>{without}</exclusions>"
    wanted = [(*coordinates.split(":"), exclusions), (SPARK, helper, "4.1.0-preview1", NOTHING_MORE)]
    dependencies = "".join(DEPENDENCY.format(*each) for each in wanted)
    jars = fetch("kafka-connector", dependencies, tmp_path_factory.mktemp("kafka-connector"))
    return {"spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))), "spark.jars.packages": ""}


@pytest.fixture(scope="session")
def delta_connector(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings with which Spark has the connector for Delta Lake that `tamis.spark.connectors` pins."""
    from tamis.spark.connectors import ConnectorError, connector

    try:
        [coordinates], settings = connector("delta")
    except ConnectorError as error:
        pytest.skip(str(error))
    exclusions = f"<exclusions>{EXCLUSION.format(SPARK, '*')}</exclusions>"
    dependencies = DEPENDENCY.format(*coordinates.split(":"), exclusions)
    jars = fetch("delta-connector", dependencies, tmp_path_factory.mktemp("delta-connector"))
    return {**dict(settings), "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar"))))}


class Kafka:
    """A Kafka broker, and its command-line tools."""

    def __init__(self, servers: str, jars: Path) -> None:
        self.servers = servers
        self.jars = jars

    def tool(self, name: str, *arguments: str, given: str | None = None) -> str:
        command = [java(), "-cp", f"{self.jars}/*", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", name]
        result = subprocess.run(
            [*command, "--bootstrap-server", self.servers, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr[-3000:]
        return result.stdout

    def create(self, topic: str, partitions: int = 2) -> None:
        self.tool(
            "org.apache.kafka.tools.TopicCommand",
            "--create",
            "--topic",
            topic,
            "--partitions",
            str(partitions),
        )

    def publish(self, topic: str, texts: list[str]) -> None:
        self.tool("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, given="\n".join(texts) + "\n")

    def consume(self, topic: str, count: int) -> list[str]:
        """So many messages, by Kafka's own consumer."""
        arguments = [
            "--topic",
            topic,
            "--from-beginning",
            "--max-messages",
            str(count),
            "--timeout-ms",
            "60000",
        ]
        consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        return self.tool(consumer, *arguments).splitlines()


@pytest.fixture(scope="session")
def kafka(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder = tmp_path_factory.mktemp("kafka")
    port, controller, log = free_port(), free_port(), folder / "log"
    (folder / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        f"log.dirs={folder / 'data'}\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        "group.initial.rebalance.delay.ms=0\n"
    )
    run = [java(), "-Xmx384m", "-cp", f"{kafka_jars}/*", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    formatting = ["format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", "server.properties"]
    subprocess.run(
        [*run, "kafka.tools.StorageTool", *formatting],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=120,
    )
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*run, "kafka.Kafka", "server.properties"], cwd=folder, stdout=output, stderr=output
        )
    try:
        wait_for(lambda: answers(port), process, log)
        yield Kafka(f"127.0.0.1:{port}", kafka_jars)
    finally:
        stop(process)


@pytest.fixture
def tamis_command() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs `tamis` as a process of its own."""

    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        home = TOOLS / "java"
        own = {"JAVA_HOME": str(home)} if (home / "bin" / "java").exists() else {}
        return subprocess.run(
            [sys.executable, "-m", "tamis.cli", *arguments],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            env={**os.environ, **own, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        )

    return run
