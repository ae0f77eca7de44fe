"""A Spark session on this machine alone, for the demonstration and the benchmark."""

import os
import sys
from pathlib import Path
from typing import Any

_QUIET = Path(__file__).with_name("log4j2.properties")
_JAVA_OF_THE_PROJECT = Path(__file__).parents[3] / ".tools" / "java"


def local_session(cores: int = 2, settings: dict[str, str] | None = None) -> Any:
    """A quiet session on loopback; it uses the Java that `make` found or installed, if there is one."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - slow to import

    if (_JAVA_OF_THE_PROJECT / "bin" / "java").exists():
        os.environ.setdefault("JAVA_HOME", str(_JAVA_OF_THE_PROJECT))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").appName("tamis")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
    }
    for name, value in (fixed | (settings or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
