"""The kernel reaches executors as an archive, as docs/spark-jobs.md describes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[3]

PROGRAM = """
import pyarrow as pa
from pyspark.sql import SparkSession
import tamis.spark

spark = SparkSession.builder.getOrCreate()

def where(batches):
    for _ in batches:
        import tamis._kernel
        yield pa.record_batch({"file": [tamis._kernel.__file__]})

[row] = spark.range(1).coalesce(1).mapInArrow(where, "file string").collect()
print("KERNEL", row.file)
rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
print("MATCHES", [(row.event_id, row.subscription) for row in tamis.spark.match(events, rules).collect()])
"""


def test_an_archive_of_the_package(tmp_path: Path) -> None:
    """Executors import from the archive, which comes before what their Python has installed."""
    package = Path(tamis.__file__).parent
    archive = tmp_path / "tamis-env.tar.gz"
    packing = ["tar", "-czf", archive, "--exclude=__pycache__", "-C", package.parent, "tamis"]
    subprocess.run(packing, check=True, timeout=120)
    (tmp_path / "program.py").write_text(PROGRAM)
    home = ROOT / ".tools" / "java"
    own = {"JAVA_HOME": str(home)} if (home / "bin" / "java").exists() else {}
    command = [
        str(Path(sys.executable).with_name("spark-submit")),
        *("--master", "local-cluster[1,1,1024]"),
        *("--archives", f"{archive}#tamis-env"),
        *("--conf", "spark.executorEnv.PYTHONPATH=tamis-env"),
        *("--conf", f"spark.tamis.directory={tmp_path / 'index'}"),
        *("--conf", "spark.ui.enabled=false"),
        str(tmp_path / "program.py"),
    ]
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **own, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    printed = [line for line in answer.stdout.splitlines() if line.startswith(("KERNEL", "MATCHES"))]
    lines = dict(line.split(" ", 1) for line in printed)
    assert "/tamis-env/tamis/_kernel" in lines["KERNEL"]
    assert lines["MATCHES"] == "[(1, 'a')]"
