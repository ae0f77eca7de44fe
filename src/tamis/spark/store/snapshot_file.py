"""A snapshot file that `Index.save` wrote, used on a cluster: executors must be able to reach its path."""

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import SnapshotError
from tamis.index import Index
from tamis.spark.built_index import BuiltIndex
from tamis.spark.session import on_executor
from tamis.store.directory import open_directory
from tamis.store.host_cache import sha256_of
from tamis.store.versions import IndexFile, Version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def published_snapshot(spark: "SparkSession", url: str) -> BuiltIndex:
    """The index in a snapshot file. Nothing is written next to it."""

    folder, name = posixpath.split(url)

    def work() -> str:
        directory = open_directory(folder)
        path = directory.local_path(name)
        try:
            if path is not None:
                return described(path).to_json().decode()
            with directory.scratch() as copy:
                directory.download(name, copy)
                return described(copy).to_json().decode()
        except FileNotFoundError as missing:
            raise SnapshotError(
                f"{url}: there is no such file where the executors look for it; save it at a path or URL "
                "that all of them reach"
            ) from missing

    def described(path: Path) -> Version:
        index = Index.open(path)
        index.verify()
        file = IndexFile(name, path.stat().st_size, sha256_of(path), len(index))
        return Version(
            number=1,
            plan="replicated",
            ids="int" if isinstance(next(iter(index), ""), int) else "string",
            shards=[[file] if len(index) else []],
            attributes={attribute: list(kinds) for attribute, kinds in index.attributes.items()},
            subscriptions=len(index),
            payloads=any(payload is not None for payload in index.payloads(index)),
            notes={"reason": f"the snapshot {name}"},
        )

    return BuiltIndex(folder, Version.from_json(on_executor(spark, work).encode()), keeps_reports=False)
