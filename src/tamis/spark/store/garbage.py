"""Which files of a store nobody needs any more."""

import json
from contextlib import suppress
from itertools import pairwise

from tamis.spark.store.directory import Directory
from tamis.spark.store.versions import read_version, version_file, version_numbers

PINS_KEPT = 10
"""Micro-batches of each streaming query whose pins stay; Spark replays at most the last one."""

PIN_SECONDS = 30 * 24 * 3600.0
"""How long a streaming query that has pinned nothing new keeps its versions: it may be started again."""

DRAFT_SECONDS = 24 * 3600.0
"""How old an unfinished file must be before its writer is taken for dead."""

LEASE_SECONDS = 24 * 3600.0
"""How long a batch query keeps its version from being collected after its last task started."""

REPORT_SECONDS = 7 * 24 * 3600.0


def collect(directory: Directory, keep: int = 3, grace: float = 3600.0) -> list[str]:
    """Remove versions that are neither recent nor in use, and files that no version names.

    >>> import tempfile
    >>> from tamis.spark.store.directory import open_directory
    >>> from tamis.spark.store.versions import Version, publish
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_directory(folder)
    ...     for _ in range(3):
    ...         _ = publish(store, Version(number=1, plan="replicated", ids="int", shards=[[]]))
    ...     collect(store, keep=1, grace=0.0)
    ['versions/00000000000000000001.json', 'versions/00000000000000000002.json']
    """
    removed: list[str] = []
    used = _pinned(directory, removed) | _leased(directory, removed)
    numbers = version_numbers(directory)
    for number, successor in pairwise(numbers):
        # A query may have been planned until the next version came.
        superseded = directory.age(version_file(successor)) or 0.0
        if number < numbers[-keep:][0] and number not in used and superseded >= grace:
            _remove(directory, version_file(number), 0.0, removed)
    needed: set[str] = set()
    for number in version_numbers(directory):
        version = read_version(directory, number)
        needed.update(version.files())
        if folded := version.notes.get("sequences"):
            needed.add(folded)
    for folder in ("snapshots", "changes"):
        for name in directory.list(folder):
            if f"{folder}/{name}" not in needed:
                _remove(directory, f"{folder}/{name}", grace, removed)
    for run in directory.list("reports"):
        for name in directory.list(f"reports/{run}"):
            _remove(directory, f"reports/{run}/{name}", REPORT_SECONDS, removed)
    _remove_drafts(directory, removed)
    return removed


def _remove_drafts(directory: Directory, removed: list[str]) -> None:
    """Remove what writers that were killed left behind."""
    nested = [f"{folder}/{name}" for folder in ("pins", "reports") for name in directory.list(folder)]
    for folder in ("", "versions", "snapshots", "changes", "leases", "quarantine", *nested):
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
    return used


def _leased(directory: Directory, removed: list[str]) -> set[int]:
    used = set()
    for name in directory.list("leases"):
        _remove(directory, f"leases/{name}", LEASE_SECONDS, removed)
        try:
            used.add(int(directory.read(f"leases/{name}")))
        except FileNotFoundError:
            continue
    return used


def _remove(directory: Directory, name: str, grace: float, removed: list[str]) -> bool:
    """Remove a file that is old enough; whether it was."""
    age = directory.age(name)
    if age is None or age < grace:
        return False
    directory.delete(name)
    removed.append(name)
    return True
