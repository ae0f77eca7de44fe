"""The pipeline's benchmark runs, small, and its rivals find the same pairs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import tamis.spark
from tamis_lab.benchmark import pipeline_flink
from tamis_lab.benchmark.pipeline import run
from tamis_lab.benchmark.pipeline_rivals import RIVALS
from tamis_lab.workloads import Equality
from tamis_lab.workloads.spark import generate_events

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_it_measures_and_writes(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(scale=0.005, only=("kernel", "shards", "shapes", "changes"), out=tmp_path, session=spark)
    tables = json.loads((tmp_path / "spark.json").read_text())["tables"]
    assert [row["shards"] for row in tables["Sharded plan"]] == [1, 2, 4, 8, 16]
    assert all(row["spark ev/s"] > 0 for row in tables["Against the kernel alone"])
    assert len(tables["Shapes of answers"]) == 8
    costs = tables["Cost of a change"]
    assert [row["changes before"] for row in costs] == ["0", "1 to 256", "500 and more"]
    assert all(row["processor ms"] > 0 and row["requests"] >= 4 for row in costs)
    assert "Against the kernel alone" in capsys.readouterr().out


@pytest.mark.slow  # fetches Flink the first time
@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason="needs mvn and javac")
def test_flink_finds_the_same_number(spark: Any) -> None:
    row = pipeline_flink.measured(spark, pipeline_flink.class_path(), rules=300, events=20_000)
    found = dict(zip(pipeline_flink.COLUMNS, row, strict=True))
    assert found["matches"] > 0, "it is an error if both differ"
    assert found["flink s"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RIVALS if not name.startswith(("zen", "json-logic"))])
@pytest.mark.thorough
def test_rivals_find_the_same(spark: Any, name: str) -> None:
    workload = Equality(count=200, seed=3)
    table = workload.subscriptions_table()
    events = generate_events(spark, workload, 1000)
    found = RIVALS[name](events, table)
    theirs = {(row[0], row[1]) for row in found.collect()}
    ours = tamis.spark.match(events, spark.createDataFrame(table)).collect()
    assert theirs == {(row.event_id, row.subscription) for row in ours}
    assert ours
