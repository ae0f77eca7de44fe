"""A column of XML text on Spark; its own `xpath_boolean` and lxml are the judges."""

import random
from typing import Any

import pytest

import tamis.spark
from tamis import col
from xml_paths import NAMESPACES, Judge, random_document, random_path

pytestmark = pytest.mark.spark


def test_a_column_of_documents(spark: Any) -> None:
    source = random.Random(3)
    paths = list(dict.fromkeys(random_path(source) for _ in range(60)))
    documents = [random_document(source) for _ in range(30)]
    judge = Judge(paths)
    rules = spark.createDataFrame(
        [(number, str(col("doc").xpath(path, NAMESPACES))) for number, path in enumerate(paths)],
        "id long, expression string",
    )
    rows = [*enumerate(documents), (100, None), (101, "<a>")]
    events = spark.createDataFrame(rows, "event_id long, doc string")
    found = tamis.spark.match(events, rules).collect()
    expected = [(number, path) for number, text in enumerate(documents) for path in judge.true_for(text)]
    assert sorted((row.event_id, row.subscription) for row in found) == expected


def test_spark_sql_says_the_same(spark: Any) -> None:
    paths = [
        "/a",
        "//b[. > 1]",
        "/a/b[@x = '1']",
        "//a//a//b",
        "//b[not(c)]",
        "/a[b = 2 or c]",
        "//b/text()",
        "/*[starts-with(b, '1')]",
    ]
    documents = [
        "<a><b x='1'>1</b><b>2</b></a>",
        "<a><a><a><b><c/></b></a></a></a>",
        "<b>5</b>",
        "<a><c/></a>",
    ]
    events = spark.createDataFrame(list(enumerate(documents)), "event_id long, doc string")
    index = tamis.Index()
    for number, path in enumerate(paths):
        index.add(number, col("doc").xpath(path))
    for number, path in enumerate(paths):
        selected = events.where(col("doc").xpath(path).to_sql("spark")).collect()
        ours = [at for at, text in enumerate(documents) if number in index.match({"doc": text})]
        assert sorted(row.event_id for row in selected) == ours, path
