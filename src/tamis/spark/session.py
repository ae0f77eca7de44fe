"""The few functions that need a Spark session, classic or Connect: nothing here needs the JVM."""

import atexit
import json
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PythonException

from tamis import errors
from tamis.errors import ArgumentError, TamisError
from tamis.spark.plans.memory import ExecutorMemory, executor_memory, room_for_index
from tamis.spark.release import own_release, refuse_other_release
from tamis.store.directory import open_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

DIRECTORY_SETTING = "spark.tamis.directory"
REPORTS_SETTING = "spark.tamis.reports"


def on_executor(spark: "SparkSession", work: Callable[[], Any]) -> Any:
    """Run `work` in one task and return its result, as JSON: a client may share no disk with it."""

    drivers = own_release()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_release(drivers)
        for _ in batches:
            yield pa.record_batch({"result": [json.dumps(work())]})

    [row] = collected(spark.range(1).coalesce(1).mapInArrow(task, "result string"))
    return json.loads(row["result"])


@dataclass(frozen=True)
class Cluster:
    """What a session runs on: tasks side by side, and the bytes that an index may take on a host."""

    tasks: int
    room: int


def cluster(spark: "SparkSession") -> Cluster:
    """Ask the executors, once for each session."""
    known: Cluster | None = spark.__dict__.get("_tamis_cluster")
    if known is None:
        # One row for each task that Spark itself would split a range into.
        rows = collected(spark.range(1 << 16).mapInArrow(_look_around, "seen string"))
        seen = [ExecutorMemory(*json.loads(row["seen"])) for row in rows]
        known = Cluster(max(1, len(seen)), room_for_index(seen))
        spark.__dict__["_tamis_cluster"] = known
    return known


def collected(rows: "DataFrame") -> list["Row"]:
    """The rows that tasks of ours return; their errors are raised again with their original type."""
    try:
        return rows.collect()
    except PythonException as error:
        raise _explained(error) from error


def _explained(error: PythonException) -> Exception:
    """An error of a task as the error that it was, or what to do when the executors are not ready for us."""
    pattern = r"^tamis\.errors\.(\w+): (.*?)(?=\s+SQLSTATE|^\s+at |\Z)"
    ours = re.search(pattern, str(error), re.DOTALL | re.MULTILINE)
    kind = getattr(errors, ours[1], None) if ours else None
    if ours and kind is not None and not issubclass(kind, errors.ExpressionError):
        told: Exception = kind(ours[2].strip())
        return told
    if "No module named" not in str(error):
        return error
    return TamisError(
        "the Python of the executors lacks tamis or something that it needs. On one host, set the "
        f"environment variable PYSPARK_PYTHON={sys.executable} before the Spark session starts; on a "
        f"cluster, install the package on every host or ship it with spark.archives. Spark says:\n{error}"
    )


def _look_around(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if sum(batch.num_rows for batch in batches):
        yield pa.record_batch({"seen": [json.dumps(executor_memory())]})


def setting(spark: "SparkSession", name: str) -> str | None:
    """A setting of the session, or None."""
    value: str | None = spark.conf.get(name, None)
    return value


_UTC = {"utc", "gmt", "z", "+00:00", "etc/utc", "etc/gmt"}


def odd_zone(spark: "SparkSession", attributes: Mapping[str, Sequence[str]]) -> list[str]:
    """What to know where rules compare times and the session is not in UTC: Spark reads them otherwise."""
    zone = setting(spark, "spark.sql.session.timeZone") or "UTC"
    timed = sorted(name for name, kinds in attributes.items() if "timestamp" in kinds)
    if not timed or zone.lower() in _UTC:
        return []
    return [
        f"rules read times of {timed[0]} in UTC, and this session is in {zone}, where Spark's own SQL reads "
        "TIMESTAMP '2026-01-31 12:00:00' and hour(ts) otherwise. Write the offset, TIMESTAMP '2026-01-31 "
        f"12:00:00+01:00', or hour(from_utc_timestamp(ts, '{zone}')), or set spark.sql.session.timeZone=UTC"
    ]


def wants_reports(spark: "SparkSession") -> bool:
    """Whether the tasks of a session's queries write reports next to the index."""
    return (setting(spark, REPORTS_SETTING) or "true").lower() != "false"


def snapshot_directory(spark: "SparkSession", given: str | os.PathLike[str] | None) -> str:
    """Where to keep snapshots: as given, as configured, or a temporary folder when there is only one host."""
    if given is not None:
        return open_directory(given).url
    configured = setting(spark, DIRECTORY_SETTING)
    if configured:  # a folder of its own: whoever follows another index there must not meet this one
        return f"{open_directory(configured).url}/{uuid.uuid4().hex[:12]}"
    master = setting(spark, "spark.master") or ""
    if not master.startswith("local"):
        raise ArgumentError(
            f"the executors of {master or 'this session'} need a directory that all of them reach, to read "
            f'the index from: pass directory="s3://..." (or a path that every host mounts), or set '
            f"{DIRECTORY_SETTING}"
        )
    folder = os.path.join(tempfile.gettempdir(), f"tamis-{os.getuid()}-{uuid.uuid4().hex[:12]}")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
