"""How many events satisfy an expression, asked of DuckDB: a judge that shares no code with the generators."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_PREDICATE = re.compile(r"\w+ (?:(?:=|!=|<|<=|>|>=) (?:\d+|'\w*')|BETWEEN \d+ AND \d+|IN \([^)]*\))")


def match_shares(expressions: Sequence[str], events: pa.Table, step: int = 200) -> np.ndarray:
    """For each expression the share of the events that satisfy it."""
    import duckdb

    shares: list[float] = []
    with duckdb.connect() as database:
        database.register("events", events)
        for first in range(0, len(expressions), step):
            columns = ", ".join(
                f"avg((({to_duckdb(text)}) IS TRUE)::INT)" for text in expressions[first : first + step]
            )
            row = database.execute(f"SELECT {columns} FROM events").fetchone()
            assert row is not None
            shares.extend(row)
    return np.array(shares)


def to_duckdb(text: str) -> str:
    """XOR and XNOR are comparisons of Booleans there; predicates need brackets next to them."""
    bracketed = _PREDICATE.sub(lambda found: f"({found[0]})", text)
    return bracketed.replace(" XOR ", " <> ").replace(" XNOR ", " = ")
