"""The class `Flow`."""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tamis import _kernel
from tamis._kernel import Event
from tamis.errors import ArgumentError
from tamis.flow.output import Output
from tamis.flow.plan import Plan
from tamis.index import plain_schema


class Flow:
    """A set of continuous queries over named streams of events.

    `limit` bounds the bytes of all state. Beyond it, events are refused (`on_limit="refuse"`), or the keys
    that were idle the longest and the oldest rows of joins are dropped (`"shed"`).

    >>> flow = Flow(limit=100_000_000)
    >>> flow.stream("logins", time="ts")
    >>> flow.add("burst", "count(*) FILTER (WHERE NOT ok) OVER (PARTITION BY user RANGE 1 HOUR) >= 2")
    >>> failed = [{"ts": second, "user": "ann", "ok": False} for second in (1, 2)]
    >>> [out.query for out in flow.push_batch("logins", failed)]
    ['burst']
    """

    def __init__(self, *, limit: int | None = None, on_limit: Literal["refuse", "shed"] = "refuse") -> None:
        """Create a flow without streams and queries."""
        self._kernel = _kernel.Flow(limit, on_limit)

    def stream(
        self,
        name: str,
        *,
        time: str | None = None,
        unit: Literal["s", "ms", "us"] = "s",
        lateness: float | str | timedelta = 0,
        idle: float | str | timedelta | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        """Declare a stream.

        `time` names the attribute with the time of an event; without it, events have the time of their
        arrival. `unit` is the unit of a numeric time. Events may be older than the latest one by `lateness`:
        they are sorted, and evaluated once that time has passed. With `idle`, a silent stream delays the
        others by at most that much plus its lateness. Durations are seconds, a `timedelta`, or text such as
        `"10 MINUTES"`. With a `schema`, like that of an `Index`, queries that use other attributes are
        refused.

        >>> flow = Flow()
        >>> flow.stream("logins", time="ts", lateness="5s", schema={"ts": "timestamp", "user": "string"})
        >>> flow.add("typo", "count(* BY user LAST 1h) > 3 AND usr = 'ann'", on="logins")
        Traceback (most recent call last):
        ...
        tamis.errors.ExpressionError: attribute `usr` is not in the schema
        hint: did you mean `user`?
        """
        declared = None if schema is None else json.dumps(plain_schema(schema))
        idle_micros = None if idle is None else microseconds(idle)
        self._kernel.stream(name, time, unit, microseconds(lateness), idle_micros, declared)

    def add(self, name: str, query: str, on: str | None = None, *, backfill: bool = False) -> None:
        """Add a continuous query, between any two events.

        It starts empty, as if the stream began with it; with `backfill`, from the rows that older queries
        hold. `on` is the stream it reads, and may be omitted if there is only one.

        >>> flow = Flow()
        >>> flow.stream("trades", time="ts")
        >>> flow.add("busy", "count(*) > 3")
        Traceback (most recent call last):
        ...
        tamis.errors.ExpressionError: count needs a window (line 1, column 1)
        count(*) > 3
        ^
        hint: say over what: count(*) OVER (PARTITION BY user RANGE INTERVAL 10 MINUTES), or short, ...
        """
        self._kernel.add(name, query, on, backfill)

    def remove(self, name: str) -> None:
        """Remove a continuous query, and the state that no other query needs.

        >>> flow = Flow()
        >>> flow.stream("trades", time="ts")
        >>> flow.add("busy", "count(* LAST 1m) > 100")
        >>> flow.remove("busy")
        >>> len(flow)
        0
        """
        self._kernel.remove(name)

    def __len__(self) -> int:
        """The number of queries."""
        return len(self._kernel)

    def __contains__(self, name: object) -> bool:
        """Whether there is a query of that name."""
        return isinstance(name, str) and self._kernel.contains(name)

    def __iter__(self) -> Iterator[str]:
        """The names of the queries, in the order in which they were added."""
        return iter(self._kernel.names())

    def __getitem__(self, name: str) -> str:
        """The text of a query."""
        return self._kernel.query(name)[0]

    def push(self, stream: str, event: Any, *, time: Any = None) -> list[Output]:
        """Add one event, and return the results.

        An event is what `Index.match` takes: a dict, a `tamis.Event`, or JSON. `time` is the time of arrival,
        for a stream whose events have no time; the default is now. An event that is refused because of the
        limit still advances the clock: the exception has the results of that as `told`.

        >>> flow = Flow()
        >>> flow.stream("hits")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> flow.push("hits", {"ip": "10.0.0.7"}, time=100.0)
        []
        >>> flow.push("hits", {"ip": "10.0.0.7"}, time=105.5)[0].query
        'many'
        """
        return _outputs(*self._kernel.push(stream, event, _arrival(time)))

    def push_batch(self, stream: str, events: Any, *, time: Any = None) -> list[Output]:
        """Add many events, in order: an Arrow table, a list of events, or JSON lines.

        The results are those of `push`, one event after the other. If an event is refused, those before it
        have been added; the exception has their results as `told`.

        >>> import pyarrow as pa
        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> table = pa.table({"ts": [1, 2, 3], "ip": ["a", "b", "a"]})
        >>> [out.events[0]["ts"] for out in flow.push_batch("hits", table)]
        [3]
        """
        return _outputs(*self._kernel.push_batch(stream, events, _arrival(time)))

    def advance(self, to: Any) -> list[Output]:
        """Declare that no event before `to` will come: a datetime, a timestamp as text, or seconds.

        >>> flow = Flow()
        >>> flow.stream("hits", time="ts", lateness="1m")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 1", on="hits")
        >>> flow.push("hits", {"ts": 100, "ip": "a"})
        []
        >>> len(flow.advance(to=100))
        1
        """
        return [Output(*told) for told in self._kernel.advance(_moment(to))]

    def late(self, stream: str) -> list[Event]:
        """The late events of a stream since the last call.

        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> _ = flow.push_batch("hits", [{"ts": 100}, {"ts": 99}])
        >>> [event["ts"] for event in flow.late("hits")]
        [99]
        """
        return self._kernel.late(stream)

    @property
    def clock(self) -> datetime | None:
        """The time up to which all events have arrived.

        >>> flow = Flow()
        >>> flow.stream("hits", time="ts", lateness=10)
        >>> flow.clock is None
        True
        >>> _ = flow.push("hits", {"ts": 100})
        >>> flow.clock.timestamp()
        90.0
        """
        clock = self._kernel.clock()
        return None if clock is None else _EPOCH + timedelta(microseconds=clock)

    def explain(self, name: str, key: Any = None) -> dict[str, Any]:
        """The state of a query: its windows, how many queries share each, and their contents.

        With the `key` of a partition, given as an event, also the values at that key.

        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> _ = flow.push("hits", {"ts": 1, "ip": "a"})
        >>> flow.explain("many", key={"ip": "a"})["windows"][0]["value"]
        1
        """
        explained: dict[str, Any] = json.loads(self._kernel.explain(name, key))
        return explained

    def plan(self) -> Plan:
        """The plan that all queries share: what feeds what, and how many queries use each node.

        It prints as text, and notebooks draw it; `to_svg` returns the drawing.

        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> for least in (2, 3, 4):
        ...     flow.add(f"many-{least}", f"count(* WHERE bad LAST 10s) >= {least}")
        >>> print(flow.plan())
        stream hits (3 queries)
          index of 1 selection (3 queries)
            count(*) FILTER (WHERE bad) OVER (RANGE INTERVAL 10 SECONDS) (3 queries; 0 rows, 0 bytes)
          index of 3 rules (3 queries)
        """
        return Plan.from_json(self._kernel.plan())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write queries and state to a file, atomically.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp(), "logins.flow")
        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> _ = flow.push("hits", {"ts": 1, "ip": "a"})
        >>> flow.save(path)
        >>> [out.query for out in Flow.open(path).push("hits", {"ts": 2, "ip": "a"})]
        ['many']
        """
        self._kernel.save(path)

    def checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Make the current state durable, at a cost proportional to the input since the last call.

        The first call writes the whole state to `path`. Later calls append to `<path>.log` until it is longer
        than the state. `Flow.open(path)` reads both.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp(), "logins.flow")
        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> flow.checkpoint(path)
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> _ = flow.push("hits", {"ts": 1, "ip": "a"})
        >>> flow.checkpoint(path)
        >>> [out.query for out in Flow.open(path).push("hits", {"ts": 2, "ip": "a"})]
        ['many']
        """
        self._kernel.checkpoint(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Flow":
        """Open a file of `save` or `checkpoint`. The flow continues as if it had never stopped.

        >>> Flow.open("no-such.flow")
        Traceback (most recent call last):
        ...
        FileNotFoundError: ...
        """
        flow = cls.__new__(cls)
        flow._kernel = _kernel.Flow.open(path)
        return flow

    def set_limit(self, limit: int | None, on_limit: Literal["refuse", "shed"] = "refuse") -> None:
        """Set the limit on the state, as `Flow(limit=…, on_limit=…)` does; None means no limit.

        A flow that was opened has the limit it was saved with. The next checkpoint writes the whole state.

        >>> flow = Flow(limit=1)
        >>> flow.stream("hits", time="ts")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> _ = flow.push("hits", {"ts": 1, "ip": "a"})
        >>> flow.set_limit(1_000_000)
        >>> [out.query for out in flow.push("hits", {"ts": 2, "ip": "a"})]
        ['many']
        """
        self._kernel.set_limit(limit, on_limit)

    def stats(self) -> dict[str, Any]:
        """Counts of events, keys and rows, and the bytes of the state, by node and by query.

        >>> flow = Flow()
        >>> flow.stream("hits", time="ts")
        >>> flow.add("many", "count(* BY ip LAST 10s) >= 2", on="hits")
        >>> _ = flow.push("hits", {"ts": 1, "ip": "a"})
        >>> stats = flow.stats()
        >>> stats["streams"]["hits"]["evaluated"], stats["bytes"] > 0, list(stats["bytes_by_query"])
        (1, True, ['many'])
        """
        stats: dict[str, Any] = json.loads(self._kernel.stats())
        return stats


def _outputs(told: list[Any], fault: Exception | None) -> list[Output]:
    """The results; an exception raised with them has them as `told`."""
    outputs = [Output(*one) for one in told]
    if fault is not None:
        fault.told = outputs  # type: ignore[attr-defined]
        raise fault
    return outputs


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(length: float | str | timedelta) -> int:
    """The microseconds of a duration: seconds, a `timedelta`, or text such as `"10 MINUTES"`.

    >>> microseconds("1s"), microseconds(0.5)
    (1000000, 500000)
    """
    if isinstance(length, str):
        return _kernel.parse_interval(length)
    if isinstance(length, timedelta):
        return length // timedelta(microseconds=1)
    if not abs(length) < _LONGEST_SECONDS:
        raise ArgumentError(f"a duration is less than 285 years, not {length!r} seconds")
    return round(length * 1_000_000)


_LONGEST_SECONDS = 9_000_000_000
_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)


def _moment(moment: Any) -> int:
    """Microseconds since the epoch."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise ArgumentError(
                f"{moment!r} is not a timestamp\nhint: such as '2026-01-31 12:00:00'"
            ) from None
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise ArgumentError(f"a moment is a datetime, a timestamp as text, or seconds, not {moment!r}")
    if not _FIRST_MOMENT.timestamp() <= moment <= _LAST_MOMENT.timestamp():
        raise ArgumentError(
            f"a moment is between the years 1 and 9999, not {moment!r} seconds after 1970\n"
            "hint: milliseconds and microseconds have to be turned into seconds"
        )
    return round(moment * 1_000_000)


def _arrival(time: Any) -> int:
    return _moment(datetime.now(UTC) if time is None else time)
