"""Names of fields are told by the address of their string: no other string may be taken for it."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import tamis
from tamis import Index

COUNT = 400  # more names than are remembered


def _index(order: list[int]) -> Index:
    index = Index()
    index.add_many(order, [f"n{number} = {number}" for number in order])
    return index


def test_names_are_told_apart_whatever_string_holds_them():
    """Strings that are made anew take the addresses of those that are gone."""
    draw = random.Random(3)
    numbers = list(range(COUNT))
    first, second = _index(numbers), _index(numbers[::-1])
    constants = [f"n{number}" for number in numbers]
    for turn in range(60):
        chosen = draw.sample(numbers, 25)
        if turn % 3 == 0:
            event = {constants[number]: number for number in chosen}
        else:
            event = {"".join(["n", str(number)]): number for number in chosen}
        wrong = draw.choice(chosen)
        event["n" + str(wrong)] = -1
        expected = sorted(set(chosen) - {wrong})
        assert first.match(event) == expected
        assert second.match(event) == expected
        assert first.match(event) == expected
        del event


def test_names_of_records_and_of_fields_inside_them_are_different():
    index = Index()
    index.add_many([1, 2, 3], ["a = 1", "b.a = 2", "b IS NOT NULL"])
    for _ in range(3):
        assert index.match({"a": 1, "b": {"a": 2}}) == [1, 2, 3]
        assert index.match({"b": {"a": 1}, "a": 2}) == [3]
        assert index.match({"b": None, "a": 1}) == [1]


def test_forgotten_names_are_learnt_again():
    index = Index()
    index.add(1, "x = 1")
    event = {"x": 1, "y": 2}
    assert [index.match(event) for _ in range(3)] == [[1]] * 3
    index.add(2, "y = 2")
    assert [index.match(event) for _ in range(3)] == [[1, 2]] * 3
    index.match({f"random {number}": number for number in range(10_000)})
    assert [index.match(event) for _ in range(3)] == [[1, 2]] * 3


def test_fields_in_any_order_are_read_as_sorted_ones():
    """Up to 64 values are sorted by marks, more by comparisons."""
    draw = random.Random(5)
    index = _index(list(range(COUNT)))
    for count in (1, 2, 63, 64, 65, 300):
        chosen = draw.sample(range(COUNT), count)
        assert index.match({f"n{number}": number for number in chosen}) == sorted(chosen)


class Text(str):
    """A string of a class of its own."""

    __slots__ = ()


class Number(int):
    """An integer of a class of its own."""


VALUES: list[Any] = [
    *(0, 1, -1, True, False, None, 0.0, -0.0, 1.5, float("nan"), float("inf")),
    *(2**53 + 1, -(2**63), 2**63 - 1, 2**63, -(2**63) - 1, 2**200),
    *("", "a", "é", "a" * 40, "1", Text("a"), Number(1)),
    *(["a", 1], ["a"], [1], (), {"a": 1}, {}, Decimal("1.50"), datetime(2026, 1, 1, tzinfo=UTC)),
]


TESTS = ["IS NULL", "IS NOT NULL", "= 1", "= 'a'", "= TRUE", "> 9007199254740992", "LIKE '%a%'", "!= 'é'"]
RULES = [f"n{number} {test}" for number in range(4) for test in TESTS]
DECLARED = {"n0": "timestamp", "n1": "int", "n2": "string", "n3": "float"}
RULES_OF_DECLARED = [
    *(f"n{number} IS NULL" for number in range(4)),
    *("n0 > TIMESTAMP '1970-01-01 00:00:00'", "n1 = 1", "n2 LIKE 'a%'", "n3 < 2.0", "n1 < 0", "n2 = '1'"),
]


@pytest.mark.filterwarnings("ignore::tamis.ValueWarning")
@pytest.mark.parametrize(
    ("schema", "rules"),
    [(None, [*RULES, "array_contains(m0, 'a') OR n2.a = 1"]), (DECLARED, RULES_OF_DECLARED)],
    ids=["no schema", "schema"],
)
def test_values_of_names_that_were_seen_are_read_as_those_of_an_event(
    schema: dict[str, str] | None, rules: list[str]
):
    draw = random.Random(7)
    index = Index(schema=schema)
    index.add_many(list(range(len(rules))), rules)
    for _ in range(400):
        names = draw.sample(["n0", "n1", "n2", "n3", "m0", "other"], draw.randrange(7))
        event = {name: draw.choice(VALUES) for name in names}
        assert index.match(event) == index.match(tamis.Event(event)), event


def test_text_that_is_not_unicode_is_refused_also_under_a_name_that_was_seen():
    index = Index()
    index.add_many([1, 2], ["a = 'x'", "b = 'y'"])
    for _ in range(3):
        assert index.match({"a": "x", "b": "y"}) == [1, 2]
        with pytest.raises(tamis.EventError, match="not Unicode"):
            index.match({"a": "x", "b": "\ud800"})


def test_a_dict_that_changes_while_it_is_read_is_refused():
    index = Index()
    index.add_many([1, 2], ["array_contains(a, 1)", "b = 2"])
    event: dict[str, Any] = {}

    class Changing(list[int]):
        def __iter__(self):
            event["new"] = 1
            event["b"] = "other"
            return iter([1])

    for _ in range(3):
        event.clear()
        event.update(b=2, a=Changing(), c=3)
        with pytest.raises(tamis.EventError, match="changed"):
            index.match(event)
        event.clear()
        event.update(b=2, c=3, new=0, a=Changing())
        assert index.match(event) == [1, 2]
