"""What `tamis spark init` writes is a pipeline that runs, and goes on where it stopped."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark.test_clusters import environment
from spark.test_stream_recovery import end
from tamis.spark.template import pipeline


def init(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tamis.cli", "spark", "init", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(folder: Path) -> str:
    command = [sys.executable, str(folder / "pipeline.py")]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


def counted(folder: Path) -> list[dict[str, Any]]:
    """What the micro-batches counted, but for rules with memory, which Spark 3.5 lacks."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["step"] != "alerts_with_memory"]


def test_a_pipeline_is_written_once(tmp_path: Path) -> None:
    written = init(tmp_path / "alerts")
    assert written.returncode == 0, written.stderr
    compile((tmp_path / "alerts" / "pipeline.py").read_text(), "pipeline.py", "exec")
    assert "pipeline.py" in written.stdout
    again = init(tmp_path / "alerts")
    assert again.returncode == 2
    assert "already has README.md, pipeline.py" in again.stderr


def test_a_line_that_was_cut_off_is_no_obstacle(tmp_path: Path) -> None:
    lines = ['{"step": "events", "micro_batch": 0, "events_read": 3}', '{"step": "ev']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert pipeline.metrics(tmp_path) == [{"step": "events", "micro_batch": 0, "events_read": 3}]


def arrive(folder: Path, number: int, rows: int) -> None:
    (folder / "events").mkdir(exist_ok=True)
    lines = (json.dumps({"x": row}) for row in range(rows))
    (folder / "events" / f"{number}.json").write_text("\n".join(lines))


def wait_for_counts(folder: Path, step: str, micro_batches: int, job: Any = None) -> list[dict[str, Any]]:
    """Those of a step, once there are so many; pytest's own limit ends it if they never come."""
    while True:
        there = (folder / "metrics.jsonl").exists()
        rows = [row for row in counted(folder) if row["step"] == step] if there else []
        if len(rows) >= micro_batches:
            return rows
        assert job is None or job.poll() is None, (folder / "err").read_text()[-4000:]
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.thorough
def test_micro_batches_are_counted_while_a_query_runs_and_when_it_fails(spark: Any, tmp_path: Path) -> None:
    """A query that never ends, stopped; and one whose second micro-batch fails: the others are counted."""
    arrive(tmp_path, 0, rows=3)
    events = spark.readStream.schema("x int").option("maxFilesPerTrigger", 1).json(str(tmp_path / "events"))
    observed = events.observe("events", sf.count("*").alias("events_read"))
    with pipeline.written_metrics(spark, tmp_path) as metrics:
        writer = observed.writeStream.format("noop")
        query = pipeline._start(writer, tmp_path, {"processingTime": "0 seconds"}, "endless")
        assert wait_for_counts(tmp_path, "endless", 1) == [
            {"step": "endless", "micro_batch": 0, "events_read": 3}
        ]
        arrive(tmp_path, 1, rows=2)
        assert wait_for_counts(tmp_path, "endless", 2)[1]["events_read"] == 2
        assert query.isActive
        query.stop()
        metrics.wait_for(query)

        def fail(_batch: DataFrame, number: int) -> None:
            _batch.collect()
            if number == 1:
                raise RuntimeError("the second")

        failing = pipeline._start(observed.writeStream.foreachBatch(fail), tmp_path, pipeline.ONCE, "failing")
        with pytest.raises(StreamingQueryException, match="the second"):
            metrics.wait_for(failing)
    assert [row for row in counted(tmp_path) if row["step"] == "failing"] == [
        {"step": "failing", "micro_batch": 0, "events_read": 3}
    ]


@pytest.mark.slow
@pytest.mark.spark
def test_a_service_is_killed_and_has_counted(spark: Any, tmp_path: Path) -> None:
    """All steps run side by side; what they counted is there when the driver is killed with -9."""
    init(tmp_path)
    with (tmp_path / "err").open("w") as errors:
        job = subprocess.Popen(
            [sys.executable, str(tmp_path / "pipeline.py"), "--serve"],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        assert wait_for_counts(tmp_path, "alerts", 1, job)[0]["alerts"] == 5
        later = {"event_id": "e9", "at": "2026-01-01T15:00:00Z", "user": {"id": "u9"}, "amount": 7000}
        (tmp_path / "events" / "second.json").write_text(json.dumps(later))
        assert wait_for_counts(tmp_path, "events", 2, job)[1]["events_read"] == 1
        assert wait_for_counts(tmp_path, "alerts", 2, job)[1]["alerts"] == 1
    finally:
        end(job)
    assert "alerts: 6; rules refused: 1" in run(tmp_path)
    alerts = spark.read.parquet(str(tmp_path / "alerts")).collect()
    assert len({(row.event_id, row.rule) for row in alerts}) == len(alerts) == 6


@pytest.mark.slow
@pytest.mark.spark
def test_the_pipeline_runs_and_goes_on(spark: Any, tmp_path: Path) -> None:
    """Twice: the second time with an hour that is over, a rule that changed and an event that came before."""
    init(tmp_path)
    shown = run(tmp_path)
    assert "alerts: 5; rules refused: 1" in shown
    assert "misspelt: no column of the events holds user.contry (did you mean `user.country`?)" in shown
    first = {
        "event_id": "e1",
        "at": "2026-01-01T10:00:00Z",
        "user": {"id": "u1"},
        "amount": 1200.5,
        "tags": [],
    }
    later = {"event_id": "e9", "at": "2026-01-01T15:00:00Z", "user": {"id": "u9"}, "amount": 70, "tags": []}
    (tmp_path / "events" / "second.json").write_text("\n".join(map(json.dumps, (first, later))))
    change = {"op": "replace", "sequence": 5, "id": "large", "expression": "amount >= 50", "priority": 5.0}
    (tmp_path / "rules" / "second.json").write_text(json.dumps(change))
    # Windows close in a micro-batch without data, of which Spark 3.5 reports no metrics.
    closed = [{"step": "windows", "micro_batch": 1, "windows": 4}] if spark.version >= "4" else []
    assert counted(tmp_path) == [
        {"step": "events", "micro_batch": 0, "events_read": 6, "dead_letters": 1},
        {"step": "alerts", "micro_batch": 0, "matches": 5, "alerts": 5},
        *closed,
    ]
    run(tmp_path)
    assert counted(tmp_path)[2 + len(closed) :] == [
        {"step": "events", "micro_batch": 1, "events_read": 2, "dead_letters": 0},
        {"step": "alerts", "micro_batch": 2, "matches": 1, "alerts": 1},
    ], "the event that had come before makes no alert again"
    alerts = spark.read.parquet(str(tmp_path / "alerts")).collect()
    assert sorted((row.event_id, row.rule, row["rank"], row.rules_version) for row in alerts) == [
        ("e1", "large", 1, 1),
        ("e1", "online", 2, 1),
        ("e3", "gifts", 1, 1),
        ("e3", "online", 2, 1),
        ("e4", "online", 1, 1),
        ("e9", "large", 1, 2),
    ]
    if spark.version >= "4":
        check_memory(spark, tmp_path)
    windows = spark.read.parquet(str(tmp_path / "alerts_per_window")).collect()
    assert sorted((row.start.hour, row.rule, row.alerts, float(row.amount)) for row in windows) == [
        (10, "large", 1, 1200.5),
        (10, "online", 1, 1200.5),
        (11, "gifts", 1, 90.0),
        (11, "online", 1, 90.0),
    ]
    dead = [row.value for row in spark.read.parquet(str(tmp_path / "dead_letters")).collect()]
    assert dead == ["this line is no event"]
    page = (tmp_path / "report.html").read_text()
    assert "online" in page
    assert "<th>dead letters</th>" in page


def check_memory(spark: Any, folder: Path) -> None:
    told = spark.read.parquet(str(folder / "alerts_with_memory")).collect()
    seen = sorted(
        (row.query, row.kind, [json.loads(event)["event_id"] for event in row.events]) for row in told
    )
    assert seen == [("abroad", "+", ["e1", "e3"]), ("spree", "+", ["e3"])]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    counts = [row for row in rows if row["step"] == "alerts_with_memory"]
    assert [row["alerts_with_memory"] for row in counts if row["alerts_with_memory"]] == [2]
    assert sum(row["late"] for row in counts) == 1, "the event that came again, five hours late"
