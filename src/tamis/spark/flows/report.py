"""Explains how rules with memory run on Spark: which in parallel, by which key, which not, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NAMED = 5
"""How many queries are named where many run alike."""


@dataclass(frozen=True)
class FlowReport:
    """The plan behind the result of `tamis.spark.flow`. Print it.

    >>> alone = {"all": "count(*) OVER (ROWS 5) has no PARTITION BY"}
    >>> print(FlowReport(["logins"], ("user",), ["burst"], alone))
    streams        logins
    by key         user: 1 query in parallel (burst)
    one task       all: count(*) OVER (ROWS 5) has no PARTITION BY
    order          time, then a hash of the event
    """

    streams: list[str]
    key: tuple[str, ...]
    by_key: list[str]
    """Queries that run in parallel."""
    in_one_task: Mapping[str, str]
    """Queries that cannot, and why."""
    order: list[str] = field(default_factory=list)
    buckets: int | None = None
    """Of a stream: how many parts its state has."""
    store: str | None = None
    """Where queries come from that change while a stream runs."""

    def warning(self) -> str | None:
        """One line for people about queries that are not run in parallel; None where all are."""
        if not self.in_one_task:
            return None
        name, why = next(iter(self.in_one_task.items()))
        more = f" and {len(self.in_one_task) - 1:,} more" if len(self.in_one_task) > 1 else ""
        split = f" by {', '.join(self.key)}" if self.key else ""
        return (
            f"query {name!r}{more} cannot be split{split}, and sees all events in one task: {why}. "
            "tamis.spark.explain tells the plan"
        )

    def __str__(self) -> str:
        """The report as text."""
        lines = [f"streams        {', '.join(self.streams)}"]
        if self.store is not None:
            lines.append(f"queries        of {self.store}, as of each micro-batch")
        if self.key:
            key = ", ".join(self.key)
            count = "queries" if self.store else _counted(self.by_key)
            lines.append(f"by key         {key}: {count} in parallel{_named(self.by_key)}")
        for name, why in list(self.in_one_task.items())[:NAMED]:
            lines.append(f"one task       {name}: {why}")
        if len(self.in_one_task) > NAMED:
            lines.append(f"               and {len(self.in_one_task) - NAMED:,} more")
        if self.store is not None and not self.key:
            lines.append("one task       all queries: the store has no key")
        lines.append(f"order          {', then '.join(['time', *self.order, 'a hash of the event'])}")
        if self.buckets is not None:
            lines.append(f"state          {self.buckets} bucket(s), in Spark's state store")
        return "\n".join(lines)


def _counted(names: list[str]) -> str:
    return f"{len(names):,} {'query' if len(names) == 1 else 'queries'}"


def _named(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f" ({', '.join(names[:NAMED])}{more})"
