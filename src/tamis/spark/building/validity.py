"""Rules with a first and a last moment: each matches the events of that time, whenever the query runs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.building.own_names import with_own_names
from tamis.spark.events.columns import quoted
from tamis.store.valid_rules import valid_between

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FROM, _TO = "__tamis_valid_from", "__tamis_valid_to"


def valid_at(
    rules: "DataFrame", event_time: str, *, valid_from: str = "valid_from", valid_to: str = "valid_to"
) -> "DataFrame":
    """Rules that match events of their own time: from `valid_from` on, and before `valid_to`.

    `event_time` is the attribute that says when an event happened; the other two name columns of the rules,
    either of which may be null, or missing unless its name was given. So a replaced version of a rule still
    matches the events that happened while it was valid, even if history is matched again years later.
    `expires` is different: it is compared with the clock of the query. The result is a table of rules like
    the one given, or of changes of rules, batch or streaming, whose expressions contain the bounds; scores do
    not change.

    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.sql('''
    ...     SELECT 'old' AS id, 'x > 1' AS expression, NULL AS valid_from, TIMESTAMP '2026-05-01' AS valid_to
    ...     UNION ALL SELECT 'new', 'x > 2', TIMESTAMP '2026-05-01', NULL''')
    >>> events = spark.sql('''
    ...     SELECT 1 AS event_id, 5 AS x, TIMESTAMP '2026-04-30 23:59' AS ts
    ...     UNION ALL SELECT 2, 5, TIMESTAMP '2026-05-01 00:00' ''')
    >>> matches = tamis.spark.match(events, valid_at(rules, "ts"))
    >>> sorted((row.event_id, row.subscription) for row in matches.collect())
    [(1, 'old'), (2, 'new')]
    """
    rules = with_own_names(rules, ("expression", valid_from, valid_to))
    types = dict(rules.dtypes)
    given = [name for name in (valid_from, valid_to) if name in types]
    if not given:
        raise ArgumentError(
            f"the rules have no column {valid_from!r} or {valid_to!r}; they have {', '.join(types)}. "
            "Say what they are called: valid_at(rules, event_time, valid_from=..., valid_to=...)"
        )
    for asked, usual in ((valid_from, "valid_from"), (valid_to, "valid_to")):
        if asked != usual and asked not in types:
            raise ArgumentError(f"the rules have no column {asked!r}; they have {', '.join(types)}")
    if types.get("expression") != "string":
        raise ArgumentError("the rules need a column 'expression' of strings")
    for name in given:
        if types[name] not in ("timestamp", "date", "void"):
            raise ArgumentError(f"the column {name!r} must be a timestamp or a date, not {types[name]}")

    def moment(name: str) -> "Column":
        return sf.col(quoted(name)).cast("timestamp") if name in types else sf.lit(None).cast("timestamp")

    kept = [name for name in rules.columns if name not in given]
    # Under names of ours: PySpark hands no column to a task whose own name has a dot or a backquote.
    ours = [f"__tamis_column_{at}" for at in range(len(kept))]
    text = ours[kept.index("expression")]
    carried = [sf.col(quoted(name)).alias(our) for name, our in zip(kept, ours, strict=True)]
    bounded = rules.select(*carried, moment(valid_from).alias(_FROM), moment(valid_to).alias(_TO))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in (text, _FROM, _TO)]
            texts = [
                valid_between(given, event_time, start, end)
                for given, start, end in zip(*columns, strict=True)
            ]
            at = batch.schema.get_field_index(text)
            yield batch.set_column(at, text, pa.array(texts, pa.string())).drop_columns([_FROM, _TO])

    return bounded.mapInArrow(task, rules.select(*carried).schema).toDF(*kept)
