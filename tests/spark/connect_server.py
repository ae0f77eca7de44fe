"""A Spark Connect server as a program of its own, so that clients can lose it.

Takes its port and more settings, as JSON. Prints a line when it answers, and ends with its standard input.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def main(port: str, more: dict[str, str]) -> None:
    builder: Any = SparkSession.builder.master("local[2]")
    for name, value in {**SETTINGS, "spark.connect.grpc.binding.port": port, **more}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    print("ready", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
