"""How matches come back from the Python workers: one row per match, or one list per event.

- *rows*: `mapInArrow`. Keys and used columns go to Python, and one row per match comes back, in batches of
  bounded size: right for any number of matches, and if rules use many columns.
- *column*: an Arrow function. The used columns go to Python and a list comes back; Spark keeps the carried
  columns and repeats them itself. Filters are pushed below it, and a watermark survives.

If all columns are carried, lists take half the time; with 50 used columns and one key, twice as long.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import pyarrow as pa
from pyspark.sql.pandas import functions as pandas_functions

from tamis.errors import ArgumentError
from tamis.expr import ALL_STRINGS
from tamis.spark.matching.answer import TableQuery
from tamis.spark.matching.lists import answer_type, list_task, list_type
from tamis.spark.matching.task import Source
from tamis.store.versions import IdKind, Version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ShapeName = Literal["auto", "rows", "column"]

MOST_ASKED = 16
"""Columns up to which a list may be chosen for its speed."""

MOST_K = 100
"""Matches an event up to which a list may be chosen for its speed: those of a batch are held at once."""

WATERMARK = "spark.watermarkDelayMs"
"""Where Spark marks the column of a watermark, in the metadata of its field."""


class Shape(NamedTuple):
    """A shape, and the reason for it."""

    name: Literal["rows", "column"]
    reason: str

    def __str__(self) -> str:
        """Both in a line."""
        return f"{self.name}: {self.reason}"


def choose_shape(
    wanted: ShapeName, events: "DataFrame", version: Version, query: TableQuery, keys: list[str]
) -> Shape:
    """The shape for a query; what the caller wants wins."""
    if wanted not in get_args(ShapeName):
        raise ArgumentError(f'shape is "auto", "rows" or "column", not {wanted!r}')
    if wanted == "rows":
        return Shape("rows", "as asked for")
    obstacle = obstacle_to_lists(version.plan, query)
    if wanted == "column":
        if obstacle is not None:
            raise ArgumentError(f'shape="column" is not possible: {obstacle}')
        return Shape("column", "as asked for")
    marked = watermarks(events, keys)
    if marked and obstacle is None:
        return Shape("column", f"the watermark of {', '.join(marked)} survives it")
    if marked:
        return Shape("rows", f"{obstacle}, so the watermark of {', '.join(marked)} ends here")
    if obstacle is not None:
        return Shape("rows", obstacle)
    if query.mode != "top_k":
        return Shape("rows", "an event may have any number of matches")
    if query.k > MOST_K:
        return Shape("rows", f"{query.k:,} matches an event may come back")
    asked = {name.split(".", 1)[0] for name in version.attributes}
    if ALL_STRINGS in version.attributes:
        asked |= set(events.columns)
    carried = [name for name in keys if name not in asked]
    if len(asked) > MOST_ASKED or len(carried) < max(2, len(asked)):
        return Shape("rows", f"{len(asked)} columns are asked for, and {len(carried)} more carried")
    return Shape("column", f"{len(carried)} carried columns stay in the JVM, {len(asked)} are asked for")


def obstacle_to_lists(plan: str, query: TableQuery) -> str | None:
    """Why matches cannot come back as lists, or None."""
    if not hasattr(pandas_functions, "arrow_udf"):
        return "lists need the Arrow functions of Spark 4.1"
    if plan != "replicated":
        return "the answers of several shards are merged as rows"
    if query.mode not in ("all", "top_k"):
        return "nothing but matches comes as a list"
    if query.payload:
        return "payloads come with rows"
    return None


def refuse_lists(plan: str, query: TableQuery) -> None:
    """Raise where matches cannot come back as lists."""
    if (obstacle := obstacle_to_lists(plan, query)) is not None:
        raise ArgumentError(f"{obstacle}; use tamis.spark.match, which gives a row for each match")


def watermarks(events: "DataFrame", keys: list[str]) -> list[str]:
    """The carried columns of a stream that have a watermark."""
    if not events.isStreaming:
        return []
    return [
        field.name for field in events.schema.fields if field.name in keys and WATERMARK in field.metadata
    ]


def list_function(
    source: Source, query: TableQuery, ids: IdKind, *, versions: bool = True
) -> "Callable[[Column], Column]":
    """The function from a column of structs, each an event, to one of lists, maybe with their versions."""
    task = list_task(source, query, ids, versions=versions)
    returned = answer_type(query, ids) if versions else list_type(query, ids)

    def answer(events: Iterator[pa.Array]) -> Iterator[pa.Array]:  # Spark reads these hints
        return task(events)

    functions: Any = pandas_functions  # whose hints know no function that returns a record
    column: Callable[[Column], Column] = functions.arrow_udf(answer, returned)
    return column
