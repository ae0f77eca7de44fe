"""Random rules with memory and events for them, and what one process says."""

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tamis
from tamis.flow import Output

EVENTS = "ts bigint, seq bigint, user string, ip int, n int, ok boolean"

Told = list[tuple[str, str, int, str, tuple[str, ...]]]


def random_query(choose: random.Random, stream: str = "a", other: str = "b") -> str:
    """A windowed rule, a sequence or a join; mostly by user."""
    by = choose.choice(["BY user", "BY user", "BY user, ip", "BY ip", ""])
    length = choose.choice(["3s", "8s", "20s"])
    kind = choose.choice(["count", "sum", "rows", "sequence", "join", "lag", "one"])
    if kind == "count":
        return f"count(* WHERE ok {by} LAST {length}) >= {choose.randrange(1, 4)}"
    if kind == "sum":
        return f"sum(n {by} LAST {length}) > {choose.randrange(3, 20)} AND NOT ok"
    if kind == "rows":
        return f"avg(n {by} LAST {choose.randrange(2, 5)} ROWS) > {choose.randrange(2, 6)}"
    if kind == "lag":
        return f"n > lag(n {by} LAST {length})"
    if kind == "sequence":
        repeated = choose.choice(["", "{2}", "{1,3}"])
        skip = choose.choice(["", " AFTER MATCH SKIP TO NEXT ROW"])
        return f"SEQUENCE (x: ok){repeated} THEN (y: NOT ok AND y.n > x.n) WITHIN {length} {by}{skip}"
    if kind == "join":
        on = choose.choice(["x.user = y.user", "x.user = y.user AND x.ip = y.ip", "x.ip = y.ip"])
        right = choose.choice([stream, other])
        frame = choose.choice(["RANGE 3s", "RANGE 3s", "ROWS 4"])
        return (
            f"SELECT x.seq, y.seq AS other FROM {stream} RANGE {length} AS x "
            f"JOIN {right} {frame} AS y ON {on} WHERE x.n > y.n AND x.ok"
        )
    return "n > 7 AND ok"


def random_events(
    choose: random.Random, count: int, first: int = 1000, jitter: int = 0
) -> list[dict[str, Any]]:
    """Events with many equal times and some missing keys; up to `jitter` seconds out of order."""
    return [
        {
            "ts": first + number // 3 + choose.randrange(-jitter, 1),
            "seq": number,
            "user": choose.choice(["ann", "bob", "eve", "joe", None]),
            "ip": choose.choice([1, 2, 3, None]),
            "n": choose.randrange(10),
            "ok": choose.random() < 0.5,
        }
        for number in range(count)
    ]


def one_process(
    queries: dict[str, tuple[str, str]], events: dict[str, list[dict[str, Any]]], until: float | None = None
) -> Told:
    """What one flow tells of events in the order of (time, seq, stream); of those up to a time."""
    flow = tamis.Flow()
    for stream in events:
        flow.stream(stream, time="ts")
    for name, (text, on) in queries.items():
        flow.add(name, text, on)
    ordered = sorted(
        (event["ts"], event["seq"], number, stream)
        for number, stream in enumerate(events)
        for event in events[stream]
    )
    known = {(stream, event["seq"]): event for stream in events for event in events[stream]}
    told: list[Output] = []
    for time, sequence, _, stream in ordered:
        if until is not None and time > until:
            break
        event = known[stream, sequence]
        told += flow.push(stream, {name: value for name, value in event.items() if value is not None})
        told += flow.advance(to=time)
    told += flow.advance(to=10**11 if until is None else until)
    return plain(told)


def plain(told: Iterable[Output]) -> Told:
    return sorted(
        (
            out.query,
            out.kind,
            round(out.time.timestamp() * 1000),
            json.dumps(out.row),
            tuple(event.to_json() for event in out.events),
        )
        for out in told
    )


def collected(rows: Iterable[Any]) -> Told:
    """The same of rows of a result, whose time was made milliseconds."""
    return sorted((row.query, row.kind, row.time, row.row, tuple(row.events)) for row in rows)


def put(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """A file of events or changes, which a stream reads after those with smaller numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:04d}.json"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    os.utime(path, (1e9 + number, 1e9 + number))  # files are read in the order of their times
