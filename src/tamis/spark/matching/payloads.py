"""Payloads of matched subscriptions: as many at a time as `MOST_BYTES` hold.

How long a payload is shows only when it is read. So they are read in the order in which rows need them, until
they are enough for a batch; the rows that they serve are written, and the next are read. The last ones are
kept: events close together match the same subscriptions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.index import Index
from tamis.spark.matching.bounded_batches import MOST_BYTES


class Payloads:
    """The payloads in some indexes; each subscription is in one of them.

    >>> index = Index()
    >>> errors = index.add_many([1, 2], ["x > 1", "x > 2"], payloads=[b"one", None])
    >>> payloads, codes = Payloads([index]).of_first(pa.array([2, 1, 2]))
    >>> payloads.take(pa.array(codes)).to_pylist()
    [None, b'one', None]
    """

    def __init__(self, indexes: Sequence[Index]) -> None:
        """Nothing is read yet."""
        self._indexes = indexes
        self._held: dict[Any, bytes | None] = {}
        self._bytes_held = 0

    def of_first(self, ids: pa.Array) -> tuple[pa.Array, "np.ndarray[Any, Any]"]:
        """The payloads of the first rows, of one at least, and for each of those rows which one it is."""
        codes, wanted = _distinct(ids)
        self._read(wanted)
        payloads = []
        for id in wanted:
            if id not in self._held:
                break
            payloads.append(self._held[id])
        beyond = np.flatnonzero(codes >= len(payloads))
        return pa.array(payloads, pa.binary()), codes[: beyond[0] if len(beyond) else len(codes)]

    def _read(self, ids: Sequence[Any]) -> None:
        """Hold the payloads of the first ids."""
        if self._bytes_held > MOST_BYTES:
            self._held.clear()
            self._bytes_held = 0
        missing = [id for id in ids if id not in self._held]
        share = MOST_BYTES // max(1, len(self._indexes))
        for index in self._indexes:
            here = [id for id in missing if id in index]
            for id, payload in zip(here, index.payloads(here, most_bytes=share), strict=False):
                self._held[id] = payload
                self._bytes_held += len(payload or b"")


def _distinct(ids: pa.Array) -> tuple["np.ndarray[Any, Any]", list[Any]]:
    """Which of the distinct ids each row has, and these, in the order of their first row."""
    numbers = ids.indices if pa.types.is_dictionary(ids.type) else ids
    encoded = pc.dictionary_encode(numbers)
    distinct = encoded.dictionary
    if pa.types.is_dictionary(ids.type):
        distinct = ids.dictionary.take(distinct)
    return encoded.indices.to_numpy(), distinct.to_pylist()
