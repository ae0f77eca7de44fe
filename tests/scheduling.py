"""Which tests share a process, where several run them: those of one file, so that fixtures are made once.

All files that use Spark share three processes: a session takes seconds and half a gigabyte.
"""

import re
from functools import cache
from itertools import count
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parent.parent
SPARK_SESSIONS = 3
USES_SPARK = re.compile(r"mark\.spark\b|\bspark: [A-Z]|getfixturevalue\(.spark")


class SparkFilesTogether(LoadFileScheduling):
    """Distributes whole files, and the files that use Spark as three groups of files."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        numbers = count()
        self._group = cache(lambda file: f"Spark session {next(numbers) % SPARK_SESSIONS}")

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return self._group(file) if uses_spark(file) else file


@cache
def uses_spark(file: str) -> bool:
    """Whether a test of the file takes the fixture `spark`."""
    return bool(USES_SPARK.search((ROOT / file).read_text(encoding="utf-8")))
