"""The benchmark of peers: what is said in other languages means the same, and disagreement is noticed."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tamis
from tamis_lab.workloads import AbeGen, Dense, Workload

PEERS = Path(__file__).parents[3] / "bench" / "peers"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PEERS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


languages = _load("languages")
driver = _load("run")

WORKLOADS: list[Workload] = [
    AbeGen(count=300, seed=5, attributes=30),
    Dense(count=300, seed=5, range_width=0.3),
]


def _rules(workload: Workload) -> list[tuple[str, Any]]:
    texts = workload.subscriptions_table()["expression"].to_pylist()
    return [(text, languages.simplify(json.loads(tamis.parse(text).to_json()))) for text in texts]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.thorough
def test_python_means_the_same(workload: Workload) -> None:
    matches = 0
    for text, tree in _rules(workload):
        rule = eval(f"lambda e: {languages.python(tree)}", {"NAN": float("nan")})
        expression = tamis.parse(text)
        for event in workload.events(10):
            expected = expression.evaluate(event) is True
            assert bool(rule(event)) == expected, (text, event)
            matches += expected
    assert matches > 0


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.thorough
def test_sql_means_the_same(duck: Any, workload: Workload) -> None:
    rules = _rules(workload)[:60]
    rows = workload.events_table(20)
    duck.register("rows", rows)
    for text, tree in rules:
        [(found,)] = duck.execute(f"SELECT count(*) FROM rows WHERE {languages.sql(tree)}").fetchall()
        index = tamis.Index()
        index.add(1, text)
        assert found == sum(index.count(event) for event in workload.events(20)), text


def test_conjunctions_are_the_normal_form_and_too_many_are_refused() -> None:
    def tree(text: str) -> Any:
        return languages.simplify(json.loads(tamis.parse(text).to_json()))

    patterns = languages.event_ruler(tree("a = 1 AND (b BETWEEN 2 AND 4 OR NOT c IN (5, 6))"))
    assert patterns == [
        {"a": [1], "b": [{"numeric": [">=", 2, "<=", 4]}]},
        {"a": [1], "c": [{"anything-but": [5, 6]}]},
    ]
    many = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(7))
    with pytest.raises(languages.CannotExpressError, match="too many"):
        languages.event_ruler(tree(many))
    with pytest.raises(languages.CannotExpressError, match="several predicates"):
        languages.event_ruler(tree("a = 1 AND a != 2"))


def test_disagreement_is_shown() -> None:
    assert driver.compare({"counts": [1, 2]}, {"counts": [1, 2, 3]}) == "equal"
    said = driver.compare({"counts": [1, 5]}, {"counts": [1, 2]})
    assert said == "1 of 2 events differ; event 1: 5, Tamis 2"


def test_an_adapter_finds_what_tamis_finds(tmp_path: Path) -> None:
    workload = Dense(count=200, seed=2, range_width=0.3)
    written = driver.write_files(workload, tmp_path, {"python"})
    assert written == {"text": 200, "python": 200}
    figures = [
        driver.measure(peer.prepare(), tmp_path / f"{peer.language}.jsonl", tmp_path / "events.jsonl", 1, 120)
        for peer in driver.PEERS
        if peer.name in ("tamis", "plain Python")
    ]
    assert figures[0]["matches"] > 0
    assert driver.compare(figures[1], figures[0]) == "equal"
    broken = driver.measure(
        [sys.executable, "-c", "raise SystemExit('no such peer')"], tmp_path, tmp_path, 1, 60
    )
    assert broken == {"failed": "no such peer"}
