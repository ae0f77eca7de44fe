"""The oldest and the newest release of Spark, on a few tests; `make test-spark-matrix` runs all on each.

The other tests run on the release of the environment, which is a new one.
"""

import subprocess
import sys

import pytest

import spark_matrix

pytestmark = pytest.mark.spark

OLDEST, *_, NEWEST = spark_matrix.RELEASES

FEW = [
    "tests/spark/test_match.py::test_attributes_are_columns_paths_maps_and_spread_maps",
    "tests/spark/test_store.py::test_the_highest_sequence_wins_in_any_order",
]
MORE = [
    *FEW,
    "tests/spark/test_match.py::test_spark_itself_agrees",
    "tests/spark/test_store.py::test_streams_follow_the_versions",
    "tests/spark/test_history.py",
]


@pytest.mark.thorough
def test_the_oldest_release() -> None:
    """The first run downloads 300 MB."""
    status, counted = spark_matrix.run_tests(spark_matrix.environment(OLDEST), FEW, slow=False)
    assert status == 0
    assert counted == f"{len(FEW)} passed"


@pytest.mark.slow
@pytest.mark.parametrize("release", [OLDEST, NEWEST])
def test_more_of_a_release(release: str) -> None:
    script = spark_matrix.ROOT / "tools" / "spark_matrix.py"
    command = [sys.executable, str(script), release, "--tests", *MORE]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]


def test_an_unknown_release_is_refused() -> None:
    script = spark_matrix.ROOT / "tools" / "spark_matrix.py"
    ended = subprocess.run([sys.executable, str(script), "2.4"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "unknown releases: 2.4; known are 3.5" in ended.stderr
