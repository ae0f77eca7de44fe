"""GPUs that Spark gave a task: batches are matched there, with the same answers.

Spark's resource scheduling finds the GPUs of a host (`spark.executor.resource.gpu.discoveryScript`) and says
which of them a task may use. Without such settings, tasks use the processor.
"""

import warnings
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from pyspark import TaskContext

from tamis.index import Index

RESOURCE = "gpu"
"""The name of the resource, as in `spark.task.resource.gpu.amount`."""

_device_of_index: WeakKeyDictionary[Index, tuple[str, str]] = WeakKeyDictionary()
"""Of each index that a worker process has open: the address that it was placed at, and what came of it."""


def granted() -> str | None:
    """The address of the GPU that Spark gave this task; None outside tasks, and without GPUs.

    >>> granted() is None
    True
    """
    context = TaskContext.get()
    resources = {} if context is None else context.resources()
    addresses = resources[RESOURCE].addresses if RESOURCE in resources else []
    return addresses[0] if addresses else None


def use_granted(indexes: Sequence[Index]) -> str | None:
    """Match batches of these indexes on the GPU that Spark gave this task. Says for a report where that is.

    A GPU that cannot be used leaves the work to the processor: the report says why.
    """
    address = granted()
    if address is None:
        return None
    said = "cpu: there is nothing to match"
    for index in indexes:
        known = _device_of_index.get(index)
        if known is None or known[0] != address:
            known = _device_of_index[index] = (address, _place(index, address))
        said = known[1]
    return said


def _place(index: Index, address: str) -> str:
    if not address.isdecimal():
        return f"cpu: Spark gave GPU {address!r}, which is not the number of a device"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if index.to_gpu(device=int(address)):
            return f"GPU {address}, {index.device}"
    return f"cpu: Spark gave GPU {address}, but {caught[-1].message}"


def failure(indexes: Sequence[Index]) -> str | None:
    """Why a GPU that was used failed since, if one did."""
    for index in indexes:
        if index in _device_of_index and (why := index.stats().get("device_failure")):
            return f"cpu: {why}"
    return None
