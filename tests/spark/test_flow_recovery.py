"""Driver and workers are killed in mid-stream: rules with memory tell the same as one process."""

import json
import os
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from spark.flows import collected, plain, put
from spark.test_clusters import descendants, kill
from spark.test_stream_recovery import end, finished, start
from tamis.flow import Flow
from tamis.store.rule_store import RuleStore

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.spark_since("4.0")]

JOB = Path(__file__).with_name("flow_job.py")
FILES = 8
"""So that the pins of all micro-batches are there in the end: a store keeps ten."""
LATENESS = 3


def events_of_file(number: int) -> list[dict[str, Any]]:
    choose = random.Random(number)
    return [
        {
            "ts": 1000 + number * 10 + at // 3 - choose.randrange(LATENESS),
            "seq": number * 30 + at,
            "user": choose.choice(["ann", "bob", "eve", "joe", "zoe"]),
            "n": choose.randrange(10),
        }
        for at in range(30)
    ]


def changes_of_file(number: int) -> list[dict[str, Any]]:
    texts = [
        "SEQUENCE (a: n > 5) THEN (b: n < a.n) WITHIN 10s BY user",
        f"sum(n BY user LAST 15s) > {20 + number}",
        "SELECT x.seq, y.seq AS other FROM logins RANGE 4s AS x JOIN logins RANGE 4s AS y "
        "ON x.user = y.user WHERE x.n > y.n + 5",
    ]
    added = {"op": "add", "sequence": 2 * number + 2, "id": f"r{number}", "expression": texts[number % 3]}
    return [added, {"op": "remove", "sequence": 2 * number + 3, "id": f"r{number - 3}"}]


def test_exactly_the_same_output(spark: Any, tmp_path: Path) -> None:
    for number in range(FILES):
        put(tmp_path / "events", number, events_of_file(number))
        put(tmp_path / "changes", number, changes_of_file(number))
    choose = random.Random(11)
    drivers = workers = 0
    for progress, whom in ((1, "worker"), (3, "driver"), (4, "worker"), (5, "driver")):
        job = start(tmp_path, JOB)
        while finished(tmp_path, "checkpoint-told") < progress and job.poll() is None:
            time.sleep(0.05)
        time.sleep(choose.random())  # somewhere inside a micro-batch
        if whom == "worker" and job.poll() is None:
            workers += sum(kill_a_worker(job) for _ in range(2))
            reached = finished(tmp_path, "checkpoint-told") + 1
            while finished(tmp_path, "checkpoint-told") < reached and job.poll() is None:
                time.sleep(0.05)
        if job.poll() is not None:  # all was done already
            assert job.returncode == 0, (tmp_path / "err").read_text()[-4000:]
            continue
        drivers += 1
        end(job)
    assert drivers >= 2
    assert workers >= 1
    job = start(tmp_path, JOB)
    assert job.wait() == 0, (tmp_path / "err").read_text()[-4000:]
    check(spark, tmp_path)


def kill_a_worker(job: subprocess.Popen[bytes]) -> bool:
    """Kill a Python worker, which the daemon forked: the one that is deepest below the driver."""
    found = [pid for pid, command in descendants(job.pid).items() if "pyspark.daemon" in command]
    if len(found) < 2:
        return False
    kill(max(found))
    return True


def check(spark: Any, folder: Path) -> None:
    """One process that changes its queries when the stream did tells the same."""
    told = spark.read.parquet(str(folder / "told"))
    found = collected(
        told.selectExpr("query", "kind", "unix_millis(time) AS time", "row", "events").collect()
    )
    assert found == plain(replayed(folder))
    assert len({query for query, *_ in found}) > 3


def replayed(folder: Path) -> list[Any]:
    """What a flow tells that is given the events and versions which each micro-batch recorded."""
    store = RuleStore(folder / "store")
    [pins] = list((folder / "store" / "pins").iterdir())
    versions = {int(pin.stem): json.loads(pin.read_text())["version"] for pin in pins.iterdir()}
    offsets = folder / "checkpoint-told" / "offsets"
    flow = Flow()
    flow.stream("logins", time="ts")
    waiting: list[dict[str, Any]] = [event for number in range(FILES) for event in events_of_file(number)]
    waiting.sort(key=lambda event: (event["ts"], event["seq"]))
    now = {}
    outputs = []
    clock = 0
    for batch in range(len([name for name in os.listdir(offsets) if name.isdigit()])):
        watermark = json.loads((offsets / str(batch)).read_text().splitlines()[1])["batchWatermarkMs"]
        if watermark <= clock:
            continue
        clock = watermark
        index = store.open(versions[batch])
        wanted = {
            name: json.loads(payload)[0]
            for name, payload in zip(index, index.payloads(list(index)), strict=True)
        }
        for name in [name for name, text in now.items() if wanted.get(name) != text]:
            flow.remove(name)
            del now[name]
        for name in sorted(set(wanted) - set(now)):
            flow.add(name, wanted[name])
            now[name] = wanted[name]
        while waiting and waiting[0]["ts"] * 1000 <= watermark:
            outputs += flow.push("logins", waiting.pop(0))
        outputs += flow.advance(to=watermark / 1000)
    return outputs
