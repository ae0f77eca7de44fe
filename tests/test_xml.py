"""XML documents as values, and paths in them as predicates; lxml is the judge."""

import pickle
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from seeds import few
from tamis import col
from xml_paths import DECLARATION, NAMESPACES, Judge, is_well_formed, random_document, random_path

NEWS = b"""<news>
  <item lang="en"><title>On sieves</title><price>7</price></item>
  <item lang="de"><title>Siebe</title><price>3</price></item>
</news>"""


def index_of(paths: list[str], algorithm: str = "auto") -> tamis.Index:
    index = tamis.Index(algorithm=algorithm)
    index.add_many(range(len(paths)), [col("doc").xpath(DECLARATION + path) for path in paths])
    return index


def distinct_paths(source: random.Random, count: int) -> list[str]:
    return list(dict.fromkeys(random_path(source) for _ in range(count)))


# --- what a path means -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(6)))
def test_agrees_with_lxml(seed: int) -> None:
    source = random.Random(seed)
    paths = distinct_paths(source, 200)
    index, judge = index_of(paths), Judge(paths)
    if seed % 2:
        index.optimize()
    for _ in range(25):
        document = random_document(source)
        assert index.match({"doc": document}) == judge.true_for(document), document


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(100, 125)))
def test_agrees_with_lxml_on_a_million_pairs(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(4):
        paths = distinct_paths(source, 200)
        index, judge = index_of(paths), Judge(paths)
        for _ in range(60):
            document = random_document(source)
            assert index.match({"doc": document}) == judge.true_for(document), document


def test_agrees_with_lxml_after_churn_and_in_a_snapshot(tmp_path) -> None:
    source = random.Random(7)
    paths = distinct_paths(source, 600)
    index, judge = index_of(paths[:300]), Judge(paths)
    alive = set(range(300))
    documents = [random_document(source) for _ in range(10)]
    for number in range(300, len(paths)):
        index.add(number, col("doc").xpath(paths[number], NAMESPACES))
        alive.add(number)
        gone = source.choice(sorted(alive))
        index.remove(gone)
        alive.remove(gone)
        if number % 60 == 0:
            document = source.choice(documents)
            assert index.match({"doc": document}) == sorted(alive & set(judge.true_for(document)))
    index.save(tmp_path / "rules.tamis")
    stored = tamis.Index.open(tmp_path / "rules.tamis")
    index.optimize()
    for document in documents:
        expected = sorted(alive & set(judge.true_for(document)))
        assert index.match({"doc": document}) == expected
        assert stored.match({"doc": document}) == expected


def test_agrees_with_lxml_in_batches_and_under_not() -> None:
    source = random.Random(8)
    paths = distinct_paths(source, 100)
    judge = Judge(paths)
    index = tamis.Index()
    for number, path in enumerate(paths):
        found = col("doc").xpath(path, NAMESPACES)
        index.add(number, found & (col("n") >= 0))
        index.add(1000 + number, ~found)
    documents = [random_document(source) for _ in range(40)] + [None, "<a>", "no document"]
    table = pa.table({"doc": documents, "n": range(len(documents))})
    expected = {"event": [], "subscription": []}
    for row, document in enumerate(documents):
        true = judge.true_for(document) if row < 40 else []
        false = sorted(set(range(len(paths))) - set(true)) if row < 40 else []
        ids = [*true, *(1000 + number for number in false)]
        expected["event"] += [row] * len(ids)
        expected["subscription"] += ids
        assert index.match({"doc": document, "n": row}) == ids
    assert index.match_batch(table).to_pydict() == expected


@pytest.mark.parametrize("algorithm", [name for name in tamis.ALGORITHMS if name != "auto"])
def test_every_algorithm_that_takes_it_agrees(algorithm: str) -> None:
    source = random.Random(9)
    paths = distinct_paths(source, 40)
    try:
        index = index_of(paths, algorithm)
    except tamis.UnsupportedExpressionError:
        return
    judge = Judge(paths)
    for _ in range(10):
        document = random_document(source)
        assert index.match({"doc": document}) == judge.true_for(document)


def test_many_texts_to_search_for_agree_with_python() -> None:
    source = random.Random(10)
    words = [
        "".join(source.choice("abc") for _ in range(source.choice((1, 2, 3, 5, 8)))) for _ in range(1500)
    ]
    paths = [f"//t[contains(., '{word}')]" for word in words]
    paths += [f"/d/t[starts-with(@x, '{word}')]" for word in words]
    index = index_of(paths)
    index.optimize()
    for _ in range(10):
        texts = ["".join(source.choice("abcd") for _ in range(30)) for _ in range(4)]
        document = (
            "<d>" + "".join(f"<t x='{text[::-1]}'>{text[:9]}<b>{text[9:]}</b></t>" for text in texts) + "</d>"
        )
        found = [at for at, word in enumerate(words) if any(word in text for text in texts)]
        begun = [at for at, word in enumerate(words) if any(text[::-1].startswith(word) for text in texts)]
        assert index.match({"doc": document}) == found + [len(words) + at for at in begun]


def test_deep_recursion_of_one_name() -> None:
    document = "<a>" * 200 + "<b/>" + "</a>" * 200
    paths = [
        "//a//a//b",
        "/a" * 50 + "//b",
        "//a" * 40 + "/b",
        "//a[.//a[.//a[.//c]]]//b",
        "/a//*//a[not(a)]/b",
        "//b//a",
    ]
    assert index_of(paths).match({"doc": document}) == Judge(paths).true_for(document) == [0, 1, 2, 4]


def test_three_valued() -> None:
    index = tamis.Index()
    index.add("true", "xpath(doc, '//item[price > 5]')")
    index.add("false", "NOT xpath(doc, '//item[price > 50]')")
    index.add("unknown", "(xpath(doc, '//item')) IS UNKNOWN")
    index.add("or", "xpath(doc, '//item') OR n = 1")
    assert index.match({"doc": tamis.Xml(NEWS), "n": 1}) == ["false", "or", "true"]
    for absent in ({}, {"doc": None}, {"doc": "<a>"}, {"doc": 5}):
        assert index.match({**absent, "n": 1}) == ["or", "unknown"]


def test_combines_with_scores_tags_and_owners() -> None:
    index = tamis.Index()
    index.add("a", "(xpath(doc, '//item[@lang = \"en\"]'))^2 AND n > 0", tags=["q4"])
    index.add("b", "xpath(doc, '//title') OR n > 5", priority=3)
    event = {"doc": tamis.Xml(NEWS), "n": 1}
    assert index.top_k(event, k=2) == [("b", 3.0, 1), ("a", 0.0, 2)]
    assert index.top_k(event, k=2, score="relevance") == [("a", 3.0, 1), ("b", 1.0, 2)]
    assert index.match(event, tags=["q4"]) == ["a"]
    assert index.match('{"doc": "<news><title/></news>"}') == ["b"]


# --- how it is written -----------------------------------------------------------------------------------


def test_refusals_say_where_and_what_would_work() -> None:
    with pytest.raises(
        tamis.ExpressionError, match="at character 12: positions are not supported"
    ) as refused:
        tamis.parse("xpath(doc, '/news/item[1]')")
    assert "price > 5" in refused.value.hint
    for text in ("news", "/a/..", "/a | /b", "/a[last()]", "/a/following::b", "/p:a", "/a[b = c]"):
        with pytest.raises(tamis.ExpressionError):
            col("doc").xpath(text)


def test_forms_of_one_expression() -> None:
    expression = tamis.parse("xpath(doc, '/a [ b=\"x\" ]')")
    assert str(expression) == "xpath(doc, '/a[b = \\'x\\']')"
    assert tamis.Expression.from_json(expression.to_json()) == expression == col("doc").xpath("/a[b = 'x']")
    assert expression.to_sql("spark") == "xpath_boolean(`doc`, '/a[b = \\'x\\']')"
    with pytest.raises(tamis.ExpressionError, match="DuckDB"):
        expression.to_sql("duckdb")
    with pytest.raises(tamis.ExpressionError, match="namespaces"):
        col("doc").xpath("/p:a", NAMESPACES).to_sql("spark")


def test_explanations_name_nodes_and_the_deepest_step() -> None:
    index = tamis.Index()
    index.add("a", "xpath(doc, '/news/item[price > 5]/title')")
    event = {"doc": tamis.Xml(NEWS)}
    assert "/item[price > 5] at /news/item[1], /title at /news/item[1]/title" in str(
        index.explain("a", event)
    )
    poor = {"doc": "<news><item><price>3</price></item></news>"}
    assert "reaches step 1 of 3, /news; of 1 node at /item none satisfies [price > 5]" in str(
        index.why_not("a", poor)
    )
    broken = str(index.explain("a", {"doc": "<news>\n <item></news>"}))
    assert "not a well-formed document: line 2, column 8" in broken


# --- documents -------------------------------------------------------------------------------------------


def test_bytes_are_decoded_as_the_document_says() -> None:
    index = tamis.Index()
    index.add(1, "xpath(doc, '/a[. = \"é\"]')")
    for data in (
        "<a>é</a>".encode(),
        "<a>é</a>".encode("utf-8-sig"),
        '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1"),
        "<a>é</a>".encode("utf-16"),
        "<a>é</a>".encode("utf-16-be"),
        "<a>é</a>".encode("utf-32"),
        "<a>é</a>".encode("utf-32-le"),
        "<a>é</a>".encode("utf-32-be"),
        '<?xml version="1.0" encoding="windows-1252"?><a>é</a>'.encode("cp1252"),
    ):
        assert index.match_xml(data) == [1], data
    for data in (b"<a>\xe9</a>", b'<?xml version="1.0" encoding="no-such"?><a/>'):
        assert index.match_xml(data) == []
        with pytest.raises(tamis.XmlError):
            index.match_xml(data, strict=True)


@pytest.mark.parametrize(
    "codec",
    ["punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined", "zlib", "rot13"],
)
def test_a_document_does_not_choose_a_codec_that_is_no_character_set(codec: str) -> None:
    data = f'<?xml version="1.0" encoding="{codec}"?><a>+ADw-b/+AD4- \\x3cb/\\x3e</a>'.encode()
    index = tamis.Index()
    index.add(1, "xpath(doc, '/a')")
    assert index.match_xml(data) == []
    with pytest.raises(tamis.XmlError, match=r"encoding|codec"):
        tamis.Xml(data, strict=True)


def test_strict_documents_fail_with_line_and_column() -> None:
    with pytest.raises(tamis.XmlError) as refused:
        tamis.Xml("<a>\n  <b>\n</a>", strict=True)
    assert (refused.value.line, refused.value.column) == (3, 1)
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (copy.line, copy.column, str(copy)) == (3, 1, str(refused.value))
    assert pickle.loads(pickle.dumps(tamis.Xml(NEWS))) == tamis.Xml(NEWS)


def test_documents_that_are_refused_are_counted() -> None:
    index = tamis.Index()
    index.add(1, "xpath(doc, '//a')")

    def counted() -> int:
        return index.stats()["observed"]["type_mismatches"]

    index.match({"doc": "<b><a/></b>"})
    assert counted() == 0
    assert index.match({"doc": "<b><a/>"}) == [], "whatever matched before the fault"
    assert counted() == 1
    index.match_batch(pa.table({"doc": ["<a/>", "<a", "", None]}))
    assert counted() == 3


def entity_bomb() -> str:
    entities = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 12))
    return f"<!DOCTYPE a [<!ENTITY e0 'ha'>{entities}]><a>&e11;</a>"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (entity_bomb(), "expand to more"),
        ("<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", "outside of the document"),
        ("<!DOCTYPE a [<!ENTITY % e SYSTEM 'http://127.0.0.1/x'> %e;]><a/>", "parameter entities"),
        ("<a>" * 1_000_000, "nested deeper"),
        ("<a " + " ".join(f"a{n}='1'" for n in range(50_000)) + " a7='2'/>", "twice"),
        ("<a" + "".join(f" xmlns:n{n}='u{n}'" for n in range(5000)) + "/>", "namespaces"),
        ("<a>" + "x" * (65 << 20) + "</a>", "larger than the limit"),
    ],
    ids=["bomb", "external entity", "parameter entity", "depth", "attributes", "namespaces", "size"],
)
def test_hostile_documents(document: str, reason: str) -> None:
    with pytest.raises(tamis.XmlError, match=reason):
        tamis.Xml(document, strict=True)
    index = tamis.Index()
    index.add(1, "xpath(doc, '//*') OR NOT xpath(doc, '//*')")
    assert index.match({"doc": document}) == []


def test_damaged_documents_are_judged_as_lxml_does() -> None:
    source = random.Random(11)
    for _ in range(1500):
        document = random_document(source)
        at = source.randrange(len(document) + 1)
        cut = (
            document[:at]
            + source.choice(("", "<", ">", "&", "'", "/", "]]>", "\x01", "!", "?"))
            + document[at + source.randrange(3) :]
        )
        accepted = True
        try:
            tamis.Xml(cut, strict=True)
        except tamis.XmlError:
            accepted = False
        assert accepted == is_well_formed(cut), cut


def test_the_memory_of_paths_is_accounted_for() -> None:
    def predicate_bytes(count: int) -> int:
        index = tamis.Index()
        index.add_many(range(count), [f"xpath(doc, '/a/b[c = {number}]/d')" for number in range(count)])
        index.optimize()
        return index.stats()["bytes"]["predicates"]

    assert 20 * 4000 < predicate_bytes(5000) - predicate_bytes(1000) < 200 * 4000


def test_the_example_of_a_news_feed() -> None:
    printed = subprocess.run(
        [sys.executable, Path(__file__).parent.parent / "examples" / "news_feed.py"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert printed[:5] == [
        "story 0: archive, markets",
        "story 1: archive, pictures, politics, quotes",
        "story 2: archive",
        "story 3: nobody",
        "1 of 4 documents could not be read",
    ]
    assert "there is no //figure" in printed[5]
