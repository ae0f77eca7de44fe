"""Reasons: explanations agree with the oracle, and what `why_not` asks for would help."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


WHERE = ["> 1", "!= 0", "NOT IN (1, 2)", "IN (0, 7)", "BETWEEN 0 AND 3", "<= 0.5"]
TAGS = ["red", "green", "blue"]
INEXACT = {"overlap": "approximate"}


@st.composite
def events_with_sets(draw: Callable[..., Any]) -> dict[str, Any]:
    """An event of points, intervals and sets that a predicate gives."""
    event = to_dict(draw(strategies.events(intervals=True)))
    for attribute in ("i", "f"):
        if draw(st.integers(0, 3)) == 0:
            event[attribute] = tamis.Where(draw(st.sampled_from(WHERE)))
    return event


def indexes(text: str, **details: Any) -> Iterator[Index]:
    """An index of each kind that can hold an expression: buffer, segment, each algorithm."""
    made = [Index(), *(Index(algorithm=name) for name in tamis.ALGORITHMS if name != "auto")]
    for index in [*made, Index(algorithm="be-star-tree", options=INEXACT)]:
        try:
            index.add("b", "i > 0")
            index.add("a", text, **details)
        except tamis.UnsupportedExpressionError:
            continue
        yield index
        if index.algorithm == "auto":
            index.optimize()
            yield index


few_tags = st.just([]) | st.lists(st.sampled_from(TAGS), max_size=2, unique=True)


@given(
    node=strategies.expressions(depth=3),
    event=events_with_sets(),
    expires=st.none() | st.integers(1, 3),
    tags=few_tags,
    wanted=st.none() | few_tags,
    all_of=few_tags,
    none_of=few_tags,
    now=st.integers(0, 4),
)
def test_never_disagrees_with_match(
    *,
    node: Node,
    event: dict[str, Any],
    expires: int | None,
    tags: list[str],
    wanted: list[str] | None,
    all_of: list[str],
    none_of: list[str],
    now: int,
) -> None:
    query: dict[str, Any] = {"tags": wanted, "tags_all": all_of, "tags_none": none_of, "now": now}
    selects = (
        (expires is None or expires > now)
        and (wanted is None or bool(set(tags) & set(wanted)))
        and set(all_of) <= set(tags)
        and not set(none_of) & set(tags)
    )
    for index in indexes(to_text(node), tags=tags, expires=expires):
        matches = "a" in index.match(event, **query)
        explanation = index.explain("a", event, **query)
        assert explanation.matches == matches, index
        assert (explanation.exclusions == ()) == selects
        assert explanation.approximate <= (index.options == INEXACT)
        why_not = index.why_not("a", event, **query)
        assert (why_not.answer == "matches") == matches, index
        assert why_not.exclusions == explanation.exclusions
        excluded = explanation.truth in ("true", "either") and not matches
        assert (why_not.answer == "excluded") == excluded


def test_what_match_does_not_look_at_is_not_looked_at() -> None:
    index = Index()
    index.add("a", "x > 1")
    event = {"x": 2, "unused": object()}
    assert index.match(event) == ["a"]
    assert index.explain("a", event).matches
    assert index.why_not("a", event).answer == "matches"


def test_expired_and_untagged_is_said_first() -> None:
    index = Index()
    index.add("a", "x > 1", tags=["red", "green"], expires=datetime(2026, 1, 31, 12, tzinfo=UTC))
    now = datetime(2026, 2, 1, tzinfo=UTC)
    explanation = index.explain("a", {"x": 2}, tags=["blue"], now=now)
    assert (explanation.truth, explanation.verdict) == ("true", "no match")
    assert str(explanation).splitlines() == [
        "no match: it expired at 2026-01-31 12:00:00 UTC, and it is 2026-02-01 00:00:00 UTC; "
        "needs a query before then, or a later expiry",
        "no match: its tags are `red`, `green`; needs the tag `blue`",
        "✓ x > 1 (x is 2)",
    ]
    assert Explanation.from_json(explanation.to_json()) == explanation
    why_not = index.why_not("a", {"x": 0}, tags=["blue", "black"], now=now)
    assert str(why_not).splitlines()[1:] == [
        "its tags are `red`, `green`; needs one of the tags `blue`, `black`",
        "x is 0; needs to be > 1",
    ]
    assert (why_not.answer, len(why_not.exclusions)) == ("changes", 2)
    assert WhyNot.from_json(why_not.to_json()) == why_not
    excluded = index.why_not("a", {"x": 2}, tags=[], now=0)
    assert (excluded.answer, excluded.changes) == ("excluded", ())
    assert str(excluded) == "its tags are `red`, `green`; needs a query that names a tag, or leaves tags out"
    kinds = index.explain("a", {"x": 2}, tags_all=["red", "blue"], tags_none=["green"], now=0).exclusions
    assert [(exclusion.kind, str(exclusion)) for exclusion in kinds] == [
        ("tags_all", "its tags are `red`, `green`; needs the tag `blue`"),
        ("tags_none", "it has the tag `green`; needs to be without it"),
    ]
    # Without a moment, this one decides.
    assert not index.explain("a", {"x": 2}).matches
    assert index.explain("a", {"x": 2}, now=datetime(2026, 1, 31, 11, 59, tzinfo=UTC)).matches


def test_a_match_by_the_approximate_meaning_is_called_so() -> None:
    index = Index(algorithm="be-star-tree", options=INEXACT)
    index.add("a", "x IN (1, 9)", tags=["red"])
    event = {"x": tamis.Where("IN (4, 5)")}
    explanation = index.explain("a", event)
    assert explanation.matches
    assert explanation.approximate
    assert str(explanation).startswith("match: the index compares the intervals around values")
    assert Explanation.from_json(explanation.to_json()) == explanation
    assert index.why_not("a", event).answer == "matches"
    assert not index.explain("a", event, tags=["blue"]).matches


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
    assert shown(index.explain("a", {"age": 20}, tags=["q4"])).startswith("\x1b[31mno match: it has no tags")


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
