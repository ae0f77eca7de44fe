"""Time that moves: `current_timestamp()` is the moment of the query, however it is asked."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis import col, current_date, current_timestamp

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RULES = {
    "fresh": "ts > current_timestamp() - INTERVAL 1 DAY",
    "stale": "now() - ts >= INTERVAL 36 HOURS",
    "today": "ts >= current_date()",
    "noon": "hour(current_timestamp()) = 12",
    "absent": "current_timestamp() IS NULL",
}


@pytest.fixture(params=["auto", "scan", "counting", "a-tree"])
def index(request: pytest.FixtureRequest) -> tamis.Index:
    index = tamis.Index(algorithm=request.param)
    index.add_many(list(RULES), list(RULES.values()), priorities=range(len(RULES)))
    return index


EVENTS = [{"ts": NOW - timedelta(hours=hours)} for hours in (1, 13, 30, 48)] + [{"x": 1}]
EXPECTED = [["fresh", "noon", "today"], ["fresh", "noon"], ["noon"], ["noon", "stale"], ["noon"]]


def lists(table: pa.Table, events: int) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(events)]
    for row in table.to_pylist():
        found[row["event"]].append(row["subscription"])
    return found


def test_every_way_to_ask(index: tamis.Index) -> None:
    for event, expected in zip(EVENTS, EXPECTED, strict=True):
        assert index.match(event, now=NOW) == expected
        assert index.match(tamis.Event(event), now=NOW) == expected
        assert index.match(tamis.Event(event).to_json(), now=NOW) == expected
        assert index.count(event, now=NOW) == len(expected)
        assert sorted(match.id for match in index.top_k(event, 9, now=NOW)) == expected
        assert sorted(match.id for match in index.top_k(event, 9, score="relevance", now=NOW)) == expected
        for name in RULES:
            assert index.explain(name, event, now=NOW).matches is (name in expected)
            assert bool(index.why_not(name, event, now=NOW).changes) is (name not in expected)
    for events in (
        EVENTS,
        pa.Table.from_pylist(EVENTS, pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})),
        "\n".join(tamis.Event(event).to_json() for event in EVENTS),
    ):
        assert lists(index.match_batch(events, now=NOW), len(EVENTS)) == EXPECTED
        assert index.count_batch(events, now=NOW).to_pylist() == [len(one) for one in EXPECTED]


def test_the_clock_by_default(index: tamis.Index) -> None:
    event = {"ts": datetime.now(UTC)}
    assert {"fresh", "stale"} & set(index.match(event)) == {"fresh"}
    table = index.match_batch([event])
    assert "fresh" in table.column("subscription").to_pylist()
    assert index.explain("fresh", event).matches
    assert tamis.parse(RULES["fresh"]).evaluate(event) is True


def test_a_snapshot_keeps_it(tmp_path: Path) -> None:
    index = tamis.Index()
    index.add_many(list(RULES), list(RULES.values()))
    index.save(tmp_path / "rules.tamis")
    opened = tamis.Index.open(tmp_path / "rules.tamis")
    assert [opened.match(event, now=NOW) for event in EVENTS] == EXPECTED
    assert str(opened["fresh"].expression) == RULES["fresh"]


def test_no_field_of_an_event_can_change_the_time(index: tamis.Index) -> None:
    forged = {"current_timestamp()": datetime(1999, 1, 1, tzinfo=UTC), **EVENTS[0]}
    assert index.match(forged, now=NOW) == EXPECTED[0]
    assert lists(index.match_batch([forged], now=NOW), 1) == EXPECTED[:1]
    assert lists(index.match_batch(pa.Table.from_pylist([forged]), now=NOW), 1) == EXPECTED[:1]
    assert tamis.parse("current_timestamp() > DATE '2026-01-01'").evaluate(forged, now=NOW) is True


def test_attributes_are_those_that_events_bring() -> None:
    expression = tamis.parse(RULES["fresh"])
    assert expression.attributes == ["ts"]
    index = tamis.Index(schema={"ts": "timestamp"})
    index.add("a", expression)
    assert index.stats()["attributes"] == 1
    for text, message in [
        ("current_timestamp() = 5", "is a timestamp"),
        ("lower(current_timestamp()) = 'a'", "takes a string"),
    ]:
        with pytest.raises(tamis.ExpressionError, match=message):
            index.add("b", text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ts > NOW() - interval '1' day", "ts > current_timestamp() - INTERVAL 1 DAY"),
        ("ts > now() - INTERVAL '1 day 12 hours'", "ts > current_timestamp() - INTERVAL 36 HOUR"),
        ("ts > now() - INTERVAL 2 WEEKS", "ts > current_timestamp() - INTERVAL 14 DAY"),
        ("ts > now() + INTERVAL -1.5 SECONDS", "ts > current_timestamp() - INTERVAL 1500 MILLISECOND"),
        ("ts + INTERVAL 18 MONTHS < now()", "ts + INTERVAL 18 MONTH < current_timestamp()"),
        ("ts + INTERVAL 2 YEARS < now()", "ts + INTERVAL 2 YEAR < current_timestamp()"),
        ("b - a BETWEEN INTERVAL 1 HOUR AND INTERVAL 2 HOURS", None),
        ("ts > TIMESTAMP '2026-01-31 00:00:00' + INTERVAL 1 MONTH", "ts > TIMESTAMP '2026-02-28 00:00:00'"),
        ("interval > 5 AND interval - 3 < 2", "interval > 5 AND interval - 3 < 2"),
        ("(now() - ts) + 5 > 3", "timestampdiff(MICROSECOND, ts, current_timestamp()) + 5 > 3"),
    ],
)
def test_text(text: str, printed: str | None) -> None:
    expression = tamis.parse(text)
    printed = printed or "timestampdiff(MICROSECOND, a, b) BETWEEN 3600000000 AND 7200000000"
    assert str(expression) == printed
    assert tamis.parse(printed) == expression
    assert tamis.Expression.from_json(expression.to_json()) == expression


def test_the_builder_writes_what_text_says() -> None:
    for built, text in [
        (col("ts") > current_timestamp() - timedelta(days=1), RULES["fresh"]),
        (current_timestamp() - col("ts") >= timedelta(hours=36), RULES["stale"]),
        (col("ts") >= current_date(), RULES["today"]),
        (timedelta(hours=1) + col("ts") < date(2026, 1, 1), "ts + INTERVAL 1 HOUR < DATE '2026-01-01'"),
    ]:
        assert built == tamis.parse(text), text


def test_relations_do_not_pretend_to_know_the_time() -> None:
    later, earlier = tamis.parse("now() > DATE '2026-02-01'"), tamis.parse("now() > DATE '2026-01-01'")
    assert earlier.covers(later)
    assert not later.covers(earlier)
    assert later.is_disjoint(tamis.parse("now() < DATE '2026-01-01'"))
    assert tamis.relate.example_of_overlap(later, earlier) is None
