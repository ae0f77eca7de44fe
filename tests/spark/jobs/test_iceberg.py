"""Rules of a real Iceberg table, followed, on the newest Spark that Iceberg has published a runtime for."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import spark_matrix

pytestmark = [pytest.mark.slow, pytest.mark.spark]

JOB = Path(__file__).with_name("iceberg_job.py")
RELEASE = "4.1"


def test_what_iceberg_says_is_followed(tmp_path: Path, iceberg_jars: str) -> None:
    """Insertions, updates, deletions, MERGE, new columns, a rollback, expired snapshots, an overwrite.

    Where rows are deleted by delete files, Iceberg has no list of changes, and snapshots are compared.
    """
    python = spark_matrix.environment(RELEASE, spark_matrix.ROOT / ".tools" / "bin" / "uv")
    variables = {**os.environ, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [python, JOB, tmp_path / "tables", iceberg_jars]
    ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    for steps, refused, matched in json.loads(ended.stdout.splitlines()[-1]):
        applied = [step[0] for step in steps]
        assert [agrees for _, agrees in steps] == [True] * len(steps), steps
        assert applied[:3] == [[0, 0, 0], [3, 0, 1], [0, 0, 0]], "nothing, the table, nothing new"
        assert applied[5] == [1, 0, 0], "what a rewritten file repeats is no change"
        assert refused == ["bad"]
        assert matched == [[0, "h"], [10, "h"]]
