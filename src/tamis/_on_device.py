"""Batches of events on a GPU."""

import warnings

from tamis import _kernel


class OnDevice:
    """What an index does with a GPU."""

    _kernel: _kernel.Index

    def to_gpu(self, *, memory: int | None = None, device: int = 0) -> bool:
        """Match batches on a GPU from now on; see docs/gpu.md for when that pays off.

        The index is copied there when the first batch comes, and kept up to date: later changes cost only
        their own size. Answers are the same as before. Single events, small batches, events with intervals,
        and scores other than priority and relevance are matched by the processor, as before.

        `memory` limits the bytes of GPU memory, by default nine tenths of what is free; `device` is the
        number of the GPU. Returns whether a GPU can be used; a warning says why not, and again if it fails
        later. Then the processor answers.

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
        why = _kernel.use_device(self._kernel, device, memory, None, False)
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
