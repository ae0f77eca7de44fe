"""Which process runs which tests where several do: those of a file share one, so that fixtures are made once.

Files that use Spark go to two processes: a session takes seconds and half a gigabyte.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parent.parent
SPARK_SESSIONS = 2
USES_SPARK = re.compile(r"mark\.spark\b|\bspark: [A-Z]|getfixturevalue\(.spark")


class SparkFilesTogether(LoadFileScheduling):
    """Gives the next file to whoever has none left; with Spark, only to the processes that have a session."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._with_session: set[Any] = set()

    def _assign_work_unit(self, node: Any) -> None:
        file = self._next_file(node)
        if file is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next_file(self, node: Any) -> str | None:
        """The file that a process runs next, or None if the ones left need sessions that others have."""
        about_spark = [file for file in self.workqueue if uses_spark(file)]
        self._with_session &= set(self.nodes)  # without those that crashed
        if about_spark and (node in self._with_session or len(self._with_session) < SPARK_SESSIONS):
            self._with_session.add(node)
            return min(about_spark)  # by name: those of jobs are long, and come first
        return next((file for file in self.workqueue if not uses_spark(file)), None)


@cache
def uses_spark(file: str) -> bool:
    """Whether a test of the file takes the fixture `spark`."""
    return bool(USES_SPARK.search((ROOT / file).read_text(encoding="utf-8")))
