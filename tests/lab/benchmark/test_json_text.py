"""The benchmark of JSON text: both sides get the same rules, and its events give them something to find."""

import doctest
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import tamis


@pytest.fixture
def ruler(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "bench"))
    modules = [importlib.import_module(f"ruler.{name}") for name in ("lots", "rules")]
    yield modules
    for name in [name for name in sys.modules if name.split(".")[0] == "ruler"]:
        del sys.modules[name]


def _holds(tests: list[Any], value: Any) -> bool:
    """Whether a field satisfies a pattern of the kinds that need no library."""
    return any(
        value == test or (isinstance(test, dict) and value.startswith(test["prefix"])) for test in tests
    )


def test_examples(ruler: Any) -> None:
    assert [doctest.testmod(module).failed for module in ruler] == [0, 0]


def test_every_set_finds_something(ruler: Any) -> None:
    lots, rules = ruler
    events = list(lots.lots(3_000))
    for name, written in rules.SETS.items():
        index = tamis.Index()
        index.add_many(list(range(len(written))), [expression for _, expression in written])
        found = index.match_batch("\n".join(events)).num_rows
        assert 0 < found < len(events) * len(written), name


@pytest.mark.parametrize("name", ["exact", "prefix"])
def test_patterns_and_expressions_mean_the_same(ruler: Any, name: str) -> None:
    lots, rules = ruler
    for event in map(json.loads, lots.lots(2_000)):
        for pattern, expression in rules.SETS[name]:
            [(field, tests)] = pattern["properties"].items()
            expected = _holds(tests, event["properties"][field])
            assert (tamis.parse(expression).evaluate(event) is True) == expected


def test_events_have_the_sizes_they_are_asked_for(ruler: Any) -> None:
    lots, _ = ruler
    sizes = {points: sum(map(len, lots.lots(50, points))) / 50 for points in (1, 9, 1_500)}
    assert 200 < sizes[1] < 450
    assert 800 < sizes[9] < 1_000
    assert 75_000 < sizes[1_500] < 110_000
