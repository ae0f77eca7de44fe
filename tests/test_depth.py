"""Lists and records may lie inside one another up to one limit, whatever an event is read from.

What could be wrong: a reader that counts from another level, that counts lists but not records, that looks at
a container only when it holds something, or that recurses until the stack is full.
"""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis

LIMIT = 100
TOO_DEEP = f"lists and records are nested deeper than {LIMIT} levels"
# The first asks for presence, which reads lists and no records; the others for everything inside.
RULES = ["a IS NOT NULL", "ANY(all_strings()) = 'x'", "exists(a, e -> e IS NOT NULL OR e.f = 'x')"]

Shape = list[str]


def nested(shape: Shape, inside: Any) -> Any:
    """A value inside lists (`l`) and records (`r`), the first of them outermost; around `None`, empty."""
    value = inside
    for at, container in enumerate(reversed(shape)):
        if at == 0 and inside is None:
            value = [] if container == "l" else {}
        else:
            value = [value] if container == "l" else {"f": value}
    return value


def text(shape: Shape, inside: Any) -> str:
    """The event as JSON, without Python's own limit."""
    opening = ["[" if container == "l" else '{"f":' for container in shape]
    closing = ["]" if container == "l" else "}" for container in shape]
    if inside is None:
        opening[-1] = opening[-1][0]
    written = "" if inside is None else json.dumps(inside)
    return '{"a":' + "".join(opening) + written + "".join(reversed(closing)) + "}"


def forms(rule: str, shape: Shape, inside: Any) -> dict[str, Callable[[tamis.Index], list[int]]]:
    """What the index says of the event, by what it is read from."""
    event, written = {"a": nested(shape, inside)}, text(shape, inside)
    asked: dict[str, Callable[[tamis.Index], list[int]]] = {
        "dict": lambda index: index.match(event),
        "JSON": lambda index: index.match(written),
        "bytes": lambda index: index.match(written.encode()),
        "NDJSON": lambda index: index.match_ndjson(written.encode())["subscription"].to_pylist(),
    }
    if len(shape) <= LIMIT + 5 and not (inside is None and shape[-1] == "r"):
        table = pa.table({"a": [event["a"]]})
        asked["Arrow"] = lambda index: index.match_batch(table)["subscription"].to_pylist()
    if is_read(rule, shape):
        # These are read before it is known what for.
        asked["Event"] = lambda index: index.match(tamis.Event(event))
        asked["dicts"] = lambda index: index.match_batch([event])["subscription"].to_pylist()
    return asked


def is_read(rule: str, shape: Shape) -> bool:
    """Whether the rule makes readers look inside."""
    return rule == RULES[1] or shape[0] == "l"


@given(
    st.sampled_from(RULES),
    st.integers(LIMIT - 2, LIMIT + 3).flatmap(
        lambda depth: st.one_of(
            st.lists(st.sampled_from("lr"), min_size=depth, max_size=depth),
            st.sampled_from([["l"] * depth, ["r"] * depth, ["l", "r"] * (depth // 2) + ["l"] * (depth % 2)]),
        )
    ),
    st.sampled_from(["x", 1, None]),
)
@settings(max_examples=25)
@pytest.mark.filterwarnings("ignore::tamis.ValueWarning")
def test_one_limit(rule: str, shape: Shape, inside: Any) -> None:
    index = tamis.Index()
    index.add(1, rule)
    answers = {}
    for form, ask in forms(rule, shape, inside).items():
        if is_read(rule, shape) and len(shape) > LIMIT:
            with pytest.raises(tamis.EventError, match=TOO_DEEP):
                ask(index)
        else:
            answers[form] = ask(index)
    assert len({tuple(answer) for answer in answers.values()}) <= 1, answers


@pytest.mark.parametrize("container", "lr")
@pytest.mark.parametrize("rule", RULES)
def test_far_beyond_it(rule: str, container: str) -> None:
    """Nothing recurses as deep as an event does."""
    shape = [container] * 900
    index = tamis.Index()
    index.add(1, rule)
    for form, ask in forms(rule, shape, "x").items():
        if is_read(rule, shape):
            with pytest.raises(tamis.EventError, match=TOO_DEEP):
                ask(index)
        else:
            assert ask(index) in ([1], []), form
    deep = '{"a":' + "[" * 1_000_000 + "]" * 1_000_000 + "}"
    if rule != RULES[0]:
        with pytest.raises(tamis.EventError, match=TOO_DEEP):
            index.match(deep)
    with pytest.raises(tamis.EventError, match=TOO_DEEP):
        tamis.Event(deep)


def test_what_cannot_be_read_does_not_hide_it() -> None:
    """An attribute that is absent because of one value is still an event that nobody reads."""
    index = tamis.Index()
    index.add(1, "a IS NULL")
    values = [2**70, nested(["l"] * LIMIT, "x")]
    for event in ({"a": values}, json.dumps({"a": values})):
        with pytest.raises(tamis.EventError, match=TOO_DEEP):
            index.match(event)


@pytest.mark.spark
@pytest.mark.thorough
def test_rows_of_spark(spark: Any) -> None:
    """Between Spark and Python, Arrow itself takes no more than 64 levels."""
    import tamis.spark

    rules = spark.createDataFrame([(1, RULES[1])], "id long, expression string")
    for depth, refused in ((50, False), (LIMIT + 1, True)):
        column = "'x'"
        for _ in range(depth):
            column = f"array({column})"
        events = spark.range(1).selectExpr("id AS event_id", f"{column} AS a")
        matched = tamis.spark.match(events, rules, key="event_id")
        if refused:
            with pytest.raises(Exception, match=f"Max recursion depth reached|{TOO_DEEP}"):
                matched.collect()
        else:
            assert [row["subscription"] for row in matched.collect()] == [1]
