"""From a DataFrame of subscriptions to a published version, with the plan that fits."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as sf

from tamis.errors import ArgumentError
from tamis.spark.build import FIRST_PROBLEMS, Built, all_attributes, build_files
from tamis.spark.built_index import BuiltIndex
from tamis.spark.directory import Directory, open_directory
from tamis.spark.plan import ROWS_PER_FILE, Plan, Sizes, choose
from tamis.spark.session import cluster, on_executor, snapshot_directory
from tamis.spark.subscriptions import InvalidSubscriptionsError, id_kind, normalised, validate
from tamis.spark.versions import Router, Version, publish, read_version

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
) -> BuiltIndex:
    """Build an index of a DataFrame of subscriptions, on the executors, at once.

    `directory` is a path or URL that all executors reach; on one host it may be left out. See
    `tamis.spark.match` for the other arguments.
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
    rows = normalised(subscriptions)
    sizes = sizes_of(rows, spark)
    chosen = choose(sizes, plan, shards, memory)
    files = build_replicated(rows, sizes, open_directory(url), schema)
    refuse_or_go_on(files, on_error)
    version = _version(files, chosen, ids)
    published = publish_on_executor(spark, url, version)
    refused = sum(part.refused for part in files)
    left_out = validate(subscriptions, schema=schema) if refused or on_error == "quarantine" else None
    return BuiltIndex(url, published, quarantined=left_out)


def sizes_of(rows: "DataFrame", spark: "SparkSession") -> Sizes:
    """How many subscriptions there are, how long their texts, and how large the hosts."""
    [counted] = rows.agg(
        sf.count("*").alias("rows"), sf.sum(sf.length("expression")).alias("characters")
    ).collect()
    hosts = cluster(spark)
    return Sizes(counted["rows"], counted["characters"] or 0, hosts.host_memory, hosts.tasks)


def build_replicated(
    rows: "DataFrame", sizes: Sizes, directory: Directory, schema: dict[str, Any] | None
) -> list[Built]:
    """Files that every host maps: as few as can be built side by side."""
    parts = max(1, min(-(-sizes.subscriptions // ROWS_PER_FILE), sizes.tasks))
    return build_files(rows.repartition(parts, "id").drop("source"), directory, schema)


def refuse_or_go_on(files: list[Built], on_error: OnError) -> None:
    """Raise what the tasks refused, unless it is to be left out."""
    refused = sum(part.refused for part in files)
    if refused and on_error == "fail":
        first = sorted(
            (problem for part in files for problem in part.problems), key=lambda problem: str(problem[0])
        )
        raise InvalidSubscriptionsError(first[:FIRST_PROBLEMS], refused)


def _version(files: list[Built], plan: Plan, ids: str, router: Router | None = None) -> Version:
    shards: list[list[Any]] = [[] for _ in range(max(1, plan.shards))]
    for part in files:
        if part.file.subscriptions:
            shards[part.shard].append(part.file)
    return Version(
        number=1,
        plan=plan.name,
        ids="int" if ids == "int" else "string",
        shards=shards,
        router=router,
        attributes=all_attributes(files),
        subscriptions=sum(part.file.subscriptions for part in files),
        payloads=any(part.payloads for part in files),
        notes={"reason": plan.reason},
    )


def publish_on_executor(spark: "SparkSession", url: str, version: Version) -> Version:
    """Publish a version from a task: the client may not reach the directory."""
    content = version.to_json()

    def work() -> int:
        return publish(open_directory(url), Version.from_json(content)).number

    return replace(version, number=on_executor(spark, work))


def read_on_executor(spark: "SparkSession", url: str, number: int | None = None) -> Version:
    """Read a version in a task; the latest unless one is named."""

    def work() -> str:
        return read_version(open_directory(url), number).to_json().decode()

    return Version.from_json(on_executor(spark, work).encode())
