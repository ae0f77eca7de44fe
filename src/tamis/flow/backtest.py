"""How often rules would have fired over history, and when."""

from typing import Any

from tamis.flow.output import Output


class Backtest:
    """Counts the results of queries.

    >>> import tamis
    >>> flow = tamis.Flow()
    >>> flow.stream("hits", time="ts")
    >>> flow.add("many", "count(* LAST 10s) >= 2")
    >>> flow.add("never", "count(* LAST 10s) >= 200")
    >>> history = Backtest(list(flow))
    >>> history.add(flow.push_batch("hits", [{"ts": 1}, {"ts": 2}, {"ts": 3}]))
    >>> print(history.table())
    query  fired  first                last
    many       2  1970-01-01 00:00:02  1970-01-01 00:00:03
    never      0  -                    -
    """

    def __init__(self, queries: list[str]) -> None:
        """Start with zero for each query."""
        self._queries: dict[str, dict[str, Any]] = {
            name: {"query": name, "fired": 0, "first": None, "last": None} for name in queries
        }

    def add(self, outputs: list[Output]) -> None:
        """Count these results."""
        for out in outputs:
            known = self._queries[out.query]
            known["fired"] += out.kind == "+"
            known["first"] = out.time if known["first"] is None else min(known["first"], out.time)
            known["last"] = out.time if known["last"] is None else max(known["last"], out.time)

    @property
    def total(self) -> int:
        """How often all of them fired together."""
        return sum(known["fired"] for known in self._queries.values())

    def summaries(self) -> list[dict[str, Any]]:
        """One mapping per query, those that fired most often first; times as text."""
        ordered = sorted(self._queries.values(), key=lambda known: -known["fired"])
        return [
            {
                name: value.isoformat() if hasattr(value, "isoformat") else value
                for name, value in known.items()
            }
            for known in ordered
        ]

    def table(self) -> str:
        """The same as a table."""
        rows = [("query", "fired", "first", "last")]
        for known in self.summaries():
            times = [(known[end] or "-").replace("T", " ").replace("+00:00", "") for end in ("first", "last")]
            rows.append((known["query"], f"{known['fired']:,}", *times))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{query:<{widths[0]}}  {fired:>{widths[1]}}  {first:<{widths[2]}}  {last}"
            for query, fired, first, last in rows
        ]
        return "\n".join(lines)
