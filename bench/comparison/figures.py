"""What is measured: the figures, their groups and titles, and the values of both sides."""

from dataclasses import dataclass, field
from statistics import median

GROUPS: dict[str, tuple[str, ...]] = {
    "single": ("count", "match", "dict"),
    "batch": ("batch count", "batch match"),
    "topk": ("top-k priority", "top-k relevance"),
    "build": ("build", "build elapsed"),
    "insert": ("insert", "remove"),
    "memory": ("memory", "memory peak"),
}
"""The figures of each word of `--only`."""

GOLDEN = "golden"
"""The word of `--only` for the answers to the fixed set."""

TITLES = {
    "count": "one event, count",
    "match": "one event, ids",
    "dict": "one event, from a dict",
    "batch count": "batch, count",
    "batch match": "batch, ids",
    "top-k priority": "top 5 by priority",
    "top-k relevance": "top 5 by relevance",
    "build": "build, processor time",
    "build elapsed": "build, elapsed",
    "insert": "insert",
    "remove": "remove",
    "memory": "bytes per subscription",
    "memory peak": "peak per subscription",
}


@dataclass
class Figure:
    """One figure on one workload: the ratio of each pair, and the values of both sides."""

    name: str
    workload: str
    size: int
    unit: str
    ratios: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    head: list[float] = field(default_factory=list)

    def add(self, pairs: list[tuple[float, float]], *, summed: bool = False) -> None:
        """Take in the rounds of one pair of processes."""
        if summed:
            pairs = [(sum(base for base, _ in pairs), sum(head for _, head in pairs))]
        self.ratios.append(median(head / base for base, head in pairs))
        self.base.append(median(base for base, _ in pairs))
        self.head.append(median(head for _, head in pairs))
