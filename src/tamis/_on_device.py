"""Batches of events on a GPU."""

import warnings

from tamis import _kernel


class OnDevice:
    """What an index does with a GPU."""

    _kernel: _kernel.Index

    def to_gpu(self, *, memory: int | None = None, device: int = 0) -> bool:
        """Match batches on a GPU from now on; see docs/gpu.md for when that pays.

        The index is copied there when the first batch comes, and kept in step: what is added, replaced or removed later costs
        what has changed. Answers are the same as before. Single events, small batches, events with intervals and scores other than the
        priority are matched by the processor, as before.

        `memory` is how many bytes of the GPU's memory may be taken, nine tenths of what is free by default; `device` is the number of
        the GPU. Returns whether there is one that can be used; a warning says why not, and again if it fails later. The processor
        answers then.

        >>> import tamis, warnings
        >>> index = tamis.Index()
        >>> index.add("ad-8", "age BETWEEN 20 AND 30")
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     has_gpu = index.to_gpu()
        >>> index.count_batch([{"age": 27}, {"age": 31}]).to_pylist()
        [1, 0]
        """
        if memory is not None and memory < 0:
            raise ValueError(f"memory is a number of bytes, not {memory}")
        why = _kernel.use_device(self._kernel, device, memory, None)
        if why is not None:
            warnings.warn(f"{why}; the processor answers", RuntimeWarning, stacklevel=2)
        return why is None

    def to_cpu(self) -> None:
        """Match batches on the processor again and free the GPU's memory.

        >>> import tamis
        >>> index = tamis.Index()
        >>> index.to_cpu()
        >>> index.device
        'cpu'
        """
        _kernel.leave_device(self._kernel)

    @property
    def device(self) -> str:
        """Where batches are matched: the name of a GPU, or `cpu`.

        >>> import tamis
        >>> tamis.Index().device
        'cpu'
        """
        return _kernel.device_name(self._kernel) or "cpu"
