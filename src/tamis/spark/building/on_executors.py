"""Building the files of an index on the executors.

Each task parses the subscriptions of its partition, lays out an index and writes it to the directory; the
driver receives only a report. A retried task leaves a file that no version names, which is garbage-collected.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.index import Index
from tamis.spark.building.subscriptions import add_readable, joined, problem_rows
from tamis.spark.session import collected
from tamis.store.directory import Directory
from tamis.store.index_files import put_index
from tamis.store.versions import IndexFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARD = "__tamis_shard"

FIRST_PROBLEMS = 10
"""Problems that a task reports in full."""


@dataclass(frozen=True)
class Built:
    """One file that a task built, and what it refused."""

    shard: int
    file: IndexFile
    attributes: dict[str, list[str]]
    payloads: bool
    problems: list[tuple[Any, str]]
    refused: int
    routes: str | None = None
    """The file of the shard's pruned expressions, where one was asked for."""


Routes = Callable[[Directory, list[str]], str]
"""Puts what a router must know of a shard's expressions into the directory, and names the file."""


def build_files(
    subscriptions: "DataFrame",
    directory: Directory,
    schema: dict[str, Any] | None = None,
    routes: Routes | None = None,
) -> list[Built]:
    """Build an index file of every partition and shard; the column `SHARD` says which, where there is one."""

    def build(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = joined(batches)
        if table is not None:
            reports = [json.dumps(asdict(part)) for part in _build_shards(table, directory, schema, routes)]
            yield pa.record_batch({"report": pa.array(reports, pa.string())})

    rows = collected(subscriptions.mapInArrow(build, "report string"))
    return [built(json.loads(row["report"])) for row in rows]


def built(report: dict[str, Any]) -> Built:
    """What a task reported, which `asdict` had made of it."""
    problems = [(id, message) for id, message in report.pop("problems")]
    return Built(file=IndexFile(**report.pop("file")), problems=problems, **report)


def _build_shards(
    table: pa.Table, directory: Directory, schema: dict[str, Any] | None, routes: Routes | None
) -> Iterator[Built]:
    if SHARD not in table.column_names:
        yield build_one(0, table, directory, schema, routes)
        return
    for shard in pc.unique(table.column(SHARD)).to_pylist():
        rows = table.filter(pc.equal(table.column(SHARD), shard)).drop_columns([SHARD])
        yield build_one(shard, rows, directory, schema, routes)


def build_one(
    shard: int, table: pa.Table, directory: Directory, schema: dict[str, Any] | None, routes: Routes | None
) -> Built:
    """Build the index file of one shard, from its subscriptions."""
    index = Index(schema)
    refused = add_readable(index, table)
    problems = problem_rows(table, refused[:FIRST_PROBLEMS])
    payloads = "payload" in table.column_names and table.column("payload").null_count < table.num_rows
    file = put_index(directory, index)
    routed = None
    if routes is not None:
        bad = {row.row for row in refused}
        texts = table.column("expression").to_pylist()
        routed = routes(directory, [text for row, text in enumerate(texts) if row not in bad])
    return Built(
        shard,
        file,
        {name: list(kinds) for name, kinds in index.attributes.items()},
        payloads,
        [(row["id"], row["error"]) for row in problems],
        len(refused),
        routed,
    )


def all_attributes(built: list[Built]) -> dict[str, list[str]]:
    """The attributes of all files with the kinds that any expects.

    >>> all_attributes([])
    {}
    """
    kinds: dict[str, set[str]] = {}
    for part in built:
        for name, expected in part.attributes.items():
            kinds.setdefault(name, set()).update(expected)
    return {name: sorted(kinds[name]) for name in sorted(kinds)}
