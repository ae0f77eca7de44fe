"""The job files in docs/spark-jobs.md are right."""

import re
from pathlib import Path

import pytest

from tamis.spark.jobs.load import parse_job

PAGE = Path(__file__).parents[3] / "docs" / "spark-jobs.md"
JOBS = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", JOBS, ids=range(len(JOBS)))
def test_job(text: str) -> None:
    assert parse_job(text, environment={}).name in ("auctions", "alerts")
