"""Job files: what is accepted, and what is said about those that are not."""

from pathlib import Path

import pytest

from tamis.spark.jobs.load import InvalidJobError, load_job, parse_job

GOOD = """
name: ads
events:
  format: parquet
  path: /data/events
subscriptions:
  format: csv
  path: /data/rules.csv
match:
  mode: top_k
  k: 3
sink:
  format: parquet
  path: /data/matches
"""


def problems(text: str, **environment: str) -> list[str]:
    with pytest.raises(InvalidJobError) as raised:
        parse_job(text, "job.yaml", environment)
    return [str(problem) for problem in raised.value.problems]


def test_a_batch_job() -> None:
    job = parse_job(GOOD)
    assert (job.name, job.streaming, job.match.k, job.match.key) == ("ads", False, 3, ["event_id"])
    assert job.formats == {"parquet", "csv"}


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ("once", {"once": True}),
        ("available_now", {"availableNow": True}),
        ("{processing_time: 5 seconds}", {"processingTime": "5 seconds"}),
    ],
)
def test_triggers(written: str, options: dict[str, object]) -> None:
    text = GOOD.replace("  path: /data/events", "  path: /data/events\n  schema: event_id int, x int")
    job = parse_job(f"{text}trigger: {written}\ncheckpoint: /data/checkpoint\n")
    assert job.trigger is not None
    assert job.trigger.as_options() == options


CONTINUOUS = (
    "continuous processing in Spark cannot run Python functions; `processing_time: 0 seconds` starts each "
    "micro-batch as soon as the last is done"
)
MODES = "`all`, `top_k`, `count`, `exists`, `unmatched` or `count_by_subscription`"
SCHEMA = "such as `event_id bigint, age int`"
TO_KAFKA = "  format: kafka\n  servers: a\n  topic: b"

# What is replaced in the good job, by what, and what is said about it.
WRONG = [
    ("  path: /data/events", "  pth: /data/events", "line 5, events.pth: unknown key; did you mean `path`?"),
    ("name: ads", "nme: ads", "line 2, nme: unknown key; did you mean `name`?"),
    (
        "format: csv",
        "format: cvs",
        "line 7, subscriptions.format: there is no format `cvs`; did you mean `csv`?",
    ),
    ("  path: /data/events\n", "", "line 3, events.path: is missing"),
    (
        "  format: csv",
        "  fromat: csv",
        "line 6, subscriptions.format: is missing; parquet, json, csv, delta, table, kafka, nats, "
        "or `snapshot` or `store`; there is `fromat`, did you mean `format`?",
    ),
    (
        "k: 3",
        "k: many",
        "line 11, match.k: input should be a valid integer, unable to parse string as an integer, not `many`",
    ),
    ("k: 3", "k: 0", "line 11, match.k: input should be greater than or equal to 1, not `0`"),
    ("  k: 3\n", "", "line 9, match: `mode: top_k` needs `k`, how many matches to keep"),
    ("mode: top_k", "mode: best", f"line 10, match.mode: must be {MODES}, not `best`"),
    ("mode: top_k", "mode: all", "line 9, match: `k` ranks matches: write `mode: top_k` as well"),
    (
        "  format: csv\n  path: /data/rules.csv",
        "  /data/rules.csv",
        "line 6, subscriptions: must be a mapping of keys, not `/data/rules.csv`",
    ),
    ("name: ads", "name: ads\nname: b", "line 3, name: the key is there twice"),
    ("name: ads", "name: [a", "line 3: not YAML: expected ',' or ']', but got ':'"),
    (
        "name: ads",
        "trigger: once",
        "a stream needs a `checkpoint`, the path where it remembers how far it got",
    ),
    ("name: ads", "trigger: {continuous: 1 second}\ncheckpoint: /c", f"line 2, trigger: {CONTINUOUS}"),
    (
        "name: ads",
        "trigger: once\ncheckpoint: /c",
        f"a stream of files needs `schema` in `events`, {SCHEMA}",
    ),
    (
        "name: ads",
        "spark: {master: local, remote: sc://host}",
        "line 2, spark.remote: give `master` or `remote`, not both",
    ),
    (
        "  format: parquet\n  path: /data/events",
        TO_KAFKA,
        f"line 3, events: messages need a `schema`: the columns of their JSON, {SCHEMA}",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), WRONG)
def test_what_is_wrong_is_said(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert problems(GOOD.replace(old, new)) == [expected]


def test_all_problems_are_listed() -> None:
    text = GOOD.replace("  path: /data/events\n", "").replace("k: 3", "k: x")
    assert len(problems(text)) == 2
    with pytest.raises(InvalidJobError, match=r"^job.yaml cannot be used, 2 problems:\n  line 3, events"):
        parse_job(text, "job.yaml")


def test_variables_of_the_environment() -> None:
    text = GOOD.replace("/data/events", "${FOLDER}/events").replace("ads", "${NAME:-some}-$${x}")
    job = parse_job(text, environment={"FOLDER": "/mine"})
    assert job.events.path == "/mine/events"  # type: ignore[union-attr]
    assert job.name == "some-${x}"
    assert problems(text) == [
        "line 5, events.path: the environment has no variable FOLDER; set it, or write ${FOLDER:-default} "
        "(for a plain dollar sign, write $$)"
    ]


def test_values_of_variables_are_not_shown() -> None:
    text = GOOD.replace(
        "sink:\n  format: parquet", "sink:\n  format: kafka\n  servers: ${SECRET}\n  topik: x"
    )
    [problem, *_] = problems(text, SECRET="hush")
    assert "topik" in problem
    assert "hush" not in problem


def test_a_store_with_changes() -> None:
    text = GOOD.replace(
        "  format: csv\n  path: /data/rules.csv",
        "  store: /data/store\n  changes: {format: nats, stream: RULES, schema: 'id string'}",
    )
    assert parse_job(text).formats == {"parquet", "nats"}
    assert problems(text.replace("format: nats", "format: nots")) == [
        "line 8, subscriptions.changes.format: there is no format `nots`; did you mean `nats`?"
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidJobError, match=r"job.yaml cannot be used: No such file"):
        load_job(tmp_path / "job.yaml")
    (tmp_path / "job.yaml").write_text("- a\n")
    with pytest.raises(InvalidJobError, match="a job is a mapping of keys"):
        load_job(tmp_path / "job.yaml")


def test_delta_names_the_spark_that_it_works_with() -> None:
    from tamis.spark.connectors.jars import ConnectorError, connector, settings_for

    with pytest.raises(ConnectorError, match=r"use pyspark 4\.2"):
        connector("delta", "4.3.0")
    chosen = settings_for(["delta"], {"spark.jars.packages": "io.delta:delta-spark_4.3_2.13:9"}, "4.3.0")
    assert chosen["spark.jars.packages"] == "io.delta:delta-spark_4.3_2.13:9"
    assert "DeltaCatalog" in chosen["spark.sql.catalog.spark_catalog"]


def test_local_paths_that_are_not_there(tmp_path: Path) -> None:
    from tamis.spark.jobs.paths import missing_paths

    (tmp_path / "events").mkdir()
    (tmp_path / "rules.csv").write_text("id,expression\n")
    text = GOOD.replace("/data/", f"{tmp_path}/")
    assert missing_paths(parse_job(text)) == []
    assert missing_paths(parse_job(text.replace("/events", "/ev*"))) == []
    wrong = text.replace("/events", "/evnts").replace("rules.csv", "rule.csv")
    assert [str(problem) for problem in missing_paths(parse_job(wrong))] == [
        f"events.path: there is no file or folder {tmp_path}/evnts; did you mean `{tmp_path}/events`?",
        f"subscriptions.path: there is no file or folder {tmp_path}/rule.csv; "
        f"did you mean `{tmp_path}/rules.csv`?",
    ]
    assert missing_paths(parse_job(wrong + "spark: {remote: 'sc://host'}\n")) == []
    assert missing_paths(parse_job(text.replace(f"{tmp_path}/events", "s3://bucket/events"))) == []
