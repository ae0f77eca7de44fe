"""Names of fields are told by the address of their string: no other string may be taken for it."""

from __future__ import annotations

import random

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
