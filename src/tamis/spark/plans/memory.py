"""How much memory an index may use: what the host or the container has, less what the others there take.

The heap of an executor is asked of its process, not of the settings: what a cluster manager made of them is
what counts. `spark.executor.pyspark.memory` limits what each Python worker may map, and an index is mapped.
"""

import os
import resource
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


def memory_limit(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Bytes that this process and its neighbours may use: the smallest limit of its control groups.

    `groups` is where control groups are mounted, `own` the file that names those of this process.

    >>> memory_limit() > 0
    True
    """
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([host, *_limits(groups, own)])


def _limits(groups: Path, own: Path) -> Iterator[int]:
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2: one tree
            yield from _on_the_way(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _on_the_way(groups / "memory", path, "memory.limit_in_bytes")


def _on_the_way(root: Path, path: str, name: str) -> Iterator[int]:
    """The limits of a group and of all above it; in a container, only its own root may be visible."""
    parts = [part for part in path.split("/") if part and part != ".."]
    for depth in range(len(parts) + 1):
        try:
            text = root.joinpath(*parts[:depth], name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            yield int(text)


TASK_BYTES = 150 << 20
"""The memory of a task, not counting the index."""

JVM_OVERHEAD = 384 << 20
"""The memory of a JVM outside its heap, unless a tenth of the heap is more: Spark's default."""

INDEX_SHARE = 0.75
"""Of what is left, the part that an index may take: its pages share it with the files of shuffles."""


class ExecutorMemory(NamedTuple):
    """What one task sees of the memory around it."""

    group: str
    """The host, or the container, whose memory this is."""
    limit: int
    """Bytes that all processes there may use."""
    jvm: int
    """The process of the executor."""
    heap: int
    """The most that its heap may take."""
    address_space: int | None
    """What this worker may still map, where `spark.executor.pyspark.memory` limits it."""


def executor_memory() -> ExecutorMemory:
    """Look around, in a Python worker of Spark.

    >>> executor_memory().limit == memory_limit()
    True
    """
    limit = memory_limit()
    host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = socket.gethostname()
    if limit < host:
        with suppress(OSError):
            group += Path("/proc/self/cgroup").read_text()
    jvm, heap = java_above(os.getpid())
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    left = None if allowed == resource.RLIM_INFINITY else max(0, allowed - _mapped())
    return ExecutorMemory(group, limit, jvm, limit // 4 if heap is None else heap, left)


def java_above(process: int, processes: Path = Path("/proc")) -> tuple[int, int | None]:
    """The nearest Java process that started this one, and its largest heap, if it was told one."""
    for _ in range(8):
        try:
            words = (processes / str(process) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if os.path.basename(words[0]) == "java":
                told = [word[4:] for word in words if word.startswith("-Xmx")]
                return process, bytes_of(told[-1]) if told else None
            status = (processes / str(process) / "status").read_text()
        except OSError:
            break
        process = int(status.partition("PPid:")[2].split()[0])
    return 0, None


def bytes_of(size: str) -> int:
    """A size as Java and Spark write it.

    >>> bytes_of("1g"), bytes_of("512M"), bytes_of("4096")
    (1073741824, 536870912, 4096)
    """
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    letters = size.lower().removesuffix("b")
    return int(letters[:-1]) << units[letters[-1]] if letters[-1] in units else int(letters)


def _mapped() -> int:
    """The address space that this process uses."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def room_for_index(seen: Sequence[ExecutorMemory]) -> int:
    """Bytes that an index may take on the host that has the least, from what tasks saw side by side.

    >>> mib = 1 << 20
    >>> one = ExecutorMemory("a", limit=8192 * mib, jvm=7, heap=2048 * mib, address_space=None)
    >>> room_for_index([one, one]) // mib, room_for_index([one, one._replace(jvm=8)]) // mib
    (4095, 2271)
    >>> room_for_index([one._replace(address_space=1024 * mib)]) // mib
    655
    """
    rooms = []
    for group in {one.group for one in seen}:
        here = [one for one in seen if one.group == group]
        heaps = {one.jvm: one.heap for one in here}
        jvms = sum(heap + max(JVM_OVERHEAD, heap // 10) for heap in heaps.values())
        rooms.append(min(one.limit for one in here) - jvms - len(here) * TASK_BYTES)
        rooms += [one.address_space - TASK_BYTES for one in here if one.address_space is not None]
    return max(TASK_BYTES // 4, int(INDEX_SHARE * min(rooms, default=0)))
