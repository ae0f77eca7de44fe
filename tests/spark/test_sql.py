"""The SQL functions where a worker's clock is not UTC, and what keeps their version from being collected."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql.types import (
    LongType,
    Row,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import tamis
from tamis.spark.building.on_executors import put_index
from tamis.spark.sql import Asked, MatchTable, matches
from tamis.spark.store.directory import open_directory
from tamis.spark.store.versions import Version, publish

NOON_UTC = "at = TIMESTAMP '2026-01-31 12:00:00'"


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def asked(folder: Path, kind: type) -> Asked:
    index = tamis.Index()
    index.add("noon", NOON_UTC)
    directory = open_directory(folder)
    file = put_index(directory, index)
    version = publish(directory, Version(number=1, plan="replicated", ids="string", shards=[[file]]))
    columns = StructType([StructField("event_id", LongType()), StructField("at", kind())])
    return Asked(
        schema=StructType(),
        path=str(folder),
        version=version.to_json().decode(),
        key="event_id",
        columns=columns.json(),
        run="query",
    )


def found(table: MatchTable, at: datetime) -> list[tuple[object, ...]]:
    return [*table.eval(Row(event_id=1, at=at)), *table.terminate()]


def test_local_times_are_times_of_a_zone(new_york: None, tmp_path: Path) -> None:
    """Spark hands a timestamp to Python as the worker's local time: 7 in New York is noon in UTC."""
    table = MatchTable(asked(tmp_path, TimestampType))
    assert found(table, datetime(2026, 1, 31, 7)) == [(1, "noon", 1)]
    assert found(table, datetime(2026, 1, 31, 12)) == []
    assert matches(NOON_UTC, Row(at=datetime(2026, 1, 31, 7))) is True


def test_times_without_a_zone_stay_as_they_are(new_york: None, tmp_path: Path) -> None:
    table = MatchTable(asked(tmp_path, TimestampNTZType))
    assert found(table, datetime(2026, 1, 31, 12)) == [(1, "noon", 1)]
    assert found(table, datetime(2026, 1, 31, 7)) == []


def test_the_version_is_leased(tmp_path: Path) -> None:
    MatchTable(asked(tmp_path, TimestampType))
    directory = open_directory(tmp_path)
    [lease] = directory.list("leases")
    assert lease.startswith("query-")
    assert lease.endswith("@1")
