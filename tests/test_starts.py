"""Subscriptions that start later: they match from their start on, until they expire."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tamis
from tamis.store import RuleStore

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
EVENT = {"x": 2}

RULES = {
    "always": (None, None),
    "starts": (NOON, None),
    "ends": (None, NOON),
    "between": (NOON - HOUR, NOON + HOUR),
    "never": (NOON + HOUR, NOON - HOUR),
}


def active(moment: datetime) -> list[str]:
    return sorted(
        id
        for id, (starts, expires) in RULES.items()
        if (starts is None or starts <= moment) and (expires is None or moment < expires)
    )


MOMENTS = [NOON + shift + tick for shift in (-HOUR, 0 * HOUR, HOUR) for tick in (-TICK, 0 * TICK, TICK)]


def filled(index: tamis.Index) -> tamis.Index:
    for id, (starts, expires) in RULES.items():
        index.add(id, "x > 1", starts=starts, expires=expires)
    return index


def many() -> tamis.Index:
    index = tamis.Index()
    starts, expires = zip(*RULES.values(), strict=True)
    index.add_many(list(RULES), ["x > 1"] * len(RULES), starts=starts, expires=expires)
    return index


def by_table() -> tamis.Index:
    index = tamis.Index()
    index.add_table(filled(tamis.Index()).to_arrow())
    return index


def by_changes() -> tamis.Index:
    index = tamis.Index()
    for id in RULES:
        index.upsert(id, "x > 1", starts=NOON + 9 * HOUR)
        index.upsert(id, "x > 1")
    index.upsert_many(["starts"], ["x > 1"], starts=[NOON])
    index.set_expires("ends", NOON)
    index.set_starts("between", NOON - HOUR)
    index.set_expires("between", NOON + HOUR)
    index.update("never", starts=NOON + HOUR, expires=NOON - HOUR)
    index.set_starts("always", NOON)
    index.set_starts("always", None)
    return index


def merged() -> tamis.Index:
    index = filled(tamis.Index())
    index.add_many([f"other-{n}" for n in range(3000)], ["x > 5"] * 3000)
    index.optimize()
    return index


@pytest.mark.parametrize(
    "make",
    [
        lambda: filled(tamis.Index()),
        many,
        by_table,
        by_changes,
        merged,
        *(lambda name=name: filled(tamis.Index(algorithm=name)) for name in ("scan", "counting", "a-tree")),
    ],
)
def test_every_way_in_and_every_query(make: Any) -> None:
    index = make()
    table = pa.table({"x": [2, 0, 2]})
    for moment in MOMENTS:
        expected = active(moment)
        assert index.match(EVENT, now=moment) == expected
        assert index.count(EVENT, now=moment) == len(expected)
        assert [match.id for match in index.top_k(EVENT, 9, now=moment)] == expected
        found = index.match_batch(table, now=moment).to_pylist()
        assert found == [{"event": event, "subscription": id} for event in (0, 2) for id in expected]
        for id in RULES:
            assert index.explain(id, EVENT, now=moment).matches is (id in expected)
            assert (index.why_not(id, EVENT, now=moment).answer == "matches") is (id in expected)
    assert index["starts"].starts == NOON
    assert index["always"].starts is None


def test_reasons() -> None:
    index = filled(tamis.Index())
    [exclusion] = index.explain("starts", EVENT, now=NOON - HOUR).exclusions
    assert exclusion.kind == "starts"
    assert exclusion.text == "it starts at 2026-01-31 12:00:00 UTC, and it is 2026-01-31 11:00:00 UTC"
    assert exclusion.needs == "a query from then on, or an earlier start"
    assert [one.kind for one in index.why_not("never", EVENT, now=NOON).exclusions] == ["starts", "expired"]


def test_a_snapshot_and_a_copy_keep_it(tmp_path: Path) -> None:
    index = filled(tamis.Index())
    index.save(tmp_path / "rules.tamis")
    opened = tamis.Index.open(tmp_path / "rules.tamis")
    opened.add("later", "x > 1", starts=date(2026, 3, 1))
    for moment in MOMENTS:
        assert opened.match(EVENT, now=moment) == active(moment)
    assert opened["between"] == index["between"]
    assert opened.match(EVENT, now=date(2026, 3, 1)) == ["always", "later", "starts"]


def test_a_store_keeps_it(tmp_path: Path) -> None:
    store = RuleStore(tmp_path / "store")
    rows = [
        {"op": "add", "sequence": 1, "id": id, "expression": "x > 1", "starts": starts, "expires": expires}
        for id, (starts, expires) in RULES.items()
    ]
    store.apply(rows)
    index = store.open()
    for moment in MOMENTS:
        assert index.match(EVENT, now=moment) == active(moment)


def test_files_of_the_command(tmp_path: Path) -> None:
    from tamis.cli.app import app

    rules, events = tmp_path / "rules.csv", tmp_path / "events.jsonl"
    rules.write_text("id,expression,starts,expires\na,x > 1,2026-01-31T12:00:00Z,\nb,x > 1,,\n")
    events.write_text(json.dumps(EVENT) + "\n")
    for now, expected in (("2026-01-31T11:59:59Z", {"b"}), ("2026-01-31T12:00:00Z", {"a", "b"})):
        ran = CliRunner().invoke(app, ["match", str(rules), str(events), "--now", now])
        assert ran.exit_code == 0, ran.output
        found = {json.loads(line)["subscription"] for line in ran.stdout.splitlines()}
        assert found == expected


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(TypeError, match="starts is a datetime"):
        tamis.Index().add("a", "x > 1", starts="soon")  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.thorough
def test_spark(spark: Any) -> None:
    import tamis.spark

    rules = spark.createDataFrame(
        [(id, "x > 1", starts, expires) for id, (starts, expires) in RULES.items()],
        "id string, expression string, starts timestamp, expires timestamp",
    )
    events = spark.createDataFrame([(1, 2)], "event_id bigint, x bigint")
    index = tamis.spark.build(rules)
    for moment in (NOON - TICK, NOON, NOON + HOUR):
        found = index.match(events, now=moment).collect()
        assert sorted(row["subscription"] for row in found) == active(moment)
    held = {row["id"]: row["starts"] for row in tamis.spark.rules(spark, index).collect()}
    assert held["always"] is None
    assert held["starts"] is not None
