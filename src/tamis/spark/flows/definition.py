"""What a flow consists of, in plain values that travel to tasks: streams, queries, a limit."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tamis.errors import ArgumentError, TamisError
from tamis.flow.flow import Flow, microseconds
from tamis.flow.rules import query_settings, read_description, stream_settings
from tamis.spark.building.own_names import with_own_names

Query = tuple[str, str | None]
"""The text of a continuous query, and the stream it reads where it says so."""

ONLY_STREAM = "events"
"""The name of the stream where there is one and nobody has named it."""


@dataclass(frozen=True)
class Stream:
    """A stream: its name, the attribute with the time, what a number in it means, how late events may be."""

    name: str
    time: str
    unit: Literal["s", "ms", "us"] = "s"
    lateness: int = 0
    """Microseconds."""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> "Stream":
        """A stream from its settings, as `Flow.stream` takes them.

        >>> Stream.of("logins", {"time": "ts", "lateness": "5s"})
        Stream(name='logins', time='ts', unit='s', lateness=5000000)
        """
        if not settings.get("time"):
            raise ArgumentError(
                f"stream {name!r} does not say which column holds the time of its events: on Spark, the "
                'order of arrival is undefined. Name it, as in time="ts"'
            )
        return cls(
            name, settings["time"], settings.get("unit", "s"), microseconds(settings.get("lateness") or 0)
        )


@dataclass(frozen=True)
class Definition:
    """Streams and queries.

    >>> found = Definition((Stream("logins", "ts"),), {"burst": ("count(* BY user LAST 10m) >= 3", None)})
    >>> list(found.flow())
    ['burst']
    """

    streams: tuple[Stream, ...]
    queries: Mapping[str, Query] = field(default_factory=dict)
    limit: int | None = None
    on_limit: Literal["refuse", "shed"] = "refuse"

    def flow(
        self,
        queries: Mapping[str, Query] | None = None,
        schemas: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> Flow:
        """A flow with some of the queries, all unless they are named, that is given events in their order.

        With the `schemas` of streams, queries that ask for other attributes are refused.
        """
        flow = Flow(limit=self.limit, on_limit=self.on_limit)
        for stream in self.streams:
            schema = None if schemas is None else schemas.get(stream.name)
            flow.stream(stream.name, time=stream.time, unit=stream.unit, schema=schema)
        add_queries(flow, self.queries if queries is None else queries)
        return flow


def add_queries(flow: Flow, queries: Mapping[str, Query]) -> None:
    """Add queries to a flow; an error names the query.

    >>> flow = Flow()
    >>> flow.stream("hits", time="ts")
    >>> add_queries(flow, {"many": ("count(*) > 3", None)})
    Traceback (most recent call last):
    ...
    tamis.errors.ArgumentError: query 'many': count needs a window (line 1, column 1)
    ...
    """
    for name, (text, on) in queries.items():
        try:
            flow.add(name, text, on)
        except TamisError as error:
            raise ArgumentError(f"query {name!r}: {error}") from None


def read_definition(
    queries: Any,
    names: Iterable[str] | None,
    settings: Mapping[str, Any],
    *,
    limit: int | None,
    on_limit: Literal["refuse", "shed"],
) -> Definition:
    """The definition that a caller gives.

    `names` are those of the streams, None where there is one DataFrame without a name. `settings` are `time`,
    `unit` and `lateness`, each for all streams or by stream.

    >>> given = {"many": "count(* LAST 1m) > 3"}
    >>> read_definition(given, ["hits"], {"time": "ts"}, limit=None, on_limit="refuse").streams
    (Stream(name='hits', time='ts', unit='s', lateness=0),)
    """
    described = _described(queries)
    declared: dict[str, dict[str, Any]] = {}
    if described.get("streams"):
        declared = stream_settings(described["streams"])
    limit = described.get("limit") if limit is None else limit
    on_limit = described.get("on_limit", on_limit)
    known = _stream_names(names, declared)
    streams = tuple(Stream.of(name, _settings_of(name, declared.get(name, {}), settings)) for name in known)
    found = {
        name: (given["query"], given.get("on"))
        for name, given in query_settings(described["queries"]).items()
    }
    return Definition(streams, found, limit, on_limit)


def _stream_names(names: Iterable[str] | None, declared: Mapping[str, Any]) -> list[str]:
    if names is not None:
        found = list(names)
        for name in declared:
            if name not in found:
                raise ArgumentError(
                    f"there are no events for stream {name!r}; give its DataFrame, as in "
                    f"flow({{{name!r}: ...}}, ...)"
                )
        return found
    if len(declared) > 1:
        raise ArgumentError(
            f"the rules use {len(declared)} streams, {', '.join(declared)}: give a DataFrame for each, "
            "as in flow({" + ", ".join(f"{name!r}: ..." for name in declared) + "}, ...)"
        )
    return list(declared) or [ONLY_STREAM]


def _settings_of(name: str, declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a stream; what the caller says wins over what the file says."""
    settings = dict(declared)
    for setting, value in given.items():
        own = value.get(name) if isinstance(value, Mapping) else value
        if own is not None:
            settings[setting] = own
    return settings


def _described(queries: Any) -> dict[str, Any]:
    """Whatever a caller gives as queries, in the form of a file of rules."""
    if isinstance(queries, str | os.PathLike):
        described = read_description(queries)
        if not isinstance(described, Mapping):
            raise ArgumentError(f"{os.fspath(queries)}: a file of rules names its streams and queries")
        return dict(described)
    if hasattr(queries, "mapInArrow"):
        return {"queries": _from_table(queries)}
    if isinstance(queries, Mapping):
        if isinstance(queries.get("queries"), Mapping):
            return dict(queries)
        return {"queries": queries}
    if isinstance(queries, Iterable):
        return {"queries": _from_list(queries)}
    raise TypeError(
        "queries are a mapping of names to texts, a list of (name, text) or (name, text, stream), a "
        f"DataFrame, the path of a file of rules, or a QueryStore, not {type(queries).__name__}"
    )


def _from_list(queries: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for query in queries:
        if isinstance(query, str) or not 2 <= len(query) <= 3:
            raise ArgumentError(f"a query is (name, text) or (name, text, stream), not {query!r}")
        name, text, *on = query
        _put(found, name, {"query": text, "on": on[0] if on else None})
    return found


def _from_table(queries: Any) -> dict[str, Any]:
    queries = with_own_names(queries, ("id", "expression", "on"))
    columns = list(queries.columns)
    for needed in ("id", "expression"):
        if needed not in columns:
            raise ArgumentError(
                "a table of queries has the columns id, expression and, for several streams, on; "
                f"this one has {', '.join(columns)}"
            )
    has_stream = "on" in columns
    found: dict[str, Any] = {}
    for row in queries.select("id", "expression", *(["on"] if has_stream else [])).collect():
        _put(found, str(row["id"]), {"query": row["expression"], "on": row["on"] if has_stream else None})
    return dict(sorted(found.items()))


def _put(found: dict[str, Any], name: str, query: dict[str, Any]) -> None:
    if name in found:
        raise ArgumentError(f"two queries have the name {name!r}")
    found[name] = query
