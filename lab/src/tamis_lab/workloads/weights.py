"""The column `weights` of workloads that have one: attribute → weight, for scores."""

import numpy as np
import pyarrow as pa

from tamis_lab.workloads.sampling import Floats, Ints

WEIGHTS_FIELD = pa.field("weights", pa.map_(pa.string(), pa.float64()))


def weight_maps(names: pa.Array, weights: Floats, sizes: Ints) -> pa.Array:
    """Maps of consecutive pairs: `sizes[i]` of them in map i.

    >>> weight_maps(pa.array(["a", "b", "a"]), np.array([0.5, 1.0, 0.25]), np.array([2, 1])).to_pylist()
    [[('a', 0.5), ('b', 1.0)], [('a', 0.25)]]
    """
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), names.cast(pa.string()), pa.array(weights.round(6)))
