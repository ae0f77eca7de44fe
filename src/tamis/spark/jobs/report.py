"""How a job went: figures and warnings, as text for people and as JSON for programs."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class JobReport:
    """The outcome of a job.

    >>> print(JobReport("ads", "batch", events=10, matches=25, seconds=2.0, version=1, sink="parquet /out"))
    job            ads (batch): done
    events         10 (5 a second)
    matches        25
    time           2.0 s
    index          version 1
    sink           parquet /out
    """

    name: str
    kind: str
    """"batch" or "streaming"."""
    state: str = "done"
    events: int | None = None
    matches: int | None = None
    rows: int | None = None
    """Rows that went to the sink."""
    seconds: float = 0.0
    batches: int | None = None
    """Micro-batches, of a stream."""
    version: int | None = None
    """The latest version of the index that was used."""
    sink: str = ""
    wrong_types: dict[str, int] = field(default_factory=dict)
    """Values of a kind that no predicate expects, by attribute."""
    quarantined: int = 0
    """Subscriptions, or changes, that were left out."""
    first_quarantined: list[dict[str, Any]] = field(default_factory=list)
    plan: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float | None:
        """Events a second."""
        return None if self.events is None or self.seconds <= 0 else self.events / self.seconds

    def to_json(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {**asdict(self), "events_per_second": self.rate}

    def __str__(self) -> str:
        """The report as text."""
        lines = [f"job            {self.name} ({self.kind}): {self.state}"]
        if self.events is not None:
            rate = "" if self.rate is None else f" ({self.rate:,.0f} a second)"
            lines.append(f"events         {self.events:,}{rate}")
        if self.matches is not None:
            lines.append(f"matches        {self.matches:,}")
        if self.rows is not None and self.rows != self.matches:
            lines.append(f"rows           {self.rows:,}")
        if self.batches is not None:
            lines.append(f"micro-batches  {self.batches:,}")
        lines.append(f"time           {self.seconds:.1f} s")
        if self.version is not None:
            lines.append(f"index          version {self.version}")
        lines.append(f"sink           {self.sink}")
        lines += [f"warning        {warning}" for warning in self.warnings]
        lines += [f"wrong type     {count:,} values of {name}" for name, count in self.wrong_types.items()]
        if self.quarantined:
            lines.append(f"quarantined    {self.quarantined:,} subscriptions or changes were left out:")
            for row in self.first_quarantined:
                first_line = str(row.get("error", "")).splitlines()[:1]
                lines.append(f"               {row.get('id')!r}: {''.join(first_line)}")
        return "\n".join(lines)
