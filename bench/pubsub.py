"""`make bench-pubsub`: measure routers beside the raw log, print tables, write bench/results/pubsub.json."""

import argparse

from tamis_lab.benchmark.delivery import run
from tamis_lab.benchmark.scale import parse_size

if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--subscriptions", type=parse_size, default=100_000)
    arguments.add_argument("--events", type=parse_size, default=10_000)
    arguments.add_argument("--logs", nargs="*", default=["sqlite", "nats"], choices=["sqlite", "nats"])
    given = arguments.parse_args()
    run(given.subscriptions, given.events, given.logs)
