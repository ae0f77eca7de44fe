"""A Connect client follows a Delta table of rules; tables get columns while streams read them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from servers import free_port
from spark.test_clusters import environment
from spark.test_reconnect import connect_server

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.spark_since("4.1")]

JOB = Path(__file__).with_name("connect_follow_job.py")


def test_rules_and_columns_that_change(tmp_path: Path, delta_connector: dict[str, str]) -> None:
    port = free_port()
    with connect_server(tmp_path, port, delta_connector):
        command = [sys.executable, str(JOB), str(tmp_path), f"sc://127.0.0.1:{port}"]
        shown = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr[-4000:]
    told = json.loads(shown.stdout.splitlines()[-1])
    assert "schema" in told.pop("said").lower()
    assert told == {
        "once": 1,
        "merged": [[0, "b"], [3, "a"]],
        "refused": ["bad"],
        "best": [[0, "c"], [1, "c"], [2, "c"], [3, "c"]],
        "stream": [
            *[[0, "b"], [0, "c"], [1, "c"], [2, "c"], [3, "a"], [3, "c"]],
            *[[4, "a"], [4, "c"], [4, "y"], [5, "a"], [5, "c"], [5, "y"]],
        ],
    }
