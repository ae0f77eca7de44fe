"""A Kafka broker for the tests, on loopback, in a temporary folder, and connectors for Spark.

What is needed is fetched once into `.tools`: Kafka and Spark's connectors for it and for Delta Lake from
Maven. Where that cannot be had, the tests that need it are skipped, and say why.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servers import TOOLS, answers, attempt, free_port, stop, wait_for

KAFKA_VERSION = "4.1.1"

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


def java() -> str:
    own = TOOLS / "java" / "bin" / "java"
    found = str(own) if own.exists() else shutil.which("java")
    if found is None:
        pytest.skip("there is no Java")
    return found


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


def folder_of(connector: str) -> str:
    """Where the connector for the installed release of Spark is kept."""
    from pyspark import __version__ as release

    return f"{connector}-{release.rpartition('.')[0]}"


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
    """Settings with which Spark has the connector for Kafka that `tamis.spark.connectors.jars` pins.

    Its helper for authentication is fetched in a version that mirrors have; the broker here asks for none.
    """
    from tamis.spark.connectors.jars import connector

    [coordinates] = connector("kafka").packages
    scala = coordinates.split(":")[1].rpartition("_")[2]
    helper = f"spark-token-provider-kafka-0-10_{scala}"
    without = "".join(EXCLUSION.format(SPARK, name) for name in (helper, f"spark-tags_{scala}"))
    exclusions = f"<exclusions>{without}</exclusions>"
    version = "4.1.0-preview1" if scala == "2.13" else "3.5.7"
    wanted = [(*coordinates.split(":"), exclusions), (SPARK, helper, version, NOTHING_MORE)]
    dependencies = "".join(DEPENDENCY.format(*each) for each in wanted)
    jars = fetch(folder_of("kafka-connector"), dependencies, tmp_path_factory.mktemp("kafka-connector"))
    return {"spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))), "spark.jars.packages": ""}


@pytest.fixture(scope="session")
def delta_connector(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings with which Spark has the connector for Delta Lake that `tamis.spark.connectors.jars` pins."""
    from tamis.spark.connectors.jars import ConnectorError, connector

    try:
        [coordinates], settings = connector("delta")
    except ConnectorError as error:
        pytest.skip(str(error))
    exclusions = f"<exclusions>{EXCLUSION.format(SPARK, '*')}</exclusions>"
    dependencies = DEPENDENCY.format(*coordinates.split(":"), exclusions)
    jars = fetch(folder_of("delta-connector"), dependencies, tmp_path_factory.mktemp("delta-connector"))
    return {**dict(settings), "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar"))))}


@pytest.fixture(scope="session")
def iceberg_jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Iceberg's runtime for Spark, as `spark.jars` takes it."""
    runtime = ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0", "")
    jars = fetch("iceberg-runtime", DEPENDENCY.format(*runtime), tmp_path_factory.mktemp("iceberg-runtime"))
    return ",".join(map(str, sorted(jars.glob("*.jar"))))


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a name node with one data node, of the release that Spark has the client of."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    spark_jars = Path(pyspark.__file__).parent / "jars"
    [client] = spark_jars.glob("hadoop-client-api-*.jar")
    [bridge] = spark_jars.glob("py4j-*.jar")
    release = client.stem.removeprefix("hadoop-client-api-")
    wanted = [
        ("org.apache.hadoop", "hadoop-client-minicluster", release, NOTHING_MORE),
        ("org.mockito", "mockito-core", "2.28.2", NOTHING_MORE),
    ]
    dependencies = "".join(DEPENDENCY.format(*each) for each in wanted)
    jars = fetch("hadoop-minicluster", dependencies, tmp_path_factory.mktemp("hadoop-classpath"))
    port = launch_gateway(
        classpath=f"{jars}/*:{spark_jars}/*", jarpath=str(bridge), java_path=java(), die_on_exit=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    settings = gateway.jvm.org.apache.hadoop.conf.Configuration()
    settings.set("hdfs.minidfs.basedir", str(tmp_path_factory.mktemp("hdfs")))
    builder = getattr(gateway.jvm, "org.apache.hadoop.hdfs.MiniDFSCluster$Builder")
    cluster = builder(settings).numDataNodes(1).build()
    try:
        yield str(cluster.getFileSystem().getUri().toString())
    finally:
        cluster.shutdown()
        gateway.shutdown()


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
