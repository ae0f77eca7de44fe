"""What a continuous query tells."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tamis._kernel import Event


@dataclass(frozen=True, slots=True)
class Output:
    """One answer of a continuous query, when it comes (`kind` is `"+"`) or goes (`"-"`).

    `row` has the values of a rule's windowed terms by their text, or the columns of a join. `events` are the events
    that made it true, the last one last.

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
