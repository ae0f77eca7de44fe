"""Many rules that are added at once become several segments; answers are those of one.

The kernel for tests makes several of more than 40,000 rules, that of a release of more than a million
(engine/production/bulk.rs).
"""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis

RULES = 80_500


def rule(draw: random.Random) -> str:
    """Many hold for an event, in all segments."""
    weight = draw.choice(["", f"^{draw.randint(1, 9)}"])
    first = f"(x > {draw.randint(0, 999)}){weight} OR y = {draw.randint(0, 400)}"
    return draw.choice([f"({first}) AND z != {draw.randint(0, 9)}", f"({first}) XOR z = 3", first])


@pytest.fixture(
    scope="module", params=["integers", pytest.param("texts in no order", marks=pytest.mark.thorough)]
)
def built(request: pytest.FixtureRequest) -> tuple[tamis.Index, tamis.Index]:
    """The index, and one that tries every rule."""
    draw = random.Random(7)
    ids: list[Any] = [*range(RULES)]
    if request.param != "integers":
        ids = [f"rule {id_ * 7919 % RULES}" for id_ in ids]
    table = pa.table(
        {
            "id": ids,
            "expression": [rule(draw) for _ in ids],
            "priority": [float(draw.randint(0, 50)) for _ in ids],
            "tags": [[draw.choice("abc")] for _ in ids],
        }
    )
    index, scan = tamis.Index(), tamis.Index(algorithm="scan")
    for each in (index, scan):
        assert each.add_table(table) == []
    assert len(index.stats()["segments"]) == 3
    return index, scan


def events() -> list[dict[str, Any]]:
    draw = random.Random(8)
    made = [{"x": draw.randint(0, 99), "y": draw.randint(0, 400), "z": draw.randint(0, 9)} for _ in range(8)]
    return [*made, {}, {"y": 3}, {"z": 3}, {"x": tamis.Interval(20, 30), "z": 1}]


def agree(index: tamis.Index, scan: tamis.Index) -> None:
    """All ways to ask have the answers of the other, in its order."""
    asked = events()
    for event in asked:
        assert index.match(event) == scan.match(event)
        assert index.match(event, tags=["a"]) == scan.match(event, tags=["a"])
        assert index.count(event) == scan.count(event)
        for score in ("priority", "relevance"):
            assert index.top_k(event, 5, score=score) == scan.top_k(event, 5, score=score)
    for lists in (False, True):
        for threads in (1, 3):
            found = index.match_batch(asked, lists=lists, threads=threads)
            assert found.to_pydict() == scan.match_batch(asked, lists=lists).to_pydict()
    assert index.top_k_batch(asked, 4).to_pydict() == scan.top_k_batch(asked, 4).to_pydict()


def test_answers_are_those_of_the_scan(built: tuple[tamis.Index, tamis.Index]) -> None:
    agree(*built)


@pytest.mark.thorough
def test_a_snapshot_has_all_segments(built: tuple[tamis.Index, tamis.Index], tmp_path: Path) -> None:
    index, scan = built
    path = tmp_path / "rules.tamis"
    index.save(path)
    opened = tamis.Index.open(path)
    assert opened.stats()["segments"] == index.stats()["segments"]
    opened.verify()
    agree(opened, scan)
    damaged = bytearray(path.read_bytes())
    for at in range(len(damaged) // 3, len(damaged), len(damaged) // 7):
        changed = bytes([*damaged[:at], damaged[at] ^ 0x40, *damaged[at + 1 :]])
        path.with_name("damaged").write_bytes(changed)
        with pytest.raises(tamis.SnapshotError):
            tamis.Index.open(path.with_name("damaged")).verify()


@pytest.mark.thorough
def test_segments_change(built: tuple[tamis.Index, tamis.Index], tmp_path: Path) -> None:
    """Rules that are added lie between those of the segments."""
    built[0].save(tmp_path / "rules.tamis")
    index, scan = tamis.Index.open(tmp_path / "rules.tamis", copy=True), tamis.Index(algorithm="scan")
    ids = list(built[1])
    rules = [built[1][id_] for id_ in ids]
    scan.add_many(
        ids,
        [rule.expression for rule in rules],
        priorities=[rule.priority for rule in rules],
        tags=[rule.tags for rule in rules],
    )
    draw = random.Random(9)
    for id_ in draw.sample(ids, 300):
        expression = rule(draw)
        for each in (index, scan):
            each.replace(id_, expression)
    for id_ in draw.sample(ids, 3_000):
        index.remove(id_)
        scan.remove(id_)
    agree(index, scan)
    index.optimize()
    agree(index, scan)


def test_errors_are_collected_once() -> None:
    """Fault: rows that are looked at to decide how many segments there will be are looked at again."""
    draw = random.Random(10)
    texts = [rule(draw) if row % 9_000 else "x >" for row in range(RULES)]
    index = tamis.Index()
    errors = index.add_many(range(RULES), texts, on_error="collect")
    assert [error.row for error in errors] == [*range(0, RULES, 9_000)]
    assert len(index) == RULES - len(errors)
    with pytest.raises(tamis.ExpressionError, match="row 0"):
        tamis.Index().add_many(range(RULES), texts)
