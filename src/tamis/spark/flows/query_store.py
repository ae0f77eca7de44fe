"""Continuous queries that change while streams run: a store of versions.

It is a `SubscriptionStore` whose rules are always true and carry a continuous query as payload, so that
versions, sequence numbers, quarantine, pins and garbage collection are those of any store. The file
`flow.json` next to it has the streams and the key that new queries are checked against.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import ArgumentError, TamisError
from tamis.spark.building.own_names import with_own_names
from tamis.spark.flows.definition import Definition, Query, Stream, add_queries
from tamis.spark.flows.keys import Key, split_of
from tamis.spark.session import on_executor
from tamis.spark.store.pins import pinned
from tamis.spark.store.subscription_store import SubscriptionStore
from tamis.store.changes import PROBLEM, REMOVE
from tamis.store.directory import open_directory
from tamis.store.rule_store import RuleStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = "flow.json"
_CHANGE = f"op string, sequence bigint, id string, expression string, payload binary, `{PROBLEM}` string"


@dataclass(frozen=True)
class Settings:
    """What all queries of a store have in common."""

    streams: tuple[Stream, ...]
    key: Key

    def to_json(self) -> str:
        """As it lies in the store."""
        return json.dumps({"streams": [vars(stream) for stream in self.streams], "key": self.key})

    @classmethod
    def from_json(cls, text: str | bytes) -> "Settings":
        """What lies in a store."""
        said = json.loads(text)
        return cls(tuple(Stream(**stream) for stream in said["streams"]), tuple(said["key"]))

    def problem(self, name: str, query: Query) -> str | None:
        """What is wrong with a query; None if it can enter."""
        flow = Definition(self.streams).flow()
        try:
            add_queries(flow, {name: query})
        except TamisError as error:
            return str(error)
        split = split_of(flow, name)
        if self.key and not split.allows(self.key):
            return (
                f"the store runs queries by {', '.join(self.key)}, and this one cannot be split by that: "
                f"{split.why}"
            )
        return None


class QueryStore:
    """A directory of continuous queries and their versions.

    `streams` has the settings of each stream, as a file of rules has them. With a `key`, all queries run in
    parallel by it, and a query that cannot goes to quarantine, like one that does not parse. Both are fixed
    by the first change; later, the path is enough.

    >>> import tempfile
    >>> from pyspark.sql import SparkSession
    >>> import tamis.spark
    >>> spark = SparkSession.builder.getOrCreate()
    >>> store = tamis.spark.QueryStore(tempfile.mkdtemp(), streams={"logins": {"time": "ts"}}, key="user")
    >>> changes = spark.createDataFrame(
    ...     [("add", 1, "burst", "count(* BY user LAST 10m) >= 3"),
    ...      ("add", 2, "all", "count(* LAST 10m) >= 3")],
    ...     "op string, sequence bigint, id string, expression string")
    >>> store.apply_changes(changes)
    Applied(version=1, applied=1, stale=0, quarantined=1)
    >>> store.queries(spark)
    {'burst': ('count(* BY user LAST 10m) >= 3', None)}
    >>> store.quarantined(spark).select("id").collect()
    [Row(id='all')]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        streams: Mapping[str, Mapping[str, Any]] | None = None,
        key: str | Sequence[str] | None = None,
    ) -> None:
        """Set the directory: a path or URL that all executors reach. It is created on the first write."""
        self._store = SubscriptionStore(path)
        self._given: Settings | None = None
        if streams is not None:
            named = (key,) if isinstance(key, str) else tuple(key or ())
            self._given = Settings(tuple(Stream.of(name, given) for name, given in streams.items()), named)
        elif key is not None:
            raise ArgumentError("a key belongs to streams: give streams= as well")

    @property
    def url(self) -> str:
        """Where it is."""
        return self._store.url

    def __repr__(self) -> str:
        """Where it is."""
        return f"QueryStore({self.url!r})"

    def settings(self, spark: "SparkSession") -> Settings:
        """The streams and the key of the store; an error if others were given here."""
        url, given = self.url, None if self._given is None else self._given.to_json()

        def work() -> str | None:
            directory = open_directory(url)
            if given is not None:
                directory.create(_SETTINGS, given.encode())
            try:
                return directory.read(_SETTINGS).decode()
            except FileNotFoundError:
                return None

        kept = on_executor(spark, work)
        if kept is None:
            raise ArgumentError(f"{url} holds no queries yet: make it with streams=, and apply changes")
        if given is not None and json.loads(kept) != json.loads(given):
            raise ArgumentError(f"{url} was made with other streams or another key: {kept}")
        return Settings.from_json(kept)

    def apply_changes(
        self,
        changes: "DataFrame",
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        trigger: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Turn changes into new versions, as `SubscriptionStore.apply_changes` does.

        The columns are `op` ("add", "replace" or "remove"), `sequence`, `id`, `expression` (the text of the
        query) and, where there are several streams, `on`. A query whose text did not change keeps its state;
        a changed one starts empty.
        """
        settings = self.settings(changes.sparkSession)
        changes = with_own_names(changes, ("op", "sequence", "id", "expression", "on"))
        missing = [name for name in ("op", "sequence", "id", "expression") if name not in changes.columns]
        if missing:
            raise ArgumentError(
                f"changes have the columns op, sequence, id and expression; no {missing[0]!r}"
            )
        on = "`on`" if "on" in changes.columns else "CAST(NULL AS string) AS `on`"
        plain = changes.selectExpr(
            "op", "CAST(sequence AS bigint) AS sequence", "CAST(id AS string) AS id", "expression", on
        )

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                rows = [_checked(row, settings) for row in batch.to_pylist()]
                yield pa.RecordBatch.from_pylist(rows, _CHECKED)

        checked = plain.mapInArrow(task, _CHANGE)
        return self._store.apply_changes(checked, checkpoint=checkpoint, trigger=trigger, name=name)

    def queries(self, spark: "SparkSession") -> dict[str, Query]:
        """The queries of the latest version, with the streams they name."""
        url = self.url
        found = on_executor(spark, lambda: _queries_of(url, RuleStore(url).latest))
        return {name: (text, on) for name, (text, on) in found.items()}

    def quarantined(self, spark: "SparkSession") -> "DataFrame":
        """The changes that could not be applied, each with its error."""
        return self._store.quarantined(spark)

    def collect_garbage(self, spark: "SparkSession", *, keep: int = 3, grace: float = 3600.0) -> list[str]:
        """Remove unused files; see `SubscriptionStore.collect_garbage`."""
        return self._store.collect_garbage(spark, keep=keep, grace=grace)


_CHECKED = pa.schema(
    {
        "op": pa.string(),
        "sequence": pa.int64(),
        "id": pa.string(),
        "expression": pa.string(),
        "payload": pa.binary(),
        PROBLEM: pa.string(),
    }
)


def _checked(change: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """A change of a query as one of a rule that is always true; one that cannot enter says why."""
    text = change["expression"]
    if change["op"] == REMOVE or text is None or change["id"] is None:
        return {**change, "payload": None, PROBLEM: None}
    problem = settings.problem(change["id"], (text, change["on"]))
    payload = json.dumps([text, change["on"]]).encode()
    return {**change, "expression": text if problem else "TRUE", "payload": payload, PROBLEM: problem}


def queries_of_micro_batch(url: str) -> Mapping[str, Query]:
    """The queries of the version that the micro-batch of this task uses, also when it is repeated."""
    return _queries_of(url, pinned(open_directory(url)).version)


@lru_cache(maxsize=4)
def _queries_of(url: str, version: int | None) -> dict[str, Query]:
    if version is None:
        raise ArgumentError(f"{url} holds no queries yet: apply changes first")
    index = RuleStore(url).open(version)
    names = list(index)
    queries = {}
    for name, payload in zip(names, index.payloads(names), strict=True):
        text, on = json.loads(payload or b"")
        queries[str(name)] = (text, on)
    return queries
