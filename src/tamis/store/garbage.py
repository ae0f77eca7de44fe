"""Finds and removes the files of a store that are no longer needed.

The first writer or reader to use the store in a window of ten minutes cleans it, so that a store which never
changes, but is queried all day, does not fill up with pins and reports. The cost of a collection depends on
what happened since the last one, not on the number of versions. A file is needed if it is named by a version
that is pinned, leased or among the latest, or by the version that was the latest when the grace period began,
or if it is younger than that. Between those two, versions only drop files.
"""

import json
import time
from contextlib import suppress

from tamis.errors import TamisError
from tamis.store.directory import Directory
from tamis.store.versions import (
    files_of_version,
    read_version,
    version_groups,
    version_numbers,
)

WINDOW_SECONDS = 600.0
"""A store is cleaned at most once in this many seconds, by whoever is first."""

PINS_KEPT = 10
"""Micro-batches of each streaming query whose pins stay; Spark replays at most the last one."""

PIN_SECONDS = 30 * 24 * 3600.0
"""How long a streaming query that has pinned nothing new keeps its versions: it may be started again."""

DRAFT_SECONDS = 24 * 3600.0
"""How old an unfinished file must be before its writer is taken for dead."""

LEASE_SECONDS = 24 * 3600.0
"""How long a batch query keeps its version from being collected after its last task started."""

REPORT_SECONDS = 7 * 24 * 3600.0

BUILD_SECONDS = 7 * 24 * 3600.0
"""How long an attempt to publish a build may sleep and still find out that another one was faster."""


_windows_seen: dict[str, int] = {}


def collect_now_and_then(directory: Directory) -> None:
    """Collect if nobody has in this window of time; never an error for whoever only uses the store."""
    window = int(time.time() // WINDOW_SECONDS)
    if _windows_seen.get(directory.url) == window:
        return
    _windows_seen[directory.url] = window
    with suppress(OSError, TamisError):
        older = directory.list("cleaned")
        if directory.create(f"cleaned/{window:012d}", b""):
            collect(directory)
            for name in older:
                directory.delete(f"cleaned/{name}")


def collect(directory: Directory, keep: int = 3, grace: float = 3600.0) -> list[str]:
    """Remove versions that are neither recent nor in use, and files that no version names.

    >>> import tempfile
    >>> from tamis.store.directory import open_directory
    >>> from tamis.store.versions import Version, publish
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_directory(folder)
    ...     for _ in range(3):
    ...         _ = publish(store, Version(number=1, plan="replicated", ids="int", shards=[[]]))
    ...     removed = collect(store, keep=1, grace=0.0)
    >>> [name.rpartition("/")[2] for name in removed]
    ['00000000000000000001.json', '00000000000000000002.json']
    """
    removed: list[str] = []
    used = _pinned(directory, removed) | _leased(directory, removed)
    numbers = version_numbers(directory)
    recent = numbers[-keep:]
    in_grace = _latest_when_grace_began(directory, numbers, grace)
    for number in numbers:
        if number < min(recent[0], in_grace) and number not in used:
            for name in files_of_version(number):
                _remove(directory, name, 0.0, removed)
    for group in version_groups(directory)[:-1]:
        directory.remove_if_empty(group)
    needed: set[str] = set()
    for number in {*recent, in_grace, *(used & set(numbers))}:
        needed.update(read_version(directory, number).files())
    for folder in ("snapshots", "changes"):
        for name in directory.list(folder):
            if f"{folder}/{name}" not in needed:
                # A file is written before the version that names it: at most as long as a grace.
                _remove(directory, f"{folder}/{name}", 2 * grace, removed)
    for run in directory.list("reports"):
        for name in directory.list(f"reports/{run}"):
            _remove(directory, f"reports/{run}/{name}", REPORT_SECONDS, removed)
        directory.remove_if_empty(f"reports/{run}")
    for name in directory.list("builds"):
        _remove(directory, f"builds/{name}", BUILD_SECONDS, removed)
    _remove_drafts(directory, removed)
    return removed


def _latest_when_grace_began(directory: Directory, numbers: list[int], grace: float) -> int:
    """The version that a query may have been planned with this many seconds ago; the first, if it is younger.

    Versions are written in the order of their numbers, so their ages need not all be asked for.
    """
    low, high = 0, len(numbers)
    while high - low > 1:
        middle = (low + high) // 2
        if (_age_of_version(directory, numbers[middle]) or 0.0) >= grace:
            low = middle
        else:
            high = middle
    return numbers[low] if numbers else 0


def _age_of_version(directory: Directory, number: int) -> float | None:
    for name in files_of_version(number):
        if (age := directory.age(name)) is not None:
            return age
    return None


def _remove_drafts(directory: Directory, removed: list[str]) -> None:
    """Remove what writers that were killed left behind."""
    nested = [f"{folder}/{name}" for folder in ("pins", "reports") for name in directory.list(folder)]
    nested += version_groups(directory)
    for folder in (
        "",
        "versions",
        "snapshots",
        "changes",
        "leases",
        "quarantine",
        "builds",
        "cleaned",
        *nested,
    ):
        for name in directory.drafts(folder):
            _remove(directory, f"{folder}/{name}" if folder else name, DRAFT_SECONDS, removed)


def _pinned(directory: Directory, removed: list[str]) -> set[int]:
    used = set()
    for query in directory.list("pins"):
        pins = directory.list(f"pins/{query}")
        for name in pins[:-PINS_KEPT]:
            _remove(directory, f"pins/{query}/{name}", 0.0, removed)
        for name in pins[-PINS_KEPT:]:
            if _remove(directory, f"pins/{query}/{name}", PIN_SECONDS, removed):
                continue
            with suppress(FileNotFoundError):  # another collector was faster
                used.add(json.loads(directory.read(f"pins/{query}/{name}"))["version"])
        directory.remove_if_empty(f"pins/{query}")
    return used


def _leased(directory: Directory, removed: list[str]) -> set[int]:
    """The versions in the names of leases; each also says in which hour it was made."""
    used = set()
    now = time.time()
    for name in directory.list("leases"):
        named, _, version = name.partition("@")
        if now - 3600.0 * (int(named.rpartition("-")[2]) + 1) > LEASE_SECONDS:
            directory.delete(f"leases/{name}")
            removed.append(f"leases/{name}")
            continue
        with suppress(FileNotFoundError):
            used.add(int(version or directory.read(f"leases/{name}")))
    return used


def _remove(directory: Directory, name: str, grace: float, removed: list[str]) -> bool:
    """Remove a file that is old enough; whether it was."""
    age = directory.age(name)
    if age is None or age < grace:
        return False
    directory.delete(name)
    removed.append(name)
    return True
