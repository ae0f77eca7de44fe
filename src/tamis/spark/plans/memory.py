"""How much memory a process may use: that of the host, or less where a container says so."""

import os
from collections.abc import Iterator
from pathlib import Path


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
