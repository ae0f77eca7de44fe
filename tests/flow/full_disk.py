"""Run in a process of its own: checkpoints on a disk that becomes full, and then has room again.

`full_disk.py FOLDER system` expects a small file system at FOLDER, and fills it; `full_disk.py FOLDER limit`
forbids this process to write longer files instead. Prints how many events each opened flow had seen.
"""

import errno
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tamis


@contextmanager
def full(folder: Path, way: str) -> Iterator[None]:
    if way == "limit":
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        return
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError as refused:
            if refused.errno != errno.ENOSPC:
                raise
    yield
    filler.unlink()


def main(folder: Path, way: str) -> None:
    path = folder / "flow"
    flow = tamis.Flow()
    flow.stream("s", time="ts")
    flow.add("q", "count(* BY k LAST 1h) >= 3")
    flow.add("p", "SEQUENCE (k = 1) THEN (k = 2) WITHIN 1h")
    flow.checkpoint(path)
    flow.push("s", {"ts": 1, "k": 1})
    flow.checkpoint(path)
    seen = []

    def look() -> None:
        seen.append(tamis.Flow.open(path).stats()["streams"]["s"]["evaluated"])

    for first in (2, 1002):
        flow.push_batch("s", [{"ts": first + at, "k": at, "text": "x" * 100} for at in range(1000)])
        with full(folder, way):
            for _ in range(2):
                try:
                    flow.checkpoint(path)
                except OSError as refused:
                    if refused.errno not in (errno.ENOSPC, errno.EFBIG):
                        raise
                else:
                    raise AssertionError("the disk is full, and a checkpoint says that it is written")
                look()
        flow.checkpoint(path)
        look()
    assert sorted(entry.name for entry in folder.iterdir()) == ["flow", "flow.log"], (
        "temporary files are left"
    )
    print(seen)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
