"""Columns of text, built by Arrow a column at a time.

All of them have 64-bit offsets (`large_string`): the text of a pool of subexpressions can pass two gigabytes.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis_lab.workloads.sampling import Ints


def texts(values: Iterable[str]) -> pa.Array:
    """A column of text.

    >>> texts(["a", "b"]).to_pylist()
    ['a', 'b']
    """
    return pa.array(values, pa.large_string())


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for lists that are easier to read without quotes.

    >>> words("red green")
    ('red', 'green')
    """
    return tuple(text.split())


def numbered(prefix: str, count: int) -> pa.Array:
    """The column prefix0, prefix1, ...

    >>> numbered("a", 3).to_pylist(), numbered("", 2).to_pylist()
    (['a0', 'a1', 'a2'], ['0', '1'])
    """
    return texts([f"{prefix}{number}" for number in range(count)])


def concat(*pieces: pa.Array | str) -> pa.Array:
    """Put columns and constant pieces of text next to each other, row by row.

    >>> concat(texts(["x", "y"]), " = ", texts(["1", "2"])).to_pylist()
    ['x = 1', 'y = 2']
    """
    columns = [_scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*columns, _scalar(""))


def join_groups(column: pa.Array, sizes: Ints, separator: str | pa.Array) -> pa.Array:
    """Join consecutive groups of rows: `sizes[i]` rows in group i, which may have a separator of its own.

    >>> join_groups(texts(["a", "b", "c"]), np.array([1, 2]), " AND ").to_pylist()
    ['a', 'b AND c']
    """
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    groups = pa.LargeListArray.from_arrays(pa.array(offsets), column)
    return pc.binary_join(groups, _scalar(separator) if isinstance(separator, str) else separator)


def _scalar(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())
