"""Scores that are Python functions: called with whole blocks of candidates, never with one at a time."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from tamis._json_lines import json_lines
from tamis._suggest import suggestion
from tamis.errors import ArgumentError

BLOCK = 65_536
"""Candidates that are handed over at once."""

MODES = frozenset({"priority", "relevance", "relaxed"})
"""Scores that are not a function of attributes."""

# In a function that could be read: a name in backquotes, or one that is not called.
_NAME = re.compile(r"`((?:[^`]|``)*)`|(?<![\w.])([^\W\d][\w.]*)(?!\s*\(|[\w.])")

# The columns before those of the attributes.
_FIXED = 3


@dataclass(frozen=True)
class Candidates:
    """A block of matches of one event, as columns: the argument of a score function.

    `block["age"]` is the contribution of the attribute `age` to the relevance of each candidate: its weight
    in the subscription times its weight in the event, if its predicates are true, else 0.

    >>> table = pa.table({"id": [1, 2], "priority": [0.0, 5.0], "relevance": [1.0, 1.5], "age": [1.0, 0.5]})
    >>> block = Candidates.of(table)
    >>> len(block), block.ids, (block["age"] + block["price"]).tolist()
    (2, [1, 2], [1.0, 0.5])
    """

    ids: Sequence[int | str]
    priority: NDArray[np.float64]
    relevance: NDArray[np.float64]
    contributions: dict[str, NDArray[np.float64]]
    missing: Callable[[str], None] | None = None
    """Called with the name of an attribute to which no candidate owes anything: it may be misspelt."""

    @classmethod
    def of(cls, table: pa.Table, missing: Callable[[str], None] | None = None) -> "Candidates":
        """From the columns id, priority, relevance and those of the attributes, in this order."""
        numbers = [column.to_numpy() for column in table.columns[1:]]
        named = dict(zip(table.column_names[_FIXED:], numbers[_FIXED - 1 :], strict=True))
        return cls(table.column(0).to_pylist(), numbers[0], numbers[1], named, missing)

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.ids)

    def __getitem__(self, attribute: str) -> NDArray[np.float64]:
        """The contribution of an attribute to each candidate."""
        column = self.contributions.get(attribute)
        if column is not None:
            return column
        if self.missing is not None:
            self.missing(attribute)
        return np.zeros(len(self))

    def block(self, start: int) -> "Candidates":
        """A block of candidates, starting at one of them."""
        rows = slice(start, start + BLOCK)
        named = {name: column[rows] for name, column in self.contributions.items()}
        return Candidates(self.ids[rows], self.priority[rows], self.relevance[rows], named, self.missing)


ScoreFunction = Callable[[Candidates], ArrayLike]


def best_of(
    candidates: Candidates, k: int, score: ScoreFunction, min_score: float | None
) -> list[tuple[Any, float]]:
    """The ids and scores of the k best candidates, ties to the smaller id; candidates are sorted by id."""
    blocks = [candidates.block(start) for start in range(0, len(candidates), BLOCK)]
    scores = np.concatenate([np.empty(0), *(_scores(score, block) for block in blocks)])
    order = np.argsort(-scores, kind="stable")
    if min_score is not None:
        order = order[scores[order] >= min_score]
    return [(candidates.ids[at], float(scores[at])) for at in order[:k]]


def unknown_attributes(
    score: str | ScoreFunction | None, dimensions: Iterable[str] | None, known: Collection[str]
) -> list[str]:
    """The attributes that a score or its dimensions name and that are not among the known ones.

    >>> unknown_attributes("min(price, 2 * `dis tance`) + 1e3 * a.b", ["age"], {"price", "age"})
    ['dis tance', 'a.b']
    """
    names = [*dict.fromkeys(dimensions or ())]
    if isinstance(score, str) and score not in MODES:
        found = _NAME.finditer(score)
        names += [name[2] or name[1].replace("``", "`") for name in found]
    return [name for name in dict.fromkeys(names) if name not in known]


def explain_unknown(name: str, known: Collection[str]) -> str:
    """The warning about a name that no subscription uses.

    >>> explain_unknown("distanse", ["distance", "age"])
    'no subscription has the attribute `distanse`, so it counts 0; did you mean `distance`?'
    """
    unknown = f"no subscription has the attribute `{name}`, so it counts 0"
    return "; ".join(filter(None, [unknown, suggestion(name, known)]))


def one_by_one(events: Any, *, has_columns: bool) -> Iterable[Any]:
    """Many events as single ones. Interval and weight columns would be lost on the way."""
    if has_columns:
        raise ArgumentError(
            "a Python function as score takes events with intervals or weights as a list of tamis.Event"
        )
    records: Iterable[Any] = events
    if isinstance(events, (str, bytes)):
        records = json_lines(events)
    elif hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        records = pa.table(events).to_pylist()
    return records


def numbered(found: Iterable[Iterable[tuple[Any, float, int]]], schema: pa.Schema) -> pa.Table:
    """The matches of many events as a table of event, subscription, score and rank."""
    rows = [(event, *match) for event, matches in enumerate(found) for match in matches]
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _scores(score: ScoreFunction, block: Candidates) -> NDArray[np.float64]:
    scores = np.asarray(score(block), dtype=np.float64)
    if scores.shape != (len(block),):
        raise ArgumentError(
            f"a score function returns one number per candidate: {len(block)} of them, "
            f"not an array of shape {scores.shape}"
        )
    if np.isnan(scores).any():
        raise ArgumentError("a score function must not return NaN")
    return scores + 0.0  # -0.0 and 0.0 are one score
