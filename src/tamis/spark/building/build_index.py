"""From a DataFrame of subscriptions to a published version, with the plan that fits."""

import os
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Window
from pyspark.sql import functions as sf

from tamis.errors import ArgumentError, TamisError
from tamis.spark.building.laid_out import LaidOut, version_of
from tamis.spark.building.on_executors import FIRST_PROBLEMS, SHARD, Built, build_files
from tamis.spark.building.one_task import Request, built_in_one_task
from tamis.spark.building.subscriptions import (
    InvalidSubscriptionsError,
    any_bound,
    bound_to_source,
    id_kind,
    normalised,
    validate,
)
from tamis.spark.built_index import BuiltIndex
from tamis.spark.plans.by_number import gather_by_number
from tamis.spark.plans.by_source import assign_shards_by_source, collect_advertisements, put_advertisements
from tamis.spark.plans.choose import ROWS_PER_FILE, Plan, Sizes, choose, may_be_replicated
from tamis.spark.plans.sharding import assign_shards, sample_events, visits_per_event
from tamis.spark.session import cluster, on_executor, snapshot_directory
from tamis.spark.store.pins import Pin, pin, propose_pin, write_pin
from tamis.spark.store.pins import micro_batch as current_micro_batch
from tamis.store.apply_changes import with_sequences
from tamis.store.directory import Directory, open_directory
from tamis.store.routes import ROUTER_BYTES, join_routes, put_routes
from tamis.store.versions import IndexFile, Router, Version, publish, read_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnError = Literal["fail", "quarantine"]


def build(
    subscriptions: "DataFrame",
    *,
    directory: str | os.PathLike[str] | None = None,
    on_error: OnError = "fail",
    schema: dict[str, Any] | None = None,
    plan: str = "auto",
    shards: int | None = None,
    memory: int | None = None,
    advertisements: "DataFrame | None" = None,
    sample: "DataFrame | None" = None,
) -> BuiltIndex:
    """Build an index of a DataFrame of subscriptions on the executors, immediately.

    `directory` is a path or URL that all executors reach; on one host it may be omitted. `schema` declares
    the types of attributes. `plan` is "auto", "replicated", "sharded" or "by-source"; `shards` and `memory`
    (bytes that the index may take on a host) guide the choice. `advertisements` are a DataFrame of `source`
    and `expression`: each event of a source satisfies one of its expressions. Events in `sample` show how
    often predicates are true, which guides how subscriptions are spread over shards.

    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1"), ("b", "y > 2")], "id string, expression string")
    >>> index = build(rules, plan="sharded", shards=2)
    >>> events = spark.createDataFrame([(1, 3), (2, 0)], "event_id int, x int")
    >>> [row.subscription for row in index.match(events).collect()]
    ['a']
    """
    if on_error not in ("fail", "quarantine"):
        raise ArgumentError(f'on_error is "fail" or "quarantine", not {on_error!r}')
    spark = subscriptions.sparkSession
    if subscriptions.isStreaming:
        raise ArgumentError(
            "the subscriptions are a stream; feed them to SubscriptionStore(path).apply_changes(...) and "
            "match against the store"
        )
    ids = id_kind(subscriptions)
    url = snapshot_directory(spark, directory)
    given, name = normalised(subscriptions), uuid.uuid4().hex
    left_out = validate(subscriptions, schema=schema) if on_error == "quarantine" else None
    if may_be_replicated(plan, shards, advertised=advertisements is not None):
        request = Request(url, ids, schema, plan, shards, memory, refuses=on_error == "fail", build=name)
        done = built_in_one_task(given, request, cluster(spark))
        if done is not None:
            file, published = done
            refuse_or_go_on([file], on_error)
            assert published is not None  # nothing was refused
            return BuiltIndex(url, published, quarantined=left_out)
    rows, bound = bound_to_source(given), any_bound(given)
    sizes = sizes_of(rows, spark)
    chosen = choose(sizes, plan, shards, memory, advertised=advertisements is not None)
    if chosen.name != "replicated":
        rows = without_repeats(rows, sizes, on_error)
    work = Work(rows, sizes, chosen, open_directory(url), schema)
    if chosen.name == "replicated":
        laid_out = replicated(work)
    elif chosen.name == "sharded":
        laid_out = sharded(work, on_error, sample)
    else:
        assert advertisements is not None  # `choose` has seen to it
        laid_out = by_source(work, advertisements)
    refuse_or_go_on(laid_out.files, on_error)
    version = version_of(laid_out, chosen, ids, schema, bound=bound, build=name)
    return BuiltIndex(url, publish_on_executor(spark, url, version), quarantined=left_out)


@dataclass(frozen=True)
class Work:
    """What is to be built, and where."""

    rows: "DataFrame"
    sizes: Sizes
    plan: Plan
    directory: Directory
    schema: dict[str, Any] | None

    @property
    def spark(self) -> "SparkSession":
        """The session of the subscriptions."""
        return self.rows.sparkSession


def replicated(work: Work) -> LaidOut:
    """Files that every host maps: as few as can be built side by side."""
    parts = max(1, min(-(-work.sizes.subscriptions // ROWS_PER_FILE), work.sizes.tasks))
    return LaidOut(build_files(work.rows.repartition(parts, "id"), work.directory, work.schema))


def sharded(work: Work, on_error: OnError, sample: "DataFrame | None") -> LaidOut:
    """A file for each shard, and a routing index of their pruned expressions."""
    shards, directory = work.plan.shards, work.directory
    events = None if sample is None else sample_events(sample)
    budget = ROUTER_BYTES // shards

    def routes(where: Directory, texts: list[str]) -> str:
        return put_routes(where, texts, budget, events)

    rows, cuts = assign_shards(work.rows, shards, work.sizes.subscriptions, events)
    files = build_files(gather_by_number(rows, shards, SHARD), directory, work.schema, routes)
    refuse_or_go_on(files, on_error)
    named: dict[int, list[str]] = {}
    for part in files:
        if part.routes is not None:
            named.setdefault(part.shard, []).append(part.routes)

    def join() -> tuple[dict[str, Any], float | None]:
        file, index = join_routes(directory, named)
        return asdict(file), visits_per_event(index, events)

    file, visits = on_executor(work.spark, join)
    notes = {} if visits is None else {"visits": visits}
    return LaidOut(files, Router(rules=IndexFile(**file), cuts=cuts), notes)


def by_source(work: Work, advertisements: "DataFrame") -> LaidOut:
    """A file for each group of sources that the same subscriptions might match."""
    directory = work.directory
    advertised = collect_advertisements(advertisements)
    rows, visits = assign_shards_by_source(work.rows, advertised, work.plan.shards)
    files = build_files(gather_by_number(rows, work.plan.shards, SHARD), directory, work.schema)
    file = on_executor(work.spark, lambda: asdict(put_advertisements(directory, advertised)))
    router = Router(sources=visits, advertisements=IndexFile(**file))
    expected = sum(map(len, visits.values())) / len(visits)
    return LaidOut(files, router, {"visits": expected})


def without_repeats(rows: "DataFrame", sizes: Sizes, on_error: OnError) -> "DataFrame":
    """Refuse ids that are given twice, or keep one row of each: their rows may go to different shards.

    In the replicated plan, rows of one id meet in one task, which reports them with all other errors.
    """
    if not sizes.repeated:
        return rows
    if on_error == "fail":
        twice = rows.groupBy("id").count().filter("count > 1").orderBy("id").limit(FIRST_PROBLEMS).collect()
        problems = [(row["id"], f"id {row['id']!r} is given {row['count']} times") for row in twice]
        raise InvalidSubscriptionsError(problems, sizes.repeated)
    first = Window.partitionBy("id").orderBy("expression")
    numbered = rows.withColumn("__tamis_repeat", sf.row_number().over(first))
    return numbered.filter("__tamis_repeat = 1 OR id IS NULL").drop("__tamis_repeat")


def sizes_of(rows: "DataFrame", spark: "SparkSession") -> Sizes:
    """How many subscriptions there are, how long their texts, and how large the hosts."""
    asked = {
        "rows": sf.count("*"),
        "characters": sf.sum(sf.length("expression")),
        "ids": sf.count_distinct("id"),
        "nameless": sf.count_if(sf.col("id").isNull()),
    }
    [counted] = rows.agg(*(column.alias(name) for name, column in asked.items())).collect()
    hosts = cluster(spark)
    repeated = counted["rows"] - counted["ids"] - counted["nameless"]
    return Sizes(counted["rows"], counted["characters"] or 0, hosts.room, hosts.tasks, repeated)


def refuse_or_go_on(files: list[Built], on_error: OnError) -> None:
    """Raise what the tasks refused, unless it is to be left out."""
    refused = sum(part.refused for part in files)
    if refused and on_error == "fail":
        first = sorted(
            (problem for part in files for problem in part.problems), key=lambda problem: str(problem[0])
        )
        raise InvalidSubscriptionsError(first[:FIRST_PROBLEMS], refused)


def publish_on_executor(spark: "SparkSession", url: str, version: Version) -> Version:
    """Publish a version from a task: the client may not reach the directory."""
    content = version.to_json()

    def work() -> str:
        directory = open_directory(url)
        version = with_sequences(directory, Version.from_json(content))
        return publish(directory, version).to_json().decode()

    return Version.from_json(on_executor(spark, work).encode())


def opened_on_executor(
    spark: "SparkSession", url: str, micro_batch: tuple[str, int] | None = None
) -> BuiltIndex:
    """The latest version in a directory, read in a task; in `foreachBatch`, that of its micro-batch.

    A task that is started from `foreachBatch` knows its streaming query and micro-batch; where it does not,
    on Spark Connect, the caller may say.
    """

    def work() -> tuple[str, int | None, tuple[str, int] | None]:
        directory = open_directory(url)
        own = micro_batch or current_micro_batch()
        if own is None:
            return read_version(directory).to_json().decode(), None, None
        decides = directory.creates_once
        pinned = pin(directory, *own) if decides else propose_pin(directory, *own)
        content = read_version(directory, pinned.version).to_json().decode()
        return content, pinned.now, None if decides else own

    content, now, undecided = on_executor(spark, work)
    version = Version.from_json(content.encode())
    if undecided is not None:
        _decide(spark, url, undecided, Pin(version.number, now))
    return BuiltIndex(url, version, follows=True, moment=now)


def _decide(spark: "SparkSession", url: str, micro_batch: tuple[str, int], decided: Pin) -> None:
    """Pin a micro-batch from this process, where tasks cannot agree: attempts of a task write the same."""
    query, batch = micro_batch
    kept = on_executor(spark, lambda: write_pin(open_directory(url), query, batch, decided))
    if Pin(*kept) != decided:
        raise TamisError(
            f"{url}: micro-batch {batch} of the query {query} was pinned to version {kept[0]} by another "
            f"process, and to version {decided.version} here; run the query once"
        )
