"""The cost model: golden values of the book auction, agreement with real translation, the command."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tamis.cli.app import app
from tamis.costs import MODELLED, Parameters, measure, shape_of
from tamis.workloads import BookAuction


@pytest.mark.parametrize(
    ("parameters", "boolean", "counting", "cluster"),
    [
        (Parameters(6, 4, 1, 6, 2, 8 / 6), 68.75, 68.75, 80.75),
        (Parameters(12, 10, 1, 12, 4, 20 / 12), 135.5, 169.5, 193.5),
        (Parameters(7, 6, 1, 7, 6, 18 / 7), 81.875, 156.875, 192.875),
    ],
)
def test_bytes_of_the_three_classes(
    parameters: Parameters, boolean: float, counting: float, cluster: float
) -> None:
    assert [parameters.bytes(name) for name in MODELLED] == pytest.approx([boolean, counting, cluster])


def test_turning_point_of_the_example_in_the_text() -> None:
    ten = Parameters(
        predicates=10, operators=8, subscriptions=1, unique_predicates=10, conjunctions=1, predicate_uses=0.7
    )
    assert ten.turning_point("counting") == pytest.approx(112 / 58)
    with pytest.raises(ValueError, match="no formula for 'bdd'"):
        ten.turning_point("bdd")


_LEAVES = st.integers(0, 5).map(lambda n: f"a{n} = {n}")
_TEXTS = st.recursive(
    _LEAVES,
    lambda inner: st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
    max_leaves=6,
)


def _translate(node: object) -> list[list[str]]:
    assert isinstance(node, dict)
    if "attribute" in node:
        return [[node["attribute"]]]
    [(operator, children)] = node.items()
    parts = [_translate(child) for child in children]
    if operator == "or":
        return [conjunction for part in parts for conjunction in part]
    found: list[list[str]] = [[]]
    for part in parts:
        found = [left + right for left in found for right in part]
    return found


@given(_TEXTS)
def test_shapes_are_counted_as_if_translated(text: str) -> None:
    import tamis

    translated = _translate(json.loads(tamis.parse(text).to_json()))
    shape = shape_of(text)
    assert shape.conjunctions == len(translated)
    assert shape.translated == sum(len(conjunction) for conjunction in translated)


def test_negation_and_xor_are_counted_as_written_out() -> None:
    assert shape_of("a = 1 XOR b = 2") == shape_of("(a = 1 AND NOT b = 2) OR (NOT a = 1 AND b = 2)")
    assert shape_of("NOT (a = 1 XNOR b = 2)") == shape_of("a = 1 XOR b = 2")


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="no predicates"):
        measure([])


def test_command_compares_model_and_measurement(tmp_path: Path) -> None:
    rules = tmp_path / "rules.parquet"
    pq.write_table(BookAuction(count=300, classes=(3,)).subscriptions_table(), rules)
    printed = CliRunner().invoke(app, ["cost", str(rules), "--json"])
    assert printed.exit_code == 0, printed.output
    record = json.loads(printed.output)
    assert record["model"] == "boolean"
    assert record["parameters"]["conjunctions"] == 6
    assert record["algorithms"]["counting"]["model_bytes"] > record["algorithms"]["boolean"]["model_bytes"]
    assert all(one["measured_bytes"] > 0 and one["refused"] == 0 for one in record["algorithms"].values())
    text = CliRunner().invoke(app, ["cost", str(rules)])
    assert "least memory: boolean by the model" in text.output
