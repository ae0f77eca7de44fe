"""Which plan to use for an index, and the report that says what was chosen and why.

- *replicated*: every executor host maps the whole index; events stay where they are.
- *sharded*: the index does not fit on a host; an event visits the shards that might match it.
- *by-source*: publishers advertise; an event visits the shards of its source.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.errors import ArgumentError
from tamis.spark.session import on_executor
from tamis.store.directory import open_directory
from tamis.store.versions import PlanName, Version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_PER_SUBSCRIPTION = 120
BYTES_PER_CHARACTER = 1.5
"""What an index takes on disk, from workloads with 3 to 12 predicates; the report has the true size."""

ROWS_PER_FILE = 500_000
"""Subscriptions that one task builds into one file."""


@dataclass(frozen=True)
class Sizes:
    """What is known before anything is built."""

    subscriptions: int
    characters: int
    room: int
    """Bytes that an index may take on a host."""
    tasks: int
    repeated: int = 0
    """Rows whose id another row has too."""

    @property
    def estimated_bytes(self) -> int:
        """The size that the index will have, roughly."""
        return int(self.subscriptions * BYTES_PER_SUBSCRIPTION + self.characters * BYTES_PER_CHARACTER)


@dataclass(frozen=True)
class Plan:
    """A plan, and the reason for it.

    >>> choose(Sizes(1_000, 30_000, 8 << 30, tasks=2)).name
    'replicated'
    """

    name: PlanName
    shards: int
    reason: str


def choose(
    sizes: Sizes,
    wanted: str = "auto",
    shards: int | None = None,
    memory: int | None = None,
    advertised: bool = False,
) -> Plan:
    """The plan for an index of these sizes; what the caller wants wins.

    `memory` overrides the estimate of what the index may take on one host.

    >>> choose(Sizes(10**9, 10**11, 8 << 30, tasks=4)).name
    'sharded'
    >>> choose(Sizes(10, 100, 8 << 30, tasks=4), wanted="sharded", shards=3).shards
    3
    """
    budget = memory if memory is not None else sizes.room
    size, room = _human(sizes.estimated_bytes), _human(budget)
    needed = max(2, -(-sizes.estimated_bytes // max(1, budget)), sizes.tasks)
    if wanted == "auto":
        if advertised:
            return Plan("by-source", shards or needed, "advertisements were given")
        if shards is not None and shards > 1:
            return Plan("sharded", shards, f"{shards} shards were asked for")
        if sizes.estimated_bytes <= budget:
            return Plan("replicated", 1, f"about {size} fit into the {room} that a host may spend")
        return Plan("sharded", needed, f"about {size} do not fit into the {room} that a host may spend")
    if wanted == "replicated":
        return Plan("replicated", 1, "as asked for")
    if wanted == "sharded":
        return Plan("sharded", shards or needed, "as asked for")
    if wanted == "by-source":
        if not advertised:
            raise ArgumentError('plan="by-source" needs advertisements: a DataFrame of source and expression')
        return Plan("by-source", shards or needed, "as asked for")
    raise ArgumentError(f'plan is "auto", "replicated", "sharded" or "by-source", not {wanted!r}')


def may_be_replicated(wanted: str, shards: int | None, *, advertised: bool) -> bool:
    """Whether `choose` might say "replicated", before any size is known.

    >>> may_be_replicated("auto", None, advertised=False), may_be_replicated("auto", 4, advertised=False)
    (True, False)
    """
    return wanted == "replicated" or (wanted == "auto" and not advertised and (shards or 1) == 1)


def _human(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


@dataclass(frozen=True)
class PlanReport:
    """The plan of a query and, after it has run, what its tasks saw. Print it.

    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> rules = spark.createDataFrame([("a", "x > 1")], "id string, expression string")
    >>> print(tamis.spark.build(rules).report(spark))  # doctest: +ELLIPSIS
    plan           replicated: about ... B fit into the ... GiB that a host may spend
    index          version 1, 1 subscriptions, ... KiB in 1 file(s)
    ...
    """

    spark: "SparkSession" = field(repr=False)
    url: str
    version: Version
    run: str | None
    warnings: list[str]
    shape: str = ""
    """How matches come back from the Python workers, and why so."""

    def tasks(self) -> list[dict[str, Any]]:
        """What each task that has finished saw: rows, matches, seconds, values of the wrong type."""
        if self.run is None:
            return []
        url, run = self.url, self.run

        def read() -> list[dict[str, Any]]:
            directory = open_directory(url)
            names = directory.list(f"reports/{run}")
            return [json.loads(directory.read(f"reports/{run}/{name}")) for name in names]

        reports: list[dict[str, Any]] = on_executor(self.spark, read)
        return reports

    def wrong_types(self) -> dict[str, int]:
        """The number of values of a kind that no predicate on their attribute expects."""
        total: dict[str, int] = {}
        for task in self.tasks():
            for name, count in task["wrong_types"].items():
                total[name] = total.get(name, 0) + count
        return total

    def absent(self) -> list[str]:
        """Some of the attributes that rules use and no column of the events has.

        For a stream, this includes rules that were added after it started.
        """
        return sorted({name for task in self.tasks() for name in task.get("absent", [])})

    def __str__(self) -> str:
        """The report as text."""
        version = self.version
        notes = version.notes
        lines = [
            f"plan           {version.plan}: {notes.get('reason', '')}",
            f"index          version {version.number}, {version.subscriptions:,} subscriptions, "
            f"{_human(version.size)} in {sum(map(len, version.shards))} file(s)",
            f"directory      {self.url}",
            f"attributes     {len(version.attributes):,} asked for",
        ]
        if self.shape:
            lines.append(f"shape          {self.shape}")
        if version.plan != "replicated":
            sizes = [sum(file.bytes for file in shard) for shard in version.shards]
            lines.append(f"shards         {len(sizes)}, largest {_human(max(sizes))}")
        if "visits" in notes:
            lines.append(f"shard visits   {notes['visits']:.2f} expected per event")
        if version.router is not None and version.router.rules is not None:
            lines.append(
                f"routing index  {version.router.rules.subscriptions:,} expressions, "
                f"{_human(version.router.rules.bytes)}"
            )
        if version.changes:
            lines.append(f"changes        {len(version.changes)} file(s) on top of the snapshots")
        lines += [f"warning        {warning}" for warning in self.warnings]
        finished = self.tasks()
        if finished:
            rows = sum(task["rows"] for task in finished if task["step"] != "shard")
            matches = sum(task["matches"] for task in finished)
            lines.append(f"seen           {rows:,} events, {matches:,} matches, {len(finished)} task(s)")
            places = Counter(task["device"] for task in finished if task.get("device"))
            lines += [f"device         {place}: {count} task(s)" for place, count in sorted(places.items())]
            if (visits := sum(task["visits"] for task in finished)) and rows:
                lines.append(f"visited        {visits / rows:.2f} shards per event")
        warned = " ".join(self.warnings)
        if absent := [name for name in self.absent() if name not in warned]:
            lines.append(f"absent         {', '.join(absent)}: no column of the events holds them")
        for name, count in self.wrong_types().items():
            lines.append(
                f"wrong type     {count:,} values of {name}: predicates expect "
                f"{' or '.join(version.attributes[name])}"
            )
        return "\n".join(lines)
