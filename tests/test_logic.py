"""Truth tests and thresholds, as users write them."""

import json
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import Index, col, parse

# Every combination of three truths; None is an absent attribute.
EVENTS: list[dict[str, Any]] = [
    {name: value for name, value in zip("abc", values, strict=True) if value is not None}
    for values in [
        (a, b, c) for a in (True, False, None) for b in (True, False, None) for c in (True, False, None)
    ]
]


class TestTwoValuedRules:
    def test_an_absent_attribute_is_false_and_its_negation_true(self) -> None:
        for text, expected in [
            ("user = 'root'", False),
            ("NOT user = 'root'", True),
            ("user != 'root'", False),
            ("NOT (user = 'root' OR NOT vip)", False),
            ("user = 'root' XOR TRUE", True),
            ("NOT NULL", True),
            ("NOT user <=> 'root'", True),
            ("NOT price * 2 > 5", True),
            ("NOT AT LEAST 1 OF (user = 'root', vip)", True),
        ]:
            rule = parse(text, missing="false")
            assert rule.evaluate({}) is expected, text
            assert tamis.Index().match({}) == []
            index = Index()
            index.add(1, rule)
            assert index.match({}) == ([1] if expected else []), text

    def test_says_what_was_rewritten(self) -> None:
        rule = parse(
            "NOT a = 1 AND (b IS NULL OR a = 1) AND vip IS NOT TRUE AND c LIKE 'x%'", missing="false"
        )
        assert rule.rewritten == ["a = 1", "c LIKE 'x%'"]
        assert parse("a = 1").rewritten == []

    def test_other_words_are_refused(self) -> None:
        with pytest.raises(tamis.ArgumentError, match='"unknown" or "false"'):
            parse("a", missing="nothing")  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["auto", "scan", "a-tree", "boolean", "translation", "bdd", "dewey-id"])
def test_all_truths_of_three_attributes(algorithm: str) -> None:
    texts = [
        f"{words} {count} OF (a, b, c)"
        for words in ("AT LEAST", "AT MOST", "EXACTLY", "NOT AT LEAST")
        for count in range(1, 4)
    ]
    texts += [f"({text}) IS {test}" for text in texts for test in ("TRUE", "NOT TRUE", "FALSE", "UNKNOWN")]
    texts += [
        f"(a {join} b) IS {test}" for join in ("AND", "OR", "XOR") for test in ("NOT FALSE", "NOT UNKNOWN")
    ]
    index = Index(algorithm=algorithm)
    index.add_many(range(len(texts)), texts)
    for event in EVENTS:
        counts = {truth: sum(event.get(name) is truth for name in "abc") for truth in (True, False)}
        for at, text in enumerate(texts[:12]):
            count = at % 3 + 1
            least = counts[True] >= count, counts[False] >= 4 - count
            most = counts[False] >= 3 - count, counts[True] >= count + 1
            exactly = least[0] and most[0], least[1] or most[1]
            can = (least, most, exactly, least[::-1])[at // 3]
            expected = True if can[0] else False if can[1] else None
            assert parse(text).evaluate(event) is expected, (text, event)
        wanted = [at for at, text in enumerate(texts) if parse(text).evaluate(event) is True]
        assert index.match(event) == wanted, event


def test_wide_thresholds_one_by_one_and_in_a_batch() -> None:
    names = [f"x{at}" for at in range(40)]
    index = Index()
    for least in range(1, 41):
        index.add(least, f"AT LEAST {least} OF ({', '.join(f'{name} > 0' for name in names)})")
    events = [dict.fromkeys(names[:true], 1) | dict.fromkeys(names[true:], 0) for true in range(41)]
    for true, event in enumerate(events):
        assert index.match(event) == list(range(1, true + 1))
    found = index.match_batch(pa.Table.from_pylist(events * 30)).to_pylist()
    expected = [(row, least) for row in range(41 * 30) for least in range(1, row % 41 + 1)]
    assert [(match["event"], match["subscription"]) for match in found] == expected


def test_a_threshold_that_the_papers_would_not_hold_is_refused() -> None:
    wide = f"AT LEAST 400 OF ({', '.join(f'x{at}' for at in range(800))})"
    Index().add(1, wide)
    for algorithm in ("a-tree", "translation", "be-tree", "boolean", "interval"):
        with pytest.raises(tamis.UnsupportedExpressionError):
            Index(algorithm=algorithm).add(1, wide)


def test_why_not_changes_as_few_as_needed() -> None:
    index = Index()
    index.add(1, "AT LEAST 3 OF (a, b, c, d) AND NOT AT LEAST 2 OF (e, f, g)")
    reasons = index.why_not(
        1, {"a": True, "b": False, "c": False, "d": False, "e": True, "f": False, "g": False}
    )
    assert len(reasons.changes) == 2


def test_json_and_python_say_the_same() -> None:
    text = "AT LEAST 2 OF (a > 1, NOT b, (c = 'x') IS NOT TRUE)"
    expression = parse(text)
    assert json.loads(expression.to_json())["at_least"] == 2
    assert tamis.Expression.from_json(expression.to_json()) == expression
    built = tamis.at_least(2, col("a") > 1, ~col("b"), parse("(c = 'x') IS NOT TRUE"))
    assert built == expression
    assert str(expression) == text
    read = tamis.Expression.from_json(
        '{"is_false": {"and": [{"attribute": "a", "operator": "truth"}, false]}}'
    )
    assert read == parse("(a AND FALSE) IS FALSE")
    for wrong, why in [
        ('{"at_least": 2}', "belong together"),
        ('{"at_least": "two", "of": [true]}', "number of expressions"),
        ('{"at_least": 1, "of": []}', "at least one"),
    ]:
        with pytest.raises(tamis.ExpressionError, match=why):
            tamis.Expression.from_json(wrong)


def test_a_snapshot_holds_them(tmp_path: Any) -> None:
    index = Index()
    index.add(1, "AT LEAST 2 OF (a, b, c)")
    index.add(2, "NOT (a AND b) IS TRUE")
    index.add(3, "(x > 5)^2 IS UNKNOWN OR AT MOST 1 OF (a, b^3, c)")
    index.optimize()
    index.save(tmp_path / "rules.tamis")
    opened = Index.open(tmp_path / "rules.tamis")
    for event in EVENTS:
        assert opened.match(event) == index.match(event)
        ranked = [
            [(match.id, match.score) for match in held.top_k(event, 3, score="relevance")]
            for held in (opened, index)
        ]
        assert ranked[0] == ranked[1]
