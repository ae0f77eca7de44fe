"""Common ways to match events with rules on Spark, for rules that are equality conjunctions.

Each takes a DataFrame of events and a table of rules and returns a DataFrame of pairs.
"""

import ast
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf

import tamis


def python_udf(events: Any, rules: pa.Table) -> Any:
    """Rules as compiled Python in a UDF."""
    texts = [as_python(text) for text in rules.column("expression").to_pylist()]
    ids = rules.column("id").to_pylist()

    @sf.udf("array<bigint>")
    def matching(event: Any) -> list[int]:
        compiled = _compiled(tuple(texts))
        values = event.asDict()
        return [id for id, rule in zip(ids, compiled, strict=True) if rule(values)]

    return events.select("event_id", sf.explode(matching(sf.struct("*"))).alias("subscription"))


_programs: dict[int, list[Any]] = {}


def _compiled(texts: tuple[str, ...]) -> list[Any]:
    key = hash(texts)
    if key not in _programs:
        _programs[key] = [eval(f"lambda e: {text}") for text in texts]
    return _programs[key]


def as_python(text: str) -> str:
    """An equality conjunction as Python.

    >>> as_python("a1 = 5 AND b = 'x'")
    "e.get('a1') == 5 and e.get('b') == 'x'"
    """
    parts = []
    for part in text.split(" AND "):
        name, value = part.split(" = ", 1)
        parts.append(f"e.get('{name}') == {value}")
    return " and ".join(parts)


def zen_udf(events: Any, rules: pa.Table) -> Any:
    """Rules as zen-engine expressions in a UDF, as its documentation shows."""
    import zen  # noqa: PLC0415 - only where it is installed

    texts = [
        text.replace(" = ", " == ").replace(" AND ", " and ")
        for text in rules.column("expression").to_pylist()
    ]
    ids = rules.column("id").to_pylist()

    @sf.udf("array<bigint>")
    def matching(event: Any) -> list[int]:

        values = event.asDict()
        compiled = _programs.setdefault(len(texts), [zen.compile_expression(text) for text in texts])
        return [id for id, rule in zip(ids, compiled, strict=True) if rule.evaluate(values)]

    return events.select("event_id", sf.explode(matching(sf.struct("*"))).alias("subscription"))


def json_logic_udf(events: Any, rules: pa.Table) -> Any:
    """Rules as JsonLogic in a UDF, evaluated one by one by `json-logic-qubit`."""
    logic = [as_json_logic(text) for text in rules.column("expression").to_pylist()]
    ids = rules.column("id").to_pylist()

    @sf.udf("array<bigint>")
    def matching(event: Any) -> list[int]:
        from json_logic import jsonLogic  # noqa: PLC0415 - only where it is installed

        values = event.asDict()
        return [id for id, rule in zip(ids, logic, strict=True) if jsonLogic(rule, values)]

    return events.select("event_id", sf.explode(matching(sf.struct("*"))).alias("subscription"))


def as_json_logic(text: str) -> dict[str, Any]:
    """An equality conjunction as JsonLogic.

    >>> as_json_logic("a1 = 5 AND b = 'x'")
    {'and': [{'===': [{'var': 'a1'}, 5]}, {'===': [{'var': 'b'}, 'x']}]}
    """
    parts = [part.split(" = ", 1) for part in text.split(" AND ")]
    return {"and": [{"===": [{"var": name}, ast.literal_eval(value)]} for name, value in parts]}


def sql_filters(events: Any, rules: pa.Table) -> Any:
    """Rules as one generated array of conditions, evaluated by Spark itself."""
    pairs = zip(rules.column("id").to_pylist(), rules.column("expression").to_pylist(), strict=True)
    conditions = [sf.when(sf.expr(tamis.parse(text).to_sql("spark")), sf.lit(id)) for id, text in pairs]
    found = sf.array_compact(sf.array(*conditions))
    return events.select("event_id", sf.explode(found).alias("subscription"))


def rules_join(events: Any, rules: pa.Table) -> Any:
    """Rules as rows of (rule, attribute, value): join on what is equal, count, compare with what it needs."""
    parts = [
        (id, name, value, text.count(" AND ") + 1)
        for id, text in zip(*(rules.column(name).to_pylist() for name in ("id", "expression")), strict=True)
        for name, value in (part.split(" = ", 1) for part in text.split(" AND "))
    ]
    table = events.sparkSession.createDataFrame(
        parts, "rule bigint, attribute string, value string, needed int"
    )
    names = [name for name in events.columns if name != "event_id"]
    entries = sf.array(
        *(
            sf.struct(sf.lit(name).alias("attribute"), sf.col(name).cast("string").alias("value"))
            for name in names
        )
    )
    melted = events.select("event_id", sf.explode(entries).alias("entry")).select("event_id", "entry.*")
    joined = melted.filter("value IS NOT NULL").join(sf.broadcast(table), ["attribute", "value"])
    return joined.groupBy("event_id", "rule", "needed").count().filter("count = needed")


RIVALS: dict[str, Callable[[Any, pa.Table], Any]] = {
    "python udf": python_udf,
    "zen-engine udf": zen_udf,
    "json-logic udf": json_logic_udf,
    "sql filters": sql_filters,
    "join": rules_join,
}
