"""`make bench-spark`: measure the pipeline, print tables, write bench/results/spark.json."""

import argparse

from tamis_lab.benchmark.pipeline import run

if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=float, default=1.0, help="share of the full sizes")
    arguments.add_argument("--only", nargs="*", default=(), choices=["kernel", "today", "shards", "growth"])
    given = arguments.parse_args()
    run(given.scale, tuple(given.only))
