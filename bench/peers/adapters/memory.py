"""The growth of a process: at its peak, and settled. The adapters in other languages do the same.

Both count resident pages from the moment when rules and events have been read and some of both have been
tried, so that neither the input nor code and what is made once per process counts. *Peak* is the maximum
since then. *Settled* is measured after building and matching, once the allocator has returned its unused
memory.
"""

import contextlib
import ctypes
import gc
from pathlib import Path


def resident(key: str) -> int:
    """A line of /proc/self/status in bytes; 0 where there is no such file."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)


def give_back() -> None:
    """Collect garbage and return free pages to the system, where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


class Memory:
    """Growth from now on."""

    def __init__(self) -> None:
        give_back()
        with contextlib.suppress(OSError):
            # Linux: the peak is reset.
            Path("/proc/self/clear_refs").write_text("5")
        self.idle = resident("VmRSS")

    def figures(self) -> dict[str, int]:
        """Bytes that the process has grown by."""
        peak = resident("VmHWM") - self.idle
        give_back()
        return {"peak_bytes": peak, "settled_bytes": resident("VmRSS") - self.idle}
