"""Delta Lake as a source and sink, batch and streaming, and its files read by tasks; its own connector."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
import tamis.spark

pytestmark = pytest.mark.spark

JOB = Path(__file__).with_name("delta_job.py")


def expected(*more: tuple[int, int]) -> list[list[object]]:
    events = [*((event, event % 10) for event in range(40)), *more]
    wanted = {"a": lambda x: x > 7, "b": lambda x: x == 3}
    return sorted([event, id] for event, x in events for id, holds in wanted.items() if holds(x))


@pytest.mark.slow
def test_delta(tmp_path: Path, delta_connector: dict[str, str]) -> None:
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        **delta_connector,
    }
    with (tmp_path / "err").open("w") as errors:
        shown = subprocess.run(
            [sys.executable, str(JOB), str(tmp_path / "my tables"), json.dumps(settings)],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
    assert shown.returncode == 0, (tmp_path / "err").read_text()[-4000:]
    found = json.loads(shown.stdout.splitlines()[-1])
    assert found["batch"] == expected()
    assert found["stream"] == expected((100, 3))
    assert found["changes"] == [pair for pair in expected() if pair[1] == "a"]
    matched, applied_again, refused = found["followed"]
    wanted = {"a": lambda x: x > 7, "b": lambda x: x == 5, "d": lambda x: x == 6}
    assert matched == sorted(
        [event, id] for event in range(40) for id, holds in wanted.items() if holds(event % 10)
    )
    assert applied_again == 0, "the whole feed again does no harm"
    [[id, error]] = refused
    assert (id, error.partition(":")[0]) == ("bad", "no column of the events holds colour")
    assert found["table"] == [["delta", "delta"], expected()]
    assert found["files"] == expected()
    deleted, parted, mapped = found["refused"]
    assert "1 rows of" in deleted
    assert "deleted but still in its files" in deleted
    assert "partitioned by x" in parted
    assert "column mapping" in mapped


@pytest.mark.slow
def test_a_session_without_delta_refuses_its_files(spark: object, tmp_path: Path) -> None:
    """The folder also holds files that do not count any more."""
    (tmp_path / "_delta_log").mkdir()
    index = tamis.Index()
    index.add("a", "x > 1")
    index.save(tmp_path / "rules.tamis")
    with pytest.raises(tamis.ArgumentError, match=r"is a Delta table.*Start the session with Delta's"):
        tamis.spark.match_files(spark, str(tmp_path), str(tmp_path / "rules.tamis"))  # type: ignore[arg-type]
