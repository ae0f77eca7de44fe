"""Conversion of the other arguments of a query for the kernel, and of its answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


def table_of(answer: Any) -> pa.Table:
    """The kernel's answer as a table. `pyarrow.table` would import pandas first, to check for pandas objects.

    >>> table_of(pa.table({"event": [0]}).to_reader()).to_pydict()
    {'event': [0]}
    """
    return pa.RecordBatchReader.from_stream(answer).read_all()


def options_of(
    intervals: Sequence[str],
    threads: int | None,
    weights: Mapping[str, float] | str | None = None,
    *,
    lists: bool = False,
    validate: bool = True,
    cells: bool = False,
) -> dict[str, Any]:
    """The options of a batch, as the kernel reads them.

    >>> options_of(["age"], threads=2)["intervals"]
    ['age']
    """
    if isinstance(intervals, str):
        raise TypeError(f"intervals is a list of columns; write intervals=[{intervals!r}]")
    return {
        "intervals": list(intervals),
        "threads": threads,
        "weights": dict(weights) if isinstance(weights, Mapping) else weights,
        "most": None,
        "lists": lists,
        "validate": validate,
        "lines_before": 0,
        "cells": cells,
    }
