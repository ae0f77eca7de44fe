"""Random windowed terms and rules, in the language of flows and as SQL for DuckDB.

The judge shares no code with the flow: a windowed term is a correlated subquery over the events that were
evaluated up to the event, `r`, and after the rule was added.
"""

import random
from dataclasses import dataclass
from typing import Any

import duckdb

FILTERS = {
    "NOT ok": "NOT p.ok",
    "kind = 'a'": "p.kind = 'a'",
    "v > 1 OR kind IS NULL": "p.v > 1 OR p.kind IS NULL",
    "kind IN ('b', 'c') AND v <= 3": "p.kind IN ('b', 'c') AND p.v <= 3",
}
PARTITIONS = {"": "", "k": "k", "kind": "kind", "k, ok": "k, ok"}
COLUMNS = "arrival BIGINT, ts BIGINT, k VARCHAR, kind VARCHAR, ok BOOLEAN, v BIGINT, x DOUBLE"


@dataclass
class Windowed:
    """A windowed term, and its value as SQL for an event `r` and a rule that came after `{birth}`."""

    text: str
    sql: str
    is_rounded: bool


def windowed_term(random_: random.Random) -> Windowed:
    """A random windowed term."""
    aggregate = random_.choice(
        ["count(*)", "count", "distinct", "sum", "sum", "avg", "stddev", "min", "max", "first", "last", "lag"]
    )
    column = random_.choice(
        ["v", "x", "kind"] if aggregate in ("count", "distinct", "min", "max", "lag") else ["v", "x"]
    )
    filter_ = random_.choice(["", *FILTERS])
    partition = random_.choice(list(PARTITIONS))
    frame = random_.choice(["range", "range", "rows", "tumbling"])
    size = random_.choice([1, 2, 5, 12])
    lag = random_.choice([1, 2])
    names = {"count(*)": "count(*)", "distinct": f"count(DISTINCT {column})", "lag": f"lag({column}, {lag})"}
    name = names.get(aggregate, f"{aggregate}({column})")
    if random_.random() < 0.5:
        period = {"range": f"LAST {size}s", "rows": f"LAST {size} ROWS", "tumbling": f"EVERY {size} SECONDS"}[
            frame
        ]
        where = f" WHERE {filter_}" if filter_ else ""
        by = f" BY {partition}" if partition else ""
        text = f"{name[:-1]}{where}{by} {period})"
    else:
        bound = {
            "range": f"RANGE BETWEEN INTERVAL {size} SECONDS PRECEDING AND CURRENT ROW",
            "rows": f"ROWS {size}",
            "tumbling": f"TUMBLING INTERVAL '{size}' SECOND",
        }[frame]
        where = f" FILTER (WHERE {filter_})" if filter_ else ""
        by = f"PARTITION BY {partition} " if partition else ""
        text = f"{name}{where} OVER ({by}{bound})"
    inside = {
        "range": f"p.ts >= r.ts - {size}",
        "rows": f"p.number{_suffix(partition)} > r.number{_suffix(partition)} - {size}",
        "tumbling": f"floor(p.ts / {size}) = floor(r.ts / {size})",
    }[frame]
    same = [f"p.{name} IS NOT DISTINCT FROM r.{name}" for name in partition.split(", ") if name]
    rows = " AND ".join(
        ["p.n <= r.n", "p.n > {birth}", inside, *same, f"(({FILTERS.get(filter_, 'TRUE')}) IS TRUE)"]
    )
    source = f"FROM numbered p WHERE {rows}"
    sql = {
        "count(*)": f"(SELECT count(*) {source})",
        "count": f"(SELECT count(p.{column}) {source})",
        "distinct": f"(SELECT count(DISTINCT p.{column}) {source})",
        "stddev": f"(SELECT stddev_samp(p.{column}) {source})",
        "first": f"(SELECT p.{column} {source} AND p.{column} IS NOT NULL ORDER BY p.n LIMIT 1)",
        "last": f"(SELECT p.{column} {source} AND p.{column} IS NOT NULL ORDER BY p.n DESC LIMIT 1)",
        "lag": f"(SELECT p.{column} {source} AND p.n < r.n ORDER BY p.n DESC LIMIT 1 OFFSET {lag - 1})",
    }.get(aggregate, f"(SELECT {aggregate}(p.{column}) {source})")
    return Windowed(text, sql, aggregate in ("avg", "stddev"))


def _suffix(partition: str) -> str:
    return str(list(PARTITIONS).index(partition))


@dataclass
class Rule:
    """An expression with windowed terms, as text and as SQL."""

    text: str
    sql: str


def rule(random_: random.Random) -> Rule:
    """A random rule over one or two windowed terms with exact values."""
    counts: list[Any] = []
    while len(counts) < 2:
        term = windowed_term(random_)
        if not term.is_rounded and "kind)" not in term.text.split(" ")[0] and "(kind" not in term.text:
            counts.append(term)
    template = random_.choice(
        [
            "{0} >= 2",
            "NOT ({0} > 1)",
            "{0} > {1}",
            "{0} + v >= 3 OR kind = 'a'",
            "{0} = 0 AND NOT ok",
            "{0} IS NULL OR {1} BETWEEN 1 AND 2",
            "{0} IN (0, 1, 2.5) AND {1} != 1",
        ]
    )
    return Rule(template.format(*(t.text for t in counts)), template.format(*(t.sql for t in counts)))


def events(random_: random.Random, count: int, *, disorder: int) -> list[dict[str, Any]]:
    """Random events in the order of arrival; times go back by at most `disorder`, or by more for a few."""
    made = []
    now = 0
    for _ in range(count):
        now += random_.choice([0, 0, 1, 1, 2, 7])
        back = random_.randint(0, disorder) if disorder else 0
        if random_.random() < 0.05:
            back = disorder + 3
        event = {
            "ts": now - back,
            "k": random_.choice(["x", "y", None]),
            "kind": random_.choice(["a", "b", "c", None]),
            "ok": random_.choice([True, False, None]),
            "v": random_.choice([0, 1, 2, 5, -3, None]),
            "x": random_.choice([0.25, 1.0, 2.5, -4.75, 1e6, None]),
        }
        made.append({name: value for name, value in event.items() if value is not None})
    return made


def in_time(arrived: list[dict[str, Any]], lateness: int) -> list[int]:
    """The numbers of the events that are not late."""
    kept, latest = [], None
    for number, event in enumerate(arrived):
        if latest is None or event["ts"] >= latest - lateness:
            kept.append(number)
            latest = event["ts"] if latest is None else max(latest, event["ts"])
    return kept


class Judge:
    """The events that a flow evaluates, as a table of DuckDB."""

    def __init__(self, arrived: list[dict[str, Any]], kept: list[int]) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(f"CREATE TABLE events ({COLUMNS})")
        names = ["ts", "k", "kind", "ok", "v", "x"]
        rows = [[number, *(arrived[number].get(name) for name in names)] for number in kept]
        self.connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        numbers = ", ".join(
            f"row_number() OVER ({partition}ORDER BY ts, arrival) AS number{_suffix(by)}"
            for by, partition in ((by, f"PARTITION BY {by} " if by else "") for by in PARTITIONS)
        )
        self.connection.execute(
            "CREATE TABLE numbered AS "
            f"SELECT *, row_number() OVER (ORDER BY ts, arrival) AS n, {numbers} FROM events"
        )

    def values(self, term: Windowed, birth: int) -> dict[int, Any]:
        """The value at each event since the birth of the rule, by number of arrival."""
        sql = term.sql.replace("{birth}", str(birth))
        return dict(self._rows(f"SELECT r.arrival, {sql} FROM numbered r WHERE r.n > {birth}"))

    def matches(self, rule_: Rule, birth: int, end: int) -> list[int]:
        """The events for which a rule is true, from its birth to its end, in the order of evaluation."""
        sql = rule_.sql.replace("{birth}", str(birth))
        for name in ("v", "kind", "ok"):
            sql = _qualified(sql, name)
        found = self._rows(
            f"SELECT r.arrival FROM numbered r WHERE r.n > {birth} AND r.n <= {end} "
            f"AND (({sql}) IS TRUE) ORDER BY r.n"
        )
        return [number for (number,) in found]

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()


def _qualified(sql: str, name: str) -> str:
    """Says of which event an attribute is that stands outside of subqueries."""
    import re

    return re.sub(rf"(?<![.\w']){name}(?![\w'])", f"r.{name}", sql)
