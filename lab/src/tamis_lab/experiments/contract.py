"""An experiment: a name, its place in a paper, and a function that compares our figures with the paper's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tamis_lab.benchmark.scale import parse_size


@dataclass(frozen=True)
class Scale:
    """How large to run: `small` for seconds, `paper` for the paper's own size, or a number."""

    name: str
    size: int | None = None

    def of(self, *, small: int, paper: int) -> int:
        """The size to use, given the experiment's own small one and the paper's.

        >>> parse_scale("paper").of(small=20_000, paper=1_000_000), parse_scale("5K").of(small=1, paper=2)
        (1000000, 5000)
        """
        if self.size is not None:
            return self.size
        return paper if self.name == "paper" else small


def parse_scale(text: str) -> Scale:
    """Read a scale as it is written on the command line.

    >>> parse_scale("small"), parse_scale("10K")
    (Scale(name='small', size=None), Scale(name='10K', size=10000))
    """
    return Scale(text) if text in ("small", "paper") else Scale(text, parse_size(text))


@dataclass(frozen=True)
class Row:
    """One figure of the paper, and ours; `paper` is None where the paper gives no number."""

    what: str
    paper: float | None
    ours: float
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over theirs; none where one of them is a loss and the other a gain.

        >>> Row("sharing", paper=4.0, ours=5.0).ratio
        1.25
        >>> Row("less time, %", paper=27.0, ours=-55.0).ratio
        """
        return self.ours / self.paper if self.paper and self.ours * self.paper >= 0 else None


@dataclass(frozen=True)
class Chart:
    """Lines of (x, y) points by name, over plain axes that begin at zero."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    axes: tuple[str, str]
    """Titles of the x and y axes."""


@dataclass(frozen=True)
class Result:
    """What an experiment found: rows, and for its charts, lines of (x, y) points by name."""

    rows: Sequence[Row]
    lines: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    axes: tuple[str, str] = ("", "")
    """Titles of the x and y axes of the lines; where that of x is empty, the last word of their names is."""
    note: str = ""
    charts: Sequence[Chart] = ()
    """Further charts, for shares and other figures that logarithmic axes do not suit."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper."""

    name: str
    paper: str
    """Author and year."""
    figure: str
    """Such as `Table 3` or `section 6.1`."""
    question: str
    """What it answers, in one line."""
    run: Callable[[Scale, np.random.Generator], Result]
