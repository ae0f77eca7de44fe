"""Reasons: explanations agree with the oracle, and what `why_not` asks for would help."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from rich.console import Console

import strategies
import tamis
from events import to_dict
from oracle import EITHER, FALSE, TRUE, UNDEFINED, Node, evaluate
from tamis import Explanation, Index, WhyNot
from writer import to_text

NAMES = {TRUE: "true", FALSE: "false", UNDEFINED: "undefined", EITHER: "either"}


@pytest.fixture
def index() -> Index:
    index = Index()
    index.add("a", "age >= 22 AND (country = 'CA' OR NOT name > 3)")
    return index


@given(strategies.expressions(), strategies.events(intervals=True))
def test_truths_agree_with_the_oracle(node: Node, event: dict[str, Any]) -> None:
    index = Index()
    index.add("a", to_text(node))
    explanation = index.explain("a", to_dict(event))
    assert explanation.truth == NAMES[evaluate(node, event)]
    answer = index.why_not("a", to_dict(event)).answer
    assert (answer == "matches") == (index.match(to_dict(event)) == ["a"])


def test_a_tree_of_what_was_seen(index: Index) -> None:
    explanation = index.explain("a", {"age": 27, "name": "Ada"})
    assert str(explanation) == (
        "? AND\n"
        "  ✓ age >= 22 (age is 27)\n"
        "  ? OR\n"
        "    ? country = 'CA' (country is absent)\n"
        "    ? NOT\n"
        "      ? name > 3 (name is 'Ada', a string, but needs a number)"
    )
    assert Explanation.from_json(explanation.to_json()) == explanation
    assert json.loads(explanation.to_json())["children"][0]["value"] == 27


def test_on_a_console(index: Index) -> None:
    def shown(item: object) -> str:
        console = Console(file=io.StringIO(), width=100, force_terminal=True)
        console.print(item)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    text = shown(index.explain("a", {"age": 20}))
    assert "├──" in text
    assert "\x1b[31m✗ age >= 22" in text
    assert "age is 20" in shown(index.why_not("a", {"age": 20}))


def test_why_not(index: Index) -> None:
    answer = index.why_not("a", {"age": 20, "country": "CA"})
    assert (answer.answer, answer.is_smallest) == ("changes", True)
    [change] = answer.changes
    assert (change.predicate, change.attribute, change.value, change.becomes) == (
        "age >= 22",
        "age",
        20,
        True,
    )
    assert str(answer) == str(change) == "age is 20; needs to be >= 22"
    assert WhyNot.from_json(answer.to_json()) == answer
    index.add("never", "x = 1 AND FALSE")
    assert index.why_not("never", {}).answer == "impossible"
    assert str(index.why_not("never", {})) == "no change of its predicates would make it match"


def test_diagrams(index: Index) -> None:
    assert index.diagram("a").startswith("flowchart")
    assert index.diagram("a", "dot").startswith("digraph")
    assert index.diagram("a", event={"age": 27}) != index.diagram("a")
    with pytest.raises(tamis.ArgumentError, match="mermaid"):
        index.diagram("a", "png")  # type: ignore[arg-type]


def test_what_is_not_there(index: Index) -> None:
    for ask in (index.explain, index.why_not):
        with pytest.raises(tamis.UnknownIdError):
            ask("z", {})
        with pytest.raises(tamis.EventError):
            ask("a", "{")
    with pytest.raises(tamis.UnknownIdError):
        index.diagram("z")
