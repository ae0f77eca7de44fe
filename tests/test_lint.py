"""Slips in rules that are well formed."""

import pytest

import tamis
from tamis.lint import example, lint


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (["x > 5 AND x < 3"], [(0, "never true")]),
        (["x IS NULL OR x IS NOT NULL"], [(0, "always true")]),
        (["x = 1 OR x != 1"], []),  # not where x is absent
        (["x > 1", "x>1"], [(1, "repeated")]),
        (["x > 1", "x > 2"], [(1, "covered")]),
        (["x > 1 AND y = 2", "x > 1"], []),  # other attributes: not compared
        ([r"path = 'C:\dir'"], [(0, "dropped backslash")]),
        ([r"path = 'C:\\dir' AND p = r'C:\dir' AND s LIKE '50\%' AND t = 'a\n'"], []),
        (["NOT (x = 1 AND y = 2)"], [(0, "absent under NOT"), (0, "absent under NOT")]),
        (["x NOT IN (1, 2)"], [(0, "absent under NOT")]),
        (["x IS NULL OR x NOT IN (1, 2)"], []),
        (["(x = 1) IS NOT TRUE"], []),
        (["x >", "x > 1"], []),
    ],
)
def test_findings(rules: list[str], found: list[tuple[int, str]]) -> None:
    assert [(finding.row, finding.lint) for finding in lint(rules)] == found


def test_an_example_matches() -> None:
    expression = tamis.parse("(age BETWEEN 20 AND 30 OR vip) AND startswith(name, 'A') AND note != 'x'")
    event = example(expression)
    assert event is not None
    assert expression.evaluate(event) is True
    assert example(tamis.parse("x > 2 AND x < 1")) is None
