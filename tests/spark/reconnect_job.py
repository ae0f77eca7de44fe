"""What a Connect client does while its connection breaks and its server restarts, as a program of its own.

Takes a folder and the address of the server, behind a proxy. Before each step it prints the step's name and
waits for a line: meanwhile the test does what the step has to survive. Prints JSON at the end.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import tamis.spark
from spark.cluster_job import EVENTS, RULES


def main(folder: Path, address: str) -> None:
    spark: Any = SparkSession.builder.remote(address).getOrCreate()
    step("connection")
    index = tamis.spark.build(slowly(rules(spark)), directory=folder / "index")
    found = pairs(index.match(slowly(events(spark))))
    versions = [*(folder / "index" / "versions").glob("0*/0*.json")]
    lost = index.match(events(spark))
    step("server")
    try:
        lost.collect()
        said = "nothing"
    except Exception as error:
        said = str(error)
    again: Any = SparkSession.builder.remote(address).create()
    print(
        json.dumps(
            {
                "pairs": found,
                "versions": len(versions),
                "said": said,
                "another session": pairs(index.match(events(again))),
                "its own": pairs(tamis.spark.match(events(again), rules(again), directory=folder / "more")),
            }
        ),
        flush=True,
    )


def step(name: str) -> None:
    print(name, flush=True)
    sys.stdin.readline()


def rules(spark: Any) -> Any:
    return spark.range(RULES).selectExpr("id", "'x = ' || id || ' OR y < ' || (id - 50) AS expression")


def events(spark: Any) -> Any:
    return spark.range(0, EVENTS, 1, 4).selectExpr("id AS event_id", "id % 50 AS x", "id % 7 AS y")


def pairs(matches: Any) -> list[list[int]]:
    return sorted([row.event_id, row.subscription] for row in matches.collect())


def slowly(frame: Any) -> Any:
    def dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(1.0)
            yield batch

    return frame.mapInArrow(dawdle, frame.schema)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
