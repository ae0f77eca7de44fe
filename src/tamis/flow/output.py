"""The results of a continuous query."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tamis._kernel import Event


@dataclass(frozen=True, slots=True)
class Output:
    """One result of a continuous query that appears (`kind` is `"+"`) or disappears (`"-"`).

    `row` has the values of a rule's windowed terms by their text, or the columns of a join. `events` are
    the events that made it true, the last one last.

    >>> import tamis
    >>> flow = tamis.Flow()
    >>> flow.stream("trades", time="ts")
    >>> flow.add("rise", "price > lag(price BY symbol LAST 1h) * 1.1", on="trades")
    >>> flow.push("trades", {"ts": 1, "symbol": "X", "price": 10.0})
    []
    >>> [out] = flow.push("trades", {"ts": 2, "symbol": "X", "price": 12.0})
    >>> out.query, out.row, out.events[0]["price"]
    ('rise', {'lag(price) OVER (PARTITION BY symbol RANGE INTERVAL 1 HOUR)': 10.0}, 12.0)
    """

    query: str
    kind: Literal["+", "-"]
    time: datetime
    row: dict[str, Any]
    events: list[Event]

    def to_json(self) -> str:
        """The output as one line of JSON.

        >>> from datetime import UTC, datetime
        >>> Output("q", "+", datetime(2026, 1, 31, tzinfo=UTC), {"n": 3}, []).to_json()
        '{"query": "q", "kind": "+", "time": "2026-01-31T00:00:00+00:00", "row": {"n": 3}, "events": []}'
        """
        events = [json.loads(event.to_json()) for event in self.events]
        told = {"query": self.query, "kind": self.kind, "time": self.time.isoformat(), "row": self.row}
        return json.dumps({**told, "events": events}, ensure_ascii=False, default=str)
