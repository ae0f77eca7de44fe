"""A DataFrame of subscriptions: which columns it has, and what is wrong with its rows.

The columns `id` and `expression` are needed; `priority`, `weights` (a map), `tags`, `payload`, `expires` and
`source` may be there too; others are left out. Rows travel by id, so that two rows with one id meet in the
same task and are noticed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf

from tamis.errors import ArgumentError, ExpressionError, TamisError
from tamis.expr import col, parse
from tamis.index import Index, RefusedRow
from tamis.spark.session import cluster

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PROBLEM_COLUMNS = "id {ids}, expression string, error string, line int, column int, hint string"

_DETAILS = {
    "priority": "double",
    "weights": "map<string,double>",
    "tags": "array<string>",
    "payload": "binary",
    "expires": "timestamp",
    "source": "string",
}

INTEGERS = ("tinyint", "smallint", "int", "bigint")


class InvalidSubscriptionsError(TamisError, ValueError):
    """Subscriptions that cannot be accepted. `problems` has the first of them: (id, message).

    >>> raise InvalidSubscriptionsError([("ad-7", "unexpected end")], refused=3)
    Traceback (most recent call last):
    ...
    tamis.spark.subscriptions.InvalidSubscriptionsError: 3 subscriptions cannot be accepted; the first is:
    ...
    """

    def __init__(self, problems: list[tuple[Any, str]], refused: int) -> None:
        """Compose the message from the first problems and how many there are in all."""
        self.problems = problems
        self.refused = refused
        noun = "subscription" if refused == 1 else "subscriptions"
        first = "the first is" if len(problems) == 1 else f"the first {len(problems)} are"
        lines = [f"{refused:,} {noun} cannot be accepted; {first}:"]
        for id, message in problems:
            lines.append(f"  {id!r}: " + message.replace("\n", "\n    "))
        lines.append(
            "hint: tamis.spark.validate(subscriptions) lists all of them; "
            'on_error="quarantine" goes on without them'
        )
        super().__init__("\n".join(lines))


def id_kind(subscriptions: "DataFrame") -> str:
    """Whether the ids are "int" or "string"; an error for any other type, or when a column is missing."""
    types = dict(subscriptions.dtypes)
    for needed in ("id", "expression"):
        if needed not in types:
            raise ArgumentError(
                f"the subscriptions have no column {needed!r}; they have {', '.join(types) or 'none'}. "
                f'Rename with subscriptions.withColumnRenamed("...", "{needed}").'
            )
    if types["expression"] != "string":
        raise ArgumentError(f"the column 'expression' must be a string, not {types['expression']}")
    if types["id"] in INTEGERS:
        return "int"
    if types["id"] == "string":
        return "string"
    raise ArgumentError(f"the column 'id' must be a string or an integer, not {types['id']}")


def normalised(subscriptions: "DataFrame", carried: tuple[str, ...] = ()) -> "DataFrame":
    """The columns of a subscription, in the types that the kernel reads; and those carried as they are."""
    id_type = "bigint" if id_kind(subscriptions) == "int" else "string"
    columns: list[Column] = [sf.col("id").cast(id_type).alias("id"), sf.col("expression")]
    types = dict(subscriptions.dtypes)
    for name, wanted in _DETAILS.items():
        if name in types:
            columns.append(_detail(sf.col(name), name, types[name], wanted).alias(name))
    return subscriptions.select(*columns, *carried)


def _detail(column: "Column", name: str, given: str, wanted: str) -> "Column":
    if given == wanted or (name == "payload" and given == "string"):
        return column.cast(wanted)
    if name == "weights" and given.startswith("struct<"):
        return sf.from_json(sf.to_json(column), wanted)
    if wanted in ("double", "timestamp", "string") and not given.startswith(("array", "map", "struct")):
        return column.cast(wanted)
    if given.startswith(wanted.split("<", maxsplit=1)[0] + "<"):
        return column.cast(wanted)
    raise ArgumentError(f"the column {name!r} of the subscriptions must be {wanted}, not {given}")


def bound_to_source(rows: "DataFrame") -> "DataFrame":
    """Subscriptions that name a `source` match its events only: the expression says so from here on."""
    if "source" not in rows.columns:
        return rows

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = batch.column("expression").to_pylist()
            sources = batch.column("source").to_pylist()
            bound = [from_source(text, source) for text, source in zip(texts, sources, strict=True)]
            at = batch.schema.get_field_index("expression")
            yield batch.set_column(at, "expression", pa.array(bound, pa.string())).drop_columns(["source"])

    types = [f"`{name}` {kind}" for name, kind in rows.dtypes if name != "source"]
    return rows.mapInArrow(task, ", ".join(types))


def from_source(text: str | None, source: str | None) -> str | None:
    """An expression for events of one source; one that cannot be read stays, to be reported as it is.

    >>> from_source("x > 1 OR y > 2", "shop")
    "(x > 1 OR y > 2) AND source = 'shop'"
    """
    if source is None or text is None:
        return text
    try:
        return str(parse(text) & (col("source") == source))
    except ExpressionError:
        return text


def validate(subscriptions: "DataFrame", *, schema: dict[str, Any] | None = None) -> "DataFrame":
    """What is wrong with a DataFrame of subscriptions, one row for each that cannot be accepted.

    The columns are `id`, `expression`, `error` (with the place marked by a caret), `line`, `column` and
    `hint`. No rows: all is well. Nothing is built or stored.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "age > 21"), ("b", "age >")], "id string, expression string")
    >>> [(row.id, row.column) for row in validate(rules).collect()]
    [('b', 6)]
    """
    ids = "bigint" if id_kind(subscriptions) == "int" else "string"

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = joined(batches)
        if table is None:
            return
        index = Index(schema)
        refused = index.add_table(table, on_error="collect")
        found = [problem_row(table, row) for row in refused]
        if found:
            yield from pa.Table.from_pylist(found, problem_schema(table.schema)).to_batches()

    parts = cluster(subscriptions.sparkSession).tasks
    rows = normalised(subscriptions).repartition(parts, "id")
    return rows.mapInArrow(check, PROBLEM_COLUMNS.format(ids=ids))


def joined(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    """All batches of a task as one table, or None when there are none."""
    held = list(batches)
    return pa.Table.from_batches(held) if held else None


def problem_schema(subscriptions: pa.Schema) -> pa.Schema:
    """The Arrow schema of `PROBLEM_COLUMNS`."""
    return pa.schema(
        {
            "id": subscriptions.field("id").type,
            "expression": pa.string(),
            "error": pa.string(),
            "line": pa.int32(),
            "column": pa.int32(),
            "hint": pa.string(),
        }
    )


def problem_row(table: pa.Table, refused: RefusedRow) -> dict[str, Any]:
    """One refused row as a row of problems."""
    error = refused.error
    place = (
        (error.line, error.column, error.hint) if isinstance(error, ExpressionError) else (None, None, None)
    )
    return {
        "id": table.column("id")[refused.row].as_py(),
        "expression": table.column("expression")[refused.row].as_py(),
        "error": str(error),
        **dict(zip(("line", "column", "hint"), place, strict=True)),
    }
