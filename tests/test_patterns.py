"""Many patterns agree with the oracle: in an index that is built, changed, saved and opened."""

import random
from pathlib import Path
from typing import Any

import pytest

import tamis
from oracle import Connective, IsTruth, Node, Not, Predicate, evaluate
from seeds import few
from writer import to_text

LETTERS = [
    "a",
    "b",
    "B",
    "c",
    "k",
    "K",
    "\u212a",
    "é",
    "É",
    "σ",
    "ς",
    "Σ",
    "İ",
    "ß",
    "\\",
    "%",
    "_",
    " ",
    "-",
]
"""Few, so that patterns overlap; some change their length or depend on what follows in lower case."""

REGEXES = [
    "(?i)b.c",
    "a+b",
    "(ab|ca)k",
    "(?i)(ab|ba)+",
    "^b",
    "(?i)σ",
    "Σ",
    "[Bb]ak",
    "c$",
    "a.c",
    "(?i)k",
    "é|É",
    "()",
]
OPERATORS = ["LIKE", "ILIKE", "ILIKE", "startswith", "endswith", "contains", "RLIKE", "=", "IN"]


def text(draw: random.Random, longest: int) -> str:
    return "".join(draw.choices(LETTERS, k=draw.randint(0, longest)))


def wildcard(draw: random.Random) -> str:
    pieces = []
    for _ in range(draw.randint(0, 5)):
        kind = draw.random()
        if kind < 0.3:
            pieces.append("%")
        elif kind < 0.4:
            pieces.append("_")
        else:
            piece = text(draw, 4)
            for special in ("\\", "%", "_"):
                piece = piece.replace(special, "\\" + special)
            pieces.append(piece)
    return "".join(pieces)


def predicate(draw: random.Random) -> Node:
    operator = draw.choice(OPERATORS)
    operands: tuple[Any, ...]
    if operator in ("LIKE", "ILIKE"):
        operands = (wildcard(draw),)
    elif operator == "RLIKE":
        operands = (draw.choice(REGEXES),)
    elif operator == "IN":
        operands = tuple(text(draw, 3) for _ in range(draw.randint(1, 3)))
    else:
        operands = (text(draw, 4),)
    found: Node = Predicate(draw.choice(["s", "s", "t"]), operator, operands)
    kind = draw.random()
    if kind < 0.15:
        return Not(found)
    if kind < 0.4:
        return IsTruth(found, "TRUE", negated=draw.random() < 0.7)
    return found


def rule(draw: random.Random) -> Node:
    parts = [predicate(draw) for _ in range(draw.choice([1, 1, 2, 3]))]
    return parts[0] if len(parts) == 1 else Connective(draw.choice(["AND", "OR"]), tuple(parts))


def events(draw: random.Random, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}, {"s": ""}, {"s": 5, "t": "a"}, {"s": None}]
    for _ in range(count):
        event = {name: text(draw, 14) for name in ("s", "t") if draw.random() < 0.9}
        found.append(event)
    return found


def agree(index: tamis.Index, rules: dict[int, Node], asked: list[dict[str, Any]]) -> None:
    batch = index.match_batch(asked)
    by_event: dict[int, list[int]] = {}
    for row in batch.to_pylist():
        by_event.setdefault(row["event"], []).append(row["subscription"])
    for number, event in enumerate(asked):
        expected = [id for id, node in sorted(rules.items()) if evaluate(node, event).can_be_true]
        found = index.match(event)
        wrong = sorted(set(found) ^ set(expected))
        assert not wrong, (event, to_text(rules[wrong[0]]))
        assert sorted(by_event.get(number, [])) == expected, event


@pytest.mark.parametrize("seed", few(range(4)))
def test_random_patterns_agree_with_the_oracle(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    rules = {id: rule(draw) for id in range(400)}
    asked = events(draw, 60)
    index = tamis.Index()
    index.add_many(list(rules), [to_text(node) for node in rules.values()])
    agree(index, rules, asked)
    for id in draw.sample(sorted(rules), 150):  # what is removed is not found any more
        index.remove(id)
        del rules[id]
    for id in range(1000, 1100):  # what comes later is
        rules[id] = rule(draw)
        index.add(id, to_text(rules[id]))
    agree(index, rules, asked)
    index.save(tmp_path / "rules.tamis")
    opened = tamis.open(tmp_path / "rules.tamis")
    agree(opened, rules, asked)
    opened.add(5000, "s ILIKE '%B%'")
    rules[5000] = Predicate("s", "ILIKE", ("%B%",))
    opened.optimize()
    opened.save(tmp_path / "again.tamis")
    agree(tamis.open(tmp_path / "again.tamis"), rules, asked)


@pytest.mark.slow
def test_ten_thousand_patterns_on_one_attribute(tmp_path: Path) -> None:
    draw = random.Random(7)
    words = ["".join(draw.choices("abcdef", k=draw.randint(1, 9))).capitalize() for _ in range(10_000)]
    kinds = [draw.choice(["{}%", "%{}", "%{}%", "{}", "%{}_%x%"]) for _ in words]
    index = tamis.Index()
    patterns = [kind.format(word) for kind, word in zip(kinds, words, strict=True)]
    index.add_many(range(10_000), [f"s ILIKE '{pattern}'" for pattern in patterns])
    index.save(tmp_path / "rules.tamis")
    opened = tamis.open(tmp_path / "rules.tamis")
    for _ in range(20):
        event = {"s": "".join(draw.choices("abcdefABCDEFx", k=60))}
        expected = [
            at
            for at, pattern in enumerate(patterns)
            if evaluate(Predicate("s", "ILIKE", (pattern,)), event).can_be_true
        ]
        assert index.match(event) == opened.match(event) == expected


def test_a_snapshot_keeps_what_finds_patterns(tmp_path: Path) -> None:
    index = tamis.Index()
    index.add_many(range(300), [f"s ILIKE '%word{number}%'" for number in range(300)])
    index.add(300, "s RLIKE '(?i)needle[0-9]+'")
    index.save(tmp_path / "rules.tamis")
    assert b"pattern_numbers" in (tmp_path / "rules.tamis").read_bytes()
    opened = tamis.open(tmp_path / "rules.tamis")
    assert opened.match({"s": "a WORD7 and a Needle5"}) == [7, 300]
    plain = tamis.Index()
    plain.add(1, "x > 5")
    plain.save(tmp_path / "plain.tamis")
    assert b"pattern_numbers" not in (tmp_path / "plain.tamis").read_bytes()
