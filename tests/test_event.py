"""Events: what may be one, and how it is read."""

import math
import pickle
from collections import UserDict
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given

import strategies
import tamis
from tamis import Event, EventError, Interval


def test_nested_records_are_dotted_paths() -> None:
    event = Event({"a": {"b": {"c": 1}}, "x.y": 2})
    assert event["a.b.c"] == 1
    assert event["x.y"] == 2
    assert "a" in event
    assert "a.z" not in event
    with pytest.raises(KeyError):
        event["a.z"]


def test_nulls_are_absent() -> None:
    event = Event({"a": None, "b": 0})
    assert "a" not in event
    assert event.get("a", 7) == 7
    assert len(event) == 1


def test_values_keep_their_type() -> None:
    noon = datetime(2026, 1, 31, 12)
    event = Event(
        {
            "int": np.int64(3),
            "float": np.float32(0.5),
            "bool": np.bool_(True),
            "naive": noon,
            "zoned": noon.replace(tzinfo=timezone(timedelta(hours=2))),
            "date": date(2026, 1, 31),
            "np": np.datetime64("2026-01-31T12:00", "ns"),
            "array": np.array([1, 2]),
            "tuple": ("a", None),
        }
    )
    assert type(event["int"]) is int
    assert event["float"] == 0.5
    assert event["bool"] is True
    assert event["naive"] == event["np"] == noon.replace(tzinfo=UTC)
    assert event["zoned"] == datetime(2026, 1, 31, 10, tzinfo=UTC)
    assert event["date"] == datetime(2026, 1, 31, tzinfo=UTC)
    assert event["array"] == [1, 2]
    assert event["tuple"] == ["a", None]


@given(strategies.events())
def test_json_and_pickle_round_trips(event: dict[str, object]) -> None:
    first = Event(event)
    assert Event(first.to_json()) == first
    assert pickle.loads(pickle.dumps(first)) == first


def test_any_mapping_is_an_event() -> None:
    assert tamis.parse("a = 1").evaluate(UserDict({"a": 1})) is True


@pytest.mark.parametrize("event", [{"a": object()}, {1: 2}, {"a": "\ud800"}, "[]", "{"])
def test_bad_events_are_refused(event: object) -> None:
    with pytest.raises(EventError):
        Event(event)  # type: ignore[arg-type]


def test_errors_name_the_attribute() -> None:
    with pytest.raises(EventError, match=r"a\.b"):
        Event({"a": {"b": object()}})


def test_records_that_hold_themselves_are_refused() -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless
    with pytest.raises(EventError, match="deep"):
        Event(endless)


def test_other_things_are_no_events() -> None:
    with pytest.raises(TypeError, match="dict"):
        tamis.parse("a = 1").evaluate(7)  # type: ignore[arg-type]


def test_weights() -> None:
    assert Event({"a": 1}, weights={"a": 0.5, "b": 2}).weights == {"a": 0.5, "b": 2.0}
    for weight in [-1, math.nan, math.inf]:
        with pytest.raises(EventError):
            Event({"a": 1}, weights={"a": weight})


def test_intervals() -> None:
    hours = Interval(20, 30)
    assert (hours.low, hours.high) == (20, 30)
    assert pickle.loads(pickle.dumps(hours)) == hours == eval(repr(hours))
    assert Event({"hours": hours})["hours"] == hours
    for low, high in [(2, 1), (1, "a"), (math.nan, 1), (None, 1), ([1], [2])]:
        with pytest.raises(tamis.ArgumentError):
            Interval(low, high)
