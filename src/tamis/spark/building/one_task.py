"""Builds and publishes a small set of subscriptions in one task.

Most sets are small: a few hundred rules, in a notebook or a test. Counting them, looking for sources,
building a file and publishing it in separate jobs costs more than the matching. So one task takes the first
rows. If these are all, it does everything; if there are more, it does nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.spark.building.laid_out import LaidOut, version_of
from tamis.spark.building.on_executors import Built, build_one, built
from tamis.spark.building.subscriptions import bind, joined
from tamis.spark.plans.choose import Sizes, choose
from tamis.spark.release import own_release, refuse_other_release
from tamis.spark.session import Cluster, collected
from tamis.store.apply_changes import with_sequences
from tamis.store.directory import open_directory
from tamis.store.versions import Version, publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 20_000
"""Subscriptions that one task takes. Of a larger set, each partition sends at most that many for nothing."""


@dataclass(frozen=True)
class Request:
    """What is to be built, and where."""

    url: str
    ids: str
    schema: dict[str, Any] | None
    plan: str
    shards: int | None
    memory: int | None
    refuses: bool
    """Whether nothing is published if any subscription is refused."""
    build: str
    """Which build this is: the same for all attempts."""

    def built(self, table: pa.Table, cluster: Cluster) -> tuple[Built, Version | None] | None:
        """The file, and the version if it was published; None if another plan fits better."""
        bound = "source" in table.column_names and table.column("source").null_count < table.num_rows
        table = bind(table)
        lengths = pc.sum(pc.utf8_length(table.column("expression"))).as_py() or 0
        sizes = Sizes(table.num_rows, lengths, cluster.room, cluster.tasks)
        plan = choose(sizes, self.plan, self.shards, self.memory)
        if plan.name != "replicated":
            return None
        directory = open_directory(self.url)
        file = build_one(0, table, directory, self.schema, None)
        if file.refused and self.refuses:
            return file, None
        version = version_of(LaidOut([file]), plan, self.ids, self.schema, bound=bound, build=self.build)
        return file, publish(directory, with_sequences(directory, version))


def built_in_one_task(
    rows: "DataFrame", request: Request, cluster: Cluster
) -> tuple[Built, Version | None] | None:
    """Build and publish normalised subscriptions if they are few; None if they are not."""
    drivers = own_release()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refuse_other_release(drivers)
        table = joined(batches)
        if table is None or table.num_rows > SMALL:
            return
        done = request.built(table, cluster)
        if done is not None:
            file, version = done
            told = [asdict(file), None if version is None else version.to_json().decode()]
            yield pa.record_batch({"told": [json.dumps(told)]})

    # Spark drops a limit that it knows to be above the number of rows, and the one partition with it.
    few = rows.limit(SMALL + 1).coalesce(1)
    for row in collected(few.mapInArrow(task, "told string")):
        file, version = json.loads(row["told"])
        return built(file), None if version is None else Version.from_json(version.encode())
    return None
