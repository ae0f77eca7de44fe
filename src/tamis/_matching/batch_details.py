"""Optional parts of a batch answer: names, payloads, and unreadable events."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis._json_lines import json_lines
from tamis._kernel import Event
from tamis.errors import ArgumentError, EventError

if TYPE_CHECKING:
    from tamis.index import Index


class RefusedEvent(NamedTuple):
    """An event of a batch that could not be read: its row, and what is wrong with it.

    >>> from tamis import Index
    >>> index = Index()
    >>> index.add("a", "x > 1")
    >>> table, refused = index.match_batch(['{"x": 2}', "{"], on_error="collect")
    >>> table.num_rows, refused[0].row, type(refused[0].error).__name__
    (1, 1, 'EventError')
    """

    row: int
    error: Exception


def as_list(events: Any) -> list[Any] | None:
    """The events one by one, if they are a list or JSON lines; None for a table.

    >>> as_list(b'{"x": 1}\\n\\n{"x": 2}')
    [b'{"x": 1}', b'{"x": 2}']
    """
    if isinstance(events, str | bytes):
        return json_lines(events)
    return list(events) if isinstance(events, list | tuple) else None


def readable(events: Sequence[Any], *, strict: bool = False) -> tuple[list[int], list[RefusedEvent]]:
    """Which events can be read, for an index that is strict or not, and what is wrong with the others.

    >>> readable([{"x": 1}, "{"])[0]
    [0]
    """
    rows, refused = [], []
    for row, event in enumerate(events):
        try:
            Event(event, strict=strict)
        except (EventError, TypeError) as error:
            refused.append(RefusedEvent(row, error))
        else:
            rows.append(row)
    return rows, refused


def renumbered(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """The table with the row of each event instead of its number among the readable ones.

    >>> renumbered(pa.table({"event": [0, 1]}), [2, 5]).to_pydict()
    {'event': [2, 5]}
    """
    numbers = pa.array(rows, pa.int64()).take(table["event"])
    return _with(table, numbers)


def named(table: pa.Table, events: Any, key: str) -> pa.Table:
    """The table with the value of an attribute of each event instead of its number.

    >>> named(pa.table({"event": [1]}), [{"id": "a"}, {"id": "b"}], "id").to_pydict()
    {'event': ['b']}
    """
    listed = as_list(events)
    if listed is not None:
        values = pa.array([attribute(event, key) for event in listed])
    else:
        columns = pa.table(events)
        if key not in columns.column_names:
            known = ", ".join(columns.column_names[:10])
            raise ArgumentError(f"the events have no attribute {key!r} to be named by; they have {known}")
        values = columns[key]
    return _with(table, values.take(table["event"]))


def with_payloads(table: pa.Table, index: "Index") -> pa.Table:
    """The table with the payload of each subscription.

    >>> from tamis import Index
    >>> index = Index()
    >>> index.add("a", "x > 1", payload=b"p")
    >>> with_payloads(pa.table({"subscription": ["a"]}), index).to_pydict()
    {'subscription': ['a'], 'payload': [b'p']}
    """
    ids = table["subscription"].to_pylist()
    distinct = list(dict.fromkeys(ids))
    payloads = dict(zip(distinct, index.payloads(distinct), strict=True))
    return table.append_column("payload", pa.array([payloads[id] for id in ids], pa.large_binary()))


def attribute(event: Any, key: str) -> Any:
    """The value of an attribute of an event, None if it has none.

    >>> attribute(b'{"id": 7}', "id")
    7
    """
    if isinstance(event, str | bytes):
        event = json.loads(event)
    if isinstance(event, Mapping) and key in event:
        return event[key]
    return event.get(key) if isinstance(event, Event) else None


def _with(table: pa.Table, events: Any) -> pa.Table:
    return table.set_column(table.column_names.index("event"), "event", events)
