"""Real clusters: executors in processes of their own, Connect, and what happens when parts of them die."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark.cluster_job import expected

pytestmark = pytest.mark.spark

JOB = Path(__file__).with_name("cluster_job.py")


def environment(**more: str) -> dict[str, str]:
    import pyspark

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(JOB.parent.parent),
        **more,
    }


def submitted(master: str, folder: Path, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    """Start the job under spark-submit's settings; its output goes to files in the folder."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "600m",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    options = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    return subprocess.Popen(
        [sys.executable, str(JOB), "--directory", str(folder / "index"), *arguments],
        env=environment(PYSPARK_SUBMIT_ARGS=f"--master {master} {options} pyspark-shell"),
        stdout=(folder / "out").open("w"),
        stderr=(folder / "err").open("w"),
        text=True,
        start_new_session=True,
    )


def answer(job: subprocess.Popen[str], folder: Path) -> dict[str, Any]:
    code = job.wait()
    assert code == 0, (folder / "err").read_text()[-4000:]
    shown: dict[str, Any] = json.loads((folder / "out").read_text().splitlines()[-1])
    return shown


def check(found: dict[str, Any]) -> None:
    assert found["pairs"] == expected()
    per_event: dict[int, int] = {}
    for event, _ in expected():
        per_event[event] = per_event.get(event, 0) + 1
    assert found["best"] == sum(min(2, count) for count in per_event.values())


def until(condition: Any, job: subprocess.Popen[str], folder: Path) -> None:
    while not condition():
        assert job.poll() is None, (folder / "err").read_text()[-4000:]
        time.sleep(0.1)


def descendants(root: int) -> dict[int, str]:
    """The processes below one, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found: dict[int, str] = {}
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        for process, of in parents.items():
            if of == parent:
                waiting.append(process)
                try:
                    found[process] = (Path("/proc") / str(process) / "cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
    return found


@pytest.mark.slow
def test_executors_in_their_own_processes(tmp_path: Path) -> None:
    check(answer(submitted("local-cluster[2,1,1024]", tmp_path), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [["--plan", "replicated"], ["--plan", "sharded", "--shards", "3"]])
def test_a_driver_that_takes_little(tmp_path: Path, plan: list[str]) -> None:
    """Reports and a sample come to the driver, but neither rules nor matches, unless they are collected."""
    more = ["--more", "60000", "--tasks", "4"]
    check(answer(submitted("local[2]", tmp_path, *plan, *more, spark_driver_maxResultSize="2m"), tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        (["0"], "device         cpu: Spark gave GPU 0, but "),
        (["MIG-1"], "device         cpu: Spark gave GPU 'MIG-1', which is not the number of a device"),
    ],
)
def test_gpus_that_spark_gives(tmp_path: Path, addresses: list[str], said: str) -> None:
    """A discovery script names a GPU, and Spark gives it to tasks. What it names here cannot be used."""
    script = tmp_path / "gpus.sh"
    described = json.dumps({"name": "gpu", "addresses": addresses})
    script.write_text(f"#!/bin/sh\necho '{described}'\n")
    script.chmod(0o755)
    settings = {
        "spark_worker_resource_gpu_amount": "1",
        "spark_worker_resource_gpu_discoveryScript": str(script),
        "spark_executor_resource_gpu_amount": "1",
        "spark_task_resource_gpu_amount": "1",
    }
    with_gpu = answer(submitted("local-cluster[1,1,1024]", tmp_path, **settings), tmp_path)
    check(with_gpu)
    assert said in with_gpu["plan"] or "device         GPU 0, " in with_gpu["plan"]


def through_connect(folder: Path, job: Path, *arguments: str) -> dict[str, Any]:
    """What a program shows that starts a Connect server and is its client."""
    with (folder / "err").open("w") as errors:
        shown = subprocess.run(
            [sys.executable, str(job), *arguments],
            env=environment(SPARK_REMOTE="local[2]"),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
    assert shown.returncode == 0, (folder / "err").read_text()[-4000:]
    last: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    return last


@pytest.mark.thorough
@pytest.mark.spark_since("4.0")  # the package of 3.5 has no server
def test_connect(tmp_path: Path) -> None:
    """The same program, unchanged, through a Connect server that it starts."""
    check(through_connect(tmp_path, JOB, "--plan", "sharded", "--shards", "3", "--tasks", "4"))


@pytest.mark.slow
@pytest.mark.spark_since("4.1")
def test_what_a_connect_client_may_ask(tmp_path: Path) -> None:
    """Functions, streams, history, flows, another session; errors of the server are raised as ours."""
    matches = [[2, "a"], [3, "a"], [3, "b"]]
    assert through_connect(tmp_path, JOB.with_name("connect_job.py"), str(tmp_path)) == {
        "match": matches,
        "match_column": matches,
        "register_match": matches,
        "tamis_match": matches,
        "tamis_matches": True,
        "backtest": [["a", 2], ["b", 1]],
        "flow": 2,
        "errors": ["SnapshotError", "SnapshotError", "InvalidSubscriptionsError"],
        "two sessions": [[7, "a"], [7, "c"]],
        "stream": [[1, "a"]],
        "foreachBatch": [[1, "a"]],
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Standalone:
    """A Master and two Workers, as processes on loopback; to Spark, each Worker is a host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        port = self.url.rsplit(":", 1)[1]
        options = ["--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
        self.master = self._start("master", "org.apache.spark.deploy.master.Master", *options)
        until(lambda: "New state: ALIVE" in self.log("master"), self.master, folder)
        self.workers = [self._worker(number) for number in range(2)]
        registered = "Successfully registered with master"
        for number, worker in enumerate(self.workers):
            until(lambda number=number: registered in self.log(f"worker{number}"), worker, folder)

    def _worker(self, number: int) -> subprocess.Popen[str]:
        host = f"127.0.0.{number + 1}"
        options = ["--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        work = ["--work-dir", str(self.folder / f"work{number}"), self.url]
        return self._start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *options, *work)

    def _start(self, name: str, *command: str) -> subprocess.Popen[str]:
        launcher = Path(environment()["SPARK_HOME"]) / "bin" / "spark-class"
        return subprocess.Popen(
            [str(launcher), *command],
            env=environment(
                SPARK_DAEMON_MEMORY="256m", SPARK_WORKER_OPTS="-Dspark.decommission.enabled=true"
            ),
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / f"{name}.log").open("w"),
            text=True,
            start_new_session=True,
        )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def stop(self) -> None:
        for process in [*self.workers, self.master]:
            for child in descendants(process.pid):
                kill(child)
            kill(process.pid)
            process.wait()


def kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    cluster = Standalone(tmp_path)
    yield cluster
    cluster.stop()


@pytest.mark.slow
def test_a_worker_and_a_python_process_are_killed(standalone: Standalone, tmp_path: Path) -> None:
    job = submitted(standalone.url, tmp_path, "--slow", spark_executor_cores="1")
    until(lambda: "built" in (tmp_path / "out").read_text(), job, tmp_path)
    time.sleep(2.0)  # tasks are dawdling now
    python = [
        process
        for process, command in descendants(standalone.workers[0].pid).items()
        if "pyspark" in command and "daemon" in command
    ]
    assert python
    kill(max(python))
    time.sleep(1.0)
    victim = standalone.workers[1]
    for child in descendants(victim.pid):
        kill(child)
    kill(victim.pid)
    check(answer(job, tmp_path))


@pytest.mark.slow
def test_slow_tasks_run_twice(standalone: Standalone, tmp_path: Path) -> None:
    """Speculation: no match is doubled, and nothing is published or applied twice."""
    with (tmp_path / "err").open("w") as errors:
        command = [sys.executable, str(JOB.with_name("speculation_job.py")), str(tmp_path), standalone.url]
        shown = subprocess.run(
            command, env=environment(), stdout=subprocess.PIPE, stderr=errors, text=True, check=False
        )
    assert shown.returncode == 0, (tmp_path / "err").read_text()[-4000:]
    told = json.loads(shown.stdout.splitlines()[-1])
    assert told["pairs"] == expected()
    by_x = {x: [id for id in range(50) if id == x and id != 7] + [100] * (x > 48) for x in range(50)}
    assert told["stream"] == [[event, id, 2] for event in range(100) for id in by_x[event % 50]]
    assert (told["versions"], told["sharded versions"]) == (2, 1)
    assert {"apply", "build", "sharded", "stream"} <= set(told["second attempts"])


@pytest.mark.slow
@pytest.mark.spark_since("4.1")
def test_executors_come_and_are_sent_away(standalone: Standalone, tmp_path: Path) -> None:
    """Dynamic allocation, and a Worker that is decommissioned while its tasks run."""
    settings = {
        "spark_executor_cores": "1",
        "spark_dynamicAllocation_enabled": "true",
        "spark_dynamicAllocation_shuffleTracking_enabled": "true",
        "spark_dynamicAllocation_minExecutors": "0",
        "spark_dynamicAllocation_executorIdleTimeout": "2s",
        "spark_dynamicAllocation_schedulerBacklogTimeout": "1s",
        "spark_decommission_enabled": "true",
        "spark_storage_decommission_enabled": "true",
        "spark_storage_decommission_shuffleBlocks_enabled": "true",
    }
    sharded = ["--plan", "sharded", "--shards", "3", "--slow"]
    job = submitted(standalone.url, tmp_path, *sharded, **settings)
    until(lambda: "built" in (tmp_path / "out").read_text(), job, tmp_path)
    time.sleep(2.0)  # tasks are dawdling now
    os.kill(standalone.workers[1].pid, signal.SIGPWR)
    check(answer(job, tmp_path))
    assert "Decommission" in standalone.log("worker1")
