"""Texts and events that nobody meant: an error that says so, or an answer; never a crash."""

import contextlib
import random
from pathlib import Path

import pytest

import tamis

WORDS = Path(__file__).with_name("hostile_words.txt").read_text(encoding="utf-8").split()
WORDS += ["`x y`", "\u0001", "\u2028", "\\"]


def soup(random_: random.Random) -> str:
    start = random_.choice(
        ["", "SEQUENCE (", "SELECT a FROM s ROWS ", "count(* LAST ", "sum(a) OVER (", "lag(a, "]
    )
    return start + random_.choice([" ", ""]).join(random_.choices(WORDS, k=random_.randint(0, 14)))


@pytest.mark.parametrize("seed", range(20))
def test_any_text_is_taken_or_refused(seed: int) -> None:
    random_ = random.Random(seed)
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    for number in range(400):
        with contextlib.suppress(tamis.TamisError):
            flow.add(f"q{number}", soup(random_))
    for at in range(5):
        flow.push("s", {"ts": at, "a": at, "b": "é", "ok": bool(at % 2), "user": None})
    for name in list(flow):
        flow.remove(name)
    assert flow.stats()["streams"]["s"]["selections"] == 0


VALID = [
    "count(* WHERE NOT ok BY user LAST 10m) >= 5 AND é = '日本'",
    "SEQUENCE (a: NOT ok){3,} THEN NOT (é = 1) THEN (b: ok AND b.c != a.c) WITHIN 10 MINUTES BY user",
    "SELECT t.id, q.bid AS é FROM s RANGE 10 MINUTES AS t JOIN s ROWS 10 AS q ON t.x = q.x WHERE t.p > q.a",
]


@pytest.mark.parametrize("text", VALID)
def test_a_text_that_lacks_or_doubles_a_letter_is_taken_or_refused(text: str) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    for at in range(len(text)):
        for changed in (
            text[:at],
            text[:at] + text[at + 1 :],
            text[: at + 1] + text[at:],
            text[:at] + "é" + text[at:],
        ):
            with contextlib.suppress(tamis.TamisError):
                flow.add("q", changed)
                flow.remove("q")


def test_numbers_at_the_ends_of_their_range() -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts", unit="us")
    flow.add(
        "q", "sum(x LAST 100us) > 0 OR stddev(x LAST 3 ROWS) >= 0 OR avg(x LAST 2 ROWS) < 0 OR x IS NULL"
    )
    ends = [2**63 - 1, -(2**63), 1.7e308, -1.7e308, float("inf"), float("nan"), 5e-324, True, "text", None]
    for at, value in enumerate(ends * 3):
        flow.push("s", {"ts": at, "x": value})
    with pytest.raises(tamis.EventError, match="cannot serve"):
        flow.push("s", {"ts": 2**63 - 1})
    with pytest.raises(tamis.EventError, match="values, not intervals"):
        flow.push("s", {"ts": 100, "x": tamis.Interval(1, 2)})


def test_events_of_another_shape_are_refused_by_row(tmp_path: Path) -> None:
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* LAST 1m) >= 1")
    with pytest.raises(tamis.EventError, match="row 1"):
        flow.push_batch("s", [{"ts": 1}, {"ts": []}])
    with pytest.raises(tamis.EventError):
        flow.push("s", "{")
    assert flow.stats()["streams"]["s"]["evaluated"] == 1


def test_an_event_cannot_bring_the_value_of_a_windowed_term() -> None:
    """Inside the flow, windowed terms are attributes with names that no rule can write; an event can."""
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("burst", "count(* WHERE bad BY k LAST 9s) >= 2")
    flow.add("total", "sum(v BY k LAST 9s) > 50")
    forged = {f"\x01{number}": 100 for number in range(4)}
    assert flow.push("s", {"ts": 1, "k": 1, **forged}) == []
    assert flow.push("s", {"ts": 2, "k": 1, "bad": True, "v": 1, **forged}) == []
    events = [{"ts": 3, "k": 1, "bad": True, "v": 60}, {"ts": 3, "k": 2}]
    told = flow.push_batch("s", [event | forged for event in events])
    assert [(out.query, list(out.row.values())) for out in told] == [("burst", [2]), ("total", [61])]
    # The attribute itself is still there.
    assert told[0].events[0]["\x010"] == 100
