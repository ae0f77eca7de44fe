"""A DataFrame of subscriptions: which columns it has, and what is wrong with its rows.

The columns `id` and `expression` are required; `priority`, `weights` (a map), `tags`, `owner`, `payload`,
`expires`, `starts` and `source` are optional; others are ignored. Rows are shuffled by id, so that two rows
with the same id meet in one task and are detected.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf

from tamis.errors import ArgumentError, DuplicateIdError, ExpressionError, TamisError
from tamis.index import Index, RefusedRow
from tamis.spark.building.own_names import with_own_names
from tamis.spark.session import cluster
from tamis.store.bound_rules import from_source
from tamis.store.changes import PROBLEM

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PROBLEM_COLUMNS = "id {ids}, expression string, error string, line int, column int, hint string"

_DETAILS = {
    "priority": "double",
    "weights": "map<string,double>",
    "tags": "array<string>",
    "owner": "string",
    "payload": "binary",
    "expires": "timestamp",
    "starts": "timestamp",
    "source": "string",
}

INTEGERS = ("tinyint", "smallint", "int", "bigint")


class InvalidSubscriptionsError(TamisError, ValueError):
    """Subscriptions that cannot be accepted. `problems` has the first of them: (id, message).

    >>> raise InvalidSubscriptionsError([("ad-7", "unexpected end")], refused=3)
    Traceback (most recent call last):
    ...
    tamis.spark.building.subscriptions.InvalidSubscriptionsError: 3 subscriptions cannot be accepted...
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
    types = dict(with_own_names(subscriptions, ("id", "expression")).dtypes)
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
    subscriptions = with_own_names(subscriptions, ("id", "expression", *_DETAILS))
    id_type = "bigint" if id_kind(subscriptions) == "int" else "string"
    columns: list[Column] = [sf.col("id").cast(id_type).alias("id"), sf.col("expression")]
    types = dict(subscriptions.dtypes)
    problems: list[Column] = []
    for name, wanted in _DETAILS.items():
        if name in types:
            read = _detail(sf.col(name), name, types[name], wanted)
            columns.append(read.alias(name))
            problems += _unreadable(sf.col(name), read, name, types[name], wanted)
    if PROBLEM in types:  # whoever made the rows has checked them
        problems.append(sf.col(PROBLEM))
    if problems:
        columns.append(sf.coalesce(*problems).alias(PROBLEM))
    return subscriptions.select(*columns, *carried)


def _unreadable(given: "Column", read: "Column", name: str, kind: str, wanted: str) -> list["Column"]:
    """Say what is wrong with a detail that is there and cannot be read; nothing where that cannot be."""
    if kind == wanted or wanted not in ("double", "timestamp"):
        return []
    what = {"double": "a number", "timestamp": "a time"}[wanted]
    message = sf.concat(sf.lit(f"{name} is "), given.cast("string"), sf.lit(f", which is not {what}"))
    return [sf.when(given.isNotNull() & read.isNull(), message)]


def _detail(column: "Column", name: str, given: str, wanted: str) -> "Column":
    if given == wanted or (name == "payload" and given == "string"):
        return column.cast(wanted)
    if name == "weights" and given.startswith("struct<"):
        return sf.from_json(sf.to_json(column), wanted)
    if wanted in ("double", "timestamp", "string") and not given.startswith(("array", "map", "struct")):
        return sf.expr(f"try_cast(`{name}` AS {wanted})")
    if given.startswith(wanted.split("<", maxsplit=1)[0] + "<"):
        return column.cast(wanted)
    raise ArgumentError(f"the column {name!r} of the subscriptions must be {wanted}, not {given}")


def bound_to_source(rows: "DataFrame") -> "DataFrame":
    """Subscriptions that name a `source` match its events only: the expression says so from here on."""
    if "source" not in rows.columns:
        return rows

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from bind(pa.Table.from_batches([batch])).to_batches()

    types = [f"`{name}` {kind}" for name, kind in rows.dtypes if name != "source"]
    return rows.mapInArrow(task, ", ".join(types))


def bind(table: pa.Table) -> pa.Table:
    """A table of subscriptions whose expressions say what the column `source` said.

    >>> bind(pa.table({"expression": ["x > 1"], "source": ["shop"]})).to_pylist()
    [{'expression': "x > 1 AND (source = 'shop')^0"}]
    """
    if "source" not in table.column_names:
        return table
    texts, sources = table.column("expression").to_pylist(), table.column("source").to_pylist()
    bound = [from_source(text, source) for text, source in zip(texts, sources, strict=True)]
    at = table.schema.get_field_index("expression")
    return table.set_column(at, "expression", pa.array(bound, pa.string())).drop_columns(["source"])


def any_bound(rows: "DataFrame") -> bool:
    """Whether any subscription names a `source`."""
    return "source" in rows.columns and not rows.filter("source IS NOT NULL").isEmpty()


def validate(subscriptions: "DataFrame", *, schema: dict[str, Any] | None = None) -> "DataFrame":
    """The errors in a DataFrame of subscriptions, one row for each that cannot be accepted.

    The columns are `id`, `expression`, `error` (with a caret under the position), `line`, `column` and
    `hint`. No rows mean no errors. Nothing is built or stored.

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
        refused = add_readable(Index(schema), table)
        found = problem_rows(table, refused)
        if found:
            yield from pa.Table.from_pylist(found, problem_schema(table.schema)).to_batches()

    parts = cluster(subscriptions.sparkSession).tasks
    rows = normalised(subscriptions).repartition(parts, "id")
    return rows.mapInArrow(check, PROBLEM_COLUMNS.format(ids=ids))


def add_readable(index: Index, table: pa.Table) -> list[RefusedRow]:
    """Add the rows of a table to an index; what it refuses, and rows with a detail that could not be read.

    >>> table = pa.table({"id": [1, 2], "expression": ["x > 1", "x > 2"], PROBLEM: [None, "no number"]})
    >>> [(refused.row, str(refused.error)) for refused in add_readable(Index(), table)]
    [(1, 'no number')]
    """
    if PROBLEM not in table.column_names:
        return index.add_table(table, on_error="collect")
    problems = table.column(PROBLEM)
    plain = table.drop_columns([PROBLEM])
    if problems.null_count == len(problems):
        return index.add_table(plain, on_error="collect")
    ids, said = table.column("id").to_pylist(), problems.to_pylist()
    unreadable = [RefusedRow(row, ids[row], TamisError(text)) for row, text in enumerate(said) if text]
    readable = [row for row, text in enumerate(said) if not text]
    refused = index.add_table(plain.take(pa.array(readable, pa.int64())), on_error="collect")
    placed = [RefusedRow(readable[found.row], found.id, found.error) for found in refused]
    return sorted(unreadable + placed, key=lambda found: found.row)


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


def problem_rows(table: pa.Table, refused: Sequence[RefusedRow]) -> list[dict[str, Any]]:
    """Refused rows of a table as rows of problems.

    >>> table = pa.table({"id": ["a", "a"], "expression": ["x > 1", "x > 2"]})
    >>> [row["error"] for row in problem_rows(table, Index().add_table(table, on_error="collect"))]
    ['this id is also that of: x > 1']
    """
    ids, expressions = table.column("id"), table.column("expression")
    first_of: dict[Any, int] = {}
    if any(isinstance(found.error, DuplicateIdError) for found in refused):
        first_of = {id: row for row, id in reversed(list(enumerate(ids.to_pylist())))}
    problems = []
    for found in refused:
        id, error = ids[found.row].as_py(), found.error
        message, line, column, hint = str(error), None, None, None
        if isinstance(error, ExpressionError):
            line, column, hint = error.line, error.column, error.hint
        elif isinstance(error, DuplicateIdError):
            # The kernel names a row, but the rows of this table were in no order that anybody knows.
            message = f"this id is also that of: {expressions[first_of[id]].as_py()}"
        problem = {"id": id, "expression": expressions[found.row].as_py(), "error": message}
        problems.append(problem | {"line": line, "column": column, "hint": hint})
    return problems
