"""Paths with weights: top-k by the score of the best embedding, against the definition in `scored_paths`."""

import random
import re

import pyarrow as pa
import pytest
from lxml import etree

import tamis
from scored_paths import ScoredPath, random_scored_document, random_scored_path
from seeds import few
from tamis import col


def distinct(source: random.Random, count: int) -> list[ScoredPath]:
    return list({str(path): path for path in (random_scored_path(source) for _ in range(count))}.values())


def index_of(paths: list[ScoredPath], algorithm: str = "auto") -> tamis.Index:
    index = tamis.Index(algorithm=algorithm)
    index.add_many(range(len(paths)), [col("doc").xpath(str(path)) for path in paths])
    return index


def ranked(scores: dict[int, float], k: int) -> list[tuple[int, float, int]]:
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    return [(number, score, rank) for rank, (number, score) in enumerate(best, 1)]


def scores_in(paths: list[ScoredPath], document: str) -> dict[int, float]:
    tree = etree.ElementTree(etree.fromstring(document))
    scored = ((number, path.score(tree)) for number, path in enumerate(paths))
    return {number: score for number, score in scored if score is not None}


def answers(index: tamis.Index, document: str, k: int) -> list[tuple[int, float, int]]:
    return [tuple(match) for match in index.top_k({"doc": document}, k=k, score="relevance")]


@pytest.mark.parametrize("seed", few(range(4)))
def test_the_best_are_those_of_sorting_all(seed: int) -> None:
    source = random.Random(seed)
    paths = distinct(source, 150)
    index = index_of(paths)
    if seed % 2:
        index.optimize()
    for _ in range(15):
        document = random_scored_document(source)
        scores = scores_in(paths, document)
        assert index.match({"doc": document}) == sorted(scores)
        for k in (1, 3, 10, 1000):
            assert answers(index, document, k) == ranked(scores, k), document


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(100, 130)))
def test_the_best_are_those_of_sorting_all_often(seed: int) -> None:
    source = random.Random(seed)
    paths = distinct(source, 300)
    index = index_of(paths)
    index.optimize()
    for _ in range(60):
        document = random_scored_document(source)
        assert answers(index, document, 5) == ranked(scores_in(paths, document), 5), document


def test_after_churn_in_a_snapshot_and_in_batches(tmp_path) -> None:
    source = random.Random(20)
    paths = distinct(source, 240)
    index, alive = index_of(paths[:120]), set(range(120))
    for number in range(120, len(paths)):
        index.add(number, col("doc").xpath(str(paths[number])))
        gone = source.choice(sorted(alive))
        index.remove(gone)
        alive = (alive | {number}) - {gone}
    index.save(tmp_path / "rules.tamis")
    stored = tamis.Index.open(tmp_path / "rules.tamis")
    documents = [random_scored_document(source) for _ in range(12)]
    expected = []
    for row, document in enumerate(documents):
        scores = {n: score for n, score in scores_in(paths, document).items() if n in alive}
        best = ranked(scores, 4)
        assert answers(index, document, 4) == answers(stored, document, 4) == best
        expected += [(row, *match) for match in best]
    for some in (index, stored):
        batch = some.top_k_batch(pa.table({"doc": documents}), k=4, score="relevance").to_pydict()
        columns = [batch[name] for name in ("event", "subscription", "score", "rank")]
        assert list(zip(*columns, strict=True)) == expected


def test_boosts_event_weights_functions_and_relaxed_scores_multiply() -> None:
    source = random.Random(21)
    paths = distinct(source, 80)
    boosts = [source.choice((0.5, 1.0, 3.0)) for _ in paths]
    index = tamis.Index()
    for number, (path, boost) in enumerate(zip(paths, boosts, strict=True)):
        text = str(path).replace("'", "\\'")
        index.add(number, f"(xpath(doc, '{text}'))^{boost} OR NOT (xpath(doc, '{text}'))^0.25")
    for _ in range(10):
        document = random_scored_document(source)
        found = scores_in(paths, document)
        scores = {
            number: (boost * 2.0) * found[number] if number in found else 0.25 * 2.0
            for number, boost in enumerate(boosts)
        }
        event = tamis.Event({"doc": document}, weights={"doc": 2.0})
        for score in ("relevance", "relaxed", "1 * doc"):
            best = [tuple(match) for match in index.top_k(event, k=7, score=score)]
            assert best == ranked(scores, 7), (score, document)


@pytest.mark.parametrize("algorithm", [name for name in tamis.ALGORITHMS if name != "auto"])
def test_every_algorithm_that_takes_paths_agrees(algorithm: str) -> None:
    source = random.Random(22)
    paths = distinct(source, 40)
    try:
        index = index_of(paths, algorithm)
    except tamis.UnsupportedExpressionError:
        return
    for _ in range(6):
        document = random_scored_document(source)
        assert answers(index, document, 5) == ranked(scores_in(paths, document), 5)


def test_bounds_spare_the_documents_of_paths_that_cannot_win() -> None:
    index = tamis.Index()
    rules = [f"xpath(doc, '/a[b]^{number}')" for number in range(2000)]
    index.add_many(range(2000), rules)
    index.optimize()
    best = index.top_k({"doc": "<a><b/></a>"}, k=2, score="relevance")
    assert best == [(1999, 1999.0, 1), (1998, 1998.0, 2)]
    assert index.stats()["observed"]["evaluations_per_event"] < 100


def test_weights_are_written_where_they_were_read() -> None:
    expression = tamis.parse("xpath(doc, '/a ^ 2 [ b ] ^.5')")
    assert str(expression) == "xpath(doc, '/a^2[b]^0.5')"
    assert tamis.Expression.from_json(expression.to_json()) == expression
    assert expression.to_sql("spark") == "xpath_boolean(`doc`, '/a[b]')"
    for text, part in (
        ("/a^-1", "a weight is a number"),
        ("/a[b > 5^2]", "not behind a value"),
        ("/a[not(b^2)]", "inside not()"),
    ):
        with pytest.raises(tamis.ExpressionError, match=re.escape(part)) as refused:
            col("doc").xpath(text)
        assert refused.value.hint
    with pytest.raises(tamis.ExpressionError, match="inside a quantifier"):
        tamis.parse("exists(docs, d -> xpath(d, '/a^2'))")


def test_explanations_name_the_best_embedding_and_its_score() -> None:
    index = tamis.Index()
    index.add("ann", "xpath(doc, '/news/item^1[(price > 5)^2 or (@lang = \"en\")^3]/title')")
    document = "<news><item lang='en'><title/></item><item lang='en'><price>7</price><title/></item></news>"
    text = str(index.explain("ann", {"doc": document}))
    assert "at /news/item[2] (6)" in text
    assert "scores 6" in text
    assert index.top_k({"doc": document}, score="relevance") == [("ann", 6.0, 1)]
    assert index.top_k({"doc": "<news/>"}, score="relevance") == []


def test_paths_that_differ_in_weights_only_are_asked_once() -> None:
    index = tamis.Index()
    index.add_many(range(500), [f"xpath(doc, '/a/b[c = 1]^{number}/d')" for number in range(500)])
    index.optimize()
    plain = tamis.Index()
    plain.add_many(range(500), ["xpath(doc, '/a/b[c = 1]/d')"] * 500)
    plain.optimize()
    assert index.stats()["predicates"] == plain.stats()["predicates"]
