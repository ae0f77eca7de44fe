"""Jobs that run: every mode, files as sources and sinks, snapshots and stores, batch and streaming."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

import tamis
import tamis.spark
from tamis.spark.jobs import JobReport, parse_job, run_job
from tamis.spark.jobs.progress import Lines

pytestmark = pytest.mark.spark

EVENTS = [
    {"event_id": number, "x": number % 5, "country": "CA" if number % 2 else "US"} for number in range(60)
]
RULES = {"a": "x > 2", "b": "x = 4 AND country = 'CA'", "c": "country = 'US'"}
SCHEMA = "event_id int, x int, country string"
TYPES = pa.schema({"event_id": pa.int32(), "x": pa.int32(), "country": pa.string()})
CHANGES_SCHEMA = "op string, sequence bigint, id string, expression string"
PRIORITY = {"a": 1.0, "b": 3.0, "c": 2.0}


def oracle() -> set[tuple[int, str]]:
    parsed = {id: tamis.parse(text) for id, text in RULES.items()}
    return {
        (event["event_id"], id)
        for event in EVENTS
        for id, expression in parsed.items()
        if expression.evaluate(event) is True
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Events and rules in every format that Spark reads by itself."""
    rules = [{"id": id, "expression": text, "priority": PRIORITY[id]} for id, text in RULES.items()]
    for name, table in (
        ("events", pa.Table.from_pylist(EVENTS, TYPES)),
        ("rules", pa.Table.from_pylist(rules)),
    ):
        for format in ("parquet", "json", "csv"):
            (tmp_path / name / format).mkdir(parents=True)
        pq.write_table(table, tmp_path / name / "parquet" / "part.parquet")
        pa.csv.write_csv(table, tmp_path / name / "csv" / "part.csv")
        lines = "\n".join(json.dumps(row) for row in table.to_pylist())
        (tmp_path / name / "json" / "part.json").write_text(lines)
    return tmp_path


def job_of(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "ads",
        "events": {"format": "parquet", "path": f"{folder}/events/parquet"},
        "subscriptions": {"format": "parquet", "path": f"{folder}/rules/parquet"},
        "sink": {"format": "parquet", "path": f"{folder}/out"},
        **changes,
    }


def run(spark: Any, job: dict[str, Any]) -> JobReport:
    return run_job(parse_job(yaml.safe_dump(job)), spark, Lines(io.StringIO()))


def matches(spark: Any, folder: Path, format: str = "parquet") -> list[tuple[int, str]]:
    reader = spark.read.format(format).options(header="true", inferSchema="true")
    return sorted((row.event_id, row.subscription) for row in reader.load(f"{folder}/out").collect())


@pytest.mark.parametrize(
    ("events", "rules", "sink"),
    [
        ("csv", "json", "csv"),
        pytest.param("json", "csv", "json", marks=pytest.mark.slow),
        pytest.param("parquet", "parquet", "parquet", marks=pytest.mark.slow),  # as most other tests here
    ],
)
def test_formats_of_files(spark: Any, folder: Path, events: str, rules: str, sink: str) -> None:
    report = run(
        spark,
        job_of(
            folder,
            events={"format": events, "path": f"{folder}/events/{events}"},
            subscriptions={"format": rules, "path": f"{folder}/rules/{rules}"},
            sink={"format": sink, "path": f"{folder}/out"},
        ),
    )
    assert matches(spark, folder, sink) == sorted(oracle())
    assert (report.events, report.matches, report.version) == (60, len(oracle()), 1)
    assert report.state == "done"


@pytest.mark.slow
def test_modes(spark: Any, folder: Path) -> None:
    tamis.spark.build(spark.read.parquet(f"{folder}/rules/parquet"), directory=f"{folder}/index")
    subscriptions = {"snapshot": f"{folder}/index"}

    def rows(mode: str, **match: Any) -> tuple[JobReport, list[Any]]:
        sink = {"format": "json", "path": f"{folder}/{mode}"}
        job = job_of(folder, subscriptions=subscriptions, match={"mode": mode, **match}, sink=sink)
        report = run(spark, job)
        return report, spark.read.json(f"{folder}/{mode}").collect()

    found = oracle()
    best = {
        event: max((PRIORITY[id], id) for number, id in found if number == event)[1]
        for event in {number for number, _ in found}
    }
    report, ranked = rows("top_k", k=1, score="priority")
    assert {row.event_id: row.subscription for row in ranked} == best
    report, counts = rows("count")
    assert sum(row.matches for row in counts) == len(found)
    assert (report.rows, report.matches) == (60, len(found))
    report, wanted = rows("exists")
    assert {row.event_id for row in wanted if row.matched} == set(best)
    assert report.matches == len(best)
    report, unwanted = rows("unmatched")
    assert {row.event_id for row in unwanted} == set(range(60)) - set(best)
    assert (report.rows, report.matches) == (60 - len(best), None)
    report, popular = rows("count_by_subscription")
    assert {row.subscription: row.matches for row in popular} == {
        id: sum(1 for _, other in found if other == id) for id in RULES
    }


@pytest.mark.thorough
def test_a_snapshot(spark: Any, folder: Path) -> None:
    index = tamis.Index()
    for id, text in RULES.items():
        index.add(id, text)
    index.save(folder / "rules.tamis")
    report = run(spark, job_of(folder, subscriptions={"snapshot": f"{folder}/rules.tamis"}))
    assert matches(spark, folder) == sorted(oracle())
    assert (report.events, report.matches) == (60, len(oracle()))


@pytest.mark.thorough
def test_bad_subscriptions_stop_the_job_or_are_reported(spark: Any, folder: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "expression": ["x > 2", "x >"]}), folder / "bad.parquet")
    subscriptions = {"format": "parquet", "path": f"{folder}/bad.parquet"}
    with pytest.raises(tamis.spark.InvalidSubscriptionsError, match="'b'"):
        run(spark, job_of(folder, subscriptions=subscriptions))
    report = run(spark, job_of(folder, subscriptions=subscriptions, match={"on_error": "quarantine"}))
    assert report.quarantined == 1
    assert [row["id"] for row in report.first_quarantined] == ["b"]
    assert "quarantined    1 subscriptions" in str(report)


@pytest.mark.thorough
def test_columns_can_be_chosen(spark: Any, folder: Path) -> None:
    events = {
        "format": "parquet",
        "path": f"{folder}/events/parquet",
        "select": ["event_id AS number", "CAST(x AS string) AS x", "country"],
    }
    report = run(spark, job_of(folder, events=events, match={"key": "number"}))
    assert report.wrong_types == {"x": 60}
    assert {row.subscription for row in spark.read.parquet(f"{folder}/out").collect()} == {"c"}


@pytest.mark.thorough
def test_a_stream_of_files_with_changes(spark: Any, folder: Path) -> None:
    changes = folder / "changes"
    changes.mkdir()

    def change(name: str, *rows: dict[str, Any]) -> None:
        (changes / name).write_text("\n".join(map(json.dumps, rows)))

    change(
        "1.json",
        *({"op": "add", "sequence": 1, "id": id, "expression": text} for id, text in RULES.items()),
        {"op": "add", "sequence": 1, "id": "bad", "expression": "x >"},
    )
    job = job_of(
        folder,
        events={"format": "parquet", "path": f"{folder}/events/parquet", "schema": SCHEMA},
        subscriptions={
            "store": f"{folder}/store",
            "checkpoint": f"{folder}/changes-checkpoint",
            "changes": {"format": "json", "path": str(changes), "schema": CHANGES_SCHEMA},
        },
        trigger="available_now",
        checkpoint=f"{folder}/checkpoint",
    )
    report = run(spark, job)
    assert matches(spark, folder) == sorted(oracle())
    assert (report.events, report.matches, report.version) == (60, len(oracle()), 1)
    assert report.quarantined == 1
    assert report.batches is not None
    assert report.batches >= 1

    change("2.json", {"op": "remove", "sequence": 2, "id": "a"}, {"op": "remove", "sequence": 2, "id": "b"})
    later = pa.Table.from_pylist([{"event_id": 100, "x": 4, "country": "US"}], TYPES)
    pq.write_table(later, folder / "events" / "parquet" / "later.parquet")
    report = run(spark, job)
    assert (report.events, report.matches, report.version) == (1, 1, 2)
    assert matches(spark, folder) == sorted(oracle() | {(100, "c")})


def test_an_empty_store_says_what_to_do(spark: Any, folder: Path) -> None:
    (folder / "changes").mkdir()
    source = {"format": "json", "path": f"{folder}/changes", "schema": CHANGES_SCHEMA}
    job = job_of(
        folder,
        events={"format": "parquet", "path": f"{folder}/events/parquet", "schema": SCHEMA},
        subscriptions={"store": f"{folder}/store", "changes": source, "checkpoint": f"{folder}/c"},
        trigger="once",
        checkpoint=f"{folder}/checkpoint",
    )
    with pytest.raises(tamis.TamisError, match=r"is empty and json .* holds no change for it"):
        run(spark, job)


@pytest.mark.slow
def test_nats_to_nats(spark: Any, folder: Path, nats: Any) -> None:
    nats.add_stream("job-events")
    nats.add_stream("job-matches")
    nats.publish("job-events.a", [json.dumps(event) for event in EVENTS] + ["{broken"])
    source = {"format": "nats", "servers": nats.url, "stream": "job-events", "schema": SCHEMA}
    job = job_of(
        folder,
        events={**source, "on_bad_message": "skip"},
        sink={
            "format": "nats",
            "servers": nats.url,
            "subject": "job-matches.all",
            "message_id": ["event_id", "subscription"],
        },
        trigger="available_now",
        checkpoint=f"{folder}/checkpoint",
    )
    report = run(spark, job)
    found = [json.loads(message.data) for message in nats.messages("job-matches")]
    assert sorted((row["event_id"], row["subscription"]) for row in found) == sorted(oracle())
    assert (report.events, report.matches) == (61, len(oracle()))
    with pytest.raises(Exception, match=r"(?i)malformed"):
        run(spark, {**job, "events": source, "checkpoint": f"{folder}/checkpoint-2"})


@pytest.mark.thorough
def test_the_command(folder: Path, spark: Any, tamis_command: Callable[..., Any]) -> None:
    """A process of its own, with its own session."""
    settings = {"master": "local[2]", "settings": {"spark.ui.enabled": False}}
    job = job_of(folder, spark=settings, sink={"format": "parquet", "path": "${OUT}/out"})
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    answer = tamis_command("spark", "run", str(folder / "job.yaml"), "--json", OUT=str(folder))
    assert answer.returncode == 0, answer.stderr[-3000:]
    report = json.loads(answer.stdout)
    assert (report["events"], report["matches"], report["state"]) == (60, len(oracle()), "done")
    assert matches(spark, folder) == sorted(oracle())
    assert "starting Spark" in answer.stderr.splitlines()[0]


@pytest.mark.slow
def test_the_command_says_what_spark_refuses(folder: Path, tamis_command: Callable[..., Any]) -> None:
    settings = {"master": "local[2]", "settings": {"spark.ui.enabled": False}}
    (folder / "job.yaml").write_text(yaml.safe_dump(job_of(folder, spark=settings)))
    (folder / "out").mkdir()
    again = tamis_command("spark", "run", str(folder / "job.yaml"))
    assert again.returncode == 2
    assert "already exists" in again.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_table_has_the_format_that_is_asked_for(spark: Any, folder: Path) -> None:
    tamis.spark.build(spark.read.parquet(f"{folder}/rules/parquet"), directory=f"{folder}/index")
    sink = {
        "format": "table",
        "table": "tamis_found",
        "table_format": "json",
        "options": {"path": f"{folder}/t"},
    }
    job = job_of(folder, subscriptions={"snapshot": f"{folder}/index"}, sink=sink)
    try:
        run(spark, job)
        run(spark, {**job, "sink": {"format": "table", "table": "tamis_found", "mode": "append"}})
        assert spark.read.json(f"{folder}/t").count() == 2 * len(oracle())
        assert spark.table("tamis_found").count() == 2 * len(oracle())
    finally:
        spark.sql("DROP TABLE IF EXISTS tamis_found")


def test_the_check(folder: Path, tamis_command: Callable[..., Any]) -> None:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job_of(folder)))
    answer = tamis_command("spark", "check", str(path))
    assert answer.returncode == 0, answer.stderr
    assert "ok. A table of events from parquet" in answer.stdout
    path.write_text(yaml.safe_dump(job_of(folder, sinc={})))
    answer = tamis_command("spark", "check", str(path))
    assert answer.returncode == 2
    assert "sinc: unknown key; did you mean `sink`?" in answer.stderr
    assert "Traceback" not in answer.stderr
