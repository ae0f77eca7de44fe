"""A job from Kafka to Kafka, against a real broker, with Spark's own connector."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import tamis

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVENTS = [{"event_id": number, "x": number % 7} for number in range(200)]
RULES = {"a": "x > 4", "b": "x IN (1, 6)"}


@pytest.fixture
def job(tmp_path: Path, kafka: Any, kafka_connector: dict[str, str]) -> Path:
    (tmp_path / "rules.jsonl").write_text(
        "\n".join(json.dumps({"id": id, "expression": text}) for id, text in RULES.items())
    )
    content = {
        "name": "kafka",
        "events": {
            "format": "kafka",
            "servers": "${KAFKA}",
            "topic": "events",
            "schema": "event_id int, x int",
        },
        "subscriptions": {"format": "json", "path": str(tmp_path / "rules.jsonl")},
        "sink": {"format": "kafka", "servers": "${KAFKA}", "topic": "matches"},
        "trigger": "available_now",
        "checkpoint": str(tmp_path / "checkpoint"),
        "spark": {
            "master": "local[2]",
            "settings": {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 2, **kafka_connector},
        },
    }
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_kafka_to_kafka(job: Path, kafka: Any, tamis_command: Callable[..., Any]) -> None:
    kafka.create("events")
    kafka.create("matches")
    kafka.publish("events", [json.dumps(event) for event in EVENTS])
    answer = tamis_command("spark", "run", str(job), "--json", KAFKA=kafka.servers)
    assert answer.returncode == 0, answer.stderr[-4000:]
    parsed = {id: tamis.parse(text) for id, text in RULES.items()}
    expected = sorted(
        (event["event_id"], id)
        for event in EVENTS
        for id, expression in parsed.items()
        if expression.evaluate(event) is True
    )
    report = json.loads(answer.stdout)
    assert (report["events"], report["matches"]) == (len(EVENTS), len(expected))
    found = [json.loads(line) for line in kafka.consume("matches", len(expected))]
    assert sorted((row["event_id"], row["subscription"]) for row in found) == expected
    assert {row["version"] for row in found} == {1}
