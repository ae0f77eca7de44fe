"""The changes of an Iceberg table of rules between two of its snapshots, as a change data feed.

Iceberg's own streams skip everything but insertions. So a follower remembers the last snapshot that it has
seen (in a file next to the store's versions) and reads the difference to the current one:

- if the table's `changes` are available, it reads them: the cost is that of the changed files;
- if not (delete files, a rollback), it compares the two snapshots;
- if the old snapshot has expired, it reads all rows, and removes rules of the store that are not among them.

A rewritten file deletes and inserts unchanged rows; these are left out. Snapshots are ordered by the time of
their commit, and each comes after the one that was followed before it, whatever the clocks say. So changes
that are read again after a crash have the same sequence numbers.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.session import on_executor
from tamis.store.directory import Directory, open_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGE, _POSITION, _ROW, _NET, _TEXT = (
    "_change_type",
    "_commit_version",
    "__row",
    "__net",
    "__text",
)


class Followed(NamedTuple):
    """How far a table was followed: its snapshot, and the position of that among all that were followed."""

    snapshot: int
    position: int


class Commit(NamedTuple):
    """A snapshot of a table as its metadata tell of it."""

    snapshot: int
    parent: int | None
    milliseconds: int
    has_delete_files: bool


def is_iceberg(spark: "SparkSession", table: str) -> bool:
    """Whether a name in a catalog is that of an Iceberg table."""
    if "/" in table:
        return False
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Provider'").collect()
    return [row["data_type"].lower() for row in described] == ["iceberg"]


def new_commits(commits: Sequence[Commit], current: int, last: Followed | None) -> list[Commit] | None:
    """The commits after the one that was followed last, the oldest first; None if it is no ancestor.

    >>> commits = [Commit(1, None, 10, False), Commit(2, 1, 20, False), Commit(3, 1, 30, False)]
    >>> [commit.snapshot for commit in new_commits(commits, 3, Followed(1, 10))]
    [3]
    >>> new_commits(commits, 3, Followed(2, 20)) is None
    True
    """
    known = {commit.snapshot: commit for commit in commits}
    found: list[Commit] = []
    at: int | None = current
    while at is not None and at in known:
        if last is not None and at == last.snapshot:
            return found[::-1]
        found.append(known[at])
        at = known[at].parent
    return None


def positions(commits: Sequence[Commit], last: Followed | None) -> dict[int, int]:
    """Increasing numbers for commits: their times, or the next number where a clock went back.

    >>> positions([Commit(7, None, 10, False), Commit(8, 7, 9, False)], None)
    {7: 10, 8: 11}
    """
    found: dict[int, int] = {}
    at = -1 if last is None else last.position
    for commit in commits:
        at = max(at + 1, commit.milliseconds)
        found[commit.snapshot] = at
    return found


class Feed(NamedTuple):
    """Changes of a table of rules, with the columns of a change data feed, and how far they reach."""

    changes: "DataFrame"
    reaches: Followed


def changes_since(
    spark: "SparkSession", table: str, last: Followed | None, held: "Callable[[], DataFrame]", id: str
) -> Feed | None:
    """What changed since a snapshot, or None if nothing did.

    `held` gives the rules of the store, for when the snapshot is gone; `id` is the table's column of ids.
    """
    spark.sql(f"REFRESH TABLE {table}")  # a catalog may remember another writer's table for a while
    current = _current(spark, table)
    if current is None or (last is not None and current == last.snapshot):
        return None
    commits = _commits(spark, table)
    between = new_commits(commits, current, last)
    if last is not None and between is not None and not any(each.has_delete_files for each in between):
        places = positions(between, last)
        return Feed(_read_changes(spark, table, last.snapshot, places), Followed(current, places[current]))
    newest = next(commit for commit in commits if commit.snapshot == current)
    [place] = positions([newest], last).values()
    rows = _rows(_as_of(spark, table, current), 1)
    is_there = last is not None and any(commit.snapshot == last.snapshot for commit in commits)
    if last is not None and is_there:
        before = _rows(_as_of(spark, table, last.snapshot), -1)
        rows = rows.unionByName(before, allowMissingColumns=True)
    changes = netted(rows.withColumn(_POSITION, sf.lit(place).cast("bigint")))
    if last is not None and not is_there:
        gone = held().select(sf.col("id").alias(id)).join(rows.select(id), id, "left_anti")
        removed = gone.select(
            id, sf.lit("delete").alias(_CHANGE), sf.lit(place).cast("bigint").alias(_POSITION)
        )
        changes = changes.unionByName(removed, allowMissingColumns=True)
    return Feed(changes, Followed(current, place))


def netted(rows: "DataFrame", by: Sequence[str] = (_POSITION,)) -> "DataFrame":
    """Rows with `__net` 1 (there) or -1 (gone) as a feed, without those that are both in one commit.

    The columns `by` say which commit a row belongs to.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rows = [("a", "x > 1", -1), ("a", "x > 1", 1), ("b", "x > 2", -1), ("b", "x > 3", 1)]
    >>> rows = spark.createDataFrame(rows, "id string, expression string, __net int")
    >>> feed = netted(rows.withColumn("_commit_version", sf.lit(7)))
    >>> sorted((row.id, row.expression, row._change_type) for row in feed.collect())
    [('b', 'x > 2', 'delete'), ('b', 'x > 3', 'insert')]
    """
    names = [name for name in rows.columns if name not in (_NET, *by)]
    row = sf.struct(*(sf.col(f"`{name}`") for name in names))
    # As text: a record with a map cannot be grouped by. Fields that are null are not in it.
    counted = (
        rows.select(*by, _NET, row.alias(_ROW), sf.to_json(row).alias(_TEXT))
        .groupBy(*by, _TEXT)
        .agg(sf.sum(_NET).alias(_NET), sf.first(_ROW).alias(_ROW))
        .where(f"{_NET} != 0")
    )
    change = sf.when(sf.col(_NET) > 0, "insert").otherwise("delete")
    return counted.select(f"{_ROW}.*", change.alias(_CHANGE), _POSITION)


def _current(spark: "SparkSession", table: str) -> int | None:
    row = spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").first()
    return None if row is None else int(row["snapshot_id"])


def _commits(spark: "SparkSession", table: str) -> list[Commit]:
    rows = spark.sql(
        "SELECT snapshot_id, parent_id, unix_millis(committed_at) AS milliseconds, "
        "coalesce(CAST(summary['total-delete-files'] AS bigint), 0) "
        "+ coalesce(CAST(summary['removed-delete-files'] AS bigint), 0) > 0 AS deletes "
        f"FROM {table}.snapshots"
    ).collect()
    return [Commit(row["snapshot_id"], row["parent_id"], row["milliseconds"], row["deletes"]) for row in rows]


def _as_of(spark: "SparkSession", table: str, snapshot: int) -> "DataFrame":
    return spark.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot}")


def _rows(rows: "DataFrame", net: int) -> "DataFrame":
    return rows.withColumn(_NET, sf.lit(net))


def _read_changes(spark: "SparkSession", table: str, after: int, places: dict[int, int]) -> "DataFrame":
    """The rows of the table's `changes`, each commit with its position."""
    reader = spark.read.format("iceberg").option("start-snapshot-id", after)
    changes = reader.option("end-snapshot-id", list(places)[-1]).table(f"{table}.changes")
    net = sf.when(sf.col(_CHANGE) == "INSERT", 1).otherwise(-1)
    # By a map and not by a join, whose filters Iceberg would be asked to apply to columns that it lacks.
    pairs = [sf.lit(number).cast("bigint") for place in places.items() for number in place]
    place = sf.create_map(*pairs)[sf.col("_commit_snapshot_id")]
    rows = changes.withColumn(_NET, net).withColumn(_POSITION, place)
    # All columns of the changes are used: where some are left out, Iceberg mistakes the others for them.
    return netted(rows.drop("_commit_snapshot_id", _CHANGE), (_POSITION, "_change_ordinal"))


def last_followed(spark: "SparkSession", url: str, table: str) -> Followed | None:
    """How far a store has followed a table."""
    read = on_executor(spark, lambda: _read_followed(open_directory(url), table))
    return None if read is None else Followed(*read)


def note_followed(spark: "SparkSession", url: str, table: str, reached: Followed) -> None:
    """Remember that a store has all changes of a table up to a snapshot."""
    on_executor(spark, lambda: _write_followed(open_directory(url), table, reached))


def _folder(table: str) -> str:
    return f"followed/{hashlib.sha256(table.encode()).hexdigest()[:16]}"


def _read_followed(directory: Directory, table: str) -> tuple[int, int] | None:
    for name in reversed(directory.list(_folder(table))):
        content: dict[str, Any] = json.loads(directory.read(f"{_folder(table)}/{name}"))
        if content["table"] != table:
            raise ArgumentError(f"{directory.url} follows {content['table']} under the name of {table}")
        return content["snapshot"], content["position"]
    return None


def _write_followed(directory: Directory, table: str, reached: Followed) -> None:
    """A new file for each position, in their order; the others go."""
    folder = _folder(table)
    before = directory.list(folder)
    own = f"{reached.position:020d}.json"
    directory.create(f"{folder}/{own}", json.dumps({"table": table, **reached._asdict()}).encode())
    for name in before:
        if name < own:
            directory.delete(f"{folder}/{name}")
