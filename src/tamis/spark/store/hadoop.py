"""A store on a file system that only Hadoop supports, or for which only Hadoop has credentials.

A Python worker cannot call its executor's JVM, so it starts its own (Spark's gateway, with Spark's jars and
the configuration in `HADOOP_CONF_DIR`) when it first needs such a file system, and keeps it. Each task
carries the `spark.hadoop.*` settings of the session; delegation tokens and tickets are found as by any Hadoop
client. That JVM copies the files; only small ones travel through the gateway.

A version is created with a rename that never replaces a file. It is atomic if one server manages the names:
HDFS and systems with its protocol, Ozone, and Azure's hierarchical storage. Elsewhere two writers could
overwrite each other, so other schemes are refused.
"""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark import TaskContext

from tamis.errors import ArgumentError
from tamis.store.directory import Directory, is_draft

PREFIX = "hadoop+"
"""Before a URL, it says that Hadoop is to be used, whatever fsspec knows."""

_HADOOP_ALONE = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs", "o3fs")
_RENAMES_ONCE = (*_HADOOP_ALONE, "abfs", "abfss")
_SETTING = "spark.hadoop."

_lock = threading.Lock()
_gateways: list[Any] = []


def hadoop_directory(url: str) -> Directory | None:
    """The directory of a URL, if Hadoop is asked for, or if only Hadoop has such file systems.

    >>> hadoop_directory("hadoop+hdfs://namenode/rules").url
    'hadoop+hdfs://namenode/rules'
    >>> hadoop_directory("ftp://host/rules") is None
    True
    >>> hadoop_directory("hadoop+s3a://bucket/rules")
    Traceback (most recent call last):
    ...
    tamis.errors.ArgumentError: hadoop+s3a://bucket/rules: a rename of s3a may replace a file, so two ...
    """
    scheme = urlparse(url.removeprefix(PREFIX)).scheme
    if scheme in (_RENAMES_ONCE if url.startswith(PREFIX) else _HADOOP_ALONE):
        return HadoopDirectory(url)
    if not url.startswith(PREFIX):
        return None
    raise ArgumentError(
        f"{url}: a rename of {scheme} may replace a file, so two writers would overwrite each other's "
        f"versions. Through Hadoop, use one of {', '.join(_RENAMES_ONCE)}; object stores work through fsspec."
    )


class HadoopDirectory(Directory):
    """A folder of one of Hadoop's file systems. Nothing is connected to before it is used."""

    def __init__(self, url: str) -> None:
        """Remember where it is."""
        super().__init__(url.rstrip("/"))
        self._root = self.url.removeprefix(PREFIX)
        self._files: Any = None

    def read(self, name: str) -> bytes:
        """See `Directory.read`."""
        with _as_python(name):
            stream = self._fs.open(self._path(name))
            try:
                data = _jvm().org.apache.commons.io.IOUtils.toByteArray(stream)
            finally:
                stream.close()
        return bytes(data)

    def create(self, name: str, data: bytes) -> bool:
        """See `Directory.create`: a draft is renamed, which fails if there is a file."""
        folder, _, last = name.rpartition("/")
        draft = f"{folder}/.{last}.{uuid.uuid4().hex}" if folder else f".{last}.{uuid.uuid4().hex}"
        with _as_python(name):
            stream = self._fs.create(self._path(draft), True)
            try:
                stream.write(data)
            finally:
                stream.close()
        try:
            with _as_python(name):
                self._rename(draft, name)
        except FileExistsError:
            return False
        finally:
            self.delete(draft)
        return True

    def upload(self, name: str, source: Path) -> None:
        """See `Directory.upload`."""
        draft = f"{name}.{uuid.uuid4().hex}"
        with _as_python(name):
            local = _jvm().org.apache.hadoop.fs.Path(source.absolute().as_uri())
            self._fs.copyFromLocalFile(False, True, local, self._path(draft))
            self._rename(draft, name)

    def download(self, name: str, target: Path) -> None:
        """See `Directory.download`."""
        with _as_python(name):
            local = _jvm().org.apache.hadoop.fs.Path(target.absolute().as_uri())
            self._fs.copyToLocalFile(False, self._path(name), local, True)

    def drafts(self, folder: str) -> list[str]:
        """See `Directory.drafts`."""
        return sorted(filter(is_draft, self._names(folder)))

    def list(self, folder: str) -> list[str]:
        """See `Directory.list`."""
        return sorted(name for name in self._names(folder) if not name.startswith("."))

    def age(self, name: str) -> float | None:
        """See `Directory.age`."""
        try:
            with _as_python(name):
                return float(
                    time.time() - self._fs.getFileStatus(self._path(name)).getModificationTime() / 1000
                )
        except FileNotFoundError:
            return None

    def delete(self, name: str) -> None:
        """See `Directory.delete`."""
        with suppress(FileNotFoundError), _as_python(name):
            self._fs.delete(self._path(name), False)

    def remove_if_empty(self, folder: str) -> None:
        """See `Directory.remove_if_empty`."""
        with suppress(OSError), _as_python(folder):
            self._fs.delete(self._path(folder), False)

    def _names(self, folder: str) -> "Iterator[str]":
        try:
            with _as_python(folder):
                found = self._fs.listStatus(self._path(folder))
        except FileNotFoundError:
            return
        for status in found:
            yield str(status.getPath().getName())

    def _path(self, name: str) -> Any:
        return _jvm().org.apache.hadoop.fs.Path(f"{self._root}/{name}" if name else self._root)

    @property
    def _fs(self) -> Any:
        """The file system, as the settings of this task say."""
        if self._files is None:
            self._files = self._path("").getFileSystem(_configuration())
        return self._files

    def _rename(self, old: str, new: str) -> None:
        """Rename without replacing."""
        jvm = _jvm()
        context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._path("").toUri(), _configuration()
        )
        options = _gateways[0].new_array(getattr(jvm, "org.apache.hadoop.fs.Options$Rename"), 0)
        context.rename(self._path(old), self._path(new), options)


def _jvm() -> Any:
    """A JVM with Hadoop's classes; one for each process."""
    with _lock:
        if not _gateways:
            from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - only where it is needed

            _gateways.append(launch_gateway())  # type: ignore[no-untyped-call]
    return _gateways[0].jvm


def _configuration() -> Any:
    configuration = _jvm().org.apache.hadoop.conf.Configuration()
    for name, value in _settings().items():
        configuration.set(name, value)
    return configuration


def _settings() -> dict[str, str]:
    """The settings of Hadoop in the session whose task this is: Spark sends them along."""
    context = TaskContext.get()
    given: dict[str, str] = getattr(context, "_localProperties", None) or {}
    return {name.removeprefix(_SETTING): value for name, value in given.items() if name.startswith(_SETTING)}


_ERRORS = {"FileNotFoundException": FileNotFoundError, "FileAlreadyExistsException": FileExistsError}


@contextmanager
def _as_python(name: str) -> Iterator[None]:
    """Errors of files as Python has them."""
    try:
        yield
    except Exception as error:
        raised = getattr(error, "java_exception", None)
        if raised is None:
            raise
        kind = str(raised.getClass().getSimpleName())
        said = str(raised.getMessage()).partition("\n")[0]  # a server's trace may follow
        raise _ERRORS.get(kind, OSError)(f"{name}: {kind}: {said}") from error
