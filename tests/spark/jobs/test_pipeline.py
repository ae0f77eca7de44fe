"""The example for Spark Declarative Pipelines, run by Spark's own command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
COMMAND = Path(sys.executable).with_name("spark-pipelines")


def test_the_example_runs(spark: Any, tmp_path: Path) -> None:
    if not COMMAND.exists():
        pytest.skip("the installed PySpark has no command spark-pipelines")
    project = tmp_path / "pipeline"
    shutil.copytree(ROOT / "examples" / "declarative-pipeline", project)
    storage = str(tmp_path / "storage")
    for file in (project / "spark-pipeline.yml", project / "transformations" / "matches.py"):
        file.write_text(file.read_text().replace("/tmp/tamis-declarative-pipeline", storage))
    home = ROOT / ".tools" / "java"
    own = {"JAVA_HOME": str(home)} if (home / "bin" / "java").exists() else {}
    warehouse = f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}"
    settings = ["--conf", warehouse, "--conf", "spark.ui.enabled=false"]
    answer = subprocess.run(
        [str(COMMAND), *settings, "run"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, **own, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    best = spark.read.parquet(str(tmp_path / "warehouse" / "best_match")).collect()
    assert {(row.event_id, row.subscription, row.rank) for row in best} == {(1, "ad-7", 1), (2, "ad-8", 1)}
    counted = spark.read.parquet(str(tmp_path / "warehouse" / "matches_per_rule")).collect()
    assert {(row.subscription, row.events) for row in counted} == {("ad-7", 1), ("ad-8", 1)}
