"""`make bench-spark`: measure the pipeline, print tables, write bench/results/spark.json."""

import argparse

from tamis_lab.benchmark.pipeline import run

if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=1.0, help="share of the full sizes")
    parts = ["kernel", "today", "flink", "shards", "growth", "shapes", "changes", "requests"]
    arguments.add_argument("--only", nargs="*", default=(), choices=parts)
    given = arguments.parse_args()
    run(given.scale, tuple(given.only))
