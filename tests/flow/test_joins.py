"""Joins against DuckDB: after every event, what was told adds up to the answer over the windows' contents."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tamis
from seeds import few

NAMES = ["k", "v", "name"]


def random_query(random_: random.Random) -> tuple[str, list[tuple[str, str, int]], str]:
    """A query, its sources (stream, frame, size), and the same as SQL over tables w0, w1 and so on."""
    count = random_.choice([1, 2, 2, 2, 3])
    sources = [
        (random_.choice(["a", "b"]), random_.choice(["RANGE", "RANGE", "ROWS"]), random_.choice([2, 4, 9]))
        for _ in range(count)
    ]
    conditions, froms, tables = [], [], []
    for at, (stream, frame, size) in enumerate(sources):
        window = f"{stream} {frame} {size}{' SECONDS' if frame == 'RANGE' else ''} AS t{at}"
        on = ""
        if at:
            other = random_.randrange(at)
            term = random_.choice(
                ["t{0}.k = t{1}.k", "t{0}.k = t{1}.k", "t{0}.k = t{1}.v", "t{0}.v + 1 = t{1}.v"]
            )
            if random_.random() < 0.15:
                term = "t{0}.v < t{1}.v"
            on = " ON " + term.format(at, other)
            if random_.random() < 0.2:
                on += f" AND t{at}.name != t{other}.name"
            conditions.append(on[4:])
        froms.append(("JOIN " if at else "") + window + on)
        tables.append(f"w{at} AS t{at}")
    where = random_.choice(
        ["", "t0.v > 0", f"t0.v >= t{count - 1}.v", f"t0.name = 'x' OR t{count - 1}.name IS NULL"]
    )
    columns = random_.choice([f"t0.k, t{count - 1}.v", "t0.name AS n, t0.v * 2 AS twice", f"t{count - 1}.k"])
    distinct = random_.choice(["", "DISTINCT "])
    text = f"SELECT {distinct}{columns} FROM {' '.join(froms)}" + (f" WHERE {where}" if where else "")
    if where:
        conditions.append(where)
    sql = f"SELECT {distinct}{columns} FROM {', '.join(tables)}"
    if conditions:
        sql += " WHERE " + " AND ".join(f"({condition})" for condition in conditions)
    return text, sources, sql


class Judge:
    """The events of all streams, in the order of evaluation."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, dict[str, Any]]] = []
        self.connection = duckdb.connect()

    def answer(self, sources: list[tuple[str, str, int]], sql: str, birth: int, now: int) -> Counter[Any]:
        for at, (stream, frame, size) in enumerate(sources):
            rows = [(n, ts, event) for n, (of, ts, event) in enumerate(self.events) if of == stream]
            rows = [row for row in rows if row[1] >= now - size] if frame == "RANGE" else rows[-size:]
            values = [tuple(event.get(name) for name in NAMES) for n, _, event in rows if n >= birth]
            self.connection.execute(f"CREATE OR REPLACE TABLE w{at} (k BIGINT, v BIGINT, name VARCHAR)")
            if values:
                self.connection.executemany(f"INSERT INTO w{at} VALUES (?, ?, ?)", values)
        return Counter(self.connection.execute(sql).fetchall())


def apply(answer: Counter[Any], told: list[Any]) -> None:
    for out in told:
        row = tuple(out.row.values())
        if out.kind == "+":
            answer[row] += 1
        else:
            assert answer[row] > 0, "nothing is retracted that was not told"
            answer[row] -= 1


@pytest.mark.parametrize("seed", few(range(12)))
def test_what_is_told_adds_up_to_the_answer(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    flow = tamis.Flow()
    for name in "ab":
        flow.stream(name, time="ts")
    judge = Judge()
    queries: dict[str, Any] = {}
    answers: dict[str, Counter[Any]] = {}
    now = 0
    for at in range(26):
        if at == 0 or random_.random() < 0.15:
            for _ in range(3 if at == 0 else 1):
                name = f"q{len(answers)}"
                text, sources, sql = random_query(random_)
                flow.add(name, text)
                queries[name] = (text, sources, sql, len(judge.events))
                answers[name] = Counter()
        if len(queries) > 3 and random_.random() < 0.1:
            gone = random_.choice(list(queries))
            flow.remove(gone)
            del queries[gone]
        now += random_.choice([0, 1, 1, 3])
        told = flow.advance(to=now)
        if random_.random() < 0.85:
            event = {"k": random_.choice([0, 1, 2, None]), "v": random_.choice([0, 1, 2, None])}
            event["name"] = random_.choice(["x", "y", None])
            stream = random_.choice("ab")
            judge.events.append((stream, now, event))
            told += flow.push(stream, {"ts": now, **event})
        for name, (text, sources, sql, birth) in queries.items():
            own = [out for out in told if out.query == name]
            kinds = [out.kind for out in own if out.time.timestamp() == now]
            assert kinds == sorted(kinds, key="-+".index), "retractions come before additions"
            apply(answers[name], own)
            assert +answers[name] == judge.answer(sources, sql, birth, now), text
        if random_.random() < 0.1:
            flow.save(tmp_path / "state")
            flow = tamis.Flow.open(tmp_path / "state")
    for name, counted in answers.items():
        if name in queries:
            apply(counted, [out for out in flow.advance(to=10**6) if out.query == name])
            break
    for name in list(flow):
        flow.remove(name)
    assert flow.stats()["bytes"] < 1000


def test_joins_of_trades_and_quotes() -> None:
    flow = tamis.Flow()
    flow.stream("trades", time="ts")
    flow.stream("quotes", time="ts")
    flow.add(
        "spread",
        "SELECT t.id, q.ask FROM trades RANGE 10 MINUTES AS t JOIN quotes ROWS 2 AS q "
        "ON t.symbol = q.symbol WHERE t.price > q.ask * 1.01",
    )
    assert flow.push("quotes", {"ts": 1, "symbol": "X", "ask": 10.0}) == []
    assert flow.push("trades", {"ts": 2, "symbol": "X", "id": 7, "price": 11.0}) == []
    [out] = flow.advance(to=2)
    assert (out.kind, out.row) == ("+", {"t.id": 7, "q.ask": 10.0})
    assert [event.get("ts") for event in out.events] == [2, 1]
    flow.push("quotes", {"ts": 3, "symbol": "Y", "ask": 1.0})
    flow.push("quotes", {"ts": 4, "symbol": "Y", "ask": 1.0})
    [out] = flow.advance(to=5)
    assert (out.kind, out.row, out.time.timestamp()) == ("-", {"t.id": 7, "q.ask": 10.0}, 4)
    assert flow.explain("spread")["join"]["windows"][0]["rows"] == 1


def test_queries_over_the_same_join_share_it() -> None:
    def state(count: int) -> int:
        flow = tamis.Flow()
        flow.stream("a", time="ts")
        for number in range(count):
            flow.add(
                f"q{number}",
                f"SELECT x.k FROM a RANGE 1h AS x JOIN a ROWS 9 AS y ON x.k = y.k WHERE x.v > {number}",
            )
        flow.push_batch("a", [{"ts": at, "k": at % 5, "v": -at} for at in range(200)])
        size: int = flow.stats()["bytes"]
        return size

    assert state(200) == state(1)


def test_what_cannot_be_joined_is_refused() -> None:
    flow = tamis.Flow()
    flow.stream("a", time="ts", schema={"ts": "int", "k": "int"})
    for text, message in [
        ("SELECT * FROM a", "has no window"),
        ("SELECT x.k FROM a ROWS 5 AS x JOIN a ROWS 6 AS y ON k = y.k", "does not say of which window"),
        ("SELECT x.k FROM a ROWS 5 AS x WHERE x.z = 1", "`z` is not in the schema"),
    ]:
        with pytest.raises(tamis.ExpressionError, match=message):
            flow.add("q", text)
    with pytest.raises(tamis.UnknownIdError, match="no stream"):
        flow.add("q", "SELECT * FROM nowhere ROWS 5")
    with pytest.raises(tamis.ArgumentError, match="starts empty"):
        flow.add("q", "SELECT * FROM a ROWS 5", backfill=True)
    assert len(flow) == 0


def test_conditions_of_many_queries_come_and_go() -> None:
    """A join looks at what the conditions of its queries name now, however many queries name it."""
    flow = tamis.Flow()
    flow.stream("a", time="ts")
    joined = "SELECT x.ts FROM a RANGE 1h AS x JOIN a ROWS 1 AS y ON x.k = y.k WHERE y.ts > x.ts"
    for number in range(30):
        flow.add(f"q{number}", f"{joined} AND x.v{number % 3} = {number // 3}")
    for number in range(0, 30, 2):
        flow.remove(f"q{number}")
    flow.add("alone", "SELECT x.ts FROM a RANGE 1h AS x WHERE x.v9 = 1")
    flow.remove("q1")
    flow.push("a", {"ts": 1, "k": 1, "v0": 5, "v1": 0, "v2": 1, "v9": 1})
    told = flow.push("a", {"ts": 2, "k": 1})
    # v1 = 0 was q1, v0 = 5 is q15, v2 = 1 is q5.
    assert [(out.query, out.row) for out in told] == [("q5", {"x.ts": 1}), ("q15", {"x.ts": 1})]
    for name in list(flow):
        flow.remove(name)
    flow.add("again", f"{joined} AND x.v1 = 0")
    assert flow.push("a", {"ts": 3, "k": 1, "v1": 0}) == []
    assert [out.query for out in flow.push("a", {"ts": 4, "k": 1})] == ["again"]
