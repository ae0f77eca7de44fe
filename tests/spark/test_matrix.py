"""The oldest and the newest release of Spark, on a few tests; `make test-spark-matrix` runs all on each."""

import subprocess
import sys

import pytest

import spark_matrix

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SMOKE = ["tests/spark/test_store.py::test_streams_follow_the_versions", "tests/spark/test_history.py"]


@pytest.mark.parametrize("release", [min(spark_matrix.RELEASES), max(spark_matrix.RELEASES)])
def test_smoke(release: str) -> None:
    script = spark_matrix.ROOT / "tools" / "spark_matrix.py"
    command = [sys.executable, str(script), release, "--tests", *SMOKE]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]


def test_an_unknown_release_is_refused() -> None:
    script = spark_matrix.ROOT / "tools" / "spark_matrix.py"
    ended = subprocess.run([sys.executable, str(script), "2.4"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "unknown releases: 2.4; known are 3.5" in ended.stderr
