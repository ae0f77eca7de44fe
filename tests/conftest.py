"""What all tests share: Hypothesis profiles, and one Spark and one DuckDB session for the whole run."""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from local_frames import created_from_arrow
from servers import bucket, nats, nats_program, object_store  # noqa: F401 - fixtures

# Unless the Makefile has said otherwise: the Java that it found or installed.
JAVA_HOME = Path(__file__).parent.parent / ".tools" / "java"

# Optimising Java, and verifying Spark's own classes, would take more time from short tests than it saves.
os.environ.setdefault(
    "JAVA_TOOL_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)

# Logs wait for the disk at every write. The tests write to memory, where the machine has room for that.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# "quick" is the same on every run, so that a change is judged by what it changed; "thorough" is not.
quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "quick", deadline=None, derandomize=True, max_examples=60, suppress_health_check=quiet
)
settings.register_profile("thorough", deadline=None, max_examples=5000, suppress_health_check=quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of what the installed Spark does not have."""
    marked = {item: mark.args[0] for item in items if (mark := item.get_closest_marker("spark_since"))}
    if not marked:
        return
    from pyspark import __version__

    installed = tuple(int(part) for part in __version__.split(".")[:2])
    later = {item for item, release in marked.items() if tuple(map(int, release.split("."))) > installed}
    if later:
        config.hook.pytest_deselected(items=list(later))
        items[:] = [item for item in items if item not in later]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share files among processes, and Spark sessions among files."""
    from scheduling import SparkFilesTogether

    return SparkFilesTogether(config, log)


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay until the end: no garbage collection has to look at them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local Spark session in UTC, small and quiet."""
    if (JAVA_HOME / "bin" / "java").exists():
        os.environ.setdefault("JAVA_HOME", str(JAVA_HOME))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("tamis-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling costs more than these queries
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    if int(session.version.split(".")[0]) >= 4:  # earlier releases take no Arrow tables
        session.createDataFrame = created_from_arrow(session.createDataFrame)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def duck() -> Iterator[Any]:
    """An in-memory DuckDB.

    Only functions import it: a test's module may outlive the interpreter, and DuckDB would then complain of
    that after pytest's last line.
    """
    import duckdb

    with duckdb.connect() as connection:
        yield connection
