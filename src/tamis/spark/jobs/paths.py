"""Finds missing local paths of a job before Spark starts."""

import glob
import os
from collections.abc import Iterator
from urllib.parse import unquote, urlparse

from tamis._suggest import closest, did_you_mean
from tamis.spark.jobs.load import Problem
from tamis.spark.jobs.model import FileSource, Job, SnapshotSubscriptions, StoredSubscriptions


def missing_paths(job: Job) -> list[Problem]:
    """What a job is to read from this host and that is not there; nothing where paths are another host's."""
    elsewhere = job.spark.remote is not None or "spark.hadoop.fs.defaultFS" in job.spark.settings
    if elsewhere or not (job.spark.master or "local").startswith("local"):
        return []
    return [
        Problem(key, None, f"there is no file or folder {path}{_similar(local)}")
        for key, path in _read_paths(job)
        if (local := _local(path)) is not None and not glob.glob(local) and not os.path.exists(local)
    ]


def _read_paths(job: Job) -> Iterator[tuple[str, str]]:
    """The keys and paths of all that must be there; a store that the job itself fills need not."""
    if isinstance(job.events, FileSource):
        yield "events.path", job.events.path
    given = job.subscriptions
    if isinstance(given, FileSource):
        yield "subscriptions.path", given.path
    elif isinstance(given, SnapshotSubscriptions):
        yield "subscriptions.snapshot", given.snapshot
    elif isinstance(given, StoredSubscriptions):
        if given.changes is None:
            yield "subscriptions.store", given.store
        elif isinstance(given.changes, FileSource):
            yield "subscriptions.changes.path", given.changes.path


def _local(path: str) -> str | None:
    """The path on this host, or None for a URL of something else.

    >>> _local("file:///data/my%20events"), _local("/data"), _local("s3://bucket/events")
    ('/data/my events', '/data', None)
    """
    if path.startswith("file:"):
        return unquote(urlparse(path).path)
    return None if "://" in path else path


def _similar(path: str) -> str:
    folder, name = os.path.split(path.rstrip("/"))
    try:
        meant = closest(name, os.listdir(folder or "."))
    except OSError:
        return ""
    return f"; {did_you_mean(os.path.join(folder, meant))}" if meant else ""
